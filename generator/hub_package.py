"""Writes ``generated/hub``: one frozen class per operator of the hub."""

from __future__ import annotations

from typing import Any

from caffeforge.generator import coverage
from caffeforge.generator.emitters import Emitters
from caffeforge.generator.examples import Examples, example_tables
from caffeforge.generator.expression import Printer
from caffeforge.generator.hub_schema import HELD, Attribute, Formal, HubOp, HubSchema
from caffeforge.generator.mapping import NetRule, RewritesFile
from caffeforge.generator.patterns import Patterns
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.python_text import Code, call, dict_of, doc, list_of, literal, tuple_of
from caffeforge.generator.rule_checks import RuleChecks
from caffeforge.generator.templates import render


def files(
    schema: HubSchema, rewrites: RewritesFile, printer: Printer, header: Code, file: str
) -> dict[str, str]:
    """Return the package's files as {path within it: text}; `file` is the name of rewrites.yaml in errors.

    Raises:
        GenerationError: the printer's diagnostics hold errors.
    """
    onnx = [op for op in schema.ops.values() if not op.domain]
    ops = [op_context(op) for op in onnx]
    names = [op.name for op in onnx]
    table = dict_of("OPS: _Final[_Mapping[str, type[_Op]]] = ", [f"{literal(n)}: {n}" for n in names], 0)
    exported = list_of("__all__ = ", [literal(n) for n in ["OPS", *names]], 0)
    context = {"header": header, "opset": schema.opset, "ops": ops, "table": table, "all": exported}
    nothing = ProtoSchema("", "", {}, {}, b"")
    lowerings = Emitters(nothing, {}, schema, printer, prefix="lower").context(rewrites.lowerings, NetRule())
    lowerings |= {"impossible": _impossible(rewrites, schema, printer)}
    fusions = Patterns(schema, printer).context(rewrites.fusions)
    folds = Patterns(schema, printer).context(rewrites.folds)
    RuleChecks(file, printer.diagnostics).rewrites(rewrites)
    printer.diagnostics.raise_if_any()
    examples = example_tables(
        Examples(schema.ops, printer), rewrites.lowerings, [*rewrites.fusions, *rewrites.folds]
    )
    printer.diagnostics.raise_if_any()
    return {
        "__init__.py": render("hub_init.py.j2", context),
        "coverage.py": render("hub_coverage.py.j2", {"header": header} | coverage.hub_context(rewrites)),
        "examples.py": render("examples.py.j2", {"header": header} | examples),
        "folds.py": render("fusions.py.j2", {"header": header} | folds),
        "fusions.py": render("fusions.py.j2", {"header": header} | fusions),
        "lowerings.py": render("hub_lowerings.py.j2", {"header": header} | lowerings),
        "ops.py": render("hub_ops.py.j2", context),
        "py.typed": "",
    }


def _impossible(rewrites: RewritesFile, schema: HubSchema, printer: Printer) -> Code:
    """Return the table of the ops that Caffe cannot compute."""
    entries = []
    for name, sentence in rewrites.impossible:
        op = schema.ops.get(name.text)
        if op is None:
            printer.diagnostics.unknown("unknown-op", name.position, "op", name.text, schema.ops)
        else:
            entries.append(f"{op.code}: {literal(sentence)}")
    return dict_of("IMPOSSIBLE: Final[Mapping[type[Op], str]] = ", entries, 0)


def op_context(op: HubOp) -> dict[str, Any]:
    """Return what a template prints for the class of one op."""
    fields = [_field(a) for a in sorted(op.attributes, key=lambda a: (not a.required,))]
    return {
        "name": Code(op.class_name),
        "quoted": literal(op.class_name),
        "doc": doc(f"{_title(op)}: {_usage(op)}."),
        "slots": tuple_of("__slots__ = ", [literal(str(a.python)) for a in op.attributes], 4),
        "inputs": op.inputs and tuple_of("inputs = ", _formals(op.inputs), 4),
        "outputs": op.outputs and tuple_of("outputs = ", _formals(op.outputs), 4),
        "attributes": op.attributes and tuple_of("attributes = ", [_attribute(a) for a in op.attributes], 4),
        "fields": fields,
        "signature": call("def __init__", ["self", "*", *(f["parameter"] for f in fields)], 4, " -> None:"),
    }


def _title(op: HubOp) -> str:
    if op.domain and op.home != "ops.":
        return f"``{op.name}``, of layers of Caffe"
    return f"``{op.name}``, of this backend" if op.domain else f"ONNX ``{op.name}``, as of opset {op.since}"


def _usage(op: HubOp) -> str:
    def side(formals: tuple[Formal, ...]) -> str:
        marks = {"variadic": "*{}", "optional": "[{}]", "single": "{}"}
        return ", ".join(marks[f.option].format(f.name) for f in formals)

    return f"({side(op.inputs)}) -> ({side(op.outputs)})"


def _formals(formals: tuple[Formal, ...]) -> list[str]:
    texts = []
    for formal in formals:
        args = [literal(formal.name)]
        if formal.option != "single" or formal.static:
            args.append(literal(formal.option))
        if formal.static:
            args.append(Code("True"))
        texts.append(f"_F({', '.join(args)})")
    return texts


def _attribute(attribute: Attribute) -> str:
    tail = f", True, {literal(attribute.dtype)}" if attribute.static else ""
    return f"_A({literal(attribute.name)}, {literal(attribute.kind)}{tail})"


def _field(attribute: Attribute) -> dict[str, Any]:
    held = HELD[attribute.kind]
    name = attribute.python
    optional = not attribute.required and attribute.default is None
    given = f"{held} | None = None" if optional else held
    if attribute.default is not None:
        given = f"{held} = {literal(attribute.default)}"
    return {
        "name": name,
        "quoted": literal(str(name)),
        "held": Code(f"{held} | None" if optional and not attribute.computed else held),
        "parameter": Code(f"{name}: {given}"),
        "computed": Code(attribute.computed),
    }
