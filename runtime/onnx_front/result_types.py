"""Element types and shapes of results, where ONNX's inference tells less than a rank.

A dimension that is not told becomes a symbol of its own; a rank that is not told can often be had from the
operands' ranks, or from what the model declares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx import TypeProto

from caffeforge.generated import hub
from caffeforge.runtime.errors import FrontEndError, GraphError
from caffeforge.runtime.graph import Dim, Symbol, Value
from caffeforge.runtime.op import Op
from caffeforge.runtime.shapes import infer, infer_partial

Type = tuple[str, tuple[Dim, ...]]

_KEEP_RANK = (hub.Tile, hub.Slice, hub.Pad, hub.Resize, hub.CenterCropPad, hub.Split)


def types_of(
    op: Op,
    operands: Sequence[Value | None],
    count: int,
    name: str,
    declared: Sequence[TypeProto | None],
    used: Sequence[bool],
) -> list[Type]:
    """Return the types of the first `count` results of an op.

    Args:
        op: an op of the hub, or of a backend's own domain.
        operands: at ONNX's positions.
        count: how many results the node has.
        name: what symbols are named after.
        declared: what the model says of each result of the node, None where it says nothing.
        used: which results are named; the type of one that is not is of no matter.

    Raises:
        GraphError: the op does not take such operands.
        FrontEndError: a rank cannot be told.
    """
    if op.domain:
        return infer(op, operands, count)
    found: list[Type] = []
    for index, (dtype, dims) in enumerate(infer_partial(op, operands, count)):
        if dims is None and index < len(used) and not used[index]:
            dims = ()
        elif dims is None:
            dims = _told(op, operands, declared[index] if index < len(declared) else None)
        if isinstance(op, hub.Reshape) and dims is not None:
            _check_reshape(operands[0], dims)
        stem = name if index == 0 else f"{name}.{index}"
        found.append((dtype, tuple(Symbol(f"{stem}.{a}") if d is None else d for a, d in enumerate(dims))))
    return found


def _check_reshape(x: Value | None, dims: Sequence[Dim | None]) -> None:
    """Refuse a shape of another number of elements; ONNX's inference does not."""
    known = [d for d in dims if isinstance(d, int)]
    if x is None or len(known) < len(dims) or not all(isinstance(d, int) for d in x.dims):
        return
    if math.prod(known) != math.prod(x.shape):
        raise GraphError(f"{x.type_text()} has not the elements of shape {known}")


def dims_of(kind: TypeProto, name: str) -> tuple[Dim, ...]:
    """Return the dims that a model declares; those without a size or name are symbols named after `name`."""
    dims: list[Dim] = []
    for axis, dim in enumerate(kind.tensor_type.shape.dim):
        known = dim.HasField("dim_value") and dim.dim_value > -1
        dims.append(dim.dim_value if known else Symbol(dim.dim_param or f"{name}.{axis}"))
    return tuple(dims)


def _told(op: Op, operands: Sequence[Value | None], declared: TypeProto | None) -> tuple[Dim | None, ...]:
    """Return a shape of which ONNX's inference says nothing, as far as ranks tell it."""
    rank = _rank(op, operands)
    if rank is not None:
        return (None,) * rank
    if declared is not None and declared.tensor_type.HasField("shape"):
        return tuple(
            d.dim_value if d.HasField("dim_value") else Symbol(d.dim_param) if d.dim_param else None
            for d in declared.tensor_type.shape.dim
        )
    raise FrontEndError(
        "how many dimensions its result has is computed when the model runs",
        hint="give the inputs that decide it as constants, or declare the shape in value_info",
    )


def _rank(op: Op, operands: Sequence[Value | None]) -> int | None:
    first = operands[0] if operands else None
    last = operands[1] if len(operands) > 1 else None
    if first is None:
        return None
    if isinstance(op, _KEEP_RANK):
        return first.rank
    if isinstance(op, hub.ConstantOfShape):
        return _length(first)
    length = _length(last)
    if length is None:
        return None
    if isinstance(op, hub.Reshape):
        return length
    return max(length, first.rank) if isinstance(op, hub.Expand) else _moved_rank(op, first.rank, length)


def _length(vector: Value | None) -> int | None:
    """Return how many elements a vector has, None if it is none or that is not known."""
    size = vector.dims[0] if vector is not None and vector.rank == 1 else None
    return size if isinstance(size, int) else None


def _moved_rank(op: Op, rank: int, axes: int) -> int | None:
    """Return the rank of a result whose axes are an operand of `axes` elements, None if that is not it."""
    if isinstance(op, hub.Squeeze):
        return rank - axes
    if isinstance(op, hub.Unsqueeze):
        return rank + axes
    if not op.op_type.startswith("Reduce"):
        return None
    fields = {attribute.name: value for attribute, value in op.fields()}
    if fields.get("keepdims", 1) or (not axes and fields.get("noop_with_empty_axes")):
        return rank
    return rank - axes if axes else 0
