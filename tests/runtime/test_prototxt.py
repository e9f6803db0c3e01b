"""Printing a net as prototxt, against what protobuf reads from it, and reading it back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from caffeforge.runtime.errors import FileError, GraphError
from caffeforge.runtime.float32 import float32_text, shortest
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.net_state import State
from caffeforge.runtime.prototxt import print_net, quote
from caffeforge.runtime.prototxt_reader import decode, parse
from tests.runtime.fake_dialect import KINDS, dialect
from tests.runtime.test_wire import EXTREMES


def small_net() -> Net:
    fake = dialect()
    shape = fake.message("BlobShape", dim=(1, 3, 8, 8))
    filler = fake.message("FillerParameter", type="xavier")
    return Net(
        "small",
        [
            Layer("data", fake.Input(shape=(shape,)), (), ("data",)),
            Layer(
                "conv1",
                fake.Convolution(
                    num_output=4,
                    bias_term=False,
                    pad=(1, 0),
                    slope=1e-05,
                    engine="SLOW",
                    weight_filler=filler,
                    lambda_=True,
                ),
                ("data",),
                ("conv1",),
            ),
            Layer("relu1", fake.ReLU(), ("conv1",), ("conv1",)),
        ],
    )


SMALL_TEXT = """\
name: "small"
layer {
  name: "data"
  type: "Input"
  top: "data"
  input_param {
    shape {
      dim: 1
      dim: 3
      dim: 8
      dim: 8
    }
  }
}
layer {
  name: "conv1"
  type: "Convolution"
  bottom: "data"
  top: "conv1"
  convolution_param {
    num_output: 4
    bias_term: false
    pad: 1
    pad: 0
    slope: 1e-05
    engine: SLOW
    weight_filler {
      type: "xavier"
    }
    lambda: true
  }
}
layer {
  name: "relu1"
  type: "ReLU"
  bottom: "conv1"
  top: "conv1"
}
"""


def test_a_net_is_printed_as_caffe_users_know_it() -> None:
    assert print_net(small_net()) == SMALL_TEXT


def test_a_printed_net_reads_back_as_the_same_net() -> None:
    net = small_net()
    read = parse(print_net(net), dialect().backend).net
    for layer in net.layers:
        layer.rule = "mapping.yaml:1"
    assert read == net


@pytest.mark.parametrize("kind", KINDS)
def test_protobuf_reads_every_kind_as_it_was_set(kind: str) -> None:
    fields: dict[str, Any] = {f"many_{kind}": tuple(EXTREMES[kind]), f"one_{kind}": EXTREMES[kind][-1]}
    fake = dialect()
    net = Net("n", [Layer("every", fake.Every(**fields))])
    proto = text_format.Parse(print_net(net), fake.proto("NetParameter")())
    expected = fake.proto("EveryParameter")(**fields)
    assert proto.layer[0].every_param.SerializeToString() == expected.SerializeToString()
    read = parse(print_net(net), fake.backend).net.layers[0].param
    assert print_net(Net("n", [Layer("every", read)])) == print_net(net)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_protobuf_reads_every_string_as_it_was_set(text: str) -> None:
    net = Net(text, [Layer(text, dialect().ReLU(), (text,), (text, "x"))])
    printed = print_net(net)
    assert printed.isascii()
    proto = text_format.Parse(printed, dialect().proto("NetParameter")())
    assert (proto.name, proto.layer[0].name) == (text, text)
    assert (list(proto.layer[0].bottom), list(proto.layer[0].top)) == ([text], [text, "x"])


def test_strings_are_escaped_as_protobuf_escapes_them() -> None:
    assert quote("a\n\r\t\"'\\é\x01") == r'"a\n\r\t\"\'\\\303\251\001"'


@given(st.floats(width=32, allow_nan=False))
def test_floats_are_printed_as_the_shortest_text_of_the_same_float32(value: float) -> None:
    text = float32_text(value)
    assert np.float32(text).tobytes() == np.float32(value).tobytes()
    assert len(digits(text)) <= len(digits(f"{value:.9g}"))  # nine always suffice
    assert np.float32(shortest(value)) == np.float32(value)


def digits(text: str) -> str:
    return text.split("e")[0].replace(".", "").strip("-0")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.1, "0.1"),
        (1e-5, "1e-05"),
        (1 / 3, "0.33333334"),
        (-0.0, "-0"),
        (3e20, "3e+20"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        (float("nan"), "nan"),
        (1000001.0, "1000001"),
        (16777216.0, "1.6777216e+07"),
    ],
)
def test_known_floats(value: float, text: str) -> None:
    assert float32_text(value) == text


def test_a_value_that_its_field_cannot_hold_is_not_printed() -> None:
    with pytest.raises(GraphError, match=r"num_output .* cannot hold -1"):
        print_net(Net("n", [Layer("c", dialect().Convolution(num_output=-1))]))


def test_floats_read_as_people_wrote_them() -> None:
    text = 'layer { name: "c" type: "Convolution" convolution_param { slope: 0.2 } }'
    (layer,) = parse(text, dialect().backend).net.layers
    assert layer.param == dialect().Convolution(slope=0.2)


def test_inputs_given_as_fields_of_the_net_read_back() -> None:
    net = Net("n", [Layer("r", dialect().ReLU(), ("a",), ("b",))], (("a", (1, 3, 224, 224)), ("b", ())))
    text = print_net(net)
    assert 'input: "a"\ninput: "b"\ninput_shape {\n  dim: 1\n  dim: 3\n' in text
    assert parse(text, dialect().backend).net.inputs == net.inputs


RELU = 'layer { name: "r" type: "ReLU" bottom: "a" top: "b" }'


def test_four_input_dims_belong_to_each_input() -> None:
    dims = "".join(f" input_dim: {dim}" for dim in (1, 3, 8, 9, 1, 5, 6, 7))
    net = parse(f'input: "a" input: "b"{dims} {RELU}', dialect().backend).net
    assert net.inputs == (("a", (1, 3, 8, 9)), ("b", (1, 5, 6, 7)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('input: "a"', "names 1 inputs and gives 0 input_dim"),
        ('input: "a" input_dim: 1 input_dim: 3', "names 1 inputs and gives 2 input_dim"),
        ('input: "a" input: "b" input_shape { dim: 1 }', "names 2 inputs and gives 1 input_shape"),
        ("input_shape { dim: 1 }", "names 0 inputs and gives 1 input_shape"),
    ],
)
def test_inputs_without_a_shape_each_are_refused(text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        parse(f"{text} {RELU}", dialect().backend)


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ("", True),
        ("include { phase: TEST }", True),
        ("include { phase: TRAIN }", False),
        ("exclude { phase: TRAIN }", True),
        ("exclude { phase: TEST }", False),
        ("include {}", True),
        ("exclude {}", False),
        ("include { phase: TRAIN } include { phase: TEST }", True),
        ("exclude { phase: TRAIN } exclude { phase: TEST }", False),
        ('include { phase: TEST stage: "deploy" }', False),
        ('include { not_stage: "deploy" }', True),
        ('exclude { stage: "deploy" }', True),
        ("include { min_level: 0 max_level: 0 }", True),
        ("include { min_level: 1 }", False),
        ("include { max_level: -1 }", False),
        ("exclude { max_level: 3 }", False),
    ],
)
def test_layers_are_kept_by_caffes_rules_for_phase_test(rules: str, kept: bool) -> None:
    text = f'layer {{ name: "x" type: "ReLU" {rules} }} layer {{ name: "y" type: "ReLU" }}'
    read = parse(text, dialect().backend)
    assert [layer.name for layer in read.net.layers] == (["x", "y"] if kept else ["y"])
    assert read.dropped == (frozenset() if kept else {"x"})
    assert read.place(len(read.net.layers) - 1).endswith(f":1:{text.index('layer', 5) + 1}")


def test_stages_of_the_nets_own_state_count() -> None:
    text = f'state {{ stage: "s" }} {RELU} layer {{ name: "x" type: "ReLU" exclude {{ stage: "s" }} }}'
    assert [layer.name for layer in parse(text, dialect().backend).net.layers] == ["r"]


def test_what_only_steers_training_is_dropped() -> None:
    text = (
        "force_backward: true "
        'layer { name: "c" type: "Convolution" param { lr_mult: 1 } param { lr_mult: 2 } loss_weight: 1 '
        "propagate_down: false phase: TEST convolution_param { num_output: 2 } }"
    )
    (layer,) = parse(text, dialect().backend).net.layers
    assert layer == Layer("c", dialect().Convolution(num_output=2), rule="mapping.yaml:1")


def test_a_type_with_several_messages_reads_its_own_fields() -> None:
    text = 'layer { name: "d" type: "Data" data_param { source: "s" } transform_param { scale: 2 } }'
    (layer,) = parse(text, dialect().backend).net.layers
    fake = dialect()
    data, transform = fake.Data.FIELDS
    assert layer.param == fake.Data(
        data_param=data.type(source="s"), transform_param=transform.type(scale=2.0)
    )


def refusal(text: str) -> FileError:
    with pytest.raises(FileError) as error:
        parse(text, dialect().backend, "net.prototxt")
    return error.value


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ('include { stage: "deploy" }', True),
        ('include { stage: "deploy" stage: "s" }', True),
        ('include { stage: "deploy" stage: "other" }', False),
        ('exclude { stage: "deploy" }', False),
        ("include { min_level: 2 }", True),
        ("include { min_level: 3 }", False),
        ("exclude { max_level: 2 }", False),
        ("include { max_level: 1 }", False),
    ],
)
def test_stages_and_level_can_be_chosen(rules: str, kept: bool) -> None:
    text = f'state {{ stage: "s" }} {RELU} layer {{ name: "x" type: "ReLU" {rules} }}'
    read = parse(text, dialect().backend, state=State(2, ("deploy",)))
    assert [layer.name for layer in read.net.layers] == (["r", "x"] if kept else ["r"])


@pytest.mark.parametrize(
    ("text", "where", "what", "hint"),
    [
        ("layer { convolution_param { num_output 2 } }", ":1:40", "Expected", ""),
        ('name: "x"\nnope: 1', ":2:1", 'has no field named "nope"', "another dialect than fake"),
        (
            'layer {\n  type: "Convolution"\n  convolution_param { num_outputs: 1 }\n}',
            ":3:23",
            'has no field named "num_outputs"',
            "did you mean num_output,",
        ),
        ('layer { name: "x"', ":1:7", "this brace is not closed", ""),
        (f"{RELU} }}", f":1:{len(RELU) + 2}", "this brace closes nothing", ""),
        ('layer { name: "x" }', ":1:1", "layer x has no type", "`type:"),
        ("layer { convolution_param { num_output: CLASSES } }", ":1:41", "integer: CLASSES", "a template"),
        ("layer { convolution_param { engine: WARP } }", ":1:37", "has no value named WARP", ""),
        ('layer { name: "x\udcff" }', ":1:15", "a string is not UTF-8", ""),
        ("layer { type: CONVOLUTION }", ":1:15", "Expected string", "upgrade_net_proto_text"),
        (f'{RELU}\n\nlayer {{ name: "c" type: "Convolutoin" }}', ":3:1", "'Convolutoin'", "Convolution, or"),
        (
            f"# layer {{\n{RELU} layer {{ # }}\n type: 'Warp' }}",
            f":2:{len(RELU) + 2}",
            "type 'Warp', unknown to fake",
            "another dialect than fake",
        ),
        (
            'layer { name: "r" type: "ReLU" convolution_param { } }',
            ":1:1",
            "layer r sets convolution_param, which means nothing to its type ReLU",
            "`ignore:`",
        ),
        (
            'layer { name: "r" type: "ReLU" blobs { data: 1 } }',
            ":1:1",
            "weights in the text",
            "in a caffemodel",
        ),
        ('layer { name: "r" type: "ReLU" phase: TRAIN }', ":1:1", "layer r is fixed to phase TRAIN", ""),
        ('layer { type: "ReLU" include {} exclude {} }', ":1:1", "both include and exclude", ""),
        (f'{RELU}\ntarget: "npu"', ":2:1", "the net sets target", ""),
        (f'{RELU}\nlayers {{ name: "x" }}', ":2:1", "both `layer` and `layers`", "as `layer`"),
        ('layers {\n  type: RELU\n  name: "x" }', ":1:1", "the format before 2015", "upgrade_net_proto_text"),
        ("", "", "describes no layers", ""),
    ],
)
def test_what_would_be_read_wrongly_is_refused(text: str, where: str, what: str, hint: str) -> None:
    error = refusal(text)
    assert error.where == f"net.prototxt{where}"
    assert what in error.what
    assert hint in error.hint


def test_a_brace_that_is_missing_is_looked_for_before_the_next_layer() -> None:
    said = refusal(f'layer {{ name: "a" type: "ReLU"\n{RELU}').what
    assert "net.prototxt:1:7: this brace is not closed" in said
    assert 'net.prototxt:2:1: LayerParameter has no field named "layer": is a brace missing' in said


def test_all_layers_that_cannot_be_read_are_listed() -> None:
    error = refusal(f'layer {{ name: "a" type: "A" }}\n{RELU}\nlayer {{ name: "b" type: "B" }}')
    assert error.where == "net.prototxt"
    assert "2 faults" in error.what
    assert "net.prototxt:1:1: layer a has type 'A'" in error.what
    assert "net.prototxt:3:1: layer b has type 'B'" in error.what


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf" + RELU.encode(),
        RELU.replace(" ", "\r\n").encode(),
        b"# \xbe\xed\xbb\xfd layer {\n" + RELU.encode(),
    ],
    ids=["BOM", "CRLF", "a comment in GBK"],
)
def test_files_as_people_save_them_are_read(raw: bytes) -> None:
    (layer,) = parse(decode(raw), dialect().backend).net.layers
    assert (layer.name, layer.bottoms, layer.tops) == ("r", ("a",), ("b",))
