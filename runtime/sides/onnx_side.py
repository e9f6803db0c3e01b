"""An ONNX file as onnxruntime runs it, so that it witnesses without a line of ours in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import CaffeforgeError, FileError, UsageError
from caffeforge.runtime.graph import Origin
from caffeforge.runtime.onnx_front.provenance import line_of, module_of
from caffeforge.runtime.providers import check_used, provider_named
from caffeforge.runtime.shapes import condensed
from caffeforge.runtime.sides.net_map import ONNX, naming_of, origin_of, read_map
from caffeforge.runtime.sides.side import Computed, Input

_TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(bool)": "bool",
}


class OnnxSide:
    """A model file.

    Args:
        path: the .onnx file; external data lies beside it.
        shapes: the input shapes in order, for sizes that the file leaves open; None to take the file's.
        providers: onnxruntime's execution providers.
        dequantize: run the float model behind the quantized one of the file.

    Raises:
        FileError: onnxruntime cannot load it.
        UsageError: a size is open and no shapes are given.
    """

    def __init__(
        self,
        path: Path,
        shapes: Sequence[tuple[int, ...]] | None,
        providers: Sequence[str],
        *,
        dequantize: bool = False,
    ) -> None:
        self._path, self._providers = path, [provider_named(name) for name in providers]
        if not path.is_file():
            raise FileError("there is no such file", where=str(path))
        self._rewritten: Any = _float_model(path) if dequantize else None
        self._session = self._open(None)
        self._inner: Any = None
        self.title = f"{'float model behind' if dequantize else 'ONNX model'} {path.name}"
        self.inputs: Mapping[str, Input] = {}
        given = self._session.get_inputs()
        if shapes is not None and len(shapes) != len(given):
            raise UsageError(
                f"{len(shapes)} shapes are given, the model has {len(given)} inputs", where=str(path)
            )
        for index, value in enumerate(given):
            shape = tuple(value.shape) if shapes is None else shapes[index]
            if not all(isinstance(size, int) for size in shape):
                text = "x".join(map(str, shape))
                raise UsageError(f"input {value.name} is {text}", where=str(path), hint="give its --shape")
            if len(shape) != len(value.shape) or any(
                isinstance(due, int) and due != size for due, size in zip(value.shape, shape, strict=True)
            ):
                due, text = ("x".join(map(str, sizes)) for sizes in (value.shape, shape))
                raise UsageError(f"input {value.name} is {due} in the file, not {text}", where=str(path))
            self.inputs = {**self.inputs, value.name: Input(shape, _TYPES.get(value.type, value.type))}
        self.outputs: Sequence[str] = [value.name for value in self._session.get_outputs()]
        mapped = {} if dequantize else read_map(path.with_suffix(".map.json"))
        model = self._rewritten or _model(path)
        types = {node.name: node.op_type for node in model.graph.node}
        mapped = {name: entry for name, entry in mapped.items() if entry.get("type") == types.get(name)}
        by_us = model.producer_name == "caffeforge"  # whose names are those of what was exported
        self.naming = naming_of(mapped) if mapped or by_us else ONNX
        self._tensors, self.computed = _nodes(model.graph, mapped)

    def run(self, inputs: Mapping[str, NDArray], *, inner: bool) -> dict[str, NDArray]:
        names = list(self.outputs)
        session = self._session
        if inner:
            names = list(dict.fromkeys([*self._tensors.values(), *names]))
            session = self._inner = self._inner or self._open(names)
        try:
            found = dict(zip(names, session.run(names, dict(inputs)), strict=True))
        except Exception as error:  # onnxruntime's classes share no base of their own
            raise CaffeforgeError(f"onnxruntime fails: {condensed(error)}", where=str(self._path)) from None
        held = self._tensors if inner else {}
        outputs = {name: found[name] for name in self.outputs}
        # A value may be called as another tensor of the file, which then has a name of its own or none.
        return {**{value: found[tensor] for value, tensor in held.items()}, **outputs}

    def _open(self, names: Sequence[str] | None) -> Any:
        """Return a session; with `names`, one that hands out those values unchanged by optimizations."""
        import onnxruntime

        from caffeforge.runtime.ort_values import EXACT_BLOCKS

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.add_session_config_entry(*EXACT_BLOCKS)
        source: Any = str(self._path)
        if self._rewritten is not None:
            source = self._rewritten.SerializeToString()
        if names is not None:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            source = _with_outputs(self._path, self._rewritten, names)
        try:
            session = onnxruntime.InferenceSession(source, options, providers=self._providers)
        except Exception as error:
            raise FileError(
                f"onnxruntime cannot load it: {condensed(error)}", where=str(self._path)
            ) from None
        check_used(self._providers[0], session.get_providers())
        return session


def _float_model(path: Path) -> Any:
    """Return the float model behind a quantized one, as a ModelProto."""
    from caffeforge.runtime.onnx_front import open_model
    from caffeforge.runtime.onnx_front.dequantized import dequantized

    return dequantized(open_model(path))[0].proto


def _model(path: Path) -> Any:
    """Return the ModelProto of a file, without external data."""
    import onnx

    return onnx.load(path, load_external_data=False)


def _nodes(graph: Any, mapped: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, str], list[Computed]]:
    """Return the tensor that holds each value, and the values in order.

    A node that the map knows gives the value of the model that was exported.
    """
    tensors: dict[str, str] = {}
    computed = []
    for node in graph.node:
        entry = mapped.get(node.name, {})
        first = entry.get("value", "")
        origin = origin_of(entry) if first else Origin(module_of(node), node.op_type, line_of(node))
        for index, name in enumerate(node.output):
            value = first if first and not index else name
            if name:
                tensors[value] = name
                computed.append(Computed(value, node.name or name, node.op_type, origin, node.op_type))
    return tensors, computed


def _with_outputs(path: Path, rewritten: Any, names: Sequence[str]) -> bytes:
    """Return the model with more outputs; onnxruntime infers their types itself."""
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(onnx.load(path) if rewritten is None else rewritten)
    known = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    try:
        return bytes(model.SerializeToString())
    except Exception:  # protobuf's own class for more than 2 GiB differs from release to release
        hint = "compare the outputs alone, without --per-layer"
        raise FileError(
            "the model is too large to observe inner values", where=str(path), hint=hint
        ) from None
