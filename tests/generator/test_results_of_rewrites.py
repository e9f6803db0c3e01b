"""Rewrites give the pieces of a variadic result one by one or all at once; what does not fit is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated import hub
from caffeforge.runtime.assemble import assemble
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.loaded import load
from tests.docs.backends import application, build, written

HALVES = "a, b = Split(float32[2, 6], axis=1, num_outputs=2)"
THIRDS = "a, b, c = Split(float32[2, 6], axis=1, num_outputs=3)"

HEAD = """backend: pieces
extends: bvlc
ops:
  Split:
    any_of:
      - when: has(split)
        layer: Slice
        fields: {slice_point: cumulative(split)}
      - when: not has(split)
        rewrite: |
"""


def _backend(folder: Path, rewrite: str) -> Backend:
    lines = "\n".join(f"          {line}" for line in rewrite.split("\n"))
    return build(folder, f"{HEAD}{lines}\n")


def _cut(place: str, begin: int, end: int) -> str:
    return f"outputs[{place}] = Slice(input, starts=[{begin}], ends=[{end}], axes=[1])"


@pytest.mark.parametrize(
    "rewrite",
    [
        f"{_cut('0', 0, 3)}\n{_cut('1', 3, 6)}",
        f"{_cut('1', 3, 6)}\n{_cut('0', 0, 3)}",
        f"{_cut('len(outputs) - 1', 3, 6)}\n{_cut('-2', 0, 3)}",
        "outputs[0], outputs[1] = Split(input, axis=1, split=[3, 3])",
        "outputs = [Slice(input, starts=[b], ends=[b + 3], axes=[1]) for b in [0, 3]]",
        "outputs = [Slice(input, starts=[0], ends=[3], axes=[1]), "
        "*[Slice(input, starts=[b], ends=[6], axes=[1]) for b in [3]]]",
        f"{_cut('0', 0, 3)}\noutputs[1] = Sub(Slice(input, starts=[3], ends=[6], axes=[1]), "
        "Sub(outputs[0], outputs[0]))",
    ],
)
def test_pieces_are_given_in_any_way(rewrite: str, tmp_path: Path) -> None:
    assert written(_backend(tmp_path, rewrite), application(HALVES, hub.OPS), tmp_path)


@pytest.mark.parametrize(
    ("rewrite", "application_", "sentence"),
    [
        (f"{_cut('0', 0, 2)}\n{_cut('1', 2, 4)}", THIRDS, "result 2 of 3 is not given by the rule"),
        (f"{_cut('0', 0, 3)}\n{_cut('2 + 3', 3, 6)}", HALVES, "has 2 results, the rule gives number 5"),
        (f"{_cut('0', 0, 3)}\n{_cut('-2', 3, 6)}", HALVES, "result 0 of 2 is twice given by the rule"),
        ("outputs = [Neg(input) for b in [1, 2]]", THIRDS, "has 3 results, the rule gives 2"),
    ],
)
def test_another_number_of_results_is_refused(
    rewrite: str, application_: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(LegalizeError) as caught:
        written(_backend(tmp_path, rewrite), application(application_, hub.OPS), tmp_path)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "rewrite",
    [
        "tops[1], tops[0] = Split(bottom, axis=along, split=parts)",
        "first, second = Split(bottom, axis=along, split=parts)\ntops = [second, Identity(first)]",
    ],
)
def test_tops_are_given_in_any_way(rewrite: str, tmp_path: Path) -> None:
    """What is written as Slice is read back with its tops exchanged."""
    lines = "\n".join(f"      {line}" for line in rewrite.split("\n"))
    head = "backend: pieces\nextends: bvlc\nlayers:\n  Slice:\n    amend: true\n    rewrite: |\n"
    backend, graph = build(tmp_path, f"{head}{lines}\n"), application(HALVES, hub.OPS)
    net = assemble(graph, legalize(graph, backend), backend)
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    prototxt, caffemodel, _ = write_files(net, backend, tmp_path / "net", "{}")
    found = load(prototxt, caffemodel, backend).run({"x0": x}, ["y0", "y1"])
    np.testing.assert_array_equal(np.concatenate([found["y1"], found["y0"]], 1), x)
