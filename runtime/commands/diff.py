"""``caffeforge diff``: what an update of a vendor's schema changes, by name, by number and by meaning."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.runtime.commands import describe
from caffeforge.runtime.errors import CaffeforgeError, FileError

if TYPE_CHECKING:
    from caffeforge.generator.compatibility import Dropped
    from caffeforge.generator.schema_diff import Difference, Effect
    from caffeforge.runtime.commands import Commands

BREAKS = {"name": "prototxt", "number": "caffemodel", "meaning": "meaning"}
SHOWN = 12  # names of ops or layers in a line of text
SCHEMA_HELP = "caffe.proto in any form that gen-backend takes, its folder, or the name of a shipped backend"


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(commands, shared, "diff", "say what an update of a vendor's schema changes")
    parser.add_argument("old", metavar="OLD", help=SCHEMA_HELP)
    parser.add_argument("new", metavar="NEW", help="the same of the update")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    annotations = "print workflow commands, which hosted CI shows beside the lines of the schema"
    form.add_argument("--annotations", action="store_true", help=annotations)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print all changes.

    Raises:
        CaffeforgeError: files written for the old schema break, or rules of its backend are lost; the
            changes are printed all the same.
    """
    from caffeforge.generator.diagnostics import GenerationError
    from caffeforge.generator.schema_diff import compare

    try:
        found = compare(_schema(options.old), _schema(options.new))
    except GenerationError as error:
        raise FileError(str(error)) from error
    if options.json:
        print(json.dumps(_document(found), indent=1))
    else:
        print(_annotations(found) if options.annotations else _text(found))
    if found.is_breaking:
        raise CaffeforgeError(_breaking(found), where=found.new)


def _schema(name: str) -> Path:
    """Return the path that a name means: the path itself comes before a shipped backend."""
    from caffeforge.generator.schema_folder import SCHEMAS

    shipped = SCHEMAS / name
    return (
        shipped if not Path(name).exists() and shipped.parent == SCHEMAS and shipped.is_dir() else Path(name)
    )


def _breaking(found: Difference) -> str:
    parts = []
    if found.breaking:
        parts.append(f"{_count(len(found.breaking), 'change')} of {len(found.effects)} can break files")
    if found.lost:
        parts.append(f"{_count(len(found.lost), 'rule')} of the old backend cannot be kept")
    return " and ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _text(found: Difference) -> str:
    if not (found.effects or found.lost or found.gained):
        return f"{found.new} says the same of nets as {found.old}"
    kept = [effect for effect in found.effects if not effect.change.breaks]
    lines = [*_listed("can break files", found.breaking), *_listed("keep files as they are", kept)]
    lines += _rules("rules of the old backend that cannot be kept", found.lost)
    lines += _rules("rules that become possible", found.gained)
    return "\n".join(lines)


def _listed(title: str, effects: Any) -> list[str]:
    lines = [f"{_count(len(effects), 'change')} that {title}:"] if effects else []
    for effect in effects:
        change = effect.change
        lines.append(f"  {change.position}: {change.rule}: {change.subject}: {change.sentence}")
        notes = [f"breaks: {', '.join(BREAKS[part] for part in change.breaks)}"] if change.breaks else []
        notes += [f"ops: {_names(effect.ops)}"] if effect.ops else []
        notes += [f"layers: {_names(effect.layers)}"] if effect.layers else []
        lines += [f"      {'; '.join(notes)}"] if notes else []
    return lines


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _rules(title: str, dropped: tuple[Dropped, ...]) -> list[str]:
    return ([f"{title}:"] if dropped else []) + [f"  {d.subject} ({d.rule}): {d.reason}" for d in dropped]


def _document(found: Difference) -> dict[str, Any]:
    return {
        "old": found.old,
        "new": found.new,
        "breaking": found.is_breaking,
        "changes": [_effect(effect) for effect in found.effects],
        "rules_lost": [vars(dropped) for dropped in found.lost],
        "rules_gained": [vars(dropped) for dropped in found.gained],
    }


def _effect(effect: Effect) -> dict[str, Any]:
    change = effect.change
    return {
        "rule": change.rule,
        "subject": change.subject,
        "sentence": change.sentence,
        "file": change.position.file,
        "line": change.position.line,
        "column": change.position.column,
        "breaks": [BREAKS[part] for part in change.breaks],
        "ops": effect.ops,
        "layers": effect.layers,
    }


def _annotations(found: Difference) -> str:
    lines = []
    for effect in found.effects:
        change, at = effect.change, effect.change.position
        level = "error" if change.breaks else "notice"
        place = f"file={_escaped(at.file, ':,')},line={at.line},col={at.column},title={change.rule}"
        lines.append(f"::{level} {place}::{_escaped(f'{change.subject}: {change.sentence}')}")
    for lost in found.lost:
        sentence = f"{lost.subject} ({lost.rule}): {lost.reason}"
        lines.append(f"::error file={_escaped(found.new, ':,')},title=rule-lost::{_escaped(sentence)}")
    return "\n".join(lines)


def _escaped(text: str, more: str = "") -> str:
    """Return a text as a workflow command holds it: percent, line ends and its own marks by number."""
    for mark in ("%", "\r", "\n", *more):
        text = text.replace(mark, f"%{ord(mark):02X}")
    return text
