"""A Caffe dialect as a target of the legalizer: its rules, and which nodes no layer can stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from caffeforge.generated.hub.lowerings import IMPOSSIBLE
from caffeforge.generated.hub.lowerings import RULES as LOWERINGS
from caffeforge.runtime.arguments import arguments
from caffeforge.runtime.backend import Alternative, Backend, Rule
from caffeforge.runtime.emit import Emit
from caffeforge.runtime.graph import Node, Value

EXACT: Final = 2**24  # whole numbers up to it are exact in a float32
FLOATS: Final = ("float32", "float16", "bfloat16", "float64")
# Ops that yield places along an axis, far below 2**24, and ops that only move what they are given.
PLACES: Final = frozenset({"ArgMax", "ArgMin", "MaxPool", "Places", "TopK"})
MOVES: Final = frozenset(
    {"Concat", "Exchange", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity"}
    | {"MaxUnpool", "OneHot", "Reshape", "ReverseSequence", "Slice", "Split", "Squeeze", "Tile"}
    | {"Transpose", "Unsqueeze"}
)


@dataclass(frozen=True)
class CaffeTarget:
    """See ``legalize.Target``."""

    backend: Backend

    @property
    def name(self) -> str:
        return self.backend.name

    def rule(self, node: Node) -> Rule | None:
        return self.backend.rules.get(type(node.op))

    def lowering(self, node: Node) -> Rule | None:
        return LOWERINGS.get(type(node.op))

    def why_not(self, node: Node) -> str:
        return IMPOSSIBLE.get(type(node.op), "")

    def hint(self, node: Node) -> str:
        whole = [v for v in node.outputs if v.dtype in ("int32", "int64") and not _fits(v, node)]
        if node.op.op_type == "Cast" and whole:
            return "leave the conversion out, as trunc() in place of long(): a float32 is exact up to 2**24"
        return ""

    def obstacle(self, node: Node) -> str:
        return _obstacle(node)

    def run(self, node: Node, alternative: Alternative, counts: dict[str, int] | None) -> Emit:
        emit = Emit(node, alternative.rule, self.backend, counts)
        alternative.function(emit, node.op, *arguments(node))
        return emit


def _obstacle(node: Node) -> str:
    """Return why no Caffe layer can stand for `node` whatever the rules say, or an empty string."""
    for formal, value in zip(node.op.inputs, node.inputs, strict=False):
        if formal.static and value is not None:
            return f"{formal.name} must be known when the model is converted, {value.name} is computed"
    for value in (*node.inputs, *node.outputs):
        if value is not None and not _fits(value, node):
            return f"{value.name} is {value.dtype}, a Caffe blob holds float32"
    return ""


def _fits(value: Value, node: Node) -> bool:
    """Tell whether a blob holds exactly what `value` may be: floats, truth values, small whole numbers."""
    if value.data is not None or value.dtype in (*FLOATS, "bool"):
        return True
    if value.dtype not in ("int32", "int64"):
        return False
    if node.op.op_type == "Cast":
        return value in node.inputs and _is_place(value)
    return node.op.op_type in PLACES | MOVES


def _is_place(value: Value) -> bool:
    """Tell whether a whole number is known to be small."""
    source = value.producer
    if source is None:
        return False
    if source.op.op_type == "OneHot":
        values = source.inputs[2] if len(source.inputs) > 2 else None
        return values is not None and values.data is not None and abs(values.data.numpy()).max() <= EXACT
    if source.op.op_type in MOVES:
        whole = [v for v in source.inputs if v is not None and v.dtype == value.dtype]
        return all(_is_place(v) for v in whole)
    return source.op.op_type in PLACES
