"""What a text seems to be that could not be read as a net: a solver, a template, another tool's file."""

from __future__ import annotations

import re
from typing import Final

from caffeforge.runtime.errors import FileError
from caffeforge.runtime.file_kind import Kind

_LAYERS: Final = re.compile(r"(^|[\s}])layers?\s*:?\s*\{")
_REST: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(?P<comment>#[^\n]*)')
# What stands for something to be filled in: {{ x }}, {% if %}, ${X}, $X, <%= x %>, %(x)s, @X@.
_TEMPLATE: Final = re.compile(r"\{\{|\{%|\$\{?\w|<%|%\(\w+\)[sdfg]|@\w+@")
_SIGNS: Final = (
    (
        r"^\s*(base_lr|lr_policy|max_iter|test_interval|solver_mode|solver_type|snapshot|snapshot_prefix"
        r"|net|train_net|test_net)\s*:",
        Kind("a solver", "give the net that its `net:`, `train_net:` or `test_net:` names"),
    ),
    (r"^\s*item\s*\{", Kind("a label map", "give the net beside it, as deploy.prototxt")),
    (r"^\s*(syntax\s*=\s*[\"']proto|message\s+\w+\s*\{)", Kind("a schema", "`gen-backend` takes it")),
    (
        r"^\s*(from\s+[\w.]+\s+)?import\s+\w|^\s*def\s+\w+\(",
        Kind("a Python program", "run it: it may write the net"),
    ),
    (r"\A\s*7767517\s", Kind("a net of ncnn")),
    (r"\A\s*[\[{]\s*\"", Kind("a JSON file")),
    (r"\A\s*\[(net|network)\]", Kind("a net of darknet", "convert it first, as with darknet2caffe")),
    (r"^\s*(backend|extends)\s*:\s*\w+\s*$", Kind("a mapping of caffeforge", "`gen-backend` takes it")),
    (r"^(<{7}|>{7}|={7})( |$)", Kind("a file with conflicts of a merge", "settle them first")),
    (r"\A\s*(404|Not Found)", Kind("the answer of a server", "the download failed: fetch the raw file")),
)


def explained(error: FileError, text: str, file: str) -> FileError:
    """Return what to say of a text that could not be read: `error`, or what the text seems to be instead."""
    code = _REST.sub(lambda found: "" if found["comment"] else found[0], text)
    merged = re.search(_SIGNS[-2][0], text, re.MULTILINE)
    if not _LAYERS.search(code) or merged:
        for pattern, kind in _SIGNS:
            if re.search(pattern, code, re.MULTILINE):
                return FileError(
                    f"this is no prototxt of a net: it seems to be {kind.words}", where=file, hint=kind.hint
                )
    if _TEMPLATE.search(_REST.sub("", text)):
        error.hint = "the text seems to be a template: fill in what stands for values first"
    return error
