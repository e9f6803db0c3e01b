"""Writes ``generated/onnx``: one frozen class for every version of every operator, a module an opset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caffeforge.generator.hub_package import op_context
from caffeforge.generator.hub_schema import HubOp
from caffeforge.generator.op_versions import OpVersions
from caffeforge.generator.python_text import Code, dict_of, doc, list_of, literal
from caffeforge.generator.templates import render


def files(versions: OpVersions, header: Code) -> dict[str, str]:
    """Return the package's files as {path within it: text}."""
    entries = [f"{literal(name)}: {literal(tuple(found))}" for name, found in versions.ops.items()]
    context: dict[str, Any] = {
        "header": header,
        "first": literal(versions.first),
        "last": literal(versions.last),
        "table": dict_of("VERSIONS: Final[Mapping[str, tuple[int, ...]]] = ", entries, 0),
    }
    package = {"__init__.py": render("onnx_init.py.j2", context), "py.typed": ""}
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


def _class_name(op: HubOp) -> str:
    return f"{op.name}_{op.since}"


def _context(op: HubOp) -> dict[str, Any]:
    found = op_context(replace(op, name=_class_name(op)))
    title = f"ONNX ``{op.name}`` from opset {op.since} on{found['doc'][found['doc'].index(': ') :]}"
    return found | {"quoted": literal(op.name), "since": literal(op.since), "doc": doc(title)}
