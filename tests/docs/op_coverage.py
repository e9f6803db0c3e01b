"""What becomes of the hub's ops on a backend, seen by trying: the examples of all rules are legalized for it.

``coverage.py`` of a backend says what its rules promise; this says what they and the lowerings that all
backends share come to: as how many layers of which types an op is written, and what is refused and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from caffeforge.generated import hub
from caffeforge.generated.hub import examples as shared
from caffeforge.generated.hub.caffe_ops import CUSTOM
from caffeforge.generated.hub.lowerings import IMPOSSIBLE
from caffeforge.generated.onnx import VERSIONS
from caffeforge.runtime import coverage
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.caffe_target import CaffeTarget
from caffeforge.runtime.coverage import Coverage, Entry, Example, Way
from caffeforge.runtime.emit import Call
from caffeforge.runtime.legalize import Legalizer, Target
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.target import OnnxTarget
from caffeforge.runtime.op import Op
from caffeforge.runtime.refusals import Refusal
from caffeforge.runtime.rule_tests import graph_of
from tests.docs.body_examples import EXAMPLES

Kind = Literal["direct", "conditional", "lowered", "refused"]
Cases = Mapping[str, Sequence[str]]  # by op, graphs of one node that show it


@dataclass(frozen=True)
class OpCoverage:
    """What becomes of one op.

    Attributes:
        op: its name.
        kind: ``direct`` if rules of the backend's own write it whatever its fields; ``conditional`` if they
            write some of it; ``lowered`` if other ops take its place; ``refused`` if none of its examples
            can be written.
        cost: the fewest and the most layers or nodes that one of its examples became; none if nothing
            became of any, or there is no example.
        layers: their types.
        conditions: what the backend's rules ask for, as sentences or expressions.
        refused: why some of its examples, or all, cannot be written.
        witnesses: what, not written here, was seen to compute what these layers do.
        unverified: those of `layers` of which no witness is named.
    """

    op: str
    kind: Kind
    cost: tuple[int, int] | None = None
    layers: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    witnesses: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it, without the name and what is empty."""
        said = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "op"}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in said.items() if v}


def cases_of(dialects: Iterable[Backend]) -> dict[str, list[str]]:
    """Return the examples of the hub's lowerings and of the rules of `dialects`, each once, by op."""
    found = [Example(*entry) for entry in shared.EXAMPLES]
    found += [e for backend in dialects for e in coverage.examples_of(backend) if e.refused is None]
    cases: dict[str, list[str]] = {}
    for example in found:
        if example.subject in all_ops() and example.text not in cases.setdefault(example.subject, []):
            cases[example.subject].append(example.text)
    return cases


def all_ops() -> dict[str, type[Op]]:
    """Return the ops of the hub by name: ONNX's, then those that only Caffe has, as ``caffe.Power``."""
    return {**hub.OPS, **{name: custom.op for name, custom in CUSTOM.items()}}


def op_coverage(backend: Backend | OnnxBackend, cases: Cases) -> list[OpCoverage]:
    """Return what becomes of each op of the hub."""
    if isinstance(backend, OnnxBackend):
        return [_of_onnx(backend, name, op, cases.get(name, ())) for name, op in all_ops().items()]
    covered = coverage.of(backend)
    return [_of_caffe(backend, covered, name, op, cases.get(name, ())) for name, op in all_ops().items()]


@dataclass(frozen=True)
class _Tried:
    """What became of the examples of an op: the layers or nodes of each that was written, and sentences."""

    written: tuple[Sequence[Call], ...]
    refused: tuple[str, ...]

    @property
    def cost(self) -> tuple[int, int] | None:
        counts = [len(calls) for calls in self.written]
        return (min(counts), max(counts)) if counts else None

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(call.kind for calls in self.written for call in calls))

    def kind(self, always: bool) -> Kind:
        """Return how the op is written; `always`, if its rule asks for nothing."""
        if not self.written:
            return "refused"
        own = [all(_own(call) for call in calls) for calls in self.written]
        if not any(own):
            return "lowered"
        return "direct" if always and all(own) and not self.refused else "conditional"


def _own(call: Call) -> bool:
    """Tell whether a rule of the backend's own wrote a layer or node, with no op in between."""
    return " > " not in call.rule and not call.rule.startswith("hub/")


def _of_caffe(
    backend: Backend, covered: Coverage, name: str, op: type[Op], cases: Sequence[str]
) -> OpCoverage:
    entry = covered.ops.get(name)
    tried = _try(cases, CaffeTarget(backend))
    if not cases and entry is None:
        return OpCoverage(name, "refused", refused=(IMPOSSIBLE.get(op, "no rule and no lowering"),))
    promised = coverage.kind(entry) if entry is not None else "lowered"
    layers = tried.layers or tuple(dict.fromkeys(layer for way in _ways(entry) for layer in way.layers))
    read = {layer: covered.layers[layer].witness for layer in layers if layer in covered.layers}
    return OpCoverage(
        name,
        tried.kind(promised == "direct") if cases else promised,
        tried.cost,
        layers,
        _conditions(entry) if entry is not None else (),
        tried.refused,
        tuple(dict.fromkeys(filter(None, read.values()))),
        tuple(layer for layer in layers if not read.get(layer)),
    )


def _ways(entry: Entry | None) -> tuple[Way, ...]:
    return entry.ways if entry is not None else ()


def _of_onnx(backend: OnnxBackend, name: str, op: type[Op], cases: Sequence[str]) -> OpCoverage:
    """Return what becomes of an op; without an example, whether the backend takes it by its name."""
    target = OnnxTarget(backend)
    if not cases and name in EXAMPLES:
        cases = [EXAMPLES[name]]
    if not cases:
        taken = op in backend.rules and (backend.allowed is None or name in backend.allowed)
        kind: Kind = "direct" if taken else "refused"
        return OpCoverage(name, kind, refused=() if taken else (_absent(backend, name),))
    tried = _try(cases, target)
    always = op in backend.rules and op not in backend.constraints
    return OpCoverage(name, tried.kind(always), tried.cost, tried.layers, refused=tried.refused)


def _absent(backend: OnnxBackend, name: str) -> str:
    versions = VERSIONS.get(name, ())
    if versions and versions[0] > backend.opset:
        return f"{name} came with opset {versions[0]}"
    if not versions:
        return f"{name} is no op of ONNX"
    return f"{backend.name} does not take {name}"


def _try(cases: Sequence[str], target: Target[Any]) -> _Tried:
    written: list[Sequence[Call]] = []
    refused: list[str] = []
    for text in cases:
        node = graph_of(text).nodes[-1]
        found = Legalizer(target, approximate=False).node(node, ())
        if isinstance(found, Refusal):
            refused.append(_sentence(found))
        else:
            written.append(found)
    return _Tried(tuple(written), tuple(dict.fromkeys(refused)))


def _sentence(refusal: Refusal) -> str:
    """Return why a node is refused, in one sentence: what stopped the last lowering that was tried."""
    while refusal.below:
        refusal = refusal.below[-1]
    if refusal.otherwise:
        return f"{refusal.node.op.op_type} is written for: {refusal.otherwise}"
    return f"{refusal.node.op.op_type}: {refusal.reasons[-1][1]}"


def _conditions(entry: Entry) -> tuple[str, ...]:
    """Return what a rule asks for: in the mapping's words where it has some, else its expressions."""
    if entry.otherwise:
        return (entry.otherwise,)
    found = [*entry.conditions, *(c for way in entry.ways if way.layers or way.hook for c in way.conditions)]
    return tuple(dict.fromkeys(c.expression for c in found))
