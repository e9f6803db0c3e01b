"""Recurrent layers: PyTorch's stacks of LSTM, GRU and RNN as one node a layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.op import Op
from caffeforge.runtime.symbol import Dim
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import joined, reshaped, sliced, transposed
from caffeforge.runtime.torch_front.registry import Result, torch_op
from caffeforge.runtime.torch_front.weights import tensor_of

aten = torch.ops.aten

# Where ONNX's gates stand among PyTorch's: ONNX has i, o, f, c for i, f, g, o, and z, r, h for r, z, n.
_LSTM_GATES: Final = (0, 3, 1, 2)
_GRU_GATES: Final = (1, 0, 2)
_RNN_GATES: Final = (0,)


@torch_op(aten.lstm.input)
def lstm(call: Call) -> Result:
    """Give output, last hidden states and last cell states.

    aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers,
    float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)
    """
    states = call.values("hx")
    stack = _Stack.of(call, states[0].shape[-1], states)
    op = hub.LSTM(hidden_size=stack.hidden, direction=stack.direction)
    return stack.run(op, _LSTM_GATES)


@torch_op(aten.gru.input)
def gru(call: Call) -> Result:
    """Give output and last hidden states.

    aten::gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers,
    float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
    """
    state = call.value("hx")
    stack = _Stack.of(call, state.shape[-1], [state])
    # PyTorch's reset gate scales the product with the hidden state, not the state.
    op = hub.GRU(hidden_size=stack.hidden, direction=stack.direction, linear_before_reset=1)
    return stack.run(op, _GRU_GATES)


@torch_op(aten.rnn_tanh.input, aten.rnn_relu.input)
def rnn(call: Call) -> Result:
    """Give output and last hidden states.

    aten::rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers,
    float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
    aten::rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers,
    float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
    """
    state = call.value("hx")
    stack = _Stack.of(call, state.shape[-1], [state])
    name = "Tanh" if call.overload is aten.rnn_tanh.input else "Relu"
    op = hub.RNN(hidden_size=stack.hidden, direction=stack.direction, activations=(name,) * stack.directions)
    return stack.run(op, _RNN_GATES)


@dataclass(frozen=True)
class _Stack:
    """The layers of one call.

    Attributes:
        call: the call.
        hidden: the size of a hidden state.
        directions: 2 if it runs both ways, else 1.
        states: the first hidden states of all layers, and the first cell states of an LSTM.
        params: the weights: for each layer and direction the input's, the state's, and their biases.
    """

    call: Call
    hidden: int
    directions: int
    states: Sequence[Value]
    params: Sequence[torch.Tensor]

    @staticmethod
    def of(call: Call, hidden: int, states: Sequence[Value]) -> _Stack:
        """Return the layers of `call`.

        Raises:
            FrontEndError: it drops elements at random, or its weights are computed.
        """
        if call.argument("train") and call.argument("dropout"):
            raise call.error("drops elements at random", hint="export it in evaluation mode")
        params = []
        for value in call.values("params"):
            if value.data is None:
                raise call.error("has weights that are computed", hint="make them parameters")
            params.append(tensor_of(value.data))
        directions = 2 if call.argument("bidirectional") else 1
        tensors = len(params) // (call.argument("num_layers") * directions)
        assert tensors == (4 if call.argument("has_biases") else 2)  # own_rules takes those that project
        return _Stack(call, hidden, directions, states, params)

    @property
    def direction(self) -> str:
        return "bidirectional" if self.directions == 2 else "forward"

    def run(self, op: Op, gates: Sequence[int]) -> Result:
        """Add a node a layer; return the last output and the last states of all, in PyTorch's shapes."""
        call = self.call
        x = call.value("input")
        single = x.rank == 2
        batch_first = bool(call.argument("batch_first"))
        if single:  # one sequence without batch axis
            x = reshaped(call, x, (x.dims[0], 1, x.dims[1]), kept=1)
        elif batch_first:
            x = transposed(call, x, (1, 0, 2))
        lasts: list[list[Value]] = [[] for _ in self.states]
        for layer in range(call.argument("num_layers")):
            x, found = self._layer(op, gates, layer, x)
            for states, state in zip(lasts, found, strict=True):
                states.append(state)
        if not single and batch_first:
            x = transposed(call, x, (1, 0, 2))
        results = [x, *(joined(call, states, 0) for states in lasts)]
        return [
            reshaped(call, result, dims, kept=1)
            for result, dims in zip(results, call.result_dims, strict=True)
        ]

    def _layer(self, op: Op, gates: Sequence[int], layer: int, x: Value) -> tuple[Value, list[Value]]:
        """Return a layer's output, (length, batch, directions * hidden), and its last states."""
        call, directions, hidden = self.call, self.directions, self.hidden
        length, batch = x.dims[:2]
        weights = [call.tensor(tensor) for tensor in self._weights(gates, layer)]
        bias = weights[2] if len(weights) == 3 else None
        firsts = [] if self._start_at_zero() else [self._first(s, layer, batch) for s in self.states]
        shape = (directions, batch, hidden)
        results = [(x.dtype, (length, *shape)), *((x.dtype, shape) for _ in self.states)]
        y, *lasts = call.helper_of_many(op, x, *weights[:2], bias, None, *firsts, results=results)
        if directions == 1:
            return reshaped(call, y, (length, batch, hidden)), lasts
        both = transposed(call, y, (0, 2, 1, 3))
        return reshaped(call, both, (length, batch, directions * hidden)), lasts

    def _start_at_zero(self) -> bool:
        """Tell whether all first states are known to be zero, as ONNX takes them when they are left out."""
        return all(state.data is not None and not tensor_of(state.data).any() for state in self.states)

    def _first(self, state: Value, layer: int, batch: Dim) -> Value:
        start = layer * self.directions
        given = reshaped(self.call, state, (state.dims[0], batch, self.hidden))
        if given.data is not None:
            part = tensor_of(given.data)[start : start + self.directions]
            return self.call.tensor(part)
        return sliced(self.call, given, 0, start, start + self.directions)

    def _weights(self, gates: Sequence[int], layer: int) -> list[torch.Tensor]:
        """Return a layer's weights as ONNX takes them: both directions stacked, gates in its order."""
        count = 4 if self.call.argument("has_biases") else 2
        start = layer * self.directions * count
        rows = [self.params[start + i * count : start + (i + 1) * count] for i in range(self.directions)]
        turned = [[_in_order(tensor, gates) for tensor in row] for row in rows]
        stacked = [torch.stack([row[0] for row in turned]), torch.stack([row[1] for row in turned])]
        if count == 4:
            stacked.append(torch.stack([torch.cat(row[2:]) for row in turned]))
        return stacked


def _in_order(weight: torch.Tensor, gates: Sequence[int]) -> torch.Tensor:
    """Return `weight` with its blocks of rows, one a gate, in another order."""
    blocks = weight.chunk(len(gates))
    return torch.cat([blocks[gate] for gate in gates])
