"""Backends for tests: generated from text, and tried on one op at a time."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from caffeforge.generator.generate import generate, write
from caffeforge.runtime import backends
from caffeforge.runtime.array import Array, Dense, NDArray
from caffeforge.runtime.assemble import assemble
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.expand import expand
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.loaded import load
from caffeforge.runtime.notation import constants_of
from caffeforge.runtime.op import Op
from caffeforge.runtime.shapes import infer

_numbers = itertools.count()


def build(folder: Path, mapping: str, proto: str = "") -> Backend:
    """Generate a backend below `folder` and return it.

    Raises:
        GenerationError: the text has mistakes.
    """
    schema = folder / f"project{next(_numbers)}" / "schemas" / "vendor"
    schema.mkdir(parents=True)
    (schema / "mapping.yaml").write_text(mapping, encoding="utf-8")
    if proto:
        (schema / "caffe.proto").write_text(proto, encoding="utf-8")
    package = generate(schema)
    write(package, schema.parents[1] / "generated")
    return backends.find(schema.parents[1] / "generated" / package.name)


def application(text: str, ops: Mapping[str, type[Op]]) -> Graph:
    """Return the graph of one op on inputs: ``Conv(float32[1, 3, 8, 8], const(float32[4, 3, 3, 3]), ...)``.

    A type is an input, ``const(type)`` a constant with random elements, a number itself. Names of several
    results may stand before it: ``a, b = Split(float32[2, 6], axis=1, num_outputs=2)``.
    """
    names, _, applied = text.rpartition(" = ")
    call = ast.parse(applied, mode="eval").body
    assert isinstance(call, ast.Call)
    op = ops[ast.unparse(call.func)](**{str(k.arg): ast.literal_eval(k.value) for k in call.keywords})
    operands = [_operand(f"x{index}", arg) for index, arg in enumerate(call.args)]
    inferred = infer(op, operands, names.count(",") + 1)
    results = [Value(f"y{index}", *found) for index, found in enumerate(inferred)]
    inputs = [value for value in operands if value is not None and value.data is None]
    graph = Graph("application", inputs, results, [Node("node", op, operands, results)])
    graph.verify()
    return graph


def _operand(name: str, arg: ast.expr) -> Value | None:
    if isinstance(arg, ast.Subscript):
        dtype, dims = ast.unparse(arg.value), ast.literal_eval(arg.slice)
        return Value(name, dtype, dims if isinstance(dims, tuple) else (dims,))
    if isinstance(arg, ast.Call):
        shape = ast.literal_eval(arg.args[0].slice) if isinstance(arg.args[0], ast.Subscript) else ()
        elements = np.random.default_rng(1).uniform(0.5, 1.5, shape).astype(np.float32)
        return _constant(name, Dense(elements))
    number = ast.literal_eval(arg)
    return None if number is None else _constant(name, Dense(np.array(number, np.float32)))


def _constant(name: str, array: Array) -> Value:
    return Value(name, array.dtype, array.shape, array)


def computed(text: str) -> dict[str, Array]:
    """Return random elements for the constants that a graph's text only names."""
    generator = np.random.default_rng(1)
    return {
        name: Dense(generator.uniform(0.5, 1.5, shape).astype(np.float32))
        for name, shape in constants_of(text).items()
    }


def written(backend: Backend, graph: Graph, folder: Path) -> list[str]:
    """Write a graph, check that what is read back computes the same, and return the types of its layers."""
    generator = np.random.default_rng(2)
    inputs: dict[str, NDArray] = {
        value.name: generator.standard_normal(value.shape[:]).astype(np.float32) for value in graph.inputs
    }
    expected = Executor(expand(graph)).run(inputs)
    calls = legalize(graph, backend)
    net = assemble(graph, calls, backend)
    prototxt, caffemodel, _ = write_files(net, backend, folder / "net", "{}")
    found = load(prototxt, caffemodel, backend).run(inputs, list(expected))
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)
    return [call.param.TYPE for call in calls]
