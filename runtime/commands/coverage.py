"""``caffeforge coverage``: which ops a backend can write, and which layer types it can read."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING, Any

from caffeforge.runtime.commands import BACKEND_HELP, describe

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands

KINDS = {"direct": "as layers", "conditional": "as layers under conditions", "lowered": "by other ops"}
WIDTH = 100


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(commands, shared, "coverage", "list what backends can write and read")
    parser.add_argument(
        "backend", metavar="BACKEND", nargs="?", help=f"{BACKEND_HELP}; default: all dialects"
    )
    rules = "list the rules without an example: what `caffeforge test` does not run"
    parser.add_argument("--rules", action="store_true", help=rules)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the coverage of one backend or of all."""
    from caffeforge.runtime.backends import find, find_any, names
    from caffeforge.runtime.onnx_out.backend import OnnxBackend

    wanted = [options.backend] if options.backend else names()
    backends: list[Any] = [find_any(name) for name in wanted]
    if options.rules:  # those of opsets have no examples: ONNX's node tests run them
        summary, text, backends = _rules, _rules_text, [find(name) for name in wanted]
    elif isinstance(backends[0], OnnxBackend):
        summary, text = _onnx_summary, _onnx_text
    else:
        summary, text = _summary, _text
    found = [summary(backend) for backend in backends]
    if options.json:
        import json

        print(json.dumps(found, indent=1))
    else:
        print("\n\n".join(map(text, found)))


def _summary(backend: Any) -> dict[str, Any]:
    """Return the coverage of one backend as plain data."""
    from caffeforge.generated.hub import OPS
    from caffeforge.generated.hub.coverage import LOWERINGS
    from caffeforge.runtime import coverage

    covered = coverage.of(backend)
    kinds = {name: coverage.kind(entry) for name, entry in covered.ops.items()}
    entries = [*covered.ops.values(), *covered.layers.values()]
    return {
        "backend": backend.name,
        "ops": {kind: [n for n, k in kinds.items() if k == kind] for kind in KINDS},
        "approximate": coverage.approximate(backend),
        "shared_lowerings": [name for name in LOWERINGS if name not in covered.ops],
        "ops_without_rule": [name for name in OPS if name not in covered.ops and name not in LOWERINGS],
        "layers": list(covered.layers),
        "unverified_layers": [name for name, entry in covered.layers.items() if not entry.witness],
        "layers_without_rule": list(covered.unread),
        "patterns": list(covered.patterns),
        "constraints": {name: len(found) for name, found in covered.constraints.items()},
        "hooks": sorted({way.hook for entry in entries for way in entry.ways if way.hook}),
        "dropped": [dropped._asdict() for dropped in covered.dropped],
        "known": dict(covered.known),
        "several_meanings": dict(covered.open),
        "unknown": list(covered.unknown),
        "assumed_neutral": dict(covered.assumed),
    }


def _text(found: dict[str, Any]) -> str:
    name, ops = found["backend"], found["ops"]
    lines = [f"{name} writes {sum(map(len, ops.values()))} ops"]
    lines += [line for kind, words in KINDS.items() for line in _listed(words, ops[kind])]
    lines += _listed("by lowerings that all backends share", found["shared_lowerings"])
    titles = {"only": "only by approximate=True", "partly": "in some cases only by approximate=True"}
    lines += [line for kind, names in found["approximate"].items() for line in _listed(titles[kind], names)]
    lines += _listed("no rule", found["ops_without_rule"])
    lines += _listed("fused by patterns of its own", found["patterns"])
    lines += [f"{name} reads {len(found['layers'])} layer types"]
    lines += _listed("rule", found["layers"])
    lines += _listed("unverified: no witness is named", found["unverified_layers"])
    lines += _listed("no rule", found["layers_without_rule"])
    lines += _listed("known from other vendors", [f"{k} ({v})" for k, v in found["known"].items()])
    lines += _listed(
        "of several known meanings", [f"{k} ({v})" for k, v in found["several_meanings"].items()]
    )
    lines += _listed("parameters that nobody knows", found["unknown"])
    lines += _listed("assumed neutral", [f"{k} = {v}" for k, v in found["assumed_neutral"].items()])
    lines += _listed("constrained", list(found["constraints"]))
    lines += _listed("hooks", found["hooks"])
    lines += [f"  not inherited: {d['subject']} ({d['rule']}): {d['reason']}" for d in found["dropped"]]
    return "\n".join(lines)


def _onnx_summary(backend: Any) -> dict[str, Any]:
    """Return the coverage of an opset, or of a vendor's part of one, as plain data."""
    from caffeforge.generated.hub import OPS
    from caffeforge.runtime import coverage
    from caffeforge.runtime.onnx_out import coverage as onnx_coverage

    covered = onnx_coverage.of(backend)
    kinds = {name: coverage.kind(entry) for name, entry in covered.ops.items()}
    shared = [name for name in onnx_coverage.lowerings(backend) if name not in covered.ops]
    defined = onnx_coverage.defined(backend)
    said = {*covered.ops, *shared, *defined}
    return {
        "backend": backend.name,
        "opset": backend.opset,
        "source": backend.source,
        "ops": {kind: [n for n, k in kinds.items() if k == kind] for kind in KINDS},
        "shared_lowerings": shared,
        "defined": defined,
        "ops_without_rule": [name for name in OPS if name not in said],
        "host": sorted(backend.host),
        "element_types": {name: list(types) for name, types in backend.types.items()},
        "constraints": {name: len(found) for name, found in covered.constraints.items()},
    }


def _onnx_text(found: dict[str, Any]) -> str:
    name, ops = found["backend"], found["ops"]
    lines = [f"{name} writes {sum(map(len, ops.values()))} ops in opset {found['opset']}"]
    lines += [f"  source: {found['source']}"] if found["source"] else []
    words = {kind: text.replace("layers", "nodes") for kind, text in KINDS.items()}
    lines += [line for kind, text in words.items() for line in _listed(text, ops[kind])]
    lines += _listed("by lowerings that all backends share", found["shared_lowerings"])
    lines += _listed("by ONNX's own definition", found["defined"])
    lines += _listed("no rule", found["ops_without_rule"])
    lines += _listed("left to the CPU", found["host"])
    lines += _listed("of some element types only", list(found["element_types"]))
    lines += _listed("constrained", list(found["constraints"]))
    return "\n".join(lines)


def _rules(backend: Any) -> dict[str, Any]:
    """Return which rules of a backend have an example, as plain data."""
    from caffeforge.runtime import coverage

    covered, untested = coverage.of(backend), coverage.without_example(backend)
    return {
        "backend": backend.name,
        "examples": len(coverage.examples_of(backend)),
        "rules": {key: len(getattr(covered, key)) for key in untested._fields},
        "without_example": untested._asdict(),
    }


def _rules_text(found: dict[str, Any]) -> str:
    counts = {key: (n, n - len(found["without_example"][key])) for key, n in found["rules"].items()}
    said = ", ".join(f"{tested} of {n} {key}" for key, (n, tested) in counts.items())
    lines = [f"{found['backend']}: {found['examples']} examples put to the test {said}"]
    for key, rules in found["without_example"].items():
        lines += [f"  {key} without an example ({len(rules)}):"] if rules else []
        lines += [f"    {name}  {rule}" for name, rule in rules.items()]
    return "\n".join(lines)


def _listed(title: str, names: list[str]) -> list[str]:
    """Return a title and its names as lines; none if there are no names."""
    if not names:
        return []
    body = textwrap.wrap(", ".join(names), WIDTH, initial_indent="    ", subsequent_indent="    ")
    return [f"  {title} ({len(names)}):", *body]
