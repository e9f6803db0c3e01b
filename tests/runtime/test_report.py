"""The result of an export and its texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.graph import Origin
from caffeforge.runtime.report import ExportResult
from caffeforge.runtime.verify import verify

FILES = (Path("out/net.prototxt"), Path("out/net.caffemodel"), Path("out/net.map.json"))


def verified() -> ExportResult:
    reference = {"y": np.array([1.0, 2.0, 4.0], np.float32)}
    result = {"y": reference["y"] + np.float32(0.5)}
    verification = verify(reference, result, [("y", "fc", "InnerProduct", Origin("head"))], ["y"])
    return ExportResult(FILES, verification, ("w is cast from float16",), 1, 2_500_000)


def test_files_are_found_by_kind() -> None:
    result = ExportResult(FILES)
    assert result.prototxt == FILES[0] and result.caffemodel == FILES[1]
    with pytest.raises(UsageError, match=r"wrote no \.prototxt file, it wrote net\.onnx"):
        _ = ExportResult((Path("net.onnx"),)).prototxt


def test_errors_are_parts_of_the_scale() -> None:
    assert verified().errors == {"y": pytest.approx(0.125)}
    assert ExportResult(FILES).errors == {}


def test_the_report_names_files_notes_and_the_comparison() -> None:
    report = verified().report()
    for part in (
        *map(str, FILES),
        "note: w is cast from float16",
        "1 layers, 2.5 MB of weights",
        "fc",
        "<< differs",
    ):
        assert part in report
    assert "not verified" in ExportResult(FILES).report()


def test_the_short_text_is_one_line() -> None:
    text = str(verified())
    assert text.startswith("net.prototxt, net.caffemodel, net.map.json: 1 layers; fc (InnerProduct)")
    assert "\n" not in text
