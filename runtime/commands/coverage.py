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
    parser.add_argument("backend", metavar="BACKEND", nargs="?", help=f"{BACKEND_HELP}; default: all")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the coverage of one backend or of all."""
    from caffeforge.runtime.backends import find, names

    found = [_summary(find(name)) for name in ([options.backend] if options.backend else names())]
    if options.json:
        import json

        print(json.dumps(found, indent=1))
    else:
        print("\n\n".join(map(_text, found)))


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
        "shared_lowerings": [name for name in LOWERINGS if name not in covered.ops],
        "ops_without_rule": [name for name in OPS if name not in covered.ops and name not in LOWERINGS],
        "layers": list(covered.layers),
        "unverified_layers": [name for name, entry in covered.layers.items() if not entry.witness],
        "layers_without_rule": list(covered.unread),
        "patterns": list(covered.patterns),
        "constraints": {name: len(found) for name, found in covered.constraints.items()},
        "hooks": sorted({way.hook for entry in entries for way in entry.ways if way.hook}),
        "dropped": [dropped._asdict() for dropped in covered.dropped],
    }


def _text(found: dict[str, Any]) -> str:
    name, ops = found["backend"], found["ops"]
    lines = [f"{name} writes {sum(map(len, ops.values()))} ops"]
    lines += [line for kind, words in KINDS.items() for line in _listed(words, ops[kind])]
    lines += _listed("by lowerings that all backends share", found["shared_lowerings"])
    lines += _listed("no rule", found["ops_without_rule"])
    lines += _listed("fused by patterns of its own", found["patterns"])
    lines += [f"{name} reads {len(found['layers'])} layer types"]
    lines += _listed("rule", found["layers"])
    lines += _listed("unverified: no witness is named", found["unverified_layers"])
    lines += _listed("no rule", found["layers_without_rule"])
    lines += _listed("constrained", list(found["constraints"]))
    lines += _listed("hooks", found["hooks"])
    lines += [f"  not inherited: {d['subject']} ({d['rule']}): {d['reason']}" for d in found["dropped"]]
    return "\n".join(lines)


def _listed(title: str, names: list[str]) -> list[str]:
    """Return a title and its names as lines; none if there are no names."""
    if not names:
        return []
    body = textwrap.wrap(", ".join(names), WIDTH, initial_indent="    ", subsequent_indent="    ")
    return [f"  {title} ({len(names)}):", *body]
