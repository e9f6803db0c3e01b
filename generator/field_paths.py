"""Which fields a rule for a layer type reads: those of messages by their paths, as ``shape.dim``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from caffeforge.generator.proto import ProtoField, ProtoSchema
from caffeforge.generator.source import Source, SourceError


def paths_read(
    names: Iterable[str], sources: Sequence[Source], fields: Sequence[ProtoField], schema: ProtoSchema
) -> list[str]:
    """Return what is read of the fields in `names`: a path where only parts of a message are, else a name.

    Args:
        names: the fields that a rule reads.
        sources: the rule's expressions and rewrites.
        fields: the layer type's parameter fields.
        schema: the messages that they hold.
    """
    known = {field.name: field for field in fields}
    parts: dict[str, list[str]] = {}
    for path in (path for source in sources for path in _paths(source, known, schema)):
        parts.setdefault(path.partition(".")[0], []).append(path)
    found: list[str] = []
    for name in names:
        paths = dict.fromkeys(parts.get(name, [name]))
        found += [name] if name in paths else paths
    return found


def field_at(path: str, fields: Iterable[ProtoField], schema: ProtoSchema) -> ProtoField | None:
    """Return the field that a path leads to, None if there is none."""
    first, _, rest = path.partition(".")
    field = next((f for f in fields if f.name == first), None)
    if field is None or not rest:
        return field
    return field_at(rest, schema.messages[field.type].fields, schema) if field.kind == "message" else None


def is_covered(path: str, known: Iterable[str]) -> bool:
    """Tell whether `known` paths hold a field, a message around it, or parts of it."""
    return any(f"{path}.".startswith(f"{one}.") or f"{one}.".startswith(f"{path}.") for one in known)


def _paths(source: Source, known: Mapping[str, ProtoField], schema: ProtoSchema) -> Iterator[str]:
    """Yield the path of each place where a source reads a message; to ask has() of it reads no part of it."""
    nodes = _nodes(source)
    above = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    for node in nodes:
        if not isinstance(node, ast.Name) or node.id not in known or known[node.id].kind != "message":
            continue
        field, path, place = known[node.id], node.id, above.get(id(node))
        while isinstance(place, ast.Attribute) and field.kind == "message" and field.label != "repeated":
            inner = schema.messages[field.type].field(place.attr)
            if inner is None:
                break
            field, path, place = inner, f"{path}.{place.attr}", above.get(id(place))
        asked = isinstance(place, ast.Call) and ast.unparse(place.func) == "has"
        if not (asked and field.kind == "message"):
            yield path


def _nodes(source: Source) -> list[ast.AST]:
    for parse in (source.expression, source.statements):
        try:
            tree = parse()
        except SourceError:
            continue
        return [node for part in (tree if isinstance(tree, list) else [tree]) for node in ast.walk(part)]
    return []
