"""A Caffe net as an ONNX file: read in its dialect, then written as any other model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.backends import find
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.hub_from_net import HubNet, hub_from_net
from caffeforge.runtime.net import Net
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.export import export_source
from caffeforge.runtime.report import ExportResult


@dataclass
class NetSource:
    """A net that was read; see ``source.Source``.

    Attributes:
        graph: its inputs and outputs are named as the net's blobs.
        example: normally distributed numbers, by the names of inputs.
    """

    graph: Graph
    example: dict[str, NDArray]
    notes: list[str]
    _net: Net = field(repr=False)
    _dialect: Backend = field(repr=False)
    _executor: Executor | None = field(default=None, repr=False)

    def at_other_sizes(self) -> None:
        """Return None: a net's shapes are those that it declares."""

    def reference(self, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return what the net computes, all values of its graph by name.

        Raises:
            GraphError: an op has no reference.
        """
        if self._executor is None:
            self._executor = Executor(_named(hub_from_net(self._net, self._dialect)))
        return self._executor.run(inputs, self._executor.results)


def export_net(
    prototxt: str | Path,
    caffemodel: str | Path | None,
    path: str | Path,
    *,
    source: str | Path | Backend,
    target: OnnxBackend,
    verify: bool = True,
    level: int = 0,
    stages: Sequence[str] = (),
    **options: Any,
) -> ExportResult:
    """Write a net of the dialect `source` as an ONNX file.

    Args:
        prototxt: the text.
        caffemodel: its weights; None for a net that has none.
        path: where the file goes, without suffix.
        source: backend or its name, in which the net is written.
        target: the opset, or the part of one.
        verify: run both on the same random inputs.
        level: for ``min_level`` and ``max_level`` in the layers' rules.
        stages: for ``stage`` and ``not_stage`` there.
        options: what else ``export`` of an ONNX backend takes: names, metadata, external_data, own_ops.

    Raises:
        CaffeforgeError: the net cannot be read, the target cannot say it, or the two differ in values.
    """
    dialect = find(source)
    weights = Path(caffemodel) if caffemodel is not None else None
    net = read_files(Path(prototxt), weights, dialect, level=level, stages=stages)
    graph = _named(hub_from_net(net, dialect))
    generator = np.random.default_rng(0)
    example: dict[str, NDArray] = {
        value.name: generator.standard_normal(value.shape[:], np.float32) for value in graph.inputs
    }
    read = NetSource(graph, example, list(net.notes), net, dialect)
    return export_source(target, read, path, verify=verify, **options)


def _named(net: HubNet) -> Graph:
    """Return the graph of a net with inputs and outputs named after the blobs that they are."""
    graph = net.graph
    names = {id(value): blob for blob, value in net.blobs.items()}
    taken = {value.name for value in graph.values()}
    for value in graph.outputs:
        blob = names.get(id(value), value.name)
        if blob not in taken:
            value.name = blob
    return graph
