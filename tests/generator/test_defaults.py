"""Inherited rules and a proto whose defaults differ: what depends on one is dropped or refused, no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeforge.generator.generate import Package, generate, write
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.errors import CaffeforgeError
from tests.generator.dialects import imported

PROTO = (SCHEMAS / "bvlc" / "caffe.proto").read_text(encoding="utf-8")
STATS = "optional bool use_global_stats = 1"
NET = """
layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: 1 dim: 2 dim: 4 dim: 4 }} }} }}
layer {{ name: "bn" type: "BatchNorm" bottom: "x" top: "y" batch_norm_param {{ {} }} }}
"""


def backend(folder: Path, old: str, new: str, after: str = "syntax") -> Package:
    """Return the package of bvlc's proto with the first `old` behind `after` replaced, and no mapping."""
    head, mark, tail = PROTO.partition(after)
    assert old in tail
    source = folder / "vendorx"
    source.mkdir()
    (source / "caffe.proto").write_text(head + mark + tail.replace(old, new, 1), encoding="utf-8")
    return generate(source)


def reasons(package: Package, subject: str) -> set[str]:
    return {dropped.reason for dropped in package.dropped if dropped.subject == subject}


def test_a_field_that_is_always_written_may_have_another_default(tmp_path: Path) -> None:
    package = backend(tmp_path, f"{STATS};", f"{STATS} [default = true];")
    assert package.dropped == ()
    assert "def emit_batch_normalization(" in package.files["emit.py"]


def test_a_field_that_is_left_out_may_not(tmp_path: Path) -> None:
    package = backend(
        tmp_path, "global_pooling = 12 [default = false]", "global_pooling = 12 [default = true]"
    )
    (reason,) = reasons(package, "MaxPool")
    assert reason == "PoolingParameter.global_pooling has default True, False is expected"
    assert "def emit_global_average_pool(" in package.files["emit.py"]  # which sets it


def test_only_the_ways_that_leave_it_out_are_dropped(tmp_path: Path) -> None:
    old = "optional uint32 pad_h = 9 [default = 0]"
    package = backend(tmp_path, old, old.replace("= 0", "= 1"), "message PoolingParameter {")
    (dropped,) = [dropped for dropped in package.dropped if dropped.subject == "AveragePool"]
    assert dropped.reason == "PoolingParameter.pad_h has default 1, 0 is expected"
    assert "pad_h=pads[0]" in package.files["emit.py"].replace("op.", "")


def test_the_default_of_a_size_for_one_axis_means_nothing_where_it_matters_whether_it_is_set(
    tmp_path: Path,
) -> None:
    """The Caffe of inisis has one; its layers ask by has_stride_h(), as all do."""
    old = "optional uint32 stride_h = 13"
    package = backend(tmp_path, old, f"{old} [default = 1]", "message ConvolutionParameter {")
    assert package.dropped == ()
    assert "stride_h = param.stride_h if param.stride_h is not None else 0" in package.files["read.py"]


def test_a_field_without_meaning_may_have_any_default(tmp_path: Path) -> None:
    old = "optional Engine engine = 15 [default = DEFAULT]"
    assert backend(tmp_path, old, old.replace("DEFAULT", "CUDNN")).dropped == ()


def test_a_default_written_out_is_the_one_that_was_meant(tmp_path: Path) -> None:
    assert backend(tmp_path, f"{STATS};", f"{STATS} [default = false];").dropped == ()


def test_a_required_field_that_no_rule_writes_drops_what_writes_its_message(tmp_path: Path) -> None:
    head = "message BatchNormParameter {"
    package = backend(tmp_path, head, f"{head} required int32 core = 90;")
    (reason,) = reasons(package, "BatchNormalization")
    assert reason == "BatchNormParameter.core is required, and the rule does not write it"


def test_a_layer_is_read_where_the_field_is_set_and_refused_where_it_is_absent(tmp_path: Path) -> None:
    package = backend(tmp_path, f"{STATS};", f"{STATS} [default = true];")
    write(package, tmp_path / "out")
    module = imported(tmp_path / "out" / package.name)
    absent = "use_global_stats is not set: .* has default True"
    for parameters, sentence in (("use_global_stats: true", "three blobs are due"), ("eps: 0.1", absent)):
        (tmp_path / "net.prototxt").write_text(NET.format(parameters))
        with pytest.raises(CaffeforgeError, match=sentence):  # there are no weights in any case
            module.load(tmp_path / "net.prototxt")
