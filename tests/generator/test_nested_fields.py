"""Fields of messages within a layer's parameters: an absent one is its default, an unread one is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.loaded import load
from tests.docs.backends import build
from tests.generator.test_cases import CASES
from tests.generator.test_defaults import backend, reasons

NET = """
name: "nested"
layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: 5 }} }} }}
layer {{ name: "warp" type: "Warp" bottom: "x" top: "y" warp_param {{ {} }} }}
"""
X = np.array([-2.0, -0.5, 0.0, 0.5, 2.0], np.float32)


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    mapping, proto = (
        (CASES / "nested_fields" / name).read_text(encoding="utf-8")
        for name in ("mapping.yaml", "caffe.proto")
    )
    return build(tmp_path_factory.mktemp("nested"), mapping, proto)


def _elu(alpha: float) -> NDArray:
    result: NDArray = np.where(X > 0, X, alpha * (np.exp(X) - 1))
    return result


def _leaky(x: NDArray, slope: float) -> NDArray:
    result: NDArray = np.where(x > 0, x, slope * x)
    return result


@pytest.mark.parametrize(
    ("parameters", "alpha", "scales", "slope"),
    [
        ("outer { middle { } } axes { }", 0.75, [0.5], 0.25),
        ("outer { middle { inner { } } } axes { } axes { scale: 2.0 }", 0.75, [0.5, 2.0], 0.25),
        ("outer { middle { inner { last { } } } lambda: 0.1 } axes { count: 4 }", 0.75, [0.5], 0.1),
        ("outer { middle { inner { last { value: 3.0 } mode: SOFT } } } axes { }", 3.0, [0.5], 0.25),
    ],
)
def test_an_absent_field_is_its_default(
    parameters: str, alpha: float, scales: list[float], slope: float, nested: Backend, tmp_path: Path
) -> None:
    (tmp_path / "net.prototxt").write_text(NET.format(parameters))
    found = load(tmp_path / "net.prototxt", None, nested).run({"x": X})["y"]
    a = _elu(alpha)
    expected = sum(a * scale for scale in scales) + _leaky(a, slope) + np.maximum(X, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ("axes { }", "soft"),  # has(outer.middle)
        ("outer { middle { inner { mode: HARD } } } axes { }", "soft"),
        ("outer { middle { places: 1 } } axes { }", "soft"),
        ("outer { middle { inner { label: 'x' } } } axes { }", "field outer.middle.inner.label is set"),
    ],
)
def test_what_is_set_is_read_or_refused(
    parameters: str, sentence: str, nested: Backend, tmp_path: Path
) -> None:
    (tmp_path / "net.prototxt").write_text(NET.format(parameters))
    with pytest.raises(CaffeforgeError, match=sentence):
        load(tmp_path / "net.prototxt", None, nested)


def test_an_inherited_rule_that_meets_another_default_within_a_message_is_dropped(tmp_path: Path) -> None:
    old = "optional uint32 crop_size = 3 [default = 0]"
    package = backend(tmp_path, old, old.replace("= 0", "= 7"))
    (reason,) = reasons(package, "ImageData")
    assert reason == "TransformationParameter.crop_size has default 7, 0 is expected"
