"""``export``: trace, legalize, write, read back, compare; files take their names only if all went well."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.generated.hub.fusions import PATTERNS
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.assemble import assemble
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.batch import fixed_batch
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.caffemodel import casts
from caffeforge.runtime.constraints import refuse_net
from caffeforge.runtime.errors import LegalizeError, VerificationError
from caffeforge.runtime.fold import fold_constants
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.in_place import run_in_place
from caffeforge.runtime.legalize import directly, legalize
from caffeforge.runtime.lowering_notes import lowering_notes
from caffeforge.runtime.net import Net
from caffeforge.runtime.report import ExportResult
from caffeforge.runtime.sharing import share_weights
from caffeforge.runtime.source import source_of

if TYPE_CHECKING:
    from caffeforge.runtime.graph import Graph
    from caffeforge.runtime.source import Source
    from caffeforge.runtime.verify import Verification

MAP_VERSION = 1
NAMED = 5  # values that a note lists
APPROXIMATE = 1e-2  # of scale: what is accepted where the user allowed approximations


def export(
    backend: Backend,
    model: Any,
    example_inputs: Any,
    path: str | Path,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    outputs_at: Sequence[str] | None = None,
    verify: bool = True,
    approximate: bool = False,
    in_place: bool = True,
    dequantize: bool = False,
    fold: bool = False,
) -> ExportResult:
    """Convert a PyTorch or ONNX model to `backend`; see ``export`` of a generated package."""
    source = source_of(
        model,
        example_inputs,
        input_names=input_names,
        output_names=output_names,
        outputs_at=outputs_at,
        custom=backend.custom,
        dequantize=dequantize,
    )
    graph = source.graph
    fold_constants(graph)
    fused = fuse(graph, (*backend.patterns, *PATTERNS), lambda node: directly(node, backend))
    try:
        calls = legalize(graph, backend, approximate=approximate, fold=fold)
        refuse_net(graph, backend)
    except LegalizeError as error:
        raise with_hint(error, dequantize) from None
    net = assemble(graph, calls, backend)
    if in_place:
        outputs = [value.name for value in graph.outputs]
        run_in_place(net, backend.net.in_place, backend.net.views, outputs)
    share_weights(net, backend.net.shared)
    # That takes as long as reading the net, which only a comparison does anyhow.
    fixed = fixed_batch(net, backend, graph.inputs, graph.outputs) if verify else ""
    joined = joined_note(graph, net) if fold else ""
    notes = dict.fromkeys([*source.notes, *fused, *lowering_notes(calls), joined, fixed, *casts(net)])
    found: list[Verification] = []
    accepted = APPROXIMATE if any(call.approximate for call in calls) else None

    def check(prototxt: Path, caffemodel: Path) -> None:
        found.append(_verify(source, net, backend, prototxt, caffemodel, accepted))

    files = write_files(net, backend, Path(path), map_text(net, backend), check if verify else None)
    return ExportResult(
        files=tuple(files),
        verification=found[0] if found else None,
        notes=tuple(note for note in notes if note),
        layers=len(net.layers),
        weights_bytes=sum(4 * blob.size for layer in net.layers if not layer.borrows for blob in layer.blobs),
    )


def joined_note(graph: Graph, net: Net) -> str:
    """Return a sentence on the values of `graph` that have no blob in the net, empty if all have one."""
    tops = {top for layer in net.layers for top in layer.tops}
    gone = [value.name for node in graph.nodes for value in node.outputs if value.name not in tops]
    if not gone:
        return ""
    listed = ", ".join(gone[:NAMED]) + (", ..." if len(gone) > NAMED else "")
    count = f"{len(gone)} values have" if len(gone) > 1 else "1 value has"
    return f"{count} no blob, being joined with what reads them: {listed}"


def with_hint(error: LegalizeError, dequantize: bool) -> LegalizeError:
    """Return the error, with the option that helps where the model is quantized."""
    ops = {refusal["op"] for refusal in error.document["refused"]}
    if dequantize or not ops & {"QuantizeLinear", "DequantizeLinear"}:
        return error
    hint = "give dequantize=True, or --dequantize on the command line, to export the float model behind it"
    return LegalizeError(error.what, where=error.where, hint=hint, document=error.document)


def map_text(net: Net, backend: Backend) -> str:
    """Return the map of a net as JSON: for each layer, where it comes from and by which rule."""
    layers = [
        {
            "layer": layer.name,
            "type": layer.type,
            "tops": list(layer.tops),
            "op": layer.op,
            "rule": layer.rule,
            "module": layer.origin.module,
            "source_op": layer.origin.op,
            "source": layer.origin.source,
            "value": layer.source,
        }
        for layer in net.layers
    ]
    document = {"map": MAP_VERSION, "backend": backend.name, "net": net.name, "layers": layers}
    return json.dumps(document, indent=1) + "\n"


def _verify(
    source: Source,
    net: Net,
    backend: Backend,
    prototxt: Path,
    caffemodel: Path,
    accepted: float | None,
) -> Verification:
    """Compare the written files with the source on the example and on another input.

    Raises:
        VerificationError: a layer or output differs; the text holds the table.
    """
    from caffeforge.runtime.compare import Tolerance
    from caffeforge.runtime.loaded import load
    from caffeforge.runtime.verify import merge, verify

    tolerance = Tolerance(accepted) if accepted is not None else None

    loaded = load(prototxt, caffemodel, backend, exact=True)
    held = {layer.source: layer.tops[0] for layer in net.layers if layer.source}
    held |= {value.name: value.name for value in source.graph.outputs}
    rows = [(layer.source, layer.name, layer.type, layer.origin) for layer in net.layers if layer.source]
    outputs = [value.name for value in source.graph.outputs]
    verifications = []
    for inputs in (source.example, other(source.example)):
        blobs = loaded.run(as_blobs(inputs), list(dict.fromkeys(held.values())))
        result = {value: blobs[blob] for value, blob in held.items()}
        verifications.append(verify(source.reference(inputs), result, rows, outputs, tolerance))
    verification = merge(verifications)
    if not verification.passed:
        text = f"the files do not compute what the model does: {verification.summary()}"
        raise VerificationError(f"{text}\n{verification.table()}", hint="nothing was written")
    return verification


def as_blobs(inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return inputs as Caffe takes them: all float32.

    Raises:
        VerificationError: a whole number has no exact place in a float32.
    """
    import numpy as np

    found = {}
    for name, array in inputs.items():
        found[name] = array.astype(np.float32)
        if array.dtype.kind in "iu" and (found[name].astype(np.float64) != array).any():
            raise VerificationError(f"input {name} holds whole numbers that are not exact in a float32")
    return found


def other(example: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return other inputs in the example's range: its own elements in another order."""
    import numpy as np

    generator = np.random.default_rng(0)
    return {name: generator.permutation(a.reshape(-1)).reshape(a.shape) for name, a in example.items()}
