"""Seconds and MB of memory that reading an ONNX model takes: ``KIND FORM FOLDER``.

KIND is ``write``, ``import`` (caffeforge's) or ``load`` (onnx's). Memory counts the pages of mapped files
that were touched.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.benchmarks import onnx_model
from tests.benchmarks.peak import Peak, resident


def main() -> None:
    """Write a model, or print what reading it takes; modules are imported before."""
    kind, form, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if kind == "write":
        onnx_model.write(form, folder)
        return
    import onnx

    from caffeforge.runtime.onnx_front import Importer, open_model

    file = onnx_model.path(form, folder)
    with Peak(resident) as peak:
        start = time.perf_counter()
        read = Importer(open_model(file)).run() if kind == "import" else onnx.load(file)
        seconds = time.perf_counter() - start
        del read
    size = sum(path.stat().st_size for path in folder.glob(f"{file.stem}.*"))
    print(json.dumps({"seconds": seconds, "memory": peak.bytes / 1e6, "file": size / 1e6}))


if __name__ == "__main__":
    main()
