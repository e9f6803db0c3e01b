"""Patterns: several nodes that together are one op (fusions of the hub, ``patterns:`` of a mapping).

A pattern is data, generated from the notation of graphs. Names that occur twice must stand for the same
value; numbers match constants within a tolerance; a result that only the pattern's own nodes may read
keeps the pattern from matching where anything else reads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caffeforge.runtime.graph import Node, Value
from caffeforge.runtime.op import Op, python_name

TOLERANCE = 1e-5  # relative, for numbers that went through float32
COMMUTATIVE = frozenset(("Add", "Mul", "Max", "Min", "Sum", "And", "Or", "Xor", "Equal"))


@dataclass(frozen=True)
class Operand:
    """One operand of a pattern's node: a name, a number, or (both empty) an absent input.

    Attributes:
        optional: the name may stand for an absent input.
        variadic: the name stands for all operands that are left.
        constant: only a constant matches.
    """

    name: str = ""
    number: float | None = None
    optional: bool = False
    variadic: bool = False
    constant: bool = False


@dataclass(frozen=True)
class Capture:
    """An attribute that a pattern names instead of fixing it."""

    name: str


@dataclass(frozen=True)
class PatternNode:
    """One node of a pattern; a field that is not listed must have the op's default, an ellipsis any value."""

    op: type[Op]
    operands: tuple[Operand, ...]
    fields: Mapping[str, Any]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Pattern:
    """Nodes in order, the last of which yields what is replaced.

    Attributes:
        function: `function(b, **captures)` builds what stands for it in the Builder `b`, or raises Refused.
    """

    name: str
    rule: str
    nodes: tuple[PatternNode, ...]
    function: Callable[..., None]


@dataclass
class Match:
    """Where a pattern matches: what its names stand for, and the nodes it covers."""

    values: dict[str, Any] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)


def match(
    pattern: Pattern, root: Node, users: Mapping[Value, Sequence[Node]], outputs: set[Value]
) -> Match | None:
    """Return how `pattern` matches with `root` as its last node, or None.

    Args:
        pattern: what is looked for.
        root: the node that would be the last of the pattern's.
        users: for each value the nodes that read it.
        outputs: the graph's outputs, which no pattern may swallow.
    """
    inner = {name for node in pattern.nodes[:-1] for name in node.results}
    for found in _node(pattern, len(pattern.nodes) - 1, root, Match()):
        covered = set(map(id, found.nodes))
        swallowed = [found.values[name] for name in inner if name in found.values]
        if len(covered) == len(pattern.nodes) and not any(
            value in outputs or any(id(user) not in covered for user in users[value]) for value in swallowed
        ):
            return found
    return None


def _node(pattern: Pattern, index: int, node: Node, found: Match) -> Iterator[Match]:
    """Yield the ways in which a pattern's node, and all that it reads, matches `node`."""
    wanted = pattern.nodes[index]
    if type(node.op) is not wanted.op or len(node.outputs) < len(wanted.results):
        return
    start = Match(dict(found.values), [*found.nodes, node])
    if not _fields(wanted, node.op, start.values):
        return
    for name, value in zip(wanted.results, node.outputs, strict=False):
        if start.values.setdefault(name, value) is not value:
            return
    for operands in _orders(node):
        yield from _operands(pattern, wanted.operands, operands, start)


def _orders(node: Node) -> Iterator[list[Value | None]]:
    yield node.inputs
    if node.op.op_type in COMMUTATIVE and not node.op.domain and len(node.inputs) == 2:
        yield node.inputs[::-1]


def _operands(
    pattern: Pattern, wanted: Sequence[Operand], given: Sequence[Value | None], found: Match
) -> Iterator[Match]:
    if not wanted:
        if not any(value is not None for value in given):
            yield found
        return
    first = wanted[0]
    if first.variadic:
        if found.values.setdefault(first.name, tuple(given)) == tuple(given):
            yield found
        return
    value = given[0] if given else None
    for way in _operand(pattern, first, value, found):
        yield from _operands(pattern, wanted[1:], given[1:], way)


def _operand(pattern: Pattern, wanted: Operand, value: Value | None, found: Match) -> Iterator[Match]:
    if wanted.number is not None:
        if value is not None and _is_number(value, wanted.number):
            yield found
        return
    if value is None:
        if not wanted.name or (wanted.optional and found.values.get(wanted.name) is None):
            yield Match(found.values | ({wanted.name: None} if wanted.name else {}), found.nodes)
        return
    if not wanted.name or (wanted.constant and value.data is None):
        return
    if wanted.name in found.values:
        if _same(found.values[wanted.name], value):
            yield found
        return
    index = next((i for i, n in enumerate(pattern.nodes) if wanted.name in n.results), None)
    if index is None:
        yield Match(found.values | {wanted.name: value}, found.nodes)
    elif value.producer is not None:
        place = next(i for i, result in enumerate(value.producer.outputs) if result is value)
        # The producer may be another op, of more results than the pattern's has.
        if pattern.nodes[index].results[place : place + 1] == (wanted.name,):
            yield from _node(pattern, index, value.producer, found)


def _fields(wanted: PatternNode, op: Op, values: dict[str, Any]) -> bool:
    for attribute in op.attributes:
        given = getattr(op, python_name(attribute.name))
        expected = wanted.fields.get(attribute.name)
        if expected is ...:
            continue
        if isinstance(expected, Capture):
            if not _equal(values.setdefault(expected.name, given), given):
                return False
        elif not _equal(expected, given):
            return False
    return True


def _equal(expected: Any, given: Any) -> bool:
    if isinstance(expected, tuple) and isinstance(given, tuple):
        return len(expected) == len(given) and all(map(_equal, expected, given))
    if isinstance(expected, float) and isinstance(given, (int, float)):
        return math.isclose(expected, given, rel_tol=TOLERANCE)
    return bool(expected == given)


def _same(one: Any, other: Value) -> bool:
    """Tell whether a name stands for the same value twice: itself, or constants with equal elements."""
    if one is other:
        return True
    if not isinstance(one, Value) or one.data is None or other.data is None or one.dims != other.dims:
        return False
    return one.data is other.data or bool((one.data.numpy() == other.data.numpy()).all())


def _is_number(value: Value, number: float) -> bool:
    if value.data is None or value.data.size != 1:
        return False
    return math.isclose(float(value.data.numpy().reshape(-1)[0]), number, rel_tol=TOLERANCE, abs_tol=1e-12)
