"""What to say of a prototxt that protobuf cannot parse: where it stops, and what people mostly did there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from google.protobuf import text_format

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import FileError
from caffeforge.runtime.private_pool import PrivatePool

if TYPE_CHECKING:
    from caffeforge.runtime.prototxt_reader import Source


def parse_fault(
    error: text_format.ParseError, source: Source, backend: Backend, pool: PrivatePool
) -> FileError:
    """Return protobuf's complaint with its place, and with what may help."""
    if source.layer_word == "layers" and not knows_v1(pool):
        return _legacy(source)
    line, column = error.GetLine(), error.GetColumn()
    if line is None:
        return FileError(str(error), where=source.name)
    lines = source.text.split("\n")
    what = str(error).removeprefix(f"{line}:{column} : ").removeprefix(f"'{lines[line - 1]}': ")
    where = f"{source.name}:{line}:{column}"
    if "surrogates not allowed" in what:
        return FileError("a string is not UTF-8", where=where)
    opened = source.unclosed()
    if what.startswith('Expected "}"') and opened is not None:
        return FileError("this brace is not closed", where=source.at(opened))
    if what.endswith("got }."):
        return FileError("this brace closes nothing", where=where)
    return FileError(what, where=where, hint=_hint(what))


def knows_v1(pool: PrivatePool) -> bool:
    """Tell whether a dialect has the layers of the format before 2015."""
    field = pool.message("NetParameter").DESCRIPTOR.fields_by_name.get("layers")
    kind = field.message_type if field is not None else None
    return kind is not None and "type" in kind.fields_by_name


def _hint(what: str) -> str:
    if re.match(r"Expected string but found: '[A-Z]", what):
        return (
            "in `layer` a type stands in quotes; without them it is of the format before 2015, `layers`, "
            "which Caffe's upgrade_net_proto_text rewrites"
        )
    if "LayerType" in what and "no value named" in what:
        return "in `layers` a type is a word as RELU, without quotes; in `layer` it is a text in quotes"
    if re.match(r"Couldn't parse (integer|float): [A-Za-z_]", what):
        return "if the text is a template, fill in what stands for numbers first"
    return ""


def _legacy(source: Source) -> FileError:
    return FileError(
        "the net is written with `layers`, the format before 2015 (V0 or V1)",
        where=source.place("layers", 0),
        hint="upgrade it with Caffe's upgrade_net_proto_text (and upgrade_net_proto_binary for the weights)",
    )
