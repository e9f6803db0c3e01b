"""LSTM, RNN and the LSTM's unit: our reader against real Caffe, with marks known and computed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caffeforge.generated.bvlc import BACKEND, layers
from caffeforge.runtime.array import Dense
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.hub_from_net import hub_from_net
from caffeforge.runtime.loaded import load
from caffeforge.runtime.net import Layer, Net
from tests.e2e.layer_cases import Floats, LayerCase, Random, check, difference, net_of
from tests.real_caffe.witness import Witness

COUNT = 30


def marks(r: Random, steps: int, items: int, exposed: bool) -> Floats:
    """Return continuation marks; what Caffe keeps from an earlier run must not count, so it begins anew."""
    cont = r.whole(2, steps, items)
    if not exposed:
        cont[0] = 0
    return cont


def recurrent(kind: str) -> list[LayerCase]:
    r = Random(1)
    gates = 4 if kind == "LSTM" else 1
    made = []
    for index in range(COUNT):
        steps, items, size = r.pick((1, 2, 5, 7)), r.pick((1, 3)), r.size(2, 6)
        exposed, static = index % 2 == 1, index % 3 == 2
        inner = (r.size(2, 4),) if r.pick((True, True, False)) else (2, 3)
        x = r.normal(steps, items, *inner)
        bottoms = [x, marks(r, steps, items, exposed)]
        blobs = [r.normal(gates * size, int(np.prod(inner))), r.normal(gates * size)]
        if static:
            bottoms.append(r.normal(items, 2, 2))
            blobs.append(r.normal(gates * size, 4))
        blobs.append(r.normal(gates * size, size))
        states = 2 if kind == "LSTM" else 1
        bottoms += [r.normal(1, items, size) for _ in range(states)] if exposed else []
        blobs += [] if kind == "LSTM" else [r.normal(size, size), r.normal(size)]
        fields: dict[str, Any] = {"num_output": size, "expose_hidden": exposed or None}
        param = layers.LSTM(**fields) if kind == "LSTM" else layers.RNN(**fields)
        made.append(LayerCase(param, bottoms, blobs, tops=1 + states * exposed))
    return made


def lstm_unit() -> list[LayerCase]:
    r = Random(2)
    made = []
    for _ in range(COUNT):
        items, size = r.pick((1, 3)), r.size(2, 6)
        bottoms = [r.normal(1, items, size), r.normal(1, items, 4 * size), r.whole(2, 1, items)]
        made.append(LayerCase(layers.LSTMUnit(), bottoms, tops=2))
    return made


CASES: dict[str, Callable[[], list[LayerCase]]] = {
    "LSTM": lambda: recurrent("LSTM"),
    "LSTMUnit": lstm_unit,
    "RNN": lambda: recurrent("RNN"),
}


@pytest.mark.parametrize("kind", CASES)
def test_layer_computes_what_caffe_computes(kind: str, caffe: Witness, tmp_path: Path) -> None:
    check(CASES[kind](), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    check(recurrent("LSTM") + recurrent("RNN"), kendryte, tmp_path)


def known_marks(cont: Floats, x: Floats) -> Net:
    """Return a net of an LSTM whose marks are a Parameter."""
    r = Random(3)
    size = 3
    blobs = [Dense(a) for a in (r.normal(4 * size, x.shape[2]), r.normal(4 * size), r.normal(4 * size, size))]
    shape, marks_shape = layers.BlobShape(dim=x.shape), layers.BlobShape(dim=cont.shape)
    return Net(
        "net",
        [
            Layer("x", layers.Input(shape=(shape,)), (), ("x",)),
            Layer("cont", layers.Parameter(shape=marks_shape), (), ("cont",), (Dense(cont),)),
            Layer("lstm", layers.LSTM(num_output=size), ("x", "cont"), ("h",), tuple(blobs)),
        ],
    )


@pytest.mark.parametrize(
    ("rows", "ops"), [((0, 1, 1, 1, 1), 1), ((0, 1, 0, 1, 1), 2), ((0, 0, 0, 0, 0), 5)], ids=str
)
def test_steps_between_known_marks_are_one_op(
    rows: tuple[int, ...], ops: int, caffe: Witness, tmp_path: Path
) -> None:
    x = Random(4).normal(5, 2, 4)
    net = known_marks(np.repeat(np.array(rows, np.float32)[:, None], 2, axis=1), x)
    graph = hub_from_net(net, BACKEND).graph
    assert sum(node.op.op_type == "LSTM" for node in graph.nodes) == ops
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    expected = caffe.run(prototxt, caffemodel, {"x": x})["h"]
    assert difference(load(prototxt, caffemodel, BACKEND).run({"x": x})["h"], expected) < 1e-5


def test_wrong_number_of_blobs_is_refused(tmp_path: Path) -> None:
    r = Random(5)
    case = LayerCase(layers.LSTM(num_output=2), [r.normal(3, 1, 2), r.whole(2, 3, 1)], [r.normal(8, 2)])
    net, _ = net_of([case])
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    with pytest.raises(ReadError, match="3 blobs are due, 1 are given"):
        load(prototxt, caffemodel, BACKEND)
