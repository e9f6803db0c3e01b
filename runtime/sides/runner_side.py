"""Somebody else's program, such as a vendor's simulator: it reads an .npz and writes one."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import CaffeforgeError, UsageError
from caffeforge.runtime.sides.side import Computed, Input

_FORM = "write 'CMD ... {inputs} {outputs}': the paths of the .npz files stand in for the two"


class RunnerSide:
    """A command that is run for each input set.

    Args:
        command: words of a command, with ``{inputs}`` and ``{outputs}`` where the paths of the files stand;
            no shell reads it.
        inputs: the inputs of the files that the program runs.
        outputs: the names of their outputs.

    Raises:
        UsageError: the command does not name both files.
    """

    computed: Sequence[Computed] = ()
    naming = ""

    def __init__(self, command: str, inputs: Mapping[str, Input], outputs: Sequence[str]) -> None:
        if "{inputs}" not in command or "{outputs}" not in command:
            raise UsageError("the runner does not name both files", where=command, hint=_FORM)
        self._words = shlex.split(command)
        self.title = f"runner {self._words[0]}"
        self.inputs, self.outputs = inputs, outputs

    def run(self, inputs: Mapping[str, NDArray], *, inner: bool) -> dict[str, NDArray]:
        with tempfile.TemporaryDirectory() as folder:
            given, results = Path(folder, "inputs.npz"), Path(folder, "outputs.npz")
            np.savez(given, **dict(inputs))  # type: ignore[arg-type]
            paths = {"{inputs}": str(given), "{outputs}": str(results)}
            words = [_filled(word, paths) for word in self._words]
            try:
                done = subprocess.run(words, capture_output=True, text=True, check=False)
            except OSError as error:
                raise CaffeforgeError(
                    f"the runner does not start: {error.strerror}", where=words[0]
                ) from None
            if done.returncode:
                last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-3:])
                raise CaffeforgeError(f"the runner exits with {done.returncode}: {last}", where=words[0])
            try:
                with np.load(results, allow_pickle=False) as arrays:
                    return {name: arrays[name] for name in arrays.files}
            except (OSError, ValueError) as error:
                raise CaffeforgeError(f"the runner wrote no outputs: {error}", where=words[0]) from None


def _filled(word: str, paths: Mapping[str, str]) -> str:
    for mark, path in paths.items():
        word = word.replace(mark, path)
    return word
