"""What ops of domains of their own compute, as local functions of the model that holds them.

A body (the op's reference, or one of ``bodies``) is written for given attributes, shapes and number of
results, so there is one function for each of these: functions of one op differ in ONNX's ``overload``, and
their attributes are constants in their bodies. A body calls no other function of the model: onnxruntime
(1.32) takes the wrong one of several overloads there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from onnx import FunctionProto, helper

from caffeforge.runtime.builder import Builder
from caffeforge.runtime.errors import CaffeforgeError, LegalizeError
from caffeforge.runtime.fold import fold_constants
from caffeforge.runtime.graph import Graph, Value
from caffeforge.runtime.legalize import legalized
from caffeforge.runtime.onnx_node import tensor
from caffeforge.runtime.onnx_out.emit import OpCall
from caffeforge.runtime.onnx_out.own_ops import bodies_of
from caffeforge.runtime.op import Formal, full_name
from caffeforge.runtime.refusal import Refused
from caffeforge.runtime.refusals import cause

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_out.backend import OnnxBackend
    from caffeforge.runtime.onnx_out.model import OnnxModel

VERSION: Final = 1  # of a backend's domain: it has one mapping
_Key = tuple[object, ...]


@dataclass
class LocalFunctions:
    """The functions of one model, each made when a node first needs it.

    Attributes:
        backend: its opset is that of the bodies, whatever part of it a vendor takes: whoever knows the op
            does not read them.
        found: the functions that there are.
        notes: why an op has none, once each.
    """

    backend: OnnxBackend
    found: dict[_Key, FunctionProto] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    _missing: set[_Key] = field(default_factory=set)

    @property
    def overloads(self) -> bool:
        """Whether two functions of one op differ in their overloads."""
        return any(function.overload for function in self.found.values())

    def add(self, calls: Sequence[OpCall]) -> None:
        """Make the functions of those calls whose ops have bodies, and let the calls name them."""
        bare = set()
        functions: list[tuple[OpCall, FunctionProto]] = []
        for call in calls:
            if call.domain and not call.proto and bodies_of(call.node.op):
                function = self._of(call)
                if function is None:
                    bare.add((call.domain, call.op_type))
                else:
                    functions.append((call, function))
        for call, function in functions:
            if (call.domain, call.op_type) in bare and not function.overload:
                function.overload = "0"  # else nodes without a function would seem to call it
            call.overload, call.has_function = function.overload, True

    def _of(self, call: OpCall) -> FunctionProto | None:
        op = call.node.op
        types = tuple(value.type_text() if value is not None else "" for value in call.node.inputs)
        types = (*types, str(len(call.node.outputs)))  # a node may leave the last results out
        whole = (*types, *(value.data if value is not None else None for value in call.node.inputs))
        reason = ""
        for key, constant in (((op, types), False), ((op, whole), True)):
            if key in self.found:
                return self.found[key]
            if key in self._missing:
                continue
            for body in bodies_of(op):
                try:
                    self.found[key] = self._made(call, body, constant)
                except (Refused, CaffeforgeError) as error:
                    reason = _reason(error)
                else:
                    return self.found[key]
            self._missing.add(key)
        if reason:
            name = full_name(op)
            self.notes[f"{name} has no local function, {self.backend.name} cannot say it: {reason}"] = None
        return None

    def _made(self, call: OpCall, body: Callable[..., None], constant: bool) -> FunctionProto:
        """Return what the op's body builds; its constant operands count as such if `constant`."""
        op = call.node.op
        operands = _named(op.inputs, call.node.inputs, constant)
        results = [v for v in _named(op.outputs, call.node.outputs, False) if v is not None]
        builder = Builder("body", call.node.origin)
        body(builder, op, *_grouped(op.inputs, operands), *results)
        fed = [value for value in operands if value is not None]
        graph = Graph("body", fed, results, builder.nodes)
        fold_constants(graph)
        model = self._body(graph)
        taken = {name for node in model.proto().graph.node for name in (*node.input, *node.output)}
        names = [model.names[v] if v is not None and model.names[v] in taken else "" for v in operands]
        same = [f for f in self.found.values() if (f.domain, f.name) == (op.domain, op.op_type)]
        constants = [
            helper.make_node("Constant", [], [n], value=tensor(n, a.numpy(), a.dtype))
            for n, a in model.weights.items()
            if n not in names
        ]
        nodes = list(model.proto().graph.node)
        imports = [helper.make_opsetid("", self.backend.opset)]
        own = dict.fromkeys([op.domain, *(node.domain for node in nodes if node.domain)])
        return helper.make_function(
            op.domain,
            op.op_type,
            [name or f"unused_{index}" for index, name in enumerate(names)],
            [model.names[value] for value in model.outputs],
            [*constants, *nodes],
            [*imports, *(helper.make_opsetid(domain, VERSION) for domain in own)],
            [attribute.name for attribute, _ in op.fields()],
            overload=str(len(same)) if same else "",
        )

    def _body(self, graph: Graph) -> OnnxModel:
        from caffeforge.runtime.onnx_out.model import assemble
        from caffeforge.runtime.onnx_out.target import OnnxTarget, unread

        whole = replace(self.backend, allowed=None, constraints={}, types={}, casts={}, custom={})
        calls = legalized(graph, OnnxTarget(whole, unread(graph)))
        return assemble(graph, calls, self.backend.opset, "c")


def _reason(error: Refused | CaffeforgeError) -> str:
    if isinstance(error, Refused):
        return error.sentence
    refusals = error.document["refused"] if isinstance(error, LegalizeError) and error.document else ()
    return next((cause(refusal) for refusal in refusals), error.what)


def _named(formals: Sequence[Formal], values: Sequence[Value | None], constant: bool) -> list[Value | None]:
    """Return values of the same types under the names of the op's parts."""
    names = [formal.name for formal in formals if formal.option != "variadic"]
    rest = next((formal.name for formal in formals if formal.option == "variadic"), "value")
    listed = chain(names, (f"{rest}_{index}" for index in range(len(values))))
    return [
        None if value is None else Value(name, value.dtype, value.dims, value.data if constant else None)
        for name, value in zip(listed, values, strict=False)
    ]


def _grouped(formals: Sequence[Formal], values: Sequence[Value | None]) -> list[object]:
    """Return operands as a reference takes them: those that may be any number as one."""
    grouped: list[object] = []
    for index, formal in enumerate(formals):
        if formal.option == "variadic":
            return [*grouped, tuple(values[index:])]
        grouped.append(values[index] if index < len(values) else None)
    return grouped
