"""How models are captured: nested calls, other ways than a plain export, files, cuts, precision."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from caffeforge.runtime.errors import CaffeforgeError, FrontEndError, UsageError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.torch_front import TorchSource, trace
from tests.torch_front.checking import Function, seeded, types

X, Y = seeded(2, 4), seeded(2, 4, seed=1)

Pair = namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class Batch:
    """A container that PyTorch does not know."""

    image: torch.Tensor
    rest: Any


class Small(nn.Module):
    """Two layers by which cuts and files are told apart."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.body(x).mean((2, 3)))
        return y


IMAGE = seeded(2, 3, 5, 6)


def equal(source: TorchSource) -> TorchSource:
    """Compare all that a graph computes with the reference, on the example and on another input."""
    other = {name: array[::-1].copy() for name, array in source.example.items()}
    for inputs in (source.example, other):
        reference = source.reference(inputs)
        named = [node.outputs[0].name for node in source.graph.nodes if node.origin.value]
        outputs = [value.name for value in source.graph.outputs]
        for name, array in Executor(source.graph).run(inputs, [*outputs, *named]).items():
            np.testing.assert_allclose(array, reference[name], rtol=1e-4, atol=1e-5, err_msg=name)
    return source


# Nested inputs and outputs


@pytest.mark.parametrize(
    ("given", "read", "names"),
    [
        (({"a": X, "b": [Y]},), lambda d: d["a"] - d["b"][0], ["tensors_0.a", "tensors_0.b.0"]),
        ((Pair(X, Y),), lambda p: p.first - p.second, ["tensors_0.first", "tensors_0.second"]),
        ((Batch(X, (Y, None)),), lambda b: b.image - b.rest[0], ["tensors_0.image", "tensors_0.rest.0"]),
        ((X, [Y, 3, "text"]), lambda x, r: x * r[1] - r[0], ["tensors_0", "tensors_1.0"]),
        ((X, OrderedDict(k=Y)), lambda x, o: x - o["k"], ["tensors_0", "tensors_1.k"]),
    ],
)
def test_nested_inputs_are_named_by_where_they_lie(given: Any, read: Any, names: list[str]) -> None:
    source = equal(trace(Function(read).eval(), given))
    assert list(source.example) == names
    assert source.notes == []


def test_keywords_and_numbers_are_arguments_too() -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor, *, factor: float = 1.0, shift: Any = None) -> Any:
            return x * factor + shift["by"]

    source = equal(trace(Scaled().eval(), {"x": X, "factor": 2.5, "shift": {"by": Y}}))
    assert list(source.example) == ["x", "shift.by"]
    assert types(source.graph) == ["Mul", "Add"]


def test_outputs_in_a_class_that_pytorch_does_not_know() -> None:
    source = equal(trace(Function(lambda x: Batch(x + 1, {"k": [x * 2, None]})).eval(), X))
    assert [value.name for value in source.graph.outputs] == ["add", "mul"]
    assert source.notes == []


# Other ways than a plain export


def test_numpy_inside_is_captured_by_a_strict_export() -> None:
    source = equal(trace(Function(lambda x: torch.from_numpy(np.tanh(x.numpy())) + x).eval(), X))
    assert types(source.graph) == ["Tanh", "Add"]
    (note,) = source.notes
    assert ".numpy() is not supported" in note and "captured by a strict export, and compared" in note


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_model_that_export_refuses_is_traced_by_torchscript(monkeypatch: pytest.MonkeyPatch) -> None:
    export = torch.export.export

    def refusing(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if isinstance(module, Function):
            raise RuntimeError("this is not supported")
        return export(module, *args, **kwargs)

    monkeypatch.setattr(torch.export, "export", refusing)
    source = equal(trace(Function(lambda x: torch.relu(x) * 2).eval(), X))
    assert types(source.graph) == ["Relu", "Mul"]
    assert "captured by a TorchScript trace, and compared" in source.notes[0]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::torch.jit.TracerWarning")
def test_trace_that_holds_for_one_input_only_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    export = torch.export.export

    def refusing(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if isinstance(module, Function):
            raise RuntimeError("this is not supported")
        return export(module, *args, **kwargs)

    monkeypatch.setattr(torch.export, "export", refusing)
    with pytest.raises(FrontEndError, match="does not compute what the model does for another input"):
        trace(Function(lambda x: x * 2 if x.sum() > 0 else -x).eval(), X.abs())


def test_fault_of_the_model_is_reported_as_such() -> None:
    with pytest.raises(FrontEndError, match="RuntimeError: mat1 and mat2"):
        trace(Function(lambda x: x @ torch.ones(5, 5)).eval(), X)


# Other forms of models


def traced(model: nn.Module) -> Any:
    return torch.jit.trace(model, (IMAGE,))  # type: ignore[no-untyped-call]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("scripted", [True, False])
def test_torchscript_module(scripted: bool, tmp_path: Path) -> None:
    model = Small().eval()
    script: Any = torch.jit.script(model) if scripted else traced(model)
    source = equal(trace(script, IMAGE))
    assert source.graph.name == "Small"
    assert [node.op.op_type for node in source.graph.nodes] == [
        "Conv", "BatchNormalization", "Relu", "ReduceMean", "Gemm"
    ]  # fmt: skip
    assert {"body.0.weight", "head.bias"} <= {value.name for value in source.graph.constants()}

    script.save(str(tmp_path / "model.ts"))
    loaded = equal(trace(str(tmp_path / "model.ts"), IMAGE))
    assert [node.name for node in loaded.graph.nodes] == ["body.0", "body.1", "body.2", "mean", "head"]
    assert f"{__file__}:" in loaded.graph.nodes[-2].origin.source


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_traced_torchscript_module_knows_its_modules() -> None:
    source = trace(traced(Small().eval()), IMAGE)
    assert [node.name for node in source.graph.nodes] == ["body.0", "body.1", "body.2", "mean", "head"]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_scripted_control_flow_is_followed_where_it_depends_on_sizes() -> None:
    class Loop(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for i in range(x.size(1)):
                x = x * 2 if i % 2 == 0 else x + i
            return x

    source = equal(trace(torch.jit.script(Loop().eval()), X))
    assert types(source.graph) == ["Mul", "Add", "Mul", "Add"]


def test_exported_program_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(Small().eval(), (IMAGE,)), path)
    source = equal(trace(path))
    assert types(source.graph) == ["Conv", "BatchNormalization", "Relu", "ReduceMean", "Gemm"]
    assert list(source.example) == ["x"]


def test_graph_module() -> None:
    source = equal(trace(torch.fx.symbolic_trace(Small()).eval(), IMAGE))
    assert types(source.graph) == ["Conv", "BatchNormalization", "Relu", "ReduceMean", "Gemm"]


@pytest.mark.filterwarnings("ignore::caffeforge.runtime.errors.TrainingModeWarning")
def test_model_named_by_its_function() -> None:
    source = trace("torch.nn:ReLU", X)
    assert types(source.graph) == ["Relu"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.pt2", "no such file"),
        ("torch.nn:Missing", "torch.nn:Missing: AttributeError"),
        ("nowhere.at.all:make", "nowhere.at.all:make: ModuleNotFoundError"),
        ("builtins:list", "builtins:list: gives list, a torch.nn.Module is due"),
        (":list", "names no model"),
    ],
)
def test_what_names_no_model_is_refused(name: str, words: str) -> None:
    with pytest.raises(CaffeforgeError, match=words):
        trace(name, X)


def test_file_of_weights_is_refused(tmp_path: Path) -> None:
    torch.save(Small().state_dict(), tmp_path / "weights.pt")
    with pytest.raises(UsageError, match="PyTorch cannot load it") as caught:
        trace(tmp_path / "weights.pt", IMAGE)
    assert "file of weights" in caught.value.hint


def test_bfloat16_model_is_converted() -> None:
    model = Small().bfloat16().eval()
    source = equal(trace(model, IMAGE.bfloat16()))
    assert {value.dtype for value in source.graph.values()} == {"float32"}
    assert "bfloat16" in source.notes[0]
    assert model.head.weight.dtype is torch.bfloat16


def test_half_precision_model_computes_in_half_precision() -> None:
    source = trace(Small().half().eval(), IMAGE.half())
    result = Executor(source.graph).run(source.example)["head"]
    np.testing.assert_allclose(result, source.reference(source.example)["head"], rtol=2e-2, atol=2e-3)


# Cuts


class Choosy(Small):
    """Ends in code that no trace can follow."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        if y.sum() > 0:
            y = self.body(x)
        scores: torch.Tensor = self.head(y.mean((2, 3)))
        return scores[scores > 0]


def test_cut_ends_the_model_at_modules() -> None:
    model = Choosy().eval()
    source = equal(trace(model, IMAGE, outputs_at=["body.1", "body"]))
    assert types(source.graph) == ["Conv", "BatchNormalization", "Relu"]
    assert [value.name for value in source.graph.outputs] == ["body.1", "body.2"]
    assert "forward" not in vars(model) and not model.body._forward_hooks


def test_cut_at_a_second_call() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> Any:
            return self.layer(self.layer(x)).item()

    source = equal(trace(Twice().eval(), X, outputs_at=["layer@1"]))
    assert types(source.graph) == ["Gemm", "Gemm"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["boddy"], "'boddy', which is no module"),
        (["head@x"], "no module"),
        (["body@3"], "body@3, which the model does not call"),
        ("body", "one text"),
    ],
)
def test_cut_that_does_not_fit_is_refused(names: Any, words: str) -> None:
    model = Small().eval()
    with pytest.raises(UsageError, match=words):
        trace(model, IMAGE, outputs_at=names)
    assert "forward" not in vars(model)


def test_branch_on_values_is_refused_with_the_cut_as_a_hint() -> None:
    with pytest.raises(FrontEndError, match="cannot export Choosy") as caught:
        trace(Choosy().eval(), IMAGE)
    line = Choosy.forward.__code__.co_firstlineno + 2
    assert caught.value.where == f"{__file__}:{line}"
    assert "outputs_at" in caught.value.hint
