"""Layers whose top is their bottom: read where real Caffe computes the same as with a top of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime import CaffeforgeError, load
from caffeforge.runtime.backends import find
from tests.e2e import vendor
from tests.e2e.prototxt_cases import Case, Shape, layer, normal
from tests.real_caffe.witness import Witness

SHAPE = (2, 3, 4, 4)
PARAMS = {"Log": "log_param { shift: 9 }", "Power": "power_param { power: 2 shift: 1 }"}
BLOBS: Mapping[str, Sequence[Shape]] = {
    "PReLU": [(3,)],
    "Scale": [(3,)],
    "Bias": [(3,)],
    "BatchNorm": [(3,), (3,), (1,)],
}
SAFE = (*BACKEND.net.in_place, *BACKEND.net.takes_in_place)


def case(kind: str, param: str, top: str, blobs: Sequence[Shape], bottoms: str = "x") -> Case:
    """Return a layer between two others; `top` may be its bottom."""
    inputs = {"data": SHAPE, **({"y": SHAPE} if "y" in bottoms else {})}
    text = layer("Power", "power_param { scale: 0.5 }", "data", "x", "before")
    text += layer(kind, param, bottoms, top) + layer("Power", "", top, "end", "after")
    weights = [abs(normal(f"{kind}{place}", *shape)) for place, shape in enumerate(blobs)]
    return Case(f"{kind}_{top}", text, inputs, {"layer": weights})


@pytest.fixture(scope="module")
def results(caffe: Witness, tmp_path_factory: pytest.TempPathFactory) -> dict[str, vendor.Floats]:
    """What Caffe computes for each safe type in place, and with a top of its own."""
    cases = [case(k, PARAMS.get(k, ""), top, BLOBS.get(k, [])) for k in SAFE for top in ("x", "own")]
    weights = {name: arrays for c in cases for name, arrays in c.weights().items()}
    folder = tmp_path_factory.mktemp("in_place")
    files = vendor.write(folder, "".join(c.text for c in cases), weights)
    feed = {f"{c.name}/data": normal("data", *SHAPE) for c in cases}
    return caffe.run(*files, feed, [f"{c.name}/end" for c in cases])


@pytest.mark.parametrize("kind", SAFE)
def test_safe_types_are_read_in_place(kind: str, results: dict[str, vendor.Floats], tmp_path: Path) -> None:
    given = case(kind, PARAMS.get(kind, ""), "x", BLOBS.get(kind, []))
    found = load(*vendor.write(tmp_path, given.text, given.weights()))
    (end,) = found.run({f"{given.name}/data": normal("data", *SHAPE)}).values()
    np.testing.assert_allclose(results[f"{kind}_x/end"], results[f"{kind}_own/end"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(end, results[f"{kind}_x/end"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["Clip", "Mish", "ReLU6"])
def test_known_layers_are_read_in_place(kind: str, sophgo: Witness, tmp_path: Path) -> None:
    dialect = find("sophgo")
    assert kind in dialect.net.takes_in_place
    given = case(kind, "clip_param { min: -0.2 max: 0.3 }" if kind == "Clip" else "", "x", [])
    files = vendor.write(tmp_path, given.text, {}, "sophgo")
    feed = {f"{given.name}/data": 20 * normal("data", *SHAPE)}
    (end,) = load(files[0], dialect=dialect).run(feed).values()
    expected = sophgo.run(files[0], None, feed)[f"{given.name}/end"]
    np.testing.assert_allclose(end, expected, rtol=1e-4, atol=1e-5)
    assert np.abs(expected - 10 * normal("data", *SHAPE)).max() > 0.1


WRONG: Sequence[tuple[str, str, Sequence[Shape], str]] = (
    ("LRN", "", [], "x"),
    ("Pooling", "pooling_param { kernel_size: 3 pad: 1 stride: 1 }", [], "x"),
    ("Pooling", "pooling_param { pool: AVE kernel_size: 1 }", [], "x"),
    ("InnerProduct", "inner_product_param { num_output: 4 axis: 3 }", [(4, 4), (4,)], "x"),
    ("Convolution", "convolution_param { num_output: 3 kernel_size: 1 }", [(3, 3, 1, 1), (3,)], "x"),
    ("Eltwise", "", [], "x y"),
    ("Eltwise", "eltwise_param { operation: MAX }", [], "x y"),
)


@pytest.mark.parametrize(("kind", "param", "blobs", "bottoms"), WRONG)
def test_types_that_compute_nonsense_in_place_are_refused(
    kind: str, param: str, blobs: Sequence[Shape], bottoms: str, caffe: Witness, tmp_path: Path
) -> None:
    ends = {}
    for top in ("x", "own"):
        given = case(kind, param, top, blobs, bottoms)
        folder = tmp_path / top
        folder.mkdir()
        files = vendor.write(folder, given.text, given.weights())
        feed = {f"{given.name}/{name}": normal(name, *SHAPE) for name in given.inputs}
        ends[top] = caffe.run(*files, feed)[f"{given.name}/end"]
    assert np.abs(ends["x"] - ends["own"]).max() > 1e-3, "Caffe computes this in place"
    load(*vendor.write(tmp_path, given.text, given.weights()))
    given = case(kind, param, "x", blobs, bottoms)
    lines = given.text.splitlines()
    line = next(number for number, text in enumerate(lines, 1) if f'type: "{kind}"' in text)
    with pytest.raises(CaffeforgeError, match=rf"net\.prototxt:{line}:1: .*in place"):
        load(*vendor.write(tmp_path, given.text, given.weights()))


def test_a_top_that_is_the_second_bottom_is_refused(tmp_path: Path) -> None:
    given = Case("second", layer("Bias", "", "x y", "y"), {"x": (2, 3), "y": (3,)})
    with pytest.raises(CaffeforgeError, match="only the first top may be the first bottom"):
        load(vendor.write(tmp_path, given.text, {})[0])


def test_what_layers_overwrite_can_be_observed(caffe: Witness, tmp_path: Path) -> None:
    """In place, as in Caffe's own nets; beside a net in which each layer has a top of its own."""
    layers = [("conv", "Convolution"), ("norm", "BatchNorm"), ("scale", "Scale"), ("relu", "ReLU")]
    params = {"conv": "convolution_param { num_output: 4 kernel_size: 3 }"}
    weights = {
        "conv": [normal("w", 4, 3, 3, 3), normal("b", 4)],
        "norm": [normal("m", 4), abs(normal("v", 4)) + 1, np.ones(1, np.float32)],
        "scale": [normal("s", 4)],
    }

    def text(*, in_place: bool) -> str:
        lines = ['input: "data" input_shape { dim: 1 dim: 3 dim: 6 dim: 6 }']
        bottom = "data"
        for name, kind in layers:
            top = "conv" if in_place else name
            lines.append(
                f'layer {{ name: "{name}" type: "{kind}" bottom: "{bottom}" top: "{top}" '
                f"{params.get(name, '')} }}"
            )
            bottom = top
        return "\n".join(lines)

    for kind in ("own", "one"):
        (tmp_path / kind).mkdir()
    own = vendor.write(tmp_path / "own", text(in_place=False), weights)
    net = load(*vendor.write(tmp_path / "one", text(in_place=True), weights))
    feed = {"data": normal("data", 1, 3, 6, 6)}
    names = [name for name, _ in layers]
    expected = caffe.run(*own, feed, names)
    found = net.run(feed, [*(f"conv@{name}" for name in names), "conv"])
    for name in names:
        np.testing.assert_allclose(found[f"conv@{name}"], expected[name], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found["conv"], found["conv@relu"])
    with pytest.raises(
        CaffeforgeError, match=r"of conv there are conv@conv, conv@norm, conv@scale, conv@relu"
    ):
        net.run(feed, ["conv@pool"])
