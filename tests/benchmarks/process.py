"""Measurements in fresh processes: nothing is imported, cached or allocated before them."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def measured(module: str, *arguments: str | Path) -> dict[str, Any]:
    """Run a module of this folder and return the JSON object that it prints last."""
    found: dict[str, Any] = json.loads(run(f"tests.benchmarks.{module}", *arguments).splitlines()[-1])
    return found


def timed(module: str, *arguments: str | Path) -> dict[str, float]:
    """Return the ``seconds`` from the start of Python to the end of a module, and those of ``cpu`` time."""
    start, cpu = time.perf_counter(), _children()
    run(module, *arguments)
    return {"seconds": time.perf_counter() - start, "cpu": _children() - cpu}


def run(module: str, *arguments: str | Path) -> str:
    """Run a module in the checkout and return what it prints.

    Raises:
        RuntimeError: it failed; holds what it wrote.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    environment = dict(os.environ)
    # An import is to be measured as users see it: from the second on, Python finds its bytecode.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _children() -> float:
    """Return the CPU time of all processes that were run so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
