"""What users of other converters suffered from in tracing: modes, in-place, order, names, shared layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caffeforge.generated import bvlc_master
from caffeforge.generated.bvlc import export, load
from caffeforge.runtime.errors import FileError, TrainingModeWarning
from caffeforge.runtime.report import ExportResult
from tests.e2e import vendor
from tests.e2e.known_cases import Case, Checked, check, normal
from tests.e2e.layer_cases import difference
from tests.real_caffe.witness import Witness

IMAGE, OTHER = normal(2, 3, 5, 6), normal(2, 3, 5, 6, seed=1)


class Inside(nn.Module):
    """ReLU in place of a value that is used afterwards, and of a copy of one whose old value is."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.relu = nn.Conv2d(3, 3, 3, padding=1), nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.conv(x)
        old = y.clone()
        return old - F.relu(y, inplace=True), self.relu(old * 2.0) + y


class Swapped(nn.Module):
    """Two inputs, of which the second is used first."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return right.tanh() - 2 * left


class Heads(nn.Module):
    """Two outputs, of which the first is read by a layer, some in place."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.relu = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 2, 1), nn.ReLU()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.body(x)
        z = self.relu(y)
        return y, z, self.head(z)


class Again(nn.Module):
    """One convolution applied twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.conv(self.conv(x).relu())
        return result


def build() -> tuple[Case, ...]:
    torch.manual_seed(0)
    return (
        Case("inside", Inside(), (IMAGE,)),
        Case("swapped", Swapped(), (IMAGE, OTHER)),
        Case("heads", Heads(), (IMAGE,)),
        Case("again", Again(), (IMAGE,)),
    )


@pytest.fixture(scope="module")
def checked(caffe: Witness, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """All models, each of which Caffe computes as PyTorch does."""
    return check(build(), caffe, tmp_path_factory.mktemp("modules"))


def trained(folder: Path) -> tuple[nn.Module, ExportResult]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.ReLU())
    model(OTHER)  # gives the normalization statistics
    with pytest.warns(TrainingModeWarning):
        result = export(model, (IMAGE,), folder / "net", input_names=["x"], output_names=["y"])
    return model, result


def test_a_model_left_in_training_mode_is_exported_for_evaluation(caffe: Witness, tmp_path: Path) -> None:
    model, result = trained(tmp_path)
    assert model.training, "the user's model is left as it was"
    assert any("training mode" in note for note in result.notes)
    found = caffe.run(result.prototxt, result.caffemodel, {"x": IMAGE.numpy()})["y"]
    assert difference(found, model.eval()(IMAGE).detach().numpy()) < 1e-5


def test_counters_of_batches_become_no_layer_or_weight(tmp_path: Path) -> None:
    _, result = trained(tmp_path)
    layers = load(result.prototxt, result.caffemodel).net.layers
    assert [layer.type for layer in layers] == ["Input", "Convolution", "BatchNorm", "Scale", "ReLU"]
    assert b"num_batches_tracked" not in result.caffemodel.read_bytes()


def test_what_an_activation_in_place_overwrites_is_not_read_again(checked: Checked) -> None:
    assert "ReLU" in checked.types("inside")


def test_inputs_keep_the_order_of_forward(checked: Checked) -> None:
    net = load(checked.result.prototxt, checked.result.caffemodel)
    assert list(net.inputs) == ["inside_in0", "swapped_in0", "swapped_in1", "heads_in0", "again_in0"]


def test_an_output_that_a_layer_reads_is_an_output_of_the_net(checked: Checked, caffe: Witness) -> None:
    fed = {f"{case.name}_in{i}": x.numpy() for case in build() for i, x in enumerate(case.inputs)}
    found = caffe.run(checked.result.prototxt, checked.result.caffemodel, fed)
    expected = dict(zip(("heads_out0", "heads_out1", "heads_out2"), build()[2].expected(), strict=True))
    assert set(expected) <= set(found)
    assert set(found) == set(load(checked.result.prototxt, checked.result.caffemodel).outputs)


def test_a_convolution_that_is_applied_twice_has_the_same_weights_in_both_places(checked: Checked) -> None:
    first, second = [layer for layer in checked.layers["again"] if layer.type == "Convolution"]
    assert first.name != second.name
    for one, other in zip(first.blobs, second.blobs, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


# The second application borrows the first one's blobs by name: the caffemodel holds them once.
def test_names_with_dots_are_unique_and_the_same_in_both_files(checked: Checked) -> None:
    text = vendor.parse(checked.result.prototxt.read_text())
    binary = vendor.net_parameter().FromString(checked.result.caffemodel.read_bytes())
    names = [layer.name for layer in text.layer]
    assert len(set(names)) == len(names)
    assert [name for name in names if name != "again.conv_1"] == [layer.name for layer in binary.layer]
    assert "heads.body" in names


def test_dialects_of_one_package_live_in_one_process(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2)).eval()
    x = normal(1, 3, 11, 11)
    ours = export(model, (x,), tmp_path / "bvlc")
    theirs = bvlc_master.export(model, (x,), tmp_path / "master")
    for files in (ours, theirs):
        read = vendor.net_parameter().FromString(files.caffemodel.read_bytes())
        again = vendor.net_parameter().FromString(read.SerializeToString())
        assert again == read and [layer.type for layer in read.layer][:2] == ["Input", "Convolution"]
    expected = model(x).detach().numpy()
    for files, reader in ((ours, load), (theirs, bvlc_master.load)):
        (found,) = reader(files.prototxt, files.caffemodel).run({"input": x.numpy()}).values()
        assert difference(found, expected) < 1e-5


@pytest.mark.parametrize("value", [0, 1])
def test_a_pool_that_another_dialect_rounds_is_not_read_as_ours(value: int, tmp_path: Path) -> None:
    files = export(nn.MaxPool2d(2).eval(), (normal(1, 3, 8, 8),), tmp_path / "net")
    proto = vendor.net_parameter().FromString(files.caffemodel.read_bytes())
    pool = next(layer for layer in proto.layer if layer.type == "Pooling")
    pool.pooling_param.MergeFromString(bytes([13 << 3, value]))  # ceil_mode there, round_mode here
    files.caffemodel.write_bytes(proto.SerializeToString())
    for reader in (load, bvlc_master.load):
        with pytest.raises(FileError, match="another dialect"):
            reader(files.prototxt, files.caffemodel)


def test_what_both_files_say_is_no_other_dialects(tmp_path: Path) -> None:
    files = bvlc_master.export(nn.MaxPool2d(2).eval(), (normal(1, 3, 8, 8),), tmp_path / "net")
    proto = vendor.net_parameter().FromString(files.caffemodel.read_bytes())
    pool = next(layer for layer in proto.layer if layer.type == "Pooling")
    pool.pooling_param.MergeFromString(bytes([13 << 3, 0]))
    files.caffemodel.write_bytes(proto.SerializeToString())
    text = files.prototxt.read_text(encoding="utf-8")
    said = text.replace("round_mode: FLOOR", "").replace("pool: MAX", "pool: MAX round_mode: CEIL")
    files.prototxt.write_text(said, encoding="utf-8")
    assert "round_mode: CEIL" in said
    bvlc_master.load(files.prototxt, files.caffemodel)
