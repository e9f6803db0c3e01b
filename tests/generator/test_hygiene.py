"""No name of a rule meets one of the generated code: whatever it is called, the code says the same."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Iterator
from pathlib import Path

import pytest

from caffeforge.generated import hub
from caffeforge.generator.generate import Package, generate
from caffeforge.generator.names import CONSTANTS, MESSAGE_MEMBERS
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.generator.templates import imported_names
from caffeforge.runtime import message
from tests.docs.backends import application, build, written
from tests.generator.inputs import SMALL, result, write
from tests.generator.variants import read_once

# What names stand for in the mapping below besides those that are tried.
USED = {
    "X",
    "Y",
    "x",
    "y",
    "q",
    "o",
    "other",
    "alpha",
    "gamma",
    "inputs",
    "outputs",
    "input",
    "output",
    "bottom",
}
USED |= {"bottoms", "blobs", "tops", "size", "total", "places", "second", "twice", "inner_1"}
FILES = ("emit.py", "read.py", "ops.py", "patterns.py")
PROTO = (SMALL / "caffe.proto").read_text(encoding="utf-8")
FIELDS = """
message ActParameter { optional float @ = 1; optional float @_ = 2; repeated float other = 3; }
"""
MAPPING = """
backend: vendorx
extends: small
types: {Act: act_param}
custom:
  vendorx.Own:
    inputs: ["@", "@_?"]
    outputs: [other]
    attributes: {size: int = 1}
    shape: ["@.shape[0]", size]
    reference: other = vendorx.More(Neg(@), size=size)
  vendorx.More:
    inputs: [X]
    outputs: ["@", "@_*"]
    attributes: {size: int}
    reference: |
      @ = vendorx.Own(X)
      @_ = [Neg(X) for other in [size]]
ops:
  Celu:
    let:
      @: alpha + 1
      @_: "@ * 2"
    require: [{expr: "@_ > @", else: no}]
    rewrite: Y = Elu(X, alpha=@ + @_)
  Elu:
    rewrite: |
      @ = Neg(X)
      @_ = Abs(@)
      Y = Add(@, Mul(@_, float(2)))
  Selu:
    let:
      total: "sum([@ * @_ for @, @_ in zip([alpha], [gamma])])"
    rewrite: Y = Sum(*[Mul(Neg(@), @_) for @, @_ in zip(inputs, [total])])
  Tanh: {emit: [{layer: ReLU}, {layer: ReLU}]}
  Softsign:
    emit:
      - {layer: ReLU, top: "@"}
      - {layer: ReLU, top: "@_", bottoms: ["@"]}
      - {layer: ReLU, bottoms: ["@_", "@"], fields: {negative_slope: float(1)}}
layers:
  Act:
    let:
      places: "[abs(@) + o for o in other]"
    any_of:
      - when: has(@) and @_ > 0
        rewrite: tops[0] = Elu(bottom, alpha=max(@, @_) + len(places))
      - when: not has(@)
        let: {second: "@_ + @"}
        rewrite: tops[0] = Elu(bottom, alpha=second)
patterns:
  operands:
    match: |
      @ = Neg(Abs(@_))
      y = Add(@, x)
    rewrite: y = Sum(@_, x)
  captures:
    match: |
      inner_1 = LeakyRelu(Abs(x), alpha=@)
      y = Elu(inner_1, alpha=@_)
    let: {twice: "@ * 2"}
    when: "@_ > abs(@)"
    rewrite: y = Elu(x, alpha=twice)
  results:
    match: "@ = Elu(Neg(@_), alpha=q)"
    rewrite: "@ = Elu(@_, alpha=q)"
"""


def _package(folder: Path, name: str) -> Package:
    second = f"{name}_2" if name in MESSAGE_MEMBERS else f"{name}_"  # a proto cannot have float and float_
    mapping, fields = (text.replace("@_", second).replace("@", name) for text in (MAPPING, FIELDS))
    head = "message LayerParameter {"
    proto = PROTO.replace(head, f"{head} optional ActParameter act_param = 9;")
    files = {"mapping.yaml": mapping, "caffe.proto": proto + fields}
    package, found = result(write(folder, files))
    assert package is not None, [str(diagnostic) for diagnostic in found]
    return package


def _names(package: Package) -> set[str]:
    """Return the names that generated functions read or bind, and those that their modules import."""
    found: set[str] = set()
    for file in FILES:
        for node in ast.walk(ast.parse(package.files[file])):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                found.update(alias.asname or alias.name for alias in node.names)
            elif isinstance(node, ast.FunctionDef):
                found.add(node.name)
    return {name for name in found if not keyword.iskeyword(name) and name not in CONSTANTS}


def _pairs(one: object, other: object) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, text, text) of all texts at which two trees could differ; the rest must be alike."""
    assert type(one) is type(other)
    if isinstance(one, list):
        assert isinstance(other, list) and len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            yield from _pairs(a, b)
    elif isinstance(one, ast.AST):
        for key, value in ast.iter_fields(one):
            partner = getattr(other, key)
            if isinstance(value, str) and isinstance(partner, str):
                yield f"{type(one).__name__}.{key}", value, partner
            else:
                yield from _pairs(value, partner)
    else:
        assert one == other


def _check(neutral: Package, package: Package, name: str) -> None:
    """Assert that two packages are the same but for names of their own, which meet no others."""
    for file in FILES:
        one, other = (ast.parse(p.files[file]) for p in (neutral, package))
        outside = _read_inside(one)
        for a, b in zip(_defined(one), _defined(other), strict=True):
            renamed: dict[str, str] = {}
            for kind, before, after in _pairs(a, b):
                if kind in ("Name.id", "arg.arg"):
                    assert renamed.setdefault(before, after) == after, (name, file, before, after)
                    assert before == after or after not in outside, (name, file, after)
                elif before != after and _plain(before.replace("neutral", name)) != _plain(after):
                    raise AssertionError((name, file, kind, before, after))
            assert len({*renamed.values()}) == len(renamed), (name, file, renamed)
            _check_pattern(b)


def _read_inside(module: ast.Module) -> set[str]:
    """Return what a module has for its functions: imports, classes, what they read of Python's own.

    None of them calls another.
    """
    imported = (a.asname or a.name for n in module.body if isinstance(n, ast.ImportFrom) for a in n.names)
    functions = [f for f in module.body if isinstance(f, ast.FunctionDef)]
    read = {n.id for f in functions for n in ast.walk(f) if isinstance(n, ast.Name)} & {*vars(builtins)}
    return {*imported, *read, *(node.name for node in module.body if isinstance(node, ast.ClassDef))}


def _defined(module: ast.Module) -> list[ast.stmt]:
    """Return what a module defines; a name that is also an import's may keep that import in vain."""
    return [node for node in module.body if not isinstance(node, ast.ImportFrom)]


def _plain(text: str) -> str:
    return text.replace("_2", "").replace("_", "")


def _check_pattern(function: ast.stmt) -> None:
    """Assert that no function has two parameters of one name, which Python refuses when it is compiled."""
    compile(ast.Module([function], []), "generated", "exec")


def test_a_name_meets_none_of_the_generated_code(
    tmp_path: Path, every: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_once(monkeypatch)
    neutral = _package(tmp_path, "neutral")
    own = {*_names(neutral), *imported_names()} - {"neutral", "neutral_"}
    own -= USED
    listed = sorted(own | (_names(generate(SCHEMAS / "bvlc")) - USED if every else set()))
    assert {"b", "e", "op", "r", "param", "top", "hub", "Refused", "or_default", "Value", "tuple"} <= own
    for name in listed:
        if not name.startswith("__"):
            _check(neutral, _package(tmp_path, name), name)


def test_a_proto_field_may_be_called_as_python_or_its_class_calls_something(tmp_path: Path) -> None:
    names = sorted(MESSAGE_MEMBERS)
    assert message.MEMBERS == MESSAGE_MEMBERS
    fields = " ".join(f"optional float {name} = {number};" for number, name in enumerate(names, 1))
    head = "message LayerParameter {"
    proto = PROTO.replace(head, f"{head} optional ActParameter act_param = 9;")
    given = ", ".join(f"{name}: alpha" for name in names)
    mapping = f"""{(SMALL / "mapping.yaml").read_text(encoding="utf-8")}
  Act: {{rewrite: "tops[0] = Elu(bottom, alpha=({" + ".join(names)}) / {len(names)})"}}
""".replace("ops:\n", f"ops:\n  Elu: {{layer: Act, fields: {{{given}}}}}\n", 1)
    mapping = mapping.replace("types:\n", "types:\n  Act: act_param\n", 1)
    backend = build(tmp_path, mapping, f"{proto}\nmessage ActParameter {{ {fields} }}\n")
    graph = application("Elu(float32[2, 3], alpha=0.5)", hub.OPS)
    assert written(backend, graph, tmp_path) == ["Act"]
