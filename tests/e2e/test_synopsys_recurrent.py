"""Recurrent layers of Synopsys' Caffe and FlowNet's correlation, against loops written from their sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime import CaffeforgeError
from tests.e2e.layer_cases import Random
from tests.e2e.synopsys_layers import Floats, computed

RANDOM = Random(23)
T, N, D, H, S = 5, 2, 3, 4, 6
X, STATIC = RANDOM.normal(T, N, D), RANDOM.normal(N, S)
MARKS = np.array([[0, 1], [1, 1], [1, 0], [0, 1], [1, 1]], np.float32)
START = [RANDOM.normal(1, N, H), RANDOM.normal(1, N, H)]
Cell = Callable[[Floats, list[Floats], list[Floats]], list[Floats]]


def sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)), np.float32)


def relu(x: Floats) -> Floats:
    return np.maximum(x, 0)


def simple(gates: Floats, states: list[Floats], w: list[Floats]) -> list[Floats]:
    return [np.tanh(gates + states[0] @ w[0].T)]


def rectified(gates: Floats, states: list[Floats], w: list[Floats]) -> list[Floats]:
    return [relu(gates + states[0] @ w[0].T)]


def gru(gates: Floats, states: list[Floats], w: list[Floats]) -> list[Floats]:
    update, reset, new = np.split(gates, 3, 1)
    h = states[0]
    z, r = sigmoid(update + h @ w[0].T), sigmoid(reset + h @ w[1].T)
    inner = r * (h @ w[2].T + w[3]) if len(w) == 4 else (r * h) @ w[2].T
    n = np.tanh(new + inner)
    return [n + z * (h - n)]


def lstm(gates: Floats, states: list[Floats], w: list[Floats]) -> list[Floats]:
    i, o, f, g = np.split(gates + states[0] @ w[0].T, 4, 1)
    c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(c), c]


def peephole(gates: Floats, states: list[Floats], w: list[Floats]) -> list[Floats]:
    i, o, f, g = np.split(gates + states[0] @ w[0].T, 4, 1)
    c = sigmoid(f + w[2] * states[1]) * states[1] + sigmoid(i + w[1] * states[1]) * np.tanh(g)
    return [sigmoid(o + w[3] * c) * np.tanh(c), c]


def unrolled(
    cell: Cell, count: int, blobs: list[Floats], *, static: bool, start: list[Floats]
) -> list[Floats]:
    """Return all hidden states, and the last states."""
    states = [each[0] for each in start] or [np.zeros((N, H), np.float32)] * count
    fixed = STATIC @ blobs[2].T if static else 0
    every = []
    for step, mark in zip(X, MARKS, strict=True):
        gates = step @ blobs[0].T + blobs[1] + fixed
        states = cell(gates, [mark[:, None] * state for state in states], blobs[2 + static :])
        every.append(states[0])
    return [np.stack(every), *[state[None] for state in states]]


CELLS: list[tuple[str, str, Cell, int, int, list[tuple[int, ...]]]] = [
    ("SimpleRNN", "", simple, 1, 1, [(H, H)]),
    ("SimpleRNN", 'activations: "Relu"', rectified, 1, 1, [(H, H)]),
    ("GRU", "", gru, 1, 3, [(H, H)] * 3),
    ("GRU", "linear_before_reset: 1", gru, 1, 3, [(H, H)] * 3 + [(H,)]),
    ("LSTMV2", "", lstm, 2, 4, [(4 * H, H)]),
    ("PeepholeLSTM", "", peephole, 2, 4, [(4 * H, H), (H,), (H,), (H,)]),
]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("exposed", [False, True])
@pytest.mark.parametrize(("kind", "fields", "cell", "count", "gates", "others"), CELLS)
def test_a_cell_is_unrolled_over_the_steps(
    kind: str, fields: str, cell: Cell, count: int, gates: int, others: list[tuple[int, ...]],
    exposed: bool, static: bool, tmp_path: Path,
) -> None:  # fmt: skip
    shapes = [(gates * H, D), (gates * H,), *([(gates * H, S)] * static), *others]
    blobs = [RANDOM.normal(*shape) for shape in shapes]
    start = START[:count] if exposed else []
    expected = unrolled(cell, count, blobs, static=static, start=start)[: 1 + count * exposed]
    text = f"num_output: {H} expose_hidden: {str(exposed).lower()} {fields}"
    bottoms = [X, MARKS, *([STATIC] * static), *start]
    layer = f'type: "{kind}" recurrent_param {{ {text} }}'
    found = computed(layer, bottoms, tmp_path, blobs=blobs, tops=len(expected))
    for top, due in zip(found, expected, strict=True):
        np.testing.assert_allclose(top, due, rtol=1e-4, atol=1e-5)


def test_the_second_form_of_the_layer_is_an_lstm(tmp_path: Path) -> None:
    blobs = [RANDOM.normal(4 * H, D), RANDOM.normal(4 * H), RANDOM.normal(4 * H, H)]
    (found,) = computed(
        f'type: "RNNv2" rnn_v2_param {{ hidden_size: {H} }}', [X, MARKS], tmp_path, blobs=blobs
    )
    expected = unrolled(lstm, 2, blobs, static=False, start=[])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        ('type: "GRU" recurrent_param { num_output: 4 direction: "reverse" }', "direction must be forward"),
        ('type: "SimpleRNN" recurrent_param { num_output: 4 activations: "Elu" }', "are read"),
        ('type: "LSTMV2" recurrent_param { num_output: 4 continue_recur: true }', "must be forward"),
        ('type: "RNNv2" rnn_v2_param { hidden_size: 4 direction: "bidirectional" }', "versions of the layer"),
        ('type: "RNNv2" rnn_v2_param { hidden_size: 4 activations: "Relu" }', "activations are heeded"),
    ],
)
def test_what_is_not_known_of_a_cell_is_refused(layer: str, sentence: str, tmp_path: Path) -> None:
    blobs = [np.zeros((4, 3), np.float32), np.zeros(4, np.float32), np.zeros((4, 4), np.float32)]
    with pytest.raises(CaffeforgeError, match=sentence):
        computed(layer, [X, MARKS], tmp_path, blobs=blobs)


@pytest.mark.parametrize(
    ("kernel", "most", "stride", "step", "pad", "kind"),
    [
        (1, 2, 1, 1, 2, "MULTIPLY"),
        (3, 2, 2, 2, 3, "MULTIPLY"),
        (3, 3, 1, 2, 4, "SUBTRACT"),
        (1, 2, 3, 1, 0, "SUBTRACT"),
    ],
)
def test_correlation_is_the_mean_over_a_window_and_all_channels(
    kernel: int, most: int, stride: int, step: int, pad: int, kind: str, tmp_path: Path
) -> None:
    a, b = RANDOM.normal(2, 3, 8, 9), RANDOM.normal(2, 3, 8, 9)
    fields = f"kernel_size: {kernel} max_displacement: {most} stride_1: {stride} stride_2: {step} pad: {pad}"
    layer = f'type: "Correlation" correlation_param {{ {fields} correlation_type: {kind} }}'
    (found,) = computed(layer, [a, b], tmp_path)
    p, q = (np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in (a, b))
    reach, border = most // step, most + kernel // 2
    rows, columns = (int(np.ceil((n + 2 * pad - 2 * border) / stride)) for n in (8, 9))
    assert found.shape == (2, (2 * reach + 1) ** 2, rows, columns)
    for c, i, j in np.ndindex(*found.shape[1:]):
        down, right = (c // (2 * reach + 1) - reach) * step, (c % (2 * reach + 1) - reach) * step
        y, x = i * stride + most, j * stride + most
        one = p[:, :, y : y + kernel, x : x + kernel]
        other = q[:, :, y + down : y + down + kernel, x + right : x + right + kernel]
        due = (abs(one - other) if kind == "SUBTRACT" else one * other).mean((1, 2, 3))
        np.testing.assert_allclose(found[:, c, i, j], due, rtol=1e-4, atol=1e-5)
