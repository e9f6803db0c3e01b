"""``transcode``: read in one dialect, copy what the other reads alike, rewrite the rest, compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.backends import find
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.errors import VerificationError
from caffeforge.runtime.export import map_text
from caffeforge.runtime.joining import join, read_text
from caffeforge.runtime.loaded import LoadedNet, load
from caffeforge.runtime.net import Net
from caffeforge.runtime.net_state import State
from caffeforge.runtime.prototxt_reader import parse
from caffeforge.runtime.transcode.layers import Layers

if TYPE_CHECKING:
    from caffeforge.runtime.verify import Verification


@dataclass(frozen=True)
class TranscodeResult:
    """What a transcoding did.

    Attributes:
        files: prototxt, caffemodel and map.
        copied: names of the layers that stayed as they are.
        rewritten: for each other layer, the types of the layers that stand for it.
        notes: what was left out or changed, one sentence each.
        verification: the comparison of both nets on the same inputs; None if it was not asked for.
    """

    files: tuple[Path, ...]
    copied: tuple[str, ...]
    rewritten: dict[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()
    verification: Verification | None = None

    def report(self) -> str:
        """Return all that is known as text for people."""
        lines = [f"wrote {path}" for path in self.files]
        lines.append(f"{len(self.copied)} layers copied, {len(self.rewritten)} rewritten")
        lines += [f"rewritten: {name}: {', '.join(types)}" for name, types in self.rewritten.items()]
        lines += [f"note: {note}" for note in self.notes]
        if self.verification is None:
            return "\n".join([*lines, "not verified"])
        return "\n".join([*lines, f"verified: {self.verification.summary()}"])


def transcode(
    prototxt: str | Path,
    caffemodel: str | Path | None,
    path: str | Path,
    *,
    source: str | Path | Backend,
    target: str | Path | Backend,
    verify: bool = True,
    level: int = 0,
    stages: Sequence[str] = (),
) -> TranscodeResult:
    """Write a net of the dialect `source` as a net of `target`.

    A layer is copied, training fields included, where the target reads the copy as the same ops. What is
    left goes through the hub. The written files are read back and compared with the source's.

    Args:
        prototxt: the text.
        caffemodel: its weights; None for a net that has none.
        path: where the files go, without suffix.
        source: backend or its name, in which the net is written.
        target: the one in which it shall be written.
        verify: run both nets on the same random inputs.
        level: for ``min_level`` and ``max_level`` in the layers' rules, which stay in the text.
        stages: for ``stage`` and ``not_stage`` there.

    Raises:
        CaffeforgeError: the net cannot be read, the target cannot say it, or the files differ in values.
    """
    origin, goal = find(source), find(target)
    state = State(level, tuple(stages))
    text = read_text(Path(prototxt), origin, state)
    if caffemodel is not None:
        join(text, Path(caffemodel), origin, compare=True)
    layers = Layers(text, origin, goal)
    layers.run()
    written = parse(layers.text(), goal, f"{Path(path).name}.prototxt", state=state)
    for layer, index in zip(written.net.layers, written.indices, strict=True):
        layer.blobs = layers.blobs[index]
    found: list[Verification] = []

    def check(new_text: Path, new_weights: Path) -> None:
        loaded = load(new_text, new_weights, goal, exact=True, level=level, stages=stages)
        found.append(_compare(text.net, origin, loaded))

    files = write_files(
        written.net, goal, Path(path), map_text(written.net, goal), check if verify else None, layers.text()
    )
    return TranscodeResult(
        tuple(files), tuple(layers.copied), layers.rewritten, tuple(layers.notes), found[0] if found else None
    )


def _compare(net: Net, source: Backend, written: LoadedNet) -> Verification:
    """Run both nets on the same two sets of random inputs.

    Raises:
        VerificationError: an output differs.
    """
    from caffeforge.runtime.sides.input_sets import random_sets
    from caffeforge.runtime.sides.side import Input
    from caffeforge.runtime.verify import merge, verify

    reference = LoadedNet(net, source, exact=True)
    inputs = {name: Input(shape) for name, shape in reference.inputs.items()}
    found = []
    for given in random_sets(inputs, 2, 0):
        expected = reference.run(given)
        result = written.run(given)
        new = dict(zip(expected, result.values(), strict=True))
        found.append(verify(expected, new, [], list(expected), None))
    verification = merge(found)
    if not verification.passed:
        text = f"the nets do not compute the same: {verification.summary()}"
        raise VerificationError(f"{text}\n{verification.table()}", hint="nothing was written")
    return verification
