"""Matrix products."""

from __future__ import annotations

import torch

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.layout import transposed, unsqueezed
from caffeforge.runtime.torch_front.reduce_ops import norm_over
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
    product = call.helper(hub.MatMul(), x, transposed(call, weight, (1, 0)), dims=call.dims)
    return product if bias is None else call.node(hub.Add(), product, bias)


@torch_op(aten.matmul.default, aten.linalg_matmul.default)
def matmul(call: Call) -> Value:
    """Lower as it is: PyTorch and ONNX treat vectors and batches alike.

    aten::matmul(Tensor self, Tensor other) -> Tensor
    aten::linalg_matmul(Tensor self, Tensor other) -> Tensor
    """
    return call.node(hub.MatMul(), call.value("self"), call.value("other"))


@torch_op(aten.mm.default, aten.bmm.default)
def mm(call: Call) -> Value:
    """Lower as it is.

    aten::mm(Tensor self, Tensor mat2) -> Tensor
    aten::bmm(Tensor self, Tensor mat2) -> Tensor
    """
    return call.node(hub.MatMul(), call.value("self"), call.value("mat2"))


@torch_op(aten.mv.default)
def mv(call: Call) -> Value:
    """Multiply a matrix and a vector: aten::mv(Tensor self, Tensor vec) -> Tensor."""
    return call.node(hub.MatMul(), call.value("self"), call.value("vec"))


@torch_op(aten.dot.default)
def dot(call: Call) -> Value:
    """Multiply two vectors: aten::dot(Tensor self, Tensor tensor) -> Tensor."""
    return call.node(hub.MatMul(), call.value("self"), call.value("tensor"))


@torch_op(aten.outer.default)
def outer(call: Call) -> Value:
    """Multiply every element by every other: aten::outer(Tensor self, Tensor vec2) -> Tensor."""
    column = unsqueezed(call, call.operand("self"), 1)
    return call.node(hub.Mul(), column, unsqueezed(call, call.operand("vec2"), 0))


@torch_op(aten.addmm.default)
def addmm(call: Call) -> Value:
    """Become a Gemm.

    aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    """
    beta, alpha = call.argument("beta"), call.argument("alpha")
    if "float" in call.dtype:
        addend = call.value("self") if beta else None
        op = hub.Gemm(alpha=float(alpha), beta=float(beta) if beta else 1.0)
        return call.node(op, call.value("mat1"), call.value("mat2"), addend)
    return _added_product(call, "mat1", "mat2")


@torch_op(aten.baddbmm.default)
def baddbmm(call: Call) -> Value:
    """Multiply, scale and add.

    aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    """
    return _added_product(call, "batch1", "batch2")


@torch_op(aten.addmv.default)
def addmv(call: Call) -> Value:
    """Multiply, scale and add.

    aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    """
    return _added_product(call, "mat", "vec")


@torch_op(aten.bilinear.default)
def bilinear(call: Call) -> Value:
    """Multiply by both inputs, for each output by a matrix of its own.

    aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor
    """
    operands = [call.value(name) for name in ("input1", "weight", "input2")]
    product = call.helper(hub.Einsum(equation="...i,oij,...j->...o"), *operands, dims=call.dims)
    bias = call.optional("bias")
    return product if bias is None else call.node(hub.Add(), product, bias)


@torch_op(aten.cdist.default, aten._cdist_forward.default)
def cdist(call: Call) -> Value:
    """Take the norm of every row of the first less every row of the second.

    aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor
    aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor
    """
    first, second = call.operand("x1"), call.operand("x2")
    rows = unsqueezed(call, first, first.rank - 1)
    columns = unsqueezed(call, second, second.rank - 2)
    apart = call.pointwise(hub.Sub(), rows, columns)
    return norm_over(call, apart, float(call.argument("p")), (apart.rank - 1,))


@torch_op(aten.dist.default)
def dist(call: Call) -> Value:
    """Take the norm of the difference: aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor."""
    apart = call.pointwise(hub.Sub(), call.operand("self"), call.operand("other"))
    return norm_over(call, apart, float(call.argument("p")), range(apart.rank))


@torch_op(aten.einsum.default)
def einsum(call: Call) -> Value:
    """Lower as it is, with the result's letters written out.

    aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor
    """
    equation = call.argument("equation").replace(" ", "")
    if "->" not in equation:
        letters = sorted(set(equation) - set(",."))
        once = "".join(letter for letter in letters if equation.count(letter) == 1)
        equation += "->" + ("..." if "..." in equation else "") + once
    return call.node(hub.Einsum(equation=equation), *call.values("tensors"))


def _added_product(call: Call, first: str, second: str) -> Value:
    product = call.helper(hub.MatMul(), call.value(first), call.value(second), dims=call.dims)
    alpha, beta = call.argument("alpha"), call.argument("beta")
    if alpha != 1:
        product = call.pointwise(hub.Mul(), product, call.full((), alpha))
    if not beta:
        return product
    addend = call.value("self")
    if beta != 1:
        addend = call.pointwise(hub.Mul(), addend, call.full((), beta))
    return call.node(hub.Add(), addend, product)
