"""Prints ``ops.py``: the classes of a backend's own ops (``custom:``), with shape rules and references."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from keyword import iskeyword
from typing import Any

from caffeforge.generator import types
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.hub_package import op_context
from caffeforge.generator.hub_schema import HELD, Attribute, Formal, HubOp
from caffeforge.generator.mapping import CustomOp, Shape
from caffeforge.generator.names import CONSTANTS, OP_MEMBERS, function_name
from caffeforge.generator.python_text import Code, call, dict_of, indented, is_name, literal, tuple_of
from caffeforge.generator.rewrite import Rewriter
from caffeforge.generator.source import Source
from caffeforge.generator.types import INT, INTS, VALUE, VALUES, Type
from caffeforge.generator.yaml_source import Scalar

OPTIONS = {"?": "optional", "*": "variadic"}
TYPES = {"int": int, "float": float, "bool": bool, "string": str}
LIMIT = 2**63  # attributes are 64 bit integers
AXIS = re.compile(r"(\w+)\.shape\[(-?\d+)\]", re.ASCII)  # a size that an operand has
WHOLE = re.compile(r"(\w+)\.shape", re.ASCII)  # all of them
BARE = re.compile(r"\.shape\b(?!\[)", re.ASCII)  # a shape that may be what an expression yields
TORCH = re.compile(r"\w+::\w+(\.\w+)?", re.ASCII)
OWN = frozenset(("b",))  # what references call their own values
# What ops.py imports and defines besides.
MODULE_NAMES = (
    "Builder", "CUSTOM", "CustomOp", "Dim", "Final", "Mapping", "Symbol", "Value", "annotations", "bool",
    "caffe_ops", "float", "hub", "int", "lib", "object", "str", "tuple",
)  # fmt: skip


def hub_ops(custom: list[CustomOp], printer: Printer) -> dict[str, HubOp]:
    """Return the ops of ``custom:`` by dotted name, as rules see them; mistakes are reported."""
    found: dict[str, HubOp] = {}
    taken = dict.fromkeys(MODULE_NAMES, "the generated module itself")
    for op in custom:
        domain, _, kind = op.name.text.rpartition(".")
        if not (is_name(domain) and is_name(kind)) or iskeyword(domain) or iskeyword(kind):
            sentence = f"a custom op is named domain.Op, {op.name.text!r} is no such name"
            printer.diagnostics.error("custom-name", op.name.position, sentence)
            continue
        pythons = (kind, str(function_name("shape", kind, 0, 1)))
        clash = next((python for python in pythons if python in taken), None)
        if clash is not None:
            sentence = f"{op.name.text} would be called {clash}, as {taken[clash]} is"
            printer.diagnostics.error("name-clash", op.name.position, sentence)
        taken.update(dict.fromkeys(pythons, op.name.text))
        attributes = tuple(_attribute(name, kind_, printer) for name, kind_ in op.attributes)
        sides = [tuple(_formal(scalar, printer) for scalar in side) for side in (op.inputs, op.outputs)]
        found[op.name.text] = HubOp(op.name.text, 1, sides[0], sides[1], attributes, domain)
        _check(op, found[op.name.text], printer.diagnostics)
    return found


def _check(op: CustomOp, described: HubOp, diagnostics: Diagnostics) -> None:
    """Report what makes an op of no use though each of its parts is well formed."""
    formals = [
        *zip(op.inputs, described.inputs, strict=True),
        *zip(op.outputs, described.outputs, strict=True),
    ]
    places = [(key.text, key.position) for key, _ in op.attributes]
    names: set[str] = set()
    for name, position in [*places, *((formal.name, scalar.position) for scalar, formal in formals)]:
        if name in names:
            diagnostics.error("twice", position, f"{name} stands for two things of {op.name.text}")
        names.add(name)
    for given, side in ((op.inputs, described.inputs), (op.outputs, described.outputs)):
        for scalar, formal in list(zip(given, side, strict=True))[:-1]:
            if formal.option == "variadic":
                sentence = f"{scalar.text} stands for all that are left, so that nothing follows it"
                diagnostics.error("custom-input", scalar.position, sentence)
    for scalar in op.open:
        if not is_name(scalar.text) or scalar.text in names or not _is_size(op, scalar.text):
            sentence = f"{scalar.text!r} must be a name of its own that stands alone as a size in shape:"
            diagnostics.error("custom-shape", scalar.position, sentence)
    if not op.outputs:
        diagnostics.error("custom-output", op.name.position, f"{op.name.text} yields nothing")
    if op.shape is None and (not described.inputs or described.inputs[0].option != "single"):
        sentence = (
            f"the size of what {op.name.text} yields must be given: it has no first input to take it from"
        )
        diagnostics.error("custom-shape", op.name.position, sentence, "add shape:")
    if op.torch is not None and not TORCH.fullmatch(op.torch.text):
        sentence = f"{op.torch.text!r} is no name of a torch op"
        diagnostics.error("custom-torch", op.torch.position, sentence, "as vendory::focus")


def _is_size(op: CustomOp, name: str) -> bool:
    return isinstance(op.shape, tuple) and any(size.text == name for size in op.shape)


def _formal(scalar: Scalar, printer: Printer) -> Formal:
    """Return an input or output as ``X``, ``B?`` (optional) or ``xs*`` (all that are left)."""
    option = OPTIONS.get(scalar.text[-1:], "single")
    name = scalar.text if option == "single" else scalar.text[:-1]
    if not is_name(name) or name in CONSTANTS:
        printer.diagnostics.error("custom-input", scalar.position, f"{scalar.text!r} is no name of a tensor")
        name = "tensor"
    return Formal(name, option)


def _attribute(name: Scalar, given: Scalar, printer: Printer) -> Attribute:
    """Return an attribute of type ``int``, ``ints = [1, 1]``, ``float = 0.5`` and so on."""
    kind, mark, default = (part.strip() for part in given.text.partition("="))
    if kind not in HELD or kind in ("tensor", "graph", "type"):
        known = [k for k in HELD if k not in ("tensor", "graph", "type")]
        printer.diagnostics.unknown("unknown-kind", given.position, "type of an attribute", kind, known)
        kind = "int"
    if not is_name(name.text) or name.text in {*OP_MEMBERS, *CONSTANTS}:
        sentence = f"{name.text!r} cannot be the name of an attribute"
        printer.diagnostics.error("custom-attribute", name.position, sentence)
        return Attribute("attribute", kind)
    value = _default(kind, default, given, printer) if mark else None
    return Attribute(name.text, kind, required=not mark, default=value)


def _default(kind: str, text: str, given: Scalar, printer: Printer) -> Any:
    several = kind.endswith("s")
    value = _literal(text)
    if value is None and kind == "string":
        value = text
    listed = list(value) if isinstance(value, (list, tuple)) else None
    elements = (listed or []) if several else [value]
    element = TYPES[kind.removesuffix("s")]
    if element is float:
        elements = [float(e) if type(e) is int and abs(e) < LIMIT else e for e in elements]
    fits = all(type(e) is element and not (type(e) is int and abs(e) >= LIMIT) for e in elements)
    if not fits or (several and listed is None):
        printer.diagnostics.error("custom-default", given.position, f"{text!r} is no {kind}")
        return None
    return tuple(elements) if several else elements[0]


def _literal(text: str) -> Any:
    """Return the value of a literal, None if the text is none; nothing is evaluated."""
    words = {"true": True, "false": False}
    try:
        return words[text] if text in words else ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def context(custom: list[CustomOp], ops: Mapping[str, HubOp], printer: Printer) -> dict[str, Any]:
    """Return what the template of ``ops.py`` prints; `ops` are the hub's and the custom ones."""
    own = frozenset(ops[op.name.text].class_name for op in custom if op.name.text in ops)
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
                "shapes": _shapes(op, described, own, printer),
                "reference": _reference(op, described, ops, own, printer),
            }
        )
    entries = [_entry(op, ops[op.name.text]) for op in custom if op.name.text in ops]
    return {"ops": classes, "custom": dict_of("CUSTOM: Final[Mapping[str, CustomOp]] = ", entries, 0)}


def _entry(op: CustomOp, described: HubOp) -> str:
    shape = function_name("shape", described.class_name, 0, 1)
    reference = function_name("reference", described.class_name, 0, 1) if op.reference else "None"
    parts = [described.class_name, shape, reference, literal(op.torch.text if op.torch else "")]
    if op.further:
        functions = [f"{literal(name.text)}: {_further_name(described, name.text)}" for name, _ in op.further]
        parts.append(f"{{{', '.join(functions)}}}")
    return f"{literal(op.name.text)}: {call('CustomOp', parts, 0, margin=24)}"


def _codes(op: HubOp, classes: frozenset[str]) -> dict[str, Code]:
    """Return the Python names of the inputs and outputs; `classes` are those that ops.py has."""
    formals = [formal.name for formal in (*op.inputs, *op.outputs)]
    return dict(zip(formals, Scope({}, taken=OWN | classes).free(formals), strict=True))


def _scope(op: HubOp, classes: frozenset[str]) -> tuple[list[str], Scope]:
    names = {a.name: Name(f"op.{a.python}", type=a.type) for a in op.attributes}
    parameters, codes = [], _codes(op, classes)
    for formal in op.inputs:
        code = codes[formal.name]
        kind = {"optional": "Value | None", "variadic": "tuple[Value, ...]"}.get(formal.option, "Value")
        parameters.append(f"{code}: {kind}")
        presence = f"{code} is not None" if formal.option == "optional" else ""
        names[formal.name] = Name(code, presence, _type(formal))
    return parameters, Scope(names, taken=OWN | classes | {*codes.values()})


def _type(formal: Formal) -> Type:
    return {"optional": types.optional(VALUE), "variadic": VALUES}.get(formal.option, VALUE)


def _further_name(op: HubOp, output: str) -> Code:
    return Code(f"{function_name('shape', op.class_name, 0, 1)}_of_{output.lower()}")


def _shapes(op: CustomOp, described: HubOp, classes: frozenset[str], printer: Printer) -> list[Code]:
    """Return functions that give the sizes of the first result, and of those others that have a rule."""
    first = function_name("shape", described.class_name, 0, 1)
    rules = [(op.shape, first, f"what {described.name} yields")]
    rules += [(s, _further_name(described, n.text), f"{n.text} of {described.name}") for n, s in op.further]
    return [_shape(op, rule, described, _scope(described, classes), printer) for rule in rules]


def _shape(
    op: CustomOp,
    rule: tuple[Shape | None, str, str],
    described: HubOp,
    scoped: tuple[list[str], Scope],
    printer: Printer,
) -> Code:
    """Return a function that gives the sizes of a result: by what, its name, and what it gives them of."""
    shape, name, of = rule
    parameters, scope = scoped
    if shape is None:
        body = f"{scope.names[described.inputs[0].name].code}.dims" if described.inputs else "()"
    elif isinstance(shape, tuple):
        open_ = {scalar.text for scalar in op.open}
        sizes = [_size(size, open_, described, scope, printer) for size in shape]
        body = str(tuple_of("", sizes, 0, 16))
    else:
        body = _whole(shape, described, scope, printer)
    head = call(f"def {name}", [f"op: {described.class_name}", *parameters], 0, " -> tuple[Dim, ...]:")
    text = f'{head}\n    """The sizes of {of}."""\n'
    return Code(text + indented(f"return {body}", 4))


def _whole(shape: Source, op: HubOp, scope: Scope, printer: Printer) -> str:
    """Return all sizes; where they are just an operand's, some may be symbols."""
    code = printer.print(shape, scope, INTS)
    copied = WHOLE.fullmatch(shape.text)
    if copied is not None and copied[1] in {f.name for f in op.inputs if f.option == "single"}:
        return f"{scope.names[copied[1]].code}.dims"
    return f"tuple({code})" if BARE.search(shape.text) else code


def _size(size: Source, open_: set[str], op: HubOp, scope: Scope, printer: Printer) -> Code:
    """Return one size; one that is just that of an operand's axis may be a symbol."""
    if size.text in open_:
        return Code(f"Symbol({literal(size.text)})")
    code = Code(printer.print(size, scope, INT))
    copied = AXIS.fullmatch(size.text)
    if copied is not None and copied[1] in {f.name for f in op.inputs if f.option == "single"}:
        return Code(f"{scope.names[copied[1]].code}.size({copied[2]})")
    return code


def _reference(
    op: CustomOp, described: HubOp, ops: Mapping[str, HubOp], classes: frozenset[str], printer: Printer
) -> Code:
    """Return a function that says the op in other ops; empty if the mapping does not."""
    if op.reference is None:
        return Code("")
    name = function_name("reference", described.class_name, 0, 1)
    parameters, scope = _scope(described, classes)
    codes = _codes(described, classes)
    results = {f.name: ("*" if f.option == "variadic" else "") + codes[f.name] for f in described.outputs}
    here = {key: replace(known, home="") for key, known in ops.items()}  # ops.py holds both
    body = Rewriter(printer, here, "b", results).print(op.reference, scope)
    for formal in described.outputs:
        kind = {"optional": "Value | None", "variadic": "tuple[Value, ...]"}.get(formal.option, "Value")
        parameters.append(f"{codes[formal.name]}: {kind}")
    head = call(f"def {name}", ["b: Builder", f"op: {described.class_name}", *parameters], 0, " -> None:")
    text = f'{head}\n    """What {described.name} computes, in other ops."""\n'
    return Code(text + "\n".join(indented(line, 4) for line in body))
