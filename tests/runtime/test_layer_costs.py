"""Parameters and multiply-accumulates of layers, against PyTorch's own counter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from caffeforge.generated import bvlc
from caffeforge.runtime import cli
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.layer_costs import layer_costs


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2)
        self.up = nn.ConvTranspose2d(8, 6, 2, stride=2, bias=False)
        self.fc = nn.Linear(6 * 8 * 8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.fc(torch.relu(self.up(self.conv(x))).flatten(1))
        return y


@pytest.fixture(scope="module")
def stem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stem = tmp_path_factory.mktemp("costs") / "net"
    bvlc.export(Net().eval(), (torch.randn(2, 4, 8, 8),), stem, verify=False)
    return stem


def test_macs_are_half_of_pytorchs_flops(stem: Path) -> None:
    model = Net().eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.randn(2, 4, 8, 8))
    costs = layer_costs(
        read_files(Path(f"{stem}.prototxt"), Path(f"{stem}.caffemodel"), bvlc.BACKEND), bvlc.BACKEND
    )
    assert sum(cost.macs or 0 for cost in costs) * 2 == counter.get_total_flops()
    assert sum(cost.parameters for cost in costs) == sum(p.numel() for p in model.parameters())
    by_name = {cost.name: cost for cost in costs}
    assert by_name["up"].macs == 2 * 4 * 4 * 8 * 6 * 2 * 2
    assert by_name["conv"].tops == {"conv": (2, 8, 4, 4)}


def test_the_command_prints_a_table_and_json(stem: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [f"{stem}.prototxt", f"{stem}.caffemodel", "--backend", "bvlc"]
    assert cli.main(["layers", *files]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["layer", "type", "tops", "parameters", "MACs"]
    assert table[-1].split()[0] == "total"
    assert cli.main(["layers", *files, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["type"] for entry in listed][:3] == ["Input", "Convolution", "Deconvolution"]


def test_what_only_a_run_tells_is_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(
        "".join(f'input: "{n}" input_shape {{ dim: 1 dim: {d} }}\n' for n, d in (("l", 16), ("c", 8)))
        + 'input: "p" input_shape { dim: 1 dim: 2 dim: 16 }\n'
        'layer { name: "d" type: "DetectionOutput" bottom: "l" bottom: "c" bottom: "p" top: "d"\n'
        "  detection_output_param { num_classes: 2 } }\n"
    )
    assert cli.main(["layers", str(path), "--backend", "ssd"]) == 0
    assert "1x1xdetectionsx7" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_said_so(stem: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [f"{stem}.prototxt", f"{stem}.caffemodel", "--backend", "bvlc"]
    assert cli.main(["run", *files, "--random", "--provider", "CUDA"]) == 2
    said = capsys.readouterr().err
    assert "CUDAExecutionProvider" in said and "Traceback" not in said


def caffenet() -> str:
    """Return Caffe's reference network of 2012's AlexNet, as published: two groups, 227 by 227 pixels."""
    lines = ['input: "data" input_dim: 1 input_dim: 3 input_dim: 227 input_dim: 227']
    bottom = "data"

    def add(name: str, kind: str, param: str) -> None:
        nonlocal bottom
        lines.append(f'layer {{ name: "{name}" type: "{kind}" bottom: "{bottom}" top: "{name}" {param} }}')
        bottom = name

    def conv(name: str, count: int, size: int, rest: str) -> None:
        add(name, "Convolution", f"convolution_param {{ num_output: {count} kernel_size: {size} {rest} }}")

    def pool(name: str) -> None:
        add(name, "Pooling", "pooling_param { kernel_size: 3 stride: 2 }")

    conv("conv1", 96, 11, "stride: 4")
    pool("pool1")
    add("norm1", "LRN", "")
    conv("conv2", 256, 5, "pad: 2 group: 2")
    pool("pool2")
    conv("conv3", 384, 3, "pad: 1")
    conv("conv4", 384, 3, "pad: 1 group: 2")
    conv("conv5", 256, 3, "pad: 1 group: 2")
    pool("pool5")
    for name, count in (("fc6", 4096), ("fc7", 4096), ("fc8", 1000)):
        add(name, "InnerProduct", f"inner_product_param {{ num_output: {count} }}")
    return "\n".join(lines)


def test_a_published_network_has_its_published_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """60,965,224 parameters and 724 million multiply-accumulates; the text alone tells them."""
    path = tmp_path / "caffenet.prototxt"
    path.write_text(caffenet())
    assert cli.main(["layers", str(path), "--backend", "bvlc"]) == 0
    rows = {line.split()[0]: line.split()[-2:] for line in capsys.readouterr().out.splitlines()}
    assert rows["total"] == ["60,965,224", "724,406,816"]
    assert rows["conv1"] == ["34,944", "105,415,200"]  # 96 x 3 x 11 x 11 + 96, at 55 x 55 places
    assert rows["conv2"] == ["307,456", "223,948,800"]  # 256 x 48 x 5 x 5 + 256, at 27 x 27 places
    assert rows["fc6"] == ["37,752,832", "37,748,736"]
    assert rows["norm1"] == ["0", "0"]
