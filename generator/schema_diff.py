"""What an update of a vendor's schema changes for its backend: the schema, and the rules it touches.

The rules are those of the old backend, all taken as inherited: what would be dropped from a backend that
extends it with the new schema is what the update takes away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from caffeforge.generator import backend_package, generate, mapping_reader, schema_folder
from caffeforge.generator.compatibility import Dropped, Inheritance, Touched, Uses
from caffeforge.generator.descriptor_file import schema_in
from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.expression import Printer
from caffeforge.generator.library import functions
from caffeforge.generator.mapping import MappingFile
from caffeforge.generator.names import place
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.python_text import Code
from caffeforge.generator.schema_changes import Change, changes

EVERY_LAYER = ("NetParameter", "LayerParameter", "BlobProto", "BlobShape")


@dataclass(frozen=True)
class Effect:
    """One change with the rules of the old backend that read or write what it concerns.

    Attributes:
        ops: the ops whose rules write it.
        layers: the layer types whose rules read it.
    """

    change: Change
    ops: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """All that an update changes.

    Attributes:
        old, new: the files that were compared.
        effects: the changes of the schema.
        lost: the rules of the old backend that the new schema cannot hold.
        gained: those that the old schema could not hold and the new one can.
    """

    old: str
    new: str
    effects: tuple[Effect, ...]
    lost: tuple[Dropped, ...]
    gained: tuple[Dropped, ...]

    @property
    def breaking(self) -> tuple[Effect, ...]:
        """The changes that break files."""
        return tuple(effect for effect in self.effects if effect.change.breaks)

    @property
    def is_breaking(self) -> bool:
        """Whether files written for the old schema are misread, or rules are lost."""
        return bool(self.breaking or self.lost)


def compare(old: Path, new: Path) -> Difference:
    """Compare two schemas: files or folders in every form that gen-backend takes.

    The mapping beside the old one counts for both; without one it is bvlc's, as for gen-backend.

    Raises:
        GenerationError: with all that is wrong in either.
    """
    diagnostics = Diagnostics()
    inputs = _loaded(old, diagnostics)
    base = (inputs.base or inputs.schema) if inputs is not None else None
    schema = _schema(new, base, diagnostics)
    rules = mapping_reader.read(inputs.mapping, inputs.name, diagnostics) if inputs is not None else None
    diagnostics.raise_if_any()
    assert inputs is not None and inputs.schema is not None and rules is not None and schema is not None
    before = _Recorder("", inputs.schema, inputs.written_against)
    after = _Recorder("", schema, inputs.written_against)
    for recorder in (before, after):
        recorder.run(rules)
    own = _Rules(rules, before)
    effects = tuple(own.effect(change, inputs.schema) for change in changes(inputs.schema, schema))
    lost, gained = _minus(after.dropped, before.dropped), _minus(before.dropped, after.dropped)
    return Difference(inputs.schema.file, schema.file, effects, lost, gained)


def _loaded(source: Path, diagnostics: Diagnostics) -> schema_folder.SchemaFolder | None:
    folder = source if source.is_dir() else source.parent
    file = schema_in(folder) if source.is_dir() or source.name == "mapping.yaml" else source
    problem = generate.problem(source)
    if problem:
        diagnostics.error("no-input", Position(str(source)), problem)
        return None
    return schema_folder.load(folder, file, diagnostics)


def _schema(source: Path, base: ProtoSchema | None, diagnostics: Diagnostics) -> ProtoSchema | None:
    """Return the schema of a file or folder; that of its base if the folder has none.

    A fragment is laid over `base`.
    """
    problem = generate.problem(source)
    if problem:
        diagnostics.error("no-input", Position(str(source)), problem)
        return None
    if source.is_dir() and not schema_in(source).exists():
        inputs = _loaded(source, diagnostics)
        return inputs.schema if inputs is not None else None
    file = schema_in(source) if source.is_dir() else source
    return schema_folder.read_schema(file, base, diagnostics)


def _minus(some: Iterable[Dropped], others: Iterable[Dropped]) -> tuple[Dropped, ...]:
    known = {(dropped.subject, dropped.rule) for dropped in others}
    return tuple(dropped for dropped in some if (dropped.subject, dropped.rule) not in known)


@dataclass
class _Recorder(Inheritance):
    """Takes every rule as inherited, and keeps which fields each has to do with."""

    touched: dict[tuple[str, str], set[Touched]] = field(default_factory=dict)  # by subject and place

    def drops(self, subject: str, position: Position, found: Diagnostics, uses: Uses) -> bool:
        fields = self.touched.setdefault((subject, place(position)), set())
        fields.update(uses.read, uses.present)
        return super().drops(subject, position, found, uses)

    def run(self, rules: MappingFile) -> None:
        """Print the package for its schema, of which only what is dropped and touched matters."""
        diagnostics = Diagnostics()
        hub = generate.hub_ops(diagnostics)
        printer = Printer(functions(), diagnostics)
        backend_package.files(rules, self.schema, hub, printer, self, Code(""))


class _Rules:
    """The rules of a mapping by the fields and layer types that they have to do with."""

    def __init__(self, rules: MappingFile, recorder: _Recorder) -> None:
        self.readers = {place(rule.name.position) for rule in rules.layers}
        self.touched: Mapping[tuple[str, str], set[Touched]] = recorder.touched

    def effect(self, change: Change, schema: ProtoSchema) -> Effect:
        """Return a change with the rules that it concerns; none are named where it is all of them."""
        messages = {message for touched in change.touched for message in self._held(touched, schema)}
        fields = set(change.touched)
        ops: list[str] = []
        layers: list[str] = []
        for (subject, rule), touched in self.touched.items():
            if touched & fields or any(message in messages for message, _ in touched):
                (layers if rule in self.readers else ops).append(subject)
        return Effect(change, _unique(ops), _unique(layers))

    def _held(self, touched: Touched, schema: ProtoSchema) -> list[str]:
        """Return the message that a field of the layer or of its parameters holds."""
        message, name = touched
        held = schema.messages[message].field(name)
        if held is None or held.kind != "message" or held.type in EVERY_LAYER:
            return []
        return [held.type]


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names) - {"net"}))
