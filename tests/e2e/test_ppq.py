"""PPQ's own parser and executor read nets of its dialect as we do; tests/runners/ppq.sh installs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.loaded import load
from tests.e2e import vendor
from tests.e2e.known_formulas import CHANNELS, C, Floats, X, noise
from tests.real_caffe.witness import cache_directory
from tests.runners import ppq_nets

PPQ = cache_directory() / "ppq"
HOLES = "num_output: 4 kernel_h: 3 kernel_w: 2 hole_h: 1 hole_w: 2"
OTHER = noise(2, 8, 4, 6, seed=1)
# A layer, its bottoms, its blobs.
LAYERS: dict[str, tuple[str, list[Floats], list[Floats]]] = {
    "add": ('type: "Add"', [X, OTHER[:, :1]], []),
    "average": ('type: "Pooling" pooling_param { pool: AVE kernel_size: 2 stride: 2 pad: 1 }', [X], []),
    "batch_norm": (
        'type: "BatchNorm" batch_norm_param { use_global_stats: true eps: 0.1 }',
        [X],
        [C[0], C[1], np.array([2], np.float32)],
    ),
    "bn": ('type: "BN" bn_param { var_eps: 0.1 }', [X], CHANNELS),
    "bn_moving": ('type: "BN" bn_param { moving_average: true var_eps: 0.1 }', [X], CHANNELS),
    "channel_shuffle": ('type: "ChannelShuffle" channel_shuffle_param { group: 2 }', [X], []),
    "clip": ('type: "Clip" clip_param { min: -1 max: 0.5 }', [X], []),
    "convolution": (
        'type: "Convolution" convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 }',
        [X],
        [noise(4, 8, 3, 3, seed=2), C[0][:4]],
    ),
    "deconvolution": (
        'type: "Deconvolution" convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 }',
        [X],
        [noise(8, 4, 3, 3, seed=3), C[0][:4]],
    ),
    "eltwise": ('type: "Eltwise" eltwise_param { coeff: [1, -0.5] }', [X, OTHER], []),
    "eltwise_product": ('type: "Eltwise" eltwise_param { operation: PROD }', [X, OTHER], []),
    "floor": ('type: "Pooling" pooling_param { kernel_size: 3 stride: 2 ceil_mode: false }', [X], []),
    "holes": (
        f'type: "Convolution" convolution_param {{ {HOLES} }}',
        [X],
        [noise(4, 8, 3, 2, seed=4), C[0][:4]],
    ),
    "hswish": ('type: "HSwish"', [X], []),
    "inner_product": (
        'type: "InnerProduct" inner_product_param { num_output: 5 }',
        [X],
        [noise(5, 8 * 4 * 6, seed=5), C[0][:5]],
    ),
    "instance_norm": (
        'type: "InstanceNorm" instance_norm_param { num_features: 8 eps: 0.1 affine: true }',
        [X],
        [C[0], C[1]],
    ),
    "interp": ('type: "Interp" interp_param { height: 9 width: 11 }', [X], []),
    "interp_shrink": ('type: "Interp" interp_param { shrink_factor: 2 }', [X], []),
    "interp_zoom": ('type: "Interp" interp_param { zoom_factor: 3 }', [X], []),
    "matmul": ('type: "MatMul"', [noise(2, 4, 5, seed=6), noise(2, 5, 3, seed=7)], []),
    "max": ('type: "Pooling" pooling_param { kernel_size: 3 stride: 2 }', [X], []),
    "mean": ('type: "Pooling" pooling_param { pool: AVE global_pooling: true }', [X], []),
    "mul": ('type: "Mul"', [X, OTHER[:, :, :1, :1]], []),
    "power": ('type: "Power" power_param { power: 2 scale: 0.5 shift: 1 }', [X], []),
    "prelu": ('type: "PReLU"', [X], [C[0]]),
    "relu6": ('type: "ReLU6"', [X], []),
    "reshape": ('type: "Reshape" reshape_param { shape { dim: [0, 4, -1] } }', [X], []),
    "scale": ('type: "Scale" scale_param { bias_term: true }', [X], [C[0], C[1]]),
    "softmax": ('type: "Softmax" softmax_param { axis: -1 }', [X], []),
    "subpixel_down": ('type: "SubpixelDown" subpixel_down_param { downsample: 2 }', [X], []),
    "subpixel_up": ('type: "SubpixelUp" subpixel_up_param { upsample: 2 }', [X], []),
    "transpose": ('type: "Transpose" transpose_param { dim: [0, 2, 3, 1] }', [X], []),
}


def write(folder: Path, name: str) -> tuple[Path, Path]:
    """Write the net of a layer, and what it reads beside it."""
    layer, bottoms, blobs = LAYERS[name]
    names = [f"x{index}" for index in range(len(bottoms))]
    text = ""
    for bottom, array in zip(names, bottoms, strict=True):
        text += f'input: "{bottom}" input_shape {{ dim: {[*array.shape]} }}\n'
    read = " ".join(f'bottom: "{bottom}"' for bottom in names)
    folder.mkdir()
    given: dict[str, Floats] = dict(zip(names, bottoms, strict=True))
    np.savez(folder / "inputs.npz", **given)  # type: ignore[arg-type]
    return vendor.write(folder, f'{text}layer {{ name: "y" {read} top: "y" {layer} }}\n', {"y": blobs}, "ppq")


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each layer with its net, and what PPQ made of it."""
    if not (PPQ / "ppq").exists():
        pytest.skip("PPQ is not installed; tests/runners/ppq.sh installs it")
    folder = tmp_path_factory.mktemp("ppq")
    for name in LAYERS:
        write(folder / name, name)
    subprocess.run([sys.executable, "-I", ppq_nets.__file__, PPQ, folder], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_a_layer_computes_what_ppq_does(name: str, nets: Path) -> None:
    folder = nets / name
    assert not (folder / "error.txt").exists(), (folder / "error.txt").read_text()
    given, theirs = np.load(folder / "inputs.npz"), np.load(folder / "outputs.npz")
    loaded = load(folder / "net.prototxt", folder / "net.caffemodel", find("ppq"))
    found = loaded.run({name: given[name] for name in given.files})
    np.testing.assert_allclose(found["y"], theirs["y"], rtol=1e-4, atol=1e-4 * float(abs(theirs["y"]).max()))


def test_the_slope_of_hsigmoid_is_another_in_ppq_and_so_it_is_refused(nets: Path, tmp_path: Path) -> None:
    text = 'input: "x0" input_shape { dim: [1, 5] }\n'
    text += 'layer { name: "y" bottom: "x0" top: "y" type: "HSigmoid" }\n'
    (tmp_path / "net").mkdir()
    files = vendor.write(tmp_path / "net", text, {}, "ppq")
    x = np.linspace(-2, 2, 5, dtype=np.float32)[None]
    np.savez(tmp_path / "net" / "inputs.npz", x0=x)
    subprocess.run([sys.executable, "-I", ppq_nets.__file__, PPQ, tmp_path], check=True, capture_output=True)
    theirs = np.load(tmp_path / "net" / "outputs.npz")["y"]
    np.testing.assert_allclose(theirs, 0.2 * x + 0.5, rtol=1e-5)
    with pytest.raises(CaffeforgeError, match="its slope is 1/6 for NART"):
        load(*files, find("ppq"))
