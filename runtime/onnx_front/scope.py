"""Which value a name of the file stands for, in a graph and in those around it."""

from __future__ import annotations

from collections.abc import Container, Mapping

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Value


class Scope:
    """Names of one graph or function.

    Args:
        opsets: the opsets that its nodes are of, by domain.
        prefix: what names of its nodes and values begin with in the hub; empty for the model's own graph.
        read: the names that its nodes, the graphs within them, and its outputs read.
        outer: the graph around it, whose names it can read; None for the model's own and for a function.
    """

    def __init__(
        self,
        values: Mapping[str, Value],
        opsets: Mapping[str, int],
        prefix: str,
        read: Container[str],
        outer: Scope | None = None,
    ) -> None:
        self._values = dict(values)
        self.opsets = dict(opsets)
        self.prefix = prefix
        self.is_read = read.__contains__
        self.outer = outer

    def find(self, name: str) -> Value | None:
        """Return the value of a name, None if there is none."""
        found = self._values.get(name)
        return self.outer.find(name) if found is None and self.outer is not None else found

    def read(self, name: str) -> Value:
        """Return the value of a name.

        Raises:
            FrontEndError: nothing has computed it.
        """
        found = self.find(name)
        if found is None:
            raise FrontEndError(
                f"it reads {name}, which no node before it computes",
                hint="the nodes of a model must stand in the order in which they are computed",
            )
        return found

    def set(self, name: str, value: Value) -> None:
        """Let a name stand for a value."""
        self._values[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self._values
