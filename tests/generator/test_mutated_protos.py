"""A changed schema gives right files or a refusal: protobuf under the changed schema says which.

``python -m tests.generator.test_mutated_protos 500`` tries that many.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from torch import nn

from caffeforge.generator.diagnostics import GenerationError
from caffeforge.generator.generate import generate, write
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.errors import CaffeforgeError
from tests.generator.dialects import imported
from tests.generator.judge import Judge
from tests.generator.mutated import compiled, mutate


class Small(nn.Module):
    """Strides, padding, groups, a pool of each kind, a sum and a product: what the layers can get wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0), bias=False)
        self.norm = nn.BatchNorm2d(4, eps=1e-3)
        self.second = nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.head = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x)))
        x = nn.functional.leaky_relu(self.second(x), 0.2) + 0.5 * x
        x = nn.functional.max_pool2d(x, 2, 2).mean((2, 3))
        found: torch.Tensor = self.head(x)
        return found


@cache
def program() -> tuple[torch.export.ExportedProgram, torch.Tensor]:
    """Return a network, exported once, with an input."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        image = torch.randn(1, 3, 8, 9)
        return torch.export.export(Small().eval(), (image,)), image


@cache
def original() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "caffe.proto")
        path.write_bytes((SCHEMAS / "bvlc" / "caffe.proto").read_bytes())
        return compiled(path)


def judge(file: Any) -> Judge:
    """Return protobuf's reader of a changed schema."""
    found = Judge.__new__(Judge)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found.net_parameter = message_factory.GetMessageClass(pool.FindMessageTypeByName("caffe.NetParameter"))
    return found


def outcome(seed: int, folder: Path) -> str:
    """Return what becomes of a changed schema: written, or the kind of refusal; AssertionError if wrong."""
    file = mutate(original(), seed)
    source = folder / f"vendor{seed}"
    source.mkdir()
    (source / "caffe.pb").write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    try:
        package = generate(source)
        write(package, folder / "out")
        module = imported(folder / "out" / package.name)
        model, image = program()
        module.export(model, image, folder / f"net{seed}")  # verifies the files by our own reader
    except GenerationError:
        return "no backend"
    except CaffeforgeError as error:
        return type(error).__name__
    net = judge(file).net(folder / f"net{seed}")
    check(net)
    return "written"


def check(net: Any) -> None:
    """Check what a reader of the schema sees: its own defaults where a field is absent."""
    convolutions = [layer.convolution_param for layer in net.layer if layer.type == "Convolution"]
    for param, size, stride, pad, group in zip(
        convolutions, ((3, 2), (3, 3)), ((2, 1), (1, 1)), ((1, 0), (1, 1)), (1, 4), strict=True
    ):
        assert (param.num_output, param.group) == (4, group)
        assert (param.kernel_h, param.kernel_w) == size
        assert (param.stride_h or 1, param.stride_w or 1) == stride
        assert (param.pad_h, param.pad_w) == pad
        assert set(getattr(param, "dilation", ())) <= {1}
    (pool,) = [p for p in (lay.pooling_param for lay in net.layer if lay.type == "Pooling") if p.pool == 0]
    assert (pool.kernel_h, pool.kernel_w, pool.stride_h, pool.stride_w) == (2, 2, 2, 2)
    assert not getattr(pool, "global_pooling", False)
    (head,) = [layer.inner_product_param for layer in net.layer if layer.type == "InnerProduct"]
    assert head.num_output == 5 and not getattr(head, "transpose", False)


@pytest.mark.parametrize("seed", range(8))
def test_a_changed_schema_gives_right_files_or_a_refusal(seed: int, tmp_path: Path) -> None:
    assert outcome(seed, tmp_path)


if __name__ == "__main__":
    first, count = 1000, int(sys.argv[1])
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(first, first + count):
            try:
                counts[outcome(number, Path(scratch))] += 1
            except Exception as error:
                counts[f"wrong: {number}: {type(error).__name__}: {str(error)[:300]}"] += 1
    for text, times in counts.most_common():
        print(times, text)
