"""PyTorch's own ONNX files are lined up with ours by module, operator and line, not by chance names."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from caffeforge.generated.bvlc import export
from caffeforge.runtime import cli
from caffeforge.runtime.errors import FileError
from caffeforge.runtime.graph import Origin
from caffeforge.runtime.onnx_front.provenance import line_of, module_of
from caffeforge.runtime.sides.alignment import align
from caffeforge.runtime.sides.net_map import ONNX, PYTORCH, read_map
from caffeforge.runtime.sides.onnx_side import OnnxSide
from caffeforge.runtime.sides.runner_side import RunnerSide
from caffeforge.runtime.sides.side import Computed
from tests.e2e import vendor

MODEL = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.conv = nn.Conv2d(8, 8, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(8 * 6 * 6, 10)
        self.eval()

    def forward(self, image):
        x = self.stem(image)
        y = self.relu(self.conv(x))
        y = self.relu(self.conv(y) + x)
        y = torch.relu(y - 0.1)
        return self.head(torch.flatten(y, 1))
"""
LINES = {"Conv": (15, 16, 17), "Relu": (15, 16, 17, 18), "Add": (17,), "Sub": (18,), "Flatten": (19,)}
NAME = "aligned_model"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A net exported from the model, and PyTorch's ONNX files of it as both of its exporters write them."""
    folder = tmp_path_factory.mktemp("aligned")
    (folder / f"{NAME}.py").write_text(MODEL)
    sys.path.insert(0, str(folder))
    try:
        model = import_module(NAME).Net()
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(NAME, None)
    image = torch.randn(1, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    export(model, (image,), folder / "net", input_names=["image"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (image,), str(folder / "old.onnx"), dynamo=False)
    onnx.save(as_newer(onnx.load(folder / "old.onnx"), folder / f"{NAME}.py"), folder / "new.onnx")
    return folder


def as_newer(model: Any, file: Path) -> Any:
    """Name and annotate what the older exporter wrote as the newer one does, which needs onnxscript."""
    counts = Counter[str]()
    names: dict[str, str] = {}
    for node in model.graph.node:
        kind = node.op_type.lower()
        name = f"{kind}_{counts[kind]}" if counts[kind] else kind
        scopes = ["", *filter(None, [module_of(node).removesuffix("_1")]), name]
        line = next(iter(LINES.get(node.op_type, ())[counts[kind] : counts[kind] + 1]), 19)
        counts[kind] += 1
        node.name = f"node_{name}"
        names[node.output[0]] = node.output[0] if node.output[0] == model.graph.output[0].name else name
        trace = f'File "{file}", line {line}, in forward\n    code\n'
        trace += '  File "/lib/site-packages/torch/nn/modules/module.py", line 1, in forward\n'
        for key, value in (("name_scopes", repr(scopes)), ("stack_trace", trace)):
            node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=value)
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    return model


def rows(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *sides: str
) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    code = cli.main(["verify", *sides, "--per-layer", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 0 and document["passed"] and document["conclusive"]
    return {row["layer"]: row for row in document["layers"]}


@pytest.mark.parametrize("file", ["old.onnx", "new.onnx"])
def test_every_layer_of_an_export_is_compared_with_pytorchs_own_file(
    file: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By names alone the newer file's ``relu`` would be the second ReLU of the export, and differ."""
    found = rows(folder, capsys, monkeypatch, file, "net.prototxt", "--backend", "bvlc")
    assert [name for name, row in found.items() if row["type"] == "ReLU"] == ["stem.2", "relu", "relu_2"]
    for name, row in found.items():
        assert row["max_abs"] < 1e-5 < row["scale"], name
    lines = [row["source"].rpartition(":")[2] for row in found.values() if row["type"] == "ReLU"]
    assert lines == ["15", "16", "18"]


@pytest.mark.parametrize("file", ["old.onnx", "new.onnx"])
def test_every_node_is_compared_with_the_model(
    file: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = rows(folder, capsys, monkeypatch, f"{NAME}:Net", file)
    missing = [row["type"] for row in found.values() if "max_abs" not in row]
    assert set(missing) <= {"Constant"}
    assert all(row["cosine"] > 0.999999 for row in found.values() if "max_abs" in row)


def test_an_exported_onnx_files_map_tells_modules_and_lines(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    made = ["export", f"{NAME}:Net", "--backend", "onnx_opset17", "--shape", "1x3x6x6", "--out", "own"]
    assert cli.main(made) == 0
    capsys.readouterr()
    found = rows(folder, capsys, monkeypatch, "new.onnx", "own.onnx")
    assert {found[name]["module"] for name in ("stem.1", "stem.2", "conv")} == {"stem.1", "stem.2", "conv"}
    assert found["relu_2"]["source"].endswith(f"{NAME}.py:18") and "max_abs" in found["relu_2"]


class Told(RunnerSide):
    """A side that tells what it computes, and computes nothing."""

    def __init__(self, naming: str, *computed: Computed) -> None:
        self.naming, self.computed = naming, computed


def value(name: str, op: str, module: str = "", line: str = "") -> Computed:
    return Computed(name, name, op, Origin(module, "", line), op)


def test_equal_names_of_different_namings_stay_apart() -> None:
    ours = Told(PYTORCH, value("relu", "Relu", "b"), value("x", "Tanh", "c"))
    theirs = Told(ONNX, value("relu", "Relu", "a"), value("relu_1", "Relu", "b"))
    found = align(ours, theirs, {})
    assert found.names["relu_1"] == "relu" and found.supposed == {"relu"}
    assert found.names["relu"] not in ("relu", "x")
    same = align(ours, Told(PYTORCH, *theirs.computed), {})
    assert same.names.get("relu", "relu") == "relu" and not same.supposed


def test_a_count_behind_a_module_is_a_call_only_where_no_such_module_is() -> None:
    ours = Told(PYTORCH, value("p", "Relu", "relu"), value("q", "Relu", "relu@1"))
    called = Told(ONNX, value("s", "Relu", "relu"), value("t", "Relu", "relu_1"))
    assert align(ours, called, {}).names == {"s": "p", "t": "q"}
    other = Told(PYTORCH, value("p", "Relu", "relu"), value("q", "Relu", "relu_1"), value("r", "Relu", "z"))
    assert align(other, called, {}).names == {"s": "p", "t": "q"}


def test_broken_annotations_tell_nothing() -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"], name="n")
    for scopes in ("['', 'a'", "17", "[]", "['relu']", "{1: 'a', 2: 'b'}", "'relu'"):
        del node.metadata_props[:]
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
        assert module_of(node) == ""
    assert line_of(node) == ""


def test_a_map_may_call_a_value_as_another_tensor_of_the_file(tmp_path: Path) -> None:
    nodes = [
        onnx.helper.make_node("Neg", ["x"], ["b"], name="n"),
        onnx.helper.make_node("Exp", ["b"], ["a"], name="e"),
        onnx.helper.make_node("Neg", ["a"], ["y"], name="o"),
    ]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])
    imports = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=imports, ir_version=8), tmp_path / "m.onnx")
    entries = [{"layer": "n", "type": "Neg", "value": "a"}, {"layer": "e", "type": "Exp", "value": "b"}]
    (tmp_path / "m.map.json").write_text(json.dumps({"layers": entries}))
    side = OnnxSide(tmp_path / "m.onnx", None, ("CPUExecutionProvider",))
    found = side.run({"x": np.array([0, 1], np.float32)}, inner=True)
    assert set(found) == {"a", "b", "y"}
    np.testing.assert_array_equal(found["a"], [0, -1])
    np.testing.assert_allclose(found["b"], np.exp([0, -1]), rtol=1e-6)


@pytest.mark.parametrize("entry", [{"type": "Relu"}, {"layer": "a", "module": None}, {"layer": ["a"]}, "a"])
def test_what_is_no_map_is_told(entry: object, tmp_path: Path) -> None:
    file = tmp_path / "m.map.json"
    file.write_text(json.dumps({"layers": [entry]}))
    with pytest.raises(FileError, match="no map of a net"):
        read_map(file)


def test_layers_of_a_net_without_a_map_are_found_by_blob_and_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what others overwrite in place; the user's line is that of the prototxt."""
    for name in ("plain", "other"):
        (folder / f"{name}.prototxt").write_bytes((folder / "net.prototxt").read_bytes())
        (folder / f"{name}.caffemodel").write_bytes((folder / "net.caffemodel").read_bytes())
    sides = ("plain.prototxt", "other.prototxt", "--backend", "bvlc")
    found = rows(folder, capsys, monkeypatch, *sides)
    assert {"stem.0", "stem.1", "stem.2", "relu_1", "sub"} <= set(found)
    changed = vendor.net_parameter()()
    changed.ParseFromString((folder / "net.caffemodel").read_bytes())
    next(layer for layer in changed.layer if layer.name == "stem.1").blobs[0].data[0] += 1
    (folder / "other.caffemodel").write_bytes(changed.SerializeToString())
    line = (folder / "plain.prototxt").read_text().splitlines().index('  name: "stem.1"')
    assert cli.main(["verify", *sides, "--per-layer"]) == 1
    said = capsys.readouterr().err
    assert f"stem.1 (Scale) from the model (plain.prototxt:{line}) is the first that diverges" in said
