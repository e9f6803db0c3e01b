"""The files of a Caffe net: prototxt, caffemodel and map, written all or none, and read together.

Reading a caffemodel by the wrong dialect raises no error and gives wrong numbers. So the parameters
come from the text alone; the binary gives names, types and weights, is joined to the text by name, and
is refused where it does not say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from caffeforge.runtime import caffemodel
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import FileError, UsageError
from caffeforge.runtime.net import Net
from caffeforge.runtime.prototxt import print_net
from caffeforge.runtime.staging import disk_errors, folder, move, staging

SUFFIXES: Final = (".prototxt", ".caffemodel", ".map.json")


def write_files(
    net: Net,
    backend: Backend,
    stem: Path,
    map_json: str,
    check: Callable[[Path, Path], None] | None = None,
    text: str | None = None,
) -> list[Path]:
    """Write ``<stem>.prototxt``, ``<stem>.caffemodel`` and ``<stem>.map.json``, all or none.

    The files are written to a hidden folder beside the targets, `check` is called with the prototxt and
    the caffemodel there, and then all are moved to their places. Whatever fails, old files stay as they
    were. A missing folder is made.

    Args:
        net: what to write.
        backend: the dialect of `net`.
        stem: path and name without the suffixes, which are appended even if it holds dots.
        map_json: the text of the map.
        text: the prototxt, where it says more than `net`, as of training; None to print `net`.
        check: may read the files back; what it raises is passed on.

    Raises:
        FileError: the files cannot be written, or the caffemodel would be larger than protobuf reads.
        GraphError: a value has no place in its field.
        UsageError: `stem` names no file.
    """
    if stem.name in ("", ".."):
        raise UsageError(f"{str(stem)!r} names no file", hint="give the path of the model without a suffix")
    targets = [stem.parent / (stem.name + suffix) for suffix in SUFFIXES]
    for target in targets:
        if target.is_dir():
            raise FileError("a folder has the name of the file to be written", where=str(target))
    with folder(stem.parent), staging(stem.parent) as held:
        staged = [held / target.name for target in targets]
        with disk_errors(targets[0]):
            staged[0].write_text(print_net(net) if text is None else text, encoding="utf-8", newline="\n")
        with disk_errors(targets[1]):
            caffemodel.write(net, backend, staged[1])
        with disk_errors(targets[2]):
            staged[2].write_text(map_json, encoding="utf-8", newline="\n")
        if check is not None:
            check(staged[0], staged[1])
        with disk_errors(stem):
            move(staged, targets)
    return targets


def read_files(
    prototxt: Path,
    weights: Path | None,
    backend: Backend,
    *,
    compare: bool = True,
    level: int = 0,
    stages: Sequence[str] = (),
) -> Net:
    """Read a net from its text and, if given, its caffemodel, in the backend's dialect.

    Layers that the caffemodel has no weights for stay without blobs. What was left out stands in the
    net's notes.

    Args:
        prototxt: the text; or a caffemodel alone, whose own parameters are then taken.
        weights: the caffemodel.
        backend: the dialect in which the text is written.
        compare: refuse a caffemodel whose parameters differ from the text; if False, note the differences.
        level: for `min_level` and `max_level` in the layers' rules.
        stages: for `stage` and `not_stage` there, besides those of the text's own `state`.

    Raises:
        FileError: a file cannot be read, is not what it should be, or the two do not belong together.
    """
    from caffeforge.runtime.file_kind import PROTOTXT, TEXT, kind_of
    from caffeforge.runtime.joining import join, read_text, unshared
    from caffeforge.runtime.net_state import State

    binary = kind_of(prototxt) not in (PROTOTXT, TEXT)
    if weights is None and binary and prototxt.suffix != ".prototxt":
        return _alone(prototxt, backend)
    text = read_text(prototxt, backend, State(level, tuple(stages)))
    if weights is not None:
        return join(text, weights, backend, compare=compare)
    text.net.notes = [*text.net.notes, *unshared(text)]
    return text.net


def _alone(path: Path, backend: Backend) -> Net:
    """Read a caffemodel without its text, and note what other dialects would read in the same bytes."""
    from caffeforge.runtime.backends import dialects
    from caffeforge.runtime.identify import read_otherwise
    from caffeforge.runtime.lone_caffemodel import read_alone

    net = read_alone(path, backend)
    found = read_otherwise(path, backend, dialects())
    net.notes = [*net.notes, *(f"the same bytes mean something else elsewhere: {each}" for each in found)]
    return net
