"""LSTM, GRU and RNN of ONNX as layers: real Caffe against onnxruntime and PyTorch."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.legalize import legalize
from tests.e2e.layer_cases import Floats, Random
from tests.e2e.op_cases import OpCase, check
from tests.real_caffe.witness import Witness

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# ONNX's order of gates in torch's: i o f c of i f g o; z r h of r z n.
ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
HIDDEN, DEPTH, BATCH = 4, 2, 3


def torch_module(op: str, directions: int) -> nn.Module:
    """Return torch's layer with random weights."""
    torch.manual_seed(0)
    kinds: dict[str, Callable[..., nn.Module]] = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}
    return kinds[op](DEPTH, HIDDEN, bidirectional=directions == 2).double()


def onnx_weights(op: str, module: nn.Module, directions: int) -> list[Floats]:
    """Return the layer's W, R and B as ONNX has them."""
    tensors = {name: value.detach().numpy() for name, value in module.named_parameters()}

    def ordered(name: str) -> list[Any]:
        both = [tensors[f"{name}_l0{suffix}"] for suffix in ("", "_reverse")[:directions]]
        return [np.concatenate([np.split(t, GATES[op])[g] for g in ORDER[op]]) for t in both]

    biases = [np.concatenate(pair) for pair in zip(ordered("bias_ih"), ordered("bias_hh"), strict=True)]
    made = (ordered("weight_ih"), ordered("weight_hh"), biases)
    return [np.stack(parts).astype(np.float32) for parts in made]


def cases(op: str) -> list[OpCase]:
    """Return both directions, one step and several, with and without initial states and last ones."""
    r = Random(1)
    made = []
    for direction, steps, initial in itertools.product(DIRECTIONS, (1, 5), (False, True)):
        d = DIRECTIONS[direction]
        module = torch_module(op, d)
        weights = onnx_weights(op, module, d)
        shape = f"float32[{d}, {BATCH}, {HIDDEN}]"
        states = [f"h0: {shape}", f"c0: {shape}"][: 2 if op == "LSTM" else 1] if initial else []
        given = ["None", *(state.split(":")[0] for state in states)] if initial else []
        results = ["y", "h", "c"][: 3 if op == "LSTM" else 2]
        fields = f"hidden_size={HIDDEN}, direction='{direction}'" + ", linear_before_reset=1" * (op == "GRU")
        gates = GATES[op] * HIDDEN
        head = ", ".join([f"x: float32[{steps}, {BATCH}, {DEPTH}]", *states])
        sizes = {"W": (d, gates, DEPTH), "R": (d, gates, HIDDEN), "B": (d, 2 * gates)}
        constants = ", ".join(f"{name}: float32{list(shape)}" for name, shape in sizes.items())
        for count in {1, 2, len(results)}:
            call = f"{op}({', '.join(['x, W, R, B', *given])}, {fields})"
            text = f"({head}, *, {constants}): {', '.join(results[:count])} = {call}"
            inputs = [r.normal(steps, BATCH, DEPTH), *(r.normal(d, BATCH, HIDDEN) for _ in states)]
            expected = by_torch(module, op, count) if direction != "reverse" else None
            made.append(OpCase(text, inputs, weights, expected))
    return made


def by_torch(module: nn.Module, op: str, count: int) -> Callable[..., Any]:
    """Return a function that runs torch's layer and gives ONNX's first `count` results."""

    def run(x: Any, *states: Any) -> Any:
        tensors = [torch.from_numpy(state).double() for state in states]
        initial = (tuple(tensors) if op == "LSTM" else tensors[0]) if tensors else None
        with torch.no_grad():
            every, last = module(torch.from_numpy(x).double(), initial)
        lasts = last if op == "LSTM" else (last,)
        steps, batch, width = every.shape
        y = every.reshape(steps, batch, width // HIDDEN, HIDDEN).permute(0, 2, 1, 3)
        return tuple(t.numpy() for t in (y, *lasts)[:count])

    return run


@pytest.mark.parametrize("op", GATES)
def test_op_as_layers(op: str, caffe: Witness, tmp_path: Path) -> None:
    check(cases(op), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    check([case for op in GATES for case in cases(op)], kendryte, tmp_path)


def test_reset_gate_before_the_product(caffe: Witness, tmp_path: Path) -> None:
    """ONNX's own GRU, which torch has not."""
    r = Random(2)
    weights = [r.normal(1, 12, DEPTH), r.normal(1, 12, HIDDEN), r.normal(1, 24)]
    constants = "W: float32[1, 12, 2], R: float32[1, 12, 4], B: float32[1, 24]"
    plain = f"(x: float32[5, 3, 2], *, {constants}): y, h = GRU(x, W, R, B, hidden_size=4)"
    head = f"(x: float32[5, 3, 2], h0: float32[1, 3, 4], *, {constants})"
    begun = f"{head}: y, h = GRU(x, W, R, B, None, h0, hidden_size=4)"
    check([OpCase(text, weights=weights) for text in (plain, begun)], caffe, tmp_path)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("activations=('Sigmoid', 'Relu', 'Tanh')", "activations must be Sigmoid, Tanh, Tanh"),
        ("clip=3.0", "clip, layout and sequence_lens have no layer"),
        ("input_forget=1", "input_forget and peepholes have no layer"),
    ],
)
def test_what_no_layer_computes_is_refused(fields: str, reason: str) -> None:
    r = Random(3)
    weights = [r.normal(1, 16, DEPTH), r.normal(1, 16, HIDDEN)]
    head = "(x: float32[5, 3, 2], *, W: float32[1, 16, 2], R: float32[1, 16, 4])"
    graph = OpCase(f"{head}: y = LSTM(x, W, R, hidden_size=4, {fields})", weights=weights).graph()
    with pytest.raises(LegalizeError, match=reason):
        legalize(graph, BACKEND)
