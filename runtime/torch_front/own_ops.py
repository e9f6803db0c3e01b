"""Handlers of a backend's own ops: ``torch.library`` operators that its mapping names, and leaves.

Tensors become inputs in order, other arguments the attributes of their names. What the op has no place for is
refused, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node as FxNode

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Value
from caffeforge.runtime.op import CustomOp, Op, python_name
from caffeforge.runtime.reference import remember
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.leaf_calls import LEAF, TENSOR, Site, site_of
from caffeforge.runtime.torch_front.reference import numpy_of
from caffeforge.runtime.torch_front.registry import Handler, Result

_ELEMENTS = {"int": int, "float": float, "bool": bool, "string": str}


class OwnOps:
    """The ops of ``custom:`` by what they stand for in a program."""

    def __init__(self, custom: Mapping[str, CustomOp]) -> None:
        self._custom = custom
        self._by_torch = {op.torch: op for op in custom.values() if op.torch}

    def handler(self, target: object) -> Handler | None:
        """Return what lowers an operator, None if it is no op of the backend's own."""
        if not isinstance(target, OpOverload):
            return None
        if target is LEAF:
            return self._leaf
        name = target._schema.name
        full = f"{name}.{target._overloadname or 'default'}"
        custom = self._by_torch.get(full) or self._by_torch.get(name)
        return None if custom is None else lambda call: _library(call, custom)

    def _leaf(self, call: Call) -> Result:
        site = site_of(call.argument("site"))
        custom = self._custom[site.mark.op]
        if site.hidden:
            raise call.error(
                f"has tensors of its own that are no inputs: {', '.join(site.hidden)}",
                hint=f"name them in leaf(..., weights=[...]) and in the inputs of {site.mark.op}",
            )
        values = iter(call.optional_values("inputs"))
        given = [(name, _with(values, argument), default) for name, argument, default in site.arguments]
        inputs, attributes = _told_apart(call, custom, given)
        op = _op(call, custom, attributes | _declared(call, custom, site))
        remember(op, lambda op, operands: _run(site, operands))
        return _node(call, op, [*inputs, *values])


def _library(call: Call, custom: CustomOp) -> Result:
    given = []
    for parameter in call.overload._schema.arguments:
        argument = call.argument(parameter.name)
        if isinstance(argument, FxNode):
            argument = call.value(parameter.name)
        elif isinstance(argument, (list, tuple)) and any(isinstance(item, FxNode) for item in argument):
            argument = call.optional_values(parameter.name)
        default = parameter.default_value if parameter.has_default_value() else TENSOR  # equal to nothing
        given.append((parameter.name, argument, default))
    inputs, attributes = _told_apart(call, custom, given)
    result = _node(call, _op(call, custom, attributes), inputs)
    single = len(call.overload._schema.returns) == 1 and "List" not in str(
        call.overload._schema.returns[0].type
    )
    return result[0] if single else result


def _with(values: Iterable[Value | None], argument: Any) -> Any:
    """Return an argument of a leaf with values in the places of tensors."""
    if argument is TENSOR:
        return next(iter(values))
    if isinstance(argument, (list, tuple)) and any(item is TENSOR for item in argument):
        return [_with(values, item) for item in argument]
    return argument


def _told_apart(
    call: Call, custom: CustomOp, given: Sequence[tuple[str, Any, Any]]
) -> tuple[list[Value | None], dict[str, Any]]:
    """Return the op's inputs in order, and its attributes by name.

    Raises:
        FrontEndError: an argument is neither, and is not what it is by default.
    """
    names = {attribute.name for attribute in custom.op.attributes}
    inputs: list[Value | None] = []
    attributes = {}
    for name, argument, default in given:
        if name in names:
            attributes[name] = argument
        elif isinstance(argument, Value):
            inputs.append(argument)
        elif isinstance(argument, list) and argument and all(isinstance(item, Value) for item in argument):
            inputs += argument
        elif argument is None:
            if len(inputs) < len(custom.op.inputs) and custom.op.inputs[len(inputs)].option == "optional":
                inputs.append(None)
        elif argument != default:
            raise call.error(
                f"is called with {name}={argument!r}, for which {_dotted(custom)} has no attribute",
                hint="add it to attributes: of the op in the mapping",
            )
    return inputs, attributes


def _declared(call: Call, custom: CustomOp, site: Site) -> dict[str, Any]:
    """Return the attributes that the mark gives, or else the module has under their names."""
    told = site.mark.attributes
    given = dict(told(site.module) if callable(told) else told)
    names = {attribute.name for attribute in custom.op.attributes}
    unknown = [name for name in given if name not in names]
    if unknown:
        raise call.error(f"is marked with {unknown[0]}, for which {_dotted(custom)} has no attribute")
    arguments = {name for name, _, _ in site.arguments}
    for name in names - arguments - given.keys():
        if site.module is not None and hasattr(site.module, name):
            given[name] = getattr(site.module, name)
    return given


def _op(call: Call, custom: CustomOp, attributes: Mapping[str, Any]) -> Op:
    """Return the op with its attributes in their declared types."""
    kinds = {attribute.name: attribute.kind for attribute in custom.op.attributes}
    typed = {python_name(name): _typed(call, name, kinds[name], given) for name, given in attributes.items()}
    try:
        return custom.op(**typed)
    except TypeError as error:
        missing = [name for name in kinds if name not in attributes]
        raise call.error(
            f"does not say {' and '.join(missing)} of {_dotted(custom)}: {error}",
            hint="make it an argument of that name, an attribute of the module, or give leaf(attributes=...)",
        ) from None


def _typed(call: Call, name: str, kind: str, given: Any) -> Any:
    element = _ELEMENTS[kind.removesuffix("s")]
    items = list(given) if kind.endswith("s") and isinstance(given, (list, tuple)) else [given]
    for index, item in enumerate(items):
        if (element, type(item)) in ((float, int), (int, bool)):
            items[index] = element(item)
        elif type(item) is not element:
            raise call.error(f"has {name}={given!r}, which is no {kind}")
    return tuple(items) if kind.endswith("s") else items[0]


def _node(call: Call, op: Op, inputs: Sequence[Value | None]) -> list[Value]:
    """Add the node, after checking that the mapping's shape rule says what PyTorch computes."""
    from caffeforge.runtime.shapes import infer  # loads onnx

    formals = op.inputs
    most = len(inputs) if formals and formals[-1].option == "variadic" else len(formals)
    if len(inputs) > most:
        raise call.error(f"has {len(inputs)} tensors, {op.domain}.{op.op_type} takes {len(formals)}")
    for formal, value in zip(formals, [*inputs, *[None] * len(formals)], strict=False):
        if formal.option == "single" and value is None:
            raise call.error(f"has no tensor for input {formal.name} of {op.domain}.{op.op_type}")
    # Further results may be of another type, and have a rule only if nets with them are to be read.
    known = 1 + len(op.custom.further) if op.custom is not None else 1
    try:
        told = infer(op, inputs, min(known, len(call.results)))
    except GraphError as error:
        raise call.error(f"has no shape by the mapping: {error.what}") from None
    for index, (computed, rule) in enumerate(zip(call.results, told, strict=False)):
        if computed[1] != rule[1] or (index == 0 and computed[0] != rule[0]):
            found = f"{computed[0]}{list(computed[1])}" + (f" as result {index}" if index else "")
            raise call.error(
                f"yields {found}, by the mapping {op.domain}.{op.op_type} yields {rule[0]}{list(rule[1])}",
                hint="correct shape: of the op in the mapping",
            )
    return call.node_of_all(op, *inputs)


def _run(site: Site, operands: Sequence[NDArray | None]) -> list[NDArray]:
    """Run a leaf's own code for the executor."""
    tensors = [torch.from_numpy(operand.copy()) for operand in operands if operand is not None]
    with torch.no_grad():
        return [numpy_of(tensor) for tensor in site.run(tensors)]


def _dotted(custom: CustomOp) -> str:
    return f"{custom.op.domain}.{custom.op.op_type}"
