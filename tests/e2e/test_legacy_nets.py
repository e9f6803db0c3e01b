"""Random nets of the formats before 2015, text and weights: upgraded as Caffe's own functions do it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime import caffemodel_reader
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.net_state import State
from caffeforge.runtime.private_pool import PrivatePool
from caffeforge.runtime.prototxt_reader import Source, _Reader
from tests.e2e import vendor
from tests.e2e.legacy_nets import v0_net_of, v1_net_of, with_blobs
from tests.real_caffe import upgrade
from tests.real_caffe.witness import Witness

COUNT = 100  # of each format
POOL = PrivatePool(BACKEND)
# Caffe makes these messages for every data layer, we only for one that has something to say in them.
MADE = ("data_param", "image_data_param", "window_data_param", "transform_param")


@pytest.fixture(scope="module")
def folder(caffe: Witness, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("Caffe's upgrade is compiled by g++")
    return tmp_path_factory.mktemp("legacy")


def plain(layers: Iterable[Any]) -> list[str]:
    """Return layers as text, without what is empty."""
    texts = []
    for layer in layers:
        for name in MADE:
            if layer.HasField(name) and not getattr(layer, name).ByteSize():
                layer.ClearField(name)
        texts.append(text_format.MessageToString(layer))
    return texts


def of_caffe(raw: bytes) -> tuple[list[Any], list[tuple[str, tuple[int, ...]]]]:
    """Return the layers of an upgraded net without the one for its inputs, and those."""
    net: Any = POOL.message("NetParameter")()
    net.ParseFromString(raw)
    layers, inputs = list(net.layer), []
    if layers and layers[0].type == "Input":
        first = layers.pop(0)
        inputs = [(top, tuple(s.dim)) for top, s in zip(first.top, first.input_param.shape, strict=True)]
    return layers, inputs


@pytest.mark.parametrize("make", [v0_net_of, v1_net_of])
def test_texts_are_upgraded_as_caffe_does(make: Any, folder: Path) -> None:
    texts = [text_format.MessageToString(make(seed)) for seed in range(COUNT)]
    files = [folder / f"{make.__name__}{seed}.prototxt" for seed in range(COUNT)]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    refused = 0
    for text, raw in zip(texts, upgrade.upgraded(files), strict=True):
        net: Any = POOL.message("NetParameter")()
        text_format.Parse(text, net)
        reader = _Reader(BACKEND, POOL, Source(text, "net"), State())
        given, faults = reader._given(net)
        assert bool(faults) == (raw is None), text
        if raw is None:
            refused += 1
            continue
        layers, inputs = of_caffe(raw)
        assert plain(reader._today(layer, net) for layer in given.values()) == plain(layers)
        assert list(reader._inputs(net)) == inputs
    assert refused < COUNT / 4


@pytest.mark.parametrize("make", [v0_net_of, v1_net_of])
def test_weights_are_upgraded_as_caffe_does(make: Any, folder: Path) -> None:
    files = [folder / f"{make.__name__}{seed}.caffemodel" for seed in range(COUNT)]
    for seed, file in enumerate(files):
        file.write_bytes(with_blobs(make(seed), seed).SerializeToString())
    read = 0
    for file, raw in zip(files, upgrade.upgraded(files), strict=True):
        expected, _ = of_caffe(raw or b"")
        if not expected:  # refused, or of padding layers alone
            with pytest.raises(CaffeforgeError):
                caffemodel_reader.read(file, BACKEND, POOL)
            continue
        found = caffemodel_reader.read(file, BACKEND, POOL).layers
        layers = []
        for saved, layer in zip(found, expected, strict=True):
            for array, blob in zip(saved.blobs, layer.blobs, strict=True):
                np.testing.assert_array_equal(array.numpy().reshape(-1), np.array(blob.data, np.float32))
            layer.ClearField("blobs")
            whole: Any = POOL.message("LayerParameter").FromString(saved.rest)
            whole.name, whole.type = saved.name, saved.type
            whole.bottom.extend(saved.bottoms)
            whole.top.extend(saved.tops)
            layers.append(whole)
        assert plain(layers) == plain(expected)
        read += 1
    assert read > COUNT * 3 / 4


def test_the_random_nets_are_those_of_their_formats() -> None:
    nets = [v0_net_of(seed) for seed in range(COUNT)]
    kinds = {layer.layer.type for net in nets for layer in net.layers}
    assert len(kinds) > 20 and "padding" in kinds
    assert any(layer.bottom[:] == layer.top[:] for net in nets for layer in net.layers)
    one = vendor.net_parameter()()
    text_format.Parse(text_format.MessageToString(v1_net_of(1)), one)
    assert one == v1_net_of(1) and all(not layer.HasField("layer") for layer in one.layers)
