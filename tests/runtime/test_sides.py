"""``caffeforge verify``: a model, an ONNX file of PyTorch's exporter, and a Caffe net against each other."""

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from caffeforge.generated.bvlc import export
from caffeforge.generator.generate import generate, write
from caffeforge.runtime import cli
from caffeforge.runtime.sides.onnx_side import OnnxSide

MODEL = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        nn.init.uniform_(self.stem[1].weight, 0.5, 2.0)
        nn.init.uniform_(self.stem[1].running_mean, -0.5, 0.5)
        self.head = nn.Linear(8 * 6 * 6, 10)
        self.eval()

    def forward(self, image):
        return self.head(torch.flatten(self.stem(image), 1))

class Other(Net):
    def __init__(self):
        super().__init__(seed=1)
"""
SHAPE = (2, 3, 6, 6)
TARGET = "net.prototxt"

Verify = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model, the net that was exported from it, and PyTorch's own ONNX file of it."""
    folder = tmp_path_factory.mktemp("sides")
    name = "verified_model"
    (folder / f"{name}.py").write_text(MODEL)
    sys.path.insert(0, str(folder))
    try:
        from importlib import import_module

        model = import_module(name).Net()
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(name, None)  # the command has to find it by itself
    image = torch.randn(SHAPE, generator=torch.Generator().manual_seed(0))
    export(model, (image,), folder / "net", input_names=["image"], output_names=["logits"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (image,), str(folder / "net.onnx"), dynamo=False)
    np.savez(folder / "inputs.npz", image=image.numpy())
    return folder


@pytest.fixture
def verify(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verify:
    """Run the command in the folder: exit code, what it prints, what it complains of."""
    monkeypatch.chdir(folder)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(["verify", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize(
    "sides",
    [
        ("verified_model:Net", TARGET, "--backend", "bvlc"),
        ("verified_model:Net", "net.onnx"),
        ("net.onnx", TARGET, "--backend", "bvlc"),
        (TARGET, "net.onnx", "--source-backend", "bvlc"),
        (TARGET, "verified_model:Net", "--source-backend", "bvlc"),
        ("net.prototxt,net.caffemodel", "net.onnx", "--source-backend", "bvlc", "--inputs", "inputs.npz"),
        ("net.caffemodel", "net.onnx", "--source-backend", "bvlc", "--provider", "cpu"),
    ],
)
def test_sides_that_compute_the_same_agree(verify: Verify, sides: tuple[str, ...]) -> None:
    code, printed, complaint = verify(*sides, "--json")
    document = json.loads(printed)
    assert (code, complaint) == (0, "") and document["passed"]
    assert document["outputs"][0]["max_abs"] < 1e-5 < document["outputs"][0]["scale"]
    assert document["inputs"] == (1 if "--inputs" in sides else 2)


def test_layers_of_pytorchs_onnx_file_are_found_by_module(verify: Verify) -> None:
    code, printed, _ = verify("verified_model:Net", "net.onnx", "--per-layer", "--json")
    rows = {row["module"]: row for row in json.loads(printed)["layers"]}
    assert code == 0
    assert rows["stem.0"]["value"] and "max_abs" not in rows["stem.0"]  # batch norm is folded into it there
    for module in ("stem.2", "head"):
        assert rows[module]["cosine"] > 0.999999 and "verified_model.py:" in rows[module]["source"]


def test_the_first_layer_that_differs_is_named_with_its_source_line(verify: Verify) -> None:
    code, printed, complaint = verify("verified_model:Other", TARGET, "--backend", "bvlc", "--per-layer")
    assert code == 1 and "hint" not in complaint
    assert "stem.2 (ReLU) from module stem.2 (" in complaint and "verified_model.py:15" in complaint
    assert "is the first that diverges" in printed and "<< differs" in printed


def test_without_inner_values_the_way_to_them_is_told(verify: Verify) -> None:
    code, _, complaint = verify("verified_model:Other", TARGET, "--backend", "bvlc")
    assert code == 1 and "hint: --per-layer finds the first layer that differs" in complaint


def test_asking_for_cuda_without_it_says_so(verify: Verify) -> None:
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime has CUDA")
    for sides in (("verified_model:Net", "net.onnx"), (TARGET, "net.onnx", "--source-backend", "bvlc")):
        for name in ("CUDA", "CUDAExecutionProvider"):
            code, printed, complaint = verify(*sides, "--provider", name)
            assert (code, printed) == (2, "") and "hint: install onnxruntime-gpu" in complaint
            assert "onnxruntime has no CUDAExecutionProvider here, it has" in complaint


def test_a_tolerance_can_be_given(verify: Verify) -> None:
    code, _, _ = verify("verified_model:Other", TARGET, "--backend", "bvlc", "--tolerance", "10")
    assert code == 0


def test_another_program_can_run_the_target(verify: Verify, folder: Path) -> None:
    script = """\
import sys, numpy as np
from caffeforge.runtime.loaded import load
given = dict(np.load(sys.argv[1]))
found = load("net.prototxt", "net.caffemodel", "bvlc").run(given)
np.savez(sys.argv[2], **{name: a * float(sys.argv[3]) for name, a in found.items()})
"""
    (folder / "simulator.py").write_text(script)
    command = f"{sys.executable} simulator.py {{inputs}} {{outputs}}"
    sides = ("verified_model:Net", TARGET, "--backend", "bvlc", "--runner")
    assert verify(*sides, f"{command} 1")[0] == 0
    assert verify(*sides, f"{command} 1.01")[0] == 1
    code, _, complaint = verify(*sides, f"{command} much")
    assert code == 1 and "the runner exits with 1" in complaint and "ValueError" in complaint
    assert "does not name both files" in verify(*sides, "simulate")[2]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((TARGET, "net.onnx"), 2, "the net's dialect is not known"),
        (("net.txt", TARGET, "--backend", "bvlc"), 2, "this names nothing that can be compared"),
        (("verified_model:Net", "verified_model:Net"), 2, "the input shapes are not known"),
        (("verified_model:Net", "missing.onnx", "--shape", "1x3x6x6"), 1, "there is no such file"),
        (("verified_model:Net", "net.onnx", "--inputs", "inputs.npy"), 1, "there is no such file"),
        (("verified_model:Net", "net.onnx", "--inputs", "."), 1, "there is no image"),
        (("verified_model:Net", "net.onnx", "--inputs", "a.png"), 2, "a folder of images is taken"),
        (("verified_model:Net", "net.onnx", "--tolerance", "-1"), 2, "a tolerance is"),
        (("verified_model:Net", "net.onnx", "--timeout", "5"), 2, "for a --runner"),
        (("verified_model:Net", "net.onnx", "--shape", "1x3x6x6"), 2, "is 2x3x6x6 in the file, not 1x3x6x6"),
        (("verified_model:Net", "net.onnx", "--provider", "Warp"), 2, "onnxruntime has no WarpExecutionPro"),
        ((TARGET, TARGET, "--backend", "bvlc", "--provider", "Warp"), 2, "no WarpExecutionProvider here"),
    ],
)
def test_mistakes_get_one_sentence(
    verify: Verify, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    found, printed, complaint = verify(*arguments)
    assert (found, printed) == (code, "") and sentence in complaint and "Traceback" not in complaint


def test_images_are_prepared_as_asked(verify: Verify, folder: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    from caffeforge.runtime.sides.input_sets import Preparation, image_sets

    pictures = folder / "pictures"
    pictures.mkdir(exist_ok=True)
    pixels = np.arange(6 * 6 * 3, dtype=np.uint8).reshape(6, 6, 3)
    image.fromarray(pixels).save(pictures / "a.png")
    side = OnnxSide(folder / "net.onnx", None, ["CPUExecutionProvider"])
    prepared = list(image_sets(pictures, side.inputs, Preparation((1.0, 2.0, 3.0), 0.5, "bgr")))
    expected = (pixels[:, :, ::-1].astype(np.float32) - np.array([1, 2, 3], np.float32)) * np.float32(0.5)
    (array,) = prepared[0].values()
    assert array.shape == SHAPE and np.array_equal(array[1], expected.transpose(2, 0, 1))
    code, _, _ = verify("net.onnx", TARGET, "--backend", "bvlc", "--inputs", "pictures", "--scale", "0.01")
    assert code == 0


def test_ops_of_the_backends_own_stay_whole(
    verify: Verify, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("vendor")
    schema = root / "schemas" / "sidesy"
    schema.mkdir(parents=True)
    (schema / "mapping.yaml").write_text(
        "backend: sidesy\nextends: bvlc\n"
        "custom:\n  sidesy.Twice: {inputs: [X], torch: sidesy::twice, reference: 'Y = Mul(X, 2.0)'}\n"
    )
    write(generate(schema), root / "generated")
    (folder / "own_ops.py").write_text(
        "import torch\n\n"
        "@torch.library.custom_op('sidesy::twice', mutates_args=())\n"
        "def twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n\n"
        "@twice.register_fake\n"
        "def _(x: torch.Tensor) -> torch.Tensor:\n    return torch.empty_like(x)\n\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n        return twice(torch.relu(x))\n"
    )
    backend = str(root / "generated" / "sidesy")
    source = ("own_ops:Net", "--backend", backend)
    assert cli.main(["export", *source, "--shape", "2x5", "--out", str(folder / "own")]) == 0
    code, _, complaint = verify("own_ops:Net", "own.prototxt", "--backend", backend)
    assert (code, complaint) == (0, "")
