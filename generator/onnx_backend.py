"""Writes ``generated/onnx_opsetN``: ``opset.py`` says which ops go by name there, and the package itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caffeforge.generator import coverage, custom_ops, hub_own
from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.expression import Printer
from caffeforge.generator.hub_schema import HubSchema
from caffeforge.generator.onnx_emitters import by_name
from caffeforge.generator.onnx_rules import OnnxRules
from caffeforge.generator.onnx_subset import ConstraintEmitters, Subset, type_table, unknown_ops
from caffeforge.generator.op_versions import Opset, OpVersions
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.python_text import Code, literal, tuple_of
from caffeforge.generator.templates import render

ABI = 1  # the runtime ABI that the template is written for


def opset_files(
    name: str,
    opset: Opset,
    versions: OpVersions,
    rules: OnnxRules,
    hub: HubSchema,
    header: Code,
    place: Position,
) -> dict[str, str]:
    """Return the files of an opset's package as {path within it: text}; `place` is that of its description.

    Raises:
        GenerationError: the description is not that of ``schemas/onnx``, or an op of the hub has a part
            without a place in the opset that no rule speaks of.
    """
    diagnostics = Diagnostics()
    context = _opset_context(name, opset, versions, rules, hub, header, place, diagnostics)
    diagnostics.raise_if_any()
    return _rendered(context)


def subset_files(
    subset: Subset,
    opset: Opset,
    versions: OpVersions,
    rules: OnnxRules,
    hub: HubSchema,
    header: Code,
    printer: Printer,
) -> dict[str, str]:
    """Return the files of the package of a vendor's part of an opset.

    Raises:
        GenerationError: the mapping has mistakes.
    """
    diagnostics, name = printer.diagnostics, subset.backend.text
    context = _opset_context(name, opset, versions, rules, hub, header, subset.backend.position, diagnostics)
    allowed = unknown_ops(subset, opset.ops, opset.number, diagnostics)
    hub_own.clashes(list(subset.custom), hub, diagnostics)
    hub = replace(hub, ops=hub.ops | custom_ops.hub_ops(list(subset.custom), printer))
    nothing = ProtoSchema("", "", {}, {}, b"")
    table = ConstraintEmitters(nothing, {}, hub, printer).table(subset.constraints)
    types = type_table(subset, diagnostics)
    title = Code(f"Ops of the {name} backend's own domain: their classes, shape rules and references.")
    custom = {"header": header, "title": title} | custom_ops.context(list(subset.custom), hub.ops, printer)
    diagnostics.raise_if_any()
    context |= {
        "subset": True,
        "source": literal(subset.source),
        "allowed": tuple_of("ALLOWED: Final = ", allowed, 0),
        "all_allowed": not allowed,
        "host": tuple_of("HOST: Final = ", [literal(word.text) for word in subset.host], 0),
        "own_ops": bool(subset.custom),
    }
    files = _rendered(context)
    files["constraints.py"] = render("onnx_constraints.py.j2", context | table | types)
    limits = {"header": header} | coverage.limits_context(subset.constraints)
    files["coverage.py"] = render("onnx_limits.py.j2", limits)
    if subset.custom:
        files["ops.py"] = render("custom_ops.py.j2", custom)
    return files


def _rendered(context: dict[str, Any]) -> dict[str, str]:
    return {
        "__init__.py": render("onnx_backend.py.j2", context),
        "opset.py": render("onnx_opset.py.j2", context),
        "py.typed": "",
    }


def _opset_context(
    name: str,
    opset: Opset,
    versions: OpVersions,
    rules: OnnxRules,
    hub: HubSchema,
    header: Code,
    place: Position,
    diagnostics: Diagnostics,
) -> dict[str, Any]:
    """Return what the templates print of an opset; what is wrong goes to `diagnostics`."""
    own = {n: version.since for n in versions.ops if (version := versions.in_force(n, opset.number))}
    for op in sorted(opset.ops.items() - own.items()):
        diagnostics.error("opset-form", place, f"schemas/onnx has no {op[0]} of opset {op[1]} in force here")
    plain = []
    for op_name, missing in by_name(hub.ops, versions, rules, opset.number):
        if op_name not in opset.ops:
            continue
        if missing:
            sentence = f"{missing[0]} of {op_name} has no place in opset {opset.number}, no rule speaks of it"
            diagnostics.error("no-place", place, sentence, "give it a rule in schemas/onnx/rules.yaml")
        plain.append(literal(op_name))
    return {
        "header": header,
        "abi": literal(ABI),
        "name": literal(name),
        "opset": literal(opset.number),
        "plain": tuple_of("PLAIN: Final = ", plain, 0),
        "subset": False,
        "own_ops": False,
    }
