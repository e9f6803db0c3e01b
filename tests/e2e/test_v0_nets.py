"""Nets of the oldest format (V0, 2013), and AlexNet in it and in V1: read as real Caffe upgrades them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from caffeforge.runtime import CaffeforgeError, load
from tests.e2e import vendor
from tests.e2e.layer_cases import Random, difference
from tests.real_caffe.witness import Witness

SHAPE = (2, 3, 67, 59)


class Part(NamedTuple):
    """One layer of AlexNet with an eighth of its channels, in both formats; `blobs` are old, of four axes."""

    name: str
    v0: str
    v1: str
    top: str = ""
    blobs: tuple[tuple[int, ...], ...] = ()


def conv(name: str, count: int, channels: int, size: int, v0: str = "", v1: str = "", pad: str = "") -> Part:
    shared = f"num_output: {count} weight_filler {{ type: 'gaussian' std: 0.01 }}"
    return Part(
        name,
        f"type: 'conv' {shared} kernelsize: {size} {v0} blobs_lr: 1. blobs_lr: 2. weight_decay: 1.",
        "type: CONVOLUTION blobs_lr: 1 blobs_lr: 2 "
        f"convolution_param {{ {shared} kernel_size: {size} {v1} {pad} }}",
        blobs=((count, channels, size, size), (1, 1, 1, count)),
    )


def fc(name: str, count: int, inputs: int) -> Part:
    return Part(
        name,
        f"type: 'innerproduct' num_output: {count}",
        f"type: INNER_PRODUCT inner_product_param {{ num_output: {count} }}",
        blobs=((1, 1, count, inputs), (1, 1, 1, count)),
    )


def others(kind: str, number: int, top: str) -> Part:
    name = f"{kind}{number}"
    if kind == "relu":
        return Part(name, "type: 'relu'", "type: RELU", top)
    if kind == "drop":
        return Part(
            name,
            "type: 'dropout' dropout_ratio: 0.5",
            "type: DROPOUT dropout_param { dropout_ratio: 0.5 }",
            top,
        )
    if kind == "pool":
        return Part(
            name,
            "type: 'pool' pool: MAX kernelsize: 3 stride: 2",
            "type: POOLING pooling_param { pool: MAX kernel_size: 3 stride: 2 }",
        )
    return Part(
        name,
        "type: 'lrn' local_size: 5 alpha: 0.0001 beta: 0.75",
        "type: LRN lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }",
    )


def padding(name: str, pad: int) -> Part:
    return Part(name, f"type: 'padding' pad: {pad}", "")


ALEXNET = (
    conv("conv1", 12, 3, 11, "stride: 4", "stride: 4"),
    others("relu", 1, "conv1"),
    others("pool", 1, ""),
    others("norm", 1, ""),
    padding("pad2", 2),
    conv("conv2", 32, 6, 5, "group: 2", "group: 2", "pad: 2"),
    others("relu", 2, "conv2"),
    others("pool", 2, ""),
    others("norm", 2, ""),
    padding("pad3", 1),
    conv("conv3", 48, 32, 3, pad="pad: 1"),
    others("relu", 3, "conv3"),
    padding("pad4", 1),
    conv("conv4", 48, 24, 3, "group: 2", "group: 2", "pad: 1"),
    others("relu", 4, "conv4"),
    padding("pad5", 1),
    conv("conv5", 32, 24, 3, "group: 2", "group: 2", "pad: 1"),
    others("relu", 5, "conv5"),
    others("pool", 5, ""),
    fc("fc6", 64, 32),
    others("relu", 6, "fc6"),
    others("drop", 6, "fc6"),
    fc("fc7", 64, 64),
    others("relu", 7, "fc7"),
    others("drop", 7, "fc7"),
    fc("fc8", 20, 64),
    Part("prob", "type: 'softmax'", "type: SOFTMAX"),
)


def text(version: int) -> str:
    """Return AlexNet in the format V0 or V1; only V0 has layers of padding."""
    lines = ["name: 'AlexNet'", "input: 'data'", *(f"input_dim: {size}" for size in SHAPE)]
    bottom = "data"
    for part in ALEXNET:
        if not version or part.v1:
            top = part.top or part.name
            inside = (
                f"layer {{ name: '{part.name}' {part.v0} }}"
                if not version
                else f"name: '{part.name}' {part.v1}"
            )
            lines.append(f"layers {{ {inside} bottom: '{bottom}' top: '{top}' }}")
            bottom = top
    return "\n".join(lines)


def write(folder: Path, version: int) -> tuple[Path, Path]:
    """Write AlexNet; its weights lie in the inner layer in V0, and have four axes in both."""
    prototxt, caffemodel = folder / f"v{version}.prototxt", folder / f"v{version}.caffemodel"
    prototxt.write_text(text(version))
    proto = vendor.parse(text(version))
    shapes = {part.name: part.blobs for part in ALEXNET}
    random = Random(0)
    for layer in proto.layers:
        holder: Any = layer if version else layer.layer
        for shape in shapes[holder.name]:
            blob = holder.blobs.add()
            blob.num, blob.channels, blob.height, blob.width = shape
            scale = (2 / np.prod(shape[1:])) ** 0.5 if shape[0] > 1 else 0.1
            blob.data.extend(random.normal(int(np.prod(shape)), scale=float(scale)).tolist())
    caffemodel.write_bytes(proto.SerializeToString())
    return prototxt, caffemodel


@pytest.mark.parametrize("version", [0, 1])
def test_alexnet_computes_what_caffe_does(version: int, caffe: Witness, tmp_path: Path) -> None:
    files = write(tmp_path, version)
    inputs = {"data": Random(1).normal(*SHAPE)}
    names = ["conv1", "norm1", "conv2", "conv3", "conv4", "pool5", "fc7", "fc8", "prob"]
    expected, found = caffe.run(*files, inputs, names), load(*files).run(inputs, names)
    for name in names:
        assert expected[name].std() > 1e-3, name
        assert difference(found[name], expected[name]) < 1e-5, name
    alone = load(files[1]).run(inputs, ["fc8"])
    assert difference(alone["fc8"], expected["fc8"]) < 1e-5


EVERY_FIELD = """
input: "x" input_dim: 1 input_dim: 4 input_dim: 8 input_dim: 8
input: "z" input_dim: 1 input_dim: 2 input_dim: 8 input_dim: 8
layers { layer { name: "p" type: "padding" pad: 1 } bottom: "x" top: "p" }
layers { layer { name: "ave" type: "pool" pool: AVE kernelsize: 3 stride: 2 } bottom: "p" top: "ave" }
layers { layer { name: "max" type: "pool" kernelsize: 2 stride: 2 pad: 1 } bottom: "x" top: "max" }
layers { layer { name: "both" type: "concat" concat_dim: 1 } bottom: "x" bottom: "z" top: "both" }
layers { layer { name: "conv" type: "conv" num_output: 2 kernelsize: 3 biasterm: false
  weight_filler { type: "constant" value: 0.1 } } bottom: "both" top: "conv" }
layers { layer { name: "lrn" type: "lrn" local_size: 3 alpha: 2 beta: 0.5 } bottom: "both" top: "lrn" }
layers { layer { name: "tanh" type: "tanh" } bottom: "conv" top: "conv" }
layers { layer { name: "flat" type: "flatten" } bottom: "conv" top: "flat" }
layers { layer { name: "bnll" type: "bnll" } bottom: "z" top: "bnll" }
layers { layer { name: "sigmoid" type: "sigmoid" } bottom: "z" top: "sigmoid" }
"""


def test_each_field_goes_where_caffe_puts_it(caffe: Witness, tmp_path: Path) -> None:
    prototxt = tmp_path / "net.prototxt"
    prototxt.write_text(EVERY_FIELD)
    proto = vendor.parse(EVERY_FIELD)
    blob = next(layer.layer for layer in proto.layers if layer.layer.name == "conv").blobs.add()
    blob.num, blob.channels, blob.height, blob.width = 2, 6, 3, 3
    blob.data.extend(Random(2).normal(108).tolist())
    caffemodel = tmp_path / "net.caffemodel"
    caffemodel.write_bytes(proto.SerializeToString())
    inputs = {"x": Random(3).normal(1, 4, 8, 8), "z": Random(4).normal(1, 2, 8, 8)}
    expected, found = caffe.run(prototxt, caffemodel, inputs), load(prototxt, caffemodel).run(inputs)
    assert expected.keys() == found.keys() == {"ave", "max", "lrn", "flat", "bnll", "sigmoid"}
    for name, array in expected.items():
        assert difference(found[name], array) < 1e-5, name


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        ('layer { name: "c" type: "relu" group: 2 } bottom: "x" top: "c"', "sets group, which its type relu"),
        ('layer { name: "c" type: "crop" } bottom: "x" top: "c"', "type 'crop', which the oldest format"),
        ('layer { name: "c" type: "relu" } bottom: "p" top: "c"', "reads padding: only conv and pool"),
        ('name: "c" type: RELU bottom: "x" top: "c"', "a layer of a later format stands among"),
    ],
)
def test_what_caffe_does_not_upgrade_is_refused_with_its_place(layer: str, says: str, tmp_path: Path) -> None:
    prototxt = tmp_path / "net.prototxt"
    prototxt.write_text(
        'input: "x" input_dim: 1 input_dim: 2 input_dim: 4 input_dim: 4\n'
        'layers { layer { name: "p" type: "padding" pad: 1 } bottom: "x" top: "p" }\n'
        f"layers {{ {layer} }}\n"
    )
    with pytest.raises(CaffeforgeError, match=rf"net\.prototxt:3:1: .*{says}"):
        load(prototxt)


@pytest.mark.parametrize(("kind", "message"), [("DATA", "data_param"), ("IMAGE_DATA", "image_data_param")])
def test_what_old_data_layers_do_to_images_tells_the_shape(kind: str, message: str, tmp_path: Path) -> None:
    """crop_size stood in the parameters of the layer before ``transform_param`` took it."""
    prototxt = tmp_path / "net.prototxt"
    prototxt.write_text(
        f'layers {{ name: "d" type: {kind} top: "data" '
        f'{message} {{ source: "s" batch_size: 2 crop_size: 9 }} }}\n'
        'layers { name: "r" type: RELU bottom: "data" top: "r" }\n'
    )
    if kind == "DATA":
        with pytest.raises(CaffeforgeError, match=r"layer d \(Data\): the net does not tell the shape"):
            load(prototxt)
    else:
        assert load(prototxt).inputs == {"data": (2, 3, 9, 9)}
