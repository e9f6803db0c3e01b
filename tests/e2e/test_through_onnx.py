"""PyTorch to Caffe to ONNX: onnxruntime computes from the last file what the model does.

``python -m tests.e2e.test_through_onnx [OPSET ...]`` prints the largest difference of each network at each
opset, in parts of the scale of the output.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from caffeforge.generated.bvlc import export
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.backends import find_any
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.from_net import export_net
from tests.e2e.networks import NETWORKS, Network, images
from tests.e2e.test_more_networks import CASES, LIMIT, Case

OPSETS = (11, 17, 21)
TESTED = (
    ("squeezenet1_1", (9, 21)),
    ("PixelShuffleNet", (7, 13)),
    ("BiGru", (11, 18)),
    ("Crnn", (8, 28)),
    ("UNet", (10, 24)),
)


def networks() -> dict[str, Network | Case]:
    """Return all networks that tests compare with real Caffe."""
    return {each.name: each for each in (*NETWORKS, *CASES)}


def differences(network: Network | Case, opsets: Sequence[int], folder: Path) -> Iterator[tuple[int, float]]:
    """Yield for each opset how far onnxruntime's outputs are from PyTorch's, in parts of their scale."""
    size = network.small if isinstance(network, Network) else network.size
    model, x = network.build(), images(2, size, seed=1)
    expected = _outputs(model, x)
    assert expected.std() > 0.02 * np.abs(expected).max(), "the output hardly varies"
    made = export(model, (x,), folder / "net", verify=False)
    for opset in opsets:
        target = find_any(f"onnx_opset{opset}")
        assert isinstance(target, OnnxBackend)
        result = export_net(
            made.prototxt, made.caffemodel, folder / f"net{opset}", source="bvlc", target=target, verify=False
        )
        written = onnx.load(result.onnx, load_external_data=False)
        assert {(each.domain, each.version) for each in written.opset_import} == {("", opset)}
        session = onnxruntime.InferenceSession(result.onnx)
        (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        assert found.shape == expected.shape
        yield opset, float(np.abs(found - expected).max() / np.abs(expected).max())


def _outputs(model: nn.Module, x: torch.Tensor) -> NDArray:
    with torch.no_grad():
        given = model(x)
    found: NDArray = (given["out"] if isinstance(given, dict) else given).numpy()
    return found


@pytest.mark.parametrize(("name", "opsets"), TESTED, ids=[name for name, _ in TESTED])
def test_onnxruntime_computes_what_pytorch_does(name: str, opsets: Sequence[int], tmp_path: Path) -> None:
    for _, error in differences(networks()[name], opsets, tmp_path):
        assert error < LIMIT


def main() -> None:
    """Print the table."""
    opsets = [int(each) for each in sys.argv[1:]] or OPSETS
    print(f"{'network':30} {'s':>6} " + " ".join(f"{f'opset {opset}':>9}" for opset in opsets))
    equal, total = 0, 0
    for name, network in networks().items():
        before = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                errors = [error for _, error in differences(network, opsets, Path(folder))]
            except Exception as error:
                print(f"{name:30} {type(error).__name__}: {error}", flush=True)
                continue
        total, equal = total + len(errors), equal + sum(error < LIMIT for error in errors)
        numbers = " ".join(f"{error:9.1e}" for error in errors)
        print(f"{name:30} {time.process_time() - before:6.1f} {numbers}", flush=True)
    print(f"{equal} of {total} within {LIMIT:g} of the output's scale")


if __name__ == "__main__":
    main()
