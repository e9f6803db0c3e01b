"""What is measured: each group starts fresh processes in turn and yields results.

Things to be compared run alternately, and in the other order every second time: a machine that grows
slower, or memory that the one before has warmed, favours none. On a machine that others use, CPU time says
more than the time that passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from tests.benchmarks.networks import NETWORKS
from tests.benchmarks.onnx_model import FORMS
from tests.benchmarks.process import ROOT, measured, run, timed
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

    def alternate(self, module: str, kinds: Sequence[str], name: str) -> list[list[dict[str, float]]]:
        """Return what `module` prints for each of `kinds`, `repeat` times."""
        found: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
        for turn in range(self.repeat):
            for kind in kinds[:: -1 if turn % 2 else 1]:
                found[kind].append(measured(module, kind, name, self.folder))
        return [found[kind] for kind in kinds]


def prepare(folder: Path) -> None:
    """Write the files of all networks to `folder`; afterwards Python finds the bytecode of all modules."""
    for name in NETWORKS:
        run("tests.benchmarks.networks", name, folder)


def export(bench: Bench) -> Iterator[Result]:
    """Time of an export against ``torch.export`` and a copy of the file."""
    for name in NETWORKS:
        ours, torch = bench.alternate("export_time", ["export", "torch"], name)
        what = f"export {name}, torch.export and a copy"
        yield Result(what, "s", _values(ours, "seconds"), _values(torch, "seconds"), goal=1.3)
        yield Result(f"{what}, CPU time", "s", _values(ours, "cpu"), _values(torch, "cpu"))


def memory(bench: Bench) -> Iterator[Result]:
    """Peak memory of an export against the size of the weights, and of ``torch.export`` alone."""
    for name, moment, kind in product(NETWORKS, ("first", "later"), ("export", "torch")):
        found = [measured("memory", kind, name, bench.folder, moment) for _ in range(bench.repeat)]
        what = f"peak memory of {moment} {kind} {name}, its weights"
        goal = 0.3 if kind == "export" else None
        yield Result(what, "MB", _values(found, "memory"), _values(found, "weights"), goal=goal)


def transfer(bench: Bench) -> Iterator[Result]:
    """Speed of writing and reading a caffemodel against a copy of the file."""
    name = NETWORKS[-1]
    found = bench.alternate("transfer", ["write", "read", "copy"], name)
    write, read, copy = (_values(runs, "speed") for runs in found)
    yield Result(f"write {name}, a copy", "GB/s", write, copy, goal=0.5, at_least=True)
    yield Result(f"read {name}, a copy", "GB/s", read, copy, goal=0.5, at_least=True)


def generator(bench: Bench) -> Iterator[Result]:
    """Time of ``gen-backend`` as a process."""
    out = bench.folder / "generated"
    arguments = (ROOT / "schemas/bvlc/caffe.proto", "--out", out)
    found = [timed("caffeforge.generator.cli", *arguments) for _ in range(bench.repeat)]
    yield Result("gen-backend schemas/bvlc/caffe.proto", "s", _values(found, "seconds"), goal=1.5)
    yield Result("gen-backend schemas/bvlc/caffe.proto, CPU time", "s", _values(found, "cpu"))


def imports(bench: Bench) -> Iterator[Result]:
    """Time of ``import caffeforge.generated.bvlc`` above ``import numpy``."""
    found = [measured("import_time") for _ in range(bench.repeat)]
    heavy = ", ".join(found[0]["heavy"])
    yield Result(
        "import caffeforge.generated.bvlc",
        "s",
        _values(found, "seconds"),
        goal=0.15,
        note=f"imports {heavy}" if heavy else "without torch, onnx, onnxruntime, protobuf",
    )


def running(bench: Bench) -> Iterator[Result]:
    """Time of reading a net, of its first run, which makes the session, and of another."""
    for name in NETWORKS:
        found = [measured("running", name, bench.folder) for _ in range(bench.repeat)]
        for key in ("load", "first run", "run"):
            yield Result(f"{key} {name}", "s", _values(found, key))


def onnx(bench: Bench) -> Iterator[Result]:
    """Time and memory of reading ONNX models, against ``onnx.load``."""
    for form in FORMS:
        run("tests.benchmarks.onnx_import", "write", form, bench.folder)
        small = form.startswith("200 MB")  # onnx.load takes 20 seconds and all memory for more
        kinds = ["import", "load"] if small else ["import"]
        ours, *others = bench.alternate("onnx_import", kinds, form)
        theirs = _values(others[0], "seconds") if others else ()
        yield Result(f"import {form}", "s", _values(ours, "seconds"), goal=1.0)
        yield Result(f"import {form}, onnx.load", "s", _values(ours, "seconds"), theirs)
        what = f"memory of import {form}, the file"
        yield Result(what, "MB", _values(ours, "memory"), _values(ours, "file"), goal=1.2)
        for found in others:
            what = f"memory of onnx.load {form}, the file"
            yield Result(what, "MB", _values(found, "memory"), _values(found, "file"))


def _values(found: Sequence[Mapping[str, float]], key: str) -> list[float]:
    return [one[key] for one in found]


Group = Callable[[Bench], Iterator[Result]]

GROUPS: Final[Mapping[str, Group]] = {
    "export": export,
    "memory": memory,
    "transfer": transfer,
    "generator": generator,
    "imports": imports,
    "running": running,
    "onnx": onnx,
}
"""By the name that the command line knows."""
