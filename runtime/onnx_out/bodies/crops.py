"""The bodies of ``caffe.CropAndResize`` and ``caffe.PyramidCrop``: boxes sampled as in TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Full
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import element_type
from caffeforge.runtime.onnx_out.bodies.body import Body
from caffeforge.runtime.refusal import Refused

_INT = element_type("int64")
_FLOAT = element_type("float32")
_WHOLE = 224.0  # side of the box, in an image as large, that the fourth level is for
_LEVELS = (2, 5)


class _Maps(NamedTuple):
    """What boxes are sampled from.

    Attributes:
        pixels: (pixels, channels) of all maps, one behind the other.
        start: int64 (boxes, 1, 1): the first pixel of each box's map.
        last: float32 (boxes, 1): the last row and the last column of the map.
        width: int64 (boxes, 1, 1).
    """

    pixels: Value
    start: Value
    last: tuple[Value, Value]
    width: Value


def crop_and_resize(
    builder: Builder, op: caffe_ops.CropAndResize, data: Value, index: Value, boxes: Value, result: Value
) -> None:
    """Build float32 (boxes, channels, *size), as ``references.crops`` does.

    Raises:
        Refused: the size of the map is not known.
    """
    body = Body(builder)
    _, _, height, width = data.shape[:]
    image = body(hub.Cast(to=_INT), body.reshape(index, -1, 1, 1))
    start = body(hub.Mul(), image, Full((), height * width, "int64"))
    last = tuple(body.array(np.array([[size - 1]], np.float32)) for size in (height, width))
    wide = body.array(np.array([[[width]]]))
    maps = _Maps(_pixels(body, data), start, (last[0], last[1]), wide)
    found = _sampled(body, maps, boxes, op.size, op.outside)
    body.give(result, hub.Transpose(perm=(0, 3, 1, 2)), found)


def pyramid_crop(
    builder: Builder,
    op: caffe_ops.PyramidCrop,
    boxes: Value,
    info: Value,
    second: Value,
    third: Value,
    fourth: Value,
    fifth: Value,
    result: Value,
) -> None:
    """Build float32 (images, boxes, channels, *size), as ``references.crops`` does.

    Raises:
        Refused: the number of boxes or the size of a map is not known.
    """
    body = Body(builder)
    levels = (second, third, fourth, fifth)
    images, count = boxes.shape[:2]
    sizes = np.array([level.shape[2:] for level in levels])
    if any(level.shape[0] != images for level in levels):
        raise Refused(f"boxes of {images} images need maps of as many")
    areas = sizes.prod(1)
    begins = np.cumsum([0, *(images * areas)[:-1]])[:, None] + np.arange(images) * areas[:, None]
    at = _levels_of(body, boxes, info)  # (images, count), from 0
    image = np.repeat(np.arange(images), count)
    row = body(hub.Mul(), body.reshape(at, images * count), Full((), images, "int64"))
    place = body(hub.Add(), row, body.array(image))
    level = body.reshape(at, images * count)
    start = body.reshape(body(hub.Gather(axis=0), body.array(begins.reshape(-1)), place), -1, 1, 1)
    last = [
        body.reshape(
            body(hub.Gather(axis=0), body.array((sizes[:, axis] - 1).astype(np.float32)), level), -1, 1
        )
        for axis in (0, 1)
    ]
    wide = body.reshape(body(hub.Gather(axis=0), body.array(sizes[:, 1]), level), -1, 1, 1)
    pixels = body(hub.Concat(axis=0), *(_pixels(body, each) for each in levels))
    maps = _Maps(pixels, start, (last[0], last[1]), wide)
    found = _sampled(body, maps, body.reshape(boxes, images * count, 4), op.size, op.outside)
    body.give(result, hub.Reshape(shape=result.shape[:]), body(hub.Transpose(perm=(0, 3, 1, 2)), found))


def _pixels(body: Body, data: Value) -> Value:
    """Return (images * height * width, channels) of a map."""
    return body.reshape(body(hub.Transpose(perm=(0, 2, 3, 1)), data), -1, data.shape[1])


def _levels_of(body: Body, boxes: Value, info: Value) -> Value:
    """Return which of four maps each box is sampled from, int64 (images, boxes)."""
    images, count = boxes.shape[:2]
    sides = body(hub.Sub(), body.part(boxes, 2, 4), body.part(boxes, 0, 2))
    area = body.reshape(body(hub.ReduceProd(axes=(2,), keepdims=0), sides), images, count)
    whole = body(hub.Cast(to=_INT), body.part(info, 4, 6))  # (images, 2), cut to pixels
    whole = body(hub.Mul(), body.part(whole, 0, 1), body.part(whole, 1, 2))
    unit = body(hub.Div(), Full((), _WHOLE), body(hub.Sqrt(), body(hub.Cast(to=_FLOAT), whole)))
    some = body(hub.Greater(), area, Full((), 0.0))
    safe = body(hub.Where(), some, area, Full((), 1.0))
    part = body(hub.Div(), body(hub.Sqrt(), safe), unit)
    level = body(hub.Round(), body(hub.Div(), body(hub.Log(), part), Full((), log(2))))
    level = body(hub.Add(), level, Full((), 4.0 - _LEVELS[0]))
    level = body(hub.Clip(min=0.0, max=float(_LEVELS[1] - _LEVELS[0])), level)
    return body(hub.Cast(to=_INT), body(hub.Where(), some, level, Full((), 0.0)))


def _sampled(body: Body, maps: _Maps, boxes: Value, size: Sequence[int], outside: float) -> Value:
    """Return maps sampled over boxes (boxes, 4), bilinearly: (boxes, *size, channels)."""
    places = [_places(body, boxes, axis, size[axis], maps.last[axis]) for axis in (0, 1)]
    low = [body(hub.Floor(), at) for at, _ in places]
    high = [body(hub.Ceil(), at) for at, _ in places]
    down, right = (body(hub.Sub(), at, begin) for (at, _), begin in zip(places, low, strict=True))
    down, right = body(hub.Unsqueeze(axes=(2, 3)), down), body(hub.Unsqueeze(axes=(1, 3)), right)

    def of(y: Value, x: Value) -> Value:
        row = body(hub.Unsqueeze(axes=(2,)), body(hub.Cast(to=_INT), y))
        column = body(hub.Unsqueeze(axes=(1,)), body(hub.Cast(to=_INT), x))
        place = body(hub.Add(), body(hub.Mul(), row, maps.width), column)
        return body(hub.Gather(axis=0), maps.pixels, body(hub.Add(), maps.start, place))

    def between(begin: Value, end: Value, part: Value) -> Value:
        return body(hub.Add(), begin, body(hub.Mul(), body(hub.Sub(), end, begin), part))

    top, bottom = (between(of(y, low[1]), of(y, high[1]), right) for y in (low[0], high[0]))
    found = between(top, bottom, down)
    inside = body(
        hub.And(),
        body(hub.Unsqueeze(axes=(2, 3)), places[0][1]),
        body(hub.Unsqueeze(axes=(1, 3)), places[1][1]),
    )
    return body(hub.Where(), inside, found, Full((), outside))


def _places(body: Body, boxes: Value, axis: int, count: int, last: Value) -> tuple[Value, Value]:
    """Return where `count` samples lie along an axis, 0 outside of the map, and which lie inside."""
    begin, end = body.part(boxes, axis, axis + 1), body.part(boxes, axis + 2, axis + 3)
    if count > 1:
        step = body(hub.Mul(), body(hub.Sub(), end, begin), last)
        step = body(hub.Div(), step, Full((), float(count - 1)))
        steps = body(hub.Mul(), body.array(np.arange(count, dtype=np.float32)[None]), step)
        at = body(hub.Add(), body(hub.Mul(), begin, last), steps)
    else:
        at = body(hub.Mul(), body(hub.Mul(), Full((), 0.5), body(hub.Add(), begin, end)), last)
    before, behind = body(hub.Less(), at, Full((), 0.0)), body(hub.Greater(), at, last)
    inside = body(hub.Not(), body(hub.Or(), before, behind))
    return body(hub.Where(), inside, at, Full((), 0.0)), inside
