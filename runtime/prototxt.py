"""A Net as prototxt, as Caffe users know it.

The words of a net's frame (``layer``, ``name``, ``bottom`` ...) are the same in all dialects; all else
comes from the typed classes of the layers. `prototxt_reader` is the way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from caffeforge.runtime.float32 import float32_text
from caffeforge.runtime.message import Field, Message
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.wire import check

_ESCAPES: Final = {
    **{byte: f"\\{byte:03o}" for byte in range(256) if not 0x20 <= byte < 0x7F},
    **{0x0A: r"\n", 0x0D: r"\r", 0x09: r"\t", 0x22: r"\"", 0x27: r"\'", 0x5C: r"\\"},
}


def print_net(net: Net) -> str:
    """Return the text of a net: ASCII, two blanks a level, one field a line, the same for equal nets.

    Raises:
        GraphError: a value has no place in its field.
    """
    lines = [f"name: {quote(net.name)}"]
    lines += [f"input: {quote(name)}" for name, _ in net.inputs]
    for _, shape in net.inputs:
        lines += ["input_shape {", *(f"  dim: {dim}" for dim in shape), "}"]
    for layer in net.layers:
        lines += ["layer {", *(f"  {line}" for line in _layer_lines(layer)), "}"]
    return "\n".join(lines) + "\n"


def quote(text: str | bytes) -> str:
    """Return a string as protobuf's text format writes it, in ASCII."""
    raw = text.encode() if isinstance(text, str) else text
    return f'"{raw.decode("latin-1").translate(_ESCAPES)}"'


def _layer_lines(layer: Layer) -> Iterator[str]:
    yield f"name: {quote(layer.name)}"
    yield f"type: {quote(layer.type)}"
    for bottom in layer.bottoms:
        yield f"bottom: {quote(bottom)}"
    for top in layer.tops:
        yield f"top: {quote(top)}"
    for name in layer.shared:
        yield f"param {{ name: {quote(name)} }}"
    if layer.param.PARAM is None:
        yield from _message_lines(layer.param)
    elif any(layer.param.present()):
        yield from _block(layer.param.PARAM.name, layer.param)


def _message_lines(message: Message) -> Iterator[str]:
    for field, value in message.present():
        for item in value if field.label == "repeated" else (value,):
            if field.kind == "message":
                yield from _block(field.name, item)
            else:
                yield f"{field.name}: {_scalar_text(field, item)}"


def _block(name: str, message: Message) -> Iterator[str]:
    yield f"{name} {{"
    yield from (f"  {line}" for line in _message_lines(message))
    yield "}"


def _scalar_text(field: Field, value: Any) -> str:
    check(field, value)
    if field.kind in ("string", "bytes"):
        return quote(value)
    if field.kind == "bool":
        return "true" if value else "false"
    if field.kind == "float":
        return float32_text(value)
    return str(value)
