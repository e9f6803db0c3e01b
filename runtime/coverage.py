"""What a mapping says, as people read it: the types of a generated ``coverage.py`` and ``examples.py``.

Reports and the commands ``coverage`` and ``explain`` read it; nothing that converts a model does.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.message import LayerParam

ANY: Final = "*"  # constraints on every layer stand under this name,
NET: Final = "net:"  # those on a net as a whole under this

Kind = Literal["direct", "conditional", "lowered"]
Lets = tuple[tuple[str, str], ...]  # (name, expression)


class Condition(NamedTuple):
    """An expression that must hold; `sentence` says what is wrong where it does not, empty for ``when:``."""

    rule: str
    expression: str
    sentence: str = ""


class Way(NamedTuple):
    """One alternative of a rule: it yields layers, or other ops, or what a hook builds.

    Attributes:
        rule: where it stands, as ``bvlc/mapping.yaml:38``.
        layers: types of the layers, in order.
        rewrite: the text of a rewrite.
        hook: name of the function in ``runtime/hooks``.
        inputs: the shapes of a net's inputs, for a layer type that gives them.
        note: what reports say where it is taken.
        approximate: it is taken only where approximations are allowed.
        let: names that only this alternative has.
        conditions: those that the rule's other alternatives do not share.
        parts: those under which single layers of a list are written, in their order.
    """

    rule: str
    layers: tuple[str, ...] = ()
    rewrite: str = ""
    hook: str = ""
    inputs: str = ""
    note: str = ""
    approximate: bool = False
    let: Lets = ()
    conditions: tuple[Condition, ...] = ()
    parts: tuple[Condition, ...] = ()


class Entry(NamedTuple):
    """The rule of one op or layer type; `let` and `conditions` are those of all its alternatives.

    `witness` names what, not written here, was seen to compute what the rule of a layer says.
    """

    rule: str
    ways: tuple[Way, ...]
    otherwise: str = ""
    let: Lets = ()
    conditions: tuple[Condition, ...] = ()
    witness: str = ""


class PatternText(NamedTuple):
    """Several nodes that are one op: what is looked for, and what takes its place."""

    rule: str
    match: str
    rewrite: str
    let: Lets = ()
    conditions: tuple[Condition, ...] = ()


class Dropped(NamedTuple):
    """An inherited alternative that the schema cannot hold."""

    subject: str
    rule: str
    reason: str


@dataclass(frozen=True)
class Coverage:
    """All of a backend.

    Attributes:
        ops: hub ops that a rule writes.
        layers: layer types whose meaning a rule says.
        constraints: by layer type, what the chip refuses; under ANY, of any layer, under NET, of a net.
        patterns: those of this backend alone, by name.
        unread: layer types of the schema without a rule.
        dropped: what was inherited and does not fit.
        known: layer types known from other vendors, with the name of the meaning.
        open: layer types of which several meanings are known, with these.
        unknown: parameter fields of the schema that nobody knows.
        assumed: fields that the base does not know, with a default that is taken to change nothing.
    """

    ops: Mapping[str, Entry]
    layers: Mapping[str, Entry]
    constraints: Mapping[str, tuple[Condition, ...]]
    patterns: Mapping[str, PatternText]
    unread: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    known: tuple[tuple[str, str], ...] = ()
    open: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    assumed: tuple[tuple[str, str], ...] = ()


class Example(NamedTuple):
    """What ``example:`` or ``refused:`` of a rule says, as a graph.

    Attributes:
        subject: the op, or the pattern's name.
        rule: where it stands, as ``vendorx/mapping.yaml:31``.
        text: the graph, as ``notation.parse`` reads it.
        refused: None if the rule takes it; else where the condition stands that says no, empty if that
            is the rule as a whole.
    """

    subject: str
    rule: str
    text: str
    refused: str | None = None


class LayerExample(NamedTuple):
    """What ``example:`` or ``refused:`` of a layer's rule says.

    Attributes:
        subject: the layer type.
        rule: where its rule stands.
        text: the example as it is written.
        param: the layer's parameters.
        bottoms: the types of what it reads, as ``float32[1, 2, 7, 7]``.
        blobs: the types of its weights, as ``float32[3]``, or with elements ``int64[2] = [0, 1]``.
        tops: how many it has.
        refused: as that of `Example`.
    """

    subject: str
    rule: str
    text: str
    param: LayerParam
    bottoms: tuple[str, ...]
    blobs: tuple[str, ...]
    tops: int
    refused: str | None = None


class Untested(NamedTuple):
    """What has no example, by name: where its rule stands.

    Attributes:
        ops: rules without ``example:``.
        layers: layer types without ``example:`` that no op with one is written as.
        patterns: those without ``example:``.
    """

    ops: Mapping[str, str]
    layers: Mapping[str, str]
    patterns: Mapping[str, str]


def approximate(backend: Backend) -> dict[str, list[str]]:
    """Return the ops that are written ``only`` or ``partly`` where approximations are allowed."""
    from caffeforge.generated.hub.coverage import LOWERINGS

    found: dict[str, list[str]] = {"only": [], "partly": []}
    own = of(backend).ops
    for name in sorted({*own, *LOWERINGS}, key=str.lower):
        ways = [way for entries in (own, LOWERINGS) if name in entries for way in entries[name].ways]
        if any(way.approximate for way in ways):
            found["only" if all(way.approximate for way in ways) else "partly"].append(name)
    return found


def kind(entry: Entry) -> Kind:
    """Return how an op is written: by a layer always, by layers under conditions, or by other ops only."""
    direct = [way for way in entry.ways if way.layers or way.hook]
    if not direct:
        return "lowered"
    always = not entry.conditions and any(not way.conditions for way in direct)
    return "direct" if always else "conditional"


def of(backend: Backend) -> Coverage:
    """Return the coverage of a backend, which stands beside its other generated files.

    Raises:
        UsageError: there is none.
    """
    module = _table(backend, "coverage")
    beyond = [getattr(module, name, ()) for name in ("KNOWN", "OPEN", "UNKNOWN", "ASSUMED")]
    return Coverage(
        module.OPS, module.LAYERS, module.CONSTRAINTS, module.PATTERNS, module.UNREAD, module.DROPPED, *beyond
    )


def examples_of(backend: Backend) -> tuple[Example, ...]:
    """Return the examples of a backend's rules for ops and patterns, its own and those that it inherits.

    Raises:
        UsageError: there is no table of them.
    """
    table = _table(backend, "examples")
    refused = getattr(table, "REFUSED", ())  # a package of an older gen-backend has none
    return tuple(Example(*entry) for entry in (*table.EXAMPLES, *refused))


def layer_examples_of(backend: Backend) -> tuple[LayerExample, ...]:
    """Return the examples of a backend's rules for layers, and those that its constraints refuse.

    Raises:
        UsageError: there is no table of them.
    """
    found: tuple[LayerExample, ...] = getattr(_table(backend, "examples"), "LAYERS", ())
    return found


def without_example(backend: Backend) -> Untested:
    """Return what no example of a backend's rules puts to the test."""
    covered = of(backend)
    subjects = {example.subject for example in examples_of(backend) if example.refused is None}
    read = {example.subject for example in layer_examples_of(backend) if example.refused is None}
    ways = [way for name, entry in covered.ops.items() if name in subjects for way in entry.ways]
    tested = read | {layer for way in ways for layer in way.layers}
    return Untested(
        ops={name: entry.rule for name, entry in covered.ops.items() if name not in subjects},
        layers={name: entry.rule for name, entry in covered.layers.items() if name not in tested},
        patterns={name: text.rule for name, text in covered.patterns.items() if name not in subjects},
    )


def _table(backend: Backend, name: str) -> Any:
    """Return one module of a backend's generated package."""
    package = sys.modules[backend.descriptor.__module__].__package__
    try:
        return import_module(f".{name}", package)
    except ImportError:
        hint = "generate it with gen-backend"
        raise UsageError(f"the package of {backend.name} holds no {name}.py", hint=hint) from None
