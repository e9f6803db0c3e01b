"""docs/rules.md: the first backend is generated, exports a model and reads it back, all as the page says."""

from __future__ import annotations

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.yaml_source import load
from tests.docs.blocks import blocks
from tests.docs.test_readme import Session, session
from tests.docs.test_rules import RULES

__all__ = ["session"]
LANGUAGES = ("sh", "python", "yaml", "proto", "text")


def test_the_first_backend_does_what_the_page_says(session: Session) -> None:
    end = RULES.read_text(encoding="utf-8").split("\n## Names\n")[0].count("\n")
    found = [block for block in blocks(RULES, *LANGUAGES) if block.line < end]
    assert {block.language for block in found} == {*LANGUAGES}
    for block in found:
        session.take(block)
        assert not session.errors, session.errors[0]
    mapping = load((session.folder / "schemas/loom/mapping.yaml").read_text(), "mapping.yaml", Diagnostics())
    assert mapping is not None and mapping.get("extends") is None
