"""The functions that expressions of mappings may call. Each is total over its types and typed.

Sizes are in elements, windows in (height, width) order or, for N-D layers, outermost axis first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from itertools import product as _product
from typing import Protocol, TypeVar

import numpy as np

from caffeforge.runtime.array import Array, Dense, Elementwise, Expanded, Full, Spread
from caffeforge.runtime.array import reshape as _reshape
from caffeforge.runtime.array import transpose as _transpose
from caffeforge.runtime.graph import Value
from caffeforge.runtime.permutation import after, first_of, real_axes, reduced, single
from caffeforge.runtime.refusal import Refused

Ints = Sequence[int]
Const = Value | Array
T = TypeVar("T")

_ELEMENT_TYPES = {"float32": 1, "int32": 6, "int64": 7, "bool": 9}


class Filler(Protocol):
    """What Caffe's FillerParameter says; a field that is None is absent."""

    @property
    def type(self) -> str | None: ...

    @property
    def value(self) -> float | None: ...


def add(a: Ints, b: Ints) -> tuple[int, ...]:
    """Return the sums of two lists of equal length, element by element."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def sub(a: Ints, b: Ints) -> tuple[int, ...]:
    """Return the differences of two lists of equal length, element by element."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


def ones(count: int) -> tuple[int, ...]:
    """Return `count` ones."""
    return (1,) * count


def zeros(count: int) -> tuple[int, ...]:
    """Return `count` zeros."""
    return (0,) * count


def cumulative(sizes: Ints) -> tuple[int, ...]:
    """Return the running sums of `sizes` without the last: where a list of these sizes is cut."""
    points, total = [], 0
    for size in sizes[:-1]:
        total += size
        points.append(total)
    return tuple(points)


def pieces(points: Ints, size: int) -> tuple[int, ...]:
    """Return the sizes of the pieces when an axis of `size` is cut at `points`."""
    borders = [0, *points, size]
    return tuple(stop - start for start, stop in pairwise(borders))


def equal_pieces(size: int, count: int) -> tuple[int, ...]:
    """Return `count` equal pieces of an axis of `size`; Refused if it does not divide."""
    if size % count:
        raise Refused(f"an axis of {size} cannot be cut into {count} equal pieces")
    return (size // count,) * count


def each(values: Sequence[T], count: int, default: T | None = None) -> tuple[T, ...]:
    """Return `count` values by Caffe's rule for a repeated field: one for all, or one for each.

    Args:
        values: the field.
        count: how many are due.
        default: taken where the field is absent; Refused if there is none.
    """
    if not values and default is not None:
        return (default,) * count
    if len(values) not in (1, count):
        raise Refused(f"a field stands {len(values)} times, for {count} it stands once or {count} times")
    return tuple(values) if len(values) == count else (values[0],) * count


def exp(exponent: float) -> float:
    """Return e to a power."""
    return math.exp(exponent)


def log(number: float) -> float:
    """Return the natural logarithm; Refused for a number that is not positive."""
    if number <= 0:
        raise Refused(f"{number} has no logarithm")
    return math.log(number)


def element_type(dtype: str) -> int:
    """Return ONNX's number of float32, int32, int64 or bool, as Cast takes it."""
    return _ELEMENT_TYPES[dtype]


def product(sizes: Ints) -> int:
    """Return the product of `sizes`."""
    result = 1
    for size in sizes:
        result *= size
    return result


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front; Refused if it lies outside the rank."""
    if not -rank <= axis < rank:
        raise Refused(f"axis {axis} lies outside rank {rank}")
    return axis % rank


def spatial(each: Ints | int, height: int, width: int, default: int, axes: int) -> tuple[int, ...]:
    """Return a window size by Caffe's rule: `height`/`width` if given, else `each` once or per axis.

    Args:
        each: the repeated (or scalar) field; empty or 0 if it is absent.
        height: the ``_h`` field, 0 if absent; it stands for 2-D only.
        width: the ``_w`` field, likewise.
        default: the size where nothing is given.
        axes: how many spatial axes the bottom has.
    """
    if height or width:
        if each and not isinstance(each, int):
            raise Refused("one size for all axes is given and one for each")
        return (height or default, width or default)
    values = (each,) * bool(each) if isinstance(each, int) else tuple(each)
    if len(values) not in (0, 1, axes):
        raise Refused(f"{len(values)} sizes are given for {axes} spatial axes")
    return values if len(values) == axes else (values or (default,)) * axes


def caffe_pool_size(sizes: Ints, kernel: Ints, stride: Ints, pad: Ints) -> tuple[int, ...]:
    """Return the output sizes of Caffe's Pooling: ceil, then its clip rule.

    Where any pad is set, a last window that would begin beyond the input and its front padding is dropped.
    """
    outs = [-((k - s - 2 * p) // t) + 1 for s, k, t, p in zip(sizes, kernel, stride, pad, strict=True)]
    if any(pad):
        outs = [o - ((o - 1) * t >= s + p) for o, s, t, p in zip(outs, sizes, stride, pad, strict=True)]
    return tuple(outs)


def caffe_overhang(sizes: Ints, kernel: Ints, stride: Ints, pad: Ints) -> tuple[int, ...]:
    """Return how far Caffe's last pooling window reaches beyond the input and its end padding."""
    axes = zip(caffe_pool_size(sizes, kernel, stride, pad), sizes, kernel, stride, pad, strict=True)
    return tuple(max(0, (o - 1) * t + k - s - 2 * p) for o, s, k, t, p in axes)


def caffe_windows_inside(sizes: Ints, kernel: Ints, stride: Ints, pad: Ints) -> bool:
    """Tell whether each of Caffe's pooling windows holds at least one element of the input."""
    axes = zip(caffe_pool_size(sizes, kernel, stride, pad), sizes, kernel, stride, pad, strict=True)
    return all(p < k and (o - 1) * t - p < s for o, s, k, t, p in axes)


def window_count(sizes: Ints, kernel: Ints, stride: Ints, pad: Ints, dilation: Ints) -> tuple[int, ...]:
    """Return how many whole windows fit along each axis, with `pad` on both sides."""
    axes = zip(sizes, kernel, stride, pad, dilation, strict=True)
    return tuple((s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in axes)


def taps(kernel: Ints, dilation: Ints) -> tuple[tuple[int, ...], ...]:
    """Return where each tap of a window stands, row-major, counted from the window's first place."""
    return tuple(_product(*(range(0, k * d, d) for k, d in zip(kernel, dilation, strict=True))))


def pyramid_windows(sizes: Ints, height: int) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Return (window, pad) of each level of Caffe's SPP; level n has 2**n bins along each axis."""
    levels = []
    for bins in (2**level for level in range(height)):
        window = tuple(-(-size // bins) for size in sizes)
        levels.append(
            (window, tuple((k * bins - size + 1) // 2 for k, size in zip(window, sizes, strict=True)))
        )
    return tuple(levels)


def pads_by_stride(begins: Ints, ends: Ints, stride: Ints) -> tuple[int, ...]:
    """Return symmetric pads, no smaller than the ends, that move windows of `begins` by whole strides."""
    axes = zip(begins, ends, stride, strict=True)
    return tuple(b + -(-max(0, e - b) // t) * t for b, e, t in axes)


def covers(outer: Ints, inner: Ints) -> bool:
    """Tell whether no size of `inner` is larger than that of `outer`."""
    return all(a >= b for a, b in zip(outer, inner, strict=True))


def divides(divisors: Ints, sizes: Ints) -> bool:
    """Tell whether each divisor divides its size."""
    return all(size % divisor == 0 for divisor, size in zip(divisors, sizes, strict=True))


def quotient(sizes: Ints, divisors: Ints) -> tuple[int, ...]:
    """Return the sizes divided by the divisors, rounded down."""
    return tuple(size // divisor for size, divisor in zip(sizes, divisors, strict=True))


def normal_axes(axes: Ints | None, rank: int) -> tuple[int, ...]:
    """Return axes counted from the front, rising; None means all."""
    return tuple(range(rank)) if axes is None else tuple(sorted(axis_of(axis, rank) for axis in axes))


def tiled_axis(repeats: Ints) -> int:
    """Return the first axis that is repeated, 0 if there is none."""
    return next((axis for axis, count in enumerate(repeats) if count != 1), 0)


def span_of(shape: Ints, operand: Ints) -> tuple[int, int]:
    """Return the axes of `shape`, from the first to behind the last, along which `operand` varies.

    NumPy's broadcasting aligns the last axes. Refused if `operand` does not broadcast into `shape`.
    """
    aligned = _aligned(shape, operand)
    varying = [axis for axis, size in enumerate(aligned) if size != 1]
    return (varying[0], varying[-1] + 1) if varying else (0, 0)


def run_axis(shape: Ints, operand: Ints) -> int:
    """Return the axis of `shape` at which `operand`, a computed one, stands as a contiguous run, else -1.

    The run begins at the batch, the first axis, if both have it: it may be 1 here and other later.
    """
    start, stop = _run(shape, operand)
    return start if _aligned(shape, operand)[start:stop] == tuple(shape)[start:stop] else -1


def run_shape(shape: Ints, operand: Ints) -> tuple[int, ...]:
    """Return the shape that Reshape gives `operand` for `run_axis`: its run, with 0 for the batch."""
    start, stop = _run(shape, operand)
    sizes = tuple(shape)[start:stop]
    return (0, *sizes[1:]) if sizes and start == 0 and len(operand) == len(shape) else sizes


def without_gaps(shape: Ints, operand: Ints) -> tuple[int, ...]:
    """Return the shape of `operand` with the ones within its run as large as in `shape`."""
    start, stop = _run(shape, operand)
    aligned = _aligned(shape, operand)
    return (aligned[:start] + tuple(shape)[start:stop] + aligned[stop:])[len(shape) - len(operand) :]


def _run(shape: Ints, operand: Ints) -> tuple[int, int]:
    start, stop = span_of(shape, operand)
    if len(operand) == len(shape) and operand and operand[0] == shape[0]:
        return 0, max(stop, 1)
    return start, stop


def _aligned(shape: Ints, operand: Ints) -> tuple[int, ...]:
    aligned = ones(len(shape) - len(operand)) + tuple(operand)
    if len(operand) > len(shape) or any(a not in (1, b) for a, b in zip(aligned, shape, strict=True)):
        raise Refused(f"{list(operand)} does not broadcast into {list(shape)}")
    return aligned


def broadcast_axis(shape: Ints, operand: Ints) -> int:
    """Return the axis of `shape` at which `operand`, without its outer ones, stands as a contiguous run.

    NumPy's broadcasting aligns the last axes. -1 if `operand` would not broadcast into `shape` that way.
    """
    run = broadcast_run(operand)
    if len(operand) > len(shape):
        return -1
    if not run:
        return 0
    leading = next(i for i, size in enumerate(operand) if size != 1)
    axis = len(shape) - len(operand) + leading
    return axis if tuple(shape[axis : axis + len(run)]) == run else -1


def broadcast_run(operand: Ints) -> tuple[int, ...]:
    """Return the sizes of `operand` without its leading and trailing ones."""
    sizes = list(operand)
    while sizes and sizes[0] == 1:
        sizes.pop(0)
    while sizes and sizes[-1] == 1:
        sizes.pop()
    return tuple(sizes)


def free_batch(shape: Ints, free: bool = True) -> tuple[int, ...]:
    """Return `shape` with -1 for its first size, the batch, which Reshape then finds; `free` says so."""
    return (-1, *shape[1:]) if free and shape else tuple(shape)


def reshaped(old: Ints, new: Ints) -> tuple[int, ...]:
    """Return the shape with which Reshape makes `new` of `old`: 0 for the batch, where both begin with it."""
    return (0, *new[1:]) if old and new and old[0] == new[0] else tuple(new)


def moves_nothing(shape: Ints, perm: Ints) -> bool:
    """Tell whether a permutation of axes only moves axes of size 1."""
    return reduced(shape, perm) == tuple(range(len(real_axes(shape, perm))))


def block_swap(shape: Ints, perm: Ints) -> tuple[int, ...]:
    """Return (before, first, second, behind) if `perm` exchanges two neighbouring blocks of axes, else ().

    Each is the product of the block's sizes; before is -1 if it holds the batch, the first axis.
    """
    found = single([shape[axis] for axis in real_axes(shape, perm)], reduced(shape, perm))
    if found is None:
        return ()
    return (-1 if perm[0] == 0 else found.before, found.first, found.second, found.behind)


def real_shape(shape: Ints, perm: Ints) -> tuple[int, ...]:
    """Return the sizes of the axes that a permutation cannot ignore; 0 for the batch that stays first."""
    sizes = tuple(shape[axis] for axis in real_axes(shape, perm))
    return (0, *sizes[1:]) if perm[0] == 0 else sizes


def first_swap(shape: Ints, perm: Ints) -> tuple[int, ...]:
    """Return the first of the fewest exchanges of blocks that make up `perm`, for real_shape."""
    return first_of(reduced(shape, perm))


def other_swaps(shape: Ints, perm: Ints) -> tuple[int, ...]:
    """Return the permutation that is left of `perm` after first_swap."""
    return after(first_of(reduced(shape, perm)), reduced(shape, perm))


def is_run(axes: Ints) -> bool:
    """Tell whether axes follow one another."""
    return all(b == a + 1 for a, b in pairwise(axes))


def last_run(axes: Ints) -> tuple[int, ...]:
    """Return the longest run of neighbours at the end of rising axes."""
    start = len(axes) - 1
    while start > 0 and axes[start - 1] == axes[start] - 1:
        start -= 1
    return tuple(axes[start:])


def reduced_axes(axes: Ints | None, rank: int, keep_all: int) -> tuple[int, ...]:
    """Return the axes that an ONNX reduction takes away, rising; no axes mean all, or none if `keep_all`."""
    return normal_axes(axes or (None if not keep_all else ()), rank)


def steps_of(starts: Ints, steps: Ints | None) -> tuple[int, ...]:
    """Return the steps of an ONNX Slice, which are 1 where it has none."""
    return ones(len(starts)) if steps is None else tuple(steps)


def slice_range(size: int, start: int, end: int, step: int) -> tuple[int, ...]:
    """Return the places along an axis of `size` that an ONNX Slice takes; Refused if there are none."""
    low, high = (-1, size - 1) if step < 0 else (0, size)
    begin, stop = (min(max(at + size if at < 0 else at, low), high) for at in (start, end))
    if step < 0 and end < -size:
        stop = -1
    places = tuple(range(begin, stop, step))
    if not places:
        raise Refused("an axis is cut to nothing")
    return places


def pad_pairs(pads: Ints, axes: Ints | None, rank: int) -> tuple[tuple[int, int], ...]:
    """Return (begin, end) for each of `rank` axes from ONNX's pads, which list all begins, then all ends."""
    given = normal_axes(None, rank) if axes is None else tuple(axis_of(axis, rank) for axis in axes)
    pairs = dict(zip(given, zip(pads[: len(given)], pads[len(given) :], strict=True), strict=True))
    return tuple(pairs.get(axis, (0, 0)) for axis in range(rank))


def padded_axis(pairs: Sequence[tuple[int, int]]) -> int:
    """Return the first axis that is padded, -1 if there is none."""
    return next((axis for axis, pair in enumerate(pairs) if pair != (0, 0)), -1)


def pad_places(mode: str, size: int, pair: tuple[int, int]) -> tuple[int, ...]:
    """Return which place of an axis each place of the padded axis takes, by reflect, edge or wrap."""
    begin, end = pair
    if mode == "reflect" and max(begin, end) >= size:
        raise Refused("reflected padding is as long as the axis")
    places = range(-begin, size + end)
    if mode == "edge":
        return tuple(min(max(place, 0), size - 1) for place in places)
    if mode == "wrap":
        return tuple(place % size for place in places)
    return tuple(size - 1 - abs(size - 1 - abs(place)) for place in places)


def slice_axes(axes: Ints | None, count: int) -> tuple[int, ...]:
    """Return the axes of an ONNX Slice, which are the first ones where it names none."""
    return tuple(range(count)) if axes is None else tuple(axes)


def steps_along(axes: Ints, steps: Ints, rank: int) -> tuple[int, ...]:
    """Return the step along each of `rank` axes, 1 along those that are not named."""
    named = {axis_of(axis, rank): step for axis, step in zip(axes, steps, strict=True)}
    return tuple(named.get(axis, 1) for axis in range(rank))


def first_step(steps: Ints) -> int:
    """Return the index of the first step that is not 1, 0 if there is none."""
    return next((index for index, step in enumerate(steps) if step != 1), 0)


def slice_cuts(
    shape: Ints, starts: Ints | None, ends: Ints | None, axes: Ints | None
) -> tuple[tuple[int, int, int], ...]:
    """Return (axis, begin, end) for each axis of `shape` that an ONNX Slice of step 1 really cuts."""
    cuts = []
    for index, (start, end) in enumerate(zip(starts or (), ends or (), strict=True)):
        axis = axis_of(axes[index] if axes is not None else index, len(shape))
        size = shape[axis]
        begin, stop = (min(max(at + size if at < 0 else at, 0), size) for at in (start, end))
        if stop <= begin:
            raise Refused(f"axis {axis} is cut to nothing")
        if (begin, stop) != (0, size):
            cuts.append((axis, begin, stop))
    return tuple(cuts)


def caffe_reshape(shape: Ints, dims: Ints, axis: int, num_axes: int) -> tuple[int, ...]:
    """Return the output shape of Caffe's Reshape: `dims` replace `num_axes` axes of `shape` from `axis` on.

    A 0 in `dims` keeps the axis at its place, one -1 takes what is left; `num_axes` -1 means all that follow.
    """
    start = axis if axis >= 0 else len(shape) + axis + 1
    stop = len(shape) if num_axes == -1 else start + num_axes
    if not 0 <= start <= stop <= len(shape):
        raise Refused(f"axes {start} to {stop} lie outside rank {len(shape)}")
    if 0 in dims[len(shape) - start :] or list(dims).count(-1) > 1:
        raise Refused("a 0 keeps an axis of the bottom, and -1 stands once")
    middle = [shape[start + index] if dim == 0 else dim for index, dim in enumerate(dims)]
    known = product([dim for dim in middle if dim != -1])
    total = product(shape[start:stop])
    if -1 in middle:
        middle[middle.index(-1)] = total // known if known else 0
    if product(middle) != total:
        raise Refused(f"{list(shape)} has no shape {list(dims)} from axis {start}")
    return (*shape[:start], *middle, *shape[stop:])


def whole(numbers: Ints) -> Array:
    """Return whole numbers as a constant list of int64."""
    return Dense(np.array(numbers, np.int64))


def one_hot(rows: int, places: Ints) -> Array:
    """Return a float32 matrix (len(places), rows) that takes, multiplied by columns, those at `places`."""
    matrix = np.zeros((len(places), rows), np.float32)
    matrix[np.arange(len(places)), list(places)] = 1
    return Dense(matrix)


def shift_kernel(channels: int, pairs: Sequence[tuple[int, int]]) -> Array:
    """Return the depthwise kernel (channels, 1, ...) that pads by (begin, end), together with shift_pads."""
    kernel = np.zeros((1, 1, *kernel_sizes(pairs)), np.float32)
    place = (0, 0, *(max(pair) - pair[0] for pair in pairs))
    kernel[place] = 1
    return Expanded(Dense(kernel), (channels, *kernel.shape[1:]))


def shift_pads(pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the symmetric pads of the convolution with shift_kernel."""
    return tuple(max(pair) for pair in pairs) * 2


def whole_numbers(source: Const) -> tuple[int, ...]:
    """Return the elements of a constant of integers."""
    return tuple(int(number) for number in array(source).numpy().reshape(-1))


def padding_share(sizes: Ints, kernel: Ints, stride: Ints, dilation: Ints, pads: Ints, out: Ints) -> Array:
    """Return, for each window, its elements divided by those that lie in the input and not in the padding.

    The mean over all of a window times this is the mean without the padding. Two axes are due.
    """
    shares = []
    begins = pads[: len(sizes)]
    for s, k, t, d, p, o in zip(sizes, kernel, stride, dilation, begins, out, strict=True):
        inside = [sum(0 <= i * t - p + j * d < s for j in range(k)) for i in range(o)]
        if not all(inside):
            raise Refused("a window lies in the padding alone")
        shares.append(k / np.array(inside))
    whole_window = shares[0]
    for share in shares[1:]:
        whole_window = np.multiply.outer(whole_window, share)
    return Dense(whole_window.astype(np.float32))


def kernel_sizes(pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the sizes of shift_kernel."""
    return tuple(1 + 2 * max(pair) - sum(pair) for pair in pairs)


def runs_of(places: Ints) -> tuple[tuple[int, int], ...]:
    """Return (begin, end) of each run of places that follow one another."""
    begins = [0, *(i for i in range(1, len(places)) if places[i] != places[i - 1] + 1), len(places)]
    return tuple((places[a], places[b - 1] + 1) for a, b in pairwise(begins))


def places_along(source: Const, size: int) -> tuple[int, ...]:
    """Return a constant's integers as places along an axis of `size`, negative ones counted from the end."""
    return tuple(number + size if number < 0 else number for number in whole_numbers(source))


def two_values(size: int, values: Const) -> Array:
    """Return a float32 matrix (size, size): the second of two values on the diagonal, the first elsewhere."""
    off, on = (float(number) for number in array(values).numpy().reshape(-1))
    return Dense(np.where(np.eye(size, dtype=bool), np.float32(on), np.float32(off)))


def triangle_mask(rows: int, columns: int, upper: int, offset: int) -> Array:
    """Return a float32 matrix of ones on and above (`upper`), or on and below, its `offset`-th diagonal."""
    ones_everywhere = np.ones((rows, columns), np.float32)
    return Dense(np.triu(ones_everywhere, offset) if upper else np.tril(ones_everywhere, offset))


def fold_kernel(channels: int, kernel: Ints) -> Array:
    """Return the depthwise kernels (channels * taps, 1, ...) that each put one channel at one tap."""
    count = product(kernel)
    one = np.eye(count, dtype=np.float32).reshape(count, 1, *kernel)
    return Dense(np.tile(one, (channels, *(1 for _ in one.shape[1:]))))


def full(shape: Ints, value: float) -> Array:
    """Return a float32 array that is `value` everywhere."""
    return Full(shape, value)


def reshape(source: Const, shape: Ints) -> Array:
    """Return a constant in another shape."""
    return _reshape(array(source), shape)


def in_shape(blob: Const, shape: Ints) -> Array:
    """Return weights as an array of `shape`; Refused if they have another.

    Leading ones count for nothing: nets from before 2015 give every shape four axes.
    """
    given = array(blob)
    if _without_leading_ones(given.shape) != _without_leading_ones(shape):
        raise Refused(f"weights of shape {list(shape)} are due, {list(given.shape)} is given")
    return _reshape(given, shape)


def transpose(source: Const) -> Array:
    """Return a constant matrix transposed."""
    return _transpose(array(source), (1, 0))


def expand(source: Const, shape: Ints, span: tuple[int, int]) -> Array:
    """Return a constant repeated along the axes of `shape` in `span`, those along which it varies."""
    start, stop = span
    return Expanded(reshape(source, _aligned(shape, source.shape)[start:stop]), tuple(shape)[start:stop])


def spread(source: Const, shape: Ints, steps: Ints) -> Array:
    """Return a constant's elements among zeros, `steps` apart along the last axes from their beginning on."""
    given = array(source)
    every = ones(len(shape) - len(steps)) + tuple(steps)
    return given if given.shape == tuple(shape) else Spread(given, shape, every)


def times(source: Const, factor: float) -> Array:
    """Return a constant times a number."""
    return Elementwise(array(source), lambda slab: slab * slab.dtype.type(factor))


def negative(source: Const) -> Array:
    """Return a constant with the other sign."""
    return Elementwise(array(source), lambda slab: -slab)


def inverse(source: Const) -> Array:
    """Return 1 divided by a constant; Refused if it holds a zero."""
    given = array(source)
    if any((chunk == 0).any() for chunk in given.chunks()):
        raise Refused("the divisor holds a zero")
    return Elementwise(given, lambda slab: 1 / slab)


def choice(condition: Const, chosen: Const, other: Const) -> Array:
    """Return, as a constant, the elements of `chosen` where the condition is true, else those of `other`."""
    truths, yes, no = (array(source).numpy() for source in (condition, chosen, other))
    return Dense(np.where(truths, yes, no).astype(np.float32))


def is_finite(source: Const) -> bool:
    """Tell whether no element of a constant is infinite or NaN."""
    return all(bool(np.isfinite(chunk).all()) for chunk in array(source).chunks())


def is_scalar(source: Const) -> bool:
    """Tell whether this is a constant of one element."""
    return is_constant(source) and product(source.shape) == 1


def scalar(source: Const) -> float:
    """Return the element of a constant that has one."""
    return float(array(source).numpy().reshape(()))


def array(source: Const) -> Array:
    """Return the elements of a constant; Refused if it is computed when the model runs."""
    if isinstance(source, Array):
        return source
    if source.data is None:
        raise Refused(f"{source.name} must be a constant, it is computed")
    return source.data


def _without_leading_ones(shape: Ints) -> tuple[int, ...]:
    first = next((index for index, size in enumerate(shape) if size != 1), len(shape))
    return tuple(shape[first:])


def is_constant(source: Const) -> bool:
    """Tell whether the elements are known."""
    return isinstance(source, Array) or source.data is not None


def constant_fill(filler: Filler) -> float:
    """Return the number that a filler puts everywhere; Refused if it draws numbers at random."""
    if filler.type not in (None, "constant"):
        raise Refused(f"a filler of type {filler.type} draws numbers at random")
    return filler.value or 0.0


def caffe_statistic(blob: Const, factor: Const) -> Array:
    """Return a BatchNorm blob divided by its scale factor; a factor of 0 gives zeros, as in Caffe."""
    scale = float(array(factor).numpy().reshape(-1)[0])
    inverse = 1.0 / scale if scale else 0.0
    source = array(blob)
    return source if inverse == 1.0 else Elementwise(source, lambda slab: slab * slab.dtype.type(inverse))
