"""Writes every version of every ai.onnx operator to ``opset.json``.

The file is what readers of ONNX files are generated from: names of inputs and outputs, attributes with
kinds and defaults, a version a line. A released version never changes; only this script and the test that
repeats the extraction need ``onnx``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from caffeforge.generator.extract_opset import describe_attribute

FIRST: Final = 1
LAST: Final = 28

Schema = Any  # onnx.defs.OpSchema: the stubs that onnx ships lack half of what is read here

_MARKS: Final = {"Single": "", "Optional": "?", "Variadic": "*"}


def extract(first: int = FIRST, last: int = LAST) -> str:
    """Return the JSON text: for each operator its versions, oldest first, one a line.

    Raises:
        ValueError: the installed ``onnx`` does not know the opset `last`.
    """
    from onnx import defs

    newest = defs.onnx_opset_version()
    if last > newest:
        raise ValueError(
            f"the installed onnx knows the opsets 1 to {newest}, not {last}; install a newer one"
        )
    known: dict[str, dict[int, Schema]] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= last:
            known.setdefault(schema.name, {})[schema.since_version] = schema
    lines = []
    for name in sorted(known):
        versions = [_version(known[name][since]) for since in _held(sorted(known[name]), first)]
        texts = ",\n".join(f"   {json.dumps(version, allow_nan=False)}" for version in versions)
        lines.append(f"  {json.dumps(name)}: [\n{texts}\n  ]")
    return f'{{\n "first": {first},\n "last": {last},\n "versions": {{\n' + ",\n".join(lines) + "\n }\n}\n"


def _held(versions: Sequence[int], first: int) -> list[int]:
    """Return the versions that opsets from `first` on hold: the last before it counts too."""
    older = [version for version in versions if version <= first]
    return older[-1:] + [version for version in versions if version > first]


def _version(schema: Schema) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "since": schema.since_version,
        "inputs": [_formal(formal) for formal in schema.inputs],
        "outputs": [_formal(formal) for formal in schema.outputs],
    }
    if schema.attributes:
        facts["attributes"] = {n: describe_attribute(a) for n, a in sorted(schema.attributes.items())}
    return facts


def _formal(formal: Schema) -> str:
    """Return a formal's name and mark; old versions write dots behind the name of a variadic one."""
    return str(formal.name.rstrip(".") + _MARKS[formal.option.name])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m caffeforge.generator.extract_versions", description=__doc__
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    options = parser.parse_args(arguments)
    try:
        text = extract()
    except ValueError as error:
        parser.error(str(error))
    options.out.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
