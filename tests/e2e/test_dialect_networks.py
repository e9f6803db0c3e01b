"""Small networks in every dialect; ``python -m tests.e2e.dialect_networks`` tries sixteen."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from caffeforge.generated import onnx_opset11
from caffeforge.runtime.backends import dialects
from tests.e2e.dialect_networks import CASES, Case, outcome
from tests.e2e.networks import images

SMALL = [case for case in CASES if case.name in ("SmallSsd", "SmallYolo")]
REFUSED = {"nnie": "the shape is four sizes, of which the first is 0"}  # their last Reshape has three
SHUFFLES = {"ChannelShuffle", "ShuffleChannel"}  # names of layers that deal channels out


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_every_dialect_says_it_and_it_is_right(case: Case, tmp_path: Path) -> None:
    model, x = case.build(), images(2, case.size, seed=1)
    for backend in dialects():
        found = outcome(model, x, backend, tmp_path / backend.name)
        if backend.name in REFUSED:
            assert REFUSED[backend.name] in found.refused
        else:
            assert found.equal, (backend.name, found)


def test_channels_are_shuffled_by_the_layer_that_does_it_where_there_is_one(tmp_path: Path) -> None:
    case = Case("Shuffled", "classification", (7, 9))
    model, x = case.build(), images(2, case.size, seed=1)
    for backend in dialects():
        assert outcome(model, x, backend, tmp_path / backend.name).equal, backend.name
        net = (tmp_path / backend.name / "net.prototxt").read_text()
        written = [kind for kind in SHUFFLES if f'type: "{kind}"' in net]
        assert len(written) == bool(SHUFFLES & set(backend.readers)), backend.name


def test_shuffled_channels_stay_plain_onnx(tmp_path: Path) -> None:
    case = Case("Shuffled", "classification", (7, 9))
    model, x = case.build(), images(1, case.size, seed=1)
    result = onnx_opset11.export(model, (x,), tmp_path / "net")
    nodes = onnx.load(result.files[0]).graph.node
    assert [node.op_type for node in nodes] == ["Conv", "Relu", "Reshape", "Transpose", "Reshape", "Conv"]
