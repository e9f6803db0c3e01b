"""Runs a hub graph on onnxruntime, with weights where they lie, and hands out any value of it.

The graph is cut into islands: nodes of ONNX's domain become sessions, nodes of other domains run by
their NumPy references in between. Without inner values the session is optimized; with them every node
computes as written, so that each can be compared. Large convolutions take Winograd's form where that is
faster, unless an exact result is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import onnxruntime

from caffeforge.runtime.array import NDArray, dtype_name
from caffeforge.runtime.errors import CaffeforgeError, GraphError, UsageError
from caffeforge.runtime.expand import expand
from caffeforge.runtime.graph import Graph, Symbol, Value
from caffeforge.runtime.islands import Island, islands, needed
from caffeforge.runtime.onnx_model import known_weights, to_model, weights
from caffeforge.runtime.op import full_name
from caffeforge.runtime.ort_values import EXACT_BLOCKS, OrtValue, elements, give_back_memory, ort_value
from caffeforge.runtime.providers import check_used, provider_named
from caffeforge.runtime.quick_form import quick_form
from caffeforge.runtime.reference import find
from caffeforge.runtime.shapes import condensed
from caffeforge.runtime.winograd import winograd
from caffeforge.runtime.winograd_cost import tile

_PLANS: Final = 4  # sets of values whose sessions are kept


class Executor:
    """A graph, ready to run any number of times.

    Args:
        graph: it must pass ``Graph.verify``; it is not copied and must not change afterwards.
        providers: onnxruntime's execution providers in order of preference, as ``CPU`` or ``CUDA``.
        threads: threads within an op; 0 is one a core.
        exact: compute no convolution in Winograd's form, which rounds more: by about 2e-6 of the largest
            result. Comparisons want to know other errors. The form also computes up to 4 x 4 results from
            one sum, so that beside a NaN, an infinite or a huge operand up to three more results along each
            axis are NaN, or lose their digits. Nothing looks for such numbers, which the layers behind would
            spread anyway: ask for an exact result where inputs hold them on purpose.

    Raises:
        GraphError: the graph is broken, or holds an op that neither ONNX nor a reference can run.
        UsageError: a provider does not exist here.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        threads: int = 0,
        exact: bool = False,
    ) -> None:
        names = [provider_named(name) for name in providers]
        if not names:
            raise UsageError("no provider is given", hint="CPU is always there")
        graph.verify()
        graph = expand(graph)
        for node in graph.nodes:
            if node.op.domain:
                find(node)
        self.graph = graph
        self._providers = tuple(names)
        self._threads = threads
        self._exact = exact
        self._values = {value.name: value for value in graph.values()}
        self._bound: dict[Value, OrtValue] = {}
        self._plans: OrderedDict[tuple[str, ...], list[_Step]] = OrderedDict()

    @property
    def results(self) -> tuple[str, ...]:
        """The names of all values that nodes compute, in order: what `run` can hand out."""
        return tuple(value.name for node in self.graph.nodes for value in node.outputs)

    def run(self, inputs: Mapping[str, NDArray], values: Sequence[str] | None = None) -> dict[str, NDArray]:
        """Compute the graph's outputs, or those of its values that are named.

        Args:
            inputs: an array of exactly the declared type for each input; a symbol takes any one size.
            values: names of inputs, constants or results; None for the outputs.

        Returns:
            The arrays by name, in the order asked for.

        Raises:
            CaffeforgeError: an input is missing, unknown or of another type, or onnxruntime fails.
            UsageError: a value does not exist.
        """
        wanted = tuple(values) if values is not None else tuple(value.name for value in self.graph.outputs)
        unknown = [name for name in wanted if name not in self._values]
        if unknown:
            raise UsageError(f"the graph has no value {unknown[0]}", where=self.graph.name)
        sizes = _check_inputs(self.graph, inputs)
        known: dict[str, NDArray] = {value.name: inputs[value.name] for value in self.graph.inputs}
        for step in self._plan(wanted):
            step.run(known)
        found = {name: self._array(name, known) for name in wanted}
        for name, array in found.items():
            _check_result(self._values[name], array, sizes)
        return found

    def _array(self, name: str, known: Mapping[str, NDArray]) -> NDArray:
        data = self._values[name].data
        return known[name] if data is None else data.numpy()

    def _plan(self, wanted: tuple[str, ...]) -> list[_Step]:
        """Return the steps that compute `wanted`, made when they are first asked for."""
        steps = self._plans.get(wanted)
        if steps is None:
            goals = [self._values[name] for name in wanted]
            inner = not set(goals) <= set(self.graph.outputs)
            found = islands(needed(self.graph, goals), goals)
            steps = [step for island in found for step in self._steps(island, inner)]
            self._plans[wanted] = steps
            if len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(wanted)
        return steps

    def _steps(self, island: Island, inner: bool) -> list[_Step]:
        if island.opset is None:
            return [_References(island.graph)]
        if not island.kernels:
            return [_Evaluation(island.graph, island.opset)]
        try:
            return [self._session(island.graph, island.opset, inner)]
        except CaffeforgeError:
            from caffeforge.runtime.evaluator import parts

            cut = parts(island.graph, island.opset)
            if all(kernel for _, kernel in cut):  # so it is no kernel that it lacks
                raise
        return [
            self._session(graph, island.opset, inner) if kernel else _Evaluation(graph, island.opset)
            for graph, kernel in cut
        ]

    def _session(self, graph: Graph, opset: int, inner: bool) -> _Step:
        if not inner:
            graph = quick_form(graph)
            if not self._exact and self._providers[0] == "CPUExecutionProvider":
                winograd(graph, tile)
        bound = {value: self._weight(value) for value in weights(graph)}
        known = {} if inner else {value: bound[value] for value in known_weights(graph)}
        session = _Session(graph, opset, self._providers, self._threads, bound, known, optimize=not inner)
        give_back_memory()
        return session

    def _weight(self, value: Value) -> OrtValue:
        """Return a weight of the graph, bound once for all sessions, or one that is a session's own.

        Winograd's form makes weights of what is behind a convolution too, which another session may be asked
        for: under one name they differ from session to session.
        """
        if self._values.get(value.name) is not value:
            return _bind(value)
        if value not in self._bound:
            self._bound[value] = _bind(value)
        return self._bound[value]


class _Step:
    """Computes one island."""

    def run(self, known: dict[str, NDArray]) -> None:
        """Add the island's outputs to `known`, which holds its inputs."""
        raise NotImplementedError


class _Session(_Step):
    """An island of ONNX nodes as an onnxruntime session."""

    def __init__(
        self,
        graph: Graph,
        opset: int,
        providers: Sequence[str],
        threads: int,
        bound: Mapping[Value, OrtValue],
        known: Mapping[Value, OrtValue],
        *,
        optimize: bool,
    ) -> None:
        self.graph = graph
        self.weights = {value.name: weight for value, weight in bound.items() if value not in known}
        self.known = known  # onnxruntime reads the arrays as long as there is a session, and owns none
        level = onnxruntime.GraphOptimizationLevel
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what matters is raised
        options.graph_optimization_level = level.ORT_ENABLE_ALL if optimize else level.ORT_DISABLE_ALL
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # leave idle cores to others
        options.add_session_config_entry(*EXACT_BLOCKS)
        options.add_external_initializers([value.name for value in known], list(known.values()))
        model = to_model(graph, opset, known).SerializeToString()
        try:
            self.session = onnxruntime.InferenceSession(model, options, providers=_with_options(providers))
        except Exception as error:  # onnxruntime's classes share no base of their own
            raise CaffeforgeError(
                f"onnxruntime refuses the graph: {condensed(error)}", where=graph.name
            ) from None
        check_used(providers[0], self.session.get_providers())

    def run(self, known: dict[str, NDArray]) -> None:
        feed = dict(self.weights)
        for value in self.graph.inputs:
            feed[value.name] = ort_value(known[value.name], value.dtype)
        names = [value.name for value in self.graph.outputs]
        try:
            results = self.session.run_with_ort_values(names, feed)
            found = zip(self.graph.outputs, results, strict=True)
            known.update((value.name, elements(result, value.dtype)) for value, result in found)
        except Exception as error:
            raise CaffeforgeError(f"onnxruntime fails: {condensed(error)}", where=self.graph.name) from None


class _Evaluation(_Step):
    """An island of ONNX nodes that onnxruntime lacks, by onnx's reference evaluator."""

    def __init__(self, graph: Graph, opset: int) -> None:
        from caffeforge.runtime.evaluator import Evaluated

        self.evaluated = Evaluated(graph, opset)

    def run(self, known: dict[str, NDArray]) -> None:
        self.evaluated.run(known)


class _References(_Step):
    """An island of nodes that ONNX lacks, each by its NumPy reference."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.functions = [(node, find(node)) for node in graph.nodes]

    def run(self, known: dict[str, NDArray]) -> None:
        for node, function in self.functions:
            operands = [_operand(value, known) for value in node.inputs]
            try:
                results = function(node.op, operands)
            except CaffeforgeError as error:
                what = f"{error.where}: {error.what}" if error.where else error.what
                raise CaffeforgeError(what, where=f"node {node.name}", hint=error.hint) from None
            except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
                what = f"{full_name(node.op)} cannot be computed from these values: {error}"
                raise CaffeforgeError(what, where=f"node {node.name}") from error
            if len(results) > len(node.outputs) and len(results) == len(node.op.outputs):
                results = results[: len(node.outputs)]  # a net may leave the last ones out
            if len(results) != len(node.outputs):
                raise GraphError(
                    f"the reference of {node.op.domain}.{node.op.op_type} gives {len(results)} results, "
                    f"{len(node.outputs)} is due",
                    where=node.name,
                )
            for value, array in zip(node.outputs, results, strict=True):
                _check_result(value, array, {})
                known[value.name] = array


def _operand(value: Value | None, known: Mapping[str, NDArray]) -> NDArray | None:
    if value is None:
        return None
    return known[value.name] if value.data is None else value.data.numpy()


def _bind(value: Value) -> OrtValue:
    """Return a weight over the array's own memory, which the OrtValue keeps alive."""
    assert value.data is not None  # weights() yields no other
    return ort_value(value.data.numpy(), value.dtype)


def _with_options(providers: Sequence[str]) -> list[str | tuple[str, dict[str, str]]]:
    """Make CUDA compute in float32, not in TF32, whose errors hide those that are looked for."""
    return [(p, {"use_tf32": "0"}) if p == "CUDAExecutionProvider" else p for p in providers]


def _check_inputs(graph: Graph, inputs: Mapping[str, NDArray]) -> dict[Symbol, tuple[int, str]]:
    """Check the arrays against the graph's inputs; return each symbol's size and the input that gave it."""
    declared = {value.name: value for value in graph.inputs}
    for name in inputs:
        if name not in declared:
            raise CaffeforgeError(
                f"there is no input {name}, the graph takes {', '.join(declared) or 'none'}"
            )
    sizes: dict[Symbol, tuple[int, str]] = {}
    for value in graph.inputs:
        if value.name not in inputs:
            raise CaffeforgeError(f"input {value.name} is missing, expected {value.type_text()}")
        _check_input(value, inputs[value.name], sizes)
    return sizes


def _check_input(value: Value, array: NDArray, sizes: dict[Symbol, tuple[int, str]]) -> None:
    if not isinstance(array, np.ndarray):
        raise CaffeforgeError(f"input {value.name} is a {type(array).__name__}, expected a NumPy array")
    if dtype_name(array) != value.dtype:
        raise CaffeforgeError(f"input {value.name} is {dtype_name(array)}, expected {value.type_text()}")
    if len(array.shape) != value.rank or any(
        isinstance(dim, int) and dim != size for dim, size in zip(value.dims, array.shape, strict=True)
    ):
        raise CaffeforgeError(
            f"input {value.name} has shape {list(array.shape)}, expected {value.type_text()}"
        )
    for dim, size in zip(value.dims, array.shape, strict=True):
        if isinstance(dim, Symbol):
            before, source = sizes.setdefault(dim, (size, value.name))
            if before != size:
                raise CaffeforgeError(
                    f"input {value.name} has {dim} = {size}, but input {source} has {dim} = {before}"
                )


def _check_result(value: Value, array: NDArray, sizes: Mapping[Symbol, tuple[int, str]]) -> None:
    """Refuse a result that is not of the declared type: whoever made the graph inferred wrongly."""
    dims = [sizes[d][0] if isinstance(d, Symbol) and d in sizes else d for d in value.dims]
    fits = len(dims) == array.ndim and all(
        isinstance(dim, Symbol) or dim == size for dim, size in zip(dims, array.shape, strict=True)
    )
    if not fits or (value.data is None and dtype_name(array) != value.dtype):
        computed = f"{dtype_name(array)}{list(array.shape)}"
        raise GraphError(f"{value.name} is declared {value.type_text()}, but {computed} was computed")
