"""If and Loop: what is decided before the model runs is unrolled; what is not stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from onnx import GraphProto, NodeProto

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.onnx_front.call import Unconvertible
from caffeforge.runtime.onnx_front.kept import names_read
from caffeforge.runtime.onnx_front.scope import Scope

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_front.importer import Importer

CONTROL: Final = frozenset({"If", "Loop", "Scan"})

_ITERATIONS: Final = 256


class Control:
    """One node with inner graphs."""

    def __init__(self, importer: Importer, node: NodeProto, scope: Scope) -> None:
        self.importer = importer
        self.node = node
        self.scope = scope
        self.graphs = {a.name: a.g for a in node.attribute if a.HasField("g")}
        for name in ("then_branch", "else_branch") if node.op_type == "If" else ("body",):
            if name not in self.graphs:
                raise FrontEndError(f"{node.op_type} lacks the attribute {name}")

    def results(self, inputs: Sequence[Value | None]) -> list[Value]:
        """Return the node's results if it can be unrolled.

        Raises:
            Unconvertible: what it does is decided when the model runs.
        """
        if self.node.op_type == "If":
            return self._if(inputs[0])
        if self.node.op_type == "Loop":
            return self._loop(inputs)
        return self._scan(inputs)

    def _if(self, condition: Value | None) -> list[Value]:
        taken = _truth(condition)
        if taken is None:
            raise Unconvertible("its condition is computed when the model runs")
        return self._body(self.graphs["then_branch" if taken else "else_branch"], [], "")

    def _loop(self, inputs: Sequence[Value | None]) -> list[Value]:
        count, condition, *carried = inputs
        times = _number(count)
        going = True if condition is None else _truth(condition)
        if (count is not None and times is None) or going is None or (times is None and condition is None):
            raise Unconvertible("how often it runs is computed when the model runs")
        limit = _ITERATIONS if times is None else times
        if limit > _ITERATIONS:
            raise Unconvertible(f"it runs {limit} times, up to {_ITERATIONS} are unrolled")
        mark = len(self.importer.nodes)
        body = self.graphs["body"]
        states = [value for value in carried if value is not None]
        scans: list[list[Value]] = [[] for _ in body.output[1 + len(states) :]]
        done = 0
        while going and done < limit:
            heads = [constant("", Dense(np.array(done, np.int64))), constant("", Dense(np.array(True)))]
            found = self._body(body, [*heads, *states], f"{done}/")
            going = _truth(found[0])
            if going is None or (times is None and done == limit - 1):
                del self.importer.nodes[mark:]
                raise Unconvertible("when it ends is computed when the model runs")
            states = found[1 : 1 + len(states)]
            for scan, value in zip(scans, found[1 + len(states) :], strict=True):
                scan.append(value)
            done += 1
        read = [bool(name) and self.scope.is_read(name) for name in self.node.output[len(states) :]]
        if any(read) and not done:
            raise Unconvertible("it never runs, so that its results are empty")
        rows = zip(scans, read, strict=False)
        return [*states, *(self._stacked(scan) if used else _unread() for scan, used in rows)]

    def _scan(self, inputs: Sequence[Value | None]) -> list[Value]:
        if any(info.name == "" for info in self.graphs["body"].input) or self.scope.opsets.get("", 1) < 9:
            raise Unconvertible("Scan of opset 8 goes over a batch too")
        given = {a.name: list(a.ints) for a in self.node.attribute if a.ints}
        count = next(a.i for a in self.node.attribute if a.name == "num_scan_inputs")
        values = [value for value in inputs if value is not None]
        states, scanned = values[:-count], values[-count:]
        axes = given.get("scan_input_axes", [0] * count)
        (times,) = {scan.dims[axis] for scan, axis in zip(scanned, axes, strict=True)}
        if not isinstance(times, int) or not 0 < times <= _ITERATIONS:
            raise Unconvertible(f"it runs {times} times, 1 to {_ITERATIONS} are unrolled")
        reverse = given.get("scan_input_directions", [0] * count)
        body = self.graphs["body"]
        outputs: list[list[Value]] = [[] for _ in body.output[len(states) :]]
        for step in range(times):
            heads = [
                self._element(scan, axis, times - 1 - step if back else step)
                for scan, axis, back in zip(scanned, axes, reverse, strict=True)
            ]
            found = self._body(body, [*states, *heads], f"{step}/")
            states = found[: len(states)]
            for output, value in zip(outputs, found[len(states) :], strict=True):
                output.append(value)
        backwards = given.get("scan_output_directions", [0] * len(outputs))
        ends = given.get("scan_output_axes", [0] * len(outputs))
        rows = zip(outputs, ends, backwards, strict=True)
        return [*states, *(self._stacked(out[::-1] if back else out, axis) for out, axis, back in rows)]

    def _element(self, scan: Value, axis: int, index: int) -> Value:
        place = self.importer.named(constant("", Dense(np.array(index, np.int64))))
        return self.importer.apply(hub.Gather(axis=axis), [scan, place], 1)[0]

    def _stacked(self, values: Sequence[Value], axis: int = 0) -> Value:
        rows = [self.importer.apply(hub.Unsqueeze(axes=(axis,)), [value], 1)[0] for value in values]
        return self.importer.apply(hub.Concat(axis=axis), rows, 1)[0]

    def _body(self, graph: GraphProto, inputs: Sequence[Value], word: str) -> list[Value]:
        """Import an inner graph and return its outputs."""
        values = {info.name: value for info, value in zip(graph.input, inputs, strict=True)}
        read = names_read(graph.node, [value.name for value in graph.output])
        inner = Scope(values, self.scope.opsets, f"{self.importer.current}/{word}", read, self.scope)
        self.importer.initializers(graph, inner)
        self.importer.visit_all(graph.node, inner)
        return [inner.read(value.name) for value in graph.output]


def _unread() -> Value:
    """Return what stands for a result that nothing reads."""
    return Value("", "float32", ())


def _truth(value: Value | None) -> bool | None:
    if value is None or value.data is None or value.data.size != 1:
        return None
    return bool(value.data.numpy().reshape(-1)[0])


def _number(value: Value | None) -> int | None:
    if value is None or value.data is None or value.data.size != 1:
        return None
    return int(value.data.numpy().reshape(-1)[0])
