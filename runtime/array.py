"""Lazy arrays: weights that are read, transposed, cast or computed block by block while being written.

Every array has a shape, NumPy's dtype name, ``rows(start, stop)``, a slab along its first axis, and
``chunks()``, its elements one after the other. Writers use the second: nothing larger than a block is
computed at once, unless ``numpy()`` asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffeforge.runtime.errors import GraphError

NDArray = npt.NDArray[Any]
BLOCK_BYTES = 4 << 20
TEXT = "string"  # the dtype of text, which NumPy holds as objects


def dtype_name(array: NDArray) -> str:
    """Return the name of an array's element type: NumPy's, or `TEXT`."""
    return TEXT if array.dtype.kind in "OU" else array.dtype.name


class Array:
    """An array that need not exist in memory. `dtype` is NumPy's name, ``bfloat16`` or ``string``."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sequence[int], dtype: str) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def rows(self, start: int, stop: int) -> NDArray:
        """Return ``self[start:stop]``; a bfloat16 array gives float32. A scalar has one row of shape ()."""
        raise NotImplementedError

    def numpy(self) -> NDArray:
        """Return all elements; bfloat16 as float32."""
        return self.rows(0, self.shape[0] if self.shape else 1).reshape(self.shape)

    def chunks(self) -> Iterator[NDArray]:
        """Yield the elements, row-major, as 1-D arrays of at most a block; bfloat16 as float32.

        This computes slabs of rows, at least one row at once; classes that can do better override it.
        """
        if not self.size:
            return
        count = self.shape[0] if self.shape else 1
        row_bytes = self.size // count * np.dtype(_stored(self.dtype)).itemsize
        step = max(1, BLOCK_BYTES // row_bytes)
        for start in range(0, count, step):
            yield from _pieces(self.rows(start, min(count, start + step)))

    def blocks(self, dtype: str) -> Iterator[memoryview]:
        """Yield the elements as bytes of `dtype`, row-major: in place as they lie, else a block at a time.

        Raises:
            GraphError: an element has no place in `dtype`: a float beyond its range, or an integer beyond
                those that it holds exactly.
        """
        whole = self._in_place(dtype)
        pieces = self.chunks() if whole is None else iter([whole.reshape(-1)])
        for piece in pieces:
            if piece.size:
                yield _cast(piece, np.dtype(dtype)).data.cast("B")

    def _in_place(self, dtype: str) -> NDArray | None:
        """Return the array's own memory if it is already row-major `dtype`."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dtype}{list(self.shape)})"


class Dense(Array):
    """Elements in memory or in a mapped file."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray) -> None:
        super().__init__(array.shape, dtype_name(array))
        self.array = array

    def rows(self, start: int, stop: int) -> NDArray:
        part = self.array[start:stop] if self.shape else self.array.reshape(1)[start:stop]
        return part.astype(np.float32) if self.dtype == "bfloat16" else part

    def numpy(self) -> NDArray:
        return self.array.astype(np.float32) if self.dtype == "bfloat16" else self.array

    def chunks(self) -> Iterator[NDArray]:
        for piece in _pieces(self.array):
            yield piece.astype(np.float32) if self.dtype == "bfloat16" else piece

    def _in_place(self, dtype: str) -> NDArray | None:
        same = self.dtype == dtype and self.array.flags.c_contiguous and self.array.dtype.isnative
        return self.array if same else None


class Full(Array):
    """One number everywhere."""

    __slots__ = ("value",)

    def __init__(self, shape: Sequence[int], value: float, dtype: str = "float32") -> None:
        super().__init__(shape, dtype)
        self.value = value

    def rows(self, start: int, stop: int) -> NDArray:
        return np.full((stop - start, *self.shape[1:]), self.value, _stored(self.dtype))

    def chunks(self) -> Iterator[NDArray]:
        yield from _pieces(np.broadcast_to(np.asarray(self.value, _stored(self.dtype)), self.shape))


class Reshaped(Array):
    """The same elements in another shape; a view where the source is dense."""

    __slots__ = ("source",)

    def __init__(self, source: Array, shape: Sequence[int]) -> None:
        if math.prod(shape) != source.size:
            raise GraphError(f"an array of shape {list(source.shape)} cannot be reshaped to {list(shape)}")
        super().__init__(shape, source.dtype)
        self.source = source

    def rows(self, start: int, stop: int) -> NDArray:
        if not self.shape:
            return self.source.numpy().reshape(1)
        row = self.size // self.shape[0] if self.shape[0] else 1
        count = self.source.shape[0] if self.source.shape else 1
        source_row = max(1, self.source.size // max(1, count))
        first, last = start * row // source_row, -(-stop * row // source_row)
        flat = self.source.rows(first, last).reshape(-1)
        offset = start * row - first * source_row
        return flat[offset : offset + (stop - start) * row].reshape(stop - start, *self.shape[1:])

    def numpy(self) -> NDArray:
        return self.source.numpy().reshape(self.shape)

    def chunks(self) -> Iterator[NDArray]:
        return self.source.chunks()

    def _in_place(self, dtype: str) -> NDArray | None:
        return self.source._in_place(dtype)


class Transposed(Array):
    """Axes in another order, as ``numpy.transpose``; a view where the source is dense."""

    __slots__ = ("perm", "source")

    def __init__(self, source: Array, perm: Sequence[int]) -> None:
        if sorted(perm) != list(range(len(source.shape))):
            raise GraphError(f"an array of shape {list(source.shape)} cannot be transposed by {list(perm)}")
        super().__init__([source.shape[axis] for axis in perm], source.dtype)
        self.source = source
        self.perm = tuple(perm)

    def rows(self, start: int, stop: int) -> NDArray:
        if self.perm[0] == 0:
            return np.transpose(self.source.rows(start, stop), self.perm)
        return self.numpy()[start:stop]

    def numpy(self) -> NDArray:
        return np.transpose(self.source.numpy(), self.perm)

    def chunks(self) -> Iterator[NDArray]:
        # Where rows stay rows, slabs will do. Else a slab lies across all rows of the source, which is
        # therefore computed once and not once for each slab.
        return super().chunks() if self.perm[0] == 0 else _pieces(self.numpy())


class Cast(Array):
    """The same numbers in another element type, cast while they are read."""

    __slots__ = ("source",)

    def __init__(self, source: Array, dtype: str) -> None:
        super().__init__(source.shape, dtype)
        self.source = source

    def rows(self, start: int, stop: int) -> NDArray:
        return _cast(self.source.rows(start, stop), np.dtype(_stored(self.dtype)))

    def chunks(self) -> Iterator[NDArray]:
        for piece in self.source.chunks():
            yield _cast(piece, np.dtype(_stored(self.dtype)))


class Slab(Array):
    """The rows of the source from `start` to before `stop`."""

    __slots__ = ("source", "start")

    def __init__(self, source: Array, start: int, stop: int) -> None:
        if not source.shape or not 0 <= start <= stop <= source.shape[0]:
            raise GraphError(f"an array of shape {list(source.shape)} has no rows {start} to {stop}")
        super().__init__((stop - start, *source.shape[1:]), source.dtype)
        self.source = source
        self.start = start

    def rows(self, start: int, stop: int) -> NDArray:
        return self.source.rows(self.start + start, self.start + stop)


class Joined(Array):
    """Arrays one after the other along an axis, as ``numpy.concatenate``."""

    __slots__ = ("axis", "sources")

    def __init__(self, sources: Sequence[Array], axis: int = 0) -> None:
        first = sources[0]
        others = [(*s.shape[:axis], *s.shape[axis + 1 :]) for s in sources]
        if axis >= len(first.shape) or any(s != others[0] for s in others):
            listed = " and ".join(str(list(s.shape)) for s in sources)
            raise GraphError(f"arrays of shapes {listed} cannot be joined along axis {axis}")
        size = sum(source.shape[axis] for source in sources)
        super().__init__((*first.shape[:axis], size, *first.shape[axis + 1 :]), first.dtype)
        self.sources = tuple(sources)
        self.axis = axis

    def rows(self, start: int, stop: int) -> NDArray:
        if self.axis:
            return np.concatenate([source.rows(start, stop) for source in self.sources], self.axis)
        parts, begin = [], 0
        for source in self.sources:
            first, last = max(start - begin, 0), min(stop - begin, source.shape[0])
            if first < last:
                parts.append(source.rows(first, last))
            begin += source.shape[0]
        return np.concatenate(parts) if parts else np.empty((0, *self.shape[1:]), _stored(self.dtype))


class Elementwise(Array):
    """A NumPy function of one array, or of an array and a scalar, computed block by block.

    `function` must act on each element by itself: it is given blocks of any shape.
    """

    __slots__ = ("function", "source")

    def __init__(self, source: Array, function: Callable[[NDArray], NDArray], dtype: str = "float32") -> None:
        super().__init__(source.shape, dtype)
        self.source = source
        self.function = function

    def rows(self, start: int, stop: int) -> NDArray:
        return self._apply(self.source.rows(start, stop))

    def chunks(self) -> Iterator[NDArray]:
        return map(self._apply, self.source.chunks())

    def _apply(self, part: NDArray) -> NDArray:
        return self.function(part).astype(_stored(self.dtype), copy=False)


class Expanded(Array):
    """Axes of size 1 repeated, as ``numpy.broadcast_to`` for equal ranks."""

    __slots__ = ("source",)

    def __init__(self, source: Array, shape: Sequence[int]) -> None:
        pairs = zip(source.shape, shape, strict=False)
        if len(source.shape) != len(shape) or any(a not in (1, b) for a, b in pairs):
            raise GraphError(f"an array of shape {list(source.shape)} cannot be expanded to {list(shape)}")
        super().__init__(shape, source.dtype)
        self.source = source

    def rows(self, start: int, stop: int) -> NDArray:
        if not self.shape:
            return self.source.rows(start, stop)
        repeated = self.source.shape[0] != self.shape[0]
        part = self.source.rows(0, 1) if repeated else self.source.rows(start, stop)
        return np.broadcast_to(part, (stop - start, *self.shape[1:]))


class Spread(Array):
    """The source's elements among zeros: the i-th along an axis stands at i times the axis' step.

    Zeros fill what is left of `shape`, between the elements and behind the last. The first axis is as
    in the source.
    """

    __slots__ = ("source", "steps")

    def __init__(self, source: Array, shape: Sequence[int], steps: Sequence[int]) -> None:
        axes = zip(source.shape, shape, steps, strict=True)
        fits = all((old - 1) * step < new for old, new, step in axes)
        if not fits or steps[0] != 1 or source.shape[0] != shape[0]:
            raise GraphError(
                f"an array of shape {list(source.shape)} cannot be spread over {list(shape)} by {list(steps)}"
            )
        super().__init__(shape, source.dtype)
        self.source = source
        self.steps = tuple(steps)

    def rows(self, start: int, stop: int) -> NDArray:
        part = self.source.rows(start, stop)
        result = np.zeros((stop - start, *self.shape[1:]), part.dtype)
        ends = ((size - 1) * step + 1 for size, step in zip(part.shape, self.steps, strict=True))
        result[tuple(slice(0, end, step) for end, step in zip(ends, self.steps, strict=True))] = part
        return result


def reshape(source: Array, shape: Sequence[int]) -> Array:
    """Return `source` in `shape`, as itself if it has that shape already.

    Raises:
        GraphError: the number of elements differs.
    """
    if source.shape == tuple(shape):
        return source
    if isinstance(source, Reshaped):
        return reshape(source.source, shape)
    if isinstance(source, Elementwise):  # kept outermost, so that what lies below stays a view
        return Elementwise(reshape(source.source, shape), source.function, source.dtype)
    return Reshaped(source, shape)


def transpose(source: Array, perm: Sequence[int]) -> Array:
    """Return `source` with its axes in order `perm`; two that cancel give the source itself.

    Raises:
        GraphError: `perm` is no order of the axes.
    """
    if isinstance(source, Elementwise):
        return Elementwise(transpose(source.source, perm), source.function, source.dtype)
    result = Transposed(source, perm)
    if isinstance(source, Transposed):
        result = Transposed(source.source, [source.perm[axis] for axis in perm])
    return result.source if list(result.perm) == list(range(len(result.perm))) else result


def _stored(dtype: str) -> str:
    """Return the dtype in which NumPy holds elements of `dtype`."""
    return "float32" if dtype == "bfloat16" else dtype


def _pieces(view: NDArray) -> Iterator[NDArray]:
    """Cut any view into 1-D arrays of at most a block, row-major, copying no more than one at a time."""
    limit = max(1, BLOCK_BYTES // max(view.itemsize, 4))  # narrow elements are to become float32
    if view.ndim == 1 or view.flags.c_contiguous:
        flat = view.reshape(-1)
        for start in range(0, flat.size, limit):
            yield flat[start : start + limit]
    elif view.size > limit * view.shape[0]:  # not one row fits a block
        for row in view:
            yield from _pieces(row)
    elif view.size:
        step = limit // view[0].size
        for start in range(0, len(view), step):
            yield view[start : start + step].reshape(-1)


def _cast(piece: NDArray, dtype: np.dtype[Any]) -> NDArray:
    """Return `piece` as contiguous, native `dtype`, itself if it is; refuse elements that do not fit."""
    if piece.dtype.kind in "iu" and dtype.kind == "f":
        exact = 2 ** (np.finfo(dtype).nmant + 1)
        if piece.max() > exact or piece.min() < -exact:
            raise GraphError(f"an integer beyond {exact} has no exact place in {dtype.name}")
    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(piece, dtype)
    except FloatingPointError:
        raise GraphError(f"a {piece.dtype.name} lies beyond the range of {dtype.name}") from None
