"""What runs the model of a file: onnxruntime, or the hub where it holds ops of domains of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.onnx_front.model_file import ModelFile
from caffeforge.runtime.onnx_front.original import Original

if TYPE_CHECKING:
    from caffeforge.runtime.graph import Graph
    from caffeforge.runtime.op import CustomOp


class ByHub:
    """Runs a graph whose own ops have references: in NumPy, by other ops, or the user's own code."""

    def __init__(self, graph: Graph, values: Sequence[str]) -> None:
        from caffeforge.runtime.executor import Executor

        try:
            self._executor = Executor(graph, exact=True)
        except CaffeforgeError as error:
            raise CaffeforgeError(
                f"the model itself cannot be run, there is nothing to compare with: {error.what}",
                where=error.where,
                hint="export it with verify=False",
            ) from None
        known = set(self._executor.results)
        outputs = [value.name for value in graph.outputs]
        self._names = list(dict.fromkeys([*outputs, *(name for name in values if name in known)]))

    def run(self, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return outputs and inner values by name."""
        return self._executor.run(inputs, self._names)


def runner(file: ModelFile, values: Sequence[str], graph: Graph) -> Original | ByHub:
    """Return what runs a file.

    Args:
        file: the model.
        values: names of inner values to hand out besides the outputs.
        graph: the model as the hub has it, under the file's names.

    Raises:
        CaffeforgeError: nothing runs it.
    """
    functions = {(f.domain, f.name, f.overload) for f in file.proto.functions}
    own = {
        (node.op.domain, node.op.op_type)
        for node in graph.nodes
        if node.op.domain and node.op.custom is not None
    }
    whole = own <= {(domain, name) for domain, name, _ in functions} and all(
        (node.domain, node.op_type, node.overload) in functions
        for node in file.proto.graph.node
        if (node.domain, node.op_type) in own
    )
    return Original(file, values) if whole else ByHub(graph, values)


def running(file: ModelFile, values: Sequence[str], custom: Mapping[str, CustomOp]) -> Original | ByHub:
    """Return what runs a file, whose shapes are those that it declares; see `runner`."""
    from caffeforge.runtime.onnx_front.importer import Importer

    if not any(node.domain for node in file.proto.graph.node):
        return Original(file, values)
    return runner(file, values, Importer(file, custom=custom).run())
