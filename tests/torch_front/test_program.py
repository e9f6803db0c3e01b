"""Capturing: what is accepted, and whose line stands in an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from caffeforge.runtime.errors import FrontEndError, TrainingModeWarning, UsageError
from caffeforge.runtime.torch_front import trace
from tests.torch_front.checking import Function, checked, ops, seeded, types


def line_of(function: Any, offset: int = 1) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def test_branch_on_values_names_the_line_within_a_helper(capfd: pytest.CaptureFixture[str]) -> None:
    def helper(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x

    with pytest.raises(FrontEndError, match="cannot export Function") as caught:
        trace(Function(lambda x: helper(x * 2)), seeded(3))
    assert caught.value.where == line_of(helper)
    assert "torch.where" in caught.value.hint
    assert capfd.readouterr() == ("", "")


def test_fault_of_the_model_names_the_line() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    with pytest.raises(FrontEndError, match="RuntimeError") as caught:
        trace(Function(model), seeded(2, 3))
    assert caught.value.where == line_of(model)


def test_what_a_working_model_prints_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        print("hello")
        return x + 1

    trace(Function(model), seeded(3))
    assert capsys.readouterr().out == "hello\n"


@pytest.mark.parametrize("model", [torch.relu, None, nn.ReLU])
def test_what_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(UsageError, match="cannot be traced"):
        trace(model, seeded(3))


def test_weight_without_elements_is_refused_by_name() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.Conv2d(3, 3, 1, device="meta"))
    with pytest.raises(FrontEndError, match=r"weight 1\.weight lies on the meta device"):
        trace(model, seeded(1, 2, 4, 4))


def test_weight_without_shape_is_refused_by_name() -> None:
    with pytest.raises(FrontEndError, match=r"parameter 0\.weight of a lazy module"):
        trace(nn.Sequential(nn.LazyLinear(3)), seeded(1, 2))


def dropping() -> nn.Sequential:
    return nn.Sequential(nn.BatchNorm2d(2), nn.Sequential(nn.Dropout(), nn.ReLU()))


def test_training_mode_is_left_for_the_trace_and_noted() -> None:
    model = dropping().train()
    with pytest.warns(TrainingModeWarning, match="the model is in training mode"):
        source = trace(model, seeded(1, 2, 4, 4))
    assert types(source.graph) == ["BatchNormalization", "Relu"]
    assert len(source.notes) == 1 and source.notes[0].startswith("the model is in training mode")
    source.reference(source.example)
    assert all(module.training for module in model.modules())
    assert torch.equal(model.state_dict()["0.running_mean"], torch.zeros(2))


def test_training_mode_of_a_part_is_noted_by_name_and_restored() -> None:
    model = dropping().eval()
    model.get_submodule("1.0").train()
    source = trace(model, seeded(1, 2, 4, 4))
    assert [note.split(" in training")[0] for note in source.notes] == ["1.0 is"]
    assert [path for path, module in model.named_modules() if module.training] == ["1.0"]


def test_training_mode_is_restored_after_a_failure() -> None:
    model = Function(lambda x: x @ x).train()
    with pytest.raises(FrontEndError):
        trace(model, seeded(2, 3))
    assert model.training


def test_evaluation_mode_is_not_worth_a_note() -> None:
    assert trace(dropping().eval(), seeded(1, 2, 4, 4)).notes == []


def test_settings_of_pytorch_are_as_before() -> None:
    enabled, gradients = torch.backends.mha.get_fastpath_enabled(), torch.is_grad_enabled()
    with pytest.raises(FrontEndError):
        trace(Function(lambda x: x @ x), seeded(2, 3))
    assert (torch.backends.mha.get_fastpath_enabled(), torch.is_grad_enabled()) == (enabled, gradients)


def test_no_grad_within_a_model_is_no_operator() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = x + 1
        return y * 2

    assert types(checked(model, seeded(3)).graph) == ["Add", "Mul"]


def test_operators_without_handler_are_listed_at_once() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Softsign(), Function(torch.digamma))
            self.second = Function(torch.digamma)

        def forward(self, x: torch.Tensor) -> Any:
            return torch.special.i0(self.second(self.first(x)))[x > 0]

    with pytest.raises(FrontEndError) as caught:
        trace(Odd().eval(), seeded(2, 3))
    line = Odd.forward.__code__.co_firstlineno + 1
    for words in (
        "aten.digamma.default, 2 times, first in module first.1 (",
        f"aten.i0.default (of aten.special_i0.default), 1 time, first in the model ({__file__}:{line})",
        f"the model ({__file__}:{line}): aten.index.Tensor: the size of its result depends",
    ):
        assert words in caught.value.what
    assert "torch_op" in caught.value.hint


def test_control_flow_operator_is_listed() -> None:
    def model(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    with pytest.raises(FrontEndError, match="cond"):
        trace(Function(model), seeded(3))


def test_operator_that_no_output_needs_is_dropped() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        torch.erf(x)
        return x + 1

    assert types(checked(model, seeded(3)).graph) == ["Add"]


def exported(model: nn.Module, *inputs: torch.Tensor, **options: Any) -> torch.export.ExportedProgram:
    return torch.export.export(model.eval(), inputs, **options)


@pytest.mark.parametrize("strict", [False, True])
def test_program_gives_the_graph_of_its_module(strict: bool) -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(12, 2)).eval()
    x = seeded(1, 2, 4, 4)
    source = trace(exported(model, x, strict=strict))
    expected = trace(model, x)
    assert ops(source.graph) == ops(expected.graph)
    assert [node.name for node in source.graph.nodes] == ["0", "1", "2", "3"]
    assert [v.name for v in source.graph.constants()] == [v.name for v in expected.graph.constants()]
    reference = source.reference(source.example)
    for name, array in expected.reference({"input": x.numpy()}).items():
        np.testing.assert_allclose(reference[name], array, rtol=1e-6, atol=1e-7)


def test_program_is_not_changed() -> None:
    program = exported(nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(inplace=True)), seeded(1, 2, 4, 4))
    before = str(program.graph)
    assert trace(program).graph.dump() == trace(program).graph.dump()
    assert str(program.graph) == before


def test_program_exported_in_training_mode_is_refused() -> None:
    program = torch.export.export(nn.Sequential(nn.Dropout()).train(), (seeded(3),))
    with pytest.raises(FrontEndError, match="drops elements at random"):
        trace(program)


def test_program_that_changes_its_buffers_is_refused() -> None:
    program = torch.export.export(nn.Sequential(nn.BatchNorm2d(2)).train(), (seeded(1, 2, 4, 4),))
    with pytest.raises(FrontEndError):
        trace(program)


def test_inputs_that_do_not_fit_the_program_are_refused() -> None:
    program = exported(nn.ReLU(), seeded(2, 3))
    with pytest.raises(UsageError, match=r"\[2, 3\], torch.float32 \[2, 4\] is given"):
        trace(program, seeded(2, 4))
    with pytest.raises(UsageError, match="takes 1 inputs, 2 are given"):
        trace(program, (seeded(2, 3), seeded(2, 3)))


def test_decomposed_program_that_writes_into_its_input_keeps_its_outputs() -> None:
    program = exported(nn.Sequential(nn.ReLU(inplace=True), nn.Tanh()), seeded(2, 3)).run_decompositions({})
    source = trace(program)
    assert types(source.graph) == ["Relu", "Tanh"]
    assert [value.name for value in source.graph.outputs] == ["1"]


def test_complex_numbers_without_place_in_the_hub_are_refused_with_their_line() -> None:
    def model(x: torch.Tensor) -> Any:
        return torch.angle(torch.fft.fft(x).exp())

    with pytest.raises(FrontEndError) as caught:
        trace(Function(model), seeded(4))
    for name in ("aten.exp.default", "aten.angle.default", "the hub has no complex numbers"):
        assert name in caught.value.what
