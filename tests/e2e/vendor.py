"""Nets written without any code of ours: text by hand, weights by protobuf under the vendor's own schema."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from grpc_tools import protoc

from tests import checkout

Floats = npt.NDArray[np.float32]


def net_parameter(dialect: str = "bvlc") -> Any:
    """Return a dialect's NetParameter as protobuf itself understands it: one class, in a pool of its own."""
    return _compiled(dialect)


@functools.cache
def _compiled(dialect: str) -> Any:
    folder = checkout.ROOT / "schemas" / dialect
    with tempfile.TemporaryDirectory() as out:
        compiled = Path(out, "caffe.bin")
        assert protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={compiled}", "caffe.proto"]) == 0
        files = descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes()).file
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    name = f"{files[-1].package}.NetParameter"
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def parse(text: str, dialect: str = "bvlc") -> Any:
    """Return a prototxt as a NetParameter."""
    return text_format.Parse(text, net_parameter(dialect)())


def write(
    folder: Path, text: str, blobs: Mapping[str, Sequence[Floats]], dialect: str = "bvlc"
) -> tuple[Path, Path]:
    """Write a net's text as it is, and a caffemodel with `blobs` by layer; return both paths."""
    prototxt, caffemodel = folder / "net.prototxt", folder / "net.caffemodel"
    prototxt.write_text(text)
    proto = parse(text, dialect)
    for layer in proto.layer:
        for array in blobs.get(layer.name, ()):
            blob = layer.blobs.add()
            blob.shape.dim.extend(array.shape)  # a number has a shape too: one without axes
            blob.shape.SetInParent()
            blob.data.extend(array.ravel().tolist())
    caffemodel.write_bytes(proto.SerializeToString())
    return prototxt, caffemodel
