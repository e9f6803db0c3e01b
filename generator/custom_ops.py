"""Prints ``ops.py``: the classes of a backend's own ops (``custom:``), with shape rules and references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caffeforge.generator import types
from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.hub_package import op_context
from caffeforge.generator.hub_schema import HELD, Attribute, Formal, HubOp
from caffeforge.generator.mapping import CustomOp
from caffeforge.generator.names import function_name
from caffeforge.generator.python_text import Code, call, dict_of, indented, literal, tuple_of
from caffeforge.generator.python_text import name as python_name
from caffeforge.generator.rewrite import Rewriter
from caffeforge.generator.types import INT, INTS, VALUE, VALUES, Type
from caffeforge.generator.yaml_source import Scalar

OPTIONS = {"?": "optional", "*": "variadic"}
TYPES = {"int": int, "float": float, "bool": bool, "string": str}


def hub_ops(custom: list[CustomOp], printer: Printer) -> dict[str, HubOp]:
    """Return the ops of ``custom:`` by dotted name, as rules see them."""
    found = {}
    for op in custom:
        domain, _, kind = op.name.text.rpartition(".")
        if domain.isidentifier() and kind.isidentifier():
            attributes = tuple(_attribute(name, kind_, printer) for name, kind_ in op.attributes)
            sides = [tuple(_formal(scalar, printer) for scalar in side) for side in (op.inputs, op.outputs)]
            found[op.name.text] = HubOp(op.name.text, 1, sides[0], sides[1], attributes, domain)
    return found


def _formal(scalar: Scalar, printer: Printer) -> Formal:
    """Return an input as ``X``, ``B?`` (optional) or ``xs*`` (all that are left)."""
    option = OPTIONS.get(scalar.text[-1:], "single")
    name = scalar.text.rstrip("?*")
    if not name.isidentifier():
        printer.diagnostics.error("custom-input", scalar.position, f"{scalar.text!r} is no name of an input")
        name = "X"
    return Formal(name, option)


def _attribute(name: Scalar, given: Scalar, printer: Printer) -> Attribute:
    """Return an attribute of type ``int``, ``ints = [1, 1]``, ``float = 0.5`` and so on."""
    kind, mark, default = (part.strip() for part in given.text.partition("="))
    if kind not in HELD or kind in ("tensor", "graph", "type"):
        known = [k for k in HELD if k not in ("tensor", "graph", "type")]
        printer.diagnostics.unknown("unknown-kind", given.position, "type of an attribute", kind, known)
        kind = "int"
    if not name.text.isidentifier():
        printer.diagnostics.error("custom-attribute", name.position, f"{name.text!r} is no name")
        return Attribute("attribute", kind)
    value = _default(kind, default, given, printer) if mark else None
    return Attribute(name.text, kind, required=not mark, default=value)


def _default(kind: str, text: str, given: Scalar, printer: Printer) -> Any:
    import ast

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = {"true": True, "false": False}.get(text, text if kind == "string" else None)
    several = kind.endswith("s")
    element = TYPES[kind.removesuffix("s")]
    elements = list(value) if several and isinstance(value, (list, tuple)) else [value]
    if element is float:
        elements = [float(e) if isinstance(e, int) and not isinstance(e, bool) else e for e in elements]
    if not all(type(e) is element for e in elements) or (several and not isinstance(value, (list, tuple))):
        printer.diagnostics.error("custom-default", given.position, f"{text!r} is no {kind}")
        return None
    return tuple(elements) if several else elements[0]


def context(custom: list[CustomOp], ops: Mapping[str, HubOp], printer: Printer) -> dict[str, Any]:
    """Return what the template of ``ops.py`` prints; `ops` are the hub's and the custom ones."""
    classes = []
    for op in custom:
        described = ops.get(op.name.text)
        if described is None:
            continue
        classes.append(
            op_context(described)
            | {
                "domain": literal(described.domain),
                "dotted": literal(op.name.text),
                "shape": _shape(op, described, printer),
                "reference": _reference(op, described, ops, printer),
            }
        )
    entries = [_entry(op, ops[op.name.text]) for op in custom if op.name.text in ops]
    return {"ops": classes, "custom": dict_of("CUSTOM: Final[Mapping[str, CustomOp]] = ", entries, 0)}


def _entry(op: CustomOp, described: HubOp) -> str:
    shape = function_name("shape", described.class_name, 0, 1)
    reference = function_name("reference", described.class_name, 0, 1) if op.reference else "None"
    parts = [described.class_name, shape, reference, literal(op.torch.text if op.torch else "")]
    return f"{literal(op.name.text)}: {call('CustomOp', parts, 0, margin=24)}"


def _scope(op: HubOp) -> tuple[list[str], Scope]:
    names = {a.name: Name(f"op.{a.python}", type=a.type) for a in op.attributes}
    parameters = []
    for formal in op.inputs:
        kind = {"optional": "Value | None", "variadic": "tuple[Value, ...]"}.get(formal.option, "Value")
        parameters.append(f"{python_name(formal.name)}: {kind}")
        presence = f"{python_name(formal.name)} is not None" if formal.option == "optional" else ""
        names[formal.name] = Name(str(python_name(formal.name)), presence, _type(formal))
    return parameters, Scope(names)


def _type(formal: Formal) -> Type:
    return {"optional": types.optional(VALUE), "variadic": VALUES}.get(formal.option, VALUE)


def _shape(op: CustomOp, described: HubOp, printer: Printer) -> Code:
    """Return a function that gives the sizes of the first result."""
    name = function_name("shape", described.class_name, 0, 1)
    parameters, scope = _scope(described)
    first = python_name(described.inputs[0].name) if described.inputs else "op"
    if op.shape is None:
        body = f"{first}.shape[:]" if described.inputs else "()"
    elif isinstance(op.shape, tuple):
        body = str(tuple_of("", [printer.print(size, scope, INT) for size in op.shape], 0, 16))
    else:
        body = printer.print(op.shape, scope, INTS)
    head = call(f"def {name}", [f"op: {described.class_name}", *parameters], 0, " -> tuple[int, ...]:")
    text = f'{head}\n    """The sizes of what {described.name} yields."""\n'
    return Code(text + indented(f"return {body}", 4))


def _reference(op: CustomOp, described: HubOp, ops: Mapping[str, HubOp], printer: Printer) -> Code:
    """Return a function that says the op in other ops; empty if the mapping does not."""
    if op.reference is None:
        return Code("")
    name = function_name("reference", described.class_name, 0, 1)
    parameters, scope = _scope(described)
    results = {f.name: str(python_name(f.name)) for f in described.outputs}
    body = Rewriter(printer, ops, "b", results).print(op.reference, scope)
    parameters += [f"{name}: Value" for name in results.values()]
    head = call(f"def {name}", ["b: Builder", f"op: {described.class_name}", *parameters], 0, " -> None:")
    text = f'{head}\n    """What {described.name} computes, in other ops."""\n'
    return Code(text + "\n".join(indented(line, 4) for line in body))
