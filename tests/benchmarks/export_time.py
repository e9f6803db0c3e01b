"""Seconds for an export without verification, or for ``torch.export`` and a copy of the written weights.

Both begin with a model in memory and PyTorch imported. ``export`` pays for the import of caffeforge too.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

import torch

from tests.benchmarks.networks import files, network
from tests.benchmarks.page_cache import warm


def main() -> None:
    """Print the seconds of ``KIND NETWORK FOLDER``; KIND is ``export`` or ``torch``."""
    kind, name, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    model, example = network(name)
    caffemodel = files(name, folder)[1]
    made = folder / "made"
    warm(caffemodel)
    start, cpu = time.perf_counter(), time.process_time()
    if kind == "export":
        from caffeforge.generated.bvlc import export

        export(model, example, made / name, verify=False)
    else:
        torch.export.export(model, example, strict=False)
        made.mkdir()
        shutil.copyfile(caffemodel, made / caffemodel.name)
    found = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    shutil.rmtree(made)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
