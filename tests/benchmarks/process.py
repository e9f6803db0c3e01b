"""Measurements in fresh processes: nothing is imported, cached or allocated before them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def measured(module: str, *arguments: str | Path) -> dict[str, Any]:
    """Run a module of this folder and return the JSON object that it prints last.

    Raises:
        RuntimeError: it failed; holds what it wrote.
    """
    output = _run([sys.executable, "-m", f"tests.benchmarks.{module}", *map(str, arguments)])
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def seconds(command: Sequence[str | Path]) -> float:
    """Return how long a command takes from its start to its end.

    Raises:
        RuntimeError: it failed; holds what it wrote.
    """
    start = time.perf_counter()
    _run([str(word) for word in command])
    return time.perf_counter() - start


def _run(command: Sequence[str]) -> str:
    environment = dict(os.environ)
    # An import is to be measured as users see it: from the second on, Python finds its bytecode.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
