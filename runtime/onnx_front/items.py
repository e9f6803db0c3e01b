"""What is no tensor but known before the model runs: sequences of so many tensors, empty optionals.

They exist while a model is imported only: the graph holds the tensors themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TypeProto, helper

from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type, type_proto


class Items(Value):
    """A sequence of tensors of one element type, whose length is known.

    Attributes:
        items: the tensors, in order.
    """

    __slots__ = ("items",)

    def __init__(self, dtype: str, items: Sequence[Value]) -> None:
        super().__init__("", dtype, ())
        self.items = tuple(items)

    def type_text(self) -> str:
        return f"sequence of {len(self.items)} {self.dtype} tensors"


class Nothing(Value):
    """An optional that holds nothing."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("", "float32", ())

    def type_text(self) -> str:
        return "empty optional"


def is_tensor(value: Value | None) -> bool:
    """Tell whether a value is a tensor, or absent."""
    return not isinstance(value, (Items, Nothing))


def type_of(value: Value) -> TypeProto:
    """Return the type of a value or sequence as ONNX's."""
    if not isinstance(value, Items):
        return type_proto(value)
    return helper.make_sequence_type_proto(
        helper.make_tensor_type_proto(element_type(value.dtype), _common_dims(value.items))
    )


def constructing(name: str, value: Items) -> tuple[NodeProto, dict[str, Value]]:
    """Return a node that yields a sequence under a name, and its operands by theirs."""
    operands = {f"{name}.{index}": item for index, item in enumerate(value.items)}
    if operands:
        return helper.make_node("SequenceConstruct", list(operands), [name]), operands
    return helper.make_node("SequenceEmpty", [], [name], dtype=element_type(value.dtype)), operands


def _common_dims(items: Sequence[Value]) -> list[int | str | None] | None:
    """Return the dims that all tensors have, None for one in which they differ; None if ranks do."""
    ranks = {item.rank for item in items}
    if len(ranks) != 1:
        return None
    columns = [set(column) for column in zip(*(item.dims for item in items), strict=True)]
    dims = [next(iter(column)) if len(column) == 1 else None for column in columns]
    return [dim if dim is None or isinstance(dim, int) else dim.name for dim in dims]
