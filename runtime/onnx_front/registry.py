"""The table of conversions: ops whose meaning changed, or of which the hub resolves parts at entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_front.call import Call

# Takes a call and returns the node's results, in order.
Conversion = Callable[[Call], Sequence[Value]]

CONVERSIONS: Final[dict[str, Conversion]] = {}


def converts(*op_types: str) -> Callable[[Conversion], Conversion]:
    """Register the decorated function for all versions of some operators."""

    def register(function: Conversion) -> Conversion:
        for op_type in op_types:
            if op_type in CONVERSIONS:
                raise ValueError(f"{op_type} is converted twice")
            CONVERSIONS[op_type] = function
        return function

    return register
