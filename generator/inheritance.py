"""``extends:``: one mapping laid over another, before either is read.

An entry replaces the inherited one of the same name; null removes it. With ``amend: true`` it is merged
key by key, ``prepend:`` and ``append:`` add alternatives. Positions stay those of the file a node is from.
"""

from __future__ import annotations

from collections.abc import Iterable

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence

SECTIONS = ("types", "ops", "layers", "constraints", "custom", "use", "net", "patterns")  # by entry
SPECIAL = ("amend", "prepend", "append")
SHARED = (
    "let",
    "require",
    "otherwise",
    "ignore",
    "any_of",
    "example",
    "refused",
    "witness",
    "before",
)  # stay outside of alternatives


def extend(base: Mapping, child: Mapping, diagnostics: Diagnostics) -> Mapping:
    """Return `child` laid over `base`, as one mapping without ``extends:``."""
    entries: list[tuple[Scalar, Node]] = []
    for key, node in child.entries:
        if key.text == "extends":
            continue
        inherited = base.get(key.text)
        if key.text in SECTIONS and isinstance(inherited, Mapping) and isinstance(node, Mapping):
            node = _section(inherited, node, diagnostics)
        entries.append((key, node))
    given = set(child.keys())
    kept = [(key, node) for key, node in base.entries if key.text not in given and key.text != "backend"]
    return Mapping((*entries, *kept), child.position)


def _section(base: Mapping, child: Mapping, diagnostics: Diagnostics) -> Mapping:
    """Return a section with the child's entries in the places of those they replace."""
    own = {key.text: (key, node) for key, node in child.entries}
    entries: list[tuple[Scalar, Node]] = []
    for key, node in base.entries:
        if key.text not in own:
            entries.append((key, node))
            continue
        new_key, new = own.pop(key.text)
        if not _is_null(new):
            entries.append((new_key, _entry(node, new, diagnostics)))
    for key, node in own.values():
        if _is_null(node) or (isinstance(node, Mapping) and any(node.get(w) is not None for w in SPECIAL)):
            hint = "" if _is_null(node) else "without amend:, prepend: and append: it is an entry of its own"
            _nothing(key, hint, diagnostics)
        else:
            entries.append((key, node))
    return Mapping(tuple(entries), child.position)


def _nothing(key: Scalar, hint: str, diagnostics: Diagnostics) -> None:
    sentence = f"nothing named {key.text!r} is inherited here"
    diagnostics.error("amend-nothing", key.position, sentence, hint)


def _entry(base: Node, child: Node, diagnostics: Diagnostics) -> Node:
    if not isinstance(child, Mapping) or not any(child.get(word) is not None for word in SPECIAL):
        return child
    if not isinstance(base, Mapping):
        diagnostics.error("amend-nothing", child.position, "what is inherited here has no keys to amend")
        return child
    rest = Mapping(tuple((k, n) for k, n in child.entries if k.text not in SPECIAL), child.position)
    _check_amend(child, rest, diagnostics)
    # What was seen of the base's rule says nothing of another one.
    base = Mapping(tuple((k, n) for k, n in base.entries if k.text != "witness"), base.position)
    merged = merge(base, rest, diagnostics)
    before, after = child.get("prepend"), child.get("append")
    if before is None and after is None:
        return merged
    return with_alternatives(merged, _items(before, diagnostics), _items(after, diagnostics))


def _check_amend(child: Mapping, rest: Mapping, diagnostics: Diagnostics) -> None:
    amend = child.get("amend")
    if not rest.entries and child.get("prepend") is None and child.get("append") is None:
        diagnostics.error("no-effect", child.position, "amend: changes nothing: no other key stands here")
    if amend is not None and not (isinstance(amend, Scalar) and amend.text == "true"):
        diagnostics.error("amend-value", amend.position, "amend: is true, or is left out")


def merge(base: Mapping, child: Mapping, diagnostics: Diagnostics) -> Mapping:
    """Return `base` with the keys of `child` merged in, mappings recursively; null deletes a key."""
    own = dict((key.text, (key, node)) for key, node in child.entries)
    entries: list[tuple[Scalar, Node]] = []
    for key, node in base.entries:
        if key.text not in own:
            entries.append((key, node))
            continue
        new_key, new = own.pop(key.text)
        if isinstance(node, Mapping) and isinstance(new, Mapping):
            entries.append((key, merge(node, new, diagnostics)))
        elif not _is_null(new):
            entries.append((new_key, new))
    for key, node in own.values():
        if _is_null(node):
            _nothing(key, "", diagnostics)
        else:
            entries.append((key, node))
    return Mapping(tuple(entries), child.position if child.entries else base.position)


def with_alternatives(entry: Mapping, before: Iterable[Node], after: Iterable[Node]) -> Mapping:
    """Return a rule with alternatives added; a rule that had one way only becomes a list of ways."""
    listed = entry.get("any_of")
    if isinstance(listed, Sequence):
        own, rest = list(listed.items), [(k, n) for k, n in entry.entries if k.text != "any_of"]
    else:
        body = tuple((k, n) for k, n in entry.entries if k.text not in SHARED)
        own = [Mapping(body, entry.position)]
        rest = [(k, n) for k, n in entry.entries if k.text in SHARED]
    items = (*before, *own, *after)
    key = Scalar("any_of", entry.position)
    return Mapping((*rest, (key, Sequence(items, entry.position))), entry.position)


def _items(node: Node | None, diagnostics: Diagnostics) -> Iterable[Node]:
    if node is None:
        return ()
    if isinstance(node, Sequence) and node.items:
        return node.items
    diagnostics.error("amend-list", node.position, "prepend: and append: are lists of alternatives")
    return ()


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.is_null
