"""Writes ``generated/<backend>``: layer classes, emitters, readers, coverage and the package itself."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from textwrap import wrap

from caffeforge.generator import (
    compatibility,
    coverage,
    custom_ops,
    hub_own,
    message_classes,
    net_constraints,
    older_schemas,
)
from caffeforge.generator.arrival import EMPTY, Arrival
from caffeforge.generator.compatibility import Inheritance
from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.emitters import Emitters
from caffeforge.generator.examples import Examples, example_tables
from caffeforge.generator.expression import Printer
from caffeforge.generator.hub_schema import HubSchema
from caffeforge.generator.layer_examples import LayerExamples
from caffeforge.generator.mapping import MappingFile
from caffeforge.generator.message_classes import LayerType
from caffeforge.generator.patterns import Patterns
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.python_text import Code, call, dict_of, laid_out, literal
from caffeforge.generator.readers import Readers
from caffeforge.generator.rule_checks import RuleChecks
from caffeforge.generator.schema_checks import check_schema
from caffeforge.generator.templates import render
from caffeforge.generator.unread_fields import UnreadFields
from caffeforge.generator.yaml_source import Scalar

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
OPTIONAL = ("blob_double_data",)  # older dialects have no weights of that type


def files(
    mapping: MappingFile,
    schema: ProtoSchema,
    hub: HubSchema,
    printer: Printer,
    inheritance: Inheritance,
    header: Code,
    found: Arrival = EMPTY,
) -> dict[str, str]:
    """Return the package's files as {path within it: text}; errors go to the printer's diagnostics."""
    diagnostics = printer.diagnostics
    before = len(diagnostics.found)
    check_schema(schema, diagnostics)
    skeleton = _skeleton(schema, diagnostics)
    if len(diagnostics.found) > before:
        diagnostics.raise_if_any()  # what the mapping says of such a schema cannot be told
    types = message_classes.layer_types(mapping.types, schema, inheritance, diagnostics)
    backend = Code(mapping.backend.text)
    base = {"header": header, "backend": backend}
    hub_own.clashes(mapping.custom, hub, diagnostics)
    hub = replace(hub, ops=hub.ops | custom_ops.hub_ops(mapping.custom, printer))
    inheritance.meaningless = compatibility.meaningless(mapping.layers, types)
    inheritance.sizes = older_schemas.sizes(mapping.layers, types)
    inheritance.sides = older_schemas.sides(mapping.layers, types)
    older = older_schemas.values(mapping.layers)
    emit = Emitters(schema, types, hub, printer, inheritance, older).context(mapping.ops, mapping.net)
    readers = Readers(schema, types, hub, printer, inheritance)
    constraints = [
        r for r in mapping.constraints if r.type.text not in (net_constraints.ANY, *mapping.unread)
    ]
    limits = {rule.type.text: rule.require for rule in mapping.constraints}
    whole = {
        net_constraints.ANY: limits.get(net_constraints.ANY, ()),
        net_constraints.NET: mapping.net.require,
    }
    read = readers.context(mapping.layers) | readers.constraints(constraints, mapping.layers)
    read |= net_constraints.context(whole, printer, types, inheritance)
    patterns = Patterns(hub, printer).context(mapping.patterns)
    examples = example_tables(Examples(hub.ops, printer), mapping.ops, mapping.patterns)
    layer_examples = LayerExamples(schema, types, printer, inheritance)
    examples |= {"layers": layer_examples.table(mapping.layers, constraints)}
    own = Code(f"Ops of the {backend} backend's own domain: their classes, shape rules and references.")
    custom = {"title": own} | custom_ops.context(mapping.custom, hub.ops, printer)
    net = _net(mapping, types, bool(emit["input"]), inheritance, diagnostics)
    RuleChecks(inheritance.file, diagnostics).mapping(mapping)
    gone = frozenset((dropped.subject, dropped.rule) for dropped in inheritance.dropped)
    UnreadFields(inheritance.file, readers.known, types, schema, gone, diagnostics).check(mapping)
    diagnostics.raise_if_any()
    package = {
        "abi": ABI,
        "name": literal(mapping.backend.text),
        "proto_package": literal(schema.package),
        "skeleton": skeleton,
        "net": net,
        "whole": read["whole"],
    }
    layers = message_classes.context(schema, types, schema.file.rpartition("/")[2])
    covered = coverage.backend_context(mapping, types, inheritance.dropped, found)
    return {
        "__init__.py": render("package.py.j2", base | package),
        "coverage.py": render("coverage.py.j2", base | covered),
        "descriptor.py": render("descriptor.py.j2", base | {"lines": _base64(schema.descriptor)}),
        "emit.py": render("emit.py.j2", base | emit),
        "patterns.py": render("fusions.py.j2", base | patterns),
        "ops.py": render("custom_ops.py.j2", base | custom),
        "examples.py": render("layer_examples.py.j2", base | examples),
        "layers.py": render("layers.py.j2", base | layers),
        "py.typed": "",
        "read.py": render("read.py.j2", base | read),
    }


def _skeleton(schema: ProtoSchema, diagnostics: Diagnostics) -> Code:
    args = []
    missing = dict.fromkeys(message for message, _ in SKELETON.values() if message not in schema.messages)
    if missing:
        sentence = f"the schema has no {', '.join(missing)}, which every net needs"
        hint = "gen-backend takes a whole caffe.proto"
        diagnostics.error("schema-skeleton", Position(schema.file, 1, 1), sentence, hint)
    for key, (message, name) in SKELETON.items():
        found = schema.messages.get(message)
        field = found.field(name) if found is not None else None
        if field is not None:
            args.append(f"{key}={field.number}")
        elif key in OPTIONAL:
            args.append(f"{key}=0")
        elif found is not None:
            sentence = f"{message} has no field {name}, which every net needs"
            diagnostics.error("schema-skeleton", Position(schema.file, found.line, found.column), sentence)
    return call("Skeleton", args, 4)


def _net(
    mapping: MappingFile,
    types: dict[str, LayerType],
    has_input: bool,
    inheritance: Inheritance,
    diagnostics: Diagnostics,
) -> Code:
    """Return the backend's NetStyle; inherited layer types that the schema cannot hold are left out."""

    def known(word: Scalar) -> bool:
        if word.text not in types and not inheritance.is_inherited(word.position):
            diagnostics.unknown("unknown-layer", word.position, "layer type", word.text, types)
        return word.text in types

    args = []
    net = mapping.net
    if has_input:
        args.append("input=_emit.input_layer")
    if net.loose_tops is not None and known(net.loose_tops):
        args.append(f"loose_tops=layers.{types[net.loose_tops.text].python}")
    lists = {
        "in_place": net.in_place,
        "views": net.views,
        "shared": net.shared,
        "takes_in_place": net.takes_in_place,
        "training": net.training,
        "data": net.data,
    }
    for key, words in lists.items():
        held = tuple(word.text for word in words if known(word))
        if held:
            args.append(f"{key}={laid_out(held, 12)}")
    own = {rule.name.text for rule in mapping.layers if not inheritance.is_inherited(rule.name.position)}
    for word, _ in net.untold:
        if word.text in own:
            sentence = f"layers: has a rule for {word.text}, which tells what it computes"
            diagnostics.error("no-effect", word.position, sentence, "leave it out of untold:")
    told = [f"{literal(word.text)}: {literal(why)}" for word, why in net.untold if known(word)]
    if told:
        args.append(str(dict_of("untold=", told, 0, 12)))
    return call("NetStyle", args, 4)


def _base64(data: bytes) -> list[Code]:
    return [literal(line) for line in wrap(b64encode(data).decode(), 96)]
