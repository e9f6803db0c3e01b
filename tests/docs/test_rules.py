"""docs/rules.md: every example is generated, does what it says, and the tables are up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from caffeforge.generated import hub
from caffeforge.generator import inheritance, mapping_reader, rule_reader, schema_folder
from caffeforge.generator.diagnostics import GenerationError
from tests import checkout
from tests.docs import reference
from tests.docs.backends import application, build, written
from tests.docs.blocks import Block, blocks
from tests.docs.test_readme import FILE

RULES = checkout.ROOT / "docs" / "rules.md"
BLOCKS = [block for block in blocks(RULES, "yaml") if not FILE.match(block.text)]
BECOMES = re.compile(r"^# (?P<op>(?:[\w, ]+ = )?[\w.]+\(.*\)) becomes (?P<layers>.+)$", re.MULTILINE)
MARK = re.compile(r"# example(?: of error (?P<id>[\w-]+))?\n")
HEAD = "backend: docs\nextends: bvlc\n"

right = [block for block in BLOCKS if block.text.startswith("# example\n")]
wrong = [block for block in BLOCKS if block.text.startswith("# example of error")]


def mapping(block: Block) -> str:
    """Return an example as a whole mapping."""
    return block.text if "\nbackend:" in block.text else HEAD + block.text


def test_every_block_says_whether_it_is_right() -> None:
    assert [block.name for block in BLOCKS if not MARK.match(block.text)] == []
    assert right and wrong


@pytest.mark.parametrize("block", right, ids=lambda block: block.name)
def test_examples_do_what_they_say(block: Block, tmp_path: Path) -> None:
    backend = build(tmp_path, mapping(block))
    ops = {**hub.OPS, **{name: custom.op for name, custom in backend.custom.items()}}
    for index, match in enumerate(BECOMES.finditer(block.text)):
        graph = application(match["op"], ops)
        assert " + ".join(written(backend, graph, tmp_path / str(index))) == match["layers"]


@pytest.mark.parametrize("block", wrong, ids=lambda block: block.name)
def test_wrong_examples_give_their_error(block: Block, tmp_path: Path) -> None:
    mark = MARK.match(block.text)
    assert mark is not None
    with pytest.raises(GenerationError) as caught:
        build(tmp_path, mapping(block))
    assert {diagnostic.id for diagnostic in caught.value.diagnostics} == {mark["id"]}


@pytest.mark.parametrize("table", reference.TABLES, ids=lambda table: table.file)
def test_tables_are_up_to_date(table: reference.Table) -> None:
    assert table.current() == table.text(), "run python -m tests.docs.reference"


def test_the_grammar_has_every_key() -> None:
    """What the readers of mappings know and what the grammar says are the same words."""
    listed = [getattr(module, name) for module in (mapping_reader, rule_reader) for name in vars(module)]
    known = {key for keys in listed if isinstance(keys, tuple) for key in keys if isinstance(key, str)}
    forms = (rule_reader.OP, rule_reader.LAYER)
    known |= {key for form in forms for key in form.rule} | {"expr", "else", "source", *inheritance.SPECIAL}
    known -= {*mapping_reader.REWRITES_KEYS, *schema_folder.RESERVED_BACKENDS}
    (grammar,) = blocks(RULES, "ebnf")
    assert set(re.findall(r'"([a-z_]+)":', grammar.text)) == known


def test_links_lead_somewhere() -> None:
    text = RULES.read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        file, _, anchor = target.partition("#")
        assert not file or (RULES.parent / file).exists(), target
        assert file or anchor in anchors, target
