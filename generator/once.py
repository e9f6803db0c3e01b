"""Reads each text once for all backends of a run: what they share is most of what there is to read."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

from caffeforge.generator.diagnostics import Diagnostic, Diagnostics

Reading = TypeVar("Reading", bound=Callable[..., Any])
KEPT = 64  # results at most


def once(read: Reading) -> Reading:
    """Keep what a function of texts gives; its last argument takes the errors, each time anew.

    What it gives is shared and must not be changed.
    """

    @lru_cache(maxsize=KEPT)
    def kept(*texts: Hashable) -> tuple[Any, tuple[Diagnostic, ...]]:
        diagnostics = Diagnostics()
        return read(*texts, diagnostics), tuple(diagnostics.found)

    @wraps(read)
    def remembered(*args: Any) -> Any:
        *texts, diagnostics = args
        result, errors = kept(*texts)
        diagnostics.found += errors
        return result

    return cast(Reading, remembered)
