"""The notation of graphs: what ``Graph.dump`` prints, tests and rewrites are written in, ``parse`` reads.

It is Python's grammar, read with ``ast`` and never run::

    def net(x: float32[1, 3, 8, 8], *, w: float32[4, 3, 3, 3], one: float32[] = 1.0):
        a = Conv(x, w, kernel_shape=(3, 3))  # conv1: float32[1, 4, 6, 6]
        y = Add(a, one)  # add: float32[1, 4, 6, 6]
        return y

Parameters before ``*`` are inputs, those after it constants: small ones show their elements, others are
given to ``parse`` by name. Names that are no identifiers are spelt with underscores; comments tell them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from caffeforge.generated.hub import OPS
from caffeforge.generated.hub.caffe_ops import CUSTOM
from caffeforge.runtime.array import Array, Dense
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Dim, Graph, Node, Symbol, Value
from caffeforge.runtime.op import CustomOp, Op, full_name, python_name
from caffeforge.runtime.symbol import is_size, size

SHOWN = 8  # constants of up to this many elements are printed


def dump(graph: Graph) -> str:
    """Return the text of a graph; ``parse`` of it gives a graph equal but for names of odd spelling."""
    names = _Names()
    for value in graph.values():
        names.of(value)
    inputs = [f"{names.of(v)}: {v.type_text()}" for v in graph.inputs]
    constants = [f"{names.of(v)}: {v.type_text()}{_elements(v)}" for v in graph.constants()]
    parameters = [*inputs, "*", *constants] if constants else inputs
    lines = [f"def {_identifier(graph.name) or 'graph'}({', '.join(parameters)}):"]
    if len(lines[0]) > 110:
        lines = [lines[0][: lines[0].index("(") + 1], *(f"    {p}," for p in parameters), "):"]
    lines += [f"    {_statement(node, names)}" for node in graph.nodes]
    lines.append(f"    return {', '.join(names.of(v) for v in graph.outputs)}")
    return "\n".join(lines) + "\n"


class _Names:
    """Identifiers for values, unique."""

    def __init__(self) -> None:
        self.given: dict[Value, str] = {}
        self.taken: set[str] = set()

    def of(self, value: Value) -> str:
        if value not in self.given:
            stem = name = _identifier(value.name) or "value"
            count = 1
            while name in self.taken:
                count += 1
                name = f"{stem}_{count}"
            self.given[value] = name
            self.taken.add(name)
        return self.given[value]


def _identifier(text: str) -> str:
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return python_name(f"_{name}" if name[:1].isdigit() else name)


def _elements(value: Value) -> str:
    if value.data is None or value.data.size > SHOWN:
        return ""
    elements = value.data.numpy()
    return f" = {_listed(elements.tolist())}"


def _listed(value: Any) -> str:
    if isinstance(value, list):
        inner = ", ".join(map(_listed, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def _statement(node: Node, names: _Names) -> str:
    operands = [names.of(v) if v is not None else "None" for v in node.inputs]
    fields = [f"{python_name(a.name)}={value!r}" for a, value in node.op.fields()]
    op = full_name(node.op)
    results = ", ".join(names.of(v) for v in node.outputs)
    types = ", ".join(v.type_text() for v in node.outputs)
    return f"{results} = {op}({', '.join([*operands, *fields])})  # {node.name}: {types}"


def parse(text: str, weights: Mapping[str, Array], custom: Mapping[str, CustomOp] | None = None) -> Graph:
    """Return the graph that `text` describes, verified, with shapes inferred.

    Args:
        text: in the notation of this module.
        weights: constants whose elements it does not give.
        custom: ops of a backend's own domain that it may apply, by name.

    Raises:
        GraphError: with line and column of what is wrong.
    """
    return _Parser(weights, custom or {}).graph(_function(text))


def constants_of(text: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the constants whose elements a text does not give, by name.

    Raises:
        GraphError: it is not a graph.
    """
    function = _function(text)
    parser = _Parser({}, {})
    parameters = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return {arg.arg: parser.declare(arg).shape[:] for arg, default in parameters if default is None}


def _function(text: str) -> ast.FunctionDef:
    try:
        # The type of a scalar, float32[], is no Python: it is read as an empty tuple of dimensions.
        tree = ast.parse(text.strip().replace("[]", "[()]") + "\n")
    except SyntaxError as error:
        raise GraphError(f"not a graph: {error.msg}", where=f"line {error.lineno}:{error.offset}") from None
    function = tree.body[0] if len(tree.body) == 1 else None
    if not isinstance(function, ast.FunctionDef):
        raise GraphError("a graph is one 'def name(inputs, *, constants):'")
    return function


class _Parser:
    def __init__(self, weights: Mapping[str, Array], custom: Mapping[str, CustomOp]) -> None:
        self.weights = weights
        self.custom = custom
        self.values: dict[str, Value] = {}
        self.nodes: list[Node] = []

    def graph(self, function: ast.FunctionDef) -> Graph:
        inputs = [self.declare(arg) for arg in function.args.args]
        for arg, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
            value = self.declare(arg)
            value.data = self._constant(arg, value, default)
        *body, last = function.body
        if not isinstance(last, ast.Return) or last.value is None:
            raise _error(last, "the last line must be 'return' and the outputs")
        for statement in body:
            self._assign(statement)
        outputs = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
        graph = Graph(function.name, inputs, [self._operand(o) for o in outputs], self.nodes)
        graph.verify()
        return graph

    def declare(self, arg: ast.arg) -> Value:
        """Define the value that a parameter with its type stands for."""
        kind = arg.annotation
        if not isinstance(kind, ast.Subscript) or not isinstance(kind.value, ast.Name):
            raise _error(arg, f"{arg.arg} needs a type such as float32[1, 3, 8, 8]")
        items = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
        dims: list[Dim] = []
        for item in items:
            if isinstance(item, ast.Name):
                dims.append(Symbol(item.id))
            elif isinstance(item, ast.Constant) and isinstance(item.value, int):
                dims.append(item.value)
            elif is_size(item):
                dims.append(size(ast.unparse(item)))
            else:
                raise _error(item, "a dimension is a number, a name, or an expression of these")
        return self._define(arg, Value(arg.arg, kind.value.id, dims))

    def _define(self, at: ast.AST, value: Value) -> Value:
        if value.name in self.values:
            raise _error(at, f"{value.name} is defined twice")
        self.values[value.name] = value
        return value

    def _constant(self, arg: ast.arg, value: Value, default: ast.expr | None) -> Array:
        shape = tuple(int(d) for d in value.shape)
        if default is not None:
            elements = np.array(_literal(default), value.dtype).reshape(shape)
            return Dense(elements)
        if arg.arg not in self.weights:
            raise _error(arg, f"the elements of {arg.arg} are not given")
        if self.weights[arg.arg].shape != shape:
            raise _error(arg, f"{arg.arg} is given with shape {list(self.weights[arg.arg].shape)}")
        return self.weights[arg.arg]

    def _assign(self, statement: ast.stmt) -> None:
        from caffeforge.runtime.shapes import infer

        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            raise _error(statement, "a line is 'results = Op(operands, fields)'")
        target = statement.targets[0]
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if len(names) != len(targets):
            raise _error(target, "results are names")
        op, operands = self._application(statement.value)
        try:
            types = infer(op, operands, len(names))
        except GraphError as error:
            raise _error(statement, error.what) from None
        results = [
            self._define(statement, Value(name, dtype, dims))
            for name, (dtype, dims) in zip(names, types, strict=True)
        ]
        self.nodes.append(Node(names[0], op, operands, results))

    def _application(self, node: ast.expr) -> tuple[Op, list[Value | None]]:
        if not isinstance(node, ast.Call):
            raise _error(node, "an op is applied as Op(operands, fields)")
        name = ast.unparse(node.func)
        known = self.custom.get(name) or CUSTOM.get(name)
        if name not in OPS and known is None:
            raise _error(node, f"unknown op {name}")
        fields = {k.arg: _literal(k.value) for k in node.keywords if k.arg}
        try:
            op = (known.op if known is not None else OPS[name])(**fields)
        except TypeError as error:
            raise _error(node, f"{name}: {str(error).partition('() ')[2]}") from None
        return op, [None if _is_none(arg) else self._operand(arg) for arg in node.args]

    def _operand(self, node: ast.expr) -> Value:
        if not isinstance(node, ast.Name) or node.id not in self.values:
            raise _error(node, f"{ast.unparse(node)} is not defined")
        return self.values[node.id]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _literal(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        raise _error(node, f"{ast.unparse(node)} is not a literal") from None
    return tuple(value) if isinstance(value, list) else value


def _error(node: ast.AST, what: str) -> GraphError:
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    return GraphError(what, where=f"line {line}:{column + 1}")
