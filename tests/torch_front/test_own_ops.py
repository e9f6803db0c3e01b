"""Ops of a backend's own domain: each kind of user code that stands for one is written, read and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import CaffeforgeError, FrontEndError, UsageError
from caffeforge.runtime.export import export
from caffeforge.runtime.leaf import leaf
from caffeforge.runtime.loaded import load
from tests.docs.backends import build
from tests.torch_front.checking import seeded

MAPPING = """
backend: vendory
extends: bvlc
types: {Focus: convolution_param, Warp: power_param, Gate: [], Affine: power_param}
custom:
  vendory.Focus:
    inputs: [X]
    attributes: {block: int = 2}
    shape: ["X.shape[0]", "X.shape[1] * block * block", "X.shape[2] // block", "X.shape[3] // block"]
    torch: ownops::focus
    reference: Y = SpaceToDepth(X, blocksize=block)
  vendory.Warp: {inputs: [X], attributes: {amount: float}}
  vendory.Gate: {inputs: [X, G]}
  vendory.Affine:
    inputs: [X, weight]
    attributes: {shift: float}
    reference: Y = Add(Mul(X, weight), shift)
ops:
  vendory.Focus: {layer: Focus, fields: {stride: "[block]"}}
  vendory.Warp: {layer: Warp, fields: {scale: amount}}
  vendory.Gate: {layer: Gate}
  vendory.Affine: {layer: Affine, fields: {shift: shift}, blobs: [weight]}
layers:
  Focus: {rewrite: "tops[0] = vendory.Focus(bottom, block=stride[0])"}
  Warp: {rewrite: "tops[0] = vendory.Warp(bottom, amount=scale)"}
  Gate: {rewrite: "tops[0] = vendory.Gate(bottoms[0], bottoms[1])"}
  Affine: {rewrite: "tops[0] = vendory.Affine(bottom, blobs[0], shift=shift)"}
"""
IMAGE = seeded(1, 3, 8, 8)


@pytest.fixture(scope="module")
def vendory(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    return build(tmp_path_factory.mktemp("vendory"), MAPPING)


def focus(x: torch.Tensor, block: int) -> torch.Tensor:
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // block, block, w // block, block).permute(0, 3, 5, 1, 2, 4)
    return x.reshape(n, c * block * block, h // block, w // block)


@torch.library.custom_op("ownops::focus", mutates_args=())
def focus_op(x: torch.Tensor, block: int = 2) -> torch.Tensor:
    return torch.from_numpy(focus(x, block).numpy().copy())


@focus_op.register_fake
def _(x: torch.Tensor, block: int = 2) -> torch.Tensor:
    return focus(x, block).contiguous()


class Warp(torch.autograd.Function):
    """NumPy inside, which tracing cannot see."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, amount: float) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.from_numpy(np.sin(x.numpy() * amount))


def gate(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.where(g.numpy() > 0, x.numpy(), 0))


class Affine(nn.Module):
    """Several operators that have one name, and a weight."""

    def __init__(self, shift: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(seeded(3, 1, 1))
        self.shift = shift

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight + self.shift


leaf(Warp, "vendory.Warp")
leaf(gate, "vendory.Gate")
leaf(Affine, "vendory.Affine", weights=["weight"])


class Net(nn.Module):
    """All four kinds; one module is called twice, two modules have other attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Affine(0.5), Affine(2)
        self.conv = nn.Conv2d(12, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(self.first(self.first(x)))
        y = Warp.apply(y, 0.25)
        y = gate(y, torch.relu(x))
        result: torch.Tensor = self.conv(focus_op(y, 2))
        return result


def test_all_kinds_are_one_layer_each_and_compute_what_the_model_does(
    vendory: Backend, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = Net().eval()
    result = export(vendory, model, IMAGE, tmp_path / "net")
    assert result.verification is not None and result.verification.conclusive
    net = load(result.prototxt, result.caffemodel, vendory)
    kinds = [layer.type for layer in net.net.layers if layer.type != "Input"]
    assert kinds == ["Affine"] * 3 + ["Warp", "ReLU", "Gate", "Focus", "Convolution"]
    named = {layer.name: layer for layer in net.net.layers}
    assert {"first", "second", "Warp", "Gate", "focus"} <= named.keys()
    assert np.array_equal(named["first"].blobs[0].numpy(), model.first.weight.detach().numpy())
    other = seeded(1, 3, 8, 8, seed=5)
    with torch.no_grad():
        expected = model(other).numpy()
    (found,) = net.run({"x": other.numpy()}).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_model_is_as_before(vendory: Backend, tmp_path: Path) -> None:
    before = Warp.forward, gate
    model = Net().eval()
    export(vendory, model, IMAGE, tmp_path / "net")
    assert (Warp.forward, gate) == before
    assert not any("forward" in vars(module) for module in model.modules())


def test_marks_count_only_for_backends_that_declare_the_op(tmp_path: Path) -> None:
    from caffeforge.generated.bvlc import export as to_bvlc

    result = to_bvlc(Affine(0.5).eval(), IMAGE, tmp_path / "net")
    assert result.verification is not None and 'type: "Affine"' not in Path(result.prototxt).read_text()


def test_rows_and_the_map_name_module_and_line(vendory: Backend, tmp_path: Path) -> None:
    result = export(vendory, Net().eval(), IMAGE, tmp_path / "net")
    text = (tmp_path / "net.map.json").read_text()
    line = Net.forward.__code__.co_firstlineno + 2
    assert f'"source": "{__file__}:{line}"' in text and '"source_op": "vendory.Warp"' in text
    assert result.verification is not None and "second" in result.verification.table()


def test_an_argument_without_an_attribute_is_refused(vendory: Backend, tmp_path: Path) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = turned(x, 3)
            return y

    with pytest.raises(FrontEndError, match=r"times=3, for which vendory\.Gate has no attribute") as caught:
        export(vendory, Model().eval(), IMAGE, tmp_path / "net")
    assert caught.value.where == f"the model ({__file__}:{Model.forward.__code__.co_firstlineno + 1})"
    assert not list(tmp_path.iterdir())


@torch.library.custom_op("ownops::unknown", mutates_args=())
def unknown(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@unknown.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_an_undeclared_operator_is_told_with_what_to_declare(vendory: Backend, tmp_path: Path) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = unknown(x)
            return y

    with pytest.raises(FrontEndError, match="torch: ownops::unknown") as caught:
        export(vendory, Model().eval(), IMAGE, tmp_path / "net")
    assert f"{__file__}:{Model.forward.__code__.co_firstlineno + 1}" in str(caught.value)


def turned(x: torch.Tensor, times: int) -> torch.Tensor:
    return torch.rot90(x, times)


leaf(turned, "vendory.Gate")


class Hidden(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x)
        return y


def test_weights_that_the_op_would_lose_are_refused(vendory: Backend, tmp_path: Path) -> None:
    model = nn.Sequential(leaf(Hidden(), "vendory.Warp", attributes={"amount": 1.0})).eval()
    with pytest.raises(FrontEndError, match=r"no inputs: inner\.weight, inner\.bias") as caught:
        export(vendory, model, IMAGE, tmp_path / "net")
    assert "module 0" in caught.value.where


def test_a_wrong_mark_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        leaf(gate, "Gate")
    with pytest.raises(UsageError):
        leaf(gate, "vendory.Gate", weights="weight")


def test_a_wrong_shape_rule_is_found(tmp_path: Path) -> None:
    wrong = build(tmp_path, MAPPING.replace("X.shape[1] * block * block", "X.shape[1] * block"))
    with pytest.raises(CaffeforgeError, match=r"by the mapping vendory\.Focus yields"):
        export(wrong, Net().eval(), IMAGE, tmp_path / "net")
