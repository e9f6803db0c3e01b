"""What Caffe's last state adds to Caffe 1.0: sizes rounded down, Swish and Clip."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caffeforge.generated.bvlc_master import BACKEND, layers
from caffeforge.runtime.assemble import assemble
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.loaded import load
from caffeforge.runtime.net import Layer, Net
from tests.e2e.layer_cases import TOLERANCE, Floats, Random, difference
from tests.real_caffe.witness import Witness

Params = list[tuple[layers.Pooling | layers.Swish | layers.Clip, Floats]]


def net_of(params: Params) -> tuple[Net, dict[str, Floats]]:
    """Return a net that holds layers as independent branches, and its inputs."""
    made: list[Layer] = []
    for index, (param, x) in enumerate(params):
        made.append(
            Layer(f"x{index}", layers.Input(shape=(layers.BlobShape(dim=x.shape),)), (), (f"x{index}",))
        )
        made.append(Layer(f"layer{index}", param, (f"x{index}",), (f"y{index}",)))
    return Net("net", made), {f"x{index}": x for index, (_, x) in enumerate(params)}


def pools() -> Params:
    r = Random(1)
    made: Params = []
    pool: Any
    for pool, kernel, stride, pad, size in itertools.product(
        ("MAX", "AVE"), (2, 3), (1, 2, 3), (0, 1), (6, 7, 8)
    ):
        mode: Any = r.pick(("FLOOR", "FLOOR", "CEIL"))
        param = layers.Pooling(pool=pool, kernel_size=kernel, stride=stride, pad=pad, round_mode=mode)
        made.append((param, r.normal(r.pick((1, 3)), 2, size, size + 1)))
    return made


def test_layers_compute_what_caffe_computes(kendryte: Witness, tmp_path: Path) -> None:
    r = Random(2)
    swish: Params = [(layers.Swish(beta=beta), r.normal(2, 3, 4)) for beta in (None, 0.5, -1.0)]
    net, inputs = net_of(pools() + swish)
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    expected = kendryte.run(prototxt, caffemodel, inputs)
    found = load(prototxt, caffemodel, BACKEND).run(inputs)
    assert len(expected) == len(net.layers) // 2
    for name, array in expected.items():
        assert difference(found[name], array) <= TOLERANCE, name


def test_clip_keeps_what_lies_between_its_bounds(tmp_path: Path) -> None:
    x = Random(3).normal(2, 3, 4)
    net, inputs = net_of([(layers.Clip(min=-0.3, max=0.7), x)])
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    found = load(prototxt, caffemodel, BACKEND).run(inputs)["y0"]
    np.testing.assert_array_equal(found, np.clip(x, np.float32(-0.3), np.float32(0.7)))


def test_clip_with_its_bounds_exchanged_is_refused(tmp_path: Path) -> None:
    net, _ = net_of([(layers.Clip(min=1.0, max=-1.0), Random(4).normal(2, 3))])
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    with pytest.raises(ReadError, match="min is more than max"):
        load(prototxt, caffemodel, BACKEND)


OPS = {
    "MaxPool(x, kernel_shape=(3, 3), strides=(2, 2))": ["Pooling"],
    "MaxPool(x, kernel_shape=(2, 2), strides=(2, 2), pads=(1, 1, 1, 1))": ["Pooling"],
    "MaxPool(x, kernel_shape=(3, 3), strides=(2, 2), pads=(0, 0, 1, 1))": ["Pooling"],
    "AveragePool(x, kernel_shape=(3, 3), strides=(2, 2))": ["Pooling"],
    "AveragePool(x, kernel_shape=(3, 3), strides=(3, 3), pads=(1, 1, 1, 1), count_include_pad=1)": [
        "Pooling"
    ],
    "Swish(x)": ["Swish"],
    "Swish(x, alpha=1.5)": ["Swish"],
}


@pytest.mark.parametrize("op", OPS)
def test_op_is_one_layer(op: str, kendryte: Witness, tmp_path: Path) -> None:
    graph = Graph.parse(f"def net(x: float32[2, 3, 8, 10]):\n    y = {op}\n    return y\n", {})
    x = Random(5).normal(2, 3, 8, 10)
    expected = Executor(graph).run({"x": x})["y"]
    net = assemble(graph, legalize(graph, BACKEND), BACKEND)
    assert [layer.type for layer in net.layers[1:]] == OPS[op]
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    found = kendryte.run(prototxt, caffemodel, {"x": x})["y"]
    assert difference(found, expected) <= TOLERANCE


@pytest.mark.parametrize(
    "op",
    [
        "MaxPool(x, kernel_shape=(2, 2), strides=(2, 2), dilations=(2, 2))",
        "AveragePool(x, kernel_shape=(2, 2), strides=(2, 2), dilations=(2, 2))",
        "AveragePool(x, kernel_shape=(2, 2), strides=(2, 2), pads=(0, 0, 1, 1))",
        "HardSigmoid(x)",
    ],
)
def test_what_one_layer_cannot_say_is_said_by_several(op: str, tmp_path: Path) -> None:
    """With 7 rows a window of two with a gap has as many places as one without, rounded down."""
    graph = Graph.parse(f"def net(x: float32[2, 3, 7, 9]):\n    y = {op}\n    return y\n", {})
    x = Random(6).normal(2, 3, 7, 9)
    expected = Executor(graph).run({"x": x})["y"]
    net = assemble(graph, legalize(graph, BACKEND), BACKEND)
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    assert difference(load(prototxt, caffemodel, BACKEND).run({"x": x})["y"], expected) <= TOLERANCE


def test_clip_is_one_layer() -> None:
    graph = Graph.parse("def net(x: float32[2, 3]):\n    y = Clip(x, min=0.0, max=6.0)\n    return y\n", {})
    net = assemble(graph, legalize(graph, BACKEND), BACKEND)
    assert net.layers[1].param == layers.Clip(min=0.0, max=6.0)
