"""An ONNX model as its file holds it: small parts parsed, tensors left where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto

from caffeforge.generated.onnx import FIRST, LAST
from caffeforge.runtime.errors import FileError
from caffeforge.runtime.file_kind import BINARY, kind_of
from caffeforge.runtime.onnx_front.stripped import stripped
from caffeforge.runtime.wire import Bytes, Malformed

_HINT = "give a model that an ONNX exporter wrote, with its external data beside it"


@dataclass(frozen=True)
class ModelFile:
    """A model, and where the bytes of its tensors lie.

    Attributes:
        proto: the model; tensors that were cut out refer to ``data``.
        data: the bytes of the file; None for a model that was given as an object.
        path: the file; None for a model that was given as an object.
    """

    proto: ModelProto
    data: Bytes | None
    path: Path | None

    @property
    def folder(self) -> Path:
        """Where the model's external data lies."""
        return self.path.parent if self.path is not None else Path()

    @property
    def name(self) -> str:
        """What errors call the model."""
        return str(self.path) if self.path is not None else self.proto.graph.name or "the model"


def is_onnx(model: object) -> bool:
    """Tell whether `model` is a ModelProto, or a path that ends in ``.onnx``."""
    return isinstance(model, ModelProto) or (isinstance(model, (str, Path)) and Path(model).suffix == ".onnx")


def open_model(model: str | Path | ModelProto) -> ModelFile:
    """Open a file, or take a model as it is.

    Raises:
        FileError: the file cannot be read, or holds no ONNX model.
    """
    if isinstance(model, ModelProto):
        return _checked(ModelFile(model, None, None))
    path = Path(model)
    kind = kind_of(path)
    if kind is not BINARY:
        raise FileError(
            f"this is no ONNX model: it seems to be {kind.words}", where=str(path), hint=kind.hint or _HINT
        )
    with open(path, "rb") as file:
        data = mmap(file.fileno(), 0, access=ACCESS_READ)
    try:
        proto = ModelProto.FromString(stripped(data))
    except (Malformed, DecodeError) as error:
        raise FileError(
            f"this is no ONNX model, or only a part of one: {error}", where=str(path), hint=_HINT
        ) from None
    return _checked(ModelFile(proto, data, path))


def _checked(file: ModelFile) -> ModelFile:
    """Refuse what parses by chance: a model has a graph and says which opsets it is written in."""
    if not file.proto.HasField("graph") or not (file.proto.graph.node or file.proto.graph.output):
        raise FileError("this is no ONNX model: it holds no graph", where=file.name, hint=_HINT)
    if not file.proto.opset_import and file.proto.ir_version >= 3:
        raise FileError("the model does not say which opsets it is written in", where=file.name)
    if not file.proto.graph.output:
        raise FileError("the model has no outputs", where=file.name)
    newest = opsets(file.proto).get("", FIRST)
    if not FIRST <= newest <= LAST:
        known = f"opsets {FIRST} to {LAST} are known"
        raise FileError(f"the model is written in opset {newest} of ONNX; {known}", where=file.name)
    if file.proto.ir_version > onnx.IR_VERSION:
        raise FileError(
            f"the model is of IR version {file.proto.ir_version}; up to {onnx.IR_VERSION} are known",
            where=file.name,
            hint="install a later onnx",
        )
    return file


def opsets(model: Any) -> dict[str, int]:
    """Return the opsets that a model or function imports, by domain; ONNX's own is ``""``."""
    found = {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in model.opset_import}
    return found or {"": 1}


def whole(file: ModelFile) -> ModelProto:
    """Return the model with its tensors, as others read it."""
    if file.path is None or file.data is None:
        return file.proto
    return onnx.load(str(file.path))
