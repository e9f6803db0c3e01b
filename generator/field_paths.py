"""Which fields a rule for a layer type reads: those of messages by their paths, as ``shape.dim``."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from caffeforge.generator.proto import ProtoField, ProtoSchema
from caffeforge.generator.source import Source, SourceError

PARAM = "param"  # all parameters of a layer: ``param.bottom`` is the field, where ``bottom`` is the tensor


def paths_read(
    names: Iterable[str],
    sources: Sequence[Source],
    fields: Sequence[ProtoField],
    schema: ProtoSchema,
    hidden: Collection[str] = (),
) -> list[str]:
    """Return what is read of the fields in `names`: a path where only parts of a message are, else a name.

    Args:
        names: the fields that a rule reads.
        sources: the rule's expressions and rewrites.
        fields: the layer type's parameter fields.
        schema: the messages that they hold.
        hidden: names that stand for something else than fields, unless behind ``param.``.
    """
    known = {field.name: field for field in fields}
    parts: dict[str, list[str]] = {}
    for path in (path for source in sources for path in _paths(source, known, schema, hidden)):
        parts.setdefault(path.partition(".")[0], []).append(path)
    found: list[str] = []
    for name in names:
        paths = dict.fromkeys(parts.get(name, [name]))
        found += [name] if name in paths else paths
    return found


def fields_of_param(sources: Iterable[Source]) -> set[str]:
    """Return the fields that are read as ``param.pad``, whether or not there are such."""
    told = (source for source in sources if PARAM in source.text)
    nodes = (node for source in told for node in _nodes(source) if isinstance(node, ast.Attribute))
    return {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == PARAM}


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


def _paths(
    source: Source, known: Mapping[str, ProtoField], schema: ProtoSchema, hidden: Collection[str]
) -> Iterator[str]:
    """Yield the path of each place where a source reads a message; to ask has() of it reads no part of it."""
    messages = (name for name, field in known.items() if field.kind == "message")
    if not any(name in source.text for name in (PARAM, *messages)):
        return  # as nearly all
    nodes = _nodes(source)
    above = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    for node in nodes:
        first, place = node.id if isinstance(node, ast.Name) else "", above.get(id(node))
        if first == PARAM and PARAM not in known and isinstance(place, ast.Attribute):
            first, place = place.attr, above.get(id(place))
        elif first in hidden:
            continue
        if first not in known or known[first].kind != "message":
            continue
        field, path = known[first], first
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
