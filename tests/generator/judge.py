"""What protobuf itself, under a vendor's own proto, finds in files that a backend wrote."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError
from grpc_tools import protoc


class Judge:
    """Reads nets by one proto, in a pool of its own."""

    def __init__(self, proto: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, compiled = Path(folder, "vendor.proto"), Path(folder, "vendor.bin")
            source.write_text(proto, encoding="utf-8")
            arguments = [f"-I{folder}", f"--descriptor_set_out={compiled}", source.name]
            assert protoc.main(["protoc", *arguments]) == 0
            (file,) = descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes()).file
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(file.SerializeToString())
        name = ".".join(filter(None, (file.package, "NetParameter")))
        self.net_parameter: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

    def text(self, path: Path) -> Any:
        """Return a prototxt as a message; ParseError if the proto does not have what stands there."""
        return text_format.Parse(path.read_text(encoding="utf-8"), self.net_parameter())

    def binary(self, path: Path) -> Any:
        """Return a caffemodel as a message; AssertionError if it has fields that the proto does not."""
        net = self.net_parameter.FromString(path.read_bytes())
        known = self.net_parameter()
        known.CopyFrom(net)
        known.DiscardUnknownFields()
        assert known.ByteSize() == net.ByteSize(), f"{path.name} holds fields that are not in the proto"
        return net

    def net(self, stem: Path) -> Any:
        """Return the net of both files, which must say the same but for the weights."""
        text, binary = self.text(stem.with_suffix(".prototxt")), self.binary(stem.with_suffix(".caffemodel"))
        assert [layer.name for layer in text.layer] == [layer.name for layer in binary.layer]
        for told, held in zip(text.layer, binary.layer, strict=True):
            bare = type(held)()
            bare.CopyFrom(held)
            bare.ClearField("blobs")
            assert bare == told, f"layer {told.name} differs"
        return binary

    def reads(self, stem: Path) -> bool:
        """Tell whether both files are nets of this proto."""
        try:
            self.net(stem)
        except (text_format.ParseError, DecodeError, AssertionError):
            return False
        return True
