"""Caffe's layers that find objects, by other ops of each opset: onnxruntime finds what the references do."""

from __future__ import annotations

import numpy as np
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.errors import GraphError, LegalizeError
from caffeforge.runtime.op import Op
from tests.onnx_out import body_cases, fixed_size_cases, region_cases
from tests.onnx_out.body_cases import Draw
from tests.onnx_out.written_bodies import OPSETS, Written, agree, reference

SEEDS = 3
MAKERS = (
    body_cases.yolo_detection_output,
    body_cases.regions_above,
    body_cases.frcn_detection,
    body_cases.yolo_detection,
    fixed_size_cases.retina_face_detection,
    fixed_size_cases.detection_out,
    fixed_size_cases.yolov3_detection,
    fixed_size_cases.image_detect,
    fixed_size_cases.padded_proposal,
)


OTHERS = (
    region_cases.psroi_mask_pooling,
    region_cases.crop_and_resize,
    region_cases.pyramid_crop,
    region_cases.mask_proposal,
    region_cases.mask_detection,
    region_cases.selected_boxes,
    region_cases.farthest_points,
    region_cases.ball_query,
    region_cases.nearest_three,
    region_cases.matrix_inverse,
)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("make", (*MAKERS, *OTHERS), ids=lambda make: make.__name__)
def test_found_objects_are_those_of_the_reference(make: body_cases.Maker, opset: int) -> None:
    """Each opset is asked about settings of its own."""
    found, first = [], SEEDS * OPSETS.index(opset)
    for seed in range(first, first + SEEDS):
        op, samples = make(Draw(seed))
        found += agree(op, samples, opset)
    assert sum(array.any() for array in found) >= 2


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_an_opset_without_nonzero_cannot_say_them(make: body_cases.Maker) -> None:
    op, samples = make(Draw(0))
    with pytest.raises(LegalizeError, match="opset 9"):
        Written(op, samples[0], 8)


@pytest.mark.parametrize("opset", [9, 18])
def test_a_run_with_more_boxes_than_there_is_room_for_fails(opset: int) -> None:
    op = caffe_ops.Yolov3Detection(
        num_classes=2,
        anchors=(9.0,) * 6,
        image_size=(64, 64),
        most=2,
        score_threshold=0.3,
        nms_threshold=0.5,
    )
    operands = [np.zeros((1, 21, 3, 3), np.float32)]
    written = Written(op, operands, opset)
    assert written.run(operands)[0][0, 0] == 0  # no score is above the threshold
    operands[0][:] = 3
    with pytest.raises(GraphError, match="room for 2"):
        reference(op, operands)
    with pytest.raises(Fail, match="ConstantOfShape"):
        written.run(operands)


def test_what_a_run_of_onnx_cannot_say_is_told() -> None:
    op = caffe_ops.SelectedBoxes(centers=False, limit=3, full=True, score_threshold=0.5, nms_threshold=0.5)
    with pytest.raises(LegalizeError, match="cannot fail where fewer boxes stay"):
        Written(op, [np.zeros((1, 5, 4), np.float32), np.zeros((1, 2, 5), np.float32)], 18)
    with pytest.raises(LegalizeError, match="no inverse of a matrix; 20 rows"):
        Written(caffe_ops.MatrixInverse(), [np.eye(20, dtype=np.float32)], 18)


def test_a_matrix_without_inverse_gives_no_number() -> None:
    matrix = np.ones((2, 2), np.float32)
    (found,) = Written(caffe_ops.MatrixInverse(), [matrix], 18).run([matrix])
    assert not np.isfinite(found).all()


MISFITS: list[tuple[Op, list[tuple[int, ...]], str]] = [
    (
        caffe_ops.YoloDetectionOutput(
            num_classes=2,
            anchors=(1.0, 2.0),
            masks=(0,),
            strides=(1.0,),
            exclusive=True,
            score_threshold=0.5,
            nms_threshold=0.5,
        ),
        [(1, 7, 3, 4)],
        r"need maps \[1, 7, rows, as many columns\], one is \[1, 7, 3, 4\]",
    ),
    (
        caffe_ops.RegionsAbove(
            stride=16,
            base_size=16,
            image_size=(90, 90),
            score_threshold=0.5,
            nms_threshold=0.5,
            keep_top_k=3,
        ),
        [(1, 18, 3, 4), (1, 36, 4, 3)],
        r"9 anchors need \[1, 36, 3, 4\]",
    ),
    (
        caffe_ops.FrcnDetection(num_classes=3, score_threshold=0.5, nms_threshold=0.5, keep_top_k=3),
        [(4, 12), (4, 2), (1, 1, 4, 5)],
        "has 8 numbers, 4 regions of 1 images and 3 classes need 12",
    ),
    (
        caffe_ops.DetectionOut(num_classes=3, anchors=(1.0, 1.0), score_threshold=0.5, nms_threshold=0.5),
        [(1, 9, 4, 4)],
        r"1 boxes of 3 classes need a map \[1, 8, rows, columns\], it is \[1, 9, 4, 4\]",
    ),
    (
        caffe_ops.RetinaFaceDetection(score_threshold=0.5, nms_threshold=0.5, keep_top_k=3),
        [(1, 4, 2, 2), (1, 8, 2, 2), (1, 10, 2, 2)] * 3,
        "20 numbers of points in a cell",
    ),
]


@pytest.mark.parametrize(("op", "shapes", "reason"), MISFITS, ids=lambda each: str(each)[:12])
def test_operands_that_do_not_fit_are_told(op: Op, shapes: list[tuple[int, ...]], reason: str) -> None:
    with pytest.raises(LegalizeError, match=reason):
        Written(op, [np.zeros(shape, np.float32) for shape in shapes], 11)
