"""Which dialects explain the files of a net: read in each, compared where several do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.errors import CaffeforgeError, UsageError
from caffeforge.runtime.file_kind import BINARY, kind_of
from caffeforge.runtime.hub_from_net import hub_from_net, unread
from caffeforge.runtime.layer_meanings import Meaning, meanings, means_the_same
from caffeforge.runtime.lone_caffemodel import read_alone
from caffeforge.runtime.message import LayerParam
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.op import python_name


@dataclass(frozen=True)
class Verdict:
    """What one dialect makes of the files.

    Attributes:
        faults: why it cannot have written them, one sentence each.
        gaps: what it reads and has no meaning for; then whether it wrote them stays open.
        net: what it reads, None if it cannot.
        differs_from: for each dialect before it that explains the files as well, what that reads otherwise.
    """

    backend: Backend
    faults: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    net: Net | None = None
    differs_from: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def explains(self) -> bool:
        """Whether everything in the files has a meaning in this dialect."""
        return not self.faults and not self.gaps


def identify(files: Sequence[Path], backends: Sequence[Backend]) -> list[Verdict]:
    """Return a verdict for each dialect, those that explain the files first, then by how little is wrong.

    Args:
        files: a prototxt, a caffemodel, or both.
        backends: the dialects that come into question.

    Raises:
        UsageError: there are other files than these.
    """
    text, weights = _sorted(files)
    found = [_verdict(text, weights, backend) for backend in backends]
    found.sort(key=lambda verdict: (bool(verdict.faults), len(verdict.faults), len(verdict.gaps)))
    explaining = [verdict for verdict in found if verdict.explains]
    known = [meanings(verdict.net, verdict.backend) for verdict in explaining if verdict.net is not None]
    for index, verdict in enumerate(explaining):
        for other, computed in zip(explaining[:index], known, strict=False):
            verdict.differs_from[other.backend.name] = tuple(_differences(other, verdict, computed))
    return found


def read_otherwise(caffemodel: Path, backend: Backend, others: Sequence[Backend]) -> list[str]:
    """Return what other dialects that can have written a caffemodel read in it differently, as sentences.

    They need not know what each layer and field means: that the bytes say it is enough.
    """
    own = _verdict(None, caffemodel, backend)
    if own.net is None or not own.explains:
        return []
    known = meanings(own.net, backend)
    rest = [_verdict(None, caffemodel, other) for other in others if other.name != backend.name]
    return [sentence for other in rest if not other.faults for sentence in _differences(own, other, known)]


def _sorted(files: Sequence[Path]) -> tuple[Path | None, Path | None]:
    binaries = [file for file in files if kind_of(file) is BINARY]
    texts = [file for file in files if file not in binaries]
    if len(binaries) > 1 or len(texts) > 1 or not files:
        raise UsageError(
            "a net is one prototxt, one caffemodel, or one of each", hint="name the files of one"
        )
    return next(iter(texts), None), next(iter(binaries), None)


def _verdict(text: Path | None, weights: Path | None, backend: Backend) -> Verdict:
    try:
        net = read_files(text, weights, backend) if text else read_alone(weights or Path(), backend)
    except CaffeforgeError as error:
        return Verdict(backend, tuple(_sentences(error)))
    gaps = tuple(_gaps(net, backend))
    if not gaps and weights is not None:
        try:
            hub_from_net(net, backend)
        except CaffeforgeError as error:
            gaps = tuple(_sentences(error))
    return Verdict(backend, gaps=gaps, net=net)


def _sentences(error: CaffeforgeError) -> list[str]:
    """Return the faults that an error lists, each with its place."""
    lines = error.what.splitlines()
    if len(lines) == 1:
        return [f"{error.where}: {error.what}" if error.where else error.what]
    return [line.strip() for line in lines[1:]]


def _gaps(net: Net, backend: Backend) -> Iterator[str]:
    """Yield what no rule of the dialect reads: types, and fields that are set."""
    types = dict.fromkeys(layer.type for layer in net.layers if layer.type not in backend.readers)
    if types:
        yield f"no rule tells what {', '.join(types)} computes"
    for layer in net.layers:
        reader = backend.readers.get(layer.type)
        for path in unread(layer.param, reader) if reader is not None else ():
            yield f"layer {layer.name} sets {path}, which no rule reads"


def _differences(one: Verdict, other: Verdict, known: Mapping[str, Meaning]) -> Iterator[str]:
    """Yield what two dialects read differently in the same files; `known` is what the first makes of it.

    That a field is written otherwise, as one number or as a list of one, is no difference.
    """
    assert one.net is not None and other.net is not None
    others = {layer.name: layer for layer in other.net.layers}
    for layer in one.net.layers:
        same = others.get(layer.name)
        if layer.type not in other.backend.readers:
            continue
        if same is None:
            yield f"{one.backend.name} alone reads a layer {layer.name}"
            continue
        ours, theirs = _said(layer, one.backend, same), _said(same, other.backend, layer)
        meaning = known.get(layer.name) if ours != theirs else None
        if ours != theirs and not (meaning and means_the_same(meaning, same, other.backend)):
            mine = ", ".join(f"{k}: {v}" for k, v in ours.items() if theirs.get(k) != v) or "nothing"
            that = ", ".join(f"{k}: {v}" for k, v in theirs.items() if ours.get(k) != v) or "nothing"
            yield f"layer {layer.name}: {one.backend.name} reads {mine}; {other.backend.name} reads {that}"


def _said(layer: Layer, backend: Backend, beside: Layer) -> dict[str, str]:
    """Return the fields of a layer that are set, and the defaults of those read that both dialects have."""
    reader = backend.readers[layer.type]
    said = {known.name: str(v) for known, v in layer.param.present() if known.name not in reader.ignores}
    common = {f.name for f in beside.param.FIELDS}
    for known in layer.param.FIELDS:
        if known.name in reader.reads and known.name in common and known.name not in said:
            said[known.name] = _default(layer.param, known.name)
    return said


def _default(param: LayerParam, name: str) -> str:
    known = next(f for f in param.FIELDS if f.name == name)
    if known.label == "repeated" or known.kind == "message":
        return str(getattr(param, python_name(name)))
    if known.default is None and known.kind == "enum":
        return str(next(iter(known.type)))
    return str(known.default) if known.default is not None else "unset"
