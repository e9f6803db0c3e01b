"""Vendors' protos with no mapping beside them: each becomes a backend that exports, or says what prevents it.

Run as a program, this file prints the table of what each dialect inherits.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from caffeforge.generator.generate import generate, write
from caffeforge.runtime.errors import LegalizeError

DIALECTS = Path(__file__).resolve().parents[3] / "shared" / "dialects"
FACTS = sorted((DIALECTS / "facts").glob("*.json"))
PREVENTED = {  # the first construct that the base's rules do not know, by the op that needs it
    "nart_caffe": ("Conv", "ConvolutionParameter"),
    "ppq": ("Conv", "ConvolutionParameter"),
    "segnet": ("Conv", "ConvolutionParameter"),
}

pytestmark = pytest.mark.skipif(not FACTS, reason="needs ../shared/dialects")


def backend(facts: Path, folder: Path) -> ModuleType:
    """Return the imported package of a fact table's proto, generated alone in a folder below `folder`."""
    name = facts.stem.replace(".", "_")
    source = folder / "vendor" / name
    source.mkdir(parents=True)
    command = [sys.executable, str(DIALECTS / "render_proto.py"), str(facts)]
    text = subprocess.run(command, capture_output=True, check=True).stdout
    (source / "caffe.proto").write_bytes(text)
    package = generate(source / "caffe.proto")
    write(package, folder / "out")
    return imported(folder / "out" / package.name)


def imported(folder: Path) -> ModuleType:
    """Return the package in a folder, imported under a name of its own."""
    name = f"drop_in_{folder.name}"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def network() -> nn.Module:
    """Return a small network with what ResNet-18 and MobileNetV2 are made of."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(),
        nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ReLU(), nn.MaxPool2d(2, 2), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(8, 5),
    ).eval()  # fmt: skip


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: facts.stem)
def test_a_vendors_proto_alone_is_a_backend_that_exports_or_names_the_construct(
    facts: Path, tmp_path: Path
) -> None:
    module = backend(facts, tmp_path)
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    if facts.stem in PREVENTED:
        op, message = PREVENTED[facts.stem]
        with pytest.raises(LegalizeError, match=rf"{op}\("):
            module.export(network(), image, tmp_path / "net")
        coverage = importlib.import_module(f"{module.__name__}.coverage")
        reasons = [lost.reason for lost in coverage.DROPPED if lost.subject == op]
        assert any(message in reason for reason in reasons)
        assert not list(tmp_path.glob("net.*"))
    else:
        module.export(network(), image, tmp_path / "net")  # verifies the files it wrote
        assert (tmp_path / "net.caffemodel").stat().st_size > 0


def table(folder: Path) -> None:
    """Print for each dialect its layer types, those that are read, ops written, and rules not inherited."""
    print("| dialect | layer types | of them read | ops written | alternatives not inherited |")
    print("|---|---|---|---|---|")
    for facts in FACTS:
        module = backend(facts, folder)
        covered = importlib.import_module(f"{module.__name__}.coverage")
        layers = importlib.import_module(f"{module.__name__}.layers")
        counts = (len(layers.LAYER_TYPES), len(covered.LAYERS), len(covered.OPS), len(covered.DROPPED))
        print(f"| {facts.stem} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        table(Path(scratch))
