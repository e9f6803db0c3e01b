"""One step of RNN and GRU as ops: what an unrolled layer repeats."""

from __future__ import annotations

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Array, Dense, Slab, reshape, transpose
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.graph import Value
from caffeforge.runtime.lib import array


class RnnCell:
    """h = tanh(x + W h), where x holds the input's part and both biases."""

    def __init__(self, e: Builder, R: Value, B: Value | None) -> None:
        self.e = e
        self.bias = bias_sum(B, R.shape[2])
        self.recurrent = transpose(only(R), (1, 0))

    def step(self, x: Value, h: Value | None) -> Value:
        """Return the state (1, N, H) after a step; h is None where it is zero."""
        if h is not None:
            x = self.e.value(hub.Add(), (x, self.e.value(hub.MatMul(), (h, self.recurrent))))
        return self.e.value(hub.Tanh(), (x,))


class GruCell:
    """h = n + z (h - n); n = tanh(x_n + r (W_n h + b_n)), or with r inside the product; gates are z, r, n."""

    def __init__(self, e: Builder, op: hub.GRU, R: Value, B: Value | None) -> None:
        self.e = e
        self.size = R.shape[2]
        self.reset_behind = op.linear_before_reset != 0
        biases = np.zeros((2, 3, self.size), np.float32) if B is None else array(B).numpy().reshape(2, 3, -1)
        inward = biases[0] + biases[1]
        if self.reset_behind:
            inward[2] = biases[0, 2]
        self.bias = Dense(inward.reshape(-1))
        self.behind = Dense(biases[1, 2])
        matrix = only(R)
        self.recurrent = transpose(matrix, (1, 0))
        self.gates = transpose(Slab(matrix, 0, 2 * self.size), (1, 0))
        self.candidate = transpose(Slab(matrix, 2 * self.size, 3 * self.size), (1, 0))

    def step(self, x: Value, h: Value | None) -> Value:
        """Return the state (1, N, H) after a step; h is None where it is zero."""
        value = self.e.value
        gates, new = self._halves(x)
        if h is None:
            z, r = self._gates(gates)
            if self.reset_behind:
                new = value(hub.Add(), (new, value(hub.Mul(), (r, self.behind))))
            n = value(hub.Tanh(), (new,))
            return value(hub.Sub(), (n, value(hub.Mul(), (z, n))))
        if self.reset_behind:
            mixed_gates, mixed = self._halves(value(hub.MatMul(), (h, self.recurrent)))
            z, r = self._gates(value(hub.Add(), (gates, mixed_gates)))
            kept = value(hub.Mul(), (r, value(hub.Add(), (mixed, self.behind))))
        else:
            z, r = self._gates(value(hub.Add(), (gates, value(hub.MatMul(), (h, self.gates)))))
            kept = value(hub.MatMul(), (value(hub.Mul(), (r, h)), self.candidate))
        n = value(hub.Tanh(), (value(hub.Add(), (new, kept)),))
        return value(hub.Add(), (n, value(hub.Mul(), (z, value(hub.Sub(), (h, n))))))

    def _halves(self, x: Value) -> list[Value]:
        return self.e.values(hub.Split(axis=2, split=(2 * self.size, self.size)), (x,), 2)

    def _gates(self, x: Value) -> list[Value]:
        opened = self.e.value(hub.Sigmoid(), (x,))
        return self.e.values(hub.Split(axis=2, split=(self.size, self.size)), (opened,), 2)


def only(weights: Value) -> Array:
    """Return the matrix of the only direction."""
    return reshape(array(weights), weights.shape[1:])


def bias_sum(biases: Value | None, size: int) -> Array:
    """Return the sum of the input's and the state's bias of the only direction; zeros if there are none."""
    if biases is None:
        return Dense(np.zeros(size, np.float32))
    return Dense(array(biases).numpy().reshape(2, size).sum(0, dtype=np.float32))
