"""What Caffe cannot compute is refused by the reason, not by the lack of a rule."""

from itertools import chain

import pytest

from caffeforge.generated import hub
from caffeforge.generated.bvlc import BACKEND
from caffeforge.generated.bvlc_master import BACKEND as MASTER
from caffeforge.generated.hub.lowerings import IMPOSSIBLE, RULES
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.op import Op

OPS = [op for op in vars(hub).values() if isinstance(op, type) and issubclass(op, Op) and op is not Op]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(x: float32[3, 3]): y = Det(x)", "no fixed number of layers does"),
        ("(x: float32[2, 3]): y = Bernoulli(x)", "random numbers are not those of another program"),
        ("(x: float32[2, 3]): y = Atan(x)", "no layer computes this function"),
        (
            "(x: float32[2, 3, 8, 8], r: float32[4, 5]): y = MaxRoiPool(x, r, pooled_shape=(2, 2))",
            "cut the model",
        ),
        (
            "(x: float32[2, 3], i: int64[2, 1], u: float32[2, 1]): y = ScatterElements(x, i, u, axis=1)",
            "a Caffe blob holds float32",
        ),
        (
            "(x: float32[2, 64, 99, 99], g: float32[2, 99, 99, 2]): y = GridSample(x, g)",
            "more than 2\\*\\*26 products",
        ),
        (
            "(x: float32[2, 3, 4, 5], g: float32[2, 3, 3, 2]): y = GridSample(x, g, mode='cubic')",
            "cubic sampling",
        ),
    ],
)
def test_the_reason_is_told(text: str, reason: str) -> None:
    head, line = text.split("):")
    graph = Graph.parse(f"def net{head}):\n    {line.strip()}\n    return y")
    with pytest.raises(LegalizeError, match=reason):
        legalize(graph, BACKEND)


def test_no_op_is_both_said_by_others_and_impossible() -> None:
    assert not IMPOSSIBLE.keys() & (RULES.keys() | BACKEND.rules.keys())


@pytest.mark.parametrize("backend", [BACKEND, MASTER], ids=lambda backend: backend.name)
def test_every_op_of_the_hub_is_written_or_refused_by_a_reason_of_its_own(backend: Backend) -> None:
    """So that no report says of an op of ONNX no more than that there is no rule."""
    assert len(OPS) > 190
    left = {op.op_type for op in OPS} - {op.op_type for op in chain(backend.rules, RULES, IMPOSSIBLE)}
    assert not left
    assert all(len(reason.split()) > 4 for reason in IMPOSSIBLE.values())
