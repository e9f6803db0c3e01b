"""Seconds that ``import caffeforge.generated.bvlc`` takes once NumPy is there, and what it brings along."""

from __future__ import annotations

import json
import sys
import time

HEAVY = ("torch", "onnx", "onnxruntime", "google.protobuf")
"""Modules that a user who only reads layer classes must not wait for."""


def main() -> None:
    """Print the seconds and the heavy modules that were imported."""
    import numpy  # noqa: F401

    start = time.perf_counter()
    import caffeforge.generated.bvlc  # noqa: F401

    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "heavy": [name for name in HEAVY if name in sys.modules]}))


if __name__ == "__main__":
    main()
