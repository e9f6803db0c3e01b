"""Measure and print tables; nothing passes or fails. ``make bench``, or ``run.py --help`` for a part."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

# Run as a script, Python looks for modules beside it and not in the checkout.
sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.benchmarks.groups import GROUPS, Bench, prepare  # noqa: E402
from tests.benchmarks.result import Result, table  # noqa: E402


def main() -> None:
    """Run the groups of measurements that the command line asks for."""
    arguments = _parser().parse_args()
    before = os.getloadavg()[0]
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.folder) as folder:
        prepare(Path(folder))
        for name in arguments.only or GROUPS:
            group = list(GROUPS[name](Bench(Path(folder), arguments.repeat)))
            print(f"{table(group)}\n", flush=True)
            results += group
    after = os.getloadavg()[0]
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, load {before:.1f} before and {after:.1f} after")
    if arguments.json is not None:
        document = {
            "platform": platform.platform(),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "load": [before, after],
            "results": [result.json() for result in results],
        }
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests/benchmarks/run.py", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="fresh processes for each measurement")
    parser.add_argument("--only", nargs="+", choices=GROUPS, help="groups to measure; default: all")
    parser.add_argument("--json", type=Path, help="a file to which the results are written as well")
    parser.add_argument("--folder", type=Path, help="where to write, 2.5 GB; default: the system's")
    return parser


if __name__ == "__main__":
    main()
