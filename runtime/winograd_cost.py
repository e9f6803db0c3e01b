"""Which of Winograd's forms of a convolution is the fastest for onnxruntime, if any: a model of their times.

A time is told in products that the direct form makes meanwhile, as that runs at the speed of the multipliers.
The numbers were fitted to measurements of 24 shapes on an x86 machine with AVX-512 (two cores with 1 MB each,
58 products a nanosecond), where the forms took 0.38 to 1.5 of the direct one's time. Where registers are
narrower, products take longer and the rest does not, so that the forms pay all the more.
"""

from __future__ import annotations

import math
import platform
from typing import Final

from caffeforge.runtime.graph import Node
from caffeforge.runtime.winograd_form import form

_GAIN: Final = 0.8  # part of a time that a form with more weights may take: they take memory
_BLOCK: Final = 16  # channels that onnxruntime keeps together; it has no fast kernel for a part of them
_MACHINES: Final = ("x86_64", "AMD64")  # where it does

_NEAR: Final = 120  # to transform an operand or a result, if all fit in the caches of the cores
_FAR: Final = 200  # the same through other memory
_CACHE: Final = 2_000_000  # bytes
_WEIGHT: Final = 9  # to read a weight
_NODES: Final = 6_000_000  # to start all nodes


def tile(conv: Node) -> int:
    """Return of which tiles to make a 3 x 3 convolution of known shapes, 2 or 4; 0 for the direct form."""
    batch, outs, height, width = conv.outputs[0].shape
    ins = conv.inputs[1].shape[1] if conv.inputs[1] is not None else 0
    if platform.machine() not in _MACHINES or ins % _BLOCK or outs % _BLOCK:
        return 0
    sizes = batch, ins, outs, height, width
    best, best_time = 0, direct_time(*sizes)
    for size in (2, 4):  # of 16 and of 36 weights in place of 9
        needed = winograd_time(size, *sizes)
        if needed <= _GAIN * best_time:
            best, best_time = size, needed
    return best


def direct_time(batch: int, ins: int, outs: int, height: int, width: int) -> float:
    """Return the time of the direct form: to read its weights and to multiply."""
    return 9 * ins * outs * (batch * height * width + _WEIGHT)


def winograd_time(size: int, batch: int, ins: int, outs: int, height: int, width: int) -> float:
    """Return the time of Winograd's form: to read its weights, to multiply and to transform."""
    tiles, places = batch * math.ceil(height / size) * math.ceil(width / size), form(size).span ** 2
    near = 4 * places * tiles * max(ins, outs) <= _CACHE
    transform = (_NEAR if near else _FAR) * (ins + outs) * batch * height * width
    return places * ins * outs * (tiles + _WEIGHT) + transform + _NODES
