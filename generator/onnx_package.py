"""Writes ``generated/onnx``: one frozen class for every version of every operator, a module an opset.

Beside them stands what writers of ONNX files need: the types that each version takes, and ``rules.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caffeforge.generator import coverage
from caffeforge.generator.expression import Printer
from caffeforge.generator.hub_package import op_context
from caffeforge.generator.hub_schema import HubOp, HubSchema
from caffeforge.generator.onnx_emitters import OnnxEmitters
from caffeforge.generator.onnx_rules import OnnxRules
from caffeforge.generator.op_versions import OpVersions, Types
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.python_text import Code, call, dict_of, doc, list_of, literal, tuple_of
from caffeforge.generator.rule_checks import RuleChecks
from caffeforge.generator.templates import render

MARGIN = 8  # columns that an entry of a table may stand to the right


def files(versions: OpVersions, header: Code) -> dict[str, str]:
    """Return the package's files as {path within it: text}."""
    entries = [f"{literal(name)}: {literal(tuple(found))}" for name, found in versions.ops.items()]
    context: dict[str, Any] = {
        "header": header,
        "first": literal(versions.first),
        "last": literal(versions.last),
        "table": dict_of("VERSIONS: Final[Mapping[str, tuple[int, ...]]] = ", entries, 0),
    }
    package = {
        "__init__.py": render("onnx_init.py.j2", context),
        "element_types.py": render("onnx_types.py.j2", {"header": header} | _types(versions)),
        "py.typed": "",
    }
    for since in sorted({since for found in versions.ops.values() for since in found}):
        ops = [found[since] for found in versions.ops.values() if since in found]
        names = [literal(_class_name(op)) for op in ops]
        context = {
            "header": header,
            "since": literal(since),
            "ops": [_context(op) for op in ops],
            "all": list_of("__all__ = ", names, 0),
        }
        package[f"opset_{since}.py"] = render("onnx_ops.py.j2", context)
    return package


def rules(
    versions: OpVersions, rules: OnnxRules, hub: HubSchema, printer: Printer, header: Code, file: str
) -> dict[str, str]:
    """Return ``rules.py``, and as data ``coverage.py``; `file` is the name of rules.yaml in errors.

    Raises:
        GenerationError: the printer's diagnostics hold errors.
    """
    nothing = ProtoSchema("", "", {}, {}, b"")
    table = OnnxEmitters(nothing, {}, hub, printer, prefix="write", versions=versions).table(rules)
    RuleChecks(file, printer.diagnostics).ops([rule.rule for rule in rules.rules])
    printer.diagnostics.raise_if_any()
    said = {"header": header} | coverage.versions_context(rules)
    return {
        "rules.py": render("onnx_rules.py.j2", {"header": header} | table),
        "coverage.py": render("onnx_coverage.py.j2", said),
    }


def _types(versions: OpVersions) -> dict[str, Any]:
    """Return what the template of ``element_types.py`` prints; sequences and the like are left out."""
    sets = [literal(" ".join(name for name in names if "(" not in name)) for names in versions.sets]
    entries = []
    for name, found in versions.types.items():
        lines = [f"{since}: {_signature(types)}" for since, types in found.items()]
        entries.append(f"{literal(name)}: {dict_of('', lines, 0, MARGIN)}")
    return {
        "sets": tuple_of("_SETS: Final = ", sets, 0),
        "table": dict_of("TYPES: Final[Mapping[str, Mapping[int, Signature]]] = ", entries, 0),
    }


def _signature(types: Types) -> Code:
    sets = dict_of("", [f"{literal(name)}: {index}" for name, index in types.sets.items()], 0)
    return call("_S", [literal(types.inputs), literal(types.outputs), sets], 0, margin=MARGIN)


def _class_name(op: HubOp) -> str:
    return f"{op.name}_{op.since}"


def _context(op: HubOp) -> dict[str, Any]:
    found = op_context(replace(op, name=_class_name(op)))
    title = f"ONNX ``{op.name}`` from opset {op.since} on{found['doc'][found['doc'].index(': ') :]}"
    return found | {"quoted": literal(op.name), "since": literal(op.since), "doc": doc(title)}
