"""Compass' RefineDetectionOutput: OpenVINO's operator computes the same of both stages of RefineDet."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.loaded import load
from tests.e2e.dialect_cases import Single, written
from tests.e2e.layer_cases import Floats, Random
from tests.real_caffe.witness import cache_directory
from tests.runners import openvino_detections

BACKEND = find("compass")
PYTHON = cache_directory() / "openvino" / "bin" / "python"
BOXES, CLASSES = 30, 4


def bottoms(r: Random, images: int, count: int) -> list[Floats]:
    """Return locations, confidences, default boxes, and objectness and locations of the first stage."""
    low = r.generator.uniform(0, 0.7, (BOXES, 2))
    boxes = np.concatenate([low, low + r.generator.uniform(0.05, 0.3, (BOXES, 2))], 1)
    priors = np.stack([boxes.ravel(), np.tile([0.1, 0.1, 0.2, 0.2], BOXES)]).astype(np.float32)
    scores = r.generator.dirichlet(np.ones(CLASSES), (images, BOXES)).astype(np.float32)
    objects = r.generator.dirichlet(np.ones(2), (images, BOXES)).astype(np.float32)
    found = [
        r.normal(images, 4 * BOXES),
        scores.reshape(images, -1),
        priors[None],
        objects.reshape(images, -1),
        r.normal(images, 4 * BOXES),
    ]
    return found[:count]


def test_both_stages_give_the_boxes_that_openvino_gives(tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip("openvino-dev is not installed; tests/runners/openvino.sh installs it")
    found = {}
    for seed in range(16):
        r = Random(seed)
        count = r.pick((3, 4, 5, 5))
        folder = tmp_path / f"{seed:02}"
        folder.mkdir()
        settings = {
            "background_label_id": r.pick((0, 2)),
            "keep_top_k": r.pick((10, 200)),
            "variance_encoded_in_target": r.pick((False, True)),
            "share_location": True,
            "confidence_threshold": r.pick((0.01, 0.3)),
            "objectness_score": r.pick((0.01, 0.4)),
        }
        nms = {"nms_threshold": r.pick((0.2, 0.45)), "top_k": r.pick((8, 400))}
        case = Single("RefineDetectionOutput", text(settings, nms), bottoms(r, 1 if count == 5 else 2, count))
        prototxt, caffemodel, inputs = written([case], "compass", folder)
        found[folder] = load(prototxt, caffemodel, BACKEND).run(inputs)["y0_0"][0, 0]
        attributes = settings | {"nms_threshold": nms["nms_threshold"], "top_k": nms["top_k"]}
        attributes |= {
            "keep_top_k": [settings["keep_top_k"]],
            "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
            "normalized": True,
        }
        (folder / "attributes.json").write_text(json.dumps(attributes))
        # OpenVINO takes three inputs or five, and no variances where they are not read.
        priors = case.bottoms[2][:, : 1 if settings["variance_encoded_in_target"] else 2]
        still = [np.zeros((2, 4 * BOXES), np.float32)] if count == 4 else []
        np.savez(folder / "inputs.npz", *case.bottoms[:2], priors, *case.bottoms[3:], *still)
    subprocess.run([PYTHON, "-I", openvino_detections.__file__, tmp_path], check=True, capture_output=True)
    for folder, boxes in found.items():
        due = np.load(folder / "boxes.npy")
        assert len(due) > 3
        np.testing.assert_allclose(in_order(boxes), in_order(due), rtol=1e-4, atol=1e-5, err_msg=str(folder))


def text(settings: dict[str, object], nms: dict[str, object]) -> str:
    """Return the layer's parameters."""
    inner = " ".join(f"{name}: {value}" for name, value in nms.items())
    outer = " ".join(f"{name}: {str(value).lower()}" for name, value in settings.items())
    return (
        f"refine_detection_output_param {{ num_classes: {CLASSES} code_type: CENTER_SIZE {outer} "
        f"nms_param {{ {inner} }} }}"
    )


def in_order(rows: Floats) -> Floats:
    """Return rows by image, class and falling score, whatever order they are in."""
    return rows[np.lexsort((-rows[:, 2], rows[:, 1], rows[:, 0]))]


@pytest.mark.parametrize(
    ("fields", "images", "sentence"),
    [
        ("num_classes: 4 code_type: CENTER_SIZE", 2, "one image at a time"),
        ("num_classes: 4", 1, "CENTER_SIZE"),
        ("num_classes: 3 code_type: CENTER_SIZE", 1, "as many confidences"),
        ("code_type: CENTER_SIZE", 1, "num_classes is due"),
    ],
)
def test_what_refinedet_does_not_tell_is_refused(
    fields: str, images: int, sentence: str, tmp_path: Path
) -> None:
    layer = f"refine_detection_output_param {{ {fields} }}"
    case = Single("RefineDetectionOutput", layer, bottoms(Random(1), images, 5))
    with pytest.raises(ReadError, match=sentence):
        load(*written([case], "compass", tmp_path)[:2], BACKEND)


def test_objectness_of_another_number_of_images_is_refused(tmp_path: Path) -> None:
    r, settings = Random(5), "refine_detection_output_param { num_classes: 3 }"
    maps = (r.normal(2, 24), r.normal(2, 18), r.normal(1, 2, 24), r.normal(1, 12))
    files = written([Single("RefineDetectionOutput", settings, maps)], "compass", tmp_path)
    with pytest.raises(ReadError, match="each image has its own objectness"):
        load(*files[:2], BACKEND)
