"""A backend's inputs: its schema, its mapping laid over those it extends, and the text of every file."""

from __future__ import annotations

import os
from collections.abc import Mapping as Map
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from caffeforge.generator import fragment, inheritance, known_layers, proto, yaml_source
from caffeforge.generator.compatibility import Dropped, Touched
from caffeforge.generator.descriptor_file import schema_in
from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.known_fit import Fitted, with_defaults
from caffeforge.generator.known_meanings import KnownMeanings
from caffeforge.generator.known_rules import lay_over
from caffeforge.generator.once import once
from caffeforge.generator.proto import ProtoSchema, joined
from caffeforge.generator.python_text import is_name
from caffeforge.generator.yaml_source import Mapping, Node, Scalar

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"
KNOWN_LAYERS = SCHEMAS / "known_layers.yaml"
DEFAULT_BASE = "bvlc"
RESERVED_BACKENDS = ("hub", "onnx")  # packages of caffeforge's own in generated/


@dataclass(frozen=True)
class SchemaFolder:
    """What a backend is generated from.

    Attributes:
        file: the mapping's name in positions; what other files gave is inherited.
        mapping: the mapping, with all that it extends laid under it.
        schema: the dialect's proto, None if it cannot be read.
        written_against: for each mapping file, the schema that its rules were written for.
        texts: the backend's own files by name, for the digest.
        open: parameter fields of which several meanings are known, so that none is taken.
        known_fields: those of known layers' messages.
        base: the schema of the backend that is extended.
        known: the known layers that are in the mapping.
        opened: as `open`: by parameter field, the layer type and the meanings.
    """

    name: str
    file: str
    mapping: Mapping
    schema: ProtoSchema | None
    written_against: Map[str, ProtoSchema]
    texts: Map[str, str]
    open: tuple[Dropped, ...] = ()
    known_fields: frozenset[Touched] = frozenset()
    base: ProtoSchema | None = None
    known: tuple[Fitted, ...] = ()
    opened: Map[str, tuple[str, str]] = field(default_factory=dict)


def load(
    folder: Path, proto_file: Path, diagnostics: Diagnostics, includes: Sequence[Path] = ()
) -> SchemaFolder | None:
    """Read a folder; what is wrong goes to `diagnostics`, and None comes back if there is no mapping.

    A folder without ``mapping.yaml`` extends bvlc and adds nothing; one without a proto has its base's.
    """
    loader = _Loader(diagnostics, {proto_file: includes})
    mapping = loader.mapping(folder, proto_file, ())
    schema = loader.schemas.get(str(folder))
    if mapping is None:
        return None
    texts = {p.name: read_text(p, diagnostics) for p in (proto_file, folder / "mapping.yaml") if p.exists()}
    file = str(folder / "mapping.yaml")
    left_open = tuple(loader.meanings.open)
    own = frozenset(loader.known_fields)
    base, known = loader.last
    return SchemaFolder(
        name_of(folder), file, mapping, schema, loader.written_against, texts, left_open, own, base, known,
        dict(loader.meanings.opened),
    )  # fmt: skip


def name_of(folder: Path) -> str:
    """Return a folder's name, also of ``.``; that of a link is the link's own."""
    return os.path.basename(os.path.abspath(folder))


def read_text(path: Path, diagnostics: Diagnostics) -> str:
    """Return a file's text, with line feeds as line ends; bytes that are no UTF-8 become lone surrogates."""
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        diagnostics.error("no-input", Position(str(path)), f"cannot be read: {error.strerror}")
        return ""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def read_schema(
    file: Path, base: ProtoSchema | None, diagnostics: Diagnostics, includes: Sequence[Path] = ()
) -> ProtoSchema | None:
    """Return the schema of a file in any form; a fragment is laid over `base`, if there is one."""
    if base is not None and file.suffix == ".proto" and file.is_file():
        data = file.read_bytes()
        if fragment.is_fragment(data, base):
            return fragment.read(data, str(file), base, diagnostics)
    return proto.read(file, str(file), diagnostics, includes)


class _Loader:
    def __init__(self, diagnostics: Diagnostics, includes: Map[Path, Sequence[Path]]) -> None:
        self.includes = includes
        self.diagnostics = diagnostics
        self.schemas: dict[str, ProtoSchema] = {}
        self.written_against: dict[str, ProtoSchema] = {}
        self.known_fields: set[Touched] = set()
        self.last: tuple[ProtoSchema | None, tuple[Fitted, ...]] = (None, ())  # of the folder read last
        self.meanings = KnownMeanings(
            _known_layers(read_text(KNOWN_LAYERS, diagnostics), diagnostics), diagnostics
        )

    def mapping(self, folder: Path, proto_file: Path, above: tuple[Path, ...]) -> Mapping | None:
        """Return a folder's mapping over those it extends, and remember its schema."""
        file = folder / "mapping.yaml"
        if not file.exists() and not proto_file.exists():
            sentence = "there is neither a caffe.proto nor a mapping.yaml here"
            self.diagnostics.error("no-input", Position(str(folder)), sentence)
            return None
        root = self._root(file, folder)
        base = root.get("extends") if root is not None else None
        inherited = self._base(base, folder, (*above, folder.resolve())) if base is not None else None
        if (root is not None or proto_file.exists()) and (base is None or inherited is not None):
            schema = self._schema(folder, proto_file, str(inherited[0]) if inherited else "")
            if schema is not None:
                self.schemas[str(folder)] = self.written_against[str(file)] = schema
        if root is None or (base is not None and inherited is None):
            return None
        below = inherited[1] if inherited else Mapping((), root.position)
        below = self._with_known_layers(below, root, folder, inherited[0] if inherited else None)
        return inheritance.extend(below, root, self.diagnostics) if below.entries else root

    def _with_known_layers(self, base: Mapping, root: Mapping, folder: Path, below: Path | None) -> Mapping:
        """Return the mapping that a folder extends, with the known layers that its schema has."""
        schema = self.schemas.get(str(folder))
        if schema is None or "LayerParameter" not in schema.messages:
            return base
        self.meanings.opened.clear()
        self.meanings.open.clear()  # what the base left open says its own coverage
        base_schema = self.schemas.get(str(below))
        known = self.meanings.chosen(root, base, schema, base_schema)
        self.last = (base_schema, tuple(known))
        if known:
            file = str(KNOWN_LAYERS)
            first = self.written_against.get(file)
            meant, fields = with_defaults(schema, known, base_schema)
            self.known_fields |= fields
            self.written_against[file] = joined(first, meant) if first is not None else meant
        return lay_over(base, known)

    def _root(self, file: Path, folder: Path) -> Mapping | None:
        if file.exists():
            before = len(self.diagnostics.found)
            text = read_text(file, self.diagnostics)
            unread = len(self.diagnostics.found) > before
            return None if unread else yaml_source.load(text, str(file), self.diagnostics)
        position = Position(str(file), 1, 1)
        entries = (("backend", name_of(folder)), ("extends", DEFAULT_BASE))
        return Mapping(tuple((Scalar(k, position), Scalar(v, position)) for k, v in entries), position)

    def _base(self, base: Node, folder: Path, above: tuple[Path, ...]) -> tuple[Path, Mapping] | None:
        name = base.text if isinstance(base, Scalar) else ""
        found = _base_folder(name, folder)
        if found is None:
            beside = Path(os.path.normpath(folder / ".."))
            paths = [*SCHEMAS.glob("*/mapping.yaml"), *beside.glob("*/mapping.yaml")]
            known = sorted({path.parent.name for path in paths} - {name_of(folder)})
            self.diagnostics.unknown("unknown-base", base.position, "backend to extend", name, known)
            return None
        if found.resolve() in above:
            self.diagnostics.error("extends-cycle", base.position, f"extends: leads back to {name}")
            return None
        mapping = self.mapping(found, schema_in(found), above)
        return None if mapping is None else (found, mapping)

    def _schema(self, folder: Path, proto_file: Path, base: str) -> ProtoSchema | None:
        if proto_file.exists():
            includes = self.includes.get(proto_file, ())
            return read_schema(proto_file, self.schemas.get(base), self.diagnostics, includes)
        if base in self.schemas:
            return self.schemas[base]
        if not base:
            sentence = "there is no such file, and the mapping extends no backend that has one"
            self.diagnostics.error("no-input", Position(str(proto_file)), sentence)
        return None


@once
def _known_layers(text: str, diagnostics: Diagnostics) -> list[known_layers.KnownLayer]:
    root = yaml_source.load(text, str(KNOWN_LAYERS), diagnostics)
    return known_layers.read(root, diagnostics) if root is not None else []


def _base_folder(name: str, folder: Path) -> Path | None:
    """Return the folder of the backend to extend: one beside the folder goes before one that is shipped."""
    if not is_name(name):
        return None
    beside = Path(os.path.normpath(folder / ".." / name))
    if (beside / "mapping.yaml").exists() and name != name_of(folder):
        return beside
    shipped = SCHEMAS / name
    holds = (shipped / "mapping.yaml").exists() or schema_in(shipped).exists()
    return shipped if holds and name not in RESERVED_BACKENDS else None
