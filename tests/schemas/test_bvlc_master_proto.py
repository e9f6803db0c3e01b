"""schemas/bvlc_master/caffe.proto: bvlc's with the three additions of 2018, and nothing else."""

from caffeforge.generated import bvlc, bvlc_master
from caffeforge.runtime.message import Field, Message

ADDED = {
    "PoolingParameter": {("round_mode", 13, "enum", "optional", "CEIL")},
    "LayerParameter": {
        ("swish_param", 147, "message", "optional", None),
        ("clip_param", 148, "message", "optional", None),
    },
    "SwishParameter": {("beta", 1, "float", "optional", 1.0)},
    "ClipParameter": {("min", 1, "float", "required", None), ("max", 2, "float", "required", None)},
}


def facts(message: type[Message]) -> set[tuple[object, ...]]:
    """Return what the schema says of a message's fields, but for the classes of other messages."""
    return {fact(field) for field in message.FIELDS}


def fact(field: Field) -> tuple[object, ...]:
    return (field.name, field.number, field.kind, field.label, field.default)


def test_all_messages_are_those_of_bvlc_but_for_what_was_added() -> None:
    old, new = bvlc.MESSAGES, bvlc_master.MESSAGES
    assert new.keys() - old.keys() == {"SwishParameter", "ClipParameter"}
    for name, message in new.items():
        before = facts(old[name]) if name in old else set()
        assert facts(message) - before == ADDED.get(name, set()), name
        assert before <= facts(message), name
