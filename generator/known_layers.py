"""``schemas/known_layers.yaml``: what layers beyond the base mean, found by the form of their parameters.

Vendors give the same layers the same parameter messages, mostly. A field of LayerParameter that the base does
not have is looked up by its name and its message's fields; what fits is laid under the vendor's own mapping.
"""

from __future__ import annotations

from dataclasses import dataclass

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.proto import ProtoField, ProtoSchema
from caffeforge.generator.yaml_reader import YamlReader
from caffeforge.generator.yaml_source import Mapping, Node, Scalar

FORM = ("field", "message", "types", "layers", "ops", "fallback", "note", "source")


@dataclass(frozen=True)
class KnownLayer:
    """One meaning of one or several layer types.

    Attributes:
        id: its name, as ``reorg.darknet``.
        field: the field of LayerParameter that holds the parameters; None for a layer without any.
        message: the form of each field of the message, as ``uint32``, ``repeated uint32`` or
            ``enum LEARN INFERENCE``, by name; those named with a ``?`` may be missing.
        types: the layer types that have this meaning.
        layers: the rule for reading them, None if they can only be written.
        ops: for each op the alternative, or the list of alternatives, that writes it.
        fallback: likewise, where the base cannot write it.
    """

    id: Scalar
    field: str | None
    message: tuple[tuple[str, str], ...]
    types: tuple[Scalar, ...]
    layers: Node | None
    ops: tuple[tuple[Scalar, Node], ...]
    fallback: tuple[tuple[Scalar, Node], ...]

    def misfit(self, schema: ProtoSchema) -> str:
        """Return why a schema cannot have these layers, empty if it can."""
        if self.field is None:
            return ""
        found = schema.messages["LayerParameter"].field(self.field)
        if found is None:
            return f"LayerParameter has no field {self.field}"
        if found.kind != "message":
            return f"{self.field} is no message"
        due = dict(self.message)
        for field in schema.messages[found.type].fields:
            form = due.pop(field.name, None) or due.pop(f"{field.name}?", None)
            if form is None:
                return f"{found.type} has a field {field.name}, which says something more"
            kind, *words = form.split() if form.startswith("enum ") else (form,)
            values = [value for value, _ in schema.enums[field.type].values] if words else []
            if kind != _form(field) or not set(words) <= set(values):
                return f"{found.type}.{field.name} is {_form(field)}, {form} is expected"
        missing = next((name for name in due if not name.endswith("?")), "")
        return f"{found.type} has no field {missing}" if missing else ""


def read(root: Mapping, diagnostics: Diagnostics) -> list[KnownLayer]:
    """Return what the file says; mistakes of form go to `diagnostics`, those in rules show up where used."""
    reader = _Reader(diagnostics)
    return [reader.entry(key, node) for key, node in root.entries]


class _Reader(YamlReader):
    def entry(self, id: Scalar, node: Node) -> KnownLayer:
        entry = self._mapping(node)
        self._keys(entry, FORM)
        types = entry.get("types")
        self._text(entry.get("note"), "a sentence")
        self._text(entry.get("source"), "a source")
        if types is None:
            self._expected(entry, "types:, the layer types of this meaning,")
        return KnownLayer(
            id,
            self._text(entry.get("field"), "a field of LayerParameter") or None,
            tuple((key.text, self._text(form, "a type")) for key, form in self._entries(entry, "message")),
            self._words(types) if types is not None else (),
            entry.get("layers"),
            self._entries(entry, "ops"),
            self._entries(entry, "fallback"),
        )


def _form(field: ProtoField) -> str:
    """Return a field's form as the file gives it; messages and enums are told by their kind alone."""
    return f"repeated {field.kind}" if field.label == "repeated" else field.kind
