"""CPU seconds to legalize graphs of 1,000, 10,000 and 30,000 nodes, and of gen-backend as a process.

    python -m tests.benchmarks.legalize_time

A block of ten nodes holds what is written as it is, what is lowered once and what is lowered several times;
another graph holds a node in each block that is refused after all its alternatives were tried.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from grpc_tools import protoc

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime.array import Dense
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.legalize import legalize

SIZES = (1_000, 10_000, 30_000)
BLOCK = """\
    {n}a = Conv({x}, w, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    {n}b = HardSwish({n}a)
    {n}c = MaxPool({n}b, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    {n}d = Add({n}c, {x})
    {n}e = ReduceMean({n}d, axes=(1,))
    {n}f = Mul({n}d, {n}e)
    {n}g = Gelu({n}f)
    {n}h = Transpose({n}g, perm=(0, 1, 3, 2))
    {n}i = Sub({n}h, {n}f)
    {n}j = {last}
"""


def graph(nodes: int, last: str) -> Graph:
    """Return a chain of blocks whose last op is `last` of ``{x}``."""
    lines, x = [], "x"
    for index in range(nodes // 10):
        stem = f"n{index}_"
        lines.append(BLOCK.format(n=stem, x=x, last=last.format(x=f"{stem}i")))
        x = f"{stem}j"
    text = f"def g(x: float32[1, 4, 6, 6], *, w: float32[4, 4, 3, 3]):\n{''.join(lines)}    return {x}\n"
    return Graph.parse(text, {"w": Dense(np.ones((4, 4, 3, 3), np.float32))})


def seconds(source: Graph) -> tuple[float, str]:
    """Return the CPU seconds of legalizing a graph, and what came of it."""
    begin = time.process_time()
    try:
        said = f"{len(legalize(source, BACKEND))} layers"
    except LegalizeError as error:
        said = f"{len(error.document['refused'])} nodes refused"
    return time.process_time() - begin, said


def process(*command: str) -> tuple[float, float]:
    """Return the wall and the CPU seconds of a command."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compiled(schema: Path) -> float:
    """Return the wall seconds that protoc takes for a schema, the first call without its import."""
    folder = str(schema.parent)
    begin = time.perf_counter()
    arguments = ["protoc", f"-I{folder}", "--include_source_info", "--descriptor_set_out=/dev/null"]
    assert protoc.main([*arguments, schema.name]) == 0
    return time.perf_counter() - begin


def main() -> None:
    seconds(graph(10, "Relu({x})"))
    for title, last in (("legal", "Relu({x})"), ("with refusals", "Pow({x}, {x})")):
        for size in SIZES:
            source = graph(size, last)
            used, said = min(seconds(source) for _ in range(3))
            print(f"{title:14} {size:6} nodes  {used:6.2f} s  {used / size * 1e6:5.0f} us a node  {said}")
    with tempfile.TemporaryDirectory() as folder:
        schema = Path(__file__).parents[2] / "schemas" / "bvlc"
        commands = {
            "gen-backend schemas/bvlc": ("-m", "caffeforge.generator.cli", str(schema), "--out", folder),
            "of which imports": (
                "-c",
                "import caffeforge.generator.generate, jinja2, yaml, grpc_tools.protoc",
            ),
        }
        for title, command in commands.items():
            wall, used = min(process(*command) for _ in range(5))
            print(f"{title:28} {wall:5.2f} s, CPU {used:5.2f} s")
        print(f"{'of which protoc':28} {min(compiled(schema / 'caffe.proto') for _ in range(5)):5.2f} s")


if __name__ == "__main__":
    main()
