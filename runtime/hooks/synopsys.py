"""Layers of Synopsys' Caffe: recurrent ones in ONNX's order of gates, and PriorBox in forms besides SSD's.

Those of PriorBox are other orders of the boxes, those of FaceBoxes, and boxes of given sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Array, Dense, Joined
from caffeforge.runtime.hooks.bvlc import Bottoms, run_steps, stack
from caffeforge.runtime.lib import in_shape, prior_ratios
from caffeforge.runtime.op import Op
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused

_Box = tuple[float, float, float, float]  # left, top, right, bottom in pixels, counted from a cell's middle
_DENSE = {32: (8, range(-2, 2)), 64: (16, range(-1, 1))}  # FaceBoxes' sides: apart by pixels, at these steps
_SHRUNK = 60  # the side that is cut by a twentieth of the image on all sides, after TensorFlow's


_ACTIVATIONS = {  # ONNX's names, and those of the layers that the cells are made of
    **dict.fromkeys(("Tanh", "tanh", "TanH"), "Tanh"),
    **dict.fromkeys(("Sigmoid", "sigmoid"), "Sigmoid"),
    **dict.fromkeys(("Relu", "relu"), "Relu"),
    **dict.fromkeys(("Softsign", "softsign"), "Softsign"),
}


class Recurrent(Protocol):
    """Synopsys' RecurrentParameter; a number that is None is absent."""

    num_output: int | None
    expose_hidden: bool | None
    linear_before_reset: int | None
    activations: tuple[str, ...]


class Layers(Protocol):
    """Synopsys' RNNv2Parameter."""

    hidden_size: int | None


@dataclass(frozen=True)
class _Size:
    """What a recurrent layer says of its states."""

    num_output: int | None
    expose_hidden: bool | None = False


class Prior(Protocol):
    """Synopsys' PriorBoxParameter; a number that is None is absent."""

    min_size: tuple[float, ...]
    max_size: tuple[float, ...]
    aspect_ratio: tuple[float, ...]
    flip: bool | None
    clip: bool | None
    variance: tuple[float, ...]
    img_size: int | None
    img_h: int | None
    img_w: int | None
    step: float | None
    step_h: float | None
    step_w: float | None
    offset: float | None
    faceboxes: bool | None
    box_width: tuple[float, ...]
    box_height: tuple[float, ...]
    tf: bool | None
    yx_order: bool | None
    keras: bool | None


def read_prior_box(r: Read, param: Prior) -> None:
    """Read a PriorBox: (1, 2, boxes * 4), boxes in parts of the image, then their variances."""
    if len(r.bottoms) != 2:
        raise Refused("two bottoms are due: the feature map and the image")
    rows, columns = r.bottoms[0].shape[2:]
    height, width = _pair(param.img_h, param.img_w, param.img_size) or r.bottoms[1].shape[2:]
    down, right = _pair(param.step_h, param.step_w, param.step) or (height / rows, width / columns)
    offset = 0.5 if param.offset is None else param.offset
    boxes = np.array(list(_boxes(param, (height, width))))
    if not len(boxes) or len(param.variance) not in (0, 1, 4):
        raise Refused("sides of boxes are due, and no variance, one or four")
    if param.faceboxes and not len(param.box_width):
        _check_face_boxes(param, len(boxes))
    x, y = np.meshgrid((np.arange(columns) + offset) * right, (np.arange(rows) + offset) * down)
    middles = np.stack([x, y, x, y], -1)[:, :, None]
    found = (middles + boxes) / [width, height, width, height]
    if param.yx_order:
        found = found[..., [1, 0, 3, 2]]
    flat = found.reshape(-1).clip(0, 1) if param.clip else found.reshape(-1)
    spread = np.resize(np.array(param.variance or [0.1]), flat.shape)
    r.top(0, r.value(hub.Identity(), (Dense(np.stack([flat, spread])[None].astype(np.float32)),)))


def _check_face_boxes(param: Prior, count: int) -> None:
    """Refuse what the source makes no room for, or says in two orders of the axes at once."""
    sides = len(param.min_size)
    each = len(prior_ratios(param.aspect_ratio, param.flip is not False))
    room = (21 if sides == 3 else each * sides) + len(param.max_size)
    if count != room:
        raise Refused(f"of faceboxes the layer has room for {room} boxes at a place, and fills in {count}")
    if param.yx_order and not param.keras:
        raise Refused("yx_order does not turn the squares of faceboxes: give one of both")


def _pair(first: float | None, second: float | None, both: float | None) -> tuple[float, float] | None:
    """Return two numbers that are given, each or both at once."""
    if first is None and second is None:
        return None if both is None else (both, both)
    if both is not None or not first or not second:
        raise Refused("a size or a step is one number, or one for each axis")
    return first, second


def _boxes(param: Prior, image: tuple[float, float]) -> Iterator[_Box]:
    """Yield the boxes around the middle of a cell."""
    if len(param.box_width):
        if len(param.box_width) != len(param.box_height):
            raise Refused("box_width and box_height are of one length")
        yield from (_around(w, h) for w, h in zip(param.box_width, param.box_height, strict=True))
        return
    if len(param.max_size) not in (0, len(param.min_size)):
        raise Refused("there is a max_size for each min_size, or none")
    ratios = prior_ratios(param.aspect_ratio, param.flip is not False)[1:]
    for index, each in enumerate(param.min_size):
        least = int(each)
        most = [_around(*[(least * int(param.max_size[index])) ** 0.5] * 2)] if len(param.max_size) else []
        others = [_around(least * ratio**0.5, least / ratio**0.5) for ratio in ratios]
        if param.keras:
            yield from (*most, _around(least, least), *others)
        elif param.tf:
            yield from (*_squares(param, least, image), *others, *most)
        else:
            yield from (*_squares(param, least, image), *most, *others)


def _squares(param: Prior, side: int, image: tuple[float, float]) -> Iterator[_Box]:
    """Yield the boxes of ratio 1 and one side."""
    if param.faceboxes:
        apart, steps = _DENSE.get(side, (0, range(1)))
        half = (side - 1) / 2
        for i in steps:
            for j in steps:
                x, y = j * apart, i * apart
                yield x - half, y - half, x + half, y + half
    elif param.tf and side == _SHRUNK:
        high, wide = (size / 20 for size in image)
        yield -side / 2 + wide, -side / 2 + high, side / 2 - wide, side / 2 - high
    else:
        yield _around(side, side)


def _around(width: float, height: float) -> _Box:
    return -width / 2, -height / 2, width / 2, height / 2


def read_simple_rnn(r: Read, param: Recurrent) -> None:
    """Read a SimpleRNN: the hidden state is activated weights of the step and of the state before."""
    bottoms = Bottoms(r, param, states=1)
    size = bottoms.size
    inputs, bias, recurrent = _blobs(r, bottoms, 1, [(size, size)])
    op = hub.RNN(hidden_size=size, activations=_activations(param, ("Tanh",)))
    _tops(r, bottoms, op, (stack(inputs), stack(recurrent), stack(_with_zeros(bias))))


def read_gru(r: Read, param: Recurrent) -> None:
    """Read a GRU; its gates are update, reset, new, as ONNX's."""
    bottoms = Bottoms(r, param, states=1)
    size, after = bottoms.size, bool(param.linear_before_reset)
    inputs, bias, *others = _blobs(r, bottoms, 3, [(size, size)] * 3 + [(size,)] * after)
    second: Array = Dense(np.zeros((3 - after) * size, np.float32))
    if after:
        second = Joined([second, others.pop()])
    op = hub.GRU(
        hidden_size=size,
        activations=_activations(param, ("Sigmoid", "Tanh")),
        linear_before_reset=int(after),
    )
    _tops(r, bottoms, op, (stack(inputs), stack(Joined(others)), stack(Joined([bias, second]))))


def read_lstm_v2(r: Read, param: Recurrent) -> None:
    """Read an LSTMV2; its gates are input, output, forget, new, as ONNX's."""
    bottoms = Bottoms(r, param, states=2)
    size = bottoms.size
    inputs, bias, recurrent = _blobs(r, bottoms, 4, [(4 * size, size)])
    op = hub.LSTM(hidden_size=size, activations=_activations(param, ("Sigmoid", "Tanh", "Tanh")))
    _tops(r, bottoms, op, (stack(inputs), stack(recurrent), stack(_with_zeros(bias))))


def read_rnn_v2(r: Read, param: Layers) -> None:
    """Read an RNNv2 of one layer and direction: an LSTMV2 under other names."""
    bottoms = Bottoms(r, _Size(param.hidden_size), states=2)
    size = bottoms.size
    inputs, bias, recurrent = _blobs(r, bottoms, 4, [(4 * size, size)])
    _tops(r, bottoms, hub.LSTM(hidden_size=size), (stack(inputs), stack(recurrent), stack(_with_zeros(bias))))


def read_peephole_lstm(r: Read, param: Recurrent) -> None:
    """Read a PeepholeLSTM: the cell before looks into input and forget, the new one into output."""
    bottoms = Bottoms(r, param, states=2)
    size = bottoms.size
    inputs, bias, recurrent, into, forget, out = _blobs(r, bottoms, 4, [(4 * size, size)] + [(size,)] * 3)
    weights = (stack(inputs), stack(recurrent), stack(_with_zeros(bias)))
    _tops(r, bottoms, hub.LSTM(hidden_size=size), weights, stack(Joined([into, out, forget])))


def _blobs(r: Read, bottoms: Bottoms, gates: int, others: list[tuple[int, ...]]) -> list[Array]:
    """Return the weights of the steps (gates * H, D), their bias, and other blobs of these shapes."""
    rows = gates * bottoms.size
    count = 2 + bottoms.static + len(others)
    if len(r.blobs) != count:
        raise Refused(f"{count} blobs are due, {len(r.blobs)} are given")
    inputs = [in_shape(r.blobs[0], (rows, prod(r.bottoms[0].shape[2:])))]
    if bottoms.static:
        inputs.append(in_shape(r.blobs[2], (rows, prod(r.bottoms[2].shape[1:]))))
    behind = [in_shape(r.blobs[2 + bottoms.static + i], shape) for i, shape in enumerate(others)]
    wide = inputs[0] if len(inputs) == 1 else Joined(inputs, axis=1)
    return [wide, in_shape(r.blobs[1], (rows,)), *behind]


def _with_zeros(bias: Array) -> Array:
    """Return a bias, and behind it that of the state, which these layers do not have."""
    return Joined([bias, Dense(np.zeros(bias.shape, np.float32))])


def _activations(param: Recurrent, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return ONNX's names of a cell's functions; those that are not given are the usual ones."""
    given = param.activations[: len(default)]
    unknown = [name for name in given if name not in _ACTIVATIONS]
    if unknown or len(param.activations) > len(default):
        raise Refused(f"up to {len(default)} activations of {', '.join(sorted(set(_ACTIVATIONS)))} are read")
    return tuple(_ACTIVATIONS[name] for name in given) + default[len(given) :]


def _tops(
    r: Read, bottoms: Bottoms, op: Op, weights: tuple[Array, ...], peepholes: Array | None = None
) -> None:
    """Say what the tops hold: all hidden states, and the last states where they are exposed."""
    every, states = run_steps(r, bottoms, op, weights, peepholes)
    r.top(0, every)
    if bottoms.exposed:
        for index, state in enumerate(states, 1):
            r.top(index, state)
