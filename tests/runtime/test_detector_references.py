"""References of detectors with results of fixed size: what no Caffe can say of them.

What they find in one image, tests/e2e/test_sophgo_detectors.py compares with a Caffe.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.graph import Node
from caffeforge.runtime.op import Op
from caffeforge.runtime.reference import find

REGIONS = caffe_ops.RegionsAbove(
    stride=16, base_size=4, image_size=(64, 96), score_threshold=0.7, nms_threshold=0.5, keep_top_k=7
)
BOXES = caffe_ops.FrcnDetection(num_classes=3, score_threshold=0.5, nms_threshold=0.5, keep_top_k=7)
YOLO = caffe_ops.YoloDetection(
    num_classes=2,
    anchors=tuple(float(side) for side in range(10, 22)),
    image_size=(64, 96),
    score_threshold=0.2,
    nms_threshold=0.4,
    keep_top_k=7,
)
FACES = caffe_ops.RetinaFaceDetection(score_threshold=0.5, nms_threshold=0.4, keep_top_k=7)
PLACES = ((4, 6), (2, 3), (1, 2))
SHAPES: dict[Op, Sequence[tuple[int, ...]]] = {
    REGIONS: [(3, 18, 2, 3), (3, 36, 2, 3)],
    BOXES: [(3, 8, 12), (3, 8, 3), (3, 1, 8, 5)],
    YOLO: [(3, 21, 4, 6), (3, 21, 2, 3)],
    FACES: [(3, channels, *places) for places in PLACES for channels in (4, 8, 20)],
}


def run(op: Op, operands: Sequence[NDArray]) -> NDArray:
    (result,) = find(Node("node", op, [], []))(op, operands)
    return np.asarray(result)


@pytest.mark.parametrize("op", SHAPES, ids=lambda op: op.op_type)
def test_each_image_of_several_gives_what_it_gives_alone(op: Op) -> None:
    random = np.random.default_rng(0)
    whole = [random.uniform(0, 1, shape).astype(np.float32) for shape in SHAPES[op]]
    both = run(op, whole)
    alone = [run(op, [operand[image : image + 1] for operand in whole]) for image in range(3)]
    if op is REGIONS:  # a region begins with the index of its image
        for image, rows in enumerate(alone):
            rows[rows.any(-1), 0] = image
    np.testing.assert_array_equal(both, np.concatenate(alone))
    assert both.any(axis=(1, 2, 3)).all()


@pytest.mark.parametrize("op", SHAPES, ids=lambda op: op.op_type)
def test_operands_that_do_not_fit_are_named(op: Op) -> None:
    wrong = [np.zeros((*shape[:1], shape[1] + 1, *shape[2:]), np.float32) for shape in SHAPES[op]]
    with pytest.raises(GraphError, match="there are"):
        run(op, wrong)
