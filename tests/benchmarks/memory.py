"""MB of memory that an export, or ``torch.export`` alone, takes at most above the model.

Anonymous memory is counted, which no file backs: a mapped file is no memory that a process needs. The
first export of a process loads code, some 20 MB of PyTorch's own; a later one shows what a model takes.
"""

from __future__ import annotations

import ctypes
import gc
import json
import re
import shutil
import sys
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Final

import torch

from tests.benchmarks.networks import network

INTERVAL: Final = 0.001  # seconds between two samples


class Peak:
    """The most anonymous memory within a ``with`` block above that at its start, in bytes."""

    def __enter__(self) -> Peak:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what was freed must not pass for memory in use
        self.start = self.highest = anonymous()
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
            self.highest = max(self.highest, anonymous())


def anonymous() -> int:
    """Return the resident memory of this process that no file backs, in bytes."""
    found = re.search(r"^RssAnon:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError("this kernel does not tell RssAnon")
    return 1024 * int(found[1])


def main() -> None:
    """Print the MB of ``KIND NETWORK FOLDER MOMENT``.

    KIND is ``export`` or ``torch``, MOMENT ``first`` or ``later``.
    """
    kind, name, folder, moment = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]
    model, example = network(name)
    run = _export if kind == "export" else _torch_export
    made = folder / "made"
    if moment == "later":
        run(torch.nn.Conv2d(3, 3, 3).eval(), example, made / "small")
    with Peak() as peak:
        run(model, example, made / name)
    shutil.rmtree(made, ignore_errors=True)
    weights = sum(tensor.nbytes for tensor in model.state_dict().values())
    print(json.dumps({"memory": peak.bytes / 1e6, "weights": weights / 1e6}))


def _export(model: torch.nn.Module, example: tuple[torch.Tensor, ...], stem: Path) -> None:
    from caffeforge.generated.bvlc import export

    export(model, example, stem, verify=False)


def _torch_export(model: torch.nn.Module, example: tuple[torch.Tensor, ...], stem: Path) -> None:
    torch.export.export(model, example, strict=False)


if __name__ == "__main__":
    main()
