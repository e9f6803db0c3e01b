"""What Caffe cannot compute is refused by the reason, not by the lack of a rule."""

import pytest

from caffeforge.generated.bvlc import BACKEND
from caffeforge.generated.hub.lowerings import IMPOSSIBLE, RULES
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.legalize import legalize


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(x: float32[3, 3]): y = Det(x)", "no fixed number of layers does"),
        ("(x: float32[2, 3]): y = Bernoulli(x)", "random numbers are not those of another program"),
        ("(x: float32[2, 3]): y = Atan(x)", "no layer computes this function"),
    ],
)
def test_the_reason_is_told(text: str, reason: str) -> None:
    head, line = text.split("):")
    graph = Graph.parse(f"def net{head}):\n    {line.strip()}\n    return y")
    with pytest.raises(LegalizeError, match=reason):
        legalize(graph, BACKEND)


def test_no_op_is_both_said_by_others_and_impossible() -> None:
    assert not IMPOSSIBLE.keys() & (RULES.keys() | BACKEND.rules.keys())
