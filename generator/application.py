"""An example as it is written: one op or layer type applied to types, constants and fields.

``Relu(float32[2, 3])``; ``a, b = Split(float32[2, 6], axis=1, num_outputs=2)``. The values are of the
notation of dumps: a type for what is computed, ``const(type)`` for weights, a number or a list for itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.source import Source, SourceError, shortened
from caffeforge.generator.yaml_reader import source_of
from caffeforge.generator.yaml_source import Node, Scalar, Sequence


@dataclass(frozen=True)
class Application:
    """One application.

    Attributes:
        results: the names of what it gives; one, ``result``, where none is named.
        operands: types, constants and numbers, still as syntax.
        fields: what stands behind the operands by name.
        source: the text with its place.
    """

    name: str
    results: tuple[str, ...]
    operands: tuple[ast.expr, ...]
    fields: tuple[tuple[str, ast.expr], ...]
    source: Source


def applications(given: Node | None, name: str, diagnostics: Diagnostics) -> Iterator[Application]:
    """Yield the applications of `name` that an ``example:`` or ``refused:`` lists; mistakes are reported."""
    items = given.items if isinstance(given, Sequence) else () if given is None else (given,)
    scalars = [item for item in items if isinstance(item, Scalar) and not item.is_null]
    if given is not None and (not scalars or len(scalars) < len(items)):
        sentence = f"an example is one application of {name}, or a list of them"
        diagnostics.error("example", given.position, sentence)
    for scalar in scalars:
        found = _application(scalar, name, diagnostics)
        if found is not None:
            yield found


def _application(scalar: Scalar, name: str, diagnostics: Diagnostics) -> Application | None:
    source = source_of(scalar)
    try:
        statements = source.statements()
    except SourceError as error:
        sentence = f"not an example: {shortened(scalar.text)!r}"
        diagnostics.error("example", error.position, sentence, error.hint)
        return None
    statement = statements[0] if len(statements) == 1 else None
    results: tuple[str, ...] = ("result",)
    call: ast.AST | None = None
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        results = tuple(ast.unparse(t) for t in (target.elts if isinstance(target, ast.Tuple) else [target]))
        call = statement.value
    elif isinstance(statement, ast.Expr):
        call = statement.value
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != name:
        sentence = f"an example of {name} is written {name}(float32[2, 3], ...)"
        diagnostics.error("example", scalar.position, sentence)
        return None
    fields = tuple((k.arg, k.value) for k in call.keywords if k.arg is not None)
    if len(fields) < len(call.keywords) or any(isinstance(arg, ast.Starred) for arg in call.args):
        diagnostics.error("example", scalar.position, "an example gives each value and field by itself")
        return None
    return Application(name, results, tuple(call.args), fields, source)


def weights_type(arg: ast.expr) -> str:
    """Return the type of a constant with random elements, ``const(type)``; empty if it is none."""
    if isinstance(arg, ast.Call) and ast.unparse(arg.func) == "const" and len(arg.args) == 1:
        return ast.unparse(arg.args[0])
    return ""


def elements(arg: ast.expr) -> tuple[str, str]:
    """Return the type and the elements of a number, or of a list of numbers; empty if it is none."""
    try:
        value = ast.literal_eval(arg)
    except ValueError:
        return "", ""
    shape, level = [], [value]
    while level and isinstance(level[0], (list, tuple)):
        if any(not isinstance(v, (list, tuple)) or len(v) != len(level[0]) for v in level):
            return "", ""
        shape.append(len(level[0]))
        level = [element for inner in level for element in inner]
    kinds = {type(element) for element in level}
    if not kinds <= {int, float, bool} or (bool in kinds and len(kinds) > 1):
        return "", ""
    whole = {bool: "bool", int: "int64"}.get(next(iter(kinds)), "") if len(kinds) == 1 and shape else ""
    return f"{whole or 'float32'}[{', '.join(map(str, shape))}]", ast.unparse(arg)
