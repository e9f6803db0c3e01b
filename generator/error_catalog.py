"""What each error of gen-backend means, with an example that gives it and the example put right."""

from __future__ import annotations

from caffeforge.generator.catalog import expressions, inputs, rewrites, rules
from caffeforge.generator.catalog.entry import Entry

WIDTH = 100
NEAREST = 3  # ids that are named for one that is unknown
CATALOG: dict[str, Entry] = {
    entry.id: entry for module in (inputs, rules, expressions, rewrites) for entry in module.ENTRIES
}


def explain(id: str) -> str:
    """Return the explanation of one error, as stands in ``error[...]``.

    Raises:
        UsageError: there is no such error.
    """
    from difflib import get_close_matches
    from textwrap import fill

    from caffeforge.runtime.errors import UsageError

    entry = CATALOG.get(id)
    if entry is None:
        words = [known for known in CATALOG if {*known.split("-")} & {*id.lower().split("-")}]
        near = list(dict.fromkeys([*get_close_matches(id, CATALOG, NEAREST), *words]))[:NEAREST]
        known = "it is the word in error[...] of what gen-backend prints, as unknown-field"
        listed = " or ".join([", ".join(near[:-1]), near[-1]] if len(near) > 1 else near)
        hint = f"did you mean {listed}?" if near else known
        raise UsageError(f"gen-backend has no error {id!r}", hint=hint)
    parts = [f"{entry.id}: {entry.title}", fill(entry.explanation, WIDTH)]
    parts += [f"{word} ({entry.file}):\n\n{_indented(text)}" for word, text in _examples(entry)]
    return "\n\n".join(parts)


def _examples(entry: Entry) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("wrong", entry.wrong), ("right", entry.right)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else line for line in text.split("\n"))
