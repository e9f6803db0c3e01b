"""Which operators have a place in the hub: those of networks, and PyTorch's core set."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch._ops import OpOverload

from caffeforge.runtime.torch_front import trace as trace  # registers the handlers
from caffeforge.runtime.torch_front.complex_ops import COMPLEX_HANDLERS
from caffeforge.runtime.torch_front.decompose import decomposes
from caffeforge.runtime.torch_front.folding import is_folded
from caffeforge.runtime.torch_front.refusals import reason
from caffeforge.runtime.torch_front.registry import HANDLERS
from caffeforge.runtime.torch_front.traced import CHECKS

OVERLOADS = (Path(__file__).parent / "network_overloads.txt").read_text().split()

# What core ATen holds and a net does not: the text of each reason stands in refusals.py.
LEFT_OUT = {
    "_adaptive_avg_pool2d_backward.default",
    "_embedding_bag.default",
    "_local_scalar_dense.default",
    "_native_batch_norm_legit.default",
    "_pdist_forward.default",
    "avg_pool2d_backward.default",
    "convolution_backward.default",
    "embedding_dense_backward.default",
    "empty_strided.default",
    "max_pool2d_with_indices_backward.default",
    "native_dropout.default",
    "native_group_norm_backward.default",
    "native_layer_norm_backward.default",
    "nonzero.default",
    "rand.default",
    "randn.default",
    "randperm.default",
    "resize_.default",
    "sym_is_contiguous.default",
    "sym_numel.default",
    "sym_size.int",
    "sym_storage_offset.default",
    "sym_stride.int",
}


def overload(name: str) -> OpOverload:
    """Return the overload named as ``aten.conv2d.default``."""
    _, packet, own = name.split(".")
    found: OpOverload = getattr(getattr(torch.ops.aten, packet), own)
    return found


def functional(op: OpOverload) -> OpOverload:
    """Return the overload that an in-place one is replaced by."""
    if not op._schema.is_mutable:
        return op
    name = op._schema.name.rpartition("::")[2].removesuffix("_")
    found: OpOverload = getattr(getattr(torch.ops.aten, name), op._overloadname)
    return found


def core() -> list[OpOverload]:
    """Return the overloads that PyTorch tags as its core set, without those that write to `out`."""
    found = []
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        if isinstance(packet, torch._ops.OpOverloadPacket):
            for own in packet.overloads():  # type: ignore[no-untyped-call]
                op = getattr(packet, own)
                if torch.Tag.core in op.tags and not own.endswith("out"):
                    found.append(op)
    return found


@pytest.mark.parametrize("name", OVERLOADS)
def test_operator_of_a_network_has_a_handler(name: str) -> None:
    op = functional(overload(name))
    assert op in HANDLERS or op in CHECKS or is_folded(op)


@pytest.mark.parametrize("op", core(), ids=str)
def test_core_operator_is_lowered_or_left_out_with_a_reason(op: OpOverload) -> None:
    name = str(op).removeprefix("aten.")
    if name in LEFT_OUT:
        assert op not in HANDLERS
        assert reason(str(op))
    else:
        assert op in HANDLERS or op in COMPLEX_HANDLERS or is_folded(op) or decomposes(op)
