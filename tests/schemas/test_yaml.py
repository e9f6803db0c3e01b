"""The mappings that are shipped are YAML for every parser, not only for the one in C."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from caffeforge.generator.schema_folder import SCHEMAS

FILES = sorted(SCHEMAS.glob("**/*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SCHEMAS)))
def test_python_s_own_parser_reads_it(file: Path) -> None:
    assert yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader) is not None
