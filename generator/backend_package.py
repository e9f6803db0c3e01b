"""Writes ``generated/<backend>``: layer classes, emitters, readers, coverage and the package itself."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from textwrap import wrap
from typing import Any

from caffeforge.generator import custom_ops, message_classes
from caffeforge.generator.compatibility import Inheritance
from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.emitters import Emitters
from caffeforge.generator.expression import Printer
from caffeforge.generator.hub_schema import HubSchema
from caffeforge.generator.library import HOOKS, functions
from caffeforge.generator.mapping import Alternative, MappingFile, Rule
from caffeforge.generator.message_classes import LayerType, layer_class
from caffeforge.generator.names import place
from caffeforge.generator.patterns import Patterns
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.python_text import Code, call, dict_of, laid_out, literal, tuple_of
from caffeforge.generator.readers import Readers
from caffeforge.generator.templates import render

ABI = 1  # the runtime ABI that the templates are written for
SKELETON = {
    "net_name": ("NetParameter", "name"),
    "net_layer": ("NetParameter", "layer"),
    "layer_name": ("LayerParameter", "name"),
    "layer_type": ("LayerParameter", "type"),
    "layer_bottom": ("LayerParameter", "bottom"),
    "layer_top": ("LayerParameter", "top"),
    "layer_blobs": ("LayerParameter", "blobs"),
    "blob_shape": ("BlobProto", "shape"),
    "blob_data": ("BlobProto", "data"),
    "blob_double_data": ("BlobProto", "double_data"),
    "shape_dim": ("BlobShape", "dim"),
}


def files(
    mapping: MappingFile,
    schema: ProtoSchema,
    hub: HubSchema,
    printer: Printer,
    inheritance: Inheritance,
    header: Code,
) -> dict[str, str]:
    """Return the package's files as {path within it: text}; errors go to the printer's diagnostics."""
    diagnostics = printer.diagnostics
    skeleton = _skeleton(schema, diagnostics)
    diagnostics.raise_if_any()
    types = message_classes.layer_types(mapping.types, schema, inheritance, diagnostics)
    backend = Code(mapping.backend.text)
    base = {"header": header, "backend": backend}
    hub = replace(hub, ops=hub.ops | custom_ops.hub_ops(mapping.custom, printer))
    hooks = functions(HOOKS / f"{mapping.backend.text}.py")
    emit = Emitters(schema, types, hub, printer, inheritance, hooks=hooks).context(mapping.ops, mapping.net)
    readers = Readers(schema, types, hub, printer, inheritance, hooks)
    read = readers.context(mapping.layers) | readers.constraints(mapping.constraints, mapping.layers)
    patterns = Patterns(hub, printer).context(mapping.patterns)
    custom = custom_ops.context(mapping.custom, hub.ops, printer)
    net = _net(mapping, types, diagnostics)
    diagnostics.raise_if_any()
    package = {
        "abi": ABI,
        "name": literal(mapping.backend.text),
        "proto_package": literal(schema.package),
        "skeleton": skeleton,
        "net": net,
    }
    layers = message_classes.context(schema, types, schema.file.rpartition("/")[2])
    coverage = _coverage(mapping, types, inheritance)
    return {
        "__init__.py": render("package.py.j2", base | package),
        "coverage.py": render("coverage.py.j2", base | coverage),
        "descriptor.py": render("descriptor.py.j2", base | {"lines": _base64(schema.descriptor)}),
        "emit.py": render("emit.py.j2", base | emit),
        "patterns.py": render("fusions.py.j2", base | patterns),
        "ops.py": render("custom_ops.py.j2", base | custom),
        "layers.py": render("layers.py.j2", base | layers),
        "py.typed": "",
        "read.py": render("read.py.j2", base | read),
    }


def _skeleton(schema: ProtoSchema, diagnostics: Diagnostics) -> Code:
    args = []
    for key, (message, name) in SKELETON.items():
        field = schema.messages[message].field(name) if message in schema.messages else None
        if field is None:
            sentence = f"the schema has no field {message}.{name}, which every net needs"
            diagnostics.error("schema-skeleton", Position(schema.file), sentence)
        else:
            args.append(f"{key}={field.number}")
    return call("Skeleton", args, 4)


def _net(mapping: MappingFile, types: dict[str, LayerType], diagnostics: Diagnostics) -> Code:
    args = []
    if mapping.net.input is not None:
        args.append("input=_emit.input_layer")
    loose = mapping.net.loose_tops
    if loose is not None:
        if loose.text not in types:
            diagnostics.unknown("unknown-layer", loose.position, "layer type", loose.text, types)
        args.append(f"loose_tops=layers.{layer_class(loose.text)}")
    return call("NetStyle", args, 4)


def _base64(data: bytes) -> list[Code]:
    return [literal(line) for line in wrap(b64encode(data).decode(), 96)]


def _coverage(mapping: MappingFile, types: dict[str, LayerType], inheritance: Inheritance) -> dict[str, Any]:
    read = {rule.name.text for rule in mapping.layers}
    ops = [
        f"{literal(rule.name.text)}: {laid_out(_op_coverage(rule), len(rule.name.text) + 9)}"
        for rule in mapping.ops
    ]
    layers = [f"{literal(rule.name.text)}: {literal(place(rule.name.position))}" for rule in mapping.layers]
    unread = [str(literal(name)) for name in types if name not in read]
    kind = "Final[Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]]]"
    return {
        "ops": dict_of(f"OPS: {kind} = ", ops, 0),
        "layers": dict_of("LAYERS: Final[Mapping[str, str]] = ", layers, 0),
        "dropped": tuple_of(
            "DROPPED: Final[tuple[tuple[str, str, str], ...]] = ",
            [laid_out((d.subject, d.rule, d.reason), 8) for d in inheritance.dropped],
            0,
        ),
        "unread": tuple_of("UNREAD: Final[tuple[str, ...]] = ", unread, 0),
    }


def _op_coverage(rule: Rule) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    def conditions(alternative: Alternative) -> list[str]:
        when = [" ".join(alternative.when.text.split())] if alternative.when else []
        return when + [condition.sentence for condition in alternative.require]

    found = [text for alternative in rule.alternatives for text in conditions(alternative)]
    direct = any(alternative.layers for alternative in rule.alternatives)
    unconditional = any(not conditions(alternative) for alternative in rule.alternatives)
    kind = "lowered" if not direct else "direct" if unconditional else "conditional"
    return kind, tuple(place(a.position) for a in rule.alternatives), tuple(dict.fromkeys(found))
