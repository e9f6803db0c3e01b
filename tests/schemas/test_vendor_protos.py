"""The schemas of vendors' dialects say what the fact tables of their published schemas say."""

from __future__ import annotations

import importlib
import json

import pytest

from caffeforge.runtime.backend import Backend
from tests import checkout

TABLES = checkout.ROOT.parent / "shared" / "dialects" / "facts"
FACTS = {
    "acuity": "acuitylite",
    "compass": "armchina_compass",
    "inisis": "inisis",
    "kendryte": "kendryte_caffe_pypi",
    "mobilenet_yolo": "mobilenet_yolo",
    "opencv": "opencv_4.5.5",
    "openvino": "openvino_dev_2022.3",
    "segnet": "segnet",
    "sophgo": "sophgo_caffe",
    "thead": "thead",
}


def _text(default: object) -> str | None:
    """Return a default as the tables have it."""
    if default is None:
        return None
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:.9g}" if isinstance(default, float) else str(default)


@pytest.mark.skipif(not TABLES.exists(), reason="the fact tables of public schemas lie beside some checkouts")
@pytest.mark.parametrize("dialect", sorted(FACTS))
def test_all_messages_are_as_in_the_fact_table(dialect: str) -> None:
    facts = json.loads((TABLES / f"{FACTS[dialect]}.json").read_text(encoding="utf-8"))
    package = facts["package"] + "."
    backend: Backend = importlib.import_module(f"caffeforge.generated.{dialect}").BACKEND
    assert {package + name for name in backend.messages} == set(facts["messages"])
    for name, message in backend.messages.items():
        told = {
            row[3]: (
                row[0],
                row[1],
                row[2] if package not in row[2] else None,
                _text_of_table(row[4], row[2]),
            )
            for row in facts["messages"][package + name]["fields"]
        }
        held = {
            f.name: (f.number, f.label, None if f.kind in ("enum", "message") else f.kind, _text(f.default))
            for f in message.FIELDS
        }
        assert held == told, name


def _text_of_table(default: str | None, kind: str) -> str | None:
    return f"{float(default):.9g}" if default is not None and kind in ("float", "double") else default


def test_fields_that_a_vendor_adds_are_known_where_the_base_has_known_layers_too() -> None:
    """SSD's Caffe has DetectionOutput of the known layers, T-Head's ceil_mode beside that."""
    readers = importlib.import_module("caffeforge.generated.thead").READERS
    assert {"ceil_mode", "round_mode"} <= set(readers["Pooling"].reads)
