"""What the catalog holds of one error."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One error of gen-backend.

    Attributes:
        title: what it is, in a few words.
        explanation: why it is an error and what to do, in a few sentences.
        wrong: an example that gives it.
        right: the example put right.
        file: what the examples are of: a mapping.yaml or caffe.proto, ops.yaml or opset.json, or ``command``.
        whole: the examples are all of the file, not lines of it.
    """

    id: str
    title: str
    explanation: str
    wrong: str
    right: str
    file: str = "mapping.yaml"
    whole: bool = False
