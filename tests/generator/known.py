"""Backends that have the layers of schemas/known_layers.yaml: bvlc's proto with the messages of entries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from caffeforge.generator import known_layers, yaml_source
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.known_layers import Form, KnownLayer
from caffeforge.generator.schema_folder import KNOWN_LAYERS, SCHEMAS

PROTO = (SCHEMAS / "bvlc" / "caffe.proto").read_text(encoding="utf-8")
FREE = (  # of messages that are parameters
    "optional float nms_threshold = 1;",
    "optional int32 top_k = 2;",
    "optional float eta = 3;",
    "repeated int64 dim = 4;",
)
SHARED = f"message FreeParameter {{ {' '.join(FREE)} }}\n"


def _entries() -> list[KnownLayer]:
    diagnostics = Diagnostics()
    root = yaml_source.load(KNOWN_LAYERS.read_text(encoding="utf-8"), str(KNOWN_LAYERS), diagnostics)
    assert root is not None
    found = known_layers.read(root, diagnostics)
    assert diagnostics.found == []
    return found


ENTRIES = _entries()


def entry(id: str) -> KnownLayer:
    """Return the entry of a name."""
    return next(known for known in ENTRIES if known.id.text == id)


def packs() -> list[list[KnownLayer]]:
    """Return the entries in groups of which each can be one backend: no type, field or op is in two."""
    groups: list[list[KnownLayer]] = []
    for known in ENTRIES:
        fitting = next((g for g in groups if not any(_claims(known) & _claims(k) for k in g)), None)
        if fitting is None:
            groups.append([known])
        else:
            fitting.append(known)
    return groups


def _claims(known: KnownLayer) -> set[str]:
    types = {f"type {word.text}" for word in known.types}
    ops = {f"op {op.text}" for op, _ in (*known.ops, *known.fallback)}
    return types | ops | ({f"field {known.fields[0]}"} if known.fields else set())


def proto(entries: Iterable[KnownLayer], *, extra: str = "", without: str = "") -> str:
    """Return bvlc's proto with the parameter messages of entries: with `extra` fields, or `without` one."""
    text = PROTO + SHARED
    for number, known in enumerate(entries):
        fields = [f for f in known.message if f.name != without]
        names = [f"E{number}_{form.name}" for form in fields]
        text += "".join(_type(form, name) for form, name in zip(fields, names, strict=True))
        lines = [_field(form, n + 90, name) for n, (form, name) in enumerate(zip(fields, names, strict=True))]
        if known.adds:
            (message,) = re.findall(rf"optional (\w+) {known.fields[0]} = \d+;", PROTO)[-1:]
            text = _with(text, message, " ".join(lines))
        elif known.fields and not known.is_open:
            text += f"message New{number}Parameter {{ {' '.join(lines)} {extra} }}\n"
            text = re.sub(
                rf"optional \w+ {known.fields[0]} = \d+;", "", text
            )  # a field that the base has too
            text = _with(
                text, "LayerParameter", f"optional New{number}Parameter {known.fields[0]} = {9000 + number};"
            )
    return text


def mapping(entries: Sequence[KnownLayer]) -> str:
    """Return a mapping that takes entries by their first types, but those that extend a layer of the base."""
    uses = ", ".join(f"{k.types[0].text}: {k.id.text}" for k in entries if k.like_type or not k.adds)
    return f"backend: vendorx\nextends: bvlc\nuse: {{{uses}}}\n"


def _with(text: str, message: str, fields: str) -> str:
    head = f"message {message} {{"
    assert text.count(head) == 1
    return text.replace(head, f"{head} {fields}")


def _type(form: Form, name: str) -> str:
    """Return the enum of a field, or its message where the form tells of what."""
    if form.kinds[0] == "message" and form.words:
        fields = [field for field in FREE if field.split()[2] in form.words]
        return f"message {name}_ {{ {' '.join(fields)} }}\n"
    if form.kinds[0] != "enum":
        return ""
    values = " ".join(f"{name}_{word.rstrip('?')} = {n};" for n, word in enumerate(form.words or ("NEW",)))
    return f"message {name}_ {{ enum Kind {{ {values.replace(f'{name}_', '')} }} }}\n"


def _field(form: Form, number: int, name: str) -> str:
    """Return a field of a message of the due form and default."""
    own = {"enum": f"{name}_.Kind", "message": f"{name}_" if form.words else "FreeParameter"}
    kind = own.get(form.kinds[0], form.kinds[0])
    value = str(form.default).lower() if isinstance(form.default, bool) else form.default
    value = f'"{value}"' if kind == "string" else value
    default = f" [default = {value}]" if form.default is not None else ""
    return f"{'repeated' if form.repeated else 'optional'} {kind} {form.name} = {number}{default};"
