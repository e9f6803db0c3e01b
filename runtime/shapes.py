"""Element types and shapes of an op's results, by ONNX's own inference.

Rewrites, readers and folding ask for one op at a time, some thousand times for a net; answers are
kept. ``onnx`` is slow to import, so callers import this module when they first infer.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from onnx import TensorProto, TypeProto, defs, helper, shape_inference

from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Dim, Symbol, Value
from caffeforge.runtime.onnx_node import DTYPES, OPSET, node_proto, tensor, type_proto
from caffeforge.runtime.op import Op
from caffeforge.runtime.refusal import Refused
from caffeforge.runtime.told_sizes import told

Inferred = tuple[str, tuple[Dim, ...]]  # NumPy's name of the element type or bfloat16, dims outermost first

_Results = list[tuple[str, list["Dim | None"]]]  # None for a dimension that is not told
Partial = tuple[str, "tuple[Dim | None, ...] | None"]  # as Inferred; None for what is not told

_CACHE_SIZE: Final = 4096
_cache: OrderedDict[object, tuple[Inferred, ...]] = OrderedDict()

_IMPORTS: Final = [helper.make_opsetid("", OPSET)]
_IR_VERSION: Final = helper.find_min_ir_version_for(_IMPORTS)

# Ops without an inference function: their one result is of the first operand's type.
_LIKE_FIRST: Final = frozenset({"GroupNormalization", "MeanVarianceNormalization"})


def infer(op: Op, inputs: Sequence[Value | None], outputs: int = 1) -> list[Inferred]:
    """Return (dtype, dims) of the first `outputs` results of `op`.

    Args:
        op: an op of ONNX, or one that has a shape rule of its own.
        inputs: operands at ONNX's positions. Of constants at static positions and of scalar constants
            (the limits of Range) the elements count too.
        outputs: how many results the node has.

    Raises:
        GraphError: the op does not take such operands, or a dimension of a result cannot be told.
    """
    if op.domain:
        return _of_custom(op, inputs, outputs)
    known = _known_elements(op, inputs)
    types = tuple((value.dtype, value.dims) if value is not None else None for value in inputs)
    key = (op, types, outputs, tuple((i, t.SerializeToString()) for i, t in known.items()))
    found = _cache.get(key)
    if found is None:
        found = tuple(_infer(op, inputs, outputs, known))
        _cache[key] = found
        if len(_cache) > _CACHE_SIZE:
            _cache.popitem(last=False)
    else:
        _cache.move_to_end(key)
    return list(found)


def infer_partial(op: Op, inputs: Sequence[Value | None], outputs: int = 1) -> list[Partial]:
    """Return what can be told of the first `outputs` results of an op of ONNX; see `infer`.

    Raises:
        GraphError: the op does not take such operands, or the element type of a result cannot be told.
    """
    try:
        return list(infer(op, inputs, outputs))
    except GraphError:
        inference = _Inference(op, inputs, outputs, _known_elements(op, inputs))
    return inference.partial()


def _of_custom(op: Op, inputs: Sequence[Value | None], outputs: int) -> list[Inferred]:
    """Return the results of an op of a backend's own domain, by the shape rules of its mapping."""
    first = inputs[0] if inputs else None
    if op.custom is None or first is None:
        raise GraphError(
            f"{op.domain}.{op.op_type} is not an ONNX operator, so its results need a shape rule",
            hint="give the op a shape: in the custom: section of the mapping",
        )
    rules = [op.custom.shape, *(op.custom.further.get(formal.name) for formal in op.outputs[1:outputs])]
    if len(rules) != outputs or None in rules:
        raise GraphError(
            f"the mapping does not give the sizes of all {outputs} results of {op.domain}.{op.op_type}",
            hint="write shape: as {output: sizes}, with an entry for each",
        )
    given: list[object] = [*inputs]
    if op.inputs and op.inputs[-1].option == "variadic":
        given[len(op.inputs) - 1 :] = [tuple(inputs[len(op.inputs) - 1 :])]
    try:
        return [(first.dtype, tuple(rule(op, *given))) for rule in rules if rule is not None]
    except Refused as refused:
        raise GraphError(refused.sentence, where=f"{op.domain}.{op.op_type}") from None


def _known_elements(op: Op, inputs: Sequence[Value | None]) -> dict[int, TensorProto]:
    """Return the constant operands on whose elements shapes may depend, by position."""
    return {
        index: tensor(f"i{index}", value.data.numpy(), value.dtype)
        for index, (formal, value) in enumerate(zip(op.inputs, inputs, strict=False))
        if value is not None and value.data is not None and (formal.static or not value.dims)
    }


def _infer(
    op: Op, inputs: Sequence[Value | None], outputs: int, known: Mapping[int, TensorProto]
) -> Iterator[Inferred]:
    inference = _Inference(op, inputs, outputs, known)
    results = inference.run({})
    if any(None in dims for _, dims in results):
        results = _with_trials(inference, results)
    for index, (dtype, dims) in enumerate(results):
        if None in dims:
            raise GraphError(
                f"{_call_text(op, inputs)}: dimension {dims.index(None)} of result {index} cannot be told",
                hint="give the model's inputs fixed sizes, or make what the size depends on a constant",
            )
        yield dtype, tuple(d for d in dims if d is not None)


def _with_trials(inference: _Inference, results: _Results) -> _Results:
    """Fill in the dimensions that can be told by trying sizes for the symbols."""
    given = (d for value in inference.inputs if value is not None for d in value.dims)
    symbols = list(dict.fromkeys(d for d in given if isinstance(d, Symbol)))
    if not symbols:
        return results
    filled = told(symbols, lambda sizes: [d for _, d in inference.run(sizes)], [dims for _, dims in results])
    return [(dtype, dims) for (dtype, _), dims in zip(results, filled, strict=True)]


class _Inference:
    """One op with its operands, as ONNX's inference takes it."""

    def __init__(
        self, op: Op, inputs: Sequence[Value | None], outputs: int, known: Mapping[int, TensorProto]
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.operands = [
            None if v is None else Value(f"i{index}", v.dtype, v.dims) for index, v in enumerate(inputs)
        ]
        self.results = [f"o{index}" for index in range(outputs)]
        self.node, self.statics = node_proto(op, self.operands, self.results, op.op_type, set())
        self.data = {t.name: t for t in (*self.statics, *known.values())}

    def run(self, sizes: Mapping[Symbol, int]) -> _Results:
        """Return dtype and dims of each result with `sizes` for symbols; None for a dimension not told."""
        found = self._found(sizes)
        return [self._result(found, name) for name in self.results]

    def partial(self) -> list[Partial]:
        """Return dtype and dims of each result as far as they can be told."""
        found = self._found({})
        told: list[Partial] = []
        for name in self.results:
            if name in found and found[name].tensor_type.HasField("shape"):
                dtype, dims = self._result(found, name)
                told.append((dtype, tuple(dims)))
            elif name in found and found[name].tensor_type.elem_type in DTYPES:
                told.append((DTYPES[found[name].tensor_type.elem_type], None))
            else:
                raise GraphError(
                    f"{_call_text(self.op, self.inputs)}: ONNX infers no type of result {name[1:]}"
                )
        return told

    def _found(self, sizes: Mapping[Symbol, int]) -> Mapping[str, TypeProto]:
        types = {}
        for value in self.operands:
            if value is not None:
                dims = [sizes.get(d, d) if isinstance(d, Symbol) else d for d in value.dims]
                types[value.name] = type_proto(Value(value.name, value.dtype, dims))
        types.update({t.name: helper.make_tensor_type_proto(t.data_type, t.dims) for t in self.statics})
        try:
            return self._results(types)
        except Exception as error:  # onnx raises classes that share no base of its own
            raise GraphError(f"{_call_text(self.op, self.inputs)}: {condensed(error)}") from None

    def _results(self, types: Mapping[str, TypeProto]) -> Mapping[str, TypeProto]:
        if self.op.op_type in _LIKE_FIRST:
            return {self.results[0]: types[self.node.input[0]]}
        schema = defs.get_schema(self.op.op_type, OPSET, "")
        return shape_inference.infer_node_outputs(
            schema, self.node, dict(types), self.data, None, _IMPORTS, _IR_VERSION
        )

    def _result(self, found: Mapping[str, TypeProto], name: str) -> tuple[str, list[Dim | None]]:
        if name not in found or not found[name].tensor_type.HasField("shape"):
            raise GraphError(
                f"{_call_text(self.op, self.inputs)}: ONNX infers no shape for result {name[1:]}"
            )
        kind = found[name].tensor_type
        dims = [
            Symbol(d.dim_param) if d.dim_param else d.dim_value if d.HasField("dim_value") else None
            for d in kind.shape.dim
        ]
        return DTYPES[kind.elem_type], dims


def _call_text(op: Op, inputs: Sequence[Value | None]) -> str:
    operands = ", ".join(value.type_text() if value is not None else "-" for value in inputs)
    return f"{op!r} of ({operands})"


def condensed(error: Exception) -> str:
    """Return ONNX's or onnxruntime's message as one line, without the class and number it begins with."""
    text = re.sub(r"^(\[\w+\]\s*)?:?\s*(\d+ : \w+ : )?", "", " ".join(str(error).split()))
    return text or type(error).__name__
