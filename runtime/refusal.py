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


@contextmanager
def working_out(rule: str) -> Iterator[None]:
    """Turn what a rule's expression cannot compute, such as a division by 0, into a refusal."""
    try:
        yield
    except (ArithmeticError, LookupError, ValueError) as error:
        raise Refused(f"the rule cannot be worked out here: {error}", rule) from error
