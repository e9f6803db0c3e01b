"""Layers that act on each element by itself: our reader against real Caffe, many settings a type."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated.bvlc import BACKEND, layers
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.loaded import load
from caffeforge.runtime.message import LayerParam
from caffeforge.runtime.net import Layer, Net
from tests.e2e.layer_cases import Floats, LayerCase, Random, check, net_of
from tests.real_caffe.witness import Witness

COUNT = 30


def sizes(r: Random) -> tuple[int, ...]:
    """Return sizes of two to four axes, the batch 1 or 3, odd and even."""
    axes = r.size(2, 4)
    return (
        r.pick((1, 3)),
        r.size(3, 9) if axes > 2 else r.size(25, 35),
        *(r.size(3, 7) for _ in range(axes - 2)),
    )


def plain(param: Callable[[Random], LayerParam], positive: bool = False) -> list[LayerCase]:
    """Return cases of one bottom: numbers of both signs, or positive ones."""
    r = Random(1)
    made = []
    for _ in range(COUNT):
        shape = sizes(r)
        made.append(LayerCase(param(r), [r.positive(*shape) if positive else r.normal(*shape, scale=3)]))
    return made


def exp(r: Random) -> LayerParam:
    return layers.Exp(
        base=r.pick((None, -1.0, 2.0, 0.3)), scale=r.pick((None, 0.5, -0.7)), shift=r.pick((None, 0.8))
    )


def log(r: Random) -> LayerParam:
    return layers.Log(
        base=r.pick((None, -1.0, 2.0, 0.3)), scale=r.pick((None, 0.5, 2.0)), shift=r.pick((None, 0.8))
    )


def power() -> list[LayerCase]:
    r = Random(2)
    made = []
    for exponent in (None, 1.0, 2.0, 3.0, -1.0, 0.5, 1.7, -0.5, -1.3, -2.0):
        for _ in range(3):
            param = layers.Power(power=exponent, scale=r.pick((None, 0.5, 2.0)), shift=r.pick((None, 0.3)))
            made.append(LayerCase(param, [r.positive(*sizes(r))]))
    made += [LayerCase(layers.Power(power=e, scale=0.5), [r.normal(3, 4, 5)]) for e in (2.0, 3.0, -1.0)]
    x = r.normal(3, 4)
    constants = [layers.Power(scale=0.0, shift=3.0), layers.Power(power=0.0), layers.Power(scale=0.0)]
    return made + [LayerCase(param, [x], varies=False) for param in constants]


def prelu() -> list[LayerCase]:
    r = Random(3)
    made = []
    for _ in range(COUNT):
        x = r.normal(*sizes(r))
        shared = r.pick((None, False, True))
        slopes = r.normal() if shared else r.normal(x.shape[1])
        made.append(LayerCase(layers.PReLU(channel_shared=shared), [x], [slopes]))
    return made


CASES: dict[str, Callable[[], list[LayerCase]]] = {
    "AbsVal": lambda: plain(lambda r: layers.AbsVal()),
    "BNLL": lambda: plain(lambda r: layers.BNLL()),
    "Dropout": lambda: plain(lambda r: layers.Dropout(dropout_ratio=r.pick((None, 0.3)))),
    "ELU": lambda: plain(lambda r: layers.ELU(alpha=r.pick((None, 0.3, 2.0)))),
    "Exp": lambda: plain(exp),
    "Log": lambda: plain(log, positive=True),
    "Power": power,
    "PReLU": prelu,
    "ReLU": lambda: plain(lambda r: layers.ReLU(negative_slope=r.pick((None, 0.0, 0.1, -0.5)))),
    "Sigmoid": lambda: plain(lambda r: layers.Sigmoid()),
    "TanH": lambda: plain(lambda r: layers.TanH()),
    "Threshold": lambda: plain(lambda r: layers.Threshold(threshold=r.pick((None, 0.4, -1.0)))),
}


@pytest.mark.parametrize("kind", CASES)
def test_layer_computes_what_caffe_computes(kind: str, caffe: Witness, tmp_path: Path) -> None:
    check(CASES[kind](), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    check([case for cases in CASES.values() for case in cases()], kendryte, tmp_path)


def test_large_numbers_do_not_overflow(caffe: Witness, tmp_path: Path) -> None:
    x = np.array([[-200, -100, -60, -25, -1e-6, 0, 1e-6, 25, 60, 100, 200]], np.float32)
    params = [layers.BNLL(), layers.ELU(), layers.Sigmoid(), layers.TanH(), layers.Power(power=2.0)]
    check([LayerCase(param, [x]) for param in params], caffe, tmp_path)


def test_power_of_scale_zero_does_not_read_its_bottom(caffe: Witness, tmp_path: Path) -> None:
    nan = np.full((2, 3), np.nan, np.float32)
    params = [layers.Power(scale=0.0, shift=2.0, power=3.0), layers.Power(power=0.0)]
    check([LayerCase(param, [nan], varies=False) for param in params], caffe, tmp_path)


@pytest.mark.parametrize(
    "param",
    [
        layers.BNLL(),
        layers.ELU(),
        layers.Exp(scale=0.3),
        layers.Log(shift=9.0),
        layers.Power(power=2.0),
        layers.ReLU(negative_slope=0.1),
        layers.Sigmoid(),
        layers.Softmax(),
        layers.TanH(),
        layers.Threshold(),
        layers.Dropout(),
        layers.MVN(),
    ],
    ids=lambda param: param.TYPE,
)
def test_layer_in_place(param: LayerParam, caffe: Witness, tmp_path: Path) -> None:
    x = Random(4).normal(3, 5, 4, 7)
    shape = (layers.BlobShape(dim=x.shape),)
    net = Net(
        "net",
        [
            Layer("x", layers.Input(shape=shape), (), ("x",)),
            Layer("half", layers.Power(scale=0.5), ("x",), ("y",)),
            Layer("inside", param, ("y",), ("y",)),
            Layer("once", layers.Power(scale=3.0), ("y",), ("once",)),
            Layer("again", layers.AbsVal(), ("y",), ("again",)),
        ],
    )
    expected, found = both(net, {"x": x}, caffe, tmp_path)
    assert set(expected) == {"once", "again"}
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5 * np.abs(array).max())


def both(
    net: Net, inputs: dict[str, Floats], witness: Witness, folder: Path
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the outputs of a net by Caffe and by ourselves."""
    prototxt, caffemodel, _ = write_files(net, BACKEND, folder / "net", "{}\n")
    return witness.run(prototxt, caffemodel, inputs), load(prototxt, caffemodel, BACKEND).run(inputs)


def test_exp_of_a_base_that_is_no_base_is_refused(tmp_path: Path) -> None:
    net, _ = net_of([LayerCase(layers.Exp(base=-2.0), [Random(5).normal(2, 3)])])
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    with pytest.raises(ReadError, match="base is a positive number, or -1 for e"):
        load(prototxt, caffemodel, BACKEND)
