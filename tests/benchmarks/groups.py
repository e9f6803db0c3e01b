"""What is measured: each group starts fresh processes in turn and yields results.

Things to be compared run alternately, and in the other order every second time: a machine that grows
slower, or memory that the one before has warmed, favours none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.networks import NETWORKS
from tests.benchmarks.process import ROOT, measured, seconds
from tests.benchmarks.result import Result


@dataclass(frozen=True)
class Bench:
    """How to measure.

    Attributes:
        folder: holds the files of all NETWORKS; on the disk that is measured.
        repeat: so many processes for each measurement.
    """

    folder: Path
    repeat: int

    def alternate(self, module: str, kinds: Sequence[str], name: str, key: str) -> list[list[float]]:
        """Return what `module` prints under `key` for each of `kinds`, `repeat` times."""
        found: dict[str, list[float]] = {kind: [] for kind in kinds}
        for turn in range(self.repeat):
            for kind in kinds[:: -1 if turn % 2 else 1]:
                found[kind].append(measured(module, kind, name, self.folder)[key])
        return [found[kind] for kind in kinds]


def prepare(folder: Path) -> None:
    """Write the files of all networks to `folder`; afterwards Python finds the bytecode of all modules."""
    for name in NETWORKS:
        measured("networks", name, folder)


def export(bench: Bench) -> Iterator[Result]:
    """Time of an export against ``torch.export`` and a copy of the file."""
    for name in NETWORKS:
        ours, torch = bench.alternate("export_time", ["export", "torch"], name, "seconds")
        yield Result(f"export {name}, torch.export and a copy", "s", ours, torch, goal=1.3)


def memory(bench: Bench) -> Iterator[Result]:
    """Peak memory of an export against the size of the weights, and of ``torch.export`` alone."""
    for name in NETWORKS:
        found = [measured("memory", "export", name, bench.folder) for _ in range(bench.repeat)]
        alone = [measured("memory", "torch", name, bench.folder) for _ in range(bench.repeat)]
        weights = [run["weights"] / 1e6 for run in found]
        yield Result(
            f"peak memory of export {name}, its weights",
            "MB",
            [run["bytes"] / 1e6 for run in found],
            weights,
            goal=0.3,
        )
        yield Result(
            f"peak memory of torch.export {name}, its weights",
            "MB",
            [run["bytes"] / 1e6 for run in alone],
            weights,
        )


def transfer(bench: Bench) -> Iterator[Result]:
    """Speed of writing and reading a caffemodel against a copy of the file."""
    name = NETWORKS[-1]
    write, read, copy = bench.alternate("transfer", ["write", "read", "copy"], name, "speed")
    yield Result(f"write {name}, a copy", "GB/s", write, copy, goal=0.5, at_least=True)
    yield Result(f"read {name}, a copy", "GB/s", read, copy, goal=0.5, at_least=True)
