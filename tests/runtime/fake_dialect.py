"""A Caffe dialect of its own for tests: no field number of the net's frame is where Caffe has it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import _protoc_compiler

from caffeforge.runtime.backend import RUNTIME_ABI, Backend, NetStyle, Reader, Skeleton
from caffeforge.runtime.message import Field, LayerParam, Message
from caffeforge.runtime.op import python_name

KINDS = [
    "double",
    "float",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
    "bool",
    "string",
    "bytes",
]

SCHEMA = """
syntax = "proto2";
package fake;

message NetParameter {
  repeated OldLayer layers = 1;
  optional string name = 2;
  repeated string input = 3;
  repeated int32 input_dim = 4;
  optional bool force_backward = 5;
  optional NetState state = 6;
  repeated BlobShape input_shape = 8;
  repeated LayerParameter layer = 77;
  optional string target = 90;
}
message OldLayer { optional string name = 1; }
enum Phase { TRAIN = 0; TEST = 1; }
message NetState { optional Phase phase = 1; optional int32 level = 2; repeated string stage = 3; }
message NetStateRule {
  optional Phase phase = 1;
  optional int32 min_level = 2;
  optional int32 max_level = 3;
  repeated string stage = 4;
  repeated string not_stage = 5;
}
message ParamSpec {
  enum DimCheckMode { STRICT = 0; PERMISSIVE = 1; }
  optional string name = 1;
  optional DimCheckMode share_mode = 2;
  optional float lr_mult = 3;
}
message BlobShape { repeated int64 dim = 3 [packed = true]; }
message BlobProto {
  optional BlobShape shape = 4;
  repeated float diff = 6;
  repeated double double_data = 8;
  repeated double double_diff = 9;
  optional int32 num = 10;
  optional int32 channels = 11;
  optional int32 height = 12;
  optional int32 width = 13;
  repeated float data = 21 [packed = true];
  optional bytes half_data = 30;
}
message LayerParameter {
  repeated string bottom = 1;
  repeated string top = 2;
  optional string type = 3;
  optional Phase phase = 4;
  optional string name = 5;
  repeated float loss_weight = 6;
  repeated ParamSpec param = 7;
  repeated bool propagate_down = 8;
  repeated NetStateRule include = 9;
  repeated NetStateRule exclude = 10;
  optional EveryParameter every_param = 11;
  repeated BlobProto blobs = 40;
  optional ConvolutionParameter convolution_param = 100;
  optional InputParameter input_param = 102;
  optional DataParameter data_param = 103;
  optional TransformParameter transform_param = 104;
}
message ConvolutionParameter {
  enum Engine { DEFAULT = 0; FAST = 2; SLOW = -1; }
  optional uint32 num_output = 1;
  optional bool bias_term = 2 [default = true];
  repeated uint32 pad = 3;
  repeated uint32 kernel_size = 4;
  optional uint32 stride = 5 [default = 1];
  optional float slope = 6 [default = 0.1];
  optional Engine engine = 7 [default = FAST];
  optional FillerParameter weight_filler = 8;
  repeated FillerParameter filler = 9;
  optional bool lambda = 10;
}
message FillerParameter { optional string type = 1 [default = "constant"]; optional float value = 2; }
message InputParameter { repeated BlobShape shape = 1; }
message DataParameter { optional string source = 1; }
message TransformParameter { optional float scale = 1 [default = 1]; }
message EveryParameter {
%s}
"""


def _every_fields() -> str:
    lines = []
    for index, kind in enumerate(KINDS):
        lines.append(f"  optional {kind} one_{kind} = {index + 1};")
        lines.append(f"  repeated {kind} many_{kind} = {index + 101};")
        if kind not in ("string", "bytes"):
            lines.append(f"  repeated {kind} packed_{kind} = {index + 2001} [packed = true];")
    lines.append("  repeated ConvolutionParameter.Engine packed_enum = 3000 [packed = true];")
    lines.append("  repeated BlobShape shapes = 3001;")
    return "".join(f"{line}\n" for line in lines)


class Dialect:
    """A backend made from a schema, its typed classes, and protobuf's own classes as the reference."""

    def __init__(self, schema: str) -> None:
        self.descriptor = _protoc(schema)
        (file,) = descriptor_pb2.FileDescriptorSet.FromString(self.descriptor).file
        self._pool = descriptor_pool.DescriptorPool()
        self._pool.AddSerializedFile(file.SerializeToString())
        self._schema = {f".fake.{message.name}": message for message in file.message_type}
        self._enums = {f".fake.{enum.name}": enum for enum in file.enum_type}
        for name, message in self._schema.items():
            self._enums.update({f"{name}.{enum.name}": enum for enum in message.enum_type})
        self.messages: dict[str, type[Message]] = {}
        for name in ("ConvolutionParameter", "InputParameter", "EveryParameter"):
            self._typed(f".fake.{name}")
        self.Convolution = self._layer("Convolution", "convolution_param")
        self.Every = self._layer("Every", "every_param")
        self.Input = self._layer("Input", "input_param")
        self.Data = self._layer("Data", None, "data_param", "transform_param")
        self.ReLU = self._layer("ReLU", None)
        classes = [self.Convolution, self.Every, self.Input, self.Data, self.ReLU]
        self.backend = Backend(
            abi=RUNTIME_ABI,
            name="fake",
            net=NetStyle(in_place=("ReLU",)),
            package="fake",
            descriptor=lambda: self.descriptor,
            skeleton=self._skeleton(),
            layer_types={cls.TYPE: cls for cls in classes},
            messages=self.messages,
            rules={},
            readers={
                "Convolution": _reader("num_output bias_term pad kernel_size stride", "engine weight_filler"),
                "Input": _reader("shape", ""),
                "ReLU": _reader("", ""),
            },
        )

    def proto(self, name: str) -> Any:
        """Return protobuf's class of a message."""
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(f"fake.{name}"))

    def message(self, name: str, **fields: Any) -> Message:
        """Return a typed message."""
        make: Callable[..., Message] = self.messages[name]
        return make(**fields)

    def _skeleton(self) -> Skeleton:
        return Skeleton(
            net_name=self._number("NetParameter", "name"),
            net_layer=self._number("NetParameter", "layer"),
            layer_name=self._number("LayerParameter", "name"),
            layer_type=self._number("LayerParameter", "type"),
            layer_bottom=self._number("LayerParameter", "bottom"),
            layer_top=self._number("LayerParameter", "top"),
            layer_blobs=self._number("LayerParameter", "blobs"),
            blob_shape=self._number("BlobProto", "shape"),
            blob_data=self._number("BlobProto", "data"),
            blob_double_data=self._number("BlobProto", "double_data"),
            shape_dim=self._number("BlobShape", "dim"),
        )

    def _number(self, message: str, name: str) -> int:
        return next(field.number for field in self._schema[f".fake.{message}"].field if field.name == name)

    def _layer(self, kind: str, outer: str | None, *own: str) -> Any:
        known = {field.name: self._field(field) for field in self._schema[".fake.LayerParameter"].field}
        if outer is not None:
            return _class(LayerParam, kind, known[outer].type.FIELDS, TYPE=kind, PARAM=known[outer])
        return _class(LayerParam, kind, tuple(known[name] for name in own), TYPE=kind, PARAM=None)

    def _typed(self, full_name: str) -> type[Message]:
        name = full_name.removeprefix(".fake.")
        if name not in self.messages:
            fields = tuple(self._field(field) for field in self._schema[full_name].field)
            self.messages[name] = _class(Message, name, fields)
        return self.messages[name]

    def _field(self, field: descriptor_pb2.FieldDescriptorProto) -> Field:
        kind = field.Type.Name(field.type).removeprefix("TYPE_").lower()
        label = "repeated" if field.label == field.LABEL_REPEATED else "optional"
        default: Any = None
        if field.HasField("default_value"):
            default = _default(kind, field.default_value)
        inner: Any = None
        if kind == "enum":
            inner = {value.name: value.number for value in self._enums[field.type_name].value}
        elif kind == "message":
            inner = self._typed(field.type_name)
        return Field(field.name, field.number, kind, label, field.options.packed, default, inner)


def _default(kind: str, text: str) -> Any:
    if kind == "bool":
        return text == "true"
    if kind in ("string", "enum"):
        return text
    return float(text) if kind in ("float", "double") else int(text)


def _class(base: type[Message], name: str, fields: tuple[Field, ...], **extra: object) -> Any:
    """Return a frozen class with a field for each of `fields`."""
    slots = tuple(python_name(field.name) for field in fields)
    empty = {python_name(field.name): () if field.label == "repeated" else None for field in fields}

    def init(self: Message, **given: object) -> None:
        for slot, value in {**empty, **given}.items():
            object.__setattr__(self, slot, value)

    return type(name, (base,), {"__slots__": slots, "__init__": init, "FIELDS": fields, **extra})


def _reader(reads: str, ignores: str) -> Reader:
    def function(*_: object) -> None:
        raise AssertionError("these tests build no graph")

    return Reader(function, "mapping.yaml:1", tuple(reads.split()), tuple(ignores.split()))


def _protoc(schema: str) -> bytes:
    """Compile a schema; return a FileDescriptorSet."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "fake.proto"), Path(folder, "fake.ds")
        source.write_text(schema, encoding="utf-8")
        arguments = ["protoc", f"-I{folder}", f"--descriptor_set_out={target}", str(source)]
        assert _protoc_compiler.run_main([argument.encode() for argument in arguments]) == 0
        return target.read_bytes()


@cache
def dialect(*changes: tuple[str, str]) -> Dialect:
    """Return the dialect, with texts of its schema replaced: each must occur once."""
    schema = SCHEMA % _every_fields()
    for old, new in changes:
        assert schema.count(old) == 1, old
        schema = schema.replace(old, new)
    return Dialect(schema)
