"""Dialects that no program here runs: protobuf reads networks in each, and they compute what they should.

What was written is run by our own executor, which shows that writing and reading agree; the numbers that the
dialects' own layers compute are tested layer by layer in test_known_layers.py and its like.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torchvision
from torch import nn

from caffeforge.generator.generate import generate, write
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.backends import find
from caffeforge.runtime.coverage import Coverage, examples_of, layer_examples_of, of
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.export import export
from caffeforge.runtime.loaded import load
from caffeforge.runtime.rule_tests import run_example
from tests.generator.judge import Judge

DIALECTS = ("acuity", "ascend", "cambricon", "compass", "nart", "nnie", "ppq", "synopsys", "thead")


class Swished(nn.Module):
    """Convolutions with the activations of MobileNetV3."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.squeeze = nn.Conv2d(8, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = nn.functional.hardswish(self.stem(x))
        return features * nn.functional.hardsigmoid(self.squeeze(features.mean((2, 3), keepdim=True)))


class Upsampled(nn.Module):
    """The neck of a detector: features of two sizes joined, and one of three outputs dilated."""

    def __init__(self) -> None:
        super().__init__()
        self.fine, self.coarse = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.head = nn.Conv2d(16, 4, 3, padding=2, dilation=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fine = torch.relu(self.fine(x))
        coarse = torch.relu(self.coarse(fine))
        joined = torch.cat([fine, nn.functional.interpolate(coarse, scale_factor=2)], 1)
        result: torch.Tensor = self.head(joined)
        return result


NETWORKS = {
    "resnet18": lambda: torchvision.models.resnet18(num_classes=10),
    "mobilenet_v2": lambda: torchvision.models.mobilenet_v2(num_classes=10, width_mult=0.25),
    "swished": Swished,
    "upsampled": Upsampled,
}
# Types by which a dialect says in one layer what others say in several.
OWN = {
    "swished": {
        "nart": {"HSwish", "HSigmoid"},
        "ppq": {"HSwish"},
        "synopsys": {"HardSwish", "HardSigmoid"},
    },
    "upsampled": {
        "ascend": {"Upsample"},
        "compass": {"UpsampleDarknet"},
        "nart": {"HoleConvolution"},
        "ppq": {"HoleConvolution", "NNUpsample"},
        "synopsys": {"ResizeNearestNeighbor"},
        "thead": {"Upsample"},
    },
    "mobilenet_v2": {
        "ascend": {"ConvolutionDepthwise"},
        "compass": {"Clip"},
        "nart": {"ReLU6"},
        "ppq": {"ReLU6"},
    },
}


@cache
def network(
    name: str,
) -> tuple[torch.export.ExportedProgram, npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return a network, exported once for all dialects, with an input and what it computes from that."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, image = NETWORKS[name]().eval(), torch.randn(1, 3, 32, 32)
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = None  # statistics are those of one batch, not of a blank network
        with torch.no_grad():
            model.train()(torch.randn(4, 3, 32, 32))
            expected = model.eval()(image).numpy()
        return torch.export.export(model, (image,)), image.numpy(), expected


@cache
def judge(dialect: str) -> Judge:
    """Return what reads files by the dialect's schema alone."""
    return Judge((SCHEMAS / dialect / "caffe.proto").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(NETWORKS))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_networks_are_written_in_the_dialect_and_compute_what_pytorch_does(
    dialect: str, name: str, tmp_path: Path
) -> None:
    backend, (program, image, expected) = find(dialect), network(name)
    export(backend, program, None, tmp_path / "net", verify=False)
    types = {layer.type for layer in judge(dialect).net(tmp_path / "net").layer}
    assert OWN.get(name, {}).get(dialect, set()) <= types
    loaded = load(tmp_path / "net.prototxt", tmp_path / "net.caffemodel", backend)
    (found,) = loaded.run({"x": image}).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_rule_of_a_dialects_own_takes_its_examples(dialect: str, tmp_path: Path) -> None:
    from caffeforge.runtime.layer_trials import run_layer_example

    backend, own = find(dialect), f"{dialect}/mapping.yaml"
    trials = [
        run_example(example, backend, tmp_path / "op")
        for example in examples_of(backend)
        if example.rule.startswith(own)
    ]
    trials += [
        run_layer_example(example, backend, tmp_path / "layer")
        for example in layer_examples_of(backend)
        if example.rule.startswith(own)
    ]
    assert [t for t in trials if t.outcome not in ("passed", "read")] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_constraint_names_its_source(dialect: str) -> None:
    covered: Coverage = of(find(dialect))
    for kind, conditions in covered.constraints.items():
        assert all("(source: " in condition.sentence for condition in conditions), kind


MOVED = {"permute_param": 149, "pass_through_param": 150, "upsample_param": 20001}


def test_the_numbers_of_nnies_own_layers_are_those_of_the_users_proto(tmp_path: Path) -> None:
    text = (SCHEMAS / "nnie" / "caffe.proto").read_text(encoding="utf-8")
    for field, number in MOVED.items():
        text = re.sub(rf"(\b{field} = )\d+;", rf"\g<1>{number};", text)
    (tmp_path / "hi3519").mkdir()
    (tmp_path / "hi3519" / "caffe.proto").write_text(text)
    (tmp_path / "hi3519" / "mapping.yaml").write_text("backend: hi3519\nextends: nnie\n")
    package = generate(tmp_path / "hi3519")
    assert package.dropped == ()
    write(package, tmp_path / "generated")
    backend, judged = find(tmp_path / "generated" / "hi3519"), Judge(text)

    class Turned(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.permute(0, 2, 3, 1)

    export(backend, Turned().eval(), (torch.randn(1, 3, 6, 8),), tmp_path / "net")
    _, permute = judged.net(tmp_path / "net").layer
    assert list(permute.permute_param.order) == [0, 2, 3, 1]
    assert judged.net_parameter().layer.add().DESCRIPTOR.fields_by_name["permute_param"].number == 149


def test_a_model_that_nnie_does_not_take_is_refused_with_the_source(tmp_path: Path) -> None:
    class Many(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return x.chunk(17, 1)

    with pytest.raises(LegalizeError, match=r"up to 16 outputs \(source: SVP_NNIE_MAX_OUTPUT_NUM"):
        export(find("nnie"), Many(), (torch.randn(1, 17, 4, 4),), tmp_path / "net")

    class Square(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(1, 2, 3, 4, 5)

    with pytest.raises(LegalizeError, match=r"four sizes, of which the first is 0 \(source: "):
        export(find("nnie"), Square(), (torch.randn(1, 6, 4, 5),), tmp_path / "net")
    assert list(tmp_path.iterdir()) == []
