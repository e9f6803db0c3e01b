"""Traces whole networks, executes their hub graphs, and prints a table; not run by pytest.

    python -m tests.torch_front.networks [GROUP | NAME ...] [--start NAME] [--limit N]

Groups: torchvision, quantizable, detectors, timm, transformers, ultralytics.

Every row gives the number of hub nodes, the largest difference to PyTorch's outputs over the outputs' scale,
and the times of the export and of what comes after it. Weights are random: nothing is downloaded.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.torch_front import nest, trace
from caffeforge.runtime.torch_front.cut import outputs_at
from caffeforge.runtime.torch_front.example import Example
from tests.torch_front import zoo
from tests.torch_front.zoo import Maker, Subject

_EQUAL = 1e-4  # of the outputs' scale
_LARGE_VIDEO = ("mvit", "s3d", "swin3d")
_LARGE = re.compile(
    r"base|large|huge|giant|gigantic|enormous|so\d+m|[1-9]b_|_[lx]+\b|_(384|448|512)|_\d{3}m|\d{3}d|[1-9]00"
)
_SIZES = {"inception_v3": 299, "vit_h_14": 224}


def shaken(model: torch.nn.Module) -> torch.nn.Module:
    """Give batch norms statistics, and weights that begin as nothing a size, that let every layer show."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.abs().max() < 1e-3:  # heads and layer scales
                parameter.normal_(0, 0.1, generator=generator)
    for module in model.modules():
        statistics: dict[str, torch.Tensor] = dict(module.named_buffers(recurse=False))
        if "running_mean" in statistics:
            statistics["running_mean"].uniform_(-0.1, 0.1, generator=generator)
            statistics["running_var"].uniform_(0.5, 1.5, generator=generator)
    return model.eval()


def torchvision_networks() -> dict[str, Maker]:
    """Return makers of all classification, segmentation and video networks of torchvision."""
    import torchvision

    kinds = [torchvision.models, torchvision.models.segmentation, torchvision.models.video]
    found: dict[str, Maker] = {}
    for kind in kinds:
        for name in torchvision.models.list_models(module=kind):
            size = _SIZES.get(name, 224)
            if kind is torchvision.models.video:
                size = 224 if name.startswith(_LARGE_VIDEO) else 112
            frames = (16,) if kind is torchvision.models.video else ()
            found[name] = _torchvision_maker(name, (1, 3, *frames, size, size))
    return found


def timm_networks() -> dict[str, Maker]:
    """Return makers of up to three networks of each of timm's families, small ones where there are any."""
    import timm

    found = {}
    for module in timm.list_modules():
        names = timm.list_models(module=module)
        names = [name for name in names if not _LARGE.search(name)] or names[:1]
        for name in dict.fromkeys(names[len(names) * part // 3] for part in range(3) if names):
            found[name] = _timm_maker(name)
    return found


_GROUPS = {
    "torchvision": torchvision_networks,
    "quantizable": zoo.quantizable_networks,
    "detectors": zoo.detector_networks,
    "timm": timm_networks,
    "transformers": zoo.transformers_networks,
    "ultralytics": zoo.ultralytics_networks,
}


def _torchvision_maker(name: str, shape: tuple[int, ...]) -> Maker:
    def make() -> Subject:
        import torchvision

        options: dict[str, Any] = {"weights": None}
        if name in ("googlenet", "inception_v3"):
            options["init_weights"] = False
        if name in torchvision.models.list_models(module=torchvision.models.segmentation):
            options["weights_backbone"] = None
        return Subject(torchvision.models.get_model(name, **options), torch.randn(shape))

    return make


def _timm_maker(name: str) -> Maker:
    def make() -> Subject:
        import timm

        model: Any = timm.create_model(name)
        return Subject(model, torch.randn(1, *model.default_cfg["input_size"]))

    return make


@contextlib.contextmanager
def _exports_timed() -> Iterator[list[float]]:
    """Note how long each ``torch.export`` takes."""
    export, times = torch.export.export, []

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return export(*args, **kwargs)
        finally:
            times.append(time.perf_counter() - start)

    torch.export.export = timed
    try:
        yield times
    finally:
        torch.export.export = export


def row(make: Maker) -> tuple[bool, str]:
    """Return whether a network is equal, and its line of the table."""
    torch.manual_seed(0)
    subject = make()
    shaken(subject.model)
    with _exports_timed() as times:
        start = time.perf_counter()
        try:
            source = trace(subject.model, subject.inputs, outputs_at=subject.outputs_at)
        except CaffeforgeError as error:
            return False, f"refused: {error.what}"
        whole = time.perf_counter() - start
    computed = list(Executor(source.graph).run(source.example).values())
    expected = _outputs(subject, torch.float32)
    if any(array.std() <= 1e-3 * np.abs(array).max() for array in expected):
        return False, "its outputs do not vary: nothing is compared"
    worst, allowed = _difference(computed, expected), _EQUAL
    if worst > allowed:  # some random weights magnify rounding: then PyTorch's own is the measure
        allowed = 2 * _difference(_outputs(subject, torch.float64), expected)
    line = f"{len(source.graph.nodes):5} nodes  {worst:8.1e}  export {sum(times):5.1f} s"
    line += f"  after {whole - sum(times):5.2f} s"
    return worst <= allowed, line + "".join(f"\n    note: {note}" for note in source.notes[:2])


def _outputs(subject: Subject, dtype: torch.dtype) -> list[NDArray]:
    """Return what a network computes in a precision, in which it is left."""
    model = subject.model.to(dtype)
    example = Example.of(subject.inputs)
    call = example.with_tensors([t.to(dtype) if t.is_floating_point() else t for t in example.tensors()])
    ends = contextlib.nullcontext() if subject.outputs_at is None else outputs_at(model, subject.outputs_at)
    with torch.no_grad(), ends:
        return [tensor.numpy() for tensor in nest.tensors(model(*call.args, **call.kwargs))]


def _difference(some: Sequence[NDArray], others: Sequence[NDArray]) -> float:
    """Return the largest difference of two lists of arrays, each over the scale of the second."""
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(some, others, strict=True))


def main() -> None:
    """Print the table for what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=["torchvision"])
    parser.add_argument("--start", default="", help="leave out the networks before this one")
    parser.add_argument("--limit", type=int, default=10_000, help="stop after so many networks")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no network after so long")
    options = parser.parse_args()
    makers: dict[str, Maker] = {}
    for name in options.names:
        if name in _GROUPS:
            makers |= _GROUPS[name]()
        else:
            known: dict[str, Maker] = {}
            for group in ("torchvision", "quantizable", "detectors", "transformers", "ultralytics"):
                known |= _GROUPS[group]()
            makers[name] = known.get(name) or _timm_maker(name)
    warnings.simplefilter("ignore")
    start, equal, count = time.perf_counter(), 0, 0
    names = list(makers)
    names = names[names.index(options.start) if options.start else 0 :]
    for name in names[: options.limit]:
        if time.perf_counter() - start > options.seconds:
            break
        try:
            same, line = row(makers[name])
        except Exception as error:
            same, line = False, f"failed: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
        equal, count = equal + same, count + 1
        print(f"{'equal' if same else 'DIFFERS':8} {name:40} {line}", flush=True)
    print(f"{equal} of {count} networks are equal")


if __name__ == "__main__":
    main()
