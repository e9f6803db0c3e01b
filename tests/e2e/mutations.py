"""Damaged nets: what reading makes of every truncation, and of random changes, of three small nets.

``python -m tests.e2e.mutations 100000`` tries so many changes; a sample of them is a test. Each must end in a
sentence of ours, or in a net; of a caffemodel that is read, protobuf must read the same weights. A file must
not take more than a second, nor the process more memory than the limit below.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.backends import find
from caffeforge.runtime.caffe_files import read_files
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.hub_from_net import hub_from_net
from tests.e2e import vendor
from tests.e2e.layer_cases import Random

SECONDS = 1.0
MEMORY = 3 << 30  # bytes of addresses beyond those in use
TODAY = """name: 'today'
input: 'data' input_shape { dim: 1 dim: 2 dim: 7 dim: 7 }
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
  convolution_param { num_output: 3 kernel_size: 3 pad: 1 stride: 2 weight_filler { type: "xavier" } } }
layer { name: 'bn' type: 'BatchNorm' bottom: 'conv' top: 'conv' batch_norm_param { eps: 1e-3 } }
layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' relu_param { negative_slope: 0.1 } }
layer { name: 'fc' type: 'InnerProduct' bottom: 'conv' top: 'fc' inner_product_param { num_output: 4 } }
layer { name: 'prob' type: 'Softmax' bottom: 'fc' top: 'prob' include { phase: TEST } }
"""
V1 = """name: "v1" input: "data"
input_dim: 1 input_dim: 2 input_dim: 6 input_dim: 6
layers { name: "conv" type: CONVOLUTION bottom: "data" top: "conv" blobs_lr: 1
  convolution_param { num_output: 2 kernel_size: 3 } }
layers { name: "pool" type: POOLING bottom: "conv" top: "pool" pooling_param { pool: AVE kernel_size: 2 } }
layers { name: "tanh" type: TANH bottom: "pool" top: "tanh" }
"""
SSD = """name: 'ssd'
layer { name: 'data' type: 'Input' top: 'data' input_param { shape: { dim: [1, 2, 6, 6] } } }
layer { name: 'norm' type: 'Normalize' bottom: 'data' top: 'norm'
  norm_param { across_spatial: false channel_shared: false } }
layer { name: 'perm' type: 'Permute' bottom: 'norm' top: 'perm' permute_param { order: [0, 2, 3, 1] } }
layer { name: 'prior' type: 'PriorBox' bottom: 'norm' bottom: 'data' top: 'prior'
  prior_box_param { min_size: 2 max_size: 4 aspect_ratio: 2 flip: true variance: 0.1 } }
"""
NETS: dict[str, tuple[str, str, dict[str, list[tuple[int, ...]]]]] = {
    "today": (TODAY, "bvlc", {"conv": [(3, 2, 3, 3), (3,)], "bn": [(3,), (3,), (1,)], "fc": [(4, 48), (4,)]}),
    "v1": (V1, "bvlc", {"conv": [(2, 2, 3, 3), (2,)]}),
    "ssd": (SSD, "ssd", {"norm": [(2,)]}),
}


@dataclass
class Tried:
    """What came of the tries: how many ended how, and those that ended as they must not."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0


@dataclass(frozen=True)
class Victim:
    """One net's files, of which one is damaged at a time."""

    name: str
    folder: Path

    @property
    def dialect(self) -> str:
        return NETS[self.name][1]

    def write(self) -> tuple[bytes, bytes]:
        """Write the sound files; return the bytes of text and weights."""
        text, dialect, shapes = NETS[self.name]
        random = Random(0)
        proto = vendor.parse(text, dialect)
        for layer in proto.layers if self.name == "v1" else proto.layer:
            for shape in shapes.get(layer.name, ()):
                blob = layer.blobs.add()
                if self.name == "v1":
                    blob.num, blob.channels, blob.height, blob.width = (1,) * (4 - len(shape)) + shape
                else:
                    blob.shape.dim.extend(shape)
                blob.data.extend(random.positive(int(np.prod(shape))).tolist())
        files = text.encode(), bytes(proto.SerializeToString())
        for path, data in zip(self.paths, files, strict=True):
            path.write_bytes(data)
        return files

    @property
    def paths(self) -> tuple[Path, Path]:
        return self.folder / f"{self.name}.prototxt", self.folder / f"{self.name}.caffemodel"

    def read(self, index: int, data: bytes, tried: Tried) -> None:
        """Read the net with one file replaced by `data`, and note what came of it."""
        paths = list(self.paths)
        paths[index] = self.folder / f"damaged{paths[index].suffix}"
        paths[index].write_bytes(data)
        began = time.process_time()
        try:
            outcome = self._read(paths, data if index else None)
        except CaffeforgeError as error:
            outcome = "refused" if str(error).strip() and "\x00" not in str(error) else "wrong: no sentence"
        except BaseException as error:
            outcome = f"wrong: {type(error).__name__}: {error}"[:300]
        spent = time.process_time() - began
        tried.slowest = max(tried.slowest, spent)
        if spent > SECONDS:
            outcome = f"wrong: {spent:.1f} s"
        tried.outcomes[outcome.partition(":")[0]] += 1
        if outcome.startswith("wrong"):
            tried.wrong.append(f"{self.name} {paths[index].suffix} {data!r}: {outcome}")

    def _read(self, paths: list[Path], weights: bytes | None) -> str:
        backend = _backend(self.dialect)
        net = read_files(paths[0], paths[1], backend)
        hub_from_net(net, backend).graph.verify()
        if weights is not None:
            try:
                theirs = vendor.net_parameter(self.dialect).FromString(weights)
            except DecodeError:
                return "read, and refused by protobuf"  # for what stands between that we do not read
            saved = {layer.name: layer for layer in (*theirs.layer, *theirs.layers)}
            for layer in net.layers:
                blobs = (
                    [list(b.double_data or b.data) for b in saved[layer.name].blobs] if layer.blobs else []
                )
                for ours, expected in zip(layer.blobs, blobs, strict=True):
                    if not np.array_equal(ours.numpy().ravel(), expected, equal_nan=True):
                        return f"wrong: other weights of {layer.name}"
        return "read"


@cache
def _backend(dialect: str) -> Backend:
    return find(dialect)


def truncations(data: bytes) -> Iterator[bytes]:
    """Yield the beginnings of a file, all of them."""
    return (data[:stop] for stop in range(len(data)))


def mutations(data: bytes, random: np.random.Generator, count: int) -> Iterator[bytes]:
    """Yield `count` changed files: bits and bytes changed, parts left out, repeated and put in."""
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(int(random.integers(1, 4))):
            at = int(random.integers(0, max(len(changed), 1)))
            size = int(random.choice([1, 1, 2, 5, 30]))
            match int(random.integers(0, 5)):
                case 0 if changed:
                    changed[at] ^= 1 << int(random.integers(0, 8))
                case 1 if changed:
                    changed[at] = int(random.choice([0, 1, 0x7F, 0x80, 0xFF, 0x2A]))
                case 2:
                    del changed[at : at + size]
                case 3:
                    changed[at:at] = data[at : at + size]
                case _:
                    changed[at:at] = random.bytes(size)
        yield bytes(changed)


def run(folder: Path, count: int, every: int = 1) -> Tried:
    """Try every `every`-th truncation and `count` mutations of all files."""
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    tried = Tried()
    random = np.random.default_rng(0)
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY, limits[1]))
    try:
        for name in NETS:
            victim = Victim(name, folder)
            for index, data in enumerate(victim.write()):
                for number, cut in enumerate(truncations(data)):
                    if number % every == 0:
                        victim.read(index, cut, tried)
                for changed in mutations(data, random, count // (2 * len(NETS))):
                    victim.read(index, changed, tried)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    return tried


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        result = run(Path(place), int(sys.argv[1]))
    print(f"{dict(result.outcomes)}, the slowest took {result.slowest:.2f} s")
    print("\n".join(result.wrong[:40]))
    sys.exit(bool(result.wrong))
