"""The ``caffeforge`` command, called as a user calls it, over a made-up backend and small nets."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated import bvlc, hub
from caffeforge.generator.error_catalog import CATALOG
from caffeforge.generator.generate import generate, write
from caffeforge.runtime import CaffeforgeError, cli
from caffeforge.runtime.backends import find
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.op import full_name

MAPPING = """\
backend: vendory
extends: bvlc
types: {SiluAct: elu_param}
ops:
  Swish:
    let: {steep: alpha > 1}
    any_of:
      - when: alpha == 1.0
        layer: SiluAct
      - require:
          - {expr: not steep, else: too steep}
        rewrite: Y = Mul(X, Sigmoid(Mul(X, alpha)))
    otherwise: alpha up to 1
  Abs: null
  Neg: null
layers:
  SiluAct:
    rewrite: tops[0] = Swish(bottom)
constraints:
  Pooling:
    - {expr: 'k[0] <= 7', else: windows up to 7, source: data sheet}
"""

NET = """\
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "double" type: "Power" bottom: "data" top: "double" power_param { scale: 2 } }
layer { name: "out" type: "ReLU" bottom: "double" top: "out" }
"""

MODEL = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x, y):
        return self.layer(x) * torch.relu(y)

def broken():
    raise KeyError("weights")

text = "no model"
made = Net()
"""


@pytest.fixture(scope="module")
def vendory(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a generated backend."""
    root = tmp_path_factory.mktemp("project")
    schema = root / "schemas" / "vendory"
    schema.mkdir(parents=True)
    (schema / "mapping.yaml").write_text(MAPPING)
    write(generate(schema), root / "generated")
    return str(root / "generated" / "vendory")


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A net that needs no weights, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.prototxt").write_text(NET)
    return "net.prototxt"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A Python module with a model, in the current folder and under a name of its own."""
    monkeypatch.chdir(tmp_path)
    name = f"model_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODEL)
    return name


def output(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """Return what a command that succeeds prints."""
    assert cli.main(command) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def complaint(capsys: pytest.CaptureFixture[str], code: int, *command: str) -> str:
    """Return what a command that fails with `code` says; it prints nothing else."""
    assert cli.main(command) == code
    captured = capsys.readouterr()
    assert captured.out == "" and "Traceback" not in captured.err
    return captured.err


def test_starts_without_heavy_imports() -> None:
    heavy = "{'torch', 'numpy', 'onnx', 'onnxruntime', 'google'}"
    check = f"import sys; from caffeforge.runtime import cli; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_usage_errors_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], ["convert"], ["run", "net.prototxt"], ["export", "a:b"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(command)
        assert stopped.value.code == 2
        assert "usage: caffeforge" in capsys.readouterr().err


def test_exports_what_computes_the_same(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("--input-names", "left,right", "--output-names", "product")
    shapes = ("--shape", "2x4", "--shape", "2x3")
    printed = output(
        capsys, "export", f"{source}:made", "--backend", "bvlc", *shapes, *names, "--out", "out/m"
    )
    assert printed.startswith("wrote out/m.prototxt\nwrote out/m.caffemodel\nwrote out/m.map.json\n")
    assert "verified: 1 output and" in printed

    import torch

    made = sys.modules[source].made
    left, right = torch.randn(2, 4), torch.randn(2, 3)
    found = bvlc.load("out/m.prototxt", "out/m.caffemodel").run(
        {"left": left.numpy(), "right": right.numpy()}
    )
    with torch.no_grad():
        np.testing.assert_allclose(found["product"], made(left, right).numpy(), rtol=1e-5, atol=1e-6)


def test_exports_under_the_name_of_the_source(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = ("--shape", "2x4", "--shape", "2x3")
    printed = output(capsys, "export", f"{source}:Net", "--backend", "bvlc", *shapes, "--no-verify")
    assert printed.startswith("wrote Net.prototxt") and printed.endswith("not verified\n")


@pytest.mark.parametrize(
    ("name", "code", "sentence"),
    [
        ("missing", 1, "AttributeError"),
        ("broken", 1, "KeyError: 'weights'"),
        ("text", 1, "TypeError"),
        ("", 2, "names no model"),
    ],
)
def test_says_what_is_wrong_with_a_source(
    source: str, capsys: pytest.CaptureFixture[str], name: str, code: int, sentence: str
) -> None:
    said = complaint(capsys, code, "export", f"{source}:{name}", "--backend", "bvlc", "--shape", "2x4")
    assert said.startswith("error: ") and sentence in said


def test_current_folder_is_importable_only_while_the_source_is(source: str) -> None:
    before = list(sys.path)
    cli.main(["export", f"{source}:missing", "--backend", "bvlc", "--shape", "2x4"])
    assert sys.path == before


def test_runs_a_net_on_arrays(net: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = np.array([[1.0, -2.0, 3.5], [0.25, 0.0, -1.0]])
    np.save(tmp_path / "data.npy", data)
    blobs = ("--blobs", "double,out", "--out", "blobs.npz")
    printed = output(capsys, "run", net, "--backend", "bvlc", "--input", "data=data.npy", *blobs)
    assert printed.splitlines() == [
        "double: 2x3, -4 to 7, mean 0.583333",
        "out: 2x3, 0 to 7, mean 1.58333",
        "wrote blobs.npz",
    ]
    saved = np.load("blobs.npz")
    np.testing.assert_array_equal(saved["double"], 2 * data.astype(np.float32))
    np.testing.assert_array_equal(saved["out"], np.maximum(2 * data, 0).astype(np.float32))
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_random_inputs_depend_on_the_seed_alone(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("run", net, "--backend", "bvlc", "--random", "--seed")
    first = output(capsys, *command, "1")
    assert output(capsys, *command, "1") == first != output(capsys, *command, "2")


def test_says_what_is_wrong_with_inputs(net: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.npy").write_text("1 2 3")
    np.save(tmp_path / "words.npy", np.array(["one"]))
    command = ("run", net, "--backend", "bvlc")
    assert "this is no .npz or .npy of numbers" in complaint(capsys, 1, *command, "--input", "data=text.npy")
    assert "the array holds no real numbers" in complaint(capsys, 1, *command, "--input", "data=words.npy")
    assert "no such file" in complaint(capsys, 1, *command, "--input", "data=none.npy")
    twice = ("--input", "data=words.npy", "--input", "data=words.npy")
    assert "words.npy" in complaint(capsys, 1, *command, *twice)
    assert "the net has no blob 'oat'" in complaint(capsys, 2, *command, "--random", "--blobs", "oat")


def test_keeps_old_blobs_where_new_ones_cannot_be_written(
    net: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("run", net, "--backend", "bvlc", "--random", "--out", "nowhere/blobs.npz")
    assert cli.main(command) == 1
    assert "blobs cannot be written" in capsys.readouterr().err


def test_dumps_a_graph_that_can_be_parsed(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "dump", net, "--backend", "bvlc")
    nodes = Graph.parse(text).nodes
    assert [node.op for node in nodes] == [hub.Mul(), hub.Relu()]
    assert [value.name for node in nodes for value in node.outputs] == ["double", "out"]


def test_broken_nets_exit_with_1(net: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / net).write_text(NET.replace("scale: 2", "scala: 2"))
    assert complaint(capsys, 1, "dump", net, "--backend", "bvlc").startswith("error: net.prototxt:3:")


def test_debug_shows_where_an_error_was_raised(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CaffeforgeError, match="there is no backend 'bvcl'"):
        cli.main(["explain", "bvcl", "Conv", "--debug"])
    assert "did you mean bvlc?" in complaint(capsys, 2, "explain", "bvcl", "Conv")


def test_lists_backends(capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(capsys, "backends").splitlines()
    types, read, written = len(bvlc.LAYER_TYPES), len(bvlc.READERS), len(bvlc.RULES)
    assert f"bvlc: {types} layer types, {read} of them read; {written} ops written" in lines


def test_coverage_agrees_with_the_tables(vendory: str, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = json.loads(output(capsys, "coverage", vendory, "--json"))
    written = [name for names in found["ops"].values() for name in names]
    backend = find(vendory)
    assert sorted(written) == sorted(map(full_name, backend.rules))
    assert found["layers"] == list(backend.readers)
    assert set(found["layers_without_rule"]) == set(backend.layer_types) - set(backend.readers)
    assert {"Abs", "Neg"} <= set(found["ops_without_rule"])
    assert "Swish" in found["ops"]["conditional"] and "Relu" in found["ops"]["direct"]
    assert found["constraints"] == {"Pooling": 1}


def test_coverage_of_all_backends_names_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"bvlc writes {len(bvlc.RULES)} ops\n" in output(capsys, "coverage")


def test_explains_an_op(vendory: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(capsys, "explain", vendory, "Swish").splitlines()
    assert lines[:10] == [
        "Swish(X, alpha: float = 1.0) -> Y",
        "op Swish: vendory writes it by the rule at vendory/mapping.yaml:5",
        "  1. layer SiluAct  [vendory/mapping.yaml:8]",
        "     when alpha == 1.0",
        "  2. ops  [vendory/mapping.yaml:10]",
        "     needs not steep  [vendory/mapping.yaml:11]",
        "       else: too steep",
        "       Y = Mul(X, Sigmoid(Mul(X, alpha)))",
        "  where steep = alpha > 1",
        "  in short: alpha up to 1",
    ]
    (silu,) = [index for index, line in enumerate(lines) if line.startswith("  pattern silu (shared by all)")]
    assert lines[silu + 1 : silu + 3] == ["      gate = Sigmoid(x)", "      y = Mul(x, gate)"]


def test_explains_constraints_of_the_layers_an_op_becomes(
    vendory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    constraint = [
        "  constraints on layer Pooling",
        "    needs k[0] <= 7  [vendory/mapping.yaml:21]",
        "      else: windows up to 7 (source: data sheet)",
    ]
    for name in ("MaxPool", "Pooling"):
        lines = output(capsys, "explain", vendory, name).splitlines()
        assert lines[-3:] == constraint


def test_explains_what_a_layer_computes(vendory: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "explain", vendory, "SiluAct")
    assert text.splitlines() == [
        "layer SiluAct: what it computes stands at vendory/mapping.yaml:17",
        "  unverified: no witness is named",
        "  ops  [vendory/mapping.yaml:18]",
        "    tops[0] = Swish(bottom)",
        "  written for Swish",
    ]


def test_explains_a_name_that_is_an_op_and_a_layer(capsys: pytest.CaptureFixture[str]) -> None:
    op, layer = output(capsys, "explain", "bvlc", "Softmax").split("\n\n")
    assert op.splitlines()[1].startswith("op Softmax: bvlc writes it")
    assert layer.startswith("layer Softmax: what it computes")


def test_explains_an_op_without_rule(vendory: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(capsys, "explain", vendory, "HardSwish").splitlines()
    assert lines[:2] == ["HardSwish(X) -> Y", "op HardSwish: vendory has no rule for it"]
    assert lines[2].startswith("  similar names with a rule: ") and "HardSigmoid" in lines[2]
    assert lines[3].startswith("  lowering that all backends share, at hub/rewrites.yaml:")
    assert "      gate = HardSigmoid(X, alpha=1 / 6, beta=0.5)" in lines


def test_tells_approximations_apart(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.strip() for line in output(capsys, "explain", "bvlc", "Gelu").splitlines()]
    assert sum(line.startswith("only where approximations are allowed: by a sigmoid") for line in lines) == 1
    assert sum(line.startswith("by a polynomial") for line in lines) == 1


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (
            "Conv",
            "Conv(X, W, B?, kernel_shape: ints, dilations: ints = ..., group: int = 1, "
            "pads: ints = ..., strides: ints = ...) -> Y",
        ),
        ("Clip", "Clip(input, min: float?, max: float?) -> output"),
        ("Reshape", "Reshape(data, shape: ints, allowzero: int = 0) -> reshaped"),
        ("Split", "Split(input, axis: int = 0, num_outputs: int?, split: ints?) -> outputs*"),
        ("Concat", "Concat(inputs*, axis: int) -> concat_result"),
    ],
)
def test_explains_how_an_op_is_used(capsys: pytest.CaptureFixture[str], text: str, shape: str) -> None:
    assert output(capsys, "explain", "bvlc", text).splitlines()[0] == shape


def test_unknown_names_get_similar_ones(vendory: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = complaint(capsys, 2, "explain", vendory, "siluac")
    first, hint = said.splitlines()
    assert first == "error: siluac is neither an op nor a layer type of vendory"
    assert hint.startswith("  hint: did you mean SiluAct")


@pytest.mark.parametrize(
    ("name", "near"),
    [("torch.nn.Conv2d", "Conv"), ("aten.batch_norm", "BatchNorm"), ("Convolutoin", "Convolution")],
)
def test_names_of_pytorch_and_misspelt_ones_get_hints(
    name: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = complaint(capsys, 2, "explain", "bvlc", name)
    assert re.search(rf"hint: did you mean .*\b{near}\b", said)


def test_case_does_not_matter_where_a_name_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    op, layer = output(capsys, "explain", "bvlc", "relu").split("\n\n")
    assert op.startswith("Relu(X) -> Y\nop Relu: ") and layer.startswith("layer ReLU: ")
    assert op == output(capsys, "explain", "bvlc", "Relu").strip()


def test_explains_who_verified_the_layers_of_an_op_and_what_tests_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = output(capsys, "explain", "bvlc", "BatchNormalization").splitlines()
    assert "  verified by Caffe 1.0: BatchNorm, Scale" in lines
    assert "  2 examples, 1 of them of what is refused: caffeforge test bvlc BatchNormalization" in lines


def test_explains_under_which_condition_a_layer_of_several_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = output(capsys, "explain", "bvlc", "AveragePool")
    assert "  of these some only where sizes[0] > Y.shape[2], or where sizes[1] > Y.shape[3]\n" in text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NonMaxSuppression", "a model with it is refused: its result's size depends on values"),
        ("Accuracy", "where a net is read, it is left out: only training and testing need it"),
        ("Data", "it loads data and does not tell its shape: put an Input layer in its place"),
    ],
)
def test_explains_what_becomes_of_that_for_which_there_is_no_rule(
    name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"  {said}" in output(capsys, "explain", "bvlc", name)


def test_explains_every_error_of_the_generator(capsys: pytest.CaptureFixture[str]) -> None:
    for id, entry in CATALOG.items():
        assert output(capsys, "explain-error", id).startswith(f"{id}: {entry.title}\n")


def test_unknown_errors_get_a_similar_one(capsys: pytest.CaptureFixture[str]) -> None:
    said = complaint(capsys, 2, "explain-error", "unknown-feild")
    assert said.startswith("error: gen-backend has no error 'unknown-feild'\n  hint: did you mean unknown-")
