"""schemas/bvlc/caffe.proto: it compiles, and says what Caffe 1.0 says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

ROOT = Path(__file__).resolve().parents[2]
PROTO = ROOT / "schemas" / "bvlc" / "caffe.proto"
FACTS = ROOT.parent / "shared" / "dialects" / "facts" / "bvlc.json"  # of a later Caffe

Types = descriptor_pb2.FieldDescriptorProto
Row = list[Any]  # number, label, type, name, default, packed, deprecated


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> descriptor_pb2.FileDescriptorProto:
    out = tmp_path_factory.mktemp("bvlc") / "caffe.descriptor"
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTO.parent}"),
            *("--include_source_info", f"--descriptor_set_out={out}", PROTO.name),
        ],
        check=True,
        timeout=120,
    )
    (only,) = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    return only


def messages(file: descriptor_pb2.FileDescriptorProto) -> dict[str, list[Row]]:
    """Return the fields of every message, by full name; Caffe nests none."""
    assert not any(message.nested_type for message in file.message_type)
    return {f"caffe.{message.name}": [row(field) for field in message.field] for message in file.message_type}


def row(field: descriptor_pb2.FieldDescriptorProto) -> Row:
    return [
        field.number,
        Types.Label.Name(field.label).removeprefix("LABEL_").lower(),
        field.type_name.lstrip(".") or Types.Type.Name(field.type).removeprefix("TYPE_").lower(),
        field.name,
        field.default_value if field.HasField("default_value") else None,
        field.options.packed,
        field.options.deprecated,
    ]


def enums(file: descriptor_pb2.FileDescriptorProto) -> dict[str, list[list[Any]]]:
    """Return the values of every enum, by full name."""
    found = {f"caffe.{enum.name}": enum for enum in file.enum_type}
    for message in file.message_type:
        found |= {f"caffe.{message.name}.{enum.name}": enum for enum in message.enum_type}
    return {name: [[value.number, value.name] for value in enum.value] for name, enum in found.items()}


def test_the_file_is_proto2_of_package_caffe(file: descriptor_pb2.FileDescriptorProto) -> None:
    assert file.package == "caffe"
    assert file.syntax in ("", "proto2")  # protoc leaves the default out


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("NetParameter", [100, "repeated", "caffe.LayerParameter", "layer", None, False, False]),
        ("NetParameter", [2, "repeated", "caffe.V1LayerParameter", "layers", None, False, False]),
        ("LayerParameter", [2, "optional", "string", "type", None, False, False]),
        ("LayerParameter", [7, "repeated", "caffe.BlobProto", "blobs", None, False, False]),
        (
            "LayerParameter",
            [106, "optional", "caffe.ConvolutionParameter", "convolution_param", None, False, False],
        ),
        (
            "LayerParameter",
            [139, "optional", "caffe.BatchNormParameter", "batch_norm_param", None, False, False],
        ),
        ("LayerParameter", [142, "optional", "caffe.ScaleParameter", "scale_param", None, False, False]),
        (
            "LayerParameter",
            [146, "optional", "caffe.RecurrentParameter", "recurrent_param", None, False, False],
        ),
        ("BlobProto", [5, "repeated", "float", "data", None, True, False]),
        ("BlobShape", [1, "repeated", "int64", "dim", None, True, False]),
        ("BatchNormParameter", [3, "optional", "float", "eps", "1e-05", False, False]),
        ("ConvolutionParameter", [4, "repeated", "uint32", "kernel_size", None, False, False]),
        ("PoolingParameter", [3, "optional", "uint32", "stride", "1", False, False]),
        (
            "EltwiseParameter",
            [1, "optional", "caffe.EltwiseParameter.EltwiseOp", "operation", "SUM", False, False],
        ),
        ("V0LayerParameter", [8, "optional", "uint32", "kernelsize", None, False, False]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[3],
)
def test_a_field_is_as_in_caffe(
    file: descriptor_pb2.FileDescriptorProto, message: str, expected: Row
) -> None:
    assert expected in messages(file)[f"caffe.{message}"]


def test_what_caffe_added_after_the_forks_is_absent(file: descriptor_pb2.FileDescriptorProto) -> None:
    fields = {f"{message}.{field[3]}" for message, rows in messages(file).items() for field in rows}
    assert fields.isdisjoint(
        {
            "caffe.PoolingParameter.round_mode",
            "caffe.LayerParameter.swish_param",
            "caffe.LayerParameter.clip_param",
        }
    )
    assert messages(file).keys().isdisjoint({"caffe.SwishParameter", "caffe.ClipParameter"})
    assert "caffe.PoolingParameter.RoundMode" not in enums(file)
    assert max(field[0] for field in messages(file)["caffe.LayerParameter"]) == 146


def test_every_message_says_what_it_is(file: descriptor_pb2.FileDescriptorProto) -> None:
    said = {tuple(place.path): place.leading_comments.strip() for place in file.source_code_info.location}
    silent = [message.name for index, message in enumerate(file.message_type) if not said[4, index]]
    assert silent == []


@pytest.mark.skipif(
    not FACTS.exists(), reason="the fact tables of public schemas lie beside some checkouts only"
)
def test_all_else_is_as_in_the_fact_table(file: descriptor_pb2.FileDescriptorProto) -> None:
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    later = {"round_mode", "swish_param", "clip_param"}
    assert messages(file) == {
        name: [field for field in message["fields"] if field[3] not in later]
        for name, message in facts["messages"].items()
        if name not in ("caffe.SwishParameter", "caffe.ClipParameter")
    }
    assert enums(file) == {
        name: enum["values"]
        for name, enum in facts["enums"].items()
        if name != "caffe.PoolingParameter.RoundMode"
    }
