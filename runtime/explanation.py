"""The rules of one op or layer type in words: where each stands, when it holds, what it yields."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping

from caffeforge.generated import hub
from caffeforge.generated.hub.caffe_ops import CUSTOM
from caffeforge.generated.hub.coverage import FUSIONS, LOWERINGS
from caffeforge.generated.hub.lowerings import IMPOSSIBLE
from caffeforge.runtime import coverage
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.coverage import Coverage, Entry
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.op import CustomOp, Op, full_name, python_name
from caffeforge.runtime.rule_text import constraint_lines, entry_lines, indented, near_names, pattern_lines


def explain(backend: Backend, name: str) -> str:
    """Return all that is known of `name`, as an op and as a layer type; ``*`` and ``net:`` are constraints.

    Raises:
        UsageError: the hub has no such op, nor the backend such a layer type.
    """
    covered = coverage.of(backend)
    known = dict.fromkeys([*hub.OPS, *_custom(backend), *backend.layer_types])
    names = [name] if name in known else [other for other in known if other.lower() == name.lower()]
    parts = []
    if name in (coverage.ANY, coverage.NET) and covered.constraints.get(name):
        title = (
            f"whatever the layer of {backend.name}" if name == coverage.ANY else f"a net of {backend.name}"
        )
        parts.append("\n".join([title, *constraint_lines(name, covered.constraints[name])]))
    for found in names:
        if found in hub.OPS or found in _custom(backend):
            parts.append("\n".join(_op(backend, covered, found)))
        if found in backend.layer_types:
            parts.append("\n".join(_layer(backend, covered, found)))
    if not parts:
        near = near_names(name, known)
        listed = (
            f"see caffeforge coverage {backend.name}, and docs/ops.md for what PyTorch calls another name"
        )
        hint = f"did you mean {', '.join(near)}?" if near else listed
        raise UsageError(f"{name} is neither an op nor a layer type of {backend.name}", hint=hint)
    return "\n\n".join(parts)


def _custom(backend: Backend) -> Mapping[str, CustomOp]:
    """Return the ops that ONNX does not have: the hub's and the backend's."""
    return {**CUSTOM, **backend.custom}


def signature(op: type[Op]) -> str:
    """Return an op as rules use it: ``Conv(X, W, B?, kernel_shape: ints, group: int = 1, ...) -> Y``.

    Operands come first: ``B?`` may be absent, ``xs*`` is all that are left. Fields have a type, with a mark
    if they may be absent: ``axes: ints?``; ``...`` is a default that depends on other fields.
    """
    marks = {"single": "", "optional": "?", "variadic": "*"}
    operands = [f"{f.name}{marks[f.option]}" for f in op.inputs if not f.static]
    needed = {f.name for f in op.inputs if f.static and f.option == "single"}
    parameters = inspect.signature(op.__init__).parameters
    required, others = [], []
    for attribute in op.attributes:
        default = parameters[python_name(attribute.name)].default
        part = f"{attribute.name}: {attribute.kind}"
        if attribute.name in needed or default is inspect.Parameter.empty:
            required.append(part)
        elif inspect.get_annotations(op)[python_name(attribute.name)].endswith("| None"):
            others.append(f"{part}?")
        else:
            others.append(f"{part} = {'...' if default is None else repr(default)}")
    results = ", ".join(f"{f.name}{marks[f.option]}" for f in op.outputs)
    name = full_name(op)
    return f"{name}({', '.join([*operands, *required, *others])}) -> {results}"


def _op(backend: Backend, covered: Coverage, name: str) -> Iterator[str]:
    entry = covered.ops.get(name)
    yield signature(hub.OPS[name] if name in hub.OPS else _custom(backend)[name].op)
    if entry is not None:
        yield f"op {name}: {backend.name} writes it by the rule at {entry.rule}"
        yield from entry_lines(entry)
        yield from _witnesses(covered, entry)
        yield from _tested(backend, name)
    else:
        yield f"op {name}: {backend.name} has no rule for it"
        near = [other for other in near_names(name, covered.ops) if other != name]
        if near:
            yield f"  similar names with a rule: {', '.join(near)}"
        if name in hub.OPS and name not in LOWERINGS:
            reason = IMPOSSIBLE.get(hub.OPS[name], "nor is there a lowering that all backends share")
            yield f"  a model with it is refused: {reason}"
    if name in LOWERINGS:
        yield f"  lowering that all backends share, at {LOWERINGS[name].rule}"
        yield from indented(entry_lines(LOWERINGS[name]))
    custom = _custom(backend).get(name)
    if custom is not None and custom.torch:
        yield f"  stands for torch.ops.{custom.torch.replace('::', '.')}"
    if custom is not None and custom.reference is not None:
        yield "  can also be written by what its reference says"
    for title, patterns in (("shared by all", FUSIONS), (f"of {backend.name}", covered.patterns)):
        for pattern, text in patterns.items():
            if re.search(rf"(?<![\w.]){re.escape(name)}\(", text.rewrite):
                yield f"  pattern {pattern} ({title}) at {text.rule} makes it of"
                yield from pattern_lines(text)
    yield from _dropped(covered, name)
    yield from _constrained(covered, entry)


def _witnesses(covered: Coverage, entry: Entry) -> Iterator[str]:
    """Yield which of the layers that an op becomes compute what a witness was seen to compute."""
    layers = dict.fromkeys(layer for way in entry.ways for layer in way.layers)
    read = {layer: covered.layers[layer].witness for layer in layers if layer in covered.layers}
    for witness in dict.fromkeys(filter(None, read.values())):
        yield f"  verified by {witness}: {', '.join(layer for layer in read if read[layer] == witness)}"
    unverified = [layer for layer in layers if not read.get(layer)]
    if unverified:
        yield f"  unverified, no witness is named: {', '.join(unverified)}"


def _tested(backend: Backend, name: str) -> Iterator[str]:
    """Yield how many examples there are of a rule, and what runs them."""
    found = [e.refused is None for e in coverage.examples_of(backend) if e.subject == name]
    found += [e.refused is None for e in coverage.layer_examples_of(backend) if e.subject == name]
    if found:
        refused = f", {found.count(False)} of them of what is refused" if False in found else ""
        noun = "example" if len(found) == 1 else "examples"
        yield f"  {len(found)} {noun}{refused}: caffeforge test {backend.name} {name}"


def _layer(backend: Backend, covered: Coverage, name: str) -> Iterator[str]:
    entry = covered.layers.get(name)
    if entry is None:
        yield f"layer {name}: {backend.name} has no rule that says what it computes"
        if name in backend.net.training:
            yield "  where a net is read, it is left out: only training and testing need it"
        elif name in backend.net.data:
            yield "  it loads data and does not tell its shape: put an Input layer in its place"
        elif name in backend.net.untold:
            yield f"  {backend.net.untold[name]}"
    else:
        yield f"layer {name}: what it computes stands at {entry.rule}"
        yield f"  verified by {entry.witness}" if entry.witness else "  unverified: no witness is named"
        yield from entry_lines(entry)
        reader = backend.readers[name]
        if reader.reads:
            yield f"  reads {', '.join(reader.reads)}"
        if reader.ignores:
            yield f"  ignores {', '.join(reader.ignores)}"
        yield from _tested(backend, name)
    writers = [op for op, rule in covered.ops.items() if any(name in way.layers for way in rule.ways)]
    if writers:
        yield f"  written for {', '.join(writers)}"
    yield from _dropped(covered, name)
    yield from constraint_lines(name, covered.constraints.get(name, ()))


def _constrained(covered: Coverage, entry: Entry | None) -> Iterator[str]:
    """Yield the constraints on the layers that an op becomes."""
    layers = dict.fromkeys(layer for way in (entry.ways if entry else ()) for layer in way.layers)
    for layer in layers:
        yield from constraint_lines(layer, covered.constraints.get(layer, ()))


def _dropped(covered: Coverage, name: str) -> Iterator[str]:
    for dropped in covered.dropped:
        if dropped.subject == name:
            yield f"  not inherited: the rule at {dropped.rule}: {dropped.reason}"
