"""``dequantized``: a model that holds numbers as small integers, as the float model that was quantized.

The model is rewritten before it is imported, so that importing, comparing and reporting know one model only.
Weights keep the values that their integers stand for; what is computed is no longer rounded. A quantizer also
takes out activations whose work saturating does; those are put back (see `Quantization.top`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import onnx
import onnx.inliner
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

from caffeforge.generated import onnx as versions
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import FileError, FrontEndError
from caffeforge.runtime.onnx_front.kept import inner_graphs, names_read
from caffeforge.runtime.onnx_front.model_file import ModelFile, opsets, whole
from caffeforge.runtime.onnx_front.quantization import DOMAINS, Quantization, quantization

# Ops that only move or compare elements, so that they do the same to integers and to what these stand for.
_MOVES: Final = frozenset(
    {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Gather", "Identity", "MaxPool"}
)
# Ops whose results are never negative, and those whose results are not if their operands are not.
_POSITIVE: Final = frozenset({"Relu", "Sigmoid", "Softmax", "HardSigmoid", "Exp", "Abs", "Softplus", "Sqrt"})
_KEEP_SIGN: Final = _MOVES | {"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Concat", "Add", "Mul"}
_COMBINE: Final = frozenset({"Concat", "Add", "Mul"})  # of more than one operand
_SIX: Final = 6.0


def dequantized(file: ModelFile) -> tuple[ModelFile, list[str]]:
    """Return the float model, held in memory, and what the user should know of it.

    Raises:
        FileError: its external data cannot be read.
        FrontEndError: integers are read by another scale than they were written by.
    """
    try:
        model = ModelProto()
        model.CopyFrom(whole(file))
    except (OSError, onnx.checker.ValidationError) as error:
        raise FileError(f"the external data cannot be read: {error}", where=file.name) from None
    if any(_is_rounding(node) for function in model.functions for node in function.node):
        model = onnx.inliner.inline_local_functions(model)
    rewriter = _Rewriter(model)
    rewriter.rewrite(model.graph)
    return ModelFile(model, None, None), rewriter.notes()


def _is_rounding(node: NodeProto) -> bool:
    return node.domain in DOMAINS and node.op_type in ("QuantizeLinear", "DequantizeLinear")


class _Rewriter:
    """One model on its way; names stand for the values that the graph at hand gives them."""

    def __init__(self, model: ModelProto) -> None:
        self.opset = opsets(model).get("", 1)
        self.constants: dict[str, NDArray] = {}
        self.floats: dict[str, tuple[str, Quantization]] = {}  # integers -> the numbers before, and how
        self.positive: set[str] = set()
        self.capped: set[str] = set()  # those of `positive` that are 6 at most
        self.made: dict[str, NDArray] = {}
        self.taken = _names(model.graph)
        self.index = 0  # of the node at hand in its graph
        self.pairs = self.weights = 0
        self.put_back: list[str] = []

    def rewrite(self, graph: GraphProto) -> None:
        """Rewrite a graph in place, and those within it."""
        for tensor in graph.initializer:
            if tensor.data_type != onnx.TensorProto.STRING:
                self.constants[tensor.name] = numpy_helper.to_array(tensor)
        nodes: list[NodeProto] = []
        for index, node in enumerate(graph.node):
            self.index = index
            nodes += self._rewritten(node)
        outputs = {value.name for value in graph.output}
        nodes = _read(nodes, outputs)
        del graph.node[:]
        graph.node.extend(nodes)
        del graph.quantization_annotation[:]
        read = names_read(nodes, outputs)
        kept = [tensor for tensor in graph.initializer if tensor.name in read]
        kept += [numpy_helper.from_array(a, name) for name, a in self.made.items() if name in read]
        dropped = {tensor.name for tensor in graph.initializer} - read
        inputs = [value for value in graph.input if value.name not in dropped]
        for field, items in ((graph.initializer, kept), (graph.input, inputs)):
            copies = [_copy(item) for item in items]
            del field[:]
            field.extend(copies)

    def _inner(self, node: NodeProto) -> None:
        """Rewrite the graphs within a node: they see what is known here, but tell nothing of their own."""
        for graph in inner_graphs(node):
            outside = self.constants, self.floats, self.positive, self.capped, self.made
            self.constants, self.floats, self.made = dict(self.constants), dict(self.floats), {}
            self.positive, self.capped = set(self.positive), set(self.capped)
            self.rewrite(graph)
            self.constants, self.floats, self.positive, self.capped, self.made = outside

    def notes(self) -> list[str]:
        """Return what was done, and what that means for the numbers."""
        if not self.pairs and not self.weights:
            return ["nothing of the model is quantized in a way that dequantize takes back"]
        found = [
            f"dequantized: {self.pairs} roundings are left out and {self.weights} constants are float: this "
            "is no longer the quantized model, its numbers differ from those by what rounding and "
            "saturating did"
        ]
        if self.put_back:
            found.append(f"dequantized: the range of integers was an activation, now {self._put_back()}")
        return found

    def _put_back(self) -> str:
        counts = {name: self.put_back.count(name) for name in dict.fromkeys(self.put_back)}
        return " and ".join(f"{count} {name}" for name, count in counts.items())

    def _rewritten(self, node: NodeProto) -> Iterator[NodeProto]:
        """Yield the nodes that stand for `node`."""
        if node.domain in DOMAINS and node.op_type == "QuantizeLinear":
            yield from self._quantize(node)
        elif node.domain in DOMAINS and node.op_type == "DequantizeLinear":
            yield from self._dequantize(node)
        else:
            self._inner(node)
            yield node
            self._follow(node)
            yield from self._moved(node)

    def _quantize(self, node: NodeProto) -> Iterator[NodeProto]:
        numbers, integers = node.input[0], node.output[0]
        how = quantization(node, self.constants, np.uint8)
        if how is not None and numbers in self.constants and how.is_whole():
            self._constant(integers, how.quantized(self.constants[numbers]))
            return
        yield node  # dropped in the end if only pairs read it
        if how is None:
            return
        top = how.top()
        known = self.capped if top is not None and _is_six(top) else self.positive
        if top is None or numbers in known:
            self.floats[integers] = numbers, how
            return
        name = self._fresh(f"{integers}.range")
        self.floats[integers] = name, how
        yield from self._activation(numbers, name, how.scale.dtype, top)

    def _activation(self, numbers: str, name: str, dtype: Any, top: float) -> Iterator[NodeProto]:
        """Yield the activation whose work the range from 0 to `top` does."""
        self.positive.add(name)
        if _is_six(top):
            self.capped.add(name)
        if not _is_six(top):
            self.put_back.append("Relu")
            yield helper.make_node("Relu", [numbers], [name], name=name)
        elif self.opset < 11:
            self.put_back.append("Clip to 6")
            yield helper.make_node("Clip", [numbers], [name], name=name, min=0.0, max=_SIX)
        else:
            self.put_back.append("Clip to 6")
            bounds = [self._fresh(f"{name}.{bound}") for bound in ("least", "most")]
            for bound, number in zip(bounds, (0.0, _SIX), strict=True):
                self._constant(bound, np.array(number, dtype))
            yield helper.make_node("Clip", [numbers, *bounds], [name], name=name)

    def _dequantize(self, node: NodeProto) -> Iterator[NodeProto]:
        integers, numbers = node.input[0], node.output[0]
        held = self.constants.get(integers)
        before = self.floats.get(integers)
        kind = held.dtype if held is not None else before[1].zero.dtype if before else np.uint8
        how = quantization(node, self.constants, kind)
        if how is None or (held is None and before is None):
            yield node
        elif held is not None:
            self.weights += 1
            self._constant(numbers, how.dequantized(held))
        elif before is not None:
            if not how.same(before[1]):
                raise FrontEndError(
                    f"{integers} is read by another scale or zero point than it was written by",
                    where=f"node {node.name or numbers} (number {self.index}, {self._op_text(node)})",
                    hint="such a model has no float model behind it: leave dequantize out",
                )
            self.pairs += 1
            if before[0] in self.positive:
                self.positive.add(numbers)
            if before[0] in self.capped:
                self.capped.add(numbers)
            yield helper.make_node("Identity", [before[0]], [numbers], name=node.name)

    def _op_text(self, node: NodeProto) -> str:
        """Return what errors call an op: its name and version, and its operands."""
        found = versions.find(node.op_type, self.opset) if node.domain in ("", "ai.onnx") else None
        version = f"-{found.since}" if found else f" of {node.domain}"
        return f"{node.op_type}{version} of ({', '.join(node.input)})"

    def _moved(self, node: NodeProto) -> Iterator[NodeProto]:
        """Yield a node on floats for one that moves integers of one scale."""
        before = self.floats.get(node.input[0]) if node.input else None
        if before is None or before[1].scale.ndim or node.op_type not in _MOVES or len(node.output) != 1:
            return
        copy = _copy(node)
        copy.input[0], copy.output[0] = before[0], self._fresh(f"{node.output[0]}.float")
        copy.name = copy.output[0]
        self._follow(copy)
        self.floats[node.output[0]] = copy.output[0], before[1]
        yield copy

    def _follow(self, node: NodeProto) -> None:
        """Remember a constant, and what is never negative."""
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            if node.attribute[0].t.data_type != onnx.TensorProto.STRING:
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        elif node.op_type == "Constant" and node.attribute[0].name == "value_float":
            self.constants[node.output[0]] = np.array(node.attribute[0].f, np.float32)
        read = node.input[:1] if node.op_type in _MOVES else node.input
        keeps = node.op_type in _KEEP_SIGN and all(name in self.positive for name in read)
        if node.op_type in _POSITIVE or keeps:
            self.positive.update(node.output)
        if node.op_type in _KEEP_SIGN - _COMBINE and node.input[0] in self.capped:
            self.capped.update(node.output)

    def _constant(self, name: str, array: NDArray) -> None:
        self.constants[name] = self.made[name] = array

    def _fresh(self, name: str) -> str:
        """Return a name that no value has."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _is_six(top: float) -> bool:
    """Tell whether a range ends where Relu6 does."""
    return abs(top - _SIX) < _SIX * 1e-4


def _read(nodes: list[NodeProto], outputs: set[str]) -> list[NodeProto]:
    """Return the nodes that something reads: what made integers that became floats is left over."""
    while True:
        read = names_read(nodes, outputs)
        kept = [node for node in nodes if read & set(node.output)]
        if len(kept) == len(nodes):
            return nodes
        nodes = kept


def _names(graph: GraphProto) -> set[str]:
    """Return all names of a graph and of those within it."""
    found = {name for node in graph.node for name in (*node.input, *node.output)}
    found |= {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        for inner in inner_graphs(node):
            found |= _names(inner)
    return found


def _copy(message: Any) -> Any:
    """Return a copy of a message, which stays when the list that held it is emptied."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
