"""Which value of one side is which of the other: by name, or by what both know of the model they come from.

Names tell only where both sides took them from the same source: PyTorch's exporter counts ``relu``,
``relu_1`` otherwise than tracing does. What both know is the module, the operator and the user's line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

from caffeforge.runtime.sides.side import Computed, Side

_CALL = re.compile(r"@\d+$")  # behind a module, of its second call and later ones
_COUNT = re.compile(r"_(\d+)$")  # the same, as PyTorch's older exporter writes it
_ALIKE = {"Flatten": "Reshape", "Squeeze": "Reshape", "Unsqueeze": "Reshape"}  # exporters choose among them

_Key = Callable[[Computed, str], Hashable | None]  # of a value and the call of a module that it comes from


@dataclass(frozen=True)
class Alignment:
    """Two sides lined up.

    Attributes:
        names: for values of the target the source's name of the same value; one that is not here has the
            same name in the source, if it is there at all.
        supposed: the source's names of values that are the same unless one of them was folded into another.
    """

    names: dict[str, str]
    supposed: frozenset[str]


def align(source: Side, target: Side, outputs: Mapping[str, str]) -> Alignment:
    """Line up the values of two sides.

    Args:
        source: whose names the values get.
        target: whose values are lined up.
        outputs: the target's name of each output of the source.
    """
    ours = [c for c in source.computed if c.value not in outputs]
    theirs = [c for c in target.computed if c.value not in outputs.values()]
    same_names = not source.naming or not target.naming or source.naming == target.naming
    shared = {c.value for c in theirs} & {c.value for c in source.computed} if same_names else set()
    pairs = _pairs([c for c in ours if c.value not in shared], [c for c in theirs if c.value not in shared])
    # What is called as another value of the source gets a name that the source does not have.
    taken = {c.value for c in source.computed} | outputs.keys()
    strangers = {c.value for c in theirs} & taken - pairs.keys() - shared
    names = {
        **{name: f"{name} of the target" for name in strangers},
        **pairs,
        **{theirs: ours for ours, theirs in outputs.items()},
    }
    return Alignment(names, frozenset(pairs.values()))


def _pairs(ours: Sequence[Computed], theirs: Sequence[Computed]) -> dict[str, str]:
    """Return the source's name for values of the target, the surest pairs first."""
    modules = any(c.origin.module for c in ours) and any(c.origin.module for c in theirs)
    left, right = _calls(ours, theirs), _calls(theirs, ours)
    pairs: dict[str, str] = {}

    def match(key: _Key, *, last: bool = False) -> None:
        mine = _grouped(ours, left, key, set(pairs.values()))
        yours = _grouped(theirs, right, key, pairs)
        for group in mine.keys() & yours.keys():
            if last:
                pairs[yours[group][-1]] = mine[group][-1]
            elif len(mine[group]) == len(yours[group]):
                pairs.update(zip(yours[group], mine[group], strict=True))

    if not modules:
        match(lambda c, call: (_kind(c), c.origin.source) if c.op and c.origin.source else None)
        return pairs
    match(lambda c, call: (_path(call), _kind(c), c.origin.source) if c.op and c.origin.source else None)
    match(lambda c, call: (call, _kind(c)) if c.op else None)
    match(lambda c, call: (_path(call), _kind(c)) if c.op else None)
    done = {left[name] for name in pairs.values()}
    match(lambda c, call: call if call and call not in done else None, last=True)
    return pairs


def _kind(computed: Computed) -> str:
    return _ALIKE.get(computed.op, computed.op)


def _grouped(
    computed: Sequence[Computed], calls: Mapping[str, str], key: _Key, taken: Collection[str]
) -> dict[Hashable, list[str]]:
    groups: dict[Hashable, list[str]] = {}
    for c in computed:
        group = key(c, calls[c.value])
        if group is not None and c.value not in taken:
            groups.setdefault(group, []).append(c.value)
    return groups


def _calls(computed: Sequence[Computed], others: Sequence[Computed]) -> dict[str, str]:
    """Return the call of a module that each value comes from, as ``relu`` and ``relu@1``.

    A path such as ``relu_1`` is a second call only if the other side has ``relu`` and no ``relu_1``.
    """
    there = {_path(c.origin.module) for c in others}
    found = {}
    for c in computed:
        module, count = c.origin.module, _COUNT.search(c.origin.module)
        second = count is not None and module not in there and module[: count.start()] in there
        found[c.value] = _COUNT.sub(r"@\1", module) if second else module
    return found


def _path(call: str) -> str:
    return _CALL.sub("", call)
