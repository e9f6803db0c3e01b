"""Layers of schemas/known_layers.yaml compute what the sources named there do, as loops and NumPy say it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from caffeforge.generated import hub
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.loaded import load
from tests.docs.backends import application, build, written

Floats = npt.NDArray[np.float32]
FIELDS = """message LayerParameter {
  optional ReorgParameter reorg_param = 1001;
  optional ShuffleChannelParameter shuffle_channel_param = 1002;
  optional PermuteParameter permute_param = 1003;
  optional ReLU6Parameter relu6_param = 1004;
  optional UpsampleParameter upsample_param = 1005;
"""
MESSAGES = """
message ReorgParameter { optional uint32 stride = 1; optional bool reverse = 2; }
message ShuffleChannelParameter { optional uint32 group = 1; }
message PermuteParameter { repeated uint32 order = 1; }
message ReLU6Parameter { optional float negative_slope = 1; }
message UpsampleParameter { optional int32 scale = 1 [default = 1]; }
"""
X = np.random.default_rng(4).uniform(-9, 9, (2, 8, 4, 6)).astype(np.float32)
A = np.random.default_rng(5).uniform(-1, 1, (2, 8, 1, 1)).astype(np.float32)


def _backend(folder: Path, reorg: str) -> Backend:
    proto = (SCHEMAS / "bvlc" / "caffe.proto").read_text(encoding="utf-8")
    use = f"use: {{Reorg: {reorg}, Axpy: axpy, HSwish: hard_swish.nart}}\n"
    text = f"backend: vendor\nextends: bvlc\n{use}"
    return build(folder, text, proto.replace("message LayerParameter {", FIELDS) + MESSAGES)


@pytest.fixture(scope="module")
def darknet(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    return _backend(tmp_path_factory.mktemp("darknet"), "reorg.darknet")


@pytest.fixture(scope="module")
def depth(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    return _backend(tmp_path_factory.mktemp("depth"), "reorg.space_to_depth")


def _run(backend: Backend, layer: str, folder: Path, bottoms: tuple[Floats, ...] = (X,)) -> Floats:
    names = [f"x{index}" for index in range(len(bottoms))]
    dims = [" ".join(f"dim: {size}" for size in bottom.shape) for bottom in bottoms]
    text = "".join(
        f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {sizes} }} }} }}\n'
        for name, sizes in zip(names, dims, strict=True)
    )
    read = " ".join(f'bottom: "{name}"' for name in names)
    (folder / "net.prototxt").write_text(f'{text}layer {{ name: "y" {read} top: "y" {layer} }}\n')
    inputs = dict(zip(names, bottoms, strict=True))
    return np.asarray(load(folder / "net.prototxt", None, backend).run(inputs)["y"])


def _darknet_reorg(x: Floats, stride: int) -> Floats:
    """Return darknet's reorganisation, element by element over the sizes of the input."""
    batch, channels, height, width = x.shape
    fewer = channels // stride**2
    out = np.zeros(x.shape, np.float32).reshape(batch, -1)
    for b, c, h, w in np.ndindex(*x.shape):
        offset, inner = divmod(c, fewer)
        row, column = h * stride + offset // stride, w * stride + offset % stride
        source = (inner * height * stride + row) * width * stride + column
        out[b, (c * height + h) * width + w] = x[b].ravel()[source]
    return out.reshape(batch, channels * stride**2, height // stride, width // stride)


def _space_to_depth(x: Floats, stride: int) -> Floats:
    parts = [x[:, :, k // stride :: stride, k % stride :: stride] for k in range(stride**2)]
    return np.concatenate(parts, axis=1)


def test_reorg_orders_data_as_use_says(darknet: Backend, depth: Backend, tmp_path: Path) -> None:
    layer = 'type: "Reorg" reorg_param { stride: 2 }'
    np.testing.assert_array_equal(_run(darknet, layer, tmp_path), _darknet_reorg(X, 2))
    np.testing.assert_array_equal(_run(depth, layer, tmp_path), _space_to_depth(X, 2))
    assert not np.array_equal(_darknet_reorg(X, 2), _space_to_depth(X, 2))


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (
            'type: "ShuffleChannel" shuffle_channel_param { group: 2 }',
            np.stack([X[:, (j % 2) * 4 + j // 2] for j in range(8)], axis=1),
        ),
        ('type: "Permute" permute_param { order: 0 order: 2 order: 3 order: 1 }', X.transpose(0, 2, 3, 1)),
        ('type: "ReLU6"', np.minimum(np.maximum(X, 0), 6)),
        ('type: "Upsample" upsample_param { scale: 3 }', X.repeat(3, axis=2).repeat(3, axis=3)),
        ('type: "HSwish"', X * np.clip(X + 3, 0, 6) / 6),
    ],
    ids=["ShuffleChannel", "Permute", "ReLU6", "Upsample", "HSwish"],
)
def test_layers_compute_what_their_sources_do(
    layer: str, expected: Floats, depth: Backend, tmp_path: Path
) -> None:
    np.testing.assert_allclose(_run(depth, layer, tmp_path), expected, rtol=1e-5, atol=1e-6)


def test_axpy_scales_channels_and_adds(depth: Backend, tmp_path: Path) -> None:
    found = _run(depth, 'type: "Axpy"', tmp_path, (A, X, X[::-1].copy()))
    np.testing.assert_allclose(found, A * X + X[::-1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "layer"),
    [
        ("SpaceToDepth(float32[1, 2, 4, 6], blocksize=2)", "Reorg"),
        ("Transpose(float32[1, 2, 4, 6], perm=(0, 3, 1, 2))", "Permute"),
        ("Clip(float32[2, 3], min=0.0, max=6.0)", "ReLU6"),
        ("HardSwish(float32[2, 3])", "HSwish"),
        (
            "Resize(float32[1, 2, 4, 6], scales=(1.0, 1.0, 2.0, 2.0), mode='nearest', "
            "coordinate_transformation_mode='asymmetric', nearest_mode='floor')",
            "Upsample",
        ),
    ],
)
def test_ops_are_written_as_these_layers(op: str, layer: str, depth: Backend, tmp_path: Path) -> None:
    assert written(depth, application(op, dict(hub.OPS)), tmp_path) == [layer]
