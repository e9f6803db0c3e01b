"""A program that runs the target: what it does wrong is said with what it printed last."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.errors import CaffeforgeError, UsageError
from caffeforge.runtime.sides.runner_side import RunnerSide
from caffeforge.runtime.sides.side import Input

ENDS = "{inputs} {outputs}"


def side(program: str, *outputs: str, timeout: float | None = None) -> RunnerSide:
    """Return a runner of a Python program; `given` and `out` are the paths, `np` is numpy."""
    start = "import sys, numpy as np; given, out = sys.argv[1:]; "
    words = shlex.join([sys.executable, "-c", start + program])
    return RunnerSide(f"{words} {ENDS}", {"file": Input((2,))}, outputs or ("y",), timeout=timeout)


def run(runner: RunnerSide) -> dict[str, object]:
    return dict(runner.run({"file": np.array([1, 2], np.float32)}, inner=False))


def test_outputs_come_by_name_and_a_single_one_by_any(tmp_path: Path) -> None:
    found = run(side("np.savez(out, **{'b': np.load(given)['file'] * 2, 'a': np.zeros(1)})", "a", "b"))
    np.testing.assert_array_equal(found["b"], [2, 4])
    for save in ("np.savez(out, other=np.ones(3))", "np.save(open(out, 'wb'), np.ones(3))"):
        np.testing.assert_array_equal(run(side(save))["y"], np.ones(3))


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("print('no licence'); sys.exit(3)", "the runner exits with 3: no licence"),
        ("sys.exit('out of luck')", "the runner exits with 1: out of luck"),
        ("print('done')", r"the runner wrote no \{outputs\}: done"),
        ("pass", r"the runner wrote no \{outputs\}, and said nothing"),
        ("open(out, 'w').write('1 2 3')", "what the runner wrote cannot be read: this is no"),
        ("np.savez(out, y=np.array(['1']))", "what the runner wrote cannot be read: array y holds no real"),
        ("import os; os.kill(os.getpid(), 9)", "the runner is ended by SIGKILL"),
        ("sys.stdout.buffer.write(bytes([255, 10])); sys.exit(2)", "the runner exits with 2"),
    ],
)
def test_a_runner_that_fails_is_told_with_its_last_words(program: str, says: str) -> None:
    with pytest.raises(CaffeforgeError, match=says):
        run(side(program))


def test_a_runner_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    child = f"import time; time.sleep(3); open({str(mark)!r}, 'w')"
    program = f"import subprocess; subprocess.run([sys.executable, '-c', {child!r}])"
    with pytest.raises(CaffeforgeError, match=r"the runner has no result after 0\.5 seconds"):
        run(side(program, timeout=0.5))
    time.sleep(3.5)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("command", "error", "says"),
    [
        ("simulate", UsageError, "does not name both files"),
        (f"simulate 'a {ENDS}", UsageError, "the runner is no command: no closing quotation"),
        (f"/no/such/program {ENDS}", CaffeforgeError, "the runner does not start: No such file"),
        (f"{Path(__file__).parent} {ENDS}", CaffeforgeError, "the runner does not start: Permission denied"),
    ],
)
def test_a_command_that_is_none_is_refused(command: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        run(RunnerSide(command, {}, ("y",)))
