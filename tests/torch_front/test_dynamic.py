"""Open sizes: graphs that hold for other sizes than the example's, run at these and compared with PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import FrontEndError, LegalizeError, UsageError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.torch_front import TorchSource, trace
from tests.torch_front.checking import Function, seeded, types

Inputs = tuple[torch.Tensor, ...]
IMAGE = {0: "N", 2: "H", 3: "W"}


def dims(source: TorchSource) -> list[str]:
    """Return the types of a graph's inputs and outputs."""
    return [value.type_text() for value in (*source.graph.inputs, *source.graph.outputs)]


def equal_at(source: TorchSource, model: nn.Module, *sizes: Inputs) -> None:
    """Compare outputs with the model's own, and every inner value with the captured program's."""
    executor = Executor(source.graph)
    outputs = [value.name for value in source.graph.outputs]
    named = [node.outputs[0].name for node in source.graph.nodes if node.origin.value]
    for tensors in sizes:
        names = [value.name for value in source.graph.inputs]
        given: dict[str, NDArray] = {n: t.numpy() for n, t in zip(names, tensors, strict=True)}
        computed = executor.run(given, [*outputs, *named])
        reference = source.reference(given)
        for name, array in computed.items():
            scale = float(np.abs(reference[name]).max())
            np.testing.assert_allclose(array, reference[name], rtol=1e-4, atol=1e-5 * scale, err_msg=name)
        with torch.no_grad():
            direct = torch.utils._pytree.tree_leaves(model(*tensors))
        for name, tensor in zip(outputs, direct, strict=True):
            scale = float(tensor.abs().max())
            np.testing.assert_allclose(computed[name], tensor.numpy(), rtol=1e-4, atol=1e-5 * scale)


def traced(model: Any, inputs: Inputs, shapes: Any) -> tuple[TorchSource, nn.Module]:
    module = model if isinstance(model, nn.Module) else Function(model)
    return trace(module.eval(), inputs, dynamic_shapes=shapes), module


class UNet(nn.Module):
    """Brings its maps to the sizes of others."""

    def __init__(self) -> None:
        super().__init__()
        self.top = nn.Conv2d(3, 4, 3, padding=1)
        self.down = nn.Conv2d(4, 8, 3, padding=1, stride=2)
        self.bottom = nn.Conv2d(8, 8, 3, padding=1, stride=2)
        self.up = nn.Conv2d(16, 4, 3, padding=1)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        top = F.relu(self.top(x))
        down = F.relu(self.down(top))
        bottom = F.relu(self.bottom(down))
        up = F.interpolate(bottom, size=down.shape[2:], mode="bilinear")
        up = F.interpolate(self.up(torch.cat([up, down], 1)), size=top.shape[2:])
        y = self.head(torch.cat([up, top], 1))
        return F.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=True)


class Words(nn.Module):
    """A transformer over sequences of any length."""

    def __init__(self) -> None:
        super().__init__()
        self.word = nn.Embedding(30, 16)
        self.place = nn.Embedding(32, 16)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
        self.out = nn.Linear(16, 30)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        length = words.shape[1]
        x = self.word(words) + self.place(torch.arange(length))
        mask = torch.triu(torch.full((length, length), float("-inf")), 1)
        result: torch.Tensor = self.out(self.layers(x, mask=mask, is_causal=False))
        return result


def test_a_network_that_resizes_to_sizes_of_its_input() -> None:
    source, model = traced(UNet(), (seeded(2, 3, 16, 24),), {"x": IMAGE})
    assert dims(source) == ["float32[N, 3, H, W]", "float32[N, 2, H, W]"]
    equal_at(source, model, (seeded(2, 3, 16, 24),), (seeded(1, 3, 17, 9),), (seeded(3, 3, 31, 15),))
    assert source.notes == ["the model was traced for sizes of which W >= 5; H >= 5"]


def test_a_transformer_over_sequences_of_any_length() -> None:
    words = torch.arange(40).reshape(2, 20) % 30
    source, model = traced(Words(), (words[:, :7],), [{0: "N", 1: "T"}])
    assert dims(source) == ["int64[N, T]", "float32[N, T, 30]"]
    equal_at(source, model, (words[:, :7],), (words[:1, :5],), (words,))


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_torchvision_at_other_sizes(name: str) -> None:
    from torchvision.models import get_model

    from tests.torch_front.networks import shaken

    model = shaken(get_model(name, weights=None))
    source = trace(model, seeded(1, 3, 64, 64), dynamic_shapes={"x": IMAGE})
    assert dims(source) == ["float32[N, 3, H, W]", "float32[N, 1000]"]
    equal_at(source, model, (seeded(1, 3, 65, 49),), (seeded(3, 3, 40, 50),))


def test_a_vision_transformer_of_any_batch() -> None:
    from torchvision.models.vision_transformer import VisionTransformer

    model = VisionTransformer(16, 8, 1, 2, 24, 48, num_classes=5)
    nn.init.normal_(model.heads[0].weight)
    source, _ = traced(model, (seeded(2, 3, 16, 16),), {"x": {0: "batch"}})
    assert dims(source) == ["float32[batch, 3, 16, 16]", "float32[batch, 5]"]
    equal_at(source, model, (seeded(1, 3, 16, 16),), (seeded(5, 3, 16, 16),))


def _attention(x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = F.scaled_dot_product_attention(x, x, x, is_causal=True)
    return result


def _written(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    rows = y.view(x.shape[0], -1)
    y[:, :, 1:, 0] = 0
    y[:, 1].relu_()
    _, second = y.chunk(2, 2)
    second.mul_(3)
    return rows + y.flatten(1)


# Arithmetic on sizes, with the types of the nodes that it becomes where they matter.
ARITHMETIC: list[tuple[str, Any, list[str] | None]] = [
    ("view", lambda x: x.view(x.shape[0], -1), ["Reshape"]),
    ("view by product", lambda x: x.view(x.shape[0] * 3, -1), None),
    ("last two", lambda x: x.flatten(2).transpose(1, 2).reshape(-1, 3), ["Reshape", "Transpose", "Reshape"]),
    ("split heads", lambda x: x.reshape(x.shape[0], x.shape[2], 3, -1).transpose(1, 2).flatten(2), None),
    ("fixed rest", lambda x: x.mean(3).reshape(x.shape[0], 1, 3, x.shape[2]), None),
    ("half", lambda x: x[:, :, : x.shape[2] // 2], None),
    ("last rows", lambda x: x[:, :, -2:], ["Slice"]),
    ("last", lambda x: x[:, :, -1], None),
    ("all but one", lambda x: x[:, :, 1:] - x[:, :, :-1], ["Slice", "Slice", "Sub"]),
    ("every second", lambda x: x[:, :, ::2, 1::2], None),
    ("narrow", lambda x: x.narrow(2, 1, x.shape[2] - 2), None),
    ("chunks", lambda x: torch.cat(x.chunk(3, 1)[::-1], 1), None),
    ("double", lambda x: F.interpolate(x, scale_factor=2.0), ["Resize"]),
    ("half size", lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear"), None),
    ("doubled size", lambda x: F.interpolate(x, size=(x.shape[2] * 2, 7), mode="bilinear"), None),
    ("roll", lambda x: torch.roll(x, (1, -2), (2, 3)), None),
    ("flip", lambda x: x.flip(2, 3), ["Slice"]),
    ("repeat", lambda x: x.repeat(1, 2, 1, 1), ["Tile"]),
    ("repeat by size", lambda x: x.mean((2, 3)).repeat(1, x.shape[2]), None),
    ("expand", lambda x: x.mean(1, keepdim=True).expand(-1, 4, -1, -1), None),
    ("expand by size", lambda x: x[:, :, :1].expand(-1, -1, x.shape[3], -1), None),
    ("count", lambda x: x * torch.arange(x.shape[3], dtype=x.dtype), None),
    (
        "grid",
        lambda x: torch.stack(torch.meshgrid(*map(torch.arange, x.shape[2:]), indexing="ij")) + x[:, :2],
        None,
    ),
    ("ones", lambda x: torch.cat([x, torch.ones_like(x[:, :1])], 1), None),
    ("zeros", lambda x: x.new_zeros(x.shape[0], 2) + x.mean((1, 2, 3))[:, None], None),
    ("divide by size", lambda x: x.sum(3) / x.shape[3], None),
    ("add a size", lambda x: x + x.shape[0], None),
    ("deviation", lambda x: x.std((2, 3), correction=0), None),
    ("pad", lambda x: F.pad(x, (1, 2, 0, 1)), ["Pad"]),
    ("reflect", lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), ["Pad"]),
    ("pool", lambda x: F.avg_pool2d(x, 3, 2, 1), ["AveragePool"]),
    ("pool, rounded up", lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), None),
    ("global pool", lambda x: F.adaptive_avg_pool2d(x, 1), ["GlobalAveragePool"]),
    ("stack", lambda x: torch.stack([x, x + 1], 2), None),
    ("pixel shuffle", lambda x: F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2), None),
    ("softmax", lambda x: x.flatten(2).softmax(-1), None),
    ("attention", lambda x: _attention(x.flatten(2).transpose(1, 2)), None),
    ("norm", lambda x: F.group_norm(x, 3), ["GroupNormalization"]),
    ("where", lambda x: torch.where(x > 0, x, torch.zeros(x.shape[2], 1)), None),
    ("cumsum", lambda x: x.cumsum(2), ["CumSum"]),
    ("matmul", lambda x: x.transpose(2, 3) @ x, None),
    ("in place", lambda x: F.relu(x.clone()).mul_(2).view(x.shape[0], 3, -1), None),
    ("write into a part", _written, None),
    ("largest", lambda x: torch.cat([x.max(3)[0], x.argmax(3).float()], 1), None),
]


@pytest.mark.parametrize(
    ("model", "expected"), [row[1:] for row in ARITHMETIC], ids=[row[0] for row in ARITHMETIC]
)
def test_arithmetic_on_sizes(model: Any, expected: list[str] | None) -> None:
    source, module = traced(model, (seeded(2, 3, 6, 8),), [IMAGE])
    equal_at(source, module, (seeded(2, 3, 6, 8),), (seeded(1, 3, 9, 5),), (seeded(3, 3, 12, 12),))
    if expected is not None:
        assert types(source.graph) == expected


def test_sizes_of_two_inputs() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, y], 1) * x.shape[1]

    source, module = traced(model, (seeded(2, 3), seeded(2, 5)), [{0: "N", 1: "A"}, {0: "N", 1: "B"}])
    assert dims(source) == ["float32[N, A]", "float32[N, B]", "float32[N, A + B]"]
    equal_at(source, module, (seeded(1, 4), seeded(1, 2)), (seeded(3, 9), seeded(3, 3)))


def test_an_example_of_one_image_leaves_the_batch_open() -> None:
    source, module = traced(nn.Conv2d(3, 2, 1), (seeded(1, 3, 4, 4),), {"input": {0: "N"}})
    assert dims(source) == ["float32[N, 3, 4, 4]", "float32[N, 2, 4, 4]"]
    assert source.example["input"].shape == (1, 3, 4, 4)
    equal_at(source, module, (seeded(1, 3, 4, 4),), (seeded(4, 3, 4, 4),))


def test_a_dimension_of_torch_export() -> None:
    half = torch.export.Dim("half")
    source, module = traced(lambda x: x.view(-1, 2), (seeded(2, 6),), [{1: 2 * half}])
    assert dims(source) == ["float32[2, 2 * half]", "float32[2 * half, 2]"]
    equal_at(source, module, (seeded(2, 4),), (seeded(2, 10),))


def test_what_a_branch_on_a_size_took_for_granted_is_noted() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] % 2 == 0:
            return x.view(-1, 2)
        return x[:-1].view(-1, 2)

    source, _ = traced(model, (seeded(6),), [{0: "N"}])
    assert source.notes == ["the model was traced for sizes of which N >= 4; N % 2 == 0"]


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"y": {0: "N"}}, "names 'y', the model takes input"),
        ([{0: "N"}, {}], "does not say the sizes of input"),
        ({"input": {7: "N"}}, "names axis 7 of input, which has 4"),
        ({"input": {0: "N*2"}}, "calls a size 'N\\*2'"),
        ({"input": ["N"]}, "gives a list for input"),
        (True, "True for a module"),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_the_model(shapes: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        trace(nn.ReLU().eval(), seeded(2, 3, 4, 4), dynamic_shapes=shapes)


def test_a_size_that_the_model_fixes_is_named() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(4)

    with pytest.raises(FrontEndError, match=r"(?s)the model works for one W only, 4|cannot export"):
        traced(model, (seeded(2, 4),), [{1: "W"}])


def test_an_operator_that_needs_a_number_says_which() -> None:
    class Windows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Function(lambda x: x.unfold(2, 2, 2))

        def forward(self, x: torch.Tensor) -> Any:
            return self.inner(x)

    with pytest.raises(FrontEndError, match=r"module inner .*aten.unfold.default needs a static H") as caught:
        trace(Windows().eval(), seeded(1, 3, 8, 8), dynamic_shapes=[{2: "H"}])
    assert "dynamic_shapes" in caught.value.hint


@pytest.fixture
def program() -> torch.export.ExportedProgram:
    model = nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU(inplace=True), nn.Flatten(2)).eval()
    shapes: Mapping[str, Any] = {"input": {0: torch.export.Dim("batch"), 2: torch.export.Dim.AUTO}}
    return torch.export.export(model, (seeded(2, 3, 8, 8),), dynamic_shapes=shapes)


def test_a_program_keeps_its_open_sizes_on_request(program: torch.export.ExportedProgram) -> None:
    source = trace(program, dynamic_shapes=True)
    assert dims(source)[0] == "float32[input_0, 3, input_2, 8]"
    equal_at(source, program.module(), (seeded(1, 3, 9, 8),), (seeded(3, 3, 5, 8),))


def test_a_program_is_fixed_to_the_example_otherwise(program: torch.export.ExportedProgram) -> None:
    before = str(program.graph)
    source = trace(program, seeded(4, 3, 6, 8))
    assert dims(source) == ["float32[4, 3, 6, 8]", "float32[4, 2, 24]"]
    assert types(source.graph) == ["Conv", "Relu", "Reshape"]
    assert any("open sizes" in note for note in source.notes)
    equal_at(source, program.module(), (seeded(4, 3, 6, 8),))
    assert str(program.graph) == before
    with pytest.raises(UsageError, match="names sizes of a program"):
        trace(program, dynamic_shapes={"input": {0: "N"}})


def test_other_sizes_than_the_open_ones_are_refused() -> None:
    source, _ = traced(nn.ReLU(), (seeded(2, 3),), {"input": {0: "N"}})
    with pytest.raises(UsageError, match=r"float32\[N, 3\]"):
        source.reference({"input": np.zeros((2, 4), np.float32)})


def test_larger_sizes_keep_to_the_conditions() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.view(-1, 4) if x.shape[0] % 4 == 0 else x

    source, module = traced(model, (seeded(8),), [{0: "N"}])
    larger = source.at_other_sizes()
    assert larger is not None and larger["tensors_0"].shape == (12,)
    equal_at(source, module, (torch.from_numpy(larger["tensors_0"]),))
    assert trace(nn.ReLU().eval(), seeded(3)).at_other_sizes() is None


@pytest.mark.parametrize("opset", [13, 17])
def test_an_onnx_file_of_open_sizes(opset: int, tmp_path: Path) -> None:
    import onnxruntime

    from caffeforge.runtime.backends import find_any
    from caffeforge.runtime.onnx_out.backend import OnnxBackend
    from caffeforge.runtime.onnx_out.export import export

    backend = find_any(f"onnx_opset{opset}")
    assert isinstance(backend, OnnxBackend)
    model = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.Hardswish(), nn.GELU(), nn.Upsample(scale_factor=2))
    x = seeded(1, 3, 8, 8)
    result = export(backend, model.eval(), x, tmp_path / "net", dynamic_shapes=[IMAGE])
    assert result.verification is not None
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape == ["N", 3, "H", "W"]
    other = seeded(2, 3, 13, 10)
    (found,) = session.run(None, {session.get_inputs()[0].name: other.numpy()})
    with torch.no_grad():
        np.testing.assert_allclose(found, model(other).numpy(), rtol=1e-4, atol=1e-5)


def test_a_caffe_net_refuses_open_sizes_by_name() -> None:
    from caffeforge.runtime.backends import find
    from caffeforge.runtime.legalize import legalize

    source, _ = traced(nn.AvgPool2d(3, 2), (seeded(1, 3, 9, 9),), [{2: "H"}])
    with pytest.raises(LegalizeError, match="needs a static H"):
        legalize(source.graph, find("bvlc"))
