"""Every node knows the module and the user's line that it comes from, whatever way it took into the graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from caffeforge.runtime.backends import find
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.torch_front import trace
from tests.torch_front.checking import seeded

X = seeded(2, 3, 4, 4)


class Inner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x[:, 0] = 0  # a part that is put back into its whole
        return torch.logit(x.sigmoid(), 1e-3) + torch.copysign(x, x - 1)  # taken apart, by PyTorch and here


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.act = nn.Hardswish(inplace=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.act(self.inner(x) * 2)


LINES = range(Inner.forward.__code__.co_firstlineno, Outer.forward.__code__.co_firstlineno + 3)


def check(graph: Graph, *, lines: bool = True) -> None:
    """Check that each node has a module of the model, its operator, and a line of this file."""
    assert graph.nodes
    for node in graph.nodes:
        assert node.origin.module in ("", "inner", "act"), node
        assert node.origin.op, node
        if lines:
            file, _, line = node.origin.source.rpartition(":")
            assert file.endswith("test_provenance.py") and int(line) in LINES, node.origin
    assert {node.origin.module for node in graph.nodes} == {"", "inner", "act"}


def test_an_export() -> None:
    check(trace(Outer().eval(), X).graph)


def test_open_sizes() -> None:
    graph = trace(Outer().eval(), X, dynamic_shapes=[{0: "N", 2: "H"}]).graph
    check(graph)


def test_layers_of_a_net() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Hardswish(), nn.GELU()).eval()
    graph = trace(model, X).graph
    for call in legalize(graph, find("bvlc")):
        assert call.node.origin.module in ("0", "1", "2"), call
    assert len(legalize(graph, find("bvlc"))) > 3


def test_a_trace_of_a_model_that_torch_export_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise RuntimeError("refused")

    original = torch.export.export

    def scripts_only(module: Any, *args: Any, **kwargs: Any) -> Any:
        return original(module, *args, **kwargs) if type(module).__name__ == "FromScript" else refused()

    monkeypatch.setattr(torch.export, "export", scripts_only)
    source = trace(Outer().eval(), X)
    assert any("TorchScript trace" in note for note in source.notes)
    check(source.graph)


def test_a_torchscript_file(tmp_path: Path) -> None:
    torch.jit.trace(Outer().eval(), X).save(tmp_path / "net.pt")  # type: ignore[no-untyped-call]
    check(trace(tmp_path / "net.pt", X).graph)


def test_an_exported_program(tmp_path: Path) -> None:
    torch.export.save(torch.export.export(Outer().eval(), (X,)), tmp_path / "net.pt2")
    check(trace(tmp_path / "net.pt2").graph)


def test_a_graph_module_knows_the_modules_that_it_calls() -> None:
    """Its code is generated, so that there is no line of the user's."""
    model = torch.fx.symbolic_trace(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval())
    graph = trace(model, X).graph
    assert [node.origin.module for node in graph.nodes] == ["0", "1"]
    assert [node.origin.op for node in graph.nodes] == ["aten.conv2d.default", "aten.relu.default"]
