"""SSD's layers, and a whole SSD of small size: run by us, and by a real Caffe that has the layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated import ssd
from caffeforge.runtime.errors import CaffeforgeError
from tests.e2e import vendor
from tests.e2e.layer_cases import Random, difference
from tests.e2e.vendor import Floats
from tests.real_caffe.witness import Witness

BOXES = 40  # default boxes of the DetectionOutput cases
CLASSES = 4


def net(*layers: str, **inputs: tuple[int, ...]) -> str:
    """Return a prototxt with inputs of these shapes."""
    given = [
        f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ '
        f"{' '.join(f'dim: {dim}' for dim in shape)} }} }} }}"
        for name, shape in inputs.items()
    ]
    return "\n".join(["name: 'ssd'", *given, *(f"layer {{ {layer} }}" for layer in layers)])


def compare(
    folder: Path,
    caffe: Witness,
    text: str,
    inputs: dict[str, Floats],
    blobs: dict[str, list[Floats]] | None = None,
) -> dict[str, Floats]:
    """Run a net both ways; return real Caffe's outputs, which are within 1e-5 of ours."""
    files = vendor.write(folder, text, blobs or {}, "ssd")
    expected = caffe.run(*files, inputs)
    found = ssd.load(*files).run(inputs)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        assert difference(found[name], array) < 1e-5, name
    return expected


PRIORS = {  # clip is given: its default is another in this Caffe
    "one_size": "min_size: 9 clip: false",
    "sizes": "min_size: 8 min_size: 14 max_size: 12 max_size: 20 aspect_ratio: 2 aspect_ratio: 3 clip: false",
    "doubled": "min_size: 8 aspect_ratio: 1 aspect_ratio: 2 aspect_ratio: 0.5 flip: true clip: false",
    "unflipped": "min_size: 10.7 max_size: 19.4 aspect_ratio: 0.5 aspect_ratio: 3 flip: false clip: true",
    "variances": "min_size: 8 variance: 0.1 variance: 0.2 variance: 0.3 variance: 0.4 clip: false",
    "square": "min_size: 8 img_size: 50 step: 7.5 offset: 0.25 variance: 0.3 clip: false",
    "sides": "min_size: 8 img_h: 40 img_w: 70 step_h: 5 step_w: 9.5 clip: true",
}


def test_default_boxes_are_those_of_caffe(tmp_path: Path, caffe: Witness) -> None:
    layers = [
        f'name: "{name}" type: "PriorBox" bottom: "map" bottom: "image" top: "{name}" '
        f"prior_box_param {{ {p} }}"
        for name, p in PRIORS.items()
    ]
    shapes = {"map": (1, 2, 3, 5), "image": (1, 3, 33, 47)}
    inputs = {name: Random(0).normal(*shape) for name, shape in shapes.items()}
    found = compare(tmp_path, caffe, net(*layers, **shapes), inputs)
    assert found["sizes"].shape == (1, 2, 3 * 5 * 12 * 4)
    assert found["unflipped"][0, 0].min() == 0


def test_normalize_and_permute_are_those_of_caffe(tmp_path: Path, caffe: Witness) -> None:
    layers = [
        'name: "whole" type: "Normalize" bottom: "x" top: "whole"',
        'name: "places" type: "Normalize" bottom: "x" top: "places" '
        "norm_param { across_spatial: false channel_shared: false scale_filler { value: 20 } eps: 0.01 }",
        'name: "rows" type: "Normalize" bottom: "x" top: "rows" '
        "norm_param { across_spatial: true channel_shared: false }",
        'name: "last" type: "Permute" bottom: "x" top: "last" '
        "permute_param { order: 0 order: 2 order: 3 order: 1 }",
        'name: "some" type: "Permute" bottom: "x" top: "some" permute_param { order: 3 order: 1 }',
    ]
    random = Random(1)
    blobs = {"whole": [random.normal()], "places": [random.normal(5)], "rows": [random.normal(5)]}
    x = random.normal(2, 5, 3, 4)
    found = compare(tmp_path, caffe, net(*layers, x=x.shape), {"x": x}, blobs)
    assert found["some"].shape == (4, 5, 2, 3)


DETECTIONS = {
    "corner": "nms_param { nms_threshold: 0.4 }",
    "center": "code_type: CENTER_SIZE confidence_threshold: 0.3 nms_param { nms_threshold: 0.5 top_k: 20 }",
    "size": "code_type: CORNER_SIZE keep_top_k: 7 nms_param { nms_threshold: 0.6 }",
    "encoded": "code_type: CENTER_SIZE variance_encoded_in_target: true confidence_threshold: 0.5 "
    "nms_param { nms_threshold: 0.3 }",
    "adaptive": "code_type: CENTER_SIZE nms_param { nms_threshold: 0.9 eta: 0.8 } keep_top_k: 30",
    "background": "code_type: CENTER_SIZE background_label_id: 2 confidence_threshold: 0.2 keep_top_k: 5 "
    "nms_param { nms_threshold: 0.45 top_k: 3 }",
    "no_background": "background_label_id: -1 nms_param { nms_threshold: 0.2 }",
    "nothing": "confidence_threshold: 2 nms_param { nms_threshold: 0.4 }",
}


def priors(random: Random) -> Floats:
    """Return default boxes that overlap, and their variances."""
    corners = random.generator.uniform(0, 0.5, (BOXES, 2))
    boxes = np.concatenate([corners, corners + random.generator.uniform(0.2, 0.5, (BOXES, 2))], 1)
    variances = random.generator.uniform(0.05, 0.3, (BOXES, 4))
    return np.stack([boxes, variances]).reshape(1, 2, BOXES * 4).astype(np.float32)


@pytest.mark.parametrize("shared", [True, False])
def test_found_boxes_are_those_of_caffe(tmp_path: Path, caffe: Witness, shared: bool) -> None:
    random = Random(2)
    inputs = {
        "loc": random.normal(2, BOXES * 4 * (1 if shared else CLASSES), scale=0.3),
        "conf": random.generator.uniform(0, 1, (2, BOXES * CLASSES)).astype(np.float32),
        "priors": priors(random),
    }
    layers = [
        f'name: "{name}" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "priors" top: "{name}" '
        f"detection_output_param {{ num_classes: {CLASSES} share_location: {str(shared).lower()} {p} }}"
        for name, p in DETECTIONS.items()
        if not (shared and name == "no_background")  # which real Caffe does not take
    ]
    shapes = {name: array.shape for name, array in inputs.items()}
    found = compare(tmp_path, caffe, net(*layers, **shapes), inputs)
    rows = {name: array.shape[2] for name, array in found.items()}
    assert rows["background"] == 10 and rows["size"] == 14 and rows["adaptive"] <= 60
    np.testing.assert_array_equal(found["nothing"][0, 0, :, 0], [0, 1])


def small_ssd() -> tuple[str, dict[str, list[Floats]]]:
    """Return an SSD of two maps with its weights; the first one is normalized, as in SSD300."""
    random, layers = Random(3), []
    blobs: dict[str, list[Floats]] = {"norm": [np.linspace(8, 20, 8, dtype=np.float32)]}

    def conv(name: str, bottom: str, count: int, channels: int, rest: str = "pad: 1") -> None:
        layers.append(
            f'name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}" '
            f"convolution_param {{ num_output: {count} kernel_size: 3 {rest} }}"
        )
        blobs[name] = [random.normal(count, channels, 3, 3, scale=0.05), random.normal(count, scale=0.1)]

    conv("c1", "data", 8, 3)
    layers.append('name: "r1" type: "ReLU" bottom: "c1" top: "c1"')
    layers.append(
        'name: "p1" type: "Pooling" bottom: "c1" top: "p1" pooling_param { kernel_size: 2 stride: 2 }'
    )
    layers.append(
        'name: "norm" type: "Normalize" bottom: "p1" top: "norm" '
        "norm_param { across_spatial: false channel_shared: false }"
    )
    conv("c2", "p1", 10, 8, "pad: 1 stride: 2")
    layers.append('name: "r2" type: "ReLU" bottom: "c2" top: "c2"')
    kinds = {
        "norm": (8, 4, "min_size: 6 max_size: 10 aspect_ratio: 2"),
        "c2": (10, 3, "min_size: 10 aspect_ratio: 2"),
    }
    for name, (channels, boxes, prior) in kinds.items():
        for head, width in (("loc", 4), ("conf", 3)):
            conv(f"{name}_{head}", name, boxes * width, channels)
            layers.append(
                f'name: "{name}_{head}_p" type: "Permute" bottom: "{name}_{head}" top: "{name}_{head}_p" '
                "permute_param { order: 0 order: 2 order: 3 order: 1 }"
            )
            layers.append(
                f'name: "{name}_{head}_f" type: "Flatten" bottom: "{name}_{head}_p" top: "{name}_{head}_f"'
            )
        layers.append(
            f'name: "{name}_prior" type: "PriorBox" bottom: "{name}" bottom: "data" top: "{name}_prior" '
            f"prior_box_param {{ {prior} clip: false variance: 0.1 variance: 0.1 "
            "variance: 0.2 variance: 0.2 }"
        )
    for head, axis in (("loc_f", 1), ("conf_f", 1), ("prior", 2)):
        layers.append(
            f'name: "{head}" type: "Concat" bottom: "norm_{head}" bottom: "c2_{head}" top: "{head}" '
            f"concat_param {{ axis: {axis} }}"
        )
    layers.append(
        'name: "rows" type: "Reshape" bottom: "conf_f" top: "rows" '
        "reshape_param { shape { dim: 0 dim: -1 dim: 3 } }"
    )
    layers.append('name: "prob" type: "Softmax" bottom: "rows" top: "prob" softmax_param { axis: 2 }')
    layers.append('name: "flat" type: "Flatten" bottom: "prob" top: "flat"')
    layers.append(
        'name: "found" type: "DetectionOutput" bottom: "loc_f" bottom: "flat" bottom: "prior" top: "found" '
        "include { phase: TEST } detection_output_param { num_classes: 3 share_location: true "
        "nms_param { nms_threshold: 0.45 top_k: 50 } save_output_param { label_map_file: '' } "
        "code_type: CENTER_SIZE keep_top_k: 20 confidence_threshold: 0.3 }"
    )
    return net(*layers, data=(1, 3, 24, 32)), blobs


def test_a_whole_ssd_finds_the_same_boxes_as_caffe(tmp_path: Path, caffe: Witness) -> None:
    text, blobs = small_ssd()
    found = compare(tmp_path, caffe, text, {"data": Random(4).normal(1, 3, 24, 32)}, blobs)
    assert found["found"].shape == (1, 1, 20, 7)


def test_a_whole_ssd_takes_images_of_another_size(tmp_path: Path, caffe: Witness) -> None:
    text, blobs = small_ssd()
    files = vendor.write(tmp_path, text, blobs, "ssd")
    inputs = {"data": Random(5).normal(2, 3, 32, 24)}
    found = ssd.load(*files).run(inputs)["found"]
    assert difference(found, caffe.run(*files, inputs)["found"]) < 1e-5


def test_sizes_that_do_not_fit_are_named(tmp_path: Path) -> None:
    text = net(
        'name: "y" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "priors" top: "y" '
        "detection_output_param { num_classes: 4 }",
        loc=(1, 16),
        conf=(1, 12),
        priors=(1, 2, 16),
    )
    loaded = ssd.load(vendor.write(tmp_path, text, {}, "ssd")[0])
    inputs = {name: np.zeros(shape, np.float32) for name, shape in loaded.inputs.items()}
    with pytest.raises(CaffeforgeError, match="4 default boxes need 16 locations and 16 confidences"):
        loaded.run(inputs)
