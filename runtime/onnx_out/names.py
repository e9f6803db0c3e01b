"""Names of a model's values and nodes: as the source has them, or as C identifiers."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.graph import Value

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_out.emit import OpCall

STYLES: Final = ("path", "c")


class Names:
    """Gives each value a name that no other has, and each node one that no other node has.

    Args:
        style: ``path`` keeps names, as ``layer1.0.conv1``; ``c`` makes C identifiers of them, as ONNX's
            specification asks for.

    Raises:
        UsageError: there is no such style.
    """

    def __init__(self, style: str) -> None:
        if style not in STYLES:
            raise UsageError(f"names={style!r} is no style of names", hint=f"give {' or '.join(STYLES)}")
        self.style = style
        self._values: dict[Hashable, str] = {}
        self._nodes: dict[int, str] = {}
        self._taken: set[str] = set()
        self._taken_by_nodes: set[str] = set()

    def __getitem__(self, value: Value) -> str:
        return self._values[value]

    def of_node(self, call: OpCall) -> str:
        """Return the name of a node."""
        return self._nodes[id(call)]

    def word(self, text: str) -> str:
        """Return a text in the style of the names."""
        if self.style == "path":
            return text
        word = re.sub(r"\W", "_", text, flags=re.ASCII)
        return word if re.match(r"[A-Za-z_]", word) else f"_{word}"

    def keep(self, value: Value) -> None:
        """Give a value a name, if it has none yet: its own, or where that is taken one like it."""
        if value not in self._values:
            self._values[value] = _free(self.word(value.name), self._taken)

    def add_node(self, call: OpCall) -> None:
        """Give a node a name."""
        self._nodes[id(call)] = _free(self.word(call.name), self._taken_by_nodes)

    def fresh(self, text: str) -> str:
        """Return a name that no value has."""
        return _free(self.word(text), self._taken)


def _free(name: str, taken: set[str]) -> str:
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate)
    return candidate
