"""Why an alternative does not apply: raised by generated rules, collected by the legalizer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Refused(Exception):
    """A rule's alternative does not hold.

    Attributes:
        sentence: what is not so, in the mapping's words.
        rule: where the condition stands, as ``mapping.yaml:41``; empty if the rule did not say.
    """

    def __init__(self, sentence: str, rule: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.rule = rule


class Refusing:
    """What a constraint is handed: it raises what is refused, or keeps all of it.

    Attributes:
        kept: what was refused; None if it is to be raised.
    """

    kept: list[Refused] | None = None

    def refuse(self, sentence: str, rule: str) -> None:
        """Say that a condition does not hold, in the mapping's words, and where it stands."""
        refused = Refused(sentence, rule)
        if self.kept is None:
            raise refused
        if (sentence, rule) not in [(held.sentence, held.rule) for held in self.kept]:
            self.kept.append(refused)  # a condition of several parts is said once


@contextmanager
def working_out(rule: str) -> Iterator[None]:
    """Turn what a rule's expression cannot compute, such as a division by 0, into a refusal."""
    try:
        yield
    except (ArithmeticError, LookupError, ValueError) as error:
        raise Refused(f"the rule cannot be worked out here: {error}", rule) from error
