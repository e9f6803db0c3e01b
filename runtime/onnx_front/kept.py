"""Nodes that have no place in the hub, kept as they are: they run, but no Caffe rule takes them.

These are ops of custom domains, control flow that depends on values, and the few forms of ONNX's own ops that
later opsets took back. Such a node holds a model of itself alone, in the file's own opsets, which onnxruntime
or, where it cannot, onnx's reference evaluator runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, shape_inference

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_node import type_proto
from caffeforge.runtime.op import Attribute, Formal, Op
from caffeforge.runtime.reference import reference
from caffeforge.runtime.shapes import condensed

_SHOWN: Final = 8  # elements of a list

DOMAIN: Final = "onnx"  # of kept nodes whose own domain is ONNX's

# The types of values, by onnxruntime's names, that it takes and gives as arrays.
_ARRAYS: Final = frozenset(
    f"tensor({name})"
    for name in (
        *("float", "double", "float16", "bool", "string"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
)


class Kept(Op):
    """A node as its file holds it.

    Attributes:
        given: its attributes that are numbers or texts, for the dump.
        model: a serialized model of the node alone.
        reason: why the hub cannot say it.
    """

    __slots__ = ("given", "model", "reason")
    inputs = (Formal("inputs", "variadic"),)
    outputs = (Formal("outputs", "variadic"),)
    given: tuple[tuple[Attribute, Any], ...]
    model: bytes
    reason: str

    def __init__(self, given: tuple[tuple[Attribute, Any], ...], model: bytes, reason: str) -> None:
        set_ = object.__setattr__
        set_(self, "given", given)
        set_(self, "model", model)
        set_(self, "reason", reason)

    def fields(self) -> Iterator[tuple[Attribute, Any]]:
        """Yield each plain attribute."""
        yield from self.given

    def __repr__(self) -> str:
        return f"{self.op_type}({', '.join(f'{a.name}={_short(value)}' for a, value in self.given)})"


def _short(value: Any) -> str:
    """Return a value as text; of a long list the beginning, as trees have thousands of numbers."""
    if isinstance(value, tuple) and len(value) > _SHOWN:
        return f"({', '.join(map(repr, value[:_SHOWN]))}, ... {len(value)} in all)"
    return repr(value)


@cache
def kept_class(domain: str, op_type: str) -> type[Kept]:
    """Return the class of kept nodes of one operator."""
    members = {"__slots__": (), "domain": domain or DOMAIN, "op_type": op_type}
    made: type[Kept] = type(op_type, (Kept,), members)
    reference(made)(_run)
    return made


def model_of(
    nodes: Sequence[NodeProto],
    used: Sequence[bool],
    model: ModelProto,
    imports: Mapping[str, int],
    operands: Mapping[str, Value],
) -> ModelProto:
    """Return a model whose graph is `nodes`, with `operands` (their own and those of inner graphs) as inputs.

    Its outputs are those of the last node that are `used`; the nodes before it make what is no tensor.
    """
    node = nodes[-1]
    inputs = [helper.make_value_info(name, type_proto(value)) for name, value in operands.items()]
    outputs = [ValueInfoProto(name=name) for name, read in zip(node.output, used, strict=False) if read]
    graph = GraphProto(name=node.name or node.op_type, node=nodes, input=inputs, output=outputs)
    made = ModelProto(ir_version=max(model.ir_version, 8), graph=graph)
    made.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in imports.items())
    made.functions.extend(model.functions)
    return made


def inferred(model: ModelProto) -> dict[str, Any]:
    """Return what ONNX infers of the outputs of a model of one node, as TypeProtos by name."""
    try:
        found = shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # onnx raises classes that share no base of its own; a declared type may do
        return {}
    return {value.name: value.type for value in found.output if value.type.WhichOneof("value")}


def stacked_type(node: NodeProto, operands: Mapping[str, Value], name: str) -> Any:
    """Return the TypeProto of what a Loop stacks up: what its graph yields, and an axis before it.

    None if it is one of the loop's states, or is not told.
    """
    body = next((a.g for a in node.attribute if a.name == "body"), GraphProto())
    if len(body.output) < len(node.output):
        return None
    index = list(node.output).index(name) + 1
    if index < len(body.input) - 1:
        return None
    starts = [operands.get(given) for given in node.input[2:]]
    graph = GraphProto()
    graph.CopyFrom(body)
    for info, start in zip(graph.input[2:], starts, strict=False):
        if start is not None:
            info.type.CopyFrom(type_proto(start))
    model = ModelProto(ir_version=8, graph=graph, opset_import=[helper.make_opsetid("", 17)])
    found = inferred(model).get(body.output[index].name)
    if found is None or not found.tensor_type.HasField("shape"):
        return None
    dims = [d.dim_value if d.HasField("dim_value") else None for d in found.tensor_type.shape.dim]
    return helper.make_tensor_type_proto(found.tensor_type.elem_type, [None, *dims])


def captured(graph: GraphProto) -> list[str]:
    """Return the names that a graph and the graphs within it read and do not define, in order."""
    defined = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    defined |= {tensor.values.name for tensor in graph.sparse_initializer}
    found: dict[str, None] = {}
    for node in graph.node:
        read = [*node.input, *(name for inner in inner_graphs(node) for name in captured(inner))]
        found.update((name, None) for name in read if name and name not in defined)
        defined.update(node.output)
    found.update((value.name, None) for value in graph.output if value.name not in defined)
    return list(found)


def names_read(nodes: Iterable[NodeProto], outputs: Iterable[str]) -> set[str]:
    """Return the names that nodes and the graphs within them read, and `outputs`."""
    found = set(outputs)
    for node in nodes:
        found.update(node.input)
        if node.op_type == "Gradient":
            found.update(a.s.decode() for a in node.attribute if a.name == "y")
        for graph in inner_graphs(node):
            found |= names_read(graph.node, (value.name for value in graph.output))
    return found


def inner_graphs(node: NodeProto) -> list[GraphProto]:
    """Return the graphs that a node's attributes hold."""
    graphs = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return graphs + [graph for attribute in node.attribute for graph in attribute.graphs]


def _run(op: Kept, operands: Sequence[NDArray | None]) -> list[NDArray]:
    model, run = _engine(op.model)
    names = [value.name for value in model.graph.input]
    given = [operand for operand in operands if operand is not None]
    try:
        found: list[NDArray] = run(dict(zip(names, given, strict=True)))
    except Exception as error:  # of onnxruntime, or whatever NumPy refuses
        raise CaffeforgeError(f"it fails: {condensed(error)}", where=f"{op.domain}.{op.op_type}") from None
    return [array.astype(object) if array.dtype.kind == "U" else array for array in found]


@lru_cache(maxsize=64)
def _engine(serialized: bytes) -> tuple[ModelProto, Any]:
    """Return the model and a function that runs it: onnxruntime's, else onnx's own."""
    model = ModelProto.FromString(serialized)
    session = _session(serialized)
    if session is not None:
        return model, lambda feed: session.run(None, feed)
    from onnx.reference import ReferenceEvaluator

    try:
        evaluator = ReferenceEvaluator(model)
    except NotImplementedError as error:
        raise CaffeforgeError(f"neither onnxruntime nor onnx can run it: {condensed(error)}") from None
    return model, lambda feed: evaluator.run(None, feed)


def _session(serialized: bytes) -> Any:
    """Return an onnxruntime session, None if it lacks an op or takes no arrays of an element type."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])
    except Exception:  # onnxruntime's classes share no base of their own
        return None
    kinds = {value.type for value in (*session.get_inputs(), *session.get_outputs())}
    return session if kinds <= _ARRAYS else None


def plain_attributes(node: NodeProto) -> tuple[tuple[Attribute, Any], ...]:
    """Return a node's attributes that are numbers or texts, as fields of an op."""
    kinds = {1: "float", 2: "int", 3: "string", 6: "floats", 7: "ints", 8: "strings"}
    found = []
    for attribute in node.attribute:
        kind = kinds.get(attribute.type)
        if kind is not None:
            found.append((Attribute(attribute.name, kind), attribute_value(attribute)))
    return tuple(found)


def attribute_value(attribute: Any) -> Any:
    """Return a number, a text, or a tuple of them."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (str, int, float)):
        return value
    items = (item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in value)
    return tuple(items)
