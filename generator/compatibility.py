"""Whether an inherited rule fits another schema: every field it names must mean the same there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from caffeforge.generator.diagnostics import Diagnostics, Position
from caffeforge.generator.names import place
from caffeforge.generator.proto import ProtoSchema

Touched = tuple[str, str]  # (message, field)


@dataclass(frozen=True)
class Dropped:
    """An inherited alternative that the schema cannot hold, and the first reason."""

    subject: str
    rule: str
    reason: str


@dataclass
class Inheritance:
    """Decides over inherited alternatives and lists those that are dropped.

    Attributes:
        file: the backend's own mapping; rules of other files are inherited.
        written_against: for each mapping file, the schema that its rules were written for.
    """

    file: str
    schema: ProtoSchema
    written_against: Mapping[str, ProtoSchema]
    dropped: list[Dropped] = field(default_factory=list)

    def is_inherited(self, position: Position) -> bool:
        """Tell whether a rule stands in another file than the backend's own mapping."""
        return position.file != self.file

    def drops(self, subject: str, position: Position, found: Diagnostics, touched: Iterable[Touched]) -> bool:
        """Tell whether an inherited alternative does not fit the schema; if so, list it.

        Args:
            subject: the op or layer type.
            position: where the alternative stands.
            found: the mistakes that it would be with this schema.
            touched: the fields that it reads or writes.
        """
        reason = found.found[0].sentence if found.found else self._difference(position, touched)
        if reason:
            self.dropped.append(Dropped(subject, place(position), reason))
        return bool(reason)

    def _difference(self, position: Position, touched: Iterable[Touched]) -> str:
        base = self.written_against.get(position.file)
        for message, name in touched if base is not None else ():
            old = base.messages[message].field(name) if base and message in base.messages else None
            new = self.schema.messages[message].field(name) if message in self.schema.messages else None
            if old is None or new is None:
                return f"{message}.{name} does not exist"
            for what in ("kind", "label", "default"):
                is_now, was = getattr(new, what), getattr(old, what)
                if is_now != was:
                    return f"{message}.{name} has {what} {is_now}, {was} is expected"
        return ""
