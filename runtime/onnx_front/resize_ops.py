"""Resize, its older self Upsample, and GridSample: what is sampled at places between elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor
from typing import Any, Final

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense, NDArray
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Dim, Value, constant
from caffeforge.runtime.onnx_front import generic
from caffeforge.runtime.onnx_front.call import Call, Unconvertible
from caffeforge.runtime.onnx_front.registry import converts


@converts("Upsample")
def upsample(call: Call) -> Sequence[Value]:
    """Resize whose coordinates are multiples of the scale, rounded down."""
    given = call.op.fields_by_name()
    mode = {"bilinear": "linear", "trilinear": "linear"}.get(given["mode"], given["mode"])
    return _resized(call, given.get("scales"), mode)


@converts("Resize")
def resize(call: Call) -> Sequence[Value]:
    """In opset 10 it is Upsample that may also shrink; from 11 on empty inputs are absent ones."""
    given = call.op.fields_by_name()
    if call.op.since == 10:
        return _resized(call, None, given["mode"])
    for index in (1, 2, 3):
        operand = call.operand(index)
        if operand is not None and operand.dims == (0,):
            call.inputs[index] = None
    if given.get("coordinate_transformation_mode") != "tf_crop_and_resize" and call.operand(1) is not None:
        call.inputs[1] = None  # nothing reads it
    scales = call.constant(2)
    if call.operand(3) is not None and scales is not None:
        call.inputs[2] = None  # sizes go before scales where old files give both
    elif scales is not None:
        _set_scales(call, given, scales)
    return generic.convert(call, _places(given))


def _places(given: Mapping[str, Any]) -> dict[str, str]:
    """Return where elements are sampled, if the hub says it otherwise than the node.

    TensorFlow's (i + 1/2) / scale rounded down is the half-pixel place, 1/2 less, rounded halves up.
    """
    if given.get("coordinate_transformation_mode") != "tf_half_pixel_for_nn":
        return {}
    if given["mode"] != "nearest" or given["nearest_mode"] != "floor":
        raise Unconvertible("coordinate_transformation_mode=tf_half_pixel_for_nn left ONNX in opset 13")
    return {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}


@converts("GridSample")
def grid_sample(call: Call) -> Sequence[Value]:
    """Before opset 20 the modes have the names that they have for images."""
    mode = call.op.fields_by_name()["mode"]
    return generic.convert(call, {"mode": {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)})


# Where the place of an element depends on the new size.
_BY_SIZE: Final = ("align_corners", "pytorch_half_pixel")

# Exporters of frameworks that round the size before they compute places by it.
_ROUND_FIRST: Final = frozenset({"pytorch", "tf2onnx", "PaddlePaddle"})

_WHOLE: Final = 1e-4  # how far a size may be from a whole number by rounding alone


def _resized(call: Call, scales: Sequence[float] | None, mode: str) -> Sequence[Value]:
    if scales is None:
        found = call.constant(1)
        if found is None:
            raise Unconvertible("its scales are computed when the model runs")
        scales = found.tolist()
    shrinks, grows = any(s < 1 for s in scales), any(s > 1 for s in scales)
    if mode == "nearest" and shrinks and grows:
        raise Unconvertible("it shrinks one axis and grows another")
    x = call.value(0)
    if len(scales) != x.rank:
        raise FrontEndError(f"it gives {len(scales)} scales for {x.rank} axes")
    skips = any(not (1 / s).is_integer() for s in scales if s < 1)
    if call.producer == "pytorch" and (mode == "linear" or skips):
        call.note(
            "PyTorch takes other places than the file, whose opset cannot say them; export it in opset 11 or "
            "later for PyTorch's numbers"
        )
    exact = _exact(call, scales, x.dims)
    sizes = _sizes(x.dims, exact) if exact != list(scales) else None
    op = hub.Resize(
        mode=mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="ceil" if shrinks else "floor",
        scales=tuple(exact) if sizes is None else None,
        sizes=sizes,
    )
    return [call.one(op, x)]


def _set_scales(call: Call, given: dict[str, Any], scales: NDArray) -> None:
    """Let the scales say the sizes that onnxruntime computes, and note where it departs from ONNX."""
    x = call.value(0)
    axes = [axis % x.rank for axis in given.get("axes") or range(x.rank)]
    if scales.shape != (len(axes),):
        return
    dims = [x.dims[axis] for axis in axes]
    found = _exact(call, scales.tolist(), dims)
    mode = given.get("coordinate_transformation_mode")
    if mode in _BY_SIZE:
        pairs = zip(dims, found, strict=True)
        found = [_rounded(call, dim, s, mode) if isinstance(dim, int) else s for dim, s in pairs]
    sizes = _sizes(dims, found) if found != scales.tolist() else None
    if sizes is None:
        call.inputs[2] = constant("", Dense(np.array(found, np.float32)))
    else:
        call.inputs[2:] = [None, call.ints(sizes)]


def _sizes(dims: Sequence[Dim], scales: Sequence[float]) -> tuple[int, ...] | None:
    """Return the sizes that scales mean, None if one is not whole: then places depend on its scale.

    A changed scale would move places that lie halfway between two elements.
    """
    sizes = [_size(dim, scale) for dim, scale in zip(dims, scales, strict=True) if isinstance(dim, int)]
    if len(sizes) < len(dims):
        return None
    rows = zip(dims, scales, sizes, strict=True)
    whole = all(isinstance(d, int) and abs(d * scale - size) < _WHOLE for d, scale, size in rows)
    return tuple(sizes) if whole else None


def _rounded(call: Call, dim: int, scale: float, mode: str) -> float:
    """Return the scale that gives the rounded size, if that is what places are computed by."""
    size = _size(dim, scale)
    if abs(dim * scale - size) < _WHOLE or not (mode == "align_corners" or size == 1):
        return scale
    made = f"{dim} times {scale:.7g} is rounded to {size}"
    if call.producer not in _ROUND_FIRST:
        call.note(f"{made} after places are computed, as ONNX says; onnxruntime rounds before")
        return scale
    call.note(f"{made} before places are computed, as {call.producer} means it; ONNX says after")
    found = np.float32(size / dim)
    return float(found if dim * float(found) >= size else np.nextafter(found, np.float32(np.inf)))


def _exact(call: Call, scales: Sequence[float], dims: Sequence[Dim]) -> list[float]:
    """Return scales whose exact products with the sizes round down to what float32 products round down to.

    9/5 as float32 is less than 9/5: by it 5 elements become 8 exactly, and 9 in onnxruntime and PyTorch. So
    it is made the next number that gives 9 either way.
    """
    found = []
    for scale, dim in zip(scales, dims, strict=True):
        if isinstance(dim, int) and floor(dim * scale) != _size(dim, scale):
            size = _size(dim, scale)
            call.note(f"{dim} times {scale:.7g} is {size}, as onnxruntime rounds; exactly it is below")
            while floor(dim * scale) < size:
                scale = float(np.nextafter(np.float32(scale), np.float32(np.inf)))
        found.append(float(scale))
    return found


def _size(dim: int, scale: float) -> int:
    """Return how many elements onnxruntime makes of `dim`."""
    return int(np.floor(np.float32(dim) * np.float32(scale)))
