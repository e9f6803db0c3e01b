"""Changed copies of bvlc's schema: fields renumbered, renamed, retyped, removed, added, other defaults."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

MESSAGES = ("ConvolutionParameter", "PoolingParameter", "InnerProductParameter", "BatchNormParameter",
            "ScaleParameter", "EltwiseParameter", "ReLUParameter", "PowerParameter", "ReshapeParameter",
            "FlattenParameter", "InputParameter", "LayerParameter")  # fmt: skip
KEPT = {"LayerParameter": ("name", "type", "bottom", "top", "blobs")}


def compiled(proto: Path) -> Any:
    """Return a schema as a FileDescriptorProto."""
    target = proto.with_suffix(".bin")
    assert protoc.main(["protoc", f"-I{proto.parent}", f"--descriptor_set_out={target}", proto.name]) == 0
    (file,) = descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file
    return file


def mutate(file: Any, seed: int) -> Any:
    """Return a schema with up to six changes in messages that a common network needs."""
    choose = random.Random(seed)
    changed = type(file)()
    changed.CopyFrom(file)
    for _ in range(choose.randint(1, 6)):
        message = choose.choice([m for m in changed.message_type if m.name in MESSAGES and len(m.field) > 1])
        choose.choice((_renumber, _rename, _retype, _remove, _default, _label, _add))(choose, message)
    return changed


def _field(choose: random.Random, message: Any) -> Any:
    """Return a field; its number apart, what every net needs stays as it is."""
    kept = KEPT.get(message.name, ())
    return choose.choice([f for f in message.field if f.name not in kept])


def _renumber(choose: random.Random, message: Any) -> None:
    one, other = choose.sample(list(message.field), 2)
    one.number, other.number = other.number, one.number
    if choose.random() < 0.5:
        one.number = choose.randint(30000, 40000)


def _rename(choose: random.Random, message: Any) -> None:
    field = _field(choose, message)
    field.name = f"{field.name}_{choose.randint(1, 9)}"


def _retype(choose: random.Random, message: Any) -> None:
    field = _field(choose, message)
    if field.type not in (11, 14):
        field.type = choose.choice((2, 5, 8, 13))
        field.ClearField("default_value")


def _remove(choose: random.Random, message: Any) -> None:
    message.field.remove(_field(choose, message))


def _default(choose: random.Random, message: Any) -> None:
    field = _field(choose, message)
    if field.type in (5, 13) and field.label != 3:
        field.default_value = str(choose.randint(0, 3))
    elif field.type in (1, 2) and field.label != 3:
        field.default_value = choose.choice(("0", "1", "0.5"))
    elif field.type == 8 and field.label != 3:
        field.default_value = choose.choice(("true", "false"))


def _label(choose: random.Random, message: Any) -> None:
    field = _field(choose, message)
    field.ClearField("default_value")
    field.label = choose.choice((1, 3))
    field.options.ClearField("packed")


def _add(choose: random.Random, message: Any) -> None:
    field = message.field.add(name=f"extra_{len(message.field)}", number=50000 + len(message.field), label=1)
    field.type = choose.choice((2, 5, 8))
    if choose.random() < 0.5:
        field.default_value = "true" if field.type == 8 else "1"
