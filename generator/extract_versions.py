"""Writes every version of every ai.onnx operator to ``opset.json``, and what one opset holds to its own.

The first file is what readers and writers of ONNX files are generated from: names of inputs and outputs,
their types, attributes with kinds and defaults, a version a line. The second, with ``--opset``, says which
version of which operator is in force. A released version never changes; only this script and the test that
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
    held = {name: [found[since] for since in _held(sorted(found), first)] for name, found in known.items()}
    sets = sorted({_types(c) for versions in held.values() for s in versions for c in s.type_constraints})
    lines = []
    for name in sorted(held):
        versions = [_version(schema, sets) for schema in held[name]]
        texts = ",\n".join(f"   {json.dumps(version, allow_nan=False)}" for version in versions)
        lines.append(f"  {json.dumps(name)}: [\n{texts}\n  ]")
    types = ",\n".join(f"  {json.dumps(text)}" for text in sets)
    head = f'{{\n "first": {first},\n "last": {last},\n "types": [\n{types}\n ],\n "versions": {{\n'
    return head + ",\n".join(lines) + "\n }\n}\n"


def extract_opset(opset: int) -> str:
    """Return the JSON text of one opset: its operators, each with the opset that brought its version.

    Raises:
        ValueError: the installed ``onnx`` does not know the opset.
    """
    from onnx import defs

    if not FIRST <= opset <= defs.onnx_opset_version():
        raise ValueError(f"the installed onnx knows the opsets 1 to {defs.onnx_opset_version()}, not {opset}")
    newest: dict[str, Schema] = {}
    for schema in defs.get_all_schemas_with_history():
        known = newest.get(schema.name)
        if schema.domain == "" and schema.since_version <= opset:
            newest[schema.name] = schema if known is None else max(known, schema, key=_since)
    ops = {name: _since(newest[name]) for name in sorted(newest) if not newest[name].deprecated}
    return json.dumps({"opset": opset, "ops": ops}, indent=1) + "\n"


def _since(schema: Schema) -> int:
    return int(schema.since_version)


def _held(versions: Sequence[int], first: int) -> list[int]:
    """Return the versions that opsets from `first` on hold: the last before it counts too."""
    older = [version for version in versions if version <= first]
    return older[-1:] + [version for version in versions if version > first]


def _version(schema: Schema, sets: Sequence[str]) -> dict[str, Any]:
    """Describe one version; each of its type variables is one of the `sets`, by position."""
    facts: dict[str, Any] = {
        "since": schema.since_version,
        "inputs": [_formal(formal) for formal in schema.inputs],
        "outputs": [_formal(formal) for formal in schema.outputs],
        "types": {c.type_param_str: sets.index(_types(c)) for c in schema.type_constraints},
    }
    if schema.attributes:
        facts["attributes"] = {n: describe_attribute(a) for n, a in sorted(schema.attributes.items())}
    return facts


def _formal(formal: Schema) -> str:
    """Return a formal's name, mark and type, as ``axes?: int64``.

    Old versions write dots behind the name of a variadic one; one whose values may be of several types has
    another mark.
    """
    option = formal.option.name
    mark = "**" if option == "Variadic" and not formal.is_homogeneous else _MARKS[option]
    return f"{formal.name.rstrip('.')}{mark}: {_type(formal.type_str)}"


def _types(constraint: Schema) -> str:
    return " ".join(sorted(map(_type, constraint.allowed_type_strs)))


def _type(text: str) -> str:
    """Return a type as ``float`` for ``tensor(float)``; sequences and the like stay as they are."""
    inner = text.removeprefix("tensor(").removesuffix(")")
    return inner if text.startswith("tensor(") else text.replace(" ", "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m caffeforge.generator.extract_versions", description=__doc__
    )
    parser.add_argument("--opset", type=int, help="describe this opset instead of all versions")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    options = parser.parse_args(arguments)
    try:
        text = extract() if options.opset is None else extract_opset(options.opset)
    except ValueError as error:
        parser.error(str(error))
    options.out.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
