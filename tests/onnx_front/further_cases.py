"""ONNX's node tests that do not count: text, sequences, optionals, training, odd element types.

A sequence that a test takes is made of tensors by a node before it, one that it yields is handed out tensor
by tensor: so the graph takes and yields tensors, and the ops under test are the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from onnx import ModelProto, TypeProto, helper

from tests.onnx_front.node_cases import all_cases, as_array, counts

_KINDS = ("tensor_type", "sequence_type", "optional_type")
_RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomUniform", "Dropout")


@lru_cache(maxsize=1)
def further_cases() -> tuple[tuple[str, ModelProto, list[Any], list[Any]], ...]:
    """Return name, model, inputs and expected outputs of each."""
    return tuple(
        (case.name, *of_tensors(case.model, *case.data_sets[0]))
        for case in all_cases()
        if not counts(case.model)
        and all(value.type.WhichOneof("value") in _KINDS for value in case.model.graph.input)
        and not any(node.op_type.startswith(_RANDOM) for node in case.model.graph.node)
        and not any(_is_odd(value.type) for value in (*case.model.graph.input, *case.model.graph.output))
    )


def _is_odd(kind: TypeProto) -> bool:
    return kind.HasField("sparse_tensor_type") or kind.HasField("map_type")


def of_tensors(
    model: ModelProto, given: list[Any], expected: list[Any]
) -> tuple[ModelProto, list[Any], list[Any]]:
    """Return a model that takes and yields tensors, with what it is fed and what is expected."""
    made = ModelProto()
    made.CopyFrom(model)
    before, inputs, fed = [], [], []
    for value, array in zip(model.graph.input, given, strict=True):
        optional = value.type.HasField("optional_type")
        kind = value.type.optional_type.elem_type if optional else value.type
        element = kind.sequence_type.elem_type if kind.HasField("sequence_type") else kind
        items = array if isinstance(array, list) else [] if array is None else [as_array(array)]
        name = f"{value.name}.held" if optional else value.name
        if kind.HasField("sequence_type") and array is not None:
            names = [f"{value.name}.{index}" for index in range(len(items))]
            if names:
                before.append(helper.make_node("SequenceConstruct", names, [name]))
            else:
                before.append(
                    helper.make_node("SequenceEmpty", [], [name], dtype=element.tensor_type.elem_type)
                )
        else:
            names = [name][: len(items)]
        inputs += [
            helper.make_tensor_value_info(n, element.tensor_type.elem_type, np.shape(item))
            for n, item in zip(names, items, strict=True)
        ]
        fed += items
        if optional:
            held = [] if array is None else [name]
            before.append(helper.make_node("Optional", held, [value.name], type=kind))
    del made.graph.input[:], made.graph.node[:]
    made.graph.input.extend(inputs)
    made.graph.node.extend([*before, *model.graph.node])
    wanted = [item for array in expected for item in (array if isinstance(array, list) else [array])]
    made.ir_version = max(made.ir_version, 8)
    return made, fed, wanted
