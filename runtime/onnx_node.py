"""One hub node as an ONNX node of the hub's opset, with its static inputs as small initializers.

The hub folds inputs such as Reshape's shape into the op; ONNX wants them as tensors again. Shape
inference, the executor and the ONNX writers all go through here, so each op is spelled out once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, TensorProto, helper

from caffeforge.runtime.array import TEXT, Array, NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Node, Value
from caffeforge.runtime.op import Attribute, Op, python_name

OPSET: Final = 24

# Static integers that ONNX wants as one element in one dimension; all others are scalars.
_ONE_ELEMENT: Final = frozenset({("TopK", "K")})

_UNTYPED: Final = {"int": "int64", "ints": "int64", "float": "float32", "floats": "float32", "bool": "bool"}


def _element_types() -> dict[str, int]:
    named = {t for t in TensorProto.DataType.values() if t not in (TensorProto.UNDEFINED, TensorProto.STRING)}
    numbers = {helper.tensor_dtype_to_np_dtype(t).name: t for t in sorted(named)}
    return {**numbers, TEXT: TensorProto.STRING}


_ELEMENT_TYPES: Final[Mapping[str, int]] = _element_types()
DTYPES: Final[Mapping[int, str]] = {number: name for name, number in _ELEMENT_TYPES.items()}

# Bits of types of less than a byte: in files elements share bytes, in arrays each has its own.
PACKED: Final[Mapping[str, int]] = {
    name: int(found[1])
    for name in _ELEMENT_TYPES
    if (found := re.match(r"(?:u?int|float)([246])(?!\d)", name))
}


def element_type(dtype: str) -> int:
    """Return ONNX's number of an element type given by NumPy's name, ``bfloat16`` or ``string``.

    Raises:
        GraphError: ONNX has no such type.
    """
    try:
        return _ELEMENT_TYPES[dtype]
    except KeyError:
        raise GraphError(f"ONNX has no element type {dtype}") from None


def tensor(name: str, elements: Any, dtype: str) -> TensorProto:
    """Return `elements` (an array, a number or a sequence of numbers) as a tensor of `dtype`.

    Raises:
        GraphError: `dtype` is unknown, or an integer type that cannot hold the elements.
    """
    given = np.asarray(elements)
    cast = given.astype(numpy_dtype(dtype))
    if cast.dtype.kind in "iu" and not np.array_equal(cast, given):
        raise GraphError(f"{elements} is no {dtype}", where=name)
    return onnx.numpy_helper.from_array(cast, name)


@cache
def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type of an element type: of ml_dtypes where NumPy has none, objects for text."""
    return helper.tensor_dtype_to_np_dtype(element_type(dtype))


def type_proto(value: Value) -> onnx.TypeProto:
    """Return dtype and dims of a value as ONNX's type; symbols become named dimensions."""
    dims = [dim if isinstance(dim, int) else dim.name for dim in value.dims]
    return helper.make_tensor_type_proto(element_type(value.dtype), dims)


def onnx_node(node: Node, taken: set[str]) -> tuple[NodeProto, list[TensorProto]]:
    """Return `node` as an ONNX node, and the initializers that hold its static inputs.

    Args:
        node: a node of domain "".
        taken: names in use in the graph; those of the new initializers are added.

    Raises:
        GraphError: the op is no ONNX op, or one of its fields has no ONNX form here.
    """
    return node_proto(node.op, node.inputs, [value.name for value in node.outputs], node.name, taken)


def node_proto(
    op: Op, inputs: Sequence[Value | None], outputs: Sequence[str], name: str, taken: set[str]
) -> tuple[NodeProto, list[TensorProto]]:
    """Return `op` applied to `inputs` as an ONNX node; see `onnx_node`."""
    if op.domain:
        raise GraphError(f"{op.domain}.{op.op_type} is not an ONNX operator", where=name)
    fields = {attribute.name: (attribute, value) for attribute, value in op.fields()}
    operands, initializers = _operands(op, inputs, fields, name, taken)
    proto = NodeProto(op_type=op.op_type, name=name, input=operands, output=outputs)
    proto.attribute.extend(attribute_proto(a, value, name) for a, value in fields.values() if not a.static)
    return proto, initializers


def _operands(
    op: Op,
    inputs: Sequence[Value | None],
    fields: Mapping[str, tuple[Attribute, Any]],
    name: str,
    taken: set[str],
) -> tuple[list[str], list[TensorProto]]:
    """Return the operands' names at ONNX's positions, "" where one is absent, and the new initializers."""
    names = [value.name if value is not None else "" for value in inputs]
    names += [""] * (len(op.inputs) - len(names))
    initializers: list[TensorProto] = []
    for index, formal in enumerate(op.inputs):
        if not formal.static or formal.name not in fields:
            continue
        attribute, value = fields[formal.name]
        if names[index]:
            raise GraphError(
                f"{formal.name} of {op.op_type} is given twice, as a field and as operand {names[index]}",
                where=name,
            )
        names[index] = _free(f"{name}.{python_name(formal.name)}", taken)
        elements = [value] if (op.op_type, formal.name) in _ONE_ELEMENT else value
        initializers.append(tensor(names[index], elements, _static_dtype(attribute, inputs)))
    while names and not names[-1]:
        names.pop()
    return names, initializers


def _static_dtype(attribute: Attribute, inputs: Sequence[Value | None]) -> str:
    """Return the element type of a static input: its own, or where it has none the first operand's."""
    if attribute.dtype:
        return attribute.dtype
    first = next((value for value in inputs if value is not None), None)
    return first.dtype if first is not None else _UNTYPED[attribute.kind]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def attribute_proto(attribute: Attribute, value: Any, name: str) -> AttributeProto:
    """Return a field as an attribute of the declared kind, so that 1 is a float where one is due."""
    proto = AttributeProto(name=attribute.name)
    write = _WRITERS.get(attribute.kind)
    if write is None:
        raise GraphError(
            f"field {attribute.name} is of kind {attribute.kind}, which has no ONNX form yet", where=name
        )
    write(proto, value)
    return proto


def _write_int(proto: AttributeProto, value: int) -> None:
    proto.type, proto.i = AttributeProto.INT, int(value)


def _write_ints(proto: AttributeProto, value: Sequence[int]) -> None:
    proto.type = AttributeProto.INTS
    proto.ints.extend(int(item) for item in value)


def _write_float(proto: AttributeProto, value: float) -> None:
    proto.type, proto.f = AttributeProto.FLOAT, float(value)


def _write_floats(proto: AttributeProto, value: Sequence[float]) -> None:
    proto.type = AttributeProto.FLOATS
    proto.floats.extend(float(item) for item in value)


def _write_string(proto: AttributeProto, value: str) -> None:
    proto.type, proto.s = AttributeProto.STRING, value.encode()


def _write_strings(proto: AttributeProto, value: Sequence[str]) -> None:
    proto.type = AttributeProto.STRINGS
    proto.strings.extend(item.encode() for item in value)


def _write_tensor(proto: AttributeProto, value: Array | NDArray) -> None:
    proto.type = AttributeProto.TENSOR
    elements = value.numpy() if isinstance(value, Array) else value
    proto.t.CopyFrom(tensor("", elements, value.dtype if isinstance(value, Array) else elements.dtype.name))


_WRITERS: Final[Mapping[str, Callable[[AttributeProto, Any], None]]] = {
    "bool": _write_int,
    "int": _write_int,
    "ints": _write_ints,
    "float": _write_float,
    "floats": _write_floats,
    "string": _write_string,
    "strings": _write_strings,
    "tensor": _write_tensor,
}
