"""Python's collector of cycles, kept from looking over a growing graph again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Build many objects without a collection: each would look at all of them, so time would grow faster.

    What is built stays in use, so there is nothing to collect; memory is counted as ever.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
