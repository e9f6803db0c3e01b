"""Names that a dialect does not have: all of a net are told at once, each with its lines."""

from __future__ import annotations

import pytest

from caffeforge.runtime.errors import FileError
from caffeforge.runtime.prototxt_reader import parse
from tests.runtime.fake_dialect import dialect

FOREIGN = """\
name: "n"
layer { name: "a" type: "Normalize" norm_param { eps: 1e-5 channel_shared: false } }
layer { name: "c" type: "Convolution" convolution_param { num_outputs: 4 engine: SLOWEST pad: [1, 2] } }
layer { name: "b" type: "Normalize" # norm_param { }
  norm_param < sizes: [ { nope: 1 } ] text: 'unknown_param: "' > convolution_param { num_outputs: 0.5 }
}
layer { name: "t" type: "Norm" only_for_training: 1 include { phase: TRAIN } }
"""


def refusal(text: str) -> str:
    with pytest.raises(FileError) as caught:
        parse(text, dialect().backend)
    return str(caught.value)


def test_every_unknown_name_is_told_once_with_all_its_lines() -> None:
    # SLOWEST makes protobuf refuse the text, so the types of the layers are not looked at.
    assert refusal(FOREIGN).splitlines() == [
        "prototxt: 4 faults",
        '  prototxt:2:37: LayerParameter has no field named "norm_param"; also in line 5',
        '  prototxt:3:59: ConvolutionParameter has no field named "num_outputs" (did you mean num_output?);'
        " also in line 5",
        "  prototxt:3:82: ConvolutionParameter.Engine has no value named SLOWEST",
        '  prototxt:7:32: LayerParameter has no field named "only_for_training"',
        "  hint: is the net written in another dialect than fake? `caffeforge identify` tries all",
    ]


def test_unknown_types_are_told_with_the_fields_and_layers_of_training_are_not() -> None:
    assert refusal(FOREIGN.replace("SLOWEST", "SLOW")).splitlines() == [
        "prototxt: 3 faults",
        "  prototxt:2:1: layer a has type 'Normalize', unknown to fake; also in line 4",
        '  prototxt:2:37: LayerParameter has no field named "norm_param"; also in line 5',
        '  prototxt:3:59: ConvolutionParameter has no field named "num_outputs" (did you mean num_output?);'
        " also in line 5",
        "  hint: is the net written in another dialect than fake? `caffeforge identify` tries all",
    ]


def test_a_layer_that_only_training_has_may_have_unknown_names() -> None:
    text = 'layer { name: "r" type: "ReLU" bottom: "x" top: "y" }\n' + FOREIGN.splitlines()[-1]
    read = parse(text, dialect().backend)
    assert [layer.name for layer in read.net.layers] == ["r"] and read.dropped == {"t"}


def test_a_long_list_is_cut_and_counted() -> None:
    text = "\n".join(f'layer {{ name: "l" type: "ReLU" foreign{i} {{ }} }}' for i in range(30))
    lines = refusal(text).splitlines()
    assert lines[0] == "prototxt: 30 faults" and lines[-2] == "  and 10 more" and len(lines) == 23
    text = "\n".join(['layer { name: "l" type: "Foreign" }'] * 30)
    assert refusal(text).splitlines()[0].endswith("also in line 2, 3, 4, 5, 6, 7, 8, 9 and 21 more")


def test_hostile_texts_are_refused_in_short_time() -> None:
    assert "nested too deep" in refusal("layer { foreign " + "{ a " * 20000)
    assert refusal("foreign: 1\n" * 20000).count("also in line 2, 3") == 1
    assert refusal("".join(f"foreign{i}: 1\n" for i in range(2000))).startswith("prototxt: 2000 faults")
