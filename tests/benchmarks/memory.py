"""MB of memory that an export, or ``torch.export`` alone, takes at most above the model.

Anonymous memory is counted, which no file backs: a mapped file is no memory that a process needs. The
first export of a process loads code, some 20 MB of PyTorch's own; a later one shows what a model takes.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import torch

from tests.benchmarks.networks import network
from tests.benchmarks.peak import Peak, anonymous


def main() -> None:
    """Print the MB of ``KIND NETWORK FOLDER MOMENT``.

    KIND is ``export`` or ``torch``, MOMENT ``first`` or ``later``.
    """
    kind, name, folder, moment = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]
    model, example = network(name)
    run = _export if kind == "export" else _torch_export
    made = folder / "made"
    if moment == "later":
        run(torch.nn.Conv2d(3, 3, 3).eval(), example, made / "small")
    with Peak(anonymous) as peak:
        run(model, example, made / name)
    shutil.rmtree(made, ignore_errors=True)
    weights = sum(tensor.nbytes for tensor in model.state_dict().values())
    print(json.dumps({"memory": peak.bytes / 1e6, "weights": weights / 1e6}))


def _export(model: torch.nn.Module, example: tuple[torch.Tensor, ...], stem: Path) -> None:
    from caffeforge.generated.bvlc import export

    export(model, example, stem, verify=False)


def _torch_export(model: torch.nn.Module, example: tuple[torch.Tensor, ...], stem: Path) -> None:
    torch.export.export(model, example, strict=False)


if __name__ == "__main__":
    main()
