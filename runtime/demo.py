"""``make demo``: from schema to backend, from a PyTorch model to Caffe files, and the proof that both agree.

Needs torchvision, which the extra ``test`` installs. Writes to ``out/demo`` below the current folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from caffeforge.generated.bvlc import export
from caffeforge.generator.diagnostics import GenerationError
from caffeforge.generator.generate import differences, generate
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime import CaffeforgeError, load
from caffeforge.runtime.compare import compare, tolerance
from caffeforge.runtime.report import ExportResult

STEM = Path("out/demo/resnet18")


def main() -> int:
    """Run the demo; return 1 if anything differs from what it should be."""
    try:
        print("1. Generate the backend bvlc again from schemas/bvlc/caffe.proto and mapping.yaml")
        if not backend_is_up_to_date():
            return 1
        print(f"\n2. Export torchvision's ResNet-18 to {STEM}.*, and compare every layer with PyTorch")
        model = resnet18()
        result = export(model, (image(seed=1),), STEM)
        print(result.report())
        print("\n3. Read the files again, and run them on another image")
        return 0 if files_agree(model, result) else 1
    except (CaffeforgeError, GenerationError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def backend_is_up_to_date() -> bool:
    """Generate bvlc in memory and print how it differs from the package that is there."""
    package = generate(SCHEMAS / "bvlc")
    found = differences(package, SCHEMAS.parent / "generated")
    print("".join(found) or f"no difference in {len(package.files)} files")
    return not found


def resnet18() -> nn.Module:
    """Return ResNet-18 with random weights, and statistics of batch normalization that are not 0 and 1."""
    import torchvision

    torch.manual_seed(0)
    model: nn.Module = torchvision.models.resnet18()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.2)
    with torch.no_grad():
        model.train()(torch.cat([image(seed) for seed in range(10, 14)]))  # moves the statistics
    return model.eval()


def image(seed: int) -> torch.Tensor:
    """Return an image (1, 3, 224, 224) of blurred spots: unlike noise, each gives other logits."""
    spots = torch.randn(1, 3, 7, 7, generator=torch.Generator().manual_seed(seed))
    return nn.functional.interpolate(spots, (224, 224), mode="bilinear")


def files_agree(model: nn.Module, files: ExportResult) -> bool:
    """Run model and files on a new image and print how far apart the logits are."""
    x = image(seed=2)
    with torch.no_grad():
        expected = model(x).numpy()
    (logits,) = load(files.prototxt, files.caffemodel).run({"x": x.numpy()}).values()
    difference = compare(expected, logits)
    agree = tolerance("float32", "float32").accepts(difference) and difference.varies
    largest = [np.argsort(-array[0])[:5].tolist() for array in (expected, logits)]
    print(f"classes of the largest logits: {largest[0]} in PyTorch, {largest[1]} from the files")
    print(f"largest difference: {difference.max_abs:.1e} at a scale of {difference.scale:.1f}")
    print(f"{'equal' if agree else 'DIFFERENT'}; the files are in {files.prototxt.parent.absolute()}")
    return agree


if __name__ == "__main__":
    sys.exit(main())
