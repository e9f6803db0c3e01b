"""Attention as products and softmax, the form that lowers to layers of every kind."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.symbol import Dim
from caffeforge.runtime.torch_front.call import Call, broadcast
from caffeforge.runtime.torch_front.layout import gathered, swapped
from caffeforge.runtime.torch_front.registry import Result, torch_op

aten = torch.ops.aten


@torch_op(aten._scaled_dot_product_flash_attention_for_cpu.default)
def flash_attention(call: Call) -> Result:
    """Become the same as the operator that programs are decomposed from; its logarithms are no results.

    aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value,
    float dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None)
    -> (Tensor output, Tensor logsumexp)
    """
    return [_attention(call), None]


@torch_op(aten.scaled_dot_product_attention.default)
def attention(call: Call) -> Value:
    """Become softmax(Q * scale @ K^T + mask) @ V.

    aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None,
    float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor
    """
    return _attention(call)


def _attention(call: Call) -> Value:
    if call.argument("dropout_p"):
        raise call.error("drops elements at random", hint="pass dropout_p only if self.training")
    query, key, value = (call.value(name) for name in ("query", "key", "value"))
    if call.has("enable_gqa") and call.argument("enable_gqa"):
        key, value = (_for_all_heads(call, x, query.shape[-3]) for x in (key, value))
    scale = call.argument("scale")
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    scaled = call.pointwise(hub.Mul(), query, call.full((), factor))
    rank = key.rank
    turned = swapped(call, key, rank - 2, rank - 1)
    batch = broadcast(query.dims[:-2], key.dims[:-2])
    dims = (*batch, query.dims[-2], key.dims[-2])
    scores = call.helper(hub.MatMul(), scaled, turned, dims=dims)
    mask = _causal(call, dims) if call.argument("is_causal") else call.optional("attn_mask")
    choice = mask if mask is not None and mask.dtype == "bool" else None
    if choice is not None:
        scores = call.pointwise(hub.Where(), choice, scores, call.full((), -math.inf), dtype=call.dtype)
    elif mask is not None:
        scores = call.pointwise(hub.Add(), scores, mask)
    weights = call.pointwise(hub.Softmax(axis=scores.rank - 1), scores)
    if choice is not None and not _reads_something(choice):
        # A row without any true element gives zeros in PyTorch; its softmax is NaN.
        weights = call.pointwise(hub.Where(), choice, weights, call.full((), 0.0), dtype=call.dtype)
    return call.node(hub.MatMul(), weights, value)


def _causal(call: Call, dims: Sequence[Dim]) -> Value:
    """Return the mask by which each query reads no later key: 0, or -inf, to be added."""
    rows, columns = dims[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        hidden = call.full((rows, columns), -math.inf)
        return call.helper(hub.Trilu(upper=1, k=1), hidden, dims=(rows, columns))
    allowed = np.tri(rows, columns) > 0
    return constant("", Dense(np.where(allowed, 0.0, -np.inf).astype(call.dtype)))


def _for_all_heads(call: Call, x: Value, heads: int) -> Value:
    """Return keys or values repeated until there are as many heads as queries have."""
    axis = x.rank - 3
    places = np.repeat(np.arange(x.shape[axis], dtype=np.int64), heads // x.shape[axis])
    return gathered(call, x, constant("", Dense(places)), axis)


def _reads_something(mask: Value) -> bool:
    """Tell whether it is known that every row of a mask has a true element."""
    return mask.data is not None and bool(mask.data.numpy().any(-1).all())
