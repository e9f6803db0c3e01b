"""Recurrent layers: what Caffe's unrolled nets compute, and ONNX's recurrent ops as layers; gathers, TopK.

Caffe's cell reads x (T, N, ...) and cont (T, N): before step t the state is multiplied by ``cont[t]``, so
that 0 begins a new sequence. Without ``expose_hidden`` the state before the first step is what the last
forward pass left; here it is zero, as in the first pass. Gates stand in the order i, f, o, g; ONNX's are
i, o, f, c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, Protocol, cast

import numpy as np

from caffeforge.generated import hub
from caffeforge.runtime.array import Array, Dense, Joined, NDArray, Slab, reshape, transpose
from caffeforge.runtime.emit import Emit
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.hooks.cells import GruCell, RnnCell, bias_sum, only
from caffeforge.runtime.lib import array, in_shape
from caffeforge.runtime.message import LayerParam
from caffeforge.runtime.op import Op
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused

PIECES = 256  # of one axis, each a blob of its own
GATES = (0, 2, 1, 3)  # exchanges o and f: Caffe's order in ONNX's and the other way round


class Recurrent(Protocol):
    """Caffe's RecurrentParameter."""

    @property
    def num_output(self) -> int | None: ...

    @property
    def expose_hidden(self) -> bool | None: ...


def read_recurrent(r: Read, param: Recurrent) -> None:
    """Read a recurrent layer, LSTM or RNN."""
    (_read_rnn if r.layer.type == "RNN" else _read_lstm)(r, param)


def _read_lstm(r: Read, param: Recurrent) -> None:
    """Read layer LSTM: tops are h (T, N, H) and, if exposed, the last h and c (1, N, H)."""
    bottoms = Bottoms(r, param, states=2)
    (*inputs, recurrent), bias = bottoms.blobs(r, 3)
    weights = (
        stack(blocks(columns(inputs), 4, GATES)),
        stack(blocks(array(recurrent), 4, GATES)),
        stack(Joined([blocks(array(bias), 4, GATES), Dense(np.zeros(4 * bottoms.size, np.float32))])),
    )
    every, states = run_steps(r, bottoms, hub.LSTM(hidden_size=bottoms.size), weights)
    r.top(0, every)
    if bottoms.exposed:
        for index, state in enumerate(states, 1):
            r.top(index, state)


def _read_rnn(r: Read, param: Recurrent) -> None:
    """Read layer RNN: tops are tanh(W_o h + b_o) (T, N, H) and, if exposed, the last h (1, N, H)."""
    bottoms = Bottoms(r, param, states=1)
    (*inputs, recurrent, outward, outward_bias), bias = bottoms.blobs(r, 5)
    weights = (
        stack(columns(inputs)),
        stack(array(recurrent)),
        stack(Joined([reshape(array(bias), [bottoms.size]), Dense(np.zeros(bottoms.size, np.float32))])),
    )
    every, states = run_steps(r, bottoms, hub.RNN(hidden_size=bottoms.size), weights)
    mixed = r.value(hub.MatMul(), (every, transpose(array(outward), (1, 0))))
    r.top(0, r.value(hub.Tanh(), (r.value(hub.Add(), (mixed, array(outward_bias))),)))
    if bottoms.exposed:
        r.top(1, states[0])


class Bottoms:
    """The bottoms of a recurrent layer by their meaning.

    Attributes:
        x: (T, N, D), with the static bottom, if there is one, behind each step.
        cont: (T, N).
        initial: the exposed states, (1, N, H) each.
        size: H.
    """

    def __init__(self, r: Read, param: Recurrent, states: int) -> None:
        self.size = param.num_output or 0
        self.exposed = bool(param.expose_hidden)
        due = 2 + states * self.exposed
        if self.size <= 0 or not due <= len(r.bottoms) <= due + 1:
            raise Refused(f"num_output and {due} or {due + 1} bottoms are due")
        steps, self.cont, *rest = r.bottoms
        self.x = r.value(hub.Reshape(shape=(0, 0, -1)), (steps,))
        self.static = len(r.bottoms) > due
        if self.static:
            row = r.value(hub.Reshape(shape=(1, steps.shape[1], -1)), (rest.pop(0),))
            rows = r.value(hub.Tile(repeats=(steps.shape[0], 1, 1)), (row,))
            self.x = r.value(hub.Concat(axis=2), (self.x, rows))
        self.initial = rest

    def blobs(self, r: Read, count: int) -> tuple[Sequence[Value], Value]:
        """Return the layer's blobs but for the first bias, and that bias."""
        if len(r.blobs) != count + self.static:
            raise Refused(f"{count + self.static} blobs are due, {len(r.blobs)} are given")
        first, bias, *others = self._shaped(r, 4 if count == 3 else 1)
        return [first, *others], bias

    def _shaped(self, r: Read, gates: int) -> list[Value]:
        """Return the blobs in the shapes that are due; random ones have none before."""
        rows = gates * self.size
        shapes: list[tuple[int, ...]] = [(rows, prod(r.bottoms[0].shape[2:])), (rows,)]
        if self.static:
            shapes.append((rows, prod(r.bottoms[2].shape[1:])))
        shapes += [(rows, self.size), (self.size, self.size), (self.size,)]
        due = zip(r.blobs[:], shapes, strict=False)
        return [constant(blob.name, in_shape(blob, shape)) for blob, shape in due]


def run_steps(
    r: Read, bottoms: Bottoms, op: Op, weights: Sequence[Array], peepholes: Array | None = None
) -> tuple[Value, list[Value]]:
    """Return the hidden state of all steps (T, N, H), and the last states (1, N, H).

    Steps before which every state is kept run in one op. Peepholes are those of an LSTM.
    """
    steps = bottoms.x.shape[0]
    marks = _elements(bottoms.cont)
    begins = [t for t in range(steps) if t == 0 or marks is None or not (marks[t] == 1).all()]
    states: list[Value] = bottoms.initial
    parts = []
    for begin, end in zip(begins, [*begins[1:], steps], strict=True):
        x = r.value(hub.Slice(starts=(begin,), ends=(end,), axes=(0,)), (bottoms.x,))
        given = _kept(r, states, bottoms.cont, marks, begin)
        known = (*given, *([None] * (2 - len(given))), peepholes) if peepholes is not None else given
        part, *states = r.values(op, (x, *weights, None, *known), len(op.outputs))
        parts.append(part)
    every = r.value(hub.Concat(axis=0), parts)
    return r.value(hub.Squeeze(axes=(1,)), (every,)), states


def _kept(r: Read, states: Sequence[Value], cont: Value, marks: NDArray | None, step: int) -> Sequence[Value]:
    """Return the states before `step` times its marks; none where they are zero."""
    if marks is not None and (marks[step] == 0).all():
        return ()
    if not states or (marks is not None and (marks[step] == 1).all()):
        return states
    row = r.value(hub.Slice(starts=(step,), ends=(step + 1,), axes=(0,)), (cont,))
    mark = r.value(hub.Unsqueeze(axes=(2,)), (row,))
    return [r.value(hub.Mul(), (state, mark)) for state in states]


def _elements(value: Value) -> NDArray | None:
    """Return the elements of a value that is a constant, or a copy of one."""
    while value.data is None and value.producer is not None and value.producer.op.op_type == "Identity":
        (source,) = value.producer.inputs
        assert source is not None
        value = source
    return None if value.data is None else value.data.numpy()


def blocks(source: Array, count: int, order: Sequence[int]) -> Array:
    """Return the `count` equal blocks of rows of `source` in another order."""
    size = source.shape[0] // count
    return Joined([Slab(source, block * size, (block + 1) * size) for block in order])


def columns(sources: Sequence[Value]) -> Array:
    """Return matrices of equally many rows side by side."""
    blobs = [array(source) for source in sources]
    matrices = [reshape(blob, [blob.shape[0], blob.size // blob.shape[0]]) for blob in blobs]
    return matrices[0] if len(matrices) == 1 else Joined(matrices, axis=1)


def stack(source: Array) -> Array:
    """Return `source` as the weights of one direction."""
    return reshape(source, (1, *source.shape))


def lstm(
    e: Emit,
    op: hub.LSTM,
    X: Value,
    W: Value,
    R: Value,
    B: Value | None,
    sequence_lens: Value | None,
    initial_h: Value | None,
    initial_c: Value | None,
    P: Value | None,
    Y: Value | None,
    Y_h: Value | None,
    Y_c: Value | None,
) -> None:
    """Write LSTM as a layer LSTM for each direction; it exposes states where the first or last are due."""
    _check(op, ("Sigmoid", "Tanh", "Tanh"), sequence_lens)
    if op.input_forget or P is not None:
        raise Refused("input_forget and peepholes have no layer")
    if op.direction != "forward":
        return _directions(e, op, X, (W, R, B), (initial_h, initial_c), (Y, Y_h, Y_c))
    size, steps = R.shape[2], X.shape[0]
    given = (initial_h, initial_c)
    blank = _add(e, "Reduction", [X], axis=2, coeff=0.0)
    marks = np.ones(steps, np.float32)
    marks[0] = any(state is not None for state in given)
    cont = _add(e, "Bias", [blank], axis=0, blobs=[Dense(marks)])
    exposed = Y_c is not None or any(state is not None for state in given)
    row = _add(e, "Slice", [blank], axis=0, slice_point=(1,), loose=1) if exposed and steps > 1 else blank
    states = [_state(e, state, row, size) for state in given] if exposed else []
    every = Value(e.fresh("h"), "float32", (steps, X.dims[1], size))
    last = [value or Value(e.fresh("last"), "float32", ()) for value in (Y_h, Y_c)] if exposed else []
    blobs = [blocks(blob, 4, GATES) for blob in (only(W), bias_sum(B, 4 * size), only(R))]
    param = _param(e, "LSTM", num_output=size, expose_hidden=exposed or None)
    e.layer(param, [X, cont, *states], blobs=blobs, tops=[every, *last])
    if Y_h is not None and not exposed:
        _last_step(e, every, Y_h)
    if Y is not None:
        _add(e, "Reshape", [every], Y, shape=_shape(e, 1), axis=1, num_axes=0)


def unrolled(
    e: Emit,
    op: hub.RNN | hub.GRU,
    X: Value,
    W: Value,
    R: Value,
    B: Value | None,
    sequence_lens: Value | None,
    initial_h: Value | None,
    Y: Value | None,
    Y_h: Value | None,
) -> None:
    """Write RNN and GRU step by step; each step holds a copy of the recurrent weights."""
    gru = isinstance(op, hub.GRU)
    _check(op, ("Sigmoid", "Tanh") if gru else ("Tanh",), sequence_lens)
    if op.direction != "forward":
        return _directions(e, op, X, (W, R, B), (initial_h,), (Y, Y_h))
    steps = X.shape[0]
    cell = GruCell(e, op, R, B) if isinstance(op, hub.GRU) else RnnCell(e, R, B)
    mixed = e.value(hub.MatMul(), (X, transpose(only(W), (1, 0))))
    shifted = e.value(hub.Add(), (mixed, cell.bias))
    parts = e.values(hub.Split(axis=0, split=(1,) * steps), (shifted,), steps) if steps > 1 else [shifted]
    state, states = initial_h, []
    for part in parts:
        state = cell.step(part, state)
        states.append(state)
    if Y is not None:
        every = e.value(hub.Concat(axis=0), states)
        e.apply(hub.Unsqueeze(axes=(1,)), (every,), (Y,))
    if Y_h is not None:
        e.apply(hub.Identity(), (states[-1],), (Y_h,))


def gather(e: Emit, op: hub.Gather, data: Value, indices: Value, output: Value) -> None:
    """Write Gather at known places: the axis is cut into runs, which are joined in their new order."""
    axis = op.axis % data.rank
    size = data.shape[axis]
    places = [int(place) % size for place in array(indices).numpy().reshape(-1)]
    begins = [0, *(i for i in range(1, len(places)) if places[i] != places[i - 1] + 1), len(places)]
    runs = [(places[a], places[b - 1] + 1) for a, b in pairwise(begins)]
    borders = sorted({0, size, *(border for run in runs for border in run)})
    if max(len(borders), len(runs)) > PIECES:
        raise Refused(f"the axis would be cut into more than {PIECES} pieces")
    sizes = tuple(b - a for a, b in pairwise(borders))
    pieces = [data]
    if len(sizes) > 1:
        pieces = e.values(hub.Split(axis=axis, split=sizes), (data,), len(sizes))
    at = {border: index for index, border in enumerate(borders)}
    order = [piece for begin, end in runs for piece in pieces[at[begin] : at[end]]]
    e.apply(hub.Concat(axis=axis), order, (output,))


def top_k(e: Emit, op: hub.TopK, X: Value, Values: Value, Indices: Value) -> None:
    """Write TopK as ArgMax, once for values and once for places.

    Of equal elements ONNX takes the first and Caffe the last: for the places the axis is reversed, by one
    Slice into all its elements, and the places are counted from its other end.
    """
    axis, count = op.axis % X.rank, e.known(op.K)
    size = X.shape[axis]
    if size > PIECES:
        raise Refused(f"the axis would be cut into more than {PIECES} pieces")
    source = X if op.largest else _add(e, "Power", [X], scale=-1.0)
    least = Values if op.largest else None
    most = _add(e, "ArgMax", [source], least, axis=axis, top_k=count, out_max_val=True)
    if not op.largest:
        _add(e, "Power", [most], Values, scale=-1.0)
    if size == 1:
        _add(e, "Power", [source], Indices, scale=0.0)
        return
    pieces = [Value(e.fresh("piece"), "float32", ()) for _ in range(size)]
    e.layer(_param(e, "Slice", axis=axis, slice_point=tuple(range(1, size))), [source], tops=pieces)
    e.calls[-1].name = e.fresh("Slice")
    reverse = _add(e, "Concat", pieces[::-1], axis=axis)
    places = _add(e, "ArgMax", [reverse], axis=axis, top_k=count)
    _add(e, "Power", [places], Indices, scale=-1.0, shift=size - 1.0)


def _check(op: hub.LSTM | hub.RNN | hub.GRU, activations: tuple[str, ...], lengths: Value | None) -> None:
    """Refuse what no recurrent layer computes."""
    directions = 2 if op.direction == "bidirectional" else 1
    due = activations * directions
    if op.activations is not None and op.activations[: len(due)] != due:
        raise Refused(f"the activations must be {', '.join(activations)}")
    if op.activation_alpha or op.activation_beta or op.clip is not None or op.layout or lengths is not None:
        raise Refused("activation parameters, clip, layout and sequence_lens have no layer")


def _directions(
    e: Emit,
    op: hub.LSTM | hub.RNN | hub.GRU,
    X: Value,
    weights: Sequence[Value | None],
    states: Sequence[Value | None],
    results: Sequence[Value | None],
) -> None:
    """Write an op that goes backward, or both ways, as ops that go forward over time or reversed time."""
    backward = [True] if op.direction == "reverse" else [False, True]
    fields = {attribute.name: value for attribute, value in op.fields()}
    if op.activations is not None:
        fields["activations"] = op.activations[: len(op.activations) // len(backward)]
    forward = type(op)(**(fields | {"direction": "forward"}))
    count = max(index for index, result in enumerate(results) if result is not None) + 1
    found = []
    for index, reverse in enumerate(backward):
        own = [Slab(array(blob), index, index + 1) if blob is not None else None for blob in weights]
        begin = [_part(e, state, index) for state in states] if len(backward) > 1 else states
        x = _reversed(e, X) if reverse else X
        every, *last = e.values(forward, (x, *own, None, *begin), count)
        found.append([_reversed(e, every) if reverse else every, *last])
    for axis, result, parts in zip((1, 0, 0), results, zip(*found, strict=True), strict=False):
        if result is not None:
            e.apply(hub.Concat(axis=axis), parts, (result,))


def _reversed(e: Emit, x: Value) -> Value:
    """Return x with its first axis reversed."""
    flip = hub.Slice(starts=(-1,), ends=(-x.shape[0] - 1,), axes=(0,), steps=(-1,))
    return e.value(flip, (x,)) if x.shape[0] > 1 else x


def _part(e: Emit, state: Value | None, index: int) -> Value | None:
    """Return the initial state of one of two directions."""
    if state is None:
        return None
    return e.value(hub.Slice(starts=(index,), ends=(index + 1,), axes=(0,)), (state,))


def _state(e: Emit, state: Value | None, row: Value, size: int) -> Value:
    """Return an initial state (1, N, H) as a bottom; zeros, from a row (1, N) of them, if there is none."""
    if state is None:
        column = _add(e, "Reshape", [row], shape=_shape(e, 1), axis=2, num_axes=0)
        return _add(e, "Tile", [column], axis=2, tiles=size)
    if state.data is not None:
        return _add(e, "Parameter", [], blobs=[state.data], shape=_shape(e, *state.shape))
    return state


def _last_step(e: Emit, every: Value, result: Value) -> None:
    steps = every.shape[0]
    if steps > 1:
        _add(e, "Slice", [every], result, axis=0, slice_point=(steps - 1,), loose=1, kept=1)
    else:
        _add(e, "Split", [every], result)


def _shape(e: Emit, *sizes: int) -> Any:
    return cast(Any, e.backend.messages["BlobShape"])(dim=sizes)


def _param(e: Emit, kind: str, **fields: Any) -> LayerParam:
    return cast("Callable[..., LayerParam]", e.backend.layer_types[kind])(**fields)


def _add(
    e: Emit,
    kind: str,
    bottoms: Sequence[Value],
    result: Value | None = None,
    *,
    blobs: Sequence[Array] = (),
    loose: int = 0,
    kept: int = 0,
    **fields: Any,
) -> Value:
    """Append a layer beside the op's own, and return its top: `result` if that is given."""
    made = e.layer(_param(e, kind, **fields), bottoms, blobs=blobs, loose=loose, kept=kept)
    if result is None:
        return made
    tops = e.calls[-1].tops
    tops[tops.index(made)] = result
    return result
