"""``export`` of an ONNX backend: trace or read, legalize, write, run the written file, compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from caffeforge.generated.hub.fusions import PATTERNS
from caffeforge.runtime.errors import FileError, UsageError, VerificationError
from caffeforge.runtime.export import APPROXIMATE, MAP_VERSION, other
from caffeforge.runtime.fold import fold_constants
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.legalize import legalized, written_directly
from caffeforge.runtime.lowering_notes import lowering_notes
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.target import OnnxTarget, unread
from caffeforge.runtime.report import ExportResult
from caffeforge.runtime.source import source_of
from caffeforge.runtime.staging import disk_errors, folder, move, staging

if TYPE_CHECKING:
    from caffeforge.runtime.graph import Graph
    from caffeforge.runtime.onnx_out.emit import OpCall
    from caffeforge.runtime.onnx_out.from_net import NetSource
    from caffeforge.runtime.onnx_out.model import OnnxModel
    from caffeforge.runtime.op import CustomOp
    from caffeforge.runtime.source import Source
    from caffeforge.runtime.verify import Verification

SUFFIX: Final = ".onnx"


def export(
    backend: OnnxBackend,
    model: Any,
    example_inputs: Any,
    path: str | Path,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    outputs_at: Sequence[str] | None = None,
    dynamic_shapes: Any = None,
    verify: bool = True,
    approximate: bool = False,
    dequantize: bool = False,
    names: str = "path",
    metadata: Mapping[str, str] | None = None,
    external_data: bool | None = None,
    own_ops: str = "auto",
) -> ExportResult:
    """Convert a PyTorch or ONNX model to `backend`; see ``export`` of a generated package."""
    source = source_of(
        model,
        example_inputs,
        input_names=input_names,
        output_names=output_names,
        outputs_at=outputs_at,
        dynamic_shapes=dynamic_shapes,
        custom=backend.custom,
        dequantize=dequantize,
    )
    return export_source(
        backend,
        source,
        path,
        verify=verify,
        approximate=approximate,
        names=names,
        metadata=metadata,
        external_data=external_data,
        own_ops=own_ops,
    )


def export_source(
    backend: OnnxBackend,
    source: Source | NetSource,
    path: str | Path,
    *,
    verify: bool = True,
    approximate: bool = False,
    names: str = "path",
    metadata: Mapping[str, str] | None = None,
    external_data: bool | None = None,
    own_ops: str = "auto",
) -> ExportResult:
    """Write a model that was traced or read; see ``export`` of a generated package."""
    made, calls, fused = convert(source.graph, backend, approximate=approximate, names=names, own_ops=own_ops)
    made.metadata |= {str(key): str(value) for key, value in (metadata or {}).items()}
    functions = made.functions.notes if made.functions is not None else ()
    notes = dict.fromkeys([*source.notes, *fused, *lowering_notes(calls), *functions])
    accepted = APPROXIMATE if any(call.approximate for call in calls) else None
    found: list[Verification] = []

    def check(file: Path) -> None:
        found.append(_verify(source, made, file, accepted, backend.custom))

    files = write_files(made, backend, Path(path), external_data, check if verify else None)
    return ExportResult(
        files=tuple(files),
        verification=found[0] if found else None,
        notes=tuple(notes),
        layers=len(made.calls),
        weights_bytes=sum(array.size * _item_size(array.dtype) for array in made.weights.values()),
    )


def convert(
    graph: Graph,
    backend: OnnxBackend,
    *,
    approximate: bool = False,
    names: str = "path",
    own_ops: str = "auto",
) -> tuple[OnnxModel, list[OpCall], list[str]]:
    """Return a graph as a model of the backend's opset, its ops, and notes of what was fused or is left.

    Raises:
        LegalizeError: the backend cannot express a node.
        UsageError: `names` is no style of names, or `own_ops` no choice.
    """
    from caffeforge.runtime.onnx_out.model import assemble
    from caffeforge.runtime.onnx_out.own_ops import check_choice, has_functions, left_over

    check_choice(own_ops)
    fold_constants(graph)
    target = OnnxTarget(backend, unread(graph), own_ops)
    fused = fuse(graph, (*backend.patterns, *PATTERNS), lambda node: written_directly(node, target))
    calls = legalized(graph, target, approximate=approximate)
    made = assemble(graph, calls, backend.opset, names)
    if has_functions(backend, own_ops) and any(call.domain for call in calls):
        from caffeforge.runtime.onnx_out.local_functions import LocalFunctions

        made.functions = LocalFunctions(backend)
        made.functions.add(calls)
    if own_ops == "auto":
        fused = [*fused, *left_over(calls, backend)]
    return made, calls, fused


def write_files(
    model: OnnxModel, backend: OnnxBackend, stem: Path, external: bool | None, check: Any = None
) -> list[Path]:
    """Write ``<stem>.onnx``, weights beside it if they are external, and ``<stem>.map.json``, all or none.

    Raises:
        FileError: a file cannot be written.
        GraphError: the model does not pass ONNX's checker.
        UsageError: `stem` names no file.
    """
    from caffeforge.runtime.onnx_out.checks import check_model
    from caffeforge.runtime.onnx_out.writer import write

    if stem.name in ("", ".."):
        raise UsageError(f"{str(stem)!r} names no file", hint="give the path of the model without a suffix")
    name = stem.name.removesuffix(SUFFIX)
    targets = [stem.parent / f"{name}{SUFFIX}", stem.parent / f"{name}.map.json"]
    for target in targets:
        if target.is_dir():
            raise FileError("a folder has the name of the file to be written", where=str(target))
    proto = model.proto()
    check_model(proto, model.weights)
    with folder(stem.parent), staging(stem.parent) as held:
        staged = [held / target.name for target in targets]
        with disk_errors(targets[0]):
            beside = write(proto, model.weights, staged[0], external)
        with disk_errors(targets[1]):
            staged[1].write_text(map_text(model, backend), encoding="utf-8", newline="\n")
        if check is not None:
            check(staged[0])
        if beside is not None:
            staged.append(beside)
            targets.append(stem.parent / beside.name)
        with disk_errors(stem):
            move(staged, targets)
    return targets


def map_text(model: OnnxModel, backend: OnnxBackend) -> str:
    """Return the map of a model as JSON: for each node, where it comes from and by which rule."""
    layers = [
        {
            "layer": model.names.of_node(call),
            "type": call.kind,
            "tops": [model.names[value] for value in call.results if value is not None],
            "op": (call.root or call.node).op.op_type,
            "rule": call.rule,
            "module": call.node.origin.module,
            "source_op": call.node.origin.op,
            "source": call.node.origin.source,
            "value": call.main.name if call.main is not None else "",
        }
        for call in model.calls
    ]
    document = {"map": MAP_VERSION, "backend": backend.name, "net": model.name, "layers": layers}
    return json.dumps(document, indent=1) + "\n"


def _verify(
    source: Source | NetSource,
    model: OnnxModel,
    file: Path,
    accepted: float | None,
    custom: Mapping[str, CustomOp],
) -> Verification:
    """Compare the written file with the source on the example, on another input, and at other sizes.

    Raises:
        VerificationError: a node or output differs; the text holds the table.
    """
    from caffeforge.runtime.compare import Tolerance
    from caffeforge.runtime.onnx_front import open_model
    from caffeforge.runtime.onnx_front.running import running
    from caffeforge.runtime.verify import merge, verify

    known = {value.name for node in source.graph.nodes for value in node.outputs}
    written = [(call.main, call) for call in model.calls if call.main is not None and call.main.name in known]
    rows = [(value.name, model.names.of_node(call), call.kind, call.node.origin) for value, call in written]
    outputs = [value.name for value in source.graph.outputs]
    held = {value.name: model.names[value] for value, _ in written}
    held |= {name: model.names[value] for name, value in zip(outputs, model.outputs, strict=True)}
    runner = running(open_model(file), list(held.values()), custom)
    fed = {value.name: model.names[value] for value in model.inputs}
    tolerance = Tolerance(accepted) if accepted is not None else None
    verifications = []
    larger = source.at_other_sizes()
    for inputs in (source.example, other(source.example), *([] if larger is None else [larger])):
        found = runner.run({fed[name]: array for name, array in inputs.items()})
        result = {value: found[name] for value, name in held.items() if name in found}
        verifications.append(verify(source.reference(inputs), result, rows, outputs, tolerance))
    verification = merge(verifications)
    if not verification.passed:
        text = f"the file does not compute what the model does: {verification.summary()}"
        raise VerificationError(f"{text}\n{verification.table()}", hint="nothing was written")
    return verification


def _item_size(dtype: str) -> int:
    from caffeforge.runtime.onnx_node import numpy_dtype

    return numpy_dtype(dtype).itemsize
