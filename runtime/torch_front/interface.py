"""The inputs and outputs of a graph under the names that the user wants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from caffeforge.generated import hub
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.graph import Graph, Node, Origin, Value
from caffeforge.runtime.torch_front.naming import unused

_NAME: Final = re.compile(r"[A-Za-z_][\w./:-]*")
_PATTERN: Final = "a name starts with a letter or _ and goes on with letters, digits, and any of _ . / : -"


def checked_names(kind: str, names: Sequence[str], count: int) -> list[str]:
    """Return `names` if they can be the names of `count` inputs or outputs.

    Raises:
        UsageError: their number is another one, one is no name, or one is given twice.
    """
    if isinstance(names, str):
        raise UsageError(f"{kind}_names is one text", hint="give a list of names")
    if len(names) != count:
        raise UsageError(f"{len(names)} {kind}_names are given, the model has {count} {kind}s")
    for index, name in enumerate(names):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} in {kind}_names is no name", hint=_PATTERN)
        if name in names[:index]:
            raise UsageError(f"{name} stands twice in {kind}_names")
    return list(names)


def name_outputs(graph: Graph, names: Sequence[str] | None) -> None:
    """Give the outputs of `graph` their names, and each a node of its own.

    An output that is an input, or another output too, goes through Identity: what computes nothing else
    cannot be renamed or be written twice.

    Raises:
        UsageError: the names do not fit, see `checked_names`, or name another value of the graph.
    """
    wanted = None if names is None else checked_names("output", names, len(graph.outputs))
    for index, value in enumerate(graph.outputs):
        if value.producer is None or value in graph.outputs[:index]:
            graph.outputs[index] = _identity(graph, value)
    if wanted is None:
        return
    others = {value.name for value in graph.values() if value not in graph.outputs}
    for value, name in zip(graph.outputs, wanted, strict=True):
        if name in others:
            raise UsageError(f"output name {name} is the name of another value", hint="choose another one")
        value.name = name


def _identity(graph: Graph, value: Value) -> Value:
    taken = {other.name for other in graph.values()} | {node.name for node in graph.nodes}
    name = unused(f"{value.name}.identity", taken)
    result = Value(name, value.dtype, value.dims)
    origin = value.producer.origin if value.producer else Origin()
    graph.nodes.append(Node(name, hub.Identity(), [value], [result], origin))
    return result
