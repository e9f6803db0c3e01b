"""Complex tensors as two real ones, and Fourier transforms of fixed lengths as products with their matrices.

The hub has no complex numbers. On the way from a transform to what is read of it - its size, its real
part, the transform back - an operator yields the real and the imaginary part, each a tensor of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch._ops import OpOverload
from torch.fx import Node as FxNode

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.op import Op
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import swapped, unsqueezed
from caffeforge.runtime.torch_front.registry import HANDLERS, Result

aten = torch.ops.aten
Pair = tuple[Value, Value]
Matrix = npt.NDArray[np.float64]

# What does to the real part what it does to the imaginary one, and nothing between them.
PARTWISE: Final = frozenset(
    {
        aten.view.default,
        aten.reshape.default,
        aten._unsafe_view.default,
        aten.permute.default,
        aten.transpose.int,
        aten.unsqueeze.default,
        aten.squeeze.dim,
        aten.expand.default,
        aten.slice.Tensor,
        aten.select.int,
        aten.cat.default,
        aten.clone.default,
        aten.alias.default,
        aten.neg.default,
        aten.sum.dim_IntList,
        aten.mean.dim,
        aten.roll.default,
        aten.constant_pad_nd.default,
    }
)


def is_complex(node: FxNode) -> bool:
    """Tell whether an operator reads or yields complex numbers."""
    tensors = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    return any(isinstance(t, torch.Tensor) and t.is_complex() for t in tensors)


def is_pair(node: FxNode) -> bool:
    """Tell whether an operator yields complex numbers."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_complex()


class Part(Call):
    """A call as it is for the real or the imaginary part of complex tensors alone."""

    dtype = "float32"


def complex_handler(target: object) -> Callable[[FxNode, Mapping[FxNode, Result], Call], Result] | None:
    """Return what lowers an operator of complex numbers, None if nothing does."""
    if target in PARTWISE:
        return _partwise
    handler = COMPLEX_HANDLERS.get(target) if isinstance(target, OpOverload) else None
    return None if handler is None else lambda node, operands, call: handler(call)


def _partwise(node: FxNode, operands: Mapping[FxNode, Result], call: Call) -> Result:
    assert isinstance(node.target, OpOverload)
    results: list[Value | None] = []
    for place in (0, 1):
        part = Part(node, {n: _part(operands[n], place) for n in node.all_input_nodes}, call.sizes)
        found = HANDLERS[node.target](part)
        assert isinstance(found, Value)
        call.nodes += part.nodes
        results.append(found)
    return results


def _part(result: Result, place: int) -> Result:
    return result if isinstance(result, Value) else result[place : place + 1][0] or []


def _r2c(call: Call) -> Result:
    """Transform the last of the axes, whose elements are real, to half a spectrum, then the others.

    aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor
    """
    x, axes = call.value("self"), [axis % call.value("self").rank for axis in call.ints("dim")]
    *others, last = axes
    size = x.shape[last]
    bins = size // 2 + 1 if call.argument("onesided") else size
    factor = _factor(call, [x.shape[axis] for axis in axes])
    even, odd = (part * factor for part in _matrices(size, bins, -1))
    pair = (_product(call, x, even, last), _product(call, x, odd, last))
    return _transformed(call, pair, others, -1)


def _c2c(call: Call) -> Result:
    """Transform complex numbers along axes, there or back.

    aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor
    """
    pair = _pair(call, "self")
    axes = [axis % pair[0].rank for axis in call.ints("dim")]
    factor = _factor(call, [pair[0].shape[axis] for axis in axes])
    return _transformed(call, pair, axes, -1 if call.argument("forward") else 1, factor)


def _c2r(call: Call) -> Result:
    """Transform back what is half of a spectrum along the last of the axes: the result is real.

    aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor
    """
    pair = _pair(call, "self")
    *others, last = (axis % pair[0].rank for axis in call.ints("dim"))
    size, bins = call.argument("last_dim_size"), pair[0].shape[last]
    if bins != size // 2 + 1:
        raise call.error(f"takes {bins} frequencies for {size} elements", hint="give n=2 * (bins - 1)")
    factor = _factor(call, [*(pair[0].shape[axis] for axis in others), size])
    real, imaginary = _transformed(call, pair, others, 1)
    even, odd = _matrices(size, bins, 1)
    twice = np.array([1 if k == 0 or 2 * k == size else 2 for k in range(bins)])[:, None] * factor
    cosines = _product(call, real, even.T * twice, last)
    sines = _product(call, imaginary, odd.T * -twice, last)
    return call.node(hub.Add(), cosines, sines)


def _to(call: Call) -> Result:
    """Take real numbers as complex: aten::to.dtype(Tensor(a) self, ScalarType dtype, ...) -> Tensor(a)."""
    return list(_pair(call, "self"))


def _view_as_real(call: Call) -> Result:
    """Put both parts beside each other: aten::view_as_real(Tensor(a) self) -> Tensor(a)."""
    real, imaginary = (unsqueezed(call, part, part.rank) for part in _pair(call, "self"))
    return call.node(hub.Concat(axis=real.rank - 1), real, imaginary)


def _abs(call: Call) -> Result:
    """Take the root of the sum of squares: aten::abs(Tensor self) -> Tensor."""
    squares = [call.pointwise(hub.Mul(), part, part) for part in _pair(call, "self")]
    return call.node(hub.Sqrt(), call.pointwise(hub.Add(), *squares))


def _real(call: Call) -> Result:
    """Take the real part: aten::real(Tensor(a) self) -> Tensor(a)."""
    return call.node(hub.Identity(), _pair(call, "self")[0])


def _imag(call: Call) -> Result:
    """Take the imaginary part: aten::imag(Tensor(a) self) -> Tensor(a)."""
    return call.node(hub.Identity(), _pair(call, "self")[1])


def _complex(call: Call) -> Result:
    """Take both parts as they are given: aten::complex(Tensor real, Tensor imag) -> Tensor."""
    return [call.value("real"), call.value("imag")]


def _mul(call: Call) -> Result:
    """Multiply: aten::mul.Tensor(Tensor self, Tensor other) -> Tensor."""
    (a, b), (c, d) = (_parts(call, name) for name in ("self", "other"))
    if b is None or d is None:
        first, second, factor = (a, b, c) if d is None else (c, d, a)
        assert second is not None
        return [call.pointwise(hub.Mul(), part, factor) for part in (first, second)]
    real = call.pointwise(hub.Sub(), call.pointwise(hub.Mul(), a, c), call.pointwise(hub.Mul(), b, d))
    imaginary = call.pointwise(hub.Add(), call.pointwise(hub.Mul(), a, d), call.pointwise(hub.Mul(), b, c))
    return [real, imaginary]


def _sum(op: Op) -> Callable[[Call], Result]:
    def handler(call: Call) -> Result:
        """Add or subtract: aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor."""
        if call.argument("alpha") != 1:
            raise call.error("scales complex numbers by alpha", hint="multiply before")
        (a, b), (c, d) = (_parts(call, name) for name in ("self", "other"))
        zero = call.full((), 0.0, "float32")
        return [call.pointwise(op, a, c), call.pointwise(op, b or zero, d or zero)]

    return handler


COMPLEX_HANDLERS: Final[Mapping[OpOverload, Callable[[Call], Result]]] = {
    aten._fft_r2c.default: _r2c,
    aten._fft_c2c.default: _c2c,
    aten._fft_c2r.default: _c2r,
    aten.to.dtype: _to,
    aten._to_copy.default: _to,
    aten.view_as_real.default: _view_as_real,
    aten.real.default: _real,
    aten.imag.default: _imag,
    aten.complex.default: _complex,
    aten.abs.default: _abs,
    aten.mul.Tensor: _mul,
    aten.add.Tensor: _sum(hub.Add()),
    aten.sub.Tensor: _sum(hub.Sub()),
}


def _pair(call: Call, name: str) -> Pair:
    real, imaginary = _parts(call, name)
    return real, call.full(real.dims, 0.0, "float32") if imaginary is None else imaginary


def _parts(call: Call, name: str) -> tuple[Value, Value | None]:
    """Return the real part of an argument, and the imaginary one unless it is real."""
    given = call.parts(name)
    if isinstance(given, Value):
        return given, None
    if isinstance(given, (int, float)):
        return call.full((), given, "float32"), None
    if isinstance(given, complex):
        return call.full((), given.real, "float32"), call.full((), given.imag, "float32")
    real, imaginary = given
    assert real is not None
    return real, imaginary


def _transformed(call: Call, pair: Pair, axes: Sequence[int], sign: int, factor: float = 1.0) -> Pair:
    """Return the transform along axes by ``exp(sign * i * angle)``."""
    real, imaginary = pair
    for axis in axes:
        size = real.shape[axis]
        even, odd = (part * factor for part in _matrices(size, size, sign))
        products = [
            _product(call, part, matrix, axis) for part in (real, imaginary) for matrix in (even, odd)
        ]
        real = call.pointwise(hub.Sub(), products[0], products[3])
        imaginary = call.pointwise(hub.Add(), products[1], products[2])
        factor = 1.0
    return real, imaginary


def _matrices(size: int, bins: int, sign: int) -> tuple[Matrix, Matrix]:
    """Return the real and the imaginary part (size, bins) of ``exp(sign * 2 pi i * row * column / size)``."""
    turns = np.outer(np.arange(size), np.arange(bins)) % size * (2 * math.pi / size)
    return np.cos(turns), sign * np.sin(turns)


def _product(call: Call, x: Value, matrix: Matrix, axis: int) -> Value:
    """Return the product along an axis of `x` with a matrix (size, bins)."""
    weight = constant("", Dense(np.ascontiguousarray(matrix, np.float32)))
    last = swapped(call, x, axis, x.rank - 1) if axis != x.rank - 1 else x
    dims = (*last.dims[:-1], matrix.shape[1])
    made = call.helper(hub.MatMul(), last, weight, dims=dims, dtype="float32")
    return swapped(call, made, axis, x.rank - 1) if axis != x.rank - 1 else made


def _factor(call: Call, sizes: Sequence[int]) -> float:
    """Return what the transform is multiplied by: 1, one over the root of the elements, or over them."""
    return float((1.0, math.prod(sizes) ** -0.5, 1 / math.prod(sizes))[call.argument("normalization")])
