"""Opening the two sides that a user names; the second one's input shapes do for the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.sides.side import Side

Shapes = Sequence[tuple[int, ...]]

_FORMS = (
    "name a .prototxt (or NET.prototxt,NET.caffemodel), a .caffemodel alone, an .onnx, a .pt2, "
    "or package.module:function"
)
_FILES = (".onnx", ".prototxt", ".caffemodel")


@dataclass(frozen=True)
class Opening:
    """How the sides are opened.

    Attributes:
        source_backend: dialect of the source, if it is a Caffe net.
        target_backend: dialect of the target, if it is one.
        shapes: the input shapes in order; None to take those of the files.
        providers: onnxruntime's execution providers.
        dequantize: the source, an ONNX model, is the float model behind the quantized one of the file.
    """

    source_backend: str | None
    target_backend: str | None
    shapes: Shapes | None
    providers: Sequence[str] = ("CPUExecutionProvider",)
    dequantize: bool = False


def open_pair(source: str, target: str, opening: Opening) -> tuple[Side, Side]:
    """Return both sides; one that needs shapes takes those of the other if none are given.

    Raises:
        CaffeforgeError: a side cannot be opened, or no shape is known.
    """
    if opening.shapes is None and _is_model(target) and not _is_model(source):
        first = _open(source, opening.source_backend, None, opening.providers, opening.dequantize)
        taken = [given.shape for given in first.inputs.values()]
        return first, _open(target, opening.source_backend, taken, opening.providers)
    second = _open(target, opening.target_backend, opening.shapes, opening.providers)
    shapes = opening.shapes
    backend = opening.target_backend if _is_model(source) else opening.source_backend
    if shapes is None and not source.endswith((".onnx", ".pt2")):
        shapes = [given.shape for given in second.inputs.values()]
    return _open(source, backend, shapes, opening.providers, opening.dequantize), second


def _is_model(text: str) -> bool:
    """Tell whether a side is a PyTorch model."""
    suffix = Path(text).suffix
    return suffix in (".pt", ".pth", ".pt2", ".ts") or (
        ":" in text and suffix not in (".onnx", ".prototxt", ".caffemodel")
    )


def _open(
    text: str, backend: str | None, shapes: Shapes | None, providers: Sequence[str], dequantize: bool = False
) -> Side:
    """Return one side; `backend` is a net's dialect, or the one whose own ops a model keeps whole."""
    prototxt, comma, weights = text.partition(",")
    if comma or text.endswith((".prototxt", ".caffemodel")):
        return _caffe(Path(prototxt), Path(weights) if weights else None, backend, providers)
    if text.endswith(".onnx"):
        from caffeforge.runtime.sides.onnx_side import OnnxSide

        return OnnxSide(Path(text), shapes, providers, dequantize=dequantize)
    if not _is_model(text):
        raise UsageError("this names nothing that can be compared", where=text, hint=_FORMS)
    if shapes is None and not text.endswith(".pt2"):
        raise UsageError(
            "the input shapes are not known", where=text, hint="give --shape once for each input"
        )
    from caffeforge.runtime.sides.torch_side import TorchSide

    return TorchSide(text, shapes, {} if backend is None else find(backend).custom)


def _caffe(prototxt: Path, weights: Path | None, backend: str | None, providers: Sequence[str]) -> Side:
    if backend is None:
        hint = "give --backend for TARGET, --source-backend for SOURCE"
        raise UsageError("the net's dialect is not known", where=str(prototxt), hint=hint)
    from caffeforge.runtime.sides.caffe_side import CaffeSide

    beside = prototxt.with_suffix(".caffemodel")
    if beside == prototxt:
        return CaffeSide(prototxt, None, backend, providers)
    return CaffeSide(prototxt, weights or (beside if beside.is_file() else None), backend, providers)
