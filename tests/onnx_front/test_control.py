"""If, Loop and Scan: what is decided before the model runs is unrolled; Caffe refuses the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from caffeforge.generated import bvlc
from caffeforge.runtime.backends import find_any
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.onnx_front import read
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.export import export as export_onnx

X = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
TRUE, THREE = np.array(True), np.array(3)

BRANCHES = """
    y = If (c) <
        then_branch = yes () => (float[a,b] t) { t = Relu(x) },
        else_branch = no () => (float[a,b] e) { e = Neg(x) } >
"""
STEPS = """
    <body = step (int64 i, bool on, float[2,6] s) => (bool on2, float[2,6] s2, float[2,6] k) {
        on2 = Identity(on)  s2 = Add(s, x)  k = Mul(s, s)
    }>
"""
SCAN = """
    z = Constant<value = float[6] {0.0, 0.0, 0.0, 0.0, 0.0, 0.0}>()
    y, k = Scan<num_scan_inputs = 1, body = step (float[6] s, float[6] r) => (float[6] s2, float[6] o) {
        s2 = Add(s, r)  o = Relu(s2)
    }>(z, x)
"""
COUNTED = """
    go = Constant<value = bool {1}>()
    zero = Constant<value = int64 {0}>()
    c, y = Loop(, go, zero, x)
    <body = step (int64 i, bool on, int64 k, float[2,6] s) => (bool on2, int64 k2, float[2,6] s2) {
        one = Constant<value = int64 {1}>()
        four = Constant<value = int64 {4}>()
        k2 = Add(k, one)  on2 = Less(k2, four)  s2 = Add(s, x)
    }>
"""
UNTIL = """
    go = Constant<value = bool {1}>()
    y = Loop(, go, x) <body = step (int64 i, bool on, float[2,6] s) => (bool on2, float[2,6] s2) {
        m = ReduceMax<keepdims = 0>(s)
        h = Constant<value = float {9.0}>()
        on2 = Less(m, h)  s2 = Add(s, s)
    }>
"""


def times(count: int) -> str:
    n, go = f"int64 {{{count}}}", "bool {1}"
    return f"n = Constant<value = {n}>() go = Constant<value = {go}>() y, ks = Loop(n, go, x)"


ONE, BOTH = "(float[2,6] x) => (float[a,b] y)", "(float[2,6] x) => (float[a,b] y, float[c,d,e] ks)"
DECIDED: dict[str, tuple[str, str, list[str]]] = {
    "If of an initializer": (f"{ONE} <bool c = {{1}}>", BRANCHES, ["Relu"]),
    "If of a size": (
        ONE,
        "s = Shape(x) i = Constant<value = int64 {1}>() n = Gather(s, i) c = Greater(n, i)" + BRANCHES,
        ["Relu"],
    ),
    "Loop of three": (BOTH, times(3) + STEPS, ["Add", "Mul"] * 3 + ["Unsqueeze"] * 3 + ["Concat"]),
    "Loop that never runs": (ONE, times(0) + STEPS, ["Identity"]),
    "Loop that counts itself": (ONE, COUNTED, ["Add"] * 4),
    "Scan": (ONE.replace("[a,b]", "[a]"), SCAN, ["Gather", "Add"] * 2),
}
OPEN: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "If": (f"{ONE.replace(')', ', bool c)', 1)}", BRANCHES, {"c": TRUE}, "its condition is computed"),
    "Loop": (
        BOTH.replace(")", ", int64 n)", 1),
        "go = Constant<value = bool {1}>() y, ks = Loop(n, go, x)" + STEPS,
        {"n": THREE},
        "how often it runs is computed",
    ),
    "Loop of 1000": (BOTH, times(1000) + STEPS, {}, "it runs 1000 times, up to 256 are unrolled"),
    "Loop until": (ONE, UNTIL, {}, "when it ends is computed"),
}


def model(signature: str, body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> net {signature} {{ {body} }}')


@pytest.mark.parametrize("name", DECIDED)
def test_what_is_decided_is_unrolled_and_caffe_takes_it(name: str, tmp_path: Path) -> None:
    signature, body, ops = DECIDED[name]
    made = model(signature, body)
    source = read(made, X)
    kinds = [node.op.op_type for node in source.graph.nodes]
    assert kinds == ops or sorted(kinds) == sorted(ops)
    assert source.notes == []
    if name != "Loop that never runs":  # which Caffe has no reason to run
        result = bvlc.export(made, X, tmp_path / "net")
        assert result.verification is not None and result.verification.passed
    np.testing.assert_allclose(
        Executor(source.graph).run({"x": X})["y"], source.reference({"x": X})["y"], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("name", OPEN)
def test_what_is_open_runs_and_is_refused_by_caffe_alone(name: str, tmp_path: Path) -> None:
    signature, body, more, reason = OPEN[name]
    made, feed = model(signature, body), {"x": np.abs(X), **more}
    source = read(made, feed)
    assert reason in source.notes[0]
    found = Executor(source.graph).run(feed)
    for output, array in source.reference(feed).items():
        if output in found:
            np.testing.assert_allclose(found[output], array, rtol=1e-5)
    with pytest.raises(LegalizeError, match=reason):
        bvlc.export(made, feed, tmp_path / "net")
    backend = find_any("onnx_opset17")
    assert isinstance(backend, OnnxBackend)
    result = export_onnx(backend, made, feed, tmp_path / "net")
    assert result.verification is not None and result.verification.passed
