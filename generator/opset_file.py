"""Reads the description of an opset, ``opset.json``: what is missing or of another form is reported.

JSON is read by ``json``, which is fast and gives no places; only if something is wrong is it read once more
as YAML, which it is too, for the line and column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from caffeforge.generator import yaml_source
from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.python_text import is_name
from caffeforge.generator.yaml_source import Mapping, Node, Sequence

KINDS = {
    "INT": "int",
    "INTS": "ints",
    "FLOAT": "float",
    "FLOATS": "floats",
    "STRING": "string",
    "STRINGS": "strings",
    "TENSOR": "tensor",
    "SPARSE_TENSOR": "tensor",
    "GRAPH": "graph",
    "TYPE_PROTO": "type",
}
DEFAULTS: dict[str, tuple[type, ...]] = {"INT": (int,), "FLOAT": (int, float), "STRING": (str,)}
OPTIONS = ("Single", "Optional", "Variadic")
OP_KEYS = {
    "since": int,
    "inputs": list,
    "outputs": list,
    "types": dict,
    "attributes": dict,
    "deprecated": bool,
}
WORDS = {int: "a number", list: "a list", dict: "an object", bool: "true or false", str: "a string"}

Path = tuple[str | int, ...]


def read(text: str, file: str, diagnostics: Diagnostics) -> dict[str, Any] | None:
    """Return the description, None if it is at fault."""
    reader = _Reader()
    try:
        described = json.loads(text, object_pairs_hook=reader.object)
    except json.JSONDecodeError as error:
        position = Position(file, error.lineno, error.colno)
        diagnostics.error("opset-syntax", position, f"not valid JSON: {error.msg}")
        return None
    except (RecursionError, ValueError) as error:
        diagnostics.error("opset-syntax", Position(file), f"not valid JSON: {error}")
        return None
    reader.check(described)
    if not reader.faults and not reader.twice:
        return described if isinstance(described, dict) else None
    reader.report(text, file, diagnostics)
    return None


@dataclass
class _Reader:
    """Collects what is wrong, by the path to it."""

    faults: list[tuple[Path, str]] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            self.twice.append(next(key for key in keys if keys.count(key) > 1))
        return found

    def check(self, described: Any) -> None:
        top = self._object((), described, {"opset": int, "ops": dict})
        for name, op in top.get("ops", {}).items():
            self._name(("ops", name), name)
            self._op(("ops", name), op)

    def _op(self, path: Path, given: Any) -> None:
        op = self._object(path, given, OP_KEYS)
        taken: set[str] = set()
        for side in ("inputs", "outputs"):
            names: set[str] = set()
            for index, formal in enumerate(op.get(side, ())):
                self._formal((*path, side, index), formal, names)
            taken |= names
        for name, options in op.get("types", {}).items():
            strings = isinstance(options, list) and all(isinstance(option, str) for option in options)
            if not strings or not options:
                self.faults.append(((*path, "types", name), "a list of types is expected here"))
        for name, attribute in op.get("attributes", {}).items():
            self._name((*path, "attributes", name), name)
            self._attribute((*path, "attributes", name), attribute)

    def _formal(self, path: Path, given: Any, names: set[str]) -> None:
        formal = self._object(path, given, {"name": str, "type": str, "option": str})
        name = formal.get("name", "_")
        self._name((*path, "name"), name)
        if name in names:
            self.faults.append(((*path, "name"), f"{name} is the name of two"))
        names.add(name)
        if formal.get("option", "Single") not in OPTIONS:
            self.faults.append(((*path, "option"), f"one of {', '.join(OPTIONS)} is expected here"))

    def _attribute(self, path: Path, given: Any) -> None:
        attribute = self._object(path, given, {"type": str})
        kind, default = attribute.get("type", "INT"), attribute.get("default")
        if kind not in KINDS:
            self.faults.append(((*path, "type"), f"{kind!r} is no type: {', '.join(KINDS)} are"))
        elif default is not None:
            held = DEFAULTS.get(kind.removesuffix("S"), ())
            several = kind.endswith("S")
            items = default if several and isinstance(default, list) else [default]
            fits = all(isinstance(item, held) and not isinstance(item, bool) for item in items)
            if not fits or several != isinstance(default, list):
                self.faults.append(((*path, "default"), f"the default is no {kind}"))
        if not isinstance(attribute.get("required", False), bool):
            self.faults.append(((*path, "required"), "true or false is expected here"))

    def _object(self, path: Path, given: Any, keys: dict[str, type]) -> dict[str, Any]:
        """Return those of `keys` that an object has, of the types that are due."""
        if not isinstance(given, dict):
            self.faults.append((path, "an object is expected here"))
            return {}
        found = dict(given)
        for key, kind in keys.items():
            value = given.get(key)
            if key not in given:
                self.faults.append((path, f"the key {key!r} is missing"))
            elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                self.faults.append(((*path, key), f"{WORDS[kind]} is expected here"))
                del found[key]
        return found

    def _name(self, path: Path, name: str) -> None:
        if not is_name(name):
            self.faults.append((path, f"{name!r} is no name"))

    def report(self, text: str, file: str, diagnostics: Diagnostics) -> None:
        silent = Diagnostics()
        root = yaml_source.load(text, file, silent)
        found = [d for d in silent.found if d.id == "yaml-duplicate"]
        diagnostics.found += found
        for path, sentence in self.faults:
            position = _place(root, path) if root is not None else Position(file, 1, 1)
            diagnostics.error("opset-form", position, f"{'.'.join(map(str, path)) or 'the file'}: {sentence}")
        if self.twice and not found:
            diagnostics.error("opset-form", Position(file), f"the key {self.twice[0]!r} stands there twice")


def _place(root: Node, path: Path) -> Position:
    """Return the place of what a path leads to, or of as much of it as there is."""
    *_, last = _along(root, path)
    return last.position


def _along(node: Node, path: Path) -> Iterator[Node]:
    yield node
    for step in path:
        if isinstance(node, Sequence) and isinstance(step, int):
            node = node.items[step]
        elif isinstance(node, Mapping):
            node = node.get(str(step)) or node
        yield node
