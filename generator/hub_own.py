"""The ops that the hub has besides ONNX's: those of Caffe's layers, declared in ``schemas/hub/ops.yaml``.

They are declared like the ops of a backend's own domain, and have a module of their own beside ONNX's.
"""

from __future__ import annotations

from dataclasses import replace

from caffeforge.generator import custom_ops, mapping_reader
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.expression import Printer
from caffeforge.generator.hub_schema import HubSchema
from caffeforge.generator.mapping import CustomOp
from caffeforge.generator.python_text import Code
from caffeforge.generator.templates import render
from caffeforge.generator.yaml_source import load

MODULE = "caffe_ops"


def with_own_ops(schema: HubSchema, ops_yaml: str, file: str, printer: Printer) -> HubSchema:
    """Return the hub with the dotted ops of `ops_yaml`; mistakes go to the printer's diagnostics."""
    root = load(ops_yaml, file, Diagnostics())  # whose form `hub_schema.read` has checked
    own = mapping_reader.read_own_ops(root, printer.diagnostics) if root is not None else []
    found = custom_ops.hub_ops(own, printer)
    ops = {name: replace(op, home=f"{MODULE}.") for name, op in found.items()}
    return replace(schema, ops=schema.ops | ops, own=own)


def text(schema: HubSchema, printer: Printer, header: Code) -> str:
    """Return the module of these ops."""
    title = Code("The hub's ops that ONNX does not have: what layers of Caffe compute.")
    context = custom_ops.context(schema.own, schema.ops, printer)
    return render("custom_ops.py.j2", {"header": header, "title": title} | context)


def clashes(custom: list[CustomOp], hub: HubSchema, diagnostics: Diagnostics) -> None:
    """Report ops of a backend that have the name of one of the hub's."""
    for op in custom:
        if op.name.text in hub.ops:
            sentence = f"{op.name.text} is an op of the hub"
            hint = "give it another name, or use the hub's"
            diagnostics.error("name-clash", op.name.position, sentence, hint)
