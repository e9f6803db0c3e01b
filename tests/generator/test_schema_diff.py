"""What an update of a schema changes: each rule on a small schema, and protobuf itself as the judge."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from caffeforge.generator import proto
from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.proto import ProtoSchema
from caffeforge.generator.schema_changes import RULES, Change, changes
from caffeforge.generator.schema_diff import compare
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime.cli import main

HEAD = """syntax = "proto2"; package caffe;
message NetParameter { optional string name = 1; repeated LayerParameter layer = 100; }
message LayerParameter { optional string name = 1; optional ToyParameter toy_param = 150; }
enum Mode { MAX = 0; AVE = 1; STO = 2; }
"""
TOY = "message ToyParameter {{ {} }}\n"
EPS = "optional float eps = 3 [default = 1e-05]"
BOTH = ("name", "number")


def schema(text: str, folder: Path, name: str = "caffe.proto") -> ProtoSchema:
    file = folder / name
    file.write_text(text)
    diagnostics = Diagnostics()
    found = proto.read(file, name, diagnostics)
    assert found is not None, diagnostics.found
    return found


def toys(old: str, new: str, folder: Path, enum: str = "") -> list[Change]:
    head = HEAD.replace("MAX = 0; AVE = 1; STO = 2;", enum) if enum else HEAD
    before = schema(HEAD + TOY.format(old), folder, "old.proto")
    return changes(before, schema(head + TOY.format(new), folder, "new.proto"))


FIELDS = {
    "removed": ("optional int32 a = 1;", "", ("field-removed", BOTH)),
    "renamed": ("optional int32 a = 1;", "optional int32 b = 1;", ("field-renamed", ("name",))),
    "renumbered": ("optional int32 a = 1;", "optional int32 a = 2;", ("field-renumbered", ("number",))),
    "default": (
        "optional int32 a = 1 [default = 1];",
        "optional int32 a = 1;",
        ("default-changed", ("meaning",)),
    ),
    "wider": ("optional int32 a = 1;", "optional int64 a = 1;", ("field-kind-changed", ())),
    "narrower": ("optional int64 a = 1;", "optional int32 a = 1;", ("field-kind-changed", ("meaning",))),
    "unsigned": ("optional int32 a = 1;", "optional uint64 a = 1;", ("field-kind-changed", ("meaning",))),
    "to-float": ("optional int32 a = 1;", "optional float a = 1;", ("field-kind-changed", ("number",))),
    "to-int": ("optional float a = 1;", "optional int32 a = 1;", ("field-kind-changed", BOTH)),
    "zigzag": ("optional int32 a = 1;", "optional sint32 a = 1;", ("field-kind-changed", ("number",))),
    "to-enum": ("optional int32 a = 1;", "optional Mode a = 1;", ("field-kind-changed", ("meaning",))),
    "from-enum": ("optional Mode a = 1;", "optional int32 a = 1;", ("field-kind-changed", ("name",))),
    "from-bool": ("optional bool a = 1;", "optional int32 a = 1;", ("field-kind-changed", ("name",))),
    "to-list": ("optional int32 a = 1;", "repeated int32 a = 1;", ("field-label-changed", ())),
    "from-list": (
        "repeated int32 a = 1;",
        "optional int32 a = 1;",
        ("field-label-changed", ("name", "meaning")),
    ),
    "from-packed": (
        "repeated int32 a = 1 [packed = true];",
        "optional int32 a = 1;",
        ("field-label-changed", BOTH),
    ),
    "packed": ("repeated int32 a = 1;", "repeated int32 a = 1 [packed = true];", ("packing-changed", ())),
    "required": ("optional int32 a = 1;", "required int32 a = 1;", ("field-label-changed", BOTH)),
    "optional": ("required int32 a = 1;", "optional int32 a = 1;", ("field-label-changed", ())),
    "added": ("", "optional int32 a = 1;", ("field-added", ())),
    "added-true": ("", "optional bool a = 1 [default = true];", ("field-added-not-neutral", ())),
    "added-required": ("", "required bool a = 1;", ("field-added-required", BOTH)),
}


@pytest.mark.parametrize("name", FIELDS)
def test_each_change_of_a_field_has_its_rule_and_the_files_it_breaks(name: str, tmp_path: Path) -> None:
    old, new, expected = FIELDS[name]
    found = toys(old, new, tmp_path)
    assert [(change.rule, change.breaks) for change in found if change.rule != "number-reused"] == [expected]


ENUMS = {
    "added": ("MAX = 0; AVE = 1; STO = 2; MIN = 3;", {("enum-value-added", ())}),
    "removed": ("MAX = 0; AVE = 1;", {("enum-value-removed", BOTH)}),
    "renamed": ("MAX = 0; AVG = 1; STO = 2;", {("enum-value-renamed", ("name",))}),
    "renumbered": ("MAX = 0; AVE = 3; STO = 2;", {("enum-value-renumbered", ("number",))}),
    "moved-down": (
        "MAX = 0; STO = 1;",
        {
            ("enum-value-removed", BOTH),
            ("enum-value-renumbered", ("number",)),
            ("enum-number-reused", ("number",)),
        },
    ),
}


@pytest.mark.parametrize("name", ENUMS)
def test_each_change_of_an_enum_has_its_rule_and_the_files_it_breaks(name: str, tmp_path: Path) -> None:
    values, expected = ENUMS[name]
    field = "optional Mode a = 1;"
    assert {(c.rule, c.breaks) for c in toys(field, field, tmp_path, values)} == expected


def test_a_number_that_another_field_takes_over_is_named(tmp_path: Path) -> None:
    found = toys("optional bool ceil_mode = 13;", "optional Mode round_mode = 13;", tmp_path)
    reused = [change for change in found if change.rule == "number-reused"]
    assert [str(change.position) for change in reused] == ["new.proto:5:24"]
    assert "its number 13 was that of ceil_mode" in reused[0].sentence


def test_a_message_of_another_name_is_no_change(tmp_path: Path) -> None:
    text = HEAD + TOY.format("optional int32 a = 1;")
    old, new = (schema(t, tmp_path) for t in (text, text.replace("ToyParameter", "Tiny")))
    assert changes(old, new) == []


def test_messages_that_no_net_holds_are_no_concern(tmp_path: Path) -> None:
    text = HEAD + TOY.format("")
    new = schema(f"{text} message SolverParameter {{ optional int32 a = 1; }}", tmp_path)
    assert changes(schema(text, tmp_path), new) == []


def test_a_schema_without_nets_is_said_to_have_none(tmp_path: Path) -> None:
    other = schema('syntax = "proto2"; message Solver { optional int32 a = 1; }', tmp_path)
    found = changes(schema(HEAD + TOY.format(""), tmp_path), other)
    assert [change.rule for change in found] == ["root-removed"]


KINDS = ("int32", "int64", "uint32", "bool", "float", "double", "string", "sint32", "fixed32", "Mode")
VALUES: dict[str, Any] = {
    "int32": [-5, 0, 7],
    "int64": [-5, 7, 1 << 40],
    "uint32": [0, 7, (1 << 32) - 1],
    "bool": [True, False],
    "float": [0.5, 3.0],
    "double": [0.1, 3.0],
    "string": ["a", "true"],
    "sint32": [-5, 7],
    "fixed32": [0, 7],
    "Mode": [0, 2],
}


@st.composite
def fields(draw: st.DrawFn) -> list[tuple[str, str, str, int]]:
    """Return label, kind, name and number of some fields."""
    numbers = draw(st.lists(st.integers(1, 4), unique=True, max_size=4))
    names = draw(st.permutations(["a", "b", "c", "d"]))
    kinds = [(draw(st.sampled_from(["optional", "repeated"])), draw(st.sampled_from(KINDS))) for _ in numbers]
    return [(*kind, name, number) for kind, name, number in zip(kinds, names, numbers, strict=False)]


def _classes(text: str, folder: Path) -> tuple[ProtoSchema, Any]:
    read = schema(text, folder)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(read.descriptor).file:
        pool.Add(file)
    return read, message_factory.GetMessageClass(pool.FindMessageTypeByName("caffe.ToyParameter"))


def _set(message: Any) -> dict[str, Any]:
    """Return what is set, as values that compare equal across kinds."""
    return {f.name: _plain(v if f.is_repeated else [v]) for f, v in message.ListFields()}


def _about(values: list[Any]) -> Any:
    return values if isinstance(values[0], str) else pytest.approx(_plain(values), rel=1e-6)


def _plain(values: Iterable[Any]) -> list[Any]:
    return [int(value) if isinstance(value, bool) else value for value in values]


@settings(max_examples=60, deadline=None)
@given(old=fields(), new=fields(), data=st.data())
def test_files_that_no_change_breaks_are_read_alike_by_protobuf(
    old: list[tuple[str, str, str, int]],
    new: list[tuple[str, str, str, int]],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A value set under the old schema and read under the new one differs only if a change says so."""
    folder = tmp_path_factory.mktemp("schemas")
    texts = [HEAD + TOY.format(" ".join(f"{lb} {k} {n} = {i};" for lb, k, n, i in f)) for f in (old, new)]
    (before, writer), (after, reader) = (_classes(text, folder) for text in texts)
    found = changes(before, after)
    for label, kind, name, number in old:
        count = data.draw(st.integers(1, 2)) if label == "repeated" else 1
        message, values = (
            writer(),
            data.draw(st.lists(st.sampled_from(VALUES[kind]), min_size=count, max_size=count)),
        )
        getattr(message, name).extend(values) if label == "repeated" else setattr(message, name, values[0])
        said = {
            part for change in found if ("ToyParameter", name) in change.touched for part in change.breaks
        }
        successor = next((n for _, _, n, i in new if n == name), None) or next(
            (n for _, _, n, i in new if i == number), None
        )
        if not said & {"name", "meaning"}:
            parsed = text_format.Parse(text_format.MessageToString(message), reader())
            assert _set(parsed) == {name: _about(values)}
        if not said & {"number", "meaning"}:
            try:
                read = reader.FromString(message.SerializeToString())
            except DecodeError:
                pytest.fail(f"{name} is no longer read")
            assert _set(read) == {successor: _about(values)}


def test_the_rules_that_an_update_touches_and_takes_away_are_named() -> None:
    found = compare(SCHEMAS / "bvlc_master", SCHEMAS / "bvlc")
    effects = {effect.change.subject: effect for effect in found.effects}
    assert effects["LayerParameter.clip_param"].ops == ("Clip", "HardSigmoid")
    assert effects["PoolingParameter.round_mode"].ops == ("AveragePool", "MaxPool")
    assert effects["PoolingParameter.round_mode"].layers == ("Pooling",)
    assert {dropped.subject for dropped in found.lost} >= {"Clip", "HardSigmoid", "MaxPool", "Swish"}
    assert compare(SCHEMAS / "bvlc", SCHEMAS / "bvlc_master").lost == ()


def test_the_command_exits_with_one_where_files_break(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = (SCHEMAS / "bvlc" / "caffe.proto").read_text()
    new = tmp_path / "caffe.proto"
    new.write_text(text.replace(EPS, EPS.replace("3", "4")))
    assert main(["diff", "bvlc", str(new), "--json"]) == 1
    said = capsys.readouterr()
    [change] = [c for c in json.loads(said.out)["changes"] if c["subject"] == "BatchNormParameter.eps"]
    assert (change["rule"], change["breaks"]) == ("field-renumbered", ["caffemodel"])
    assert change["ops"] == ["BatchNormalization"] and change["layers"] == ["BatchNorm"]
    assert "1 change of 1 can break files" in said.err
    assert main(["diff", "bvlc", "bvlc"]) == 0


def test_annotations_hold_their_own_marks_by_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "50%, of:it"
    folder.mkdir()
    text = (SCHEMAS / "bvlc" / "caffe.proto").read_text()
    (folder / "caffe.proto").write_text(text.replace(EPS, EPS.replace("3", "4")))
    assert main(["diff", "bvlc", str(folder), "--annotations"]) == 1
    line = capsys.readouterr().out
    assert line.startswith("::error file=") and "50%25%2C of%3Ait" in line
    assert ",title=field-renumbered::BatchNormParameter.eps: its number was 3, now it is 4" in line


def test_what_cannot_be_read_is_said_without_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["diff", "bvlc", str(tmp_path / "none.proto")]) == 1
    assert "none.proto: error[no-input]: cannot be read" in capsys.readouterr().err


def test_every_rule_id_is_explained() -> None:
    source = (Path(proto.__file__).parent / "schema_changes.py").read_text()
    assert all(source.count(f'"{rule}"') >= 2 for rule in RULES)


def test_a_new_field_that_may_have_an_effect_names_the_rules_of_its_message(tmp_path: Path) -> None:
    text = (SCHEMAS / "bvlc" / "caffe.proto").read_text(encoding="utf-8")
    head = "message PoolingParameter {"
    (tmp_path / "new.proto").write_text(
        text.replace(head, f"{head} optional bool ceil = 40 [default = true];")
    )
    (effect,) = compare(SCHEMAS / "bvlc", tmp_path / "new.proto").effects
    assert effect.change.rule == "field-added-not-neutral" and effect.layers == ("Pooling",)
    assert {"MaxPool", "AveragePool"} <= set(effect.ops)
