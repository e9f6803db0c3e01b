"""Weights as lazy arrays: made, reshaped, computed, and what is known of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from caffeforge.runtime.array import Array, Dense, Elementwise, Expanded, Full, Spread
from caffeforge.runtime.array import reshape as _reshape
from caffeforge.runtime.array import transpose as _transpose
from caffeforge.runtime.graph import Value
from caffeforge.runtime.lib.broadcasting import _aligned, _without_leading_ones
from caffeforge.runtime.lib.numbers import ones, product
from caffeforge.runtime.random_weights import Blank
from caffeforge.runtime.refusal import Refused

Ints = Sequence[int]
Const = Value | Array


class Filler(Protocol):
    """What Caffe's FillerParameter says; a field that is None is absent."""

    @property
    def type(self) -> str | None: ...

    @property
    def value(self) -> float | None: ...


def whole(numbers: Ints) -> Array:
    """Return whole numbers as a constant list of int64."""
    return Dense(np.array(numbers, np.int64))


def one_hot(rows: int, places: Ints) -> Array:
    """Return a float32 matrix (len(places), rows) that takes, multiplied by columns, those at `places`."""
    matrix = np.zeros((len(places), rows), np.float32)
    matrix[np.arange(len(places)), list(places)] = 1
    return Dense(matrix)


def whole_numbers(source: Const) -> tuple[int, ...]:
    """Return the elements of a constant of integers."""
    return tuple(int(number) for number in array(source).numpy().reshape(-1))


def two_values(size: int, values: Const) -> Array:
    """Return a matrix (size, size): the second of two values on the diagonal, the first elsewhere."""
    off, on = array(values).numpy().reshape(-1)
    return Dense(np.where(np.eye(size, dtype=bool), on, off))


def triangle_mask(rows: int, columns: int, upper: int, offset: int) -> Array:
    """Return a float32 matrix of ones on and above (`upper`), or on and below, its `offset`-th diagonal."""
    ones_everywhere = np.ones((rows, columns), np.float32)
    return Dense(np.triu(ones_everywhere, offset) if upper else np.tril(ones_everywhere, offset))


def begin_mark(steps: int) -> Array:
    """Return the continuation marks of one sequence: 0 for the first step, then 1."""
    return Dense(np.array([0.0] + [1.0] * (steps - 1), np.float32))


def half_sum(source: Const) -> Array:
    """Return the sum of the two halves of a constant."""
    return Dense(array(source).numpy().reshape(2, -1).sum(0, dtype=np.float32))


def full(shape: Ints, value: float) -> Array:
    """Return a float32 array that is `value` everywhere."""
    return Full(shape, value)


def reshape(source: Const, shape: Ints) -> Array:
    """Return a constant in another shape."""
    given = array(source)
    _settle(given, shape)
    return _reshape(given, shape)


def own_shape(blob: Const, due: Ints) -> tuple[int, ...]:
    """Return the shape of weights, `due` if only leading ones differ: nets from before 2015 give four axes.

    That of random ones, which have none yet, is `due`.
    """
    given = array(blob)
    _settle(given, due)
    same = _without_leading_ones(given.shape) == _without_leading_ones(due)
    return tuple(due) if same else given.shape


def _settle(given: Array, shape: Ints) -> None:
    """Give random weights their shape, if they have none yet."""
    if isinstance(given, Blank):
        given.settle(shape)


def in_shape(blob: Const, shape: Ints) -> Array:
    """Return weights as an array of `shape`; Refused if they have another.

    Leading ones count for nothing: nets from before 2015 give every shape four axes.
    """
    given = array(blob)
    _settle(given, shape)
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


def is_infinite(source: Const) -> bool:
    """Tell whether this is a constant of one element, infinite of either sign."""
    return is_scalar(source) and math.isinf(scalar(source))


def all_are(source: Const, number: float) -> bool:
    """Tell whether every element of a constant is this number."""
    return all(bool((chunk == number).all()) for chunk in array(source).chunks())


def first_computed(values: Sequence[Value]) -> Value:
    """Return the first tensor that is no constant; Refused if all are."""
    found = next((value for value in values if value.data is None), None)
    if found is None:
        raise Refused("all operands are constants")
    return found


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


def is_constant(source: Const) -> bool:
    """Tell whether the elements are known."""
    return isinstance(source, Array) or source.data is not None


def number(source: Const) -> float:
    """Return the one number that a constant holds; Refused if it holds several, or is computed."""
    elements = array(source)
    if elements.size != 1:
        raise Refused(f"one number is due, there are {elements.size}")
    return float(elements.numpy().reshape(-1)[0])


def constant_fill(filler: Filler) -> float:
    """Return the number that a filler puts everywhere; Refused if it draws numbers at random."""
    if filler.type not in (None, "constant"):
        raise Refused(f"a filler of type {filler.type} draws numbers at random")
    return filler.value or 0.0


def caffe_statistic(blob: Const, factor: Const) -> Array:
    """Return a BatchNorm blob divided by its scale factor; a factor of 0 gives zeros, as in Caffe."""
    _settle(array(factor), (1,))
    scale = float(array(factor).numpy().reshape(-1)[0])
    inverse = 1.0 / scale if scale else 0.0
    source = array(blob)
    return source if inverse == 1.0 else Elementwise(source, lambda slab: slab * slab.dtype.type(inverse))
