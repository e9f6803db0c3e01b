"""What multiplies by constant weights: a convolution or a matrix product, whose weights can hold more.

``y = W x + b`` followed by a scale and a shift of each channel is another such layer, and so is one that
follows a scale and a shift, as long as no padding of zeros comes between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import Dense
from caffeforge.runtime.folds.weights import Product
from caffeforge.runtime.graph import Node, Value, constant
from caffeforge.runtime.op import Op
from caffeforge.runtime.sharing import array_key

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """A node that multiplies by weights.

    Attributes:
        weight: constant; float32.
        bias: constant of one number, or of one for each channel of the result, or None.
    """

    node: Node
    x: Value
    weight: Value
    bias: Value | None

    @property
    def axis(self) -> int:
        """The axis of the channels, of what is read as of the result."""
        return 1 if isinstance(self.node.op, (hub.Conv, hub.ConvTranspose)) else self.x.rank - 1

    @property
    def weight_key(self) -> object:
        """What the weights are made of; equal for two products that have the same."""
        assert self.weight.data is not None
        return array_key(self.weight.data)

    @property
    def channels(self) -> int:
        """How many the result has."""
        return self.node.outputs[0].shape[self.axis]

    @property
    def columns_in(self) -> int:
        """The axis of the weights along which the channels lie that are read; of a single group."""
        op = self.node.op
        return 1 if isinstance(op, hub.Conv) or (isinstance(op, hub.Gemm) and op.transB) else 0

    @property
    def columns_out(self) -> int:
        """The axis of the weights along which the channels of the result lie; of a single group."""
        return 1 - self.columns_in

    def then(self, scale: Vector, shift: Vector, result: Value) -> Node:
        """Return the node that yields ``scale * y + shift``, by channel, as `result`."""
        known = np.zeros(self.channels) if self.bias is None else self._bias()
        bias = known * scale + shift
        return self._with(self._outer(scale), bias if self.bias is not None or bias.any() else None, result)

    def of(self, x: Value, scale: Vector, shift: Vector) -> Node | None:
        """Return the node that yields the same of `x` as this of ``scale * x + shift``, or None."""
        factors = self._inner(scale)
        bias = self._bias() if self.bias is not None else None
        if shift.any():
            op = self.node.op
            if isinstance(op, hub.ConvTranspose) or (isinstance(op, hub.Conv) and any(op.pads)):
                return None
            assert self.weight.data is not None
            taps = self.weight.data.numpy() * self._inner(shift)
            moved = taps.sum(tuple(axis for axis in range(taps.ndim) if axis != self.columns_out))
            bias = moved if bias is None else bias + moved
        node = self._with(factors, bias, self.node.outputs[0])
        return Node(node.name, node.op, [x, *node.inputs[1:]], node.outputs, node.origin)

    def _bias(self) -> Vector:
        assert self.bias is not None and self.bias.data is not None
        numbers = self.bias.data.numpy().astype(np.float64).reshape(-1)
        return np.broadcast_to(numbers, (self.channels,))

    def _outer(self, numbers: Vector) -> Vector:
        """Return factors of the weights, from one for each channel of the result."""
        op, shape = self.node.op, self.weight.shape
        if isinstance(op, hub.ConvTranspose):
            grouped = np.repeat(numbers.reshape(op.group, 1, -1), shape[0] // op.group, 1)
            return grouped.reshape(shape[0], shape[1], *[1] * (len(shape) - 2))
        if self.columns_out:
            return numbers.reshape(1, -1)
        return numbers.reshape(-1, *[1] * (len(shape) - 1))

    def _inner(self, numbers: Vector) -> Vector:
        """Return factors of the weights, from one for each channel that is read."""
        op, shape = self.node.op, self.weight.shape
        if isinstance(op, hub.Conv):
            grouped = np.repeat(numbers.reshape(op.group, 1, -1), shape[0] // op.group, 1)
            return grouped.reshape(shape[0], shape[1], *[1] * (len(shape) - 2))
        if self.columns_in:
            return numbers.reshape(1, -1)
        return numbers.reshape(-1, *[1] * (len(shape) - 1))

    def _with(self, factors: Vector, bias: Vector | None, result: Value) -> Node:
        assert self.weight.data is not None
        op: Op = self.node.op
        inputs = [self.x, self.weight]
        if (factors != 1).any():
            inputs[1] = constant(f"{self.weight.name}/scaled", Product(self.weight.data, factors))
        if bias is not None:
            known = self.bias.name if self.bias is not None else f"{self.weight.name}/bias"
            inputs.append(constant(f"{known}/scaled", Dense(bias.astype(np.float32))))
            if isinstance(op, hub.MatMul):
                op = caffe_ops.InnerProduct()
        return Node(self.node.name, op, inputs, [result], self.node.origin)


def linear(node: Node) -> Linear | None:
    """Return what `node` multiplies by constant weights alone, None if it does something else."""
    op = node.op
    if not isinstance(op, (hub.Conv, hub.ConvTranspose, hub.Gemm, hub.MatMul, caffe_ops.InnerProduct)):
        return None
    x, weight, bias = (*node.inputs, None)[:3]
    if x is None or weight is None or x.data is not None or weight.data is None or weight.dtype != "float32":
        return None
    matrix = not isinstance(op, (hub.Conv, hub.ConvTranspose))
    if (matrix and (weight.rank != 2 or x.rank < 2)) or (bias is not None and bias.data is None):
        return None
    if isinstance(op, hub.Gemm) and (op.transA or op.alpha != 1 or (bias is not None and op.beta != 1)):
        return None
    found = Linear(node, x, weight, bias)
    if bias is not None and bias.data is not None and bias.data.size not in (1, found.channels):
        return None
    return found
