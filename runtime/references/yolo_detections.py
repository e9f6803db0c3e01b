"""``caffe.YoloDetection``: boxes from the feature maps of YOLO's versions 3 and 4."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.survivors import Overlap, fixed_rows, survivors

BOXES = 3  # of each cell
STEEPEST = np.float32(-100)  # scores of classes that reach below are drawn together


@reference(caffe_ops.YoloDetection)
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def yolo_detection(op: caffe_ops.YoloDetection, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (images, 1, keep_top_k, 6): x, y of the middle, width, height, class, score.

    Zeros stand behind them. Boxes are parts of the sides of the image.
    The rows stand by feature map, then cell, then anchor.

    Raises:
        GraphError: a feature map has not three boxes in each cell, or not three anchors.
    """
    features = [feature for feature in operands if feature is not None]
    depth = BOXES * (5 + op.num_classes)
    wrong = [list(feature.shape) for feature in features if feature.ndim != 4 or feature.shape[1] != depth]
    if wrong or len(op.anchors) != 2 * BOXES * len(features):
        raise GraphError(
            f"three boxes of {op.num_classes} classes need {depth} channels and six numbers of anchors "
            f"for each feature map; there are {wrong[0] if wrong else len(op.anchors)}",
            where="caffe.YoloDetection",
        )
    anchors = np.array(op.anchors, np.float32).reshape(-1, BOXES, 2)
    found = []
    for image in range(len(features[0])):
        rows = np.concatenate([_of_map(op, f[image], a) for f, a in zip(features, anchors, strict=True)])
        overlap = middle_overlap(rows[:, :4])
        kept = survivors(rows[:, 5], rows[:, 4], overlap, np.float32(op.nms_threshold))
        found.append(fixed_rows(rows[kept], op.keep_top_k))
    return [np.stack(found)[:, None]]


def _of_map(op: caffe_ops.YoloDetection, feature: NDArray, anchors: NDArray) -> NDArray:
    """Return the rows (found, 6) of one feature map (channels, rows, columns) and its three anchors."""
    threshold = np.float32(op.score_threshold)
    high, wide = feature.shape[1:]
    cells = feature.reshape(BOXES, -1, high * wide).transpose(2, 0, 1)  # (cells, boxes, 5 + classes)
    confidence = _sigmoid(cells[..., 4])
    cell, box = np.nonzero(confidence >= threshold)
    likely = _likely(cells[cell, box, 5:])
    score = confidence[cell, box] * likely.max(1)
    enough = (score >= threshold) & (score > 0)
    cell, box, score, label = cell[enough], box[enough], score[enough], likely[enough].argmax(1)
    told = cells[cell, box, :4]
    middle = _sigmoid(told[:, :2]) + np.stack([cell % wide, cell // wide], 1).astype(np.float32)
    image = np.array(op.image_size[::-1], np.float32)
    size = np.exp(told[:, 2:]) * anchors[box] / image
    return np.column_stack([middle / np.array([wide, high], np.float32), size, label, score]).astype(
        np.float32
    )


def _sigmoid(x: NDArray) -> NDArray:
    part: NDArray = 1 / (1 + np.exp(-x))
    return part


def _likely(scores: NDArray) -> NDArray:
    """Return the softmax of scores (count, classes), in which those far below 0 are drawn together."""
    if not scores.size:
        return scores
    least = scores.min(1, keepdims=True)
    below = scores - scores.max(1, keepdims=True)
    exponents = np.exp(np.where(least < STEEPEST, below / least * STEEPEST, below))
    part: NDArray = exponents / exponents.sum(1, keepdims=True)
    return part


def middle_overlap(boxes: NDArray) -> Overlap:
    """Return the overlap of boxes (count, 4) of x, y of the middle, width and height."""
    middle, size = boxes[:, :2], boxes[:, 2:]
    begin, end = middle - size / 2, middle + size / 2
    areas = size[:, 0] * size[:, 1]

    def overlap(one: int, others: NDArray) -> NDArray:
        sides = np.minimum(end[one], end[others]) - np.maximum(begin[one], begin[others])
        common = np.where((sides < 0).any(1), np.float32(0), sides[:, 0] * sides[:, 1])
        part: NDArray = common / (areas[one] + areas[others] - common)
        return part

    return overlap
