"""Somebody else's program, such as a vendor's simulator: it reads an .npz and writes one."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.array_files import read_arrays, write_arrays
from caffeforge.runtime.errors import CaffeforgeError, FileError, UsageError
from caffeforge.runtime.sides.side import Computed, Input

_FORM = "write 'CMD ... {inputs} {outputs}': the paths of the .npz files stand in for the two"


class RunnerSide:
    """A command that is run for each input set.

    Args:
        command: words of a command, with ``{inputs}`` and ``{outputs}`` where the paths of the files stand;
            no shell reads it.
        inputs: the inputs of the files that the program runs.
        outputs: the names of their outputs; a single one may have any name in the program's file.
        timeout: seconds after which a run is ended; None to wait for it.

    Raises:
        UsageError: the command does not name both files, or has quotes that do not end.
    """

    computed: Sequence[Computed] = ()
    naming = ""

    def __init__(
        self,
        command: str,
        inputs: Mapping[str, Input],
        outputs: Sequence[str],
        *,
        timeout: float | None = None,
    ) -> None:
        if "{inputs}" not in command or "{outputs}" not in command:
            raise UsageError("the runner does not name both files", where=command, hint=_FORM)
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(
                f"the runner is no command: {str(error).lower()}", where=command, hint=_FORM
            ) from None
        self._timeout = timeout
        self.title = f"runner {self._words[0]}"
        self.inputs, self.outputs = inputs, outputs

    def run(self, inputs: Mapping[str, NDArray], *, inner: bool) -> dict[str, NDArray]:
        with tempfile.TemporaryDirectory() as folder:
            given, results = Path(folder, "inputs.npz"), Path(folder, "outputs.npz")
            write_arrays(given, inputs)
            paths = {"{inputs}": str(given), "{outputs}": str(results)}
            said = self._call([_filled(word, paths) for word in self._words])
            if not results.exists():
                raise CaffeforgeError(f"the runner wrote no {{outputs}}{said}", where=self._words[0])
            try:
                found = read_arrays(results)
            except FileError as error:
                what = f"what the runner wrote cannot be read: {error.what}"
                raise CaffeforgeError(what, where=self._words[0], hint=error.hint) from None
        if len(found) == len(self.outputs) == 1:
            found = dict(zip(self.outputs, found.values(), strict=True))
        return found

    def _call(self, words: Sequence[str]) -> str:
        """Run the command, and end it with all that it started; return what it said last, for a message.

        Raises:
            CaffeforgeError: it does not start, fails, or takes too long.
        """
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CaffeforgeError(f"the runner does not start: {reason}", where=words[0]) from None
        try:
            output, errors = process.communicate(timeout=self._timeout)
        except subprocess.TimeoutExpired:
            raise CaffeforgeError(
                f"the runner has no result after {self._timeout:g} seconds", where=words[0]
            ) from None
        finally:
            _end(process)
        said = _last_lines(errors or output)
        if process.returncode:
            raise CaffeforgeError(f"the runner {_ended(process.returncode)}{said}", where=words[0])
        return said


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, and those that it started: it leads a group of its own."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ended(code: int) -> str:
    if code > 0:
        return f"exits with {code}"
    try:
        return f"is ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"is ended by signal {-code}"


def _last_lines(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()[-3:]
    return ": " + "\n".join(lines) if lines else ", and said nothing"


def _filled(word: str, paths: Mapping[str, str]) -> str:
    for mark, path in paths.items():
        word = word.replace(mark, path)
    return word
