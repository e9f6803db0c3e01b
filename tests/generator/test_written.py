"""Each character of a YAML scalar's value has its place in the file, however the scalar is written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from caffeforge.generator import yaml_source
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.yaml_source import Node, Scalar, Sequence

TEXTS = (
    "a: wrong\n",
    "a:   wrong # a comment\n",
    "? wrong\n: a\n",
    "a:\n- - wrong\n",
    'a: "𐍈é x + wrong"\n',
    '# 𐍈𐍈\na: {b: [1, "p\\u0041 + wrong"]}\n',
    "a: [ 'it''s', '''x'' + wrong' ]\n",
    "a: |2\n    x +\n   wrong\n",
    "a: |+\n\n\n  wrong\n\n",
    "a: >\n  x\n\n  y wrong\n",
    "a: >-  # a comment\n   more\n     indented wrong\n   end\n",
    'a: "x \\\n   \\  y wrong"\n',
    'a: "x\n\n  y wrong"\n',
    "a: 'x\n\n  y wrong'\n",
    "a: x\n  y\n\n  wrong\n",
    'a: "\\x41\\t\\n wrong"\n',
)


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _scalars(item)
    else:
        for key, value in node.entries:
            yield key
            yield from _scalars(value)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("fast", [True, False], ids=["libyaml", "python"])
def test_a_part_of_a_scalar_has_its_line_and_column(
    text: str, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not fast:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    diagnostics = Diagnostics()
    root = yaml_source.load(text, "file", diagnostics)
    assert root is not None and diagnostics.found == []
    (scalar,) = (scalar for scalar in _scalars(root) if "wrong" in scalar.text)
    place = scalar.written.place(scalar.text, scalar.text.index("wrong"), scalar.position)
    assert text.split("\n")[place.line - 1][place.column - 1 :].startswith("wrong")
