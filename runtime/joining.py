"""The text of a net and its caffemodel, joined by the names of the layers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from caffeforge.runtime import caffemodel_reader
from caffeforge.runtime.array import Array, reshape
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.caffemodel_reader import SavedLayer
from caffeforge.runtime.errors import FileError, joined
from caffeforge.runtime.file_kind import BINARY, PROTOTXT, TEXT, refuse_other
from caffeforge.runtime.foreign import Comparison
from caffeforge.runtime.net import Net
from caffeforge.runtime.net_state import State
from caffeforge.runtime.private_pool import PrivatePool
from caffeforge.runtime.prototxt_reader import Prototxt, decode, parse
from caffeforge.runtime.text_kind import explained

_Pairs = Sequence[tuple[int, SavedLayer]]  # index of a layer of the text, and what the caffemodel has for it


def read_text(path: Path, backend: Backend, state: State = State()) -> Prototxt:  # noqa: B008
    """Read a prototxt file: its layers in a state.

    Raises:
        FileError: it cannot be read, or is not a net of the backend's dialect.
    """
    refuse_other(path, "prototxt", frozenset({PROTOTXT, TEXT}))
    text = decode(path.read_bytes())
    try:
        return parse(text, backend, str(path), state=state)
    except FileError as error:
        raise explained(error, text, str(path)) from None


def join(text: Prototxt, path: Path, backend: Backend, *, compare: bool) -> Net:
    """Give the layers of `text` the weights of the caffemodel at `path`.

    Raises:
        FileError: the file is no caffemodel, or not the one of this net in this dialect.
    """
    refuse_other(path, "caffemodel", frozenset({BINARY}))
    pool = PrivatePool(backend)
    saved = caffemodel_reader.read(path, backend, pool).layers
    pairs, notes = _pairs(text, saved, path)
    notes += _compare(text, pairs, Comparison(backend, pool, saved), path, compare)
    blobs: dict[int, tuple[Array, ...]] = {index: layer.blobs for index, layer in pairs}
    _share(text, blobs)
    for index, arrays in blobs.items():
        text.net.layers[index].blobs = arrays
    text.net.notes = [*text.net.notes, *notes]
    return text.net


def unshared(text: Prototxt) -> list[str]:
    """Note the weights that layers share: a net that is read without a caffemodel does not keep that."""
    layers: dict[str, list[str]] = defaultdict(list)
    for layer, shares in zip(text.net.layers, text.sharing, strict=True):
        for name in {share.name: None for share in shares if share.name}:
            layers[name].append(layer.name)
    return [
        f"layers {', '.join(names)} share the weights {name}, which is lost without a caffemodel"
        for name, names in layers.items()
        if len(names) > 1
    ]


def _pairs(text: Prototxt, saved: Sequence[SavedLayer], path: Path) -> tuple[_Pairs, list[str]]:
    """Pair the layers of both files by name, in the order of the caffemodel, and note what is left over."""
    ours: dict[str, list[int]] = defaultdict(list)
    for index, layer in enumerate(text.net.layers):
        ours[layer.name].append(index)
    theirs: dict[str, list[SavedLayer]] = defaultdict(list)
    for other in saved:
        theirs[other.name].append(other)
    pairs: list[tuple[int, SavedLayer]] = []
    notes = []
    for name, layers in theirs.items():
        weights = any(layer.blobs for layer in layers)
        if weights and max(len(layers), len(ours.get(name, ()))) > 1:
            raise FileError(f"several layers are named {name}: weights are joined by name", where=str(path))
        if weights and name not in ours and name not in text.dropped:
            notes.append(f"layer {name} of the caffemodel has weights and is not in the prototxt")
        pairs += zip(ours.get(name, ()), layers, strict=False)
    if notes and not any(layer.blobs for _, layer in pairs):
        raise FileError(
            f"none of the {len(notes)} layers that have weights in the caffemodel is in the prototxt",
            where=str(path),
            hint="the two files belong to different nets",
        )
    return pairs, notes


def _compare(text: Prototxt, pairs: _Pairs, comparison: Comparison, path: Path, refuse: bool) -> list[str]:
    """Refuse the differences of all pairs, or return them as notes."""
    problems = [
        FileError(sentence, where=text.place(index))
        for index, layer in pairs
        for sentence in comparison.differences(text.net.layers[index], layer)
    ]
    if problems and refuse:
        error = joined(problems, str(path))
        name = comparison.backend.name
        error.hint = f"the caffemodel was written in another dialect than {name}, or for another net"
        raise error
    return [problem.what for problem in problems]


def _share(text: Prototxt, blobs: dict[int, tuple[Array, ...]]) -> None:
    """Give blobs of one name (``param { name: }``) the same weights.

    Caffe keeps such blobs in one memory and fills it from one layer of the caffemodel after the other, so
    the last one counts; a layer that is not in the caffemodel uses what the others loaded.
    """
    loaded: dict[str, Array] = {}
    for index, arrays in blobs.items():
        for share, array in zip(text.sharing[index], arrays, strict=False):
            if share.name:
                loaded[share.name] = array
    for index, shares in enumerate(text.sharing):
        if any(share.name in loaded for share in shares):
            blobs[index] = _shared(text, index, blobs.get(index, ()), loaded)


def _shared(
    text: Prototxt, index: int, own: tuple[Array, ...], loaded: Mapping[str, Array]
) -> tuple[Array, ...]:
    """Return the blobs of one layer, of which some have a name in `loaded`."""
    result = list(own)
    layer = text.net.layers[index]
    for position, share in enumerate(text.sharing[index]):
        array = loaded.get(share.name)
        if array is None:
            continue
        if position < len(own):
            wanted = own[position].shape
            if array.shape != wanted and not (share.permissive and array.size == own[position].size):
                what = f"blob {position} of layer {layer.name} has shape {list(wanted)}"
                raise FileError(f"{what}, and {list(array.shape)} as {share.name}", where=text.place(index))
            result[position] = reshape(array, wanted)
        elif position == len(result) and not share.permissive:  # then both have the same shape
            result.append(array)
        else:
            what = f"the caffemodel lacks blob {len(result)} of layer {layer.name}"
            raise FileError(f"{what}, and {share.name} does not tell its shape", where=text.place(index))
    return tuple(result)
