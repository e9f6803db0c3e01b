"""``caffeforge identify``: which dialects explain the files of a net, and why the others do not."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.runtime.commands import BACKEND_HELP, describe
from caffeforge.runtime.errors import FileError

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands
    from caffeforge.runtime.identify import Verdict

SHOWN = 5  # reasons in the text; JSON has all


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    what = "tell which dialects explain the files of a net, and why the others do not"
    parser = describe(commands, shared, "identify", what)
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help="a prototxt, a caffemodel, or both"
    )
    several = f"a dialect to try besides those that are installed: {BACKEND_HELP}"
    parser.add_argument("--backend", metavar="NAME|DIR", action="append", default=[], help=several)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print a verdict for each dialect.

    Raises:
        FileError: no dialect explains the files; the verdicts are printed all the same.
    """
    from caffeforge.runtime.backends import dialects, find
    from caffeforge.runtime.identify import identify

    found = identify(options.files, [*map(find, options.backend), *dialects()])
    if options.json:
        print(json.dumps([_document(verdict) for verdict in found], indent=1))
    else:
        print("\n".join(line for verdict in found for line in _text(verdict)))
    if not any(verdict.explains for verdict in found):
        files = " and ".join(path.name for path in options.files)
        hint = "give the vendor's own with --backend, or generate it from the vendor's caffe.proto"
        raise FileError(f"no dialect that is installed explains {files}", hint=hint)


def _text(verdict: Verdict) -> list[str]:
    name = verdict.backend.name
    if verdict.explains:
        same = [other for other, differences in verdict.differs_from.items() if not differences]
        said = f", and reads the same as {', '.join(same)}" if same else ""
        lines = [f"{name} explains the files{said}"]
        for other, differences in verdict.differs_from.items():
            lines += [f"  otherwise than {other}:"] if differences else []
            lines += _cut(differences)
        return lines
    if verdict.faults:
        return [f"{name} does not explain the files:", *_cut(verdict.faults)]
    return [f"{name} reads the files, and cannot tell what they mean:", *_cut(verdict.gaps)]


def _cut(reasons: tuple[str, ...]) -> list[str]:
    more = [f"    and {len(reasons) - SHOWN} more"] if len(reasons) > SHOWN else []
    return [f"    {reason}" for reason in reasons[:SHOWN]] + more


def _document(verdict: Verdict) -> dict[str, Any]:
    return {
        "backend": verdict.backend.name,
        "explains": verdict.explains,
        "faults": verdict.faults,
        "gaps": verdict.gaps,
        "differs_from": verdict.differs_from,
    }
