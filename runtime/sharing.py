"""Weights that several layers have in common: written once, by Caffe's ``param { name: }``.

Caffe keeps blobs of one name in one memory. The first of the layers has the weights in the caffemodel;
the others stand in the text alone, and Caffe leaves what a caffemodel does not name as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from caffeforge.runtime.array import Array, Full
from caffeforge.runtime.net import Layer, Net

Key = tuple[object, ...]


def share_weights(net: Net, types: Collection[str]) -> None:
    """Let layers of `types` whose blobs are all the same arrays share them, in `net` itself.

    Only weights that lie in memory or in a file count, not numbers that fill a blob.
    """
    owners: dict[Key, Layer] = {}
    for layer in net.layers:
        if layer.type not in types or not any(map(_is_stored, layer.blobs)):
            continue
        owner = owners.setdefault((layer.type, *map(array_key, layer.blobs)), layer)
        if owner is not layer:
            owner.shared = tuple(f"{owner.name}.{index}" for index in range(len(owner.blobs)))
            layer.shared = owner.shared
            layer.borrows = True


def array_key(array: Array) -> Key:
    """Return what an array is made of: equal keys of living arrays mean the same elements."""
    slots = [name for cls in type(array).__mro__ for name in getattr(cls, "__slots__", ())]
    return (type(array), *(_part(getattr(array, name)) for name in slots))


def _part(value: Any) -> object:
    if isinstance(value, Array):
        return array_key(value)
    if isinstance(value, np.ndarray):
        return (value.__array_interface__["data"], value.shape, value.strides, value.dtype.str)
    if isinstance(value, (tuple, list)):
        return tuple(map(_part, value))
    return value if isinstance(value, (int, float, str)) else id(value)


def _is_stored(array: Array) -> bool:
    sources: Sequence[Array] = getattr(array, "sources", None) or [
        s for s in [getattr(array, "source", None)] if s is not None
    ]
    return any(map(_is_stored, sources)) if sources else not isinstance(array, Full)
