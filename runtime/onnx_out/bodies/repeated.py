"""A Loop whose body is a graph of the hub, so that it is written in any opset as all else is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caffeforge.generated import onnx as versions
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.graph import Graph, Value
from caffeforge.runtime.onnx_out.emit import OnnxEmit, OpCall
from caffeforge.runtime.onnx_out.own_ops import DOMAIN_OF_LOOPS
from caffeforge.runtime.op import Formal, Op
from caffeforge.runtime.refusal import Refused
from caffeforge.runtime.refusals import cause

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto


class Repeated(Op):
    """A graph that runs as often as the first operand, an int64 scalar, says.

    Its other operands are the states before the first run, then what each run reads besides. Its results are
    the states after the last run, then what the runs gave, stacked up along a new first axis.

    Attributes:
        body: (step, states, what else is read) -> (states, what each run gives); the step counts from 0.
        states: how many there are.
    """

    __slots__ = ("body", "states")
    domain = DOMAIN_OF_LOOPS
    op_type = "Repeated"
    inputs = (Formal("operands", "variadic"),)
    outputs = (Formal("results", "variadic"),)
    body: Graph
    states: int

    def __init__(self, body: Graph, states: int) -> None:
        set_ = object.__setattr__
        set_(self, "body", body)
        set_(self, "states", states)

    def _key(self) -> tuple[object, ...]:
        return (id(self.body), self.states)


def write_repeated(e: OnnxEmit, op: Any, *_: object) -> None:
    """Write a Repeated as a Loop of the opset.

    Raises:
        Refused: the opset cannot say an op of the body.
    """
    found = versions.find("Loop", e.backend.opset)
    assert found is not None  # every opset has it
    operands, results = list(e.node.inputs), list(e.node.outputs)
    call = OpCall(e.stem, "Loop", "", found.since, (), operands, [*results], e.node, e.rule)
    call.proto = _model(e, op).SerializeToString(deterministic=True)
    e.calls.append(call)


def _model(e: OnnxEmit, op: Repeated) -> ModelProto:
    """Return a model of the Loop alone, whose inputs are all that it reads; see ``renamed``."""
    from onnx import ModelProto, helper

    from caffeforge.runtime.onnx_node import type_proto

    names = [f"operand_{index}" for index in range(len(e.node.inputs))]
    results = [f"result_{index}" for index in range(len(e.node.outputs))]
    body = _body(e, op, names[1 + op.states :])
    loop = helper.make_node("Loop", [names[0], "", *names[1 : 1 + op.states]], results, body=body)
    model = ModelProto(ir_version=8)
    model.graph.node.append(loop)
    for name, value in zip(names, e.node.inputs, strict=True):
        assert value is not None  # it has no operands that may be left out
        model.graph.input.append(helper.make_value_info(name, type_proto(value)))
    for name, value in zip(results, e.node.outputs, strict=True):
        model.graph.output.append(helper.make_value_info(name, type_proto(value)))
    return model


def _body(e: OnnxEmit, op: Repeated, outer: list[str]) -> GraphProto:
    """Return the graph of one run: (step, condition, states) -> (condition, states, what it gives)."""
    from onnx import GraphProto, TensorProto, helper

    from caffeforge.runtime.legalize import legalized
    from caffeforge.runtime.onnx_node import tensor, type_proto
    from caffeforge.runtime.onnx_out.model import assemble
    from caffeforge.runtime.onnx_out.target import OnnxTarget, unread

    try:
        calls = legalized(op.body, OnnxTarget(e.backend, unread(op.body)))
    except LegalizeError as error:
        raise Refused(cause(error.document["refused"][0]), e.rule) from None
    made = assemble(op.body, calls, e.backend.opset, "c")
    own, read = op.body.inputs[: 1 + op.states], op.body.inputs[1 + op.states :]
    renamed = {made.names[value]: name for value, name in zip(read, outer, strict=True)}
    graph = GraphProto(name="body", node=made.proto().graph.node)
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
    graph.initializer.extend(tensor(n, a.numpy(), a.dtype) for n, a in made.weights.items())
    graph.node.append(helper.make_node("Identity", ["go_on"], ["goes_on"]))

    def info(value: Value) -> Any:
        return helper.make_value_info(made.names[value], type_proto(value))

    scalar = helper.make_tensor_value_info
    graph.input.extend([info(own[0]), scalar("go_on", TensorProto.BOOL, ()), *map(info, own[1:])])
    graph.output.extend([scalar("goes_on", TensorProto.BOOL, ()), *map(info, made.outputs)])
    return graph
