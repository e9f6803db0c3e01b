"""schemas/ssd/caffe.proto: SSD's layers beside those of bvlc, as the fact table of its public schema says."""

from __future__ import annotations

import json

import pytest

from caffeforge.generated import bvlc, ssd
from caffeforge.runtime.message import Message
from tests import checkout

FACTS = checkout.ROOT.parent / "shared" / "dialects" / "facts" / "ssd.json"
LAYERS = {
    "annotated_data_param": 200,
    "multibox_loss_param": 201,
    "permute_param": 202,
    "prior_box_param": 203,
    "detection_output_param": 204,
    "detection_evaluate_param": 205,
    "norm_param": 206,
    "video_data_param": 207,
}


def fields(message: type[Message]) -> dict[str, tuple[int, str, str, object]]:
    return {f.name: (f.number, f.kind, f.label, f.default) for f in message.FIELDS}


def test_layers_have_the_fields_of_bvlc_and_those_of_ssd() -> None:
    old, new = fields(bvlc.MESSAGES["LayerParameter"]), fields(ssd.MESSAGES["LayerParameter"])
    assert {name: field[0] for name, field in new.items() if name not in old} == LAYERS
    assert old.items() <= new.items()


@pytest.mark.skipif(not FACTS.exists(), reason="the fact tables of public schemas lie beside some checkouts")
def test_all_messages_are_as_in_the_fact_table() -> None:
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    assert {f"caffe.{name}" for name in ssd.MESSAGES} == set(facts["messages"])
    for name, message in ssd.MESSAGES.items():
        told = {
            row[3]: (row[0], row[1], row[2] if "caffe." not in row[2] else None, row[4])
            for row in facts["messages"][f"caffe.{name}"]["fields"]
        }
        held = {
            f.name: (f.number, f.label, None if f.kind in ("enum", "message") else f.kind, _text(f.default))
            for f in message.FIELDS
        }
        assert held == told, name
    enums = {
        f"caffe.{name}.{f.name}": f.type
        for name, message in ssd.MESSAGES.items()
        for f in message.FIELDS
        if f.kind == "enum"
    }
    known = {json.dumps(sorted(map(list, e["values"]))) for e in facts["enums"].values()}
    for place, values in enums.items():
        assert json.dumps(sorted([number, word] for word, number in values.items())) in known, place


def _text(default: object) -> str | None:
    """Return a default as the table has it."""
    if default is None:
        return None
    return (
        str(default).lower()
        if isinstance(default, bool)
        else f"{default:g}"
        if isinstance(default, float)
        else str(default)
    )
