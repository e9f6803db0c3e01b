"""Traces the samples of PyTorch's own operator tests, executes them, and prints a table; not run by pytest.

    python tests/torch_front/opinfo.py [core | all | NAME ...] [--samples N]

Needs the package expecttest, which ``torch.testing`` imports. Each row counts the samples that are equal,
that are refused with a reason, that are neither, of which there must be none, and those of which the docs say
that the result is another one: the place of an extreme among NaN, and memory beyond the tensor that is given.
An operator that makes a tensor of numbers alone is added to an input.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.torch_front import nest, trace

EQUAL, REFUSED, WRONG, DOCUMENTED = "equal", "refused", "WRONG", "documented"
_TENSOR = object()
_PLACES = ("argmax", "argmin")


class Sampled(torch.nn.Module):
    """An operator applied to a sample's arguments, of which the tensors are the module's inputs."""

    def __init__(self, function: Any, sample: Any, *, empty: bool) -> None:
        super().__init__()
        self.function = function
        self.empty = empty  # what it makes holds no numbers that could be compared
        leaves, self.spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self.tensors = [leaf.detach().clone() for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self.template = [_TENSOR if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.makes = not self.tensors
        if self.makes:
            self.tensors = [torch.zeros(())]

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        if self.makes:
            args, kwargs = pytree.tree_unflatten(self.template, self.spec)
            made = self.function(*args, **kwargs)
            return (torch.zeros_like(made) if self.empty else made) + tensors[0].to(made.dtype)
        leaves = [next(given) if leaf is _TENSOR else leaf for leaf in self.template]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)


def outcome(op: Any, sample: Any) -> tuple[str, str]:
    """Return how one sample of an operator ends, and what there is to say."""
    module = Sampled(op.op, sample, empty="empty" in op.name).eval()
    inputs = tuple(module.tensors)
    if op.name.rpartition(".")[2] in _PLACES and any(tensor.isnan().any() for tensor in inputs):
        return DOCUMENTED, "places among NaN"
    try:
        expected = nest.tensors(module(*[tensor.clone() for tensor in inputs]))
    except RuntimeError as error:
        if "out of bounds for storage" in str(error):
            return DOCUMENTED, "memory beyond the tensor"
        raise
    try:
        source = trace(module, inputs)
    except CaffeforgeError as error:
        return REFUSED, " ".join(error.what.split())
    except Exception as error:
        return WRONG, f"trace fails: {_line(error)}"
    try:
        computed = list(Executor(source.graph).run(source.example).values())
    except CaffeforgeError as error:
        return WRONG, f"execution fails: {_line(error)}"
    for array, tensor in zip(computed, expected, strict=True):
        values = tensor.detach().numpy()
        if array.dtype != values.dtype or array.shape != values.shape:
            return WRONG, f"{array.dtype}{array.shape} for {values.dtype}{values.shape}"
        if not np.allclose(array, values, rtol=1e-4, atol=1e-5, equal_nan=True):
            return WRONG, "other numbers"
    return EQUAL, ""


def chosen(names: list[str]) -> list[Any]:
    """Return the operators that the command line names."""
    from torch.testing._internal.common_methods_invocations import op_db

    floats = [op for op in op_db if op.supports_dtype(torch.float32, "cpu")]
    if names == ["all"]:
        return floats
    if names != ["core"]:
        return [op for op in floats if op.name in names]
    aten = torch.ops.aten
    core = {
        name
        for name in dir(aten)
        if isinstance(packet := getattr(aten, name), torch._ops.OpOverloadPacket)
        and any(torch.Tag.core in getattr(packet, own).tags for own in _overloads(packet))
    }
    return [op for op in floats if {op.aten_name, op.name.rpartition(".")[2]} & core]


def ends(op: Any, limit: int) -> dict[str, list[str]]:
    """Return the samples of an operator, `limit` at most, by how they end: what there is to say of each."""
    torch.manual_seed(0)
    samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=False))
    count = min(len(samples), limit)
    found: dict[str, list[str]] = defaultdict(list)
    for index in range(count):
        end, words = outcome(op, samples[index * len(samples) // count])
        found[end].append(words)
    return found


def full_name(op: Any) -> str:
    """Return the name of an operator with that of its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def _overloads(packet: Any) -> list[str]:
    names: list[str] = packet.overloads()
    return names


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def main() -> None:
    """Print the table for what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=["core"])
    parser.add_argument("--samples", type=int, default=10, help="at most so many an operator")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    total: Counter[str] = Counter()
    for op in chosen(options.names):
        found = ends(op, options.samples)
        total.update({end: len(words) for end, words in found.items()})
        counts = ", ".join(f"{len(words)} {end}" for end, words in found.items())
        print(f"{full_name(op):50} {counts}", flush=True)
        for end in (WRONG, REFUSED):
            for words in dict.fromkeys(found.get(end, ())):
                print(f"    {end}: {words[:220]}", flush=True)
    print(dict(total))


if __name__ == "__main__":
    main()
