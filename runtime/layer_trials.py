"""Runs the examples of layers: each is read, run, and written again in both ways that there are.

Its own parameters go through a prototxt, and what it computes goes back through the rules of the ops; both
must compute the same. Whether that is what the vendor's program computes, only a witness can tell.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np

from caffeforge.runtime import coverage
from caffeforge.runtime.array import Dense, NDArray
from caffeforge.runtime.assemble import assemble, input_layers
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.coverage import LayerExample
from caffeforge.runtime.errors import CaffeforgeError, LegalizeError, ReadError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.expand import expand
from caffeforge.runtime.graph import Value
from caffeforge.runtime.hub_from_net import HubNet, hub_from_net
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.loaded import load
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.read import Read
from caffeforge.runtime.refusal import Refused, working_out
from caffeforge.runtime.rule_tests import Trial, difference, not_taken, random_array

TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<sizes>[\d, ]*)\](?: = (?P<elements>.+))?")


def run_layer_example(example: LayerExample, backend: Backend, stem: Path) -> Trial:
    """Read one layer, run it, write it to files named `stem` and compare; or see it refused."""
    try:
        net = net_of(example, backend)
        if example.refused is not None:
            why = _taken(example, net, backend)
            return Trial(example, not_taken(example, backend) if why else "passed", why)
        hub = hub_from_net(net, backend)
        if hub.graph.inputs and not example.bottoms:  # it gives the net's inputs, and computes nothing
            return Trial(example, "passed")
        inputs = inputs_of(example, hub)
        expected = Executor(expand(hub.graph)).run(inputs)
        prototxt, caffemodel, _ = write_files(net, backend, stem, "{}")
        why = difference(expected, load(prototxt, caffemodel, backend).run(inputs, list(expected)))
        if why:
            return Trial(example, "failed", f"read from its prototxt: {why}")
        return _written_back(example, hub, inputs, expected, backend, stem)
    except CaffeforgeError as error:
        return Trial(example, not_taken(example, backend), str(error))


def net_of(example: LayerExample, backend: Backend, prefix: str = "") -> Net:
    """Return a net of one layer and its inputs, with seeded random weights; names begin with `prefix`."""
    bottoms = [Value(f"{prefix}bottom{i}", "float32", _typed(t)[1]) for i, t in enumerate(example.bottoms)]
    inputs, layers = input_layers(bottoms, backend)
    generator = np.random.default_rng(1)
    layer = Layer(
        f"{prefix}example",
        example.param,
        tuple(value.name for value in bottoms),
        tuple(f"{prefix}top{index}" for index in range(example.tops)),
        tuple(Dense(_blob(generator, text)) for text in example.blobs),
    )
    return Net("example", [*layers, layer], inputs)


def inputs_of(example: LayerExample, hub: HubNet, prefix: str = "") -> dict[str, NDArray]:
    """Return seeded random inputs: floats, whole numbers or marks, as the types of the bottoms say."""
    generator = np.random.default_rng(2)
    kinds = {f"{prefix}bottom{index}": _typed(text)[0] for index, text in enumerate(example.bottoms)}
    return {
        v.name: random_array(generator, kinds.get(v.name, "float32"), v.shape[:]).astype(np.float32)
        for v in hub.graph.inputs
    }


def _typed(text: str) -> tuple[str, tuple[int, ...], str]:
    """Return the parts of a type: ``float32[2, 3]``, or ``int64[2] = [0, 1]``."""
    found = TYPE.fullmatch(text)
    assert found is not None, text  # the generator has seen to it
    sizes = tuple(int(size) for size in found["sizes"].split(",") if size.strip(" ()"))
    return found["dtype"], sizes, found["elements"] or ""


def _blob(generator: np.random.Generator, text: str) -> NDArray:
    _, shape, elements = _typed(text)
    if elements:
        return np.array(ast.literal_eval(elements), np.float32).reshape(shape)
    return generator.uniform(0.5, 1.5, shape).astype(np.float32)


def _written_back(
    example: LayerExample,
    hub: HubNet,
    inputs: dict[str, NDArray],
    expected: dict[str, NDArray],
    backend: Backend,
    stem: Path,
) -> Trial:
    """Write what a layer computes by the rules of the ops, read it and compare."""
    try:
        calls = legalize(hub.graph, backend, folded=False)
        net = assemble(hub.graph, calls, backend)
    except LegalizeError as error:
        return Trial(example, "read", str(error))
    prototxt, caffemodel, _ = write_files(net, backend, stem, "{}")
    why = difference(expected, load(prototxt, caffemodel, backend).run(inputs, list(expected)))
    rules = frozenset(call.rule for call in calls)
    return Trial(example, "failed" if why else "passed", why and f"written back: {why}", rules)


def _taken(example: LayerExample, net: Net, backend: Backend) -> str:
    """Return a sentence if a layer is not refused by what should refuse it; empty if it is."""
    place = example.refused or example.rule
    layer = net.layers[-1]
    constrained = example.refused is not None and place in _places(backend, layer.type)
    try:
        hub = hub_from_net(Net(net.name, net.layers[:-1] if constrained else net.layers, net.inputs), backend)
    except ReadError as error:
        return "" if f"[{place}]" in error.what else f"another refuses it: {error}"
    if constrained:
        read = Read(layer, [hub.blobs[bottom] for bottom in layer.bottoms])
        try:
            with working_out(place):
                backend.constraints[layer.type](read, layer.param)
        except Refused as reason:
            return "" if reason.rule == place else f"another refuses it: {reason.sentence}  [{reason.rule}]"
    return f"{'it' if not example.refused else 'the condition at ' + place} does not refuse it"


def _places(backend: Backend, kind: str) -> set[str]:
    """Return where the conditions of a layer type's constraints stand."""
    return {condition.rule for condition in coverage.of(backend).constraints.get(kind, ())}
