"""CPU seconds from a module to the legalized hub, over those of ``torch.export`` alone.

    python -m tests.benchmarks.trace_time [NETWORK ...]

The best of several, by turns, for a machine that does other things too. A network that Caffe cannot express
is legalized as far as that is found out: its line says so.
"""

from __future__ import annotations

import gc
import sys
import time
import warnings
from collections.abc import Callable

import torch

from caffeforge.generated.bvlc import BACKEND
from caffeforge.generated.hub.fusions import PATTERNS
from caffeforge.runtime.errors import LegalizeError
from caffeforge.runtime.fold import fold_constants
from caffeforge.runtime.fuse import fuse
from caffeforge.runtime.legalize import directly, legalize
from caffeforge.runtime.torch_front import trace
from tests.benchmarks.networks import network

LIMITS = {"resnet50": 1.2, "swin_t": 1.4, "efficientnet_b0": 1.4}
_ROUNDS = 4


def legalized(model: torch.nn.Module, example: tuple[torch.Tensor, ...]) -> bool:
    """Trace, fuse and legalize; tell whether the backend expresses the whole model."""
    graph = trace(model, example).graph
    fold_constants(graph)
    fuse(graph, (*BACKEND.patterns, *PATTERNS), lambda node: directly(node, BACKEND))
    try:
        legalize(graph, BACKEND)
    except LegalizeError:
        return False
    return True


def _exported(model: torch.nn.Module, example: tuple[torch.Tensor, ...]) -> None:
    with torch.no_grad():
        torch.export.export(model, example, strict=False)


def _seconds(run: Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], object], name: str) -> float:
    subject = network(name)
    gc.collect()
    start = time.process_time()
    run(*subject)
    return time.process_time() - start


def main() -> None:
    """Print a line for each network; fail if one takes longer than its limit."""
    warnings.simplefilter("ignore")
    slow = False
    for name in sys.argv[1:] or LIMITS:
        whole = legalized(*network(name))  # the first run pays for imports
        export, ours = [], []
        for _ in range(_ROUNDS):
            export.append(_seconds(_exported, name))
            ours.append(_seconds(legalized, name))
        ratio = min(ours) / min(export)
        slow |= ratio > LIMITS.get(name, float("inf"))
        ending = "" if whole else "  refused by bvlc in the end"
        print(f"{name:20} export {min(export):5.2f} s  legalized {min(ours):5.2f} s  {ratio:4.2f}x{ending}")
    sys.exit(slow)


if __name__ == "__main__":
    main()
