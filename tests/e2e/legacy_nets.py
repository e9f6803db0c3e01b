"""Random nets of the formats V0 and V1, as protobuf messages: every field that Caffe's own upgrade knows."""

from __future__ import annotations

from random import Random
from typing import Any

from caffeforge.runtime.legacy import v0_net
from tests.e2e import vendor

_SOURCES = ("data", "hdf5_data", "images", "window_data")  # types of V0 that read nothing
_DEEPEST = 2  # messages within messages
_LATER = {"InfogainLossParameter.axis"}  # which came after the Caffe that tests ask


def v0_net_of(seed: int) -> Any:
    """Return a net of the oldest format: with padding layers, in place and not, read once or more often."""
    random = Random(seed)
    net = vendor.net_parameter()(name="net")
    if random.random() < 0.8:
        _input(net)
    blobs = list(net.input)
    padded: set[str] = set()
    for index in range(random.randint(1, 8)):
        layer = net.layers.add()
        old = layer.layer
        bottom = random.choice(blobs) if blobs else ""
        old.name, old.type = f"layer{index}", _kind(random, bottom in padded)
        if not bottom:
            old.type = random.choice(_SOURCES)
        elif old.type not in _SOURCES:
            layer.bottom.append(bottom)
        top = f"top{index}" if random.random() < 0.7 or not bottom else bottom
        layer.top.append(top)
        blobs += [top] if top not in blobs else []
        padded.discard(top)
        if old.type == "padding":
            old.pad = random.randint(0, 3)
            padded.add(top)
            continue
        _fill_v0(old, random)
    return net


def v1_net_of(seed: int) -> Any:
    """Return a net of the format V1, whose layers set any field, of their type or not."""
    random = Random(seed)
    net = vendor.net_parameter()(name="net")
    if random.random() < 0.5:
        _input(net)
    elif random.random() < 0.5:
        net.input.append("data")
        net.input_shape.add().dim.extend([1, 3, 8])
    for index in range(random.randint(1, 6)):
        layer = net.layers.add()
        names = ("layer", "type", "name", "bottom", "top", "blobs", "include", "exclude")
        _fill(layer, random, 0.15, without=names)
        layer.name = f"layer{index}"
        layer.type = random.choice(layer.DESCRIPTOR.fields_by_name["type"].enum_type.values).number
        layer.bottom.append("data")
        layer.top.append(f"top{index}")
        rules = random.choice([layer.include, layer.exclude, None, None])
        if rules is not None:
            _fill(rules.add(), random, 0.5)
    return net


def with_blobs(net: Any, seed: int) -> Any:
    """Return a net with weights, in the shapes of that time, where its format has them."""
    random = Random(seed)
    for layer in net.layers:
        holder = layer.layer if layer.HasField("layer") else layer
        for _ in range(random.randint(0, 2)):
            blob = holder.blobs.add(num=1, channels=1, height=2, width=3)
            blob.data.extend(random.random() for _ in range(6))
    return net


def _input(net: Any) -> None:
    net.input.append("data")
    net.input_dim.extend([1, 3, 8, 8])


def _kind(random: Random, padded: bool) -> str:
    if padded and random.random() < 0.9:
        return random.choice(["conv", "pool"])
    return random.choice(list(v0_net.TYPES)) if random.random() < 0.7 else "padding"


def _fill_v0(old: Any, random: Random) -> None:
    """Set fields that the layer's type has, and of the others those that all types have."""
    own = [name for name, (_, kinds) in v0_net._FIELDS.items() if old.type in kinds]
    common = ["scale", "meanfile", "cropsize", "mirror", "blobs_lr", "weight_decay"]
    for name in (*own, *common):
        if random.random() < 0.4:
            _set(old, old.DESCRIPTOR.fields_by_name[name], random, 0)
    if old.type == "hdf5_output":
        old.hdf5_output_param.file_name = "file"


def _fill(message: Any, random: Random, share: float, depth: int = 0, without: tuple[str, ...] = ()) -> None:
    for field in message.DESCRIPTOR.fields:
        if field.name in without or f"{message.DESCRIPTOR.name}.{field.name}" in _LATER:
            continue
        if random.random() < share:
            _set(message, field, random, depth)


def _set(message: Any, field: Any, random: Random, depth: int) -> None:
    """Set a field to something, one to three times if it is repeated."""
    if field.message_type is not None and depth >= _DEEPEST:
        return
    for _ in range(random.randint(1, 3) if field.is_repeated else 1):
        if field.message_type is not None:
            inner = getattr(message, field.name)
            inner = inner.add() if field.is_repeated else inner
            inner.SetInParent()
            _fill(inner, random, 0.5, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).append(_number(field, random))
        else:
            setattr(message, field.name, _number(field, random))


def _number(field: Any, random: Random) -> Any:
    if field.type == field.TYPE_STRING:
        return random.choice(["a", "x y", "\u00e4"])
    if field.type == field.TYPE_BYTES:
        return b"ab"
    if field.type == field.TYPE_ENUM:
        return random.choice(field.enum_type.values).number
    if field.type == field.TYPE_BOOL:
        return random.random() < 0.5
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return random.choice([0, 0.5, 1, 2.25, -3])
    return random.randint(0, 9)
