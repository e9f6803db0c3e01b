"""The real Caffes that tests compare with: programs not written here that say what a net computes."""

import functools
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.real_caffe import forward


class WitnessError(Exception):
    """Caffe refused the net or died of it; the message ends with what it said last."""


@dataclass(frozen=True)
class Witness:
    """One Caffe, run in a process of its own.

    Attributes:
        name: How tests and messages call it.
        python: The interpreter that can ``import caffe``.
        installer: The script that installs it.
    """

    name: str
    python: Path
    installer: str

    def run(
        self,
        prototxt: Path,
        caffemodel: Path | None,
        inputs: Mapping[str, npt.NDArray[Any]],
        blobs: Sequence[str] | None = None,
        *,
        all_blobs: bool = False,
        once: bool = False,
        timeout: float = 600.0,
    ) -> dict[str, npt.NDArray[np.float32]]:
        """Run a net and return blobs by name: its outputs, those named, or all.

        Without a caffemodel the weights come from the fillers. The inputs' shapes replace those of the
        prototxt. A blob that later layers overwrite in place holds what the last of them made of it. With
        `once` nothing else runs before, on other inputs.

        Raises:
            WitnessError: Caffe refuses the files or the inputs, aborts, or takes longer than the timeout.
        """
        with tempfile.TemporaryDirectory(prefix="witness-") as folder:
            given, result = Path(folder, "inputs.npz"), Path(folder, "outputs.npz")
            forward.write_arrays(given, inputs)
            model = "-" if caffemodel is None else caffemodel.resolve()
            command: list[str | Path] = [
                self.python,
                "-I",
                forward.__file__,
                prototxt.resolve(),
                model,
                given,
                result,
            ]
            command += [f"--blob={name}" for name in blobs or ()]
            command += ["--all"] if all_blobs else []
            command += ["--once"] if once else []
            try:
                done = subprocess.run(command, cwd=folder, capture_output=True, timeout=timeout)
            except subprocess.TimeoutExpired as error:
                raise WitnessError(f"{self.name}: no result after {timeout:g} seconds") from error
            if done.returncode:
                said = last_lines(done.stderr.decode(errors="replace"))
                raise WitnessError(f"{self.name}: exit status {done.returncode} on {prototxt.name}\n{said}")
            return forward.read_arrays(result)

    @functools.cached_property
    def available(self) -> bool:
        """Whether it is installed."""
        command: list[str | Path] = [self.python, "-I", "-c", "import caffe"]
        return self.python.exists() and subprocess.run(command, capture_output=True).returncode == 0


def cache_directory() -> Path:
    """Return the folder into which the scripts beside this file install."""
    own = os.environ.get("CAFFEFORGE_CACHE")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(own or Path(cache, "caffeforge")).absolute()


def last_lines(text: str, count: int = 15) -> str:
    """Return the last lines but for the stack trace, which glog prints after the reason."""
    trace = ("@ ", "*** Check failure stack trace")
    return "\n".join([line for line in text.splitlines() if not line.lstrip().startswith(trace)][-count:])


CAFFE = Witness(
    "caffe", cache_directory() / "real_caffe/python/bin/python", installer="tests/real_caffe/build.sh"
)
KENDRYTE = Witness(
    "kendryte", cache_directory() / "kendryte_caffe/bin/python", installer="tests/real_caffe/kendryte.sh"
)
SOPHGO = Witness(
    "sophgo", cache_directory() / "sophgo_caffe/bin/caffe-python", installer="tests/real_caffe/sophgo.sh"
)


def available() -> list[Witness]:
    """Return the witnesses of plain Caffe that are installed, the best first."""
    return [witness for witness in (CAFFE, KENDRYTE) if witness.available]
