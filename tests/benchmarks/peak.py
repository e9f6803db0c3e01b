"""The most memory that a block of code takes, sampled by a thread."""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Final

INTERVAL: Final = 0.001  # seconds between two samples


class Peak:
    """The most memory within a ``with`` block above that at its start, in bytes.

    Args:
        used: tells how much is used now.
    """

    def __init__(self, used: Callable[[], int]) -> None:
        self._used = used

    def __enter__(self) -> Peak:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what was freed must not pass for memory in use
        self.start = self.highest = self._used()
        self._ended = Event()
        self._thread = Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def bytes(self) -> int:
        return self.highest - self.start

    def _sample(self) -> None:
        while not self._ended.wait(INTERVAL):
            self.highest = max(self.highest, self._used())


def anonymous() -> int:
    """Return the resident memory of this process that no file backs, in bytes."""
    return _status("RssAnon")


def resident() -> int:
    """Return the memory of this process, with the pages of mapped files that it has touched, in bytes."""
    return _status("VmRSS")


def _status(name: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"this kernel does not tell {name}")
    return 1024 * int(found[1])
