"""Finding backends, and what is said of them: one that is not there, ops that are only approximated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.coverage import approximate
from caffeforge.runtime.errors import UsageError
from tests.docs.backends import build

OPS = """
  Softplus: {approximate: by an exponential, rewrite: Y = Exp(X)}
  Sign:
    any_of:
      - {when: input.rank == 2, layer: Threshold}
      - {approximate: nearly, rewrite: "output = Tanh(Mul(input, 1000.0))"}
layers:
  Threshold: {ignore: [threshold], rewrite: "tops[0] = Sign(bottom)"}
"""


@pytest.mark.parametrize(
    ("name", "sentence", "hint"),
    [
        ("bvcl", "there is no backend 'bvcl'", "did you mean bvlc?"),
        ("kiln", "there is no backend 'kiln'", "did you mean generated/kiln?"),
        ("./kiln", "there is no folder './kiln'", "did you mean generated/kiln?"),
        (
            "glaze",
            "there is no backend 'glaze'",
            "there are: .*bvlc, .* as generated/glaze",
        ),
        ("schemas/kiln", "no generated package in this folder", "run gen-backend schemas/kiln, and give"),
        ("empty", "no generated package in this folder", "give the folder that gen-backend wrote"),
    ],
)
def test_what_is_missing_comes_with_the_way_to_it(
    name: str, sentence: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("generated/kiln/__init__.py", "schemas/kiln/mapping.yaml", "empty/notes.txt"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=sentence) as caught:
        find(name)
    assert caught.value.hint is not None
    assert re.search(hint, caught.value.hint)


def test_ops_that_are_only_approximated_are_told(tmp_path: Path) -> None:
    backend = build(tmp_path, f"backend: nearly\nextends: bvlc\nops:{OPS}")
    found = approximate(backend)
    assert found["only"] == ["Softplus"]
    assert {"Gelu", "Sign"} <= {*found["partly"]}
