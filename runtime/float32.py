"""Proto's ``float`` as people write it: 0.1, not the 0.10000000149011612 that a float32 of it is."""

from __future__ import annotations

import numpy as np


def float32_text(value: float) -> str:
    """Return the shortest text that reads as the same float32; whole numbers without a point."""
    single = np.float32(value)
    if single.is_integer() and abs(single) < 2**24:
        return f"{single:.0f}"
    return str(single)


def shortest(value: float) -> float:
    """Return the double with the fewest digits that is the same float32."""
    return float(float32_text(value))
