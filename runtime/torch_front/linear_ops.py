"""Matrix products."""

from __future__ import annotations

import torch

from caffeforge.generated import hub
from caffeforge.runtime.array import transpose
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten


@torch_op(aten.linear.default)
def linear(call: Call) -> Value:
    """Multiply by the transposed weight: one Gemm for a matrix, MatMul and Add for another rank.

    aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
    """
    x, weight, bias = call.value("input"), call.value("weight"), call.optional("bias")
    if x.rank == 2 and weight.rank == 2:
        return call.node(hub.Gemm(transB=1), x, weight, bias)
    if weight.rank != 2:
        raise call.error(f"multiplies by a weight of rank {weight.rank}", hint="give a weight (out, in)")
    if weight.data is not None:
        transposed = constant("", transpose(weight.data, (1, 0)))
    else:
        transposed = call.helper(hub.Transpose(perm=(1, 0)), weight, dims=weight.dims[::-1])
    if bias is None:
        return call.node(hub.MatMul(), x, transposed)
    return call.node(hub.Add(), call.helper(hub.MatMul(), x, transposed, dims=call.dims), bias)
