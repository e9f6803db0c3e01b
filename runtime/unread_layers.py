"""Why a layer has no meaning here: it is for training, loads data, or nobody tells what it computes."""

from __future__ import annotations

from caffeforge.runtime.backend import Backend


def no_rule(kind: str, backend: Backend) -> str:
    """Return the sentence about a layer of a type that has no rule."""
    if kind in backend.net.data:
        return "the net does not tell the shape of what it loads"
    if kind in backend.net.training:
        return "it is for training, and a layer that inference needs reads its result"
    why = backend.net.untold.get(kind)
    what = f"no rule of {backend.name} tells what it computes"
    return f"{what}: {why}" if why else what
