"""docs/custom-ops.md: the tutorial adds a vendor's layer, exports with it, reads it back, all as it says."""

from __future__ import annotations

from tests import checkout
from tests.docs.test_readme import Session, run_blocks, session

__all__ = ["session"]


def test_the_tutorial_does_what_it_says(session: Session) -> None:
    found = run_blocks(checkout.ROOT / "docs" / "custom-ops.md")
    assert {block.language for block in found} == {"sh", "python", "yaml", "text"}
    for block in found:
        session.take(block)
        assert not session.errors, session.errors[0]
