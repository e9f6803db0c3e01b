"""Nested inputs and outputs: dicts, tuples, lists and dataclasses, and the leaves in them.

Leaves come in the order of the containers' own items, as in ``torch.export``. What is no container is a
leaf: a tensor, a number, None, an object.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, leaf): the path joins keys, indices and field names by dots."""
    items = _items(tree)
    if items is None:
        yield path, tree
        return
    for key, item in items:
        yield from leaves(item, f"{path}.{key}" if path else str(key))


def rebuilt(tree: Any, replacements: Iterator[Any]) -> Any:
    """Return `tree` with its leaves replaced, in order, by the next ones of `replacements`."""
    items = _items(tree)
    if items is None:
        return next(replacements)
    new = {key: rebuilt(item, replacements) for key, item in items}
    if isinstance(tree, Mapping):
        return type(tree)(new)  # type: ignore[call-arg]  # as dict and OrderedDict do
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*new.values())
    if isinstance(tree, (tuple, list)):
        return type(tree)(new.values())
    return dataclasses.replace(tree, **new)


def tensors(results: Any) -> list[torch.Tensor]:
    """Return the tensors in what a model returns, in the order of an exported program's outputs."""
    return [leaf for leaf in flattened(results) if isinstance(leaf, torch.Tensor)]


def flattened(results: Any) -> list[Any]:
    """Return the leaves of what a model returns: containers that PyTorch knows, and dataclasses within."""
    found: list[Any] = []
    for leaf in pytree.tree_leaves(results):
        parts = [item for _, item in _items(leaf) or ()]
        found += flattened(parts) if parts else [leaf]
    return found


def holds_unregistered(results: Any) -> bool:
    """Tell whether a container within is one that ``torch.export`` does not know."""
    return any(_items(leaf) is not None for leaf in pytree.tree_leaves(results))


def _items(tree: Any) -> list[tuple[Any, Any]] | None:
    """Return (key, item) of a container, None of anything else."""
    if isinstance(tree, Mapping):
        return list(tree.items())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(zip(tree._fields, tree, strict=True))
    if isinstance(tree, (tuple, list)):
        return list(enumerate(tree))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [(field.name, getattr(tree, field.name)) for field in dataclasses.fields(tree)]
    return None
