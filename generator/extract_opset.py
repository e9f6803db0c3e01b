"""Writes the facts of an ai.onnx opset, as the installed ``onnx`` knows them, to ``opset.json``.

The file is what the generator reads: it holds signatures, types, attributes and defaults of every
operator at one opset, and no prose. A released opset does not change, so neither does its file; only
this script and the test that repeats the extraction need ``onnx``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Schema = Any  # onnx.defs.OpSchema and its parts: the stubs that onnx ships lack half of what is read here


def extract(version: int) -> str:
    """Return the JSON text of all ai.onnx operators at opset ``version``, sorted by name.

    Deprecated operators are listed and marked. Raises ``ValueError`` for an opset that the
    installed ``onnx`` does not know.
    """
    from onnx import defs

    newest = defs.onnx_opset_version()
    if not 1 <= version <= newest:
        raise ValueError(
            f"the installed onnx knows the opsets 1 to {newest}, not {version}; "
            "choose one of these or install another onnx"
        )
    best: dict[str, Schema] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain != "" or schema.since_version > version:
            continue
        known = best.get(schema.name)
        if known is None or known.since_version < schema.since_version:
            best[schema.name] = schema
    ops = {name: _operator(best[name]) for name in sorted(best)}
    return json.dumps({"opset": version, "ops": ops}, indent=1, allow_nan=False) + "\n"


def _operator(schema: Schema) -> dict[str, Any]:
    """Describe one version of one operator."""
    return {
        "since": schema.since_version,
        "inputs": [_parameter(parameter) for parameter in schema.inputs],
        "outputs": [_parameter(parameter) for parameter in schema.outputs],
        "types": {
            constraint.type_param_str: sorted(constraint.allowed_type_strs)
            for constraint in schema.type_constraints
        },
        "attributes": {name: describe_attribute(a) for name, a in sorted(schema.attributes.items())},
        "deprecated": schema.deprecated,
        "function": schema.has_function or schema.has_context_dependent_function,
    }


def _parameter(parameter: Schema) -> dict[str, Any]:
    """Describe one input or output; of a variadic one also how many and whether of one type."""
    facts: dict[str, Any] = {
        "name": parameter.name,
        "type": parameter.type_str,
        "option": parameter.option.name,
    }
    if facts["option"] == "Variadic":
        facts["min"] = parameter.min_arity
        facts["homogeneous"] = parameter.is_homogeneous
    return facts


def describe_attribute(attribute: Schema) -> dict[str, Any]:
    """Describe one attribute; ``required`` and ``default`` are left out where there is none."""
    from onnx import AttributeProto, helper

    facts: dict[str, Any] = {"type": attribute.type.name}
    if attribute.required:
        facts["required"] = True
    if attribute.default_value.type != AttributeProto.UNDEFINED:
        facts["default"] = _plain(helper.get_attribute_value(attribute.default_value))
    return facts


def _plain(value: object) -> int | float | str | list[Any]:
    """Turn an attribute's value into what JSON can hold."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, float):
        return _shortest(value)
    if isinstance(value, int | str):
        return value
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    raise TypeError(f"a default of type {type(value).__name__} has no JSON form")


def _shortest(value: float) -> float:
    """Return the number with the fewest digits that is ``value`` as float32: 0.01, not 0.00999..."""
    return float(np.format_float_scientific(np.float32(value), unique=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m caffeforge.generator.extract_opset", description=__doc__)
    parser.add_argument("--opset", type=int, required=True, help="version of ai.onnx to describe")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    options = parser.parse_args(arguments)
    try:
        text = extract(options.opset)
    except ValueError as error:
        parser.error(str(error))
    options.out.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
