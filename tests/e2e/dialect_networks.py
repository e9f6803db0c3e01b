"""Sixteen networks in every dialect: equal to PyTorch, or refused with a sentence.

``python -m tests.e2e.dialect_networks [DIALECT ...]`` prints the table. Protobuf reads the files under the
dialect's own proto, run by our executor, and by a program not written here where one takes the dialect.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
import torchvision
from torch import nn

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.backends import dialects
from caffeforge.runtime.errors import CaffeforgeError, LegalizeError
from caffeforge.runtime.export import export
from caffeforge.runtime.loaded import load
from tests.e2e import models, vendor
from tests.e2e.networks import images, randomize
from tests.real_caffe.witness import CAFFE, KENDRYTE, SOPHGO, Witness, WitnessError, cache_directory
from tests.runners import openvino_nets

LIMIT: Final = 1e-4  # of the output's scale
PLAIN: Final = {"weights": None}
SEGMENTATION: Final = {"weights": None, "weights_backbone": None}
WITNESSES: Final[Mapping[str, Witness]] = {
    "bvlc": CAFFE,
    "bvlc_master": KENDRYTE,
    "inisis": CAFFE,
    "kendryte": KENDRYTE,
    "sophgo": SOPHGO,
    "ssd": CAFFE,
}


@dataclass(frozen=True)
class Case:
    """A network, and the size of its images, small so that everything is quick."""

    name: str
    kind: str
    size: tuple[int, int] = (64, 96)
    options: Mapping[str, Any] | None = None

    def build(self) -> nn.Module:
        """Return it with random weights, always the same."""
        torch.manual_seed(0)
        homes = (models, torchvision.models.segmentation, torchvision.models)
        maker: Callable[..., nn.Module] = next(getattr(h, self.name) for h in homes if hasattr(h, self.name))
        model = maker(**(self.options or {})).eval()
        randomize(model, images(4, self.size, seed=99))
        return model


CASES: Final = (
    Case("resnet18", "classification", options=PLAIN),
    Case("mobilenet_v2", "classification", options=PLAIN),
    Case("mobilenet_v3_small", "classification", options=PLAIN),
    Case("shufflenet_v2_x0_5", "classification", options=PLAIN),
    Case("squeezenet1_1", "classification", options=PLAIN),
    Case("efficientnet_b0", "classification", options=PLAIN),
    Case("densenet121", "classification", options=PLAIN),
    Case("googlenet", "classification", options={"weights": None, "init_weights": False}),
    Case("regnet_x_400mf", "classification", options=PLAIN),
    Case("lraspp_mobilenet_v3_large", "segmentation", options=SEGMENTATION),
    Case("UNet", "segmentation", (24, 40)),
    Case("SmallSsd", "SSD-like", (33, 47)),
    Case("SmallYolo", "YOLO-like", (32, 48)),
    Case("Fsrcnn", "super-resolution", (13, 17)),
    Case("PixelShuffleNet", "super-resolution", (13, 17)),
    Case("Crnn", "CRNN", (16, 38)),
)


@dataclass(frozen=True)
class Outcome:
    """What became of a network in a dialect.

    Attributes:
        layers: how many there are; 0 if it is refused.
        error: the largest difference from PyTorch by our executor, as part of the output's scale.
        witnessed: the same by the dialect's witness; None without one that reads the files.
        refused: why it cannot be said.
    """

    layers: int = 0
    error: float = 0.0
    witnessed: float | None = None
    refused: str = ""

    @property
    def equal(self) -> bool:
        """Whether all that ran it computes what PyTorch does."""
        return not self.refused and max(self.error, self.witnessed or 0.0) < LIMIT


def outcome(model: nn.Module, x: torch.Tensor, backend: Backend, folder: Path) -> Outcome:
    """Return what becomes of a network.

    Raises:
        CaffeforgeError: neither files nor a list of what the dialect cannot say.
        WitnessError: the dialect's witness does not take the files, nor is it known why.
    """
    try:
        result = export(backend, model, (x,), folder / "net", verify=False)
    except LegalizeError as refusal:
        return Outcome(refused=str(refusal))
    message = vendor.net_parameter(backend.name)()
    message.ParseFromString(result.caffemodel.read_bytes())
    assert len(vendor.parse(result.prototxt.read_text(), backend.name).layer) == len(message.layer)
    with torch.no_grad():
        given = model(x)
    expected = (given["out"] if isinstance(given, dict) else given).numpy()
    assert expected.std() > 0.02 * np.abs(expected).max(), "the output hardly varies"
    net = load(result.prototxt, result.caffemodel, backend)
    (name,), (output,) = net.inputs, net.outputs
    found = _difference(net.run({name: x.numpy()})[output], expected)
    ran = _seen(backend.name, (result.prototxt, result.caffemodel), name, x.numpy(), output)
    return Outcome(result.layers, found, None if ran is None else _difference(ran, expected))


def _seen(
    dialect: str, files: tuple[Path, Path], name: str, x: npt.NDArray[Any], output: str
) -> npt.NDArray[Any] | None:
    """Return what a dialect's witness makes of a net; None without one."""
    if dialect == "opencv":
        import cv2

        net = cv2.dnn.readNetFromCaffe(*map(str, files))
        net.setInput(x, name)
        return np.asarray(net.forward())
    if dialect == "openvino":
        return _by_openvino(files, name, x)
    witness = WITNESSES.get(dialect)
    if witness is None or not witness.available:
        return None
    try:
        return witness.run(*files, {name: x}, [output])[output]
    except WitnessError as error:
        if dialect == "bvlc_master" and 'no field named "clip_param"' in str(error):
            return None  # its witness is from before Clip
        raise


def _by_openvino(files: tuple[Path, Path], name: str, x: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return what OpenVINO makes of a net with one output; None where it is not installed."""
    python = cache_directory() / "openvino" / "bin" / "python"
    if not python.exists():
        return None
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above, "net")
        folder.mkdir()
        for file, kind in zip(files, ("prototxt", "caffemodel"), strict=True):
            shutil.copy(file, folder / f"net.{kind}")
        np.savez(folder / "inputs.npz", **{name: x})  # type: ignore[arg-type]
        subprocess.run([python, "-I", openvino_nets.__file__, above], check=True, capture_output=True)
        if (folder / "error.txt").exists():
            raise WitnessError((folder / "error.txt").read_text())
        (result,) = np.load(folder / "outputs.npz").values()
        return np.asarray(result)


def _difference(found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> float:
    if found.shape != expected.shape:
        return float("inf")
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def main(names: Sequence[str]) -> None:
    """Print the table for some dialects, or all; below it, what is refused and why."""
    backends = [backend for backend in dialects() if not names or backend.name in names]
    print("| network | kind |", " | ".join(backend.name for backend in backends), "|")
    print("|---" * (2 + len(backends)) + "|")
    refused: list[str] = []
    for case in CASES:
        model, x = case.build(), images(1, case.size, seed=1)
        cells = []
        for backend in backends:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    one = outcome(model, x, backend, Path(folder))
                except (CaffeforgeError, WitnessError) as error:
                    one = Outcome(refused=f"failed: {error}")
            cells.append(_cell(one))
            if one.refused:
                refused.append(f"{case.name} in {backend.name}: {one.refused}")
        print(f"| {case.name} | {case.kind} | {' | '.join(cells)} |", flush=True)
    print("", *refused, sep="\n")


def _cell(one: Outcome) -> str:
    if one.refused:
        return "refused"
    seen = f", witness {one.witnessed:.0e}" if one.witnessed is not None else ""
    return f"{'' if one.equal else 'WRONG '}{one.layers} layers, {one.error:.0e}{seen}"


if __name__ == "__main__":
    main(sys.argv[1:])
