"""Sizes that only a run tells: each op that brings one in has names of its own for them.

An op names such a size in its declaration, so two of one kind in a net would seem to find equally much.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from caffeforge.runtime.graph import Dim, Node, Value
from caffeforge.runtime.symbol import Symbol, names


def name_apart(nodes: Iterable[Node], inputs: Iterable[Value], taken: set[str]) -> None:
    """Rename the sizes that `nodes` bring in and that are `taken`, in all their results.

    Args:
        nodes: in order; they read `inputs` and each other's results.
        inputs: their sizes keep their names.
        taken: the names of all sizes so far; those of these nodes are added.
    """
    known = {name for value in inputs for dim in value.dims for name in names(dim)}
    renamed: dict[str, str] = {}
    for node in nodes:
        for value in node.outputs:
            for name in (name for dim in value.dims for name in names(dim)):
                if name not in known and name not in renamed:
                    renamed[name] = _free(name, taken)
                    taken.add(renamed[name])
            value.dims = tuple(_renamed(dim, renamed) for dim in value.dims)


def _free(name: str, taken: set[str]) -> str:
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name}_{count}"
    return free


def _renamed(dim: Dim, renamed: dict[str, str]) -> Dim:
    found = {name: renamed[name] for name in names(dim) if renamed.get(name, name) != name}
    if not found or isinstance(dim, int):
        return dim
    if dim.name in found:
        return Symbol(found[dim.name])
    return Symbol(re.sub(r"\w+", lambda match: found.get(match[0], match[0]), dim.name, flags=re.ASCII))
