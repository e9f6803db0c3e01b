"""The rule for an op whose versions differ in form only: by name and position onto the hub's op.

Attributes that became inputs become the hub's fields; inputs that the hub wants to know and that are constant
become fields too. What the hub cannot say is refused by `Unconvertible`.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, Final

from caffeforge.generated import hub
from caffeforge.runtime.array import Full
from caffeforge.runtime.graph import Dim, Symbol, Value
from caffeforge.runtime.onnx_front.call import Call, Unconvertible
from caffeforge.runtime.op import Attribute, Formal, Op, VersionedOp, python_name

_IN_PLACE: Final = "consumed_inputs"  # of the oldest versions: which operands may be written over
_EXACT: Final = 2**53  # integers beyond it are no Python float


def convert(
    call: Call, fields: Mapping[str, Any] | None = None, dropped: tuple[str, ...] = (), op_type: str = ""
) -> list[Value]:
    """Return the results of the call as the hub's op of its name (or `op_type`).

    Args:
        call: the node.
        fields: values of fields that the caller has computed; an attribute or input of that name is not read.
        dropped: attributes that the caller has dealt with.
        op_type: the hub's name of the op where it is another one.

    Raises:
        Unconvertible: there is no such op, or it has no place for an attribute or operand.
    """
    cls = hub.OPS.get(op_type or call.op.op_type)
    if cls is None:
        raise Unconvertible(f"the hub has no {call.op.op_type}")
    known = dict(fields or {})
    names = {attribute.name for attribute in cls.attributes}
    for attribute, value in call.op.fields():
        if attribute.name in dropped or attribute.name in known or attribute.name == _IN_PLACE:
            continue
        if attribute.name in names:
            known[attribute.name] = value
        elif value != _default(call.op, attribute.name):
            raise Unconvertible(f"attribute {attribute.name}={value!r} has no place in the hub")
    operands = _operands(call, cls, known)
    count = len(call.used)
    if count > len(cls.outputs) and (not cls.outputs or cls.outputs[-1].option != "variadic"):
        raise Unconvertible(f"{call.op.op_type} has {len(cls.outputs)} outputs in the hub, {count} are used")
    count = max(count, sum(formal.option == "single" for formal in cls.outputs))
    try:
        op = cls(**{python_name(name): value for name, value in known.items() if value is not None})
    except TypeError as error:
        raise Unconvertible(f"the hub's {cls.op_type} wants more: {error}") from None
    return call.emit(op, *operands, count=count)


def _default(op: VersionedOp, name: str) -> Any:
    return signature(type(op).__init__).parameters[python_name(name)].default


def _operands(call: Call, cls: type[Op], known: dict[str, Any]) -> list[Value | None]:
    """Return the operands that stay; those that are fields of the hub's op go to `known`."""
    operands = list(call.inputs)
    variadic = bool(cls.inputs) and cls.inputs[-1].option == "variadic"
    if len(operands) > len(cls.inputs) and not variadic:
        raise Unconvertible(f"{cls.op_type} takes {len(cls.inputs)} inputs in the hub")
    kinds = {attribute.name: attribute for attribute in cls.attributes}
    for index, formal in enumerate(cls.inputs):
        if not formal.static or index >= len(operands):
            continue
        operand = operands[index]
        if formal.name in known:
            operands[index] = None
        elif operand is not None:
            found = _field(call, formal, kinds[formal.name], operand, index)
            if found is not None:
                known[formal.name], operands[index] = found, None
    return operands


def _field(call: Call, formal: Formal, attribute: Attribute, operand: Value, index: int) -> Any:
    """Return a constant operand as the field of its name, None if it must stay an operand."""
    if operand.data is None:
        elements = call.elements(operand)
        if formal.name == "shape" and elements is not None and call.op.op_type in ("Reshape", "Expand"):
            return _shape(call, elements)
        return None
    first = call.operand(0)
    due = attribute.dtype or (first.dtype if first is not None else operand.dtype)
    if operand.dtype not in (due, "int32", "int64") or operand.data.size > 4096:
        return None
    if attribute.kind in ("int", "float", "bool") and operand.data.size != 1:
        return None
    scalar = operand.data.numpy().reshape(-1)
    if attribute.kind in ("float", "floats") and scalar.dtype.kind in "iu" and (abs(scalar) > _EXACT).any():
        return None
    cast = {"int": int, "ints": int, "float": float, "floats": float, "bool": bool}[attribute.kind]
    numbers = tuple(cast(item) for item in scalar.tolist())
    return numbers if attribute.kind.endswith("s") else numbers[0]


def _shape(call: Call, elements: tuple[Dim | None, ...]) -> tuple[int, ...] | None:
    """Return a new shape of which some sizes are symbols, as ONNX writes it; None if it cannot."""
    x = call.value(0)
    expand = call.op.op_type == "Expand"
    shape: list[int] = []
    for axis, dim in enumerate(elements):
        at = axis + x.rank - len(elements) if expand else axis
        same = 0 <= at < x.rank and isinstance(dim, Symbol) and x.dims[at] == dim
        if isinstance(dim, int):
            shape.append(dim)
        elif same:
            shape.append(1 if expand else 0)
        elif not expand and -1 not in shape and -1 not in elements:
            shape.append(-1)
        else:
            return None
    return None if getattr(call.op, "allowzero", 0) and 0 in elements else tuple(shape)


def full(value: float, dtype: str, shape: tuple[int, ...] = ()) -> Full:
    """Return one number as a constant operand."""
    return Full(shape, value, dtype)
