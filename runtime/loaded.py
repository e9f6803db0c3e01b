"""``load``: a net read back from its files, ready to run on onnxruntime."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.backends import find
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Value
from caffeforge.runtime.hub_from_net import HubNet, hub_from_net
from caffeforge.runtime.net import Net


class LoadedNet:
    """A net of one dialect that computes any of its blobs.

    Attributes:
        net: its typed layers.
        inputs: the shape of each input as the net declares it.
        outputs: the blobs that no layer reads, in order.
    """

    def __init__(
        self,
        net: Net,
        backend: Backend,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        seed: int | None = None,
        *,
        exact: bool = False,
    ) -> None:
        self.net = net
        self._exact = exact
        self.backend = backend
        self.providers = tuple(providers)
        self._hub = hub_from_net(net, backend, seed=seed)
        self._executor = Executor(self._hub.graph, providers=self.providers, exact=exact)
        self.inputs = {_plain(v.name): v.shape[:] for v in self._hub.graph.inputs}
        self._shapes = self.inputs
        self.outputs = net.outputs()

    @property
    def hub(self) -> HubNet:
        """The net as a hub graph, for the shapes that it ran with last."""
        return self._hub

    def run(self, inputs: Mapping[str, NDArray], blobs: Sequence[str] | None = None) -> dict[str, NDArray]:
        """Return blobs by name.

        Args:
            inputs: a float32 array for each input; sizes other than the net's are taken as ``reshape`` does.
            blobs: which blobs to return, as they are after the last layer that writes them; a blob that
                later layers overwrite in place is called ``blob@layer`` as it is behind one of them. None
                for the net's outputs.

        Raises:
            UsageError: a name is unknown, or an array does not fit.
            ReadError: the net does not work with these sizes.
        """
        self._check_names(inputs)
        shapes = {name: tuple(array.shape) for name, array in inputs.items()}
        changed = {n: s for n, s in shapes.items() if len(s) == len(self.inputs[n]) and s != self._shapes[n]}
        if changed:
            self._reshape({**self._shapes, **changed})
        wanted = list(self.outputs if blobs is None else blobs)
        held = {name: self._value(name).name for name in wanted}
        fed = {v.name: inputs[_plain(v.name)] for v in self._hub.graph.inputs}
        found = self._executor.run(fed, list(dict.fromkeys(held.values())))
        return {name: found[value] for name, value in held.items()}

    def _value(self, name: str) -> Value:
        """Return what a blob holds in the end, or behind a layer.

        Raises:
            UsageError: there is no such blob.
        """
        if name in self._hub.blobs:
            return self._hub.blobs[name]
        blob, _, layer = name.rpartition("@")
        for given, tops in zip(self.net.layers, self._hub.tops, strict=True):
            if given.name == layer and blob in given.tops:
                return tops[given.tops.index(blob)]
        near = difflib.get_close_matches(name, self._hub.blobs, 3)
        hint = f"did you mean {', '.join(near)}?" if near else f"outputs are {', '.join(self.outputs)}"
        if blob in self._hub.blobs:
            writers = ", ".join(f"{blob}@{each.name}" for each in self.net.layers if blob in each.tops)
            hint = f"of {blob} there are {writers}" if writers else hint
        raise UsageError(f"the net has no blob {name!r}", hint=hint)

    def _check_names(self, inputs: Mapping[str, NDArray]) -> None:
        missing = [name for name in self.inputs if name not in inputs]
        unknown = [name for name in inputs if name not in self.inputs]
        if missing or unknown:
            given = ", ".join(inputs) or "none"
            raise UsageError(f"the net's inputs are {', '.join(self.inputs)}; given are {given}")

    def _reshape(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        hub = hub_from_net(self.net, self.backend, shapes)
        self._executor = Executor(hub.graph, providers=self.providers, exact=self._exact)
        self._hub, self._shapes = hub, dict(shapes)


def _plain(name: str) -> str:
    """Return the blob's name of an input that a layer overwrites in place."""
    return name.removesuffix("@input")


def load(
    prototxt: str | Path,
    caffemodel: str | Path | None = None,
    dialect: str | Path | Backend = "bvlc",
    *,
    providers: Sequence[str] = ("CPUExecutionProvider",),
    weights: Literal["random"] | None = None,
    level: int = 0,
    stages: Sequence[str] = (),
    exact: bool = False,
) -> LoadedNet:
    """Read a net: parameters from the text, weights from the caffemodel.

    Args:
        prototxt: the text.
        caffemodel: the weights; None for a net that has none.
        dialect: name of a backend, folder of a generated one, or a Backend.
        providers: onnxruntime's execution providers, in order of preference.
        weights: "random" gives random numbers, always the same, to layers that have no weights.
        level: for ``min_level`` and ``max_level`` in the layers' rules, as of pycaffe's ``Net``.
        stages: for ``stage`` and ``not_stage`` there, besides those of the text's own ``state``.
        exact: do not round more than a direct sum does, as `Executor` says, nor spread NaN, infinite and
            huge numbers of the inputs further than the layers do.

    Raises:
        CaffeforgeError: a file cannot be read in this dialect, with file, line and column, or holds a layer
            whose meaning is not known.
    """
    backend = find(dialect)
    file = Path(caffemodel) if caffemodel is not None else None
    net = read_files(Path(prototxt), file, backend, level=level, stages=stages)
    return LoadedNet(net, backend, providers, 0 if weights == "random" else None, exact=exact)
