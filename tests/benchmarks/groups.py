"""What is measured: each group starts fresh processes in turn and yields results.

Things to be compared run alternately, and in the other order every second time: a machine that grows
slower, or memory that the one before has warmed, favours none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from tests.benchmarks.networks import NETWORKS
from tests.benchmarks.process import ROOT, measured, run, seconds
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
        run("tests.benchmarks.networks", name, folder)


def export(bench: Bench) -> Iterator[Result]:
    """Time of an export against ``torch.export`` and a copy of the file."""
    for name in NETWORKS:
        ours, torch = bench.alternate("export_time", ["export", "torch"], name, "seconds")
        yield Result(f"export {name}, torch.export and a copy", "s", ours, torch, goal=1.3)


def memory(bench: Bench) -> Iterator[Result]:
    """Peak memory of an export against the size of the weights, and of ``torch.export`` alone."""
    for name, moment, kind in product(NETWORKS, ("first", "later"), ("export", "torch")):
        found = [measured("memory", kind, name, bench.folder, moment) for _ in range(bench.repeat)]
        sizes, weights = ([one[key] / 1e6 for one in found] for key in ("bytes", "weights"))
        what = f"peak memory of {moment} {kind} {name}, its weights"
        yield Result(what, "MB", sizes, weights, goal=0.3 if kind == "export" else None)


def transfer(bench: Bench) -> Iterator[Result]:
    """Speed of writing and reading a caffemodel against a copy of the file."""
    name = NETWORKS[-1]
    write, read, copy = bench.alternate("transfer", ["write", "read", "copy"], name, "speed")
    yield Result(f"write {name}, a copy", "GB/s", write, copy, goal=0.5, at_least=True)
    yield Result(f"read {name}, a copy", "GB/s", read, copy, goal=0.5, at_least=True)


def generator(bench: Bench) -> Iterator[Result]:
    """Time of ``gen-backend`` as a process."""
    out = bench.folder / "generated"
    arguments = (ROOT / "schemas/bvlc/caffe.proto", "--out", out)
    times = [seconds("caffeforge.generator.cli", *arguments) for _ in range(bench.repeat)]
    yield Result("gen-backend schemas/bvlc/caffe.proto", "s", times, goal=1.5)


def imports(bench: Bench) -> Iterator[Result]:
    """Time of ``import caffeforge.generated.bvlc`` above ``import numpy``."""
    found = [measured("import_time") for _ in range(bench.repeat)]
    heavy = ", ".join(found[0]["heavy"])
    yield Result(
        "import caffeforge.generated.bvlc",
        "s",
        [one["seconds"] for one in found],
        goal=0.15,
        note=f"imports {heavy}" if heavy else "without torch, onnx, onnxruntime, protobuf",
    )


def running(bench: Bench) -> Iterator[Result]:
    """Time of reading a net, of its first run, which makes the session, and of another."""
    for name in NETWORKS:
        found = [measured("running", name, bench.folder) for _ in range(bench.repeat)]
        for key in ("load", "first run", "run"):
            yield Result(f"{key} {name}", "s", [one[key] for one in found])


Group = Callable[[Bench], Iterator[Result]]

GROUPS: Final[Mapping[str, Group]] = {
    "export": export,
    "memory": memory,
    "transfer": transfer,
    "generator": generator,
    "imports": imports,
    "running": running,
}
"""By the name that the command line knows."""
