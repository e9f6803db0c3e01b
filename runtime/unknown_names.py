"""Every field and enum value of a prototxt that the dialect's schema does not have, with its place.

protobuf stops at the first one. A net of another dialect has many, which tell together what dialect it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final, NamedTuple

from caffeforge.runtime.errors import FileError

_TOKEN: Final = re.compile(
    r'(?P<text>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|#[^\n]*"
    r"|(?P<open>[{<\[])|(?P<close>[}>\]])|(?P<colon>:)"
    r"|(?P<word>-?[\w.]+(?:(?<=[\d.][eE])[+-]\d+)?)"
)
_LINES: Final = 8  # that one message lists


class UnknownName(FileError):
    """Something has a name that the dialect does not know.

    Attributes:
        key: equal for all places where the same name stands.
        near: a known name that looks like it, or empty.
    """

    def __init__(self, what: str, key: str, near: str, dialect: str, *, where: str = "") -> None:
        meant = f"did you mean {near}, or is" if near else "is"
        hint = f"{meant} the net written in another dialect than {dialect}? `caffeforge identify` tries all"
        super().__init__(what, where=where, hint=hint)
        self.key = key
        self.near = near
        self.dialect = dialect


class Unknown(NamedTuple):
    """One name that the schema does not have.

    Attributes:
        offset: where it stands in the text.
        layer: index of the layer in which it stands, -1 for the net itself.
        near: a name that the schema has and that looks like it, or empty.
    """

    offset: int
    layer: int
    what: str
    near: str


@dataclass
class _Frame:
    """One pair of braces or brackets.

    Attributes:
        kind: descriptor of the message inside; None where it is not known, and for scalars.
        field: descriptor of the field whose value is due or stands here.
        named: a field's name was the last thing that stood here.
    """

    kind: Any
    is_list: bool = False
    field: Any = None
    value_due: bool = False
    named: bool = False


def unknown_names(text: str, net: Any, layer_field: str) -> list[Unknown]:
    """Return what `text` names and the schema does not have, in order, up to where it is no prototxt.

    Args:
        text: a prototxt, well-formed or not.
        net: descriptor of NetParameter.
        layer_field: the field of `net` that holds the layers.
    """
    return list(_walk(text, net, layer_field))


def _walk(text: str, net: Any, layer_field: str) -> Iterator[Unknown]:
    stack, layer, braces = [_Frame(net)], -1, 0
    for token in _TOKEN.finditer(text):
        frame = stack[-1]
        if frame.named and (token["word"] or token["text"] or token["close"]):
            return  # neither colon nor brace behind a name: what comes is not what it seems
        frame.named = frame.named and not (token["colon"] or token["open"])
        if token["colon"]:
            frame.value_due = True
        elif token["open"]:
            inner = frame.field.message_type if frame.field is not None else None
            is_list = token["open"] == "["
            stack.append(_Frame(inner, is_list, frame.field if is_list else None))
            frame.value_due = False
            braces += not is_list
            if braces == 1 and not is_list and frame.field is not None and frame.field.name == layer_field:
                layer += 1
        elif token["close"]:
            if len(stack) > 1:
                braces -= not stack.pop().is_list
        elif token["word"] and (frame.value_due or frame.is_list):
            frame.value_due = False
            if (what := _unknown_value(frame.field, token["word"])) is not None:
                yield Unknown(token.start(), layer if len(stack) > 1 else -1, *what)
        elif token["word"]:
            frame.named = True
            frame.field = frame.kind.fields_by_name.get(token["word"]) if frame.kind is not None else None
            if frame.kind is not None and frame.field is None:
                near = near_name(token["word"], tuple(frame.kind.fields_by_name))
                fault = f'{_title(frame.kind)} has no field named "{token["word"]}"'
                if len(stack) > 1 and token["word"] == layer_field:
                    fault, near = f"{fault}: is a brace missing before it?", ""
                yield Unknown(token.start(), layer if len(stack) > 1 else -1, fault, near)
        elif token["text"]:
            frame.value_due = False


def _unknown_value(field: Any, word: str) -> tuple[str, str] | None:
    kind = field.enum_type if field is not None else None
    if kind is None or word in kind.values_by_name or word.lstrip("-").isdigit():
        return None
    return f"{_title(kind)} has no value named {word}", near_name(word, tuple(kind.values_by_name))


def _title(kind: Any) -> str:
    """Return the name of a message or enum without the package."""
    return str(kind.full_name).removeprefix(f"{kind.file.package}.")


@lru_cache(1024)
def near_name(name: str, known: tuple[str, ...]) -> str:
    """Return the known name that looks like `name`, or empty; an ending that all have does not count."""
    stems = {each.removesuffix("_param"): each for each in known}
    near = get_close_matches(name.removesuffix("_param"), stems, 1, 0.8)
    return stems[near[0]] if near else ""


def merged(problems: Sequence[FileError]) -> list[FileError]:
    """Return `problems` in the order of the text, one for each unknown name, with the lines of all."""
    found: dict[str, list[UnknownName]] = {}
    others: list[FileError] = []
    for problem in sorted(problems, key=_position):
        if isinstance(problem, UnknownName):
            found.setdefault(problem.key, []).append(problem)
        else:
            others.append(problem)
    several = len(found) + len(others) > 1
    result = [_as_one(same, several) for same in found.values()]
    return sorted([*others, *result], key=_position)


def _as_one(same: Sequence[UnknownName], several: bool) -> FileError:
    """Return one error for all places of a name; among `several` errors each says itself what is near."""
    first = same[0]
    what = f"{first.what} (did you mean {first.near}?)" if several and first.near else first.what
    lines = list(dict.fromkeys(str(_position(problem)[0]) for problem in same[1:]))
    if lines:
        more = f" and {len(lines) - _LINES} more" if len(lines) > _LINES else ""
        what += f"; also in line {', '.join(lines[:_LINES])}{more}"
    return UnknownName(what, first.key, "" if several else first.near, first.dialect, where=first.where)


def _position(problem: FileError) -> tuple[int, int]:
    """Return line and column of a problem, zeros where it has none."""
    found = re.search(r":(\d+):(\d+)$", problem.where)
    return (int(found[1]), int(found[2])) if found else (0, 0)
