"""The inputs and outputs of a model as those of a hub graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from onnx import TypeProto, ValueInfoProto

from caffeforge.generated import hub
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Graph, Node, Origin, Value
from caffeforge.runtime.onnx_front.items import Items, Nothing
from caffeforge.runtime.onnx_front.result_types import dims_of
from caffeforge.runtime.onnx_node import DTYPES

Fresh = Callable[[str], str]


def input_value(declared: ValueInfoProto, shape: Sequence[int] | None) -> Value:
    """Return an input, of the declared shape or of the one that the user gives.

    Raises:
        FrontEndError: it is no tensor, has no shape, or one that the given one does not fit.
    """
    where = f"input {declared.name}"
    kind = declared.type
    if not kind.HasField("tensor_type") or kind.tensor_type.elem_type not in DTYPES:
        raise FrontEndError("it is no tensor", where=where)
    has_shape = kind.tensor_type.HasField("shape")
    if shape is None and not has_shape:
        raise FrontEndError("the model does not say its shape", where=where, hint="give one")
    if shape is not None and has_shape:
        _check_shape(kind, shape, where)
    dims = dims_of(kind, declared.name) if shape is None else tuple(shape)
    return Value(declared.name, DTYPES[kind.tensor_type.elem_type], dims)


def _check_shape(kind: TypeProto, given: Sequence[int], where: str) -> None:
    """Refuse sizes other than those that a model fixes; 0 and -1 are how some exporters write no size."""
    declared = kind.tensor_type.shape.dim
    fits = len(declared) == len(given) and all(
        not d.HasField("dim_value") or d.dim_value in (0, -1, size)
        for d, size in zip(declared, given, strict=False)
    )
    if not fits:
        dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in declared]
        raise FrontEndError(
            f"shape {list(given)} is given, the model declares [{', '.join(dims)}]",
            where=where,
            hint="a size that the model fixes cannot be changed",
        )


def expanded(outputs: Iterable[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """Return outputs that are tensors: those of a sequence ``y`` are ``y.0``, ``y.1`` and so on.

    Raises:
        FrontEndError: one is an optional that holds nothing.
    """
    found: list[tuple[str, Value]] = []
    for name, value in outputs:
        if isinstance(value, Items):
            found += [(f"{name}.{index}", item) for index, item in enumerate(value.items)]
        elif isinstance(value, Nothing):
            raise FrontEndError("it is an optional that holds nothing", where=f"output {name}")
        else:
            found.append((name, value))
    return found


def name_outputs(graph: Graph, outputs: Sequence[tuple[str, Value]], fresh: Fresh, fresh_node: Fresh) -> None:
    """Make each output a result of a node of its own, under the model's name."""
    for name, value in outputs:
        given = value in graph.inputs or value.data is not None or value in graph.outputs
        graph.outputs.append(
            _identity(graph, value, name, fresh, fresh_node) if given or value.name != name else value
        )


def _identity(graph: Graph, value: Value, name: str, fresh: Fresh, fresh_node: Fresh) -> Value:
    if value.name in ("", name):
        value.name = fresh(f"{name}.constant" if value.data is not None else f"{name}.before")
    result = Value(name, value.dtype, value.dims)
    origin = Origin(op="Identity", value=name)
    graph.nodes.append(Node(fresh_node(name), hub.Identity(), [value], [result], origin))
    return result
