"""Lowering: operators of a functional ATen graph become hub nodes; what cannot is reported at once."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph as FxGraph
from torch.fx import Node as FxNode

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Node, Value
from caffeforge.runtime.refusal import Refused

# Importing a file of handlers registers them.
from caffeforge.runtime.torch_front import activation_ops as activation_ops
from caffeforge.runtime.torch_front import adaptive_pool_ops as adaptive_pool_ops
from caffeforge.runtime.torch_front import arithmetic_ops as arithmetic_ops
from caffeforge.runtime.torch_front import attention_ops as attention_ops
from caffeforge.runtime.torch_front import cast_ops as cast_ops
from caffeforge.runtime.torch_front import compare_ops as compare_ops
from caffeforge.runtime.torch_front import conv_ops as conv_ops
from caffeforge.runtime.torch_front import index_ops as index_ops
from caffeforge.runtime.torch_front import join_ops as join_ops
from caffeforge.runtime.torch_front import linear_ops as linear_ops
from caffeforge.runtime.torch_front import made_ops as made_ops
from caffeforge.runtime.torch_front import norm_ops as norm_ops
from caffeforge.runtime.torch_front import order_ops as order_ops
from caffeforge.runtime.torch_front import pointwise_ops as pointwise_ops
from caffeforge.runtime.torch_front import pool_ops as pool_ops
from caffeforge.runtime.torch_front import recurrent_ops as recurrent_ops
from caffeforge.runtime.torch_front import reduce_ops as reduce_ops
from caffeforge.runtime.torch_front import resize_ops as resize_ops
from caffeforge.runtime.torch_front import scatter_ops as scatter_ops
from caffeforge.runtime.torch_front import shape_ops as shape_ops
from caffeforge.runtime.torch_front import slice_ops as slice_ops
from caffeforge.runtime.torch_front import special_ops as special_ops
from caffeforge.runtime.torch_front.call import STATIC, Call
from caffeforge.runtime.torch_front.complex_ops import complex_handler, is_complex, is_pair
from caffeforge.runtime.torch_front.decompose import splice, splice_by
from caffeforge.runtime.torch_front.folding import Folding
from caffeforge.runtime.torch_front.own_ops import OwnOps
from caffeforge.runtime.torch_front.own_rules import rule_of
from caffeforge.runtime.torch_front.provenance import op_name, origin
from caffeforge.runtime.torch_front.refusals import COMPLEX, reason
from caffeforge.runtime.torch_front.registry import HANDLERS, Handler, Result
from caffeforge.runtime.torch_front.sizes import Sizes, is_size
from caffeforge.runtime.torch_front.unbatched import lacks_batch, with_batch
from caffeforge.runtime.torch_front.weights import Weights


@dataclass(frozen=True)
class Step:
    """What one operator became.

    Attributes:
        source: the operator in the functional graph.
        nodes: its hub nodes, in order; none if it is no node in the hub, or is a constant.
        results: its results that are values of the hub, in PyTorch's order.
    """

    source: FxNode
    nodes: tuple[Node, ...]
    results: tuple[Value | None, ...]

    @property
    def main(self) -> Node | None:
        """The node that yields the operator's result; the others compute something on the way to it."""
        produced = [value.producer for value in self.results if value is not None]
        return next((node for node in self.nodes if node in produced), None)


@dataclass
class Lowering:
    """One run over a functional graph.

    Attributes:
        weights: where the values of constants come from.
        folding: the constants; at first the tensors of the model.
        operands: the hub values of operators and inputs; at first the inputs'.
        own: the ops of the backend's own domain.
        sizes: the sizes of the program, which know the inputs.
        steps: what has been lowered.
    """

    weights: Weights
    folding: Folding
    operands: dict[FxNode, Result]
    own: OwnOps
    sizes: Sizes
    steps: list[Step] = field(default_factory=list)
    _without_handler: dict[str, list[FxNode]] = field(default_factory=dict)
    _refusals: list[FrontEndError] = field(default_factory=list)

    def run(self, graph: FxGraph) -> None:
        """Lower all operators of `graph`.

        Raises:
            FrontEndError: lists every operator that has no handler or that its handler refuses.
        """
        for node in graph.nodes:  # parts of decomposed ones are put before the one that is visited
            if node.op == "call_function":
                self._try(node)
        if self._refusals or self._without_handler:
            raise self._report()

    def _try(self, node: FxNode) -> None:
        """Lower an operator; what is wrong with it is kept for the report."""
        try:
            self._visit(node)
        except Refused as refused:
            what = f"{op_name(node)} {refused.sentence.partition(':')[0]}"
            self._refuse(node, FrontEndError(what, hint=STATIC))
        except FrontEndError as error:
            self._refuse(node, error)

    def _refuse(self, node: FxNode, error: FrontEndError) -> None:
        where = error.where or str(origin(node))
        self._refusals.append(FrontEndError(error.what, where=where, hint=error.hint))
        self.operands[node] = self._stand_in(node)

    def _visit(self, node: FxNode) -> None:
        if self.folding.takes(node):
            self.folding.fold(node)
            return
        if is_size(node):
            return  # tensors and arguments have it as an expression
        self._check_sizes(node)
        for operand in node.all_input_nodes:
            if operand in self.folding.constants and operand not in self.operands:
                self.operands[operand] = self._constant(self.folding.constants[operand])
        if node.target is operator.getitem:
            self.operands[node] = self._element(node)
            return
        if is_complex(node):
            self._visit_complex(node)
            return
        handler = self.own.handler(node.target)
        if handler is not None:
            self._lower(node, handler)
            return
        handler = HANDLERS.get(node.target) if isinstance(node.target, OpOverload) else None
        if handler is not None and not lacks_batch(node) and rule_of(node) is None:
            self._lower(node, handler)
            return
        parts = _parts(node)
        if parts is None:
            self._without_handler.setdefault(op_name(node), []).append(node)
            self.operands[node] = self._stand_in(node)
        for part in parts or ():
            self._try(part)

    def _visit_complex(self, node: FxNode) -> None:
        """Lower an operator of complex numbers: the parts of one that has no handler, if PyTorch has any."""
        handler = complex_handler(node.target)
        if handler is not None:
            self._lower(node, lambda call: handler(node, self.operands, call), parts=is_pair(node))
            return
        parts = _parts(node)
        if parts is None:
            self._without_handler.setdefault(op_name(node), []).append(node)
            self.operands[node] = self._stand_in(node)
        for part in parts or ():
            self._try(part)

    def _lower(self, node: FxNode, handler: Handler, *, parts: bool = False) -> None:
        call = Call(node, self.operands, self.sizes)
        result = self.operands[node] = handler(call)
        results = (result,) if isinstance(result, Value) else tuple(result)
        step = Step(node, tuple(call.nodes), (None,) if parts else results)
        for built in step.nodes:
            if (
                parts or built.outputs[0] is not results[0]
            ):  # it does not yield what the source has a value for
                built.origin = replace(built.origin, value="")
        self.steps.append(step)

    def _constant(self, tensors: Any) -> Result:
        if isinstance(tensors, torch.Tensor) and tensors.is_complex():
            return [self.weights.value(part.contiguous()) for part in (tensors.real, tensors.imag)]
        if isinstance(tensors, torch.Tensor):
            return self.weights.value(tensors)
        return [self.weights.value(t) if isinstance(t, torch.Tensor) else None for t in tensors]

    def _element(self, node: FxNode) -> Result:
        """Return the result that a getitem takes of an operator with several."""
        source, index = node.args
        assert isinstance(source, FxNode)  # else the node were a constant
        results = self.operands.get(source)
        if isinstance(results, Sequence) and isinstance(index, int):
            value = results[index]
            if value is not None:
                return value
        raise FrontEndError(
            f"result {index} of {op_name(source)} has no place in the hub",
            where=str(origin(node)),
        )

    def _check_sizes(self, node: FxNode) -> None:
        """Refuse an operator whose results have a size that depends on the elements of a tensor."""
        value = node.meta.get("val")
        for tensor in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(tensor, torch.Tensor):
                try:
                    self.sizes.dims(tensor)
                except FrontEndError as error:
                    raise FrontEndError(f"{op_name(node)}: {error.what}") from None

    def _stand_in(self, node: FxNode) -> Result:
        """Return values of the right types for what could not be lowered, so that all faults are found."""
        value = node.meta.get("val")
        if isinstance(value, (tuple, list)):
            return [self._typed(element) for element in value]
        return self._typed(value) or []

    def _typed(self, element: object) -> Value | None:
        if not isinstance(element, torch.Tensor):
            return None
        dims = [size if isinstance(size, int) else 1 for size in element.shape]
        return Value("", str(element.dtype).removeprefix("torch."), dims)

    def _report(self) -> FrontEndError:
        if len(self._refusals) == 1 and not self._without_handler:
            return self._refusals[0]
        what = "the model holds operators that have no place in the hub:"
        lines = [_missing(op, nodes) for op, nodes in self._without_handler.items()]
        lines += [f"{error.where}: {error.what}" for error in self._refusals]
        return FrontEndError(
            "\n  ".join([what, *lines]), hint="replace them in the model, or register handlers with torch_op"
        )


def _parts(node: FxNode) -> list[FxNode] | None:
    """Take an operator apart; return the operators that stand in its place, None if PyTorch has no rule."""
    if not isinstance(node.target, OpOverload):
        return None
    if lacks_batch(node):
        return splice_by(functools.partial(with_batch, node.target), node)
    rule = rule_of(node)
    return splice(node) if rule is None else splice_by(rule, node)


def _missing(op: str, nodes: Sequence[FxNode]) -> str:
    first = origin(nodes[0])
    text = f"{op}, {len(nodes)} time{'s' if len(nodes) > 1 else ''}, first in {first}"
    why = reason(op.partition(" ")[0]) or (COMPLEX if is_complex(nodes[0]) else "")
    return f"{text}: {why}" if why else text
