"""Which known layers a backend has: those that fit its schema in one way only, and those of its ``use:``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from caffeforge.generator.compatibility import Dropped
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.known_fit import Fitted, fitted, misfit
from caffeforge.generator.known_layers import KnownLayer
from caffeforge.generator.names import place
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.yaml_source import Mapping, Node, Scalar


@dataclass
class KnownMeanings:
    """Chooses among the known layers.

    Attributes:
        open: parameter fields that several meanings fit, so that none was taken.
        opened: by parameter field, the layer type and the meanings.
    """

    layers: list[KnownLayer]
    diagnostics: Diagnostics
    open: list[Dropped] = field(default_factory=list)
    opened: dict[str, tuple[str, str]] = field(default_factory=dict)

    def chosen(
        self, root: Mapping, base: Mapping, schema: ProtoSchema, base_schema: ProtoSchema | None
    ) -> list[Fitted]:
        """Return the known layers of a backend.

        Args:
            root: its own mapping.
            base: the mapping that it extends, empty if there is none.
            schema: its schema.
            base_schema: that of `base`; without one nothing is looked up but what ``use:`` names.
        """
        named = self._named(root, schema)
        if base_schema is None or "LayerParameter" not in base_schema.messages:
            return named
        taken = [*self._added(base, schema, base_schema), *named]
        own = {f.name for f in base_schema.messages["LayerParameter"].fields}
        held = _types(root) | _types(base) | {word.text for known in named for word in known.types}
        claimed = _fields(root) | _fields(base) | {known.field for known in named}
        for param in schema.messages["LayerParameter"].fields:
            if param.name in own or param.name in claimed:
                continue
            fits = [k for k in self.layers if param.name in k.fields and not k.adds]
            fits = [k for k in fits if not misfit(k, schema)]
            fits = [k for k in fits if not held.intersection(word.text for word in k.types)]
            if len(fits) == 1:
                taken.append(fitted(fits[0], schema))
            elif fits:
                self._leave_open(param.name, fits)
        return taken

    def _added(self, base: Mapping, schema: ProtoSchema, base_schema: ProtoSchema) -> list[Fitted]:
        """Return what is known of fields that a vendor added to messages of the base."""
        held = _types(base)
        fits = [k for k in self.layers if k.adds and held.issuperset(word.text for word in k.types)]
        return [fitted(k, schema) for k in fits if not misfit(k, schema) and misfit(k, base_schema)]

    def _named(self, root: Mapping, schema: ProtoSchema) -> list[Fitted]:
        """Return the layers that ``use:`` names; report what is unknown there or does not fit."""
        section = root.get("use")
        if section is None:
            return []
        if not isinstance(section, Mapping):
            sentence = "layer types with the names of their meanings are expected here"
            self.diagnostics.error("yaml-shape", section.position, sentence)
            return []
        named = []
        for key, node in section.entries:
            known = self._meaning(key, node)
            if known is None:
                continue
            own = root.get("types")
            reason = misfit(known, schema)
            if isinstance(own, Mapping) and own.get(key.text) is not None:
                reason = f"types: has an entry for {key.text}"
            elif key.text not in [word.text for word in known.types]:
                reason = f"that is the meaning of {', '.join(word.text for word in known.types)}"
            if reason:
                sentence = f"{key.text} cannot be {known.id.text} here: {reason}"
                self.diagnostics.error("use-fit", node.position, sentence)
            else:
                named.append(fitted(known, schema, key.text))
        return named

    def _meaning(self, key: Scalar, node: Node) -> KnownLayer | None:
        text = node.text if isinstance(node, Scalar) else ""
        found = next((known for known in self.layers if known.id.text == text), None)
        if found is None:
            ids = [k.id.text for k in self.layers if key.text in [word.text for word in k.types]]
            ids = ids or [k.id.text for k in self.layers]
            self.diagnostics.unknown("unknown-meaning", node.position, "meaning of a layer", text, ids)
        return found

    def _leave_open(self, param: str, fits: list[KnownLayer]) -> None:
        kind, ids = fits[0].types[0].text, " or ".join(known.id.text for known in fits)
        reason = f"several meanings fit; say which by use: {{{kind}: {ids}}}"
        self.opened[param] = (kind, ids)
        self.open.append(Dropped(kind, place(fits[0].id.position), reason))


def _types(mapping: Mapping) -> set[str]:
    section = mapping.get("types")
    return set(section.keys()) if isinstance(section, Mapping) else set()


def _fields(mapping: Mapping) -> set[str]:
    """Return the fields of LayerParameter that ``types:`` names."""
    section = mapping.get("types")
    nodes = [node for _, node in section.entries] if isinstance(section, Mapping) else []
    items: Iterable[Node] = [n for node in nodes for n in (getattr(node, "items", None) or (node,))]
    return {item.text for item in items if isinstance(item, Scalar)}
