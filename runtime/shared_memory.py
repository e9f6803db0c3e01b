"""Blobs that share memory: a layer that works in place on one of them changes the others too.

Caffe's Reshape, Flatten and Split copy nothing. A graph of values cannot say what a later layer then
reads, so such nets are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from caffeforge.runtime.refusal import Refused


@dataclass
class _Memory:
    """What one or more blobs hold: how often it was written over, and by which layer last."""

    writes: int = 0
    writer: str = ""


@dataclass
class SharedMemory:
    """The memory of each blob of a net, followed layer by layer."""

    _held: dict[str, tuple[_Memory, int]] = field(default_factory=dict)  # with the writes at its last layer

    def allot(self, blob: str) -> None:
        """Give a blob memory of its own."""
        self._held[blob] = (_Memory(), 0)

    def share(self, blob: str, other: str) -> None:
        """Give a blob the memory of another."""
        memory, _ = self._held[other]
        self._held[blob] = (memory, memory.writes)

    def write(self, blob: str, layer: str) -> None:
        """Note that a layer works in place on a blob."""
        memory, _ = self._held[blob]
        memory.writes, memory.writer = memory.writes + 1, layer
        self._held[blob] = (memory, memory.writes)

    def read(self, blob: str) -> None:
        """Check that a blob still holds what its last layer computed.

        Raises:
            Refused: another layer wrote over it, in place on a blob of the same memory.
        """
        memory, writes = self._held[blob]
        if memory.writes != writes:
            raise Refused(
                f"blob {blob} does not hold its own value any more: layer {memory.writer}, "
                f"in place on a blob that shares its memory, wrote over it"
            )
