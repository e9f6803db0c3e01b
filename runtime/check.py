"""Whether a backend can take a model or a net, and all that it cannot, without writing anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.generated.hub.fusions import PATTERNS
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.constraints import all_refusals, any_refusals, net_refusals, refuse_net
from caffeforge.runtime.errors import GraphError, LegalizeError
from caffeforge.runtime.fold import fold_constants
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.graph import Graph, Value
from caffeforge.runtime.hub_from_net import NOT_COMPUTED, refuse_unread
from caffeforge.runtime.layer_meanings import with_ones
from caffeforge.runtime.legalize import directly, legalize
from caffeforge.runtime.lowering_notes import lowering_notes
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused, working_out
from caffeforge.runtime.unread_layers import no_rule

if TYPE_CHECKING:
    from caffeforge.runtime.source import Source

NET = "the net"


@dataclass(frozen=True)
class Finding:
    """One thing that the backend refuses.

    Attributes:
        where: the layer, or the node with its module and line.
        reason: the sentences, with the rules that say them.
    """

    where: str
    reason: str


@dataclass(frozen=True)
class CheckResult:
    """What a check found.

    Attributes:
        findings: all that is refused; empty if the backend takes the model.
        notes: what an export would change, one sentence each.
        refusal: the whole report of what an export would refuse, empty for a net.
        document: the same as JSON holds it.
        operations: how many operations a model has; 0 for a net.
        layers: how many layers or nodes an export would write; 0 if it is refused.
    """

    backend: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    refusal: str = ""
    document: Any = None
    operations: int = 0
    layers: int = 0

    @property
    def passed(self) -> bool:
        """Whether the backend takes all of it."""
        return not self.findings


def check_source(source: Source, backend: Backend | OnnxBackend, *, approximate: bool = False) -> CheckResult:
    """Return what an export of a traced or read model to `backend` would say, up to writing files."""
    graph = source.graph
    try:
        if isinstance(backend, OnnxBackend):
            from caffeforge.runtime.onnx_out.export import convert

            made, calls, fused = convert(graph, backend, approximate=approximate)
            return _taken(graph, backend.name, [*fused, *lowering_notes(calls)], len(made.calls))
        fold_constants(graph)
        fused = fuse(graph, (*backend.patterns, *PATTERNS), lambda node: directly(node, backend))
        layers = legalize(graph, backend, approximate=approximate)
        refuse_net(graph, backend)
        return _taken(graph, backend.name, [*fused, *lowering_notes(layers)], len(layers))
    except LegalizeError as error:
        refused = error.document.get("refused", [])
        findings = tuple(_finding(each) for each in refused)
        if isinstance(backend, Backend):
            findings += tuple(map(_of_net, net_refusals(graph.inputs, graph.outputs, backend)))
        found = findings or (Finding("", error.what),)
        said = [error.what, *(f.reason for f in findings if f.where == NET)] if refused else [error.what]
        return CheckResult(backend.name, found, refusal="\n".join(said), document=error.document)


def _taken(graph: Graph, backend: str, notes: list[str], layers: int) -> CheckResult:
    return CheckResult(backend, (), tuple(notes), operations=len(graph.nodes), layers=layers)


def _finding(refusal: dict[str, Any]) -> Finding:
    parts = [refusal["module"] or "the model", refusal["source"]]
    where = f"{refusal['node']} ({', '.join(part for part in parts if part)})"
    reasons = [
        f"{a['refused']} [{a['rule']}]" if a["rule"] else a["refused"] for a in refusal["alternatives"]
    ]
    return Finding(where, "; ".join([*reasons, *([refusal["hint"]] if refusal["hint"] else [])]))


def _of_net(refused: Refused) -> Finding:
    return Finding(NET, f"{refused.sentence} [{refused.rule}]")


def check_net(net: Net, backend: Backend, places: Mapping[str, str] | None = None) -> CheckResult:
    """Return what the rules and constraints of its own dialect refuse in a net.

    A layer that reads what a refused one computes is passed over: nothing is known of its bottoms.

    Args:
        net: with its weights, or without any: then all layers have as many as they need.
        backend: its dialect.
        places: where layers stand, by name: ``file:line:col``.
    """
    findings = tuple(_Walk(net, backend, places or {}).findings())
    return CheckResult(backend.name, findings, tuple(net.notes), layers=0 if findings else len(net.layers))


def check_transcoding(text: Path, weights: Path | None, source: Backend, target: Backend) -> CheckResult:
    """Return what writing a net of the dialect `source` in `target` would say."""
    from caffeforge.runtime.joining import join, read_text
    from caffeforge.runtime.transcode.layers import Layers

    prototxt = read_text(text, source)
    if weights is not None:
        join(prototxt, weights, source, compare=True)
    layers = Layers(prototxt, source, target)
    try:
        layers.run()
    except LegalizeError as error:
        _, *findings = error.what.splitlines()
        return CheckResult(target.name, tuple(Finding("", line) for line in findings), refusal=error.what)
    return CheckResult(target.name, (), tuple(layers.notes), layers=len(layers.blobs))


class _Walk:
    def __init__(self, net: Net, backend: Backend, places: Mapping[str, str]) -> None:
        self.net = net
        self.backend = backend
        self.places = places
        self.inputs = [name for name, _ in net.inputs]
        self.bare = not any(layer.blobs for layer in net.layers)
        self.values = {name: Value(name, "float32", shape) for name, shape in net.inputs}
        self.lost: set[str] = set()  # blobs of which nothing is known, as their layers are refused

    def findings(self) -> Iterator[Finding]:
        passed_over = 0
        for name, shape in self.net.inputs:
            if min(shape, default=0) < 0:
                yield Finding(f"input {name}", f"it has a size below 0: {list(shape)}")
        for layer in self.net.layers:
            missing = [name for name in layer.bottoms if name not in self.values]
            for name in missing:
                if name not in self.lost:
                    yield Finding(self._where(layer), f"bottom {name} {NOT_COMPUTED}")
            if not missing:
                yield from self._layer(layer)
            else:
                passed_over += all(name in self.lost for name in missing)
                for top in layer.tops:
                    self.values.pop(top, None)
            self.lost.update(top for top in layer.tops if top not in self.values)
        if passed_over:
            count = "1 layer" if passed_over == 1 else f"{passed_over} layers"
            yield Finding("", f"{count} behind these {'was' if passed_over == 1 else 'were'} not looked at")
        inputs, outputs = (self._held(names) for names in (self.inputs, self.net.outputs()))
        yield from map(_of_net, net_refusals(inputs, outputs, self.backend))

    def _held(self, names: Iterable[str]) -> list[Value]:
        """Return blobs as far as they are known: one that could not be worked out has no axes."""
        return [self.values.get(name, Value(name, "float32", ())) for name in names]

    def _where(self, layer: Layer) -> str:
        place = f"{self.places[layer.name]}: " if layer.name in self.places else ""
        return f"{place}layer {layer.name} ({layer.type})"

    def _layer(self, layer: Layer) -> Iterator[Finding]:
        where = self._where(layer)
        bottoms = [self.values[name] for name in layer.bottoms]
        try:
            layer = with_ones(layer, self.backend, bottoms) if self.bare else layer
        except Refused as refused:
            yield _of_layer(where, refused)
            for top in layer.tops:
                self.values.pop(top, None)
            return
        for found in all_refusals(layer, bottoms, self.backend):
            yield _of_layer(where, found)
        try:
            self._compute(layer, bottoms)
        except Refused as refused:
            yield _of_layer(where, refused)
        except GraphError as error:
            yield Finding(where, error.what)
        results = [self.values[top] for top in layer.tops if top in self.values]
        for found in any_refusals(layer, bottoms, results, self.backend):
            yield Finding(where, f"{found.sentence} [{found.rule}]")

    def _compute(self, layer: Layer, bottoms: list[Value]) -> None:
        """Note the shapes of a layer's tops; nothing is known of them if it is refused."""
        for top in layer.tops:
            self.values.pop(top, None)
        reader = self.backend.readers.get(layer.type)
        if reader is None:
            raise Refused(no_rule(layer.type, self.backend))
        refuse_unread(layer, reader)
        read = Read(layer, bottoms)
        with working_out(reader.rule):
            reader.function(read, layer.param)
            inputs = [Value("", "float32", shape) for shape in read.input_shapes]
            self.inputs += layer.tops if inputs else ()
            held = inputs or list(read.results())
        for top, value in zip(layer.tops, held, strict=False):
            self.values[top] = Value(top, value.dtype, value.dims, value.data)


def _of_layer(where: str, refused: Refused) -> Finding:
    return Finding(where, refused.sentence + (f" [{refused.rule}]" if refused.rule else ""))
