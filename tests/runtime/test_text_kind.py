"""Texts that are no nets say what they seem to be; nets with faults keep their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from caffeforge.runtime import load
from caffeforge.runtime.errors import CaffeforgeError, FileError

OTHERS = {
    "a solver": '# train\nnet: "train.prototxt"\nbase_lr: 0.01\nlr_policy: "step"\n',
    "a label map": 'item { name: "none" label: 0 display_name: "background" }\n',
    "a schema": 'syntax = "proto2";\nmessage LayerParameter { optional string name = 1; }\n',
    "a Python program": "import caffe\nfrom caffe import layers as L\n",
    "a net of ncnn": "7767517\n75 83\nInput data 0 1 data\n",
    "a net of darknet": "[net]\nbatch=1\n[convolutional]\nfilters=3\n",
    "a JSON file": '{"layers": [1, 2]}',
    "a mapping of caffeforge": "backend: vendorx\nextends: bvlc\n",
    "the answer of a server": "404: Not Found",
    "a file with conflicts of a merge": 'layer { name: "a"\n<<<<<<< HEAD\n}\n=======\n}\n>>>>>>> theirs\n',
}


@pytest.mark.parametrize("line", ['net: "train_val.prototxt"', 'train_net: "a"', "snapshot: 5000"])
def test_a_part_of_a_solver_is_one(line: str, tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(f"# a solver\n{line}\n")
    with pytest.raises(FileError, match="it seems to be a solver"):
        load(path)


def test_a_page_may_begin_with_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text("<!-- saved -->\n<html></html>\n")
    with pytest.raises(FileError, match="it seems to be an HTML page"):
        load(path)


@pytest.mark.parametrize("kind", OTHERS)
def test_a_text_that_is_no_net_says_what_it_seems_to_be(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(OTHERS[kind])
    with pytest.raises(
        FileError, match=f"this is no prototxt of a net: it seems to be {kind}(\n|$)"
    ) as caught:
        load(path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize(
    "mark", ["{{ num }}", "${NUM}", "$NUM", "<%= num %>", "%(num)d", "{% if a %}1{% endif %}", "@NUM@"]
)
def test_a_template_is_called_one_at_the_place_of_its_first_mark(mark: str, tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    layer = 'layer { name: "a" type: "Softmax" bottom: "x" top: "a" softmax_param { axis: MARK } }'
    path.write_text(f"# {{{{ a comment }}}}\n{layer.replace('MARK', mark)}\n")
    with pytest.raises(FileError, match=r":2:\d+: .*\n  hint: the text seems to be a template"):
        load(path)


def test_words_in_strings_and_comments_do_not_make_a_net_anything_else(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text('# base_lr: 1\nname: "${a} base_lr: 1"\nlayer { nam: "a" }\n')
    with pytest.raises(
        FileError, match=r'net\.prototxt:3:9: LayerParameter has no field named "nam"'
    ) as caught:
        load(path)
    assert "template" not in str(caught.value)


def test_unknown_layers_and_those_in_python_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(
        'input: "x" input_shape { dim: 1 dim: 2 }\n'
        'layer { name: "p" type: "Python" bottom: "x" top: "p" python_param { module: "m" layer: "L" } }\n'
        'layer { name: "f" type: "Foo" bottom: "p" top: "f" }\n'
        'layer { name: "g" type: "Foo" bottom: "f" top: "g" }\n'
    )
    with pytest.raises(FileError) as caught:
        load(path)
    faults, python, unknown = str(caught.value).splitlines()[:3]
    assert faults == f"{path}: 2 faults"
    assert python.startswith(
        f"  {path}:2:1: no rule of bvlc tells what layer p (Python) computes: that stands in"
    )
    assert unknown == f"  {path}:3:1: layer f has type 'Foo', unknown to bvlc; also in line 4"


def test_a_net_without_weights_says_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(
        'input: "x" input_shape { dim: 1 dim: 2 dim: 3 dim: 3 }\n'
        'layer { name: "c" type: "Convolution" bottom: "x" top: "c" '
        "convolution_param { num_output: 2 kernel_size: 1 } }\n"
    )
    with pytest.raises(CaffeforgeError, match="hint: the net has no weights: give its caffemodel"):
        load(path)


@pytest.mark.parametrize(
    ("start", "bottom", "says"),
    [
        (
            "",
            "x",
            r"bottom x is not computed by any layer before\n  hint: the net has no inputs: put an Input",
        ),
        ('input: "conv1" input_shape { dim: 1 }', "conv2", "hint: did you mean conv1"),
        ('input: "x" input_shape { dim: -1 }', "x", r"input x: it has a size below 0: \[-1\]"),
    ],
)
def test_what_a_net_reads_must_be_there(start: str, bottom: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(f'{start}\nlayer {{ name: "r" type: "ReLU" bottom: "{bottom}" top: "r" }}\n')
    with pytest.raises(CaffeforgeError, match=says):
        load(path)
