"""What an export did: its files, what it changed on the way, and how the result compares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.verify import Verification


@dataclass(frozen=True)
class ExportResult:
    """The outcome of one export.

    Attributes:
        files: what was written, the model's own files first.
        verification: how the written files compare with the source; None if that was not asked for.
        notes: warnings, casts and lowerings, one sentence each.
        layers: how many layers or nodes were written.
        weights_bytes: size of the weights in the files.
    """

    files: tuple[Path, ...]
    verification: Verification | None = None
    notes: tuple[str, ...] = ()
    layers: int = 0
    weights_bytes: int = 0

    @property
    def prototxt(self) -> Path:
        """The written .prototxt; UsageError if the target has none."""
        return self._file(".prototxt")

    @property
    def caffemodel(self) -> Path:
        """The written .caffemodel; UsageError if the target has none."""
        return self._file(".caffemodel")

    @property
    def onnx(self) -> Path:
        """The written .onnx; UsageError if the target has none."""
        return self._file(".onnx")

    @property
    def errors(self) -> dict[str, float]:
        """Of each output the largest error as a part of its scale; empty if nothing was verified."""
        if self.verification is None:
            return {}
        return {row.value: row.relative for row in self.verification.outputs}

    def report(self) -> str:
        """Return all that is known as text for people: files, notes and the table of comparisons."""
        size = f"{self.weights_bytes / 1e6:.1f} MB"
        lines = [*(f"wrote {path}" for path in self.files), f"{self.layers} layers, {size} of weights"]
        lines += [f"note: {note}" for note in self.notes]
        if self.verification is None:
            return "\n".join([*lines, "not verified"])
        return "\n".join([*lines, f"verified: {self.verification.summary()}", "", self.verification.table()])

    def __str__(self) -> str:
        names = ", ".join(path.name for path in self.files)
        state = self.verification.summary() if self.verification else "not verified"
        return f"{names}: {self.layers} layers; {state}"

    def _file(self, suffix: str) -> Path:
        for path in self.files:
            if path.suffix == suffix:
                return path
        raise UsageError(f"this export wrote no {suffix} file, it wrote {', '.join(map(str, self.files))}")
