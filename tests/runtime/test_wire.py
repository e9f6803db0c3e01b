"""Encoding and walking protobuf's wire format, against protobuf itself."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.wire import (
    INTEGER_BITS,
    LENGTH,
    VARINT,
    Malformed,
    encode,
    encode_field,
    head,
    read_varint,
    varint,
    walk,
)
from tests.runtime.fake_dialect import KINDS, dialect

EXTREMES: dict[str, list[Any]] = {
    "double": [0.0, -0.0, 1e300, -5e-324, float("inf"), float("nan")],
    "float": [0.0, -0.0, 0.1, 3.4028235e38, -1e-45, float("-inf"), float("nan")],
    "bool": [True, False],
    "string": ["", "conv1/3x3", "层\n\"'\\", "\0"],
    "bytes": [b"", b"\xff\0\x80"],
}
for kind, bits in INTEGER_BITS.items():
    signed = kind[0] in "is" and not kind.startswith("u")
    top = 2 ** (bits - signed) - 1
    EXTREMES[kind] = [0, 1, 127, 128, 300, top, *([-1, -2, -300, -top - 1] if signed else [])]


@pytest.mark.parametrize("kind", KINDS)
def test_every_scalar_is_encoded_as_protobuf_does(kind: str) -> None:
    for value in EXTREMES[kind]:
        fields = {f"one_{kind}": value}
        assert encoded(**fields) == reference(**fields), value


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_fields_are_encoded_as_protobuf_does(kind: str) -> None:
    fields = {f"many_{kind}": tuple(EXTREMES[kind])}
    if kind not in ("string", "bytes"):
        fields[f"packed_{kind}"] = tuple(EXTREMES[kind])
    assert encoded(**fields) == reference(**fields)


def encoded(**fields: Any) -> bytes:
    return encode(dialect().message("EveryParameter", **fields))


def reference(**fields: Any) -> bytes:
    message = dialect().proto("EveryParameter")(**fields)
    return bytes(message.SerializeToString(deterministic=True))


def test_nested_messages_and_enums_are_encoded_as_protobuf_does() -> None:
    fake = dialect()
    message = fake.message(
        "ConvolutionParameter",
        num_output=4,
        engine="SLOW",
        weight_filler=fake.message("FillerParameter", value=0.5),
        filler=(fake.message("FillerParameter"), fake.message("FillerParameter", type="xavier")),
        lambda_=True,
    )
    proto = fake.proto("ConvolutionParameter")(
        num_output=4,
        engine=-1,
        weight_filler={"value": 0.5},
        filler=[{}, {"type": "xavier"}],
        **{"lambda": True},
    )
    assert encode(message) == proto.SerializeToString(deterministic=True)
    every = fake.message("EveryParameter", packed_enum=("FAST", "SLOW", "DEFAULT"))
    assert encode(every) == fake.proto("EveryParameter")(packed_enum=[2, -1, 0]).SerializeToString()


def test_a_field_set_to_its_default_is_written() -> None:
    assert encode(dialect().message("ConvolutionParameter", bias_term=True)) == b"\x10\x01"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("one_int32", 2**31, r"field one_int32 \(int32\) cannot hold 2147483648"),
        ("one_sfixed32", -(2**31) - 1, "cannot hold"),
        ("one_uint32", -1, "cannot hold -1"),
        ("one_fixed64", 2**64, "cannot hold"),
        ("one_int64", 1.5, "cannot hold 1.5"),
        ("one_float", 3.4028236e38, "cannot hold"),
        ("many_float", (1.0, -1e39), r"field many_float \(float\) cannot hold -1e\+39"),
        ("packed_enum", ("QUICK",), r"field packed_enum \(DEFAULT/FAST/SLOW\) cannot hold 'QUICK'"),
    ],
)
def test_a_value_that_its_field_cannot_hold_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        encoded(**{name: value})


def test_a_kind_without_wire_form_is_refused() -> None:
    field = dialect().messages["EveryParameter"].FIELDS[0]._replace(kind="group")
    with pytest.raises(GraphError, match="kind group"):
        encode_field(field, 1)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_a_varint_reads_back(number: int, behind: bytes) -> None:
    raw = varint(number)
    assert read_varint(b"x" + raw + behind, 1, len(raw) + 1) == (number, len(raw) + 1)


def test_walk_tells_where_each_field_lies() -> None:
    raw = b"\x08\x96\x01" + head(2, 2) + b"ab" + b"\x1d\x00\x00\x80\x3f" + b"\x21" + bytes(8)
    pieces = list(walk(raw, 0, len(raw)))
    assert [(p.number, p.wire, p.at, p.start, p.stop) for p in pieces] == [
        (1, VARINT, 0, 1, 3),
        (2, LENGTH, 3, 5, 7),
        (3, 5, 7, 8, 12),
        (4, 1, 12, 13, 21),
    ]
    assert pieces[0].value == 150


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\x08", "a varint does not end at byte 1"),
        (b"\x08\x01\x08" + b"\xff" * 10 + b"\x01", "a varint does not end at byte 3"),
        (b"\x08\x01\x12\x05abcd", "field 2 of 5 bytes runs past its message at byte 2"),
        (b"\x0d\x01\x02\x03", "field 1 of 4 bytes runs past its message at byte 0"),
        (b"\x08\x01\x0b", "field 1 has wire type 3 at byte 2"),
        (b"\x00\x01", "field number 0 at byte 0"),
    ],
)
def test_malformed_bytes_are_refused_with_their_place(raw: bytes, message: str) -> None:
    with pytest.raises(Malformed) as error:
        list(walk(raw, 0, len(raw)))
    assert str(error.value) == message


@given(st.binary(max_size=40))
def test_bytes_that_protobuf_refuses_are_refused(raw: bytes) -> None:
    message = dialect().proto("OldLayer")()  # one string: nothing nested that walk would not look into
    try:
        list(walk(raw, 0, len(raw)))
    except Malformed:
        return
    try:
        message.ParseFromString(raw)
    except DecodeError as error:
        raise AssertionError(f"protobuf refuses {raw!r}") from error


def test_every_truncation_is_refused_where_protobuf_refuses_it() -> None:
    raw = reference(
        one_int32=-5, one_double=1.5, one_string="abc", many_float=(1.0, 2.0), packed_int64=(1, 300)
    )
    refused = 0
    for end in range(len(raw)):
        message = dialect().proto("EveryParameter")()
        try:
            message.ParseFromString(raw[:end])
        except DecodeError:
            refused += 1
            with pytest.raises(Malformed):
                list(walk(raw, 0, end))
        else:
            assert list(walk(raw, 0, end))[-1:] != [] or end == 0
    assert refused > len(raw) // 2
