"""Convolutions and pools: auto_pad and ceil_mode become explicit pads, as the hub has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from caffeforge.generated import hub
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_front import generic
from caffeforge.runtime.onnx_front.call import Call, Unconvertible, static_dims
from caffeforge.runtime.onnx_front.registry import converts

Ints = tuple[int, ...]


class _Windows(NamedTuple):
    kernel: Ints
    strides: Ints
    dilations: Ints
    pads: Ints  # the begins of all axes, then their ends

    @property
    def fields(self) -> dict[str, Ints]:
        """The windows as fields of a hub op."""
        return {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "dilations": self.dilations,
            "pads": self.pads,
        }

    def spans(self) -> list[int]:
        """Return over how many elements a window reaches along each axis."""
        return [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]


@converts("Conv", "ConvInteger", "QLinearConv")
def conv(call: Call) -> Sequence[Value]:
    """Resolve auto_pad; the kernel's shape may stand in the weights alone."""
    weights = call.value(3 if call.op.op_type == "QLinearConv" else 1)
    windows = _windows(call, weights)
    return generic.convert(call, windows.fields, dropped=("auto_pad",))


@converts("DeformConv")
def deform_conv(call: Call) -> Sequence[Value]:
    """Take the kernel's shape from the weights where it is left out."""
    given: dict[str, Any] = dict(call.op.fields_by_name())
    kernel = given.get("kernel_shape") or static_dims(call.value(1), range(2, call.value(1).rank))
    return generic.convert(call, {"kernel_shape": kernel})


@converts("MaxPool")
def max_pool(call: Call) -> Sequence[Value]:
    """Write the overhang of ceil_mode as larger pads at the end: padding never wins a maximum."""
    given = call.op.fields_by_name()
    if given.get("storage_order") and len(call.used) > 1:
        raise Unconvertible("indices in column-major order have no place in the hub")
    windows = _windows(call, None)
    over = _overhang(call, windows)
    fields = {**windows.fields, "pads": _with_overhang(windows.pads, over)}
    return generic.convert(call, fields, dropped=("auto_pad", "ceil_mode", "storage_order"))


@converts("LpPool")
def lp_pool(call: Call) -> Sequence[Value]:
    """Padding is zeros, and so is the overhang: neither adds to a sum."""
    windows = _windows(call, None)
    fields = {**windows.fields, "pads": _with_overhang(windows.pads, _overhang(call, windows))}
    return generic.convert(call, fields, dropped=("auto_pad", "ceil_mode"))


@converts("AveragePool")
def average_pool(call: Call) -> Sequence[Value]:
    """The overhang never counts, padding may: where both are there, padding becomes a Pad of its own."""
    windows = _windows(call, None)
    over = _overhang(call, windows)
    counted = bool(call.op.fields_by_name().get("count_include_pad")) and any(windows.pads)
    pads = _with_overhang(windows.pads, over)
    if counted and any(over):
        axes = len(windows.kernel)
        begins, ends = windows.pads[:axes], windows.pads[axes:]
        padded = hub.Pad(pads=(0, 0, *begins, 0, 0, *ends), constant_value=0.0)
        call.inputs[0] = call.one(padded, call.value(0))
        counted, pads = False, (0,) * axes + over
    fields = {**windows.fields, "pads": pads, "count_include_pad": int(counted)}
    return generic.convert(call, fields, dropped=("auto_pad", "ceil_mode"))


@converts("ConvTranspose")
def conv_transpose(call: Call) -> Sequence[Value]:
    """Resolve auto_pad and output_shape into pads at both ends."""
    given = call.op.fields_by_name()
    x, weights = call.value(0), call.value(1)
    axes = weights.rank - 2
    kernel = given.get("kernel_shape") or static_dims(weights, range(2, weights.rank))
    strides, dilations = given.get("strides") or (1,) * axes, given.get("dilations") or (1,) * axes
    extra = given.get("output_padding") or (0,) * axes
    pads = given.get("pads") or (0,) * (2 * axes)
    mode = _auto_pad(given)
    wanted = given.get("output_shape")
    if wanted or mode.startswith("SAME"):
        sizes = static_dims(x, range(2, x.rank))
        due = wanted[-axes:] if wanted else [n * s for n, s in zip(sizes, strides, strict=True)]
        begins, ends, extras = [], [], []
        for n, s, k, d, e, out in zip(sizes, strides, kernel, dilations, extra, due, strict=True):
            total = s * (n - 1) + e + (k - 1) * d + 1 - out
            extras.append(e - min(total, 0))
            small, large = max(total, 0) // 2, max(total, 0) - max(total, 0) // 2
            begins.append(small if mode == "SAME_UPPER" else large)
            ends.append(large if mode == "SAME_UPPER" else small)
        pads, extra = (*begins, *ends), tuple(extras)
    elif mode == "VALID":
        pads = (0,) * (2 * axes)
    fields = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "output_padding": extra,
    }
    return generic.convert(call, fields, dropped=("auto_pad", "output_shape"))


def _auto_pad(given: dict[str, Any]) -> str:
    mode: str = given.get("auto_pad") or "NOTSET"
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise FrontEndError(f"auto_pad is {mode}, which ONNX does not know")
    return mode


def _windows(call: Call, weights: Value | None) -> _Windows:
    given = call.op.fields_by_name()
    kernel = given.get("kernel_shape")
    if not kernel and weights is not None:
        kernel = static_dims(weights, range(2, weights.rank))
    if not kernel:
        raise Unconvertible("kernel_shape is missing")
    axes = len(kernel)
    windows = _Windows(
        tuple(kernel),
        given.get("strides") or (1,) * axes,
        given.get("dilations") or (1,) * axes,
        given.get("pads") or (0,) * (2 * axes),
    )
    mode = _auto_pad(given)
    if mode == "NOTSET":
        return windows
    if mode == "VALID":
        return windows._replace(pads=(0,) * (2 * axes))
    if set(windows.strides) == {1}:
        totals = [span - 1 for span in windows.spans()]
    else:
        sizes = static_dims(call.value(0), range(2, call.value(0).rank))
        rows = zip(sizes, windows.strides, windows.spans(), strict=True)
        totals = [max(0, (-(-size // stride) - 1) * stride + span - size) for size, stride, span in rows]
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    begins, ends = (small, large) if mode == "SAME_UPPER" else (large, small)
    return windows._replace(pads=(*begins, *ends))


def _overhang(call: Call, windows: _Windows) -> Ints:
    """Return how far the last window of each axis reaches beyond the padded input, if the mode is ceil.

    A window that would begin beyond the input and its first padding is left out.
    """
    given = call.op.fields_by_name()
    axes = len(windows.kernel)
    if not given.get("ceil_mode") or str(given.get("auto_pad", "")).startswith("SAME"):
        return (0,) * axes
    sizes = static_dims(call.value(0), range(2, call.value(0).rank))
    over = []
    rows = zip(sizes, windows.strides, windows.spans(), windows.pads[:axes], windows.pads[axes:], strict=True)
    for size, stride, span, begin, end in rows:
        last = -(-(size + begin + end - span) // stride)
        if last * stride >= size + begin:
            last -= 1
        over.append(max(0, last * stride + span - (size + begin + end)))
    return tuple(over)


def _with_overhang(pads: Ints, over: Ints) -> Ints:
    axes = len(over)
    return (*pads[:axes], *(end + more for end, more in zip(pads[axes:], over, strict=True)))
