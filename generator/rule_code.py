"""What emitters and readers have in common: named values, and conditions that refuse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword

from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.mapping import Condition
from caffeforge.generator.names import CONSTANTS, place
from caffeforge.generator.python_text import call, is_name, literal
from caffeforge.generator.source import Source
from caffeforge.generator.types import VALUE, VALUES, optional
from caffeforge.generator.yaml_source import Scalar


@dataclass
class Lets:
    """The named static values of a rule; only those that an alternative uses are printed."""

    definitions: list[tuple[str, str, str, frozenset[str]]]  # name, Python name, code, names it uses
    scope: Scope

    def code(self, used: set[str]) -> list[str]:
        """Return assignments for the names in `used`, and for what those use, which is added to it."""
        for name, _, _, needs in reversed(self.definitions):
            if name in used:
                used.update(needs)
        return [f"{python} = {code}" for name, python, code, _ in self.definitions if name in used]


def lets(entries: Sequence[tuple[Scalar, Source]], scope: Scope, printer: Printer) -> Lets:
    """Return a rule's ``let:`` over `scope`."""
    definitions: list[tuple[str, str, str, frozenset[str]]] = []
    for key, source in entries:
        if not is_name(key.text) or iskeyword(key.text.removesuffix("_")):
            printer.diagnostics.error("let-name", key.position, f"{key.text!r} is not a name")
            continue
        if key.text in CONSTANTS:
            printer.diagnostics.error("let-name", key.position, f"{key.text} stands for a constant")
            continue
        held = scope.names.get(key.text)
        if held is not None and held.type in (VALUE, VALUES, optional(VALUE)):
            sentence = f"{key.text} is a tensor of this rule already"
            printer.diagnostics.error("let-name", key.position, sentence, "give the value another name")
            continue
        own = Scope(scope.names, taken=scope.taken)
        code = printer.print(source, own)
        kind = printer.infer(source, own)
        (python,) = scope.free([key.text])
        definitions.append((key.text, python, code, frozenset(own.used)))
        scope = scope.extended({key.text: Name(python, type=kind)})
    return Lets(definitions, scope)


RAISE, REFUSE = "raise Refused", "r.refuse"  # how a rule refuses, and a constraint, which may go on after it


def refuse_unless(
    source: Source, sentence: str, scope: Scope, printer: Printer, refusal: str = RAISE
) -> list[str]:
    """Return statements that refuse where a part of the condition does not hold.

    The sentence is shown; if it is empty, the part itself is.
    """
    lines = []
    for text, denial in printer.denials(source, scope):
        args = [str(literal(sentence or f"does not hold: {text}")), str(literal(place(source.position)))]
        lines.append(f"if {denial}:")
        lines += [f"    {line}" for line in call(refusal, args, 0, margin=8).split("\n")]
    return lines


@dataclass
class Statements:
    """The statements of a rule in its order; each named value stands before the first that needs it.

    So a condition can see to it that a later value can be worked out.

    Attributes:
        scope: its `used` tells which values are needed.
        defined: the assignments that stand above already.
        refusal: what is called where a condition does not hold.
    """

    named: Lets
    scope: Scope
    printer: Printer
    defined: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    refusal: str = RAISE

    def add(self, lines: Sequence[str]) -> None:
        """Append statements that were printed in this scope."""
        definitions = [line for line in self.named.code(self.scope.used) if line not in self.defined]
        self.defined.update(definitions)
        self.lines += [*definitions, *lines]

    def refuse_unless(self, source: Source, sentence: str = "") -> None:
        """Append the refusal of what does not meet a condition."""
        self.add(refuse_unless(source, sentence, self.scope, self.printer, self.refusal))

    def require(self, conditions: Iterable[Condition]) -> None:
        """Append the refusals of all these conditions."""
        for condition in conditions:
            self.refuse_unless(condition.source, condition.sentence)
