"""What a file seems to be, for the message that it is not what it should be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from caffeforge.runtime.errors import FileError

_HEAD: Final = 4096  # bytes that are looked at
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_PROTOTXT: Final = re.compile(rb"^\s*(name\s*:|layers?\s*:?\s*\{|input\s*:)", re.MULTILINE)


class Kind(NamedTuple):
    """A kind of file, in words that follow "it seems to be"; `hint` says what to do about it."""

    words: str
    hint: str = ""


BINARY: Final = Kind("a binary file, such as a caffemodel")
PROTOTXT: Final = Kind("a prototxt")
TEXT: Final = Kind("a text file")
EMPTY: Final = Kind("an empty file")
_MARKS: Final = (
    (rb"version https://git-lfs", Kind("a Git LFS pointer", "fetch the file itself with `git lfs pull`")),
    (rb"\s*<(!doctype html|html|head|!--)", Kind("an HTML page", "the download failed: fetch the raw file")),
    (rb"\s*<\?xml", Kind("an XML file")),
    (rb"PK\x03\x04", Kind("a zip archive, as PyTorch writes it")),
    (rb"\x89HDF\r\n", Kind("an HDF5 file", "convert it with Caffe: load the weights and save a .caffemodel")),
    (rb"\x1f\x8b", Kind("a gzip archive", "unpack it first")),
    (rb"\xff\xfe|\xfe\xff", Kind("text in UTF-16", "save it as UTF-8")),
)


def kind_of(path: Path) -> Kind:
    """Return what the first bytes of a file look like.

    Raises:
        FileError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(_HEAD)
    except OSError as error:
        raise FileError(f"cannot read the file: {error.strerror}", where=str(path)) from error
    if not start:
        return EMPTY
    for pattern, kind in _MARKS:
        if re.match(pattern, start, re.IGNORECASE):
            return kind
    if _CONTROL.search(start):
        return BINARY
    return PROTOTXT if _PROTOTXT.search(start) else TEXT


def refuse_other(path: Path, wanted: str, accepted: frozenset[Kind]) -> None:
    """Refuse a file that does not look like one of the accepted kinds.

    Raises:
        FileError: it looks like another kind, or cannot be read.
    """
    kind = kind_of(path)
    if kind not in accepted:
        raise FileError(f"this is no {wanted}: it seems to be {kind.words}", where=str(path), hint=kind.hint)
