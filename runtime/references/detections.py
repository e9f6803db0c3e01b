"""``caffe.DetectionOutput``: SSD's last layer, boxes from what the net says of its default boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference
from caffeforge.runtime.references.suppression import suppressed


@reference(caffe_ops.DetectionOutput)
def detection_output(op: caffe_ops.DetectionOutput, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return float32 (1, 1, found, 7): image, class, score, left, top, right, bottom.

    The rows stand by image, then class, then falling score. Where nothing is found in any image there is a
    row of -1 for each, behind its index.

    Raises:
        GraphError: the operands do not fit together.
    """
    locations, confidences, priors = operands
    assert locations is not None and confidences is not None and priors is not None
    images, count = len(locations), priors.shape[2] // 4
    if priors.size != count * (4 if op.variance_in_target and priors.shape[1] == 1 else 8):
        raise GraphError(
            f"default boxes and their variances are due, there are {list(priors.shape)}",
            where="caffe.DetectionOutput",
        )
    coded = 1 if op.shared_locations else op.num_classes
    if locations.size != images * count * coded * 4 or confidences.size != images * count * op.num_classes:
        raise GraphError(
            f"{count} default boxes need {count * coded * 4} locations and {count * op.num_classes} "
            f"confidences for each image; there are {locations.size // images} and "
            f"{confidences.size // images}",
            where="caffe.DetectionOutput",
        )
    boxes = decoded(op, locations.reshape(images, count, coded, 4), priors.reshape(-1, count, 1, 4))
    scores = confidences.reshape(images, count, op.num_classes)
    rows = [row for image in range(images) for row in _of_image(op, image, boxes[image], scores[image])]
    if not rows:
        nothing = np.full((images, 7), -1, np.float32)
        nothing[:, 0] = np.arange(images)
        return [nothing[None, None]]
    return [np.concatenate(rows)[None, None]]


def decoded(op: caffe_ops.DetectionOutput, locations: NDArray, priors: NDArray) -> NDArray:
    """Return boxes (..., 4) from locations; `priors` holds the default boxes and, if need be, variances."""
    default = priors[0]
    moved = locations if op.variance_in_target else locations * priors[1]
    beyond = int(op.last_pixel)
    size = default[..., 2:] - default[..., :2] + beyond
    if op.code == "CORNER":
        corners: NDArray = default + moved
        return corners
    if op.code == "CORNER_SIZE":
        scaled: NDArray = default + moved * np.concatenate([size, size], -1)
        return scaled
    if op.code != "CENTER_SIZE":
        raise GraphError(f"code {op.code} is not known", where="caffe.DetectionOutput")
    middle = (default[..., :2] + default[..., 2:] + beyond) / 2 + moved[..., :2] * size
    half = np.exp(moved[..., 2:]) * size / 2
    return np.concatenate([middle - half, middle + half], -1)


def _of_image(
    op: caffe_ops.DetectionOutput, image: int, boxes: NDArray, scores: NDArray
) -> Sequence[NDArray]:
    """Return the rows of one image, an array for each class."""
    end = float(op.last_pixel)
    found = []  # (class, indices of boxes, best first)
    for label in range(op.num_classes):
        if label == op.background:
            continue
        own = scores[:, label]
        order = np.argsort(-own, kind="stable")
        order = order[own[order] > op.score_threshold]
        order = order[: op.nms_top_k] if op.nms_top_k > -1 else order
        candidates = boxes[order, 0 if op.shared_locations else label]
        found.append((label, order[suppressed(candidates, op.nms_threshold, end=end, eta=op.nms_eta)]))
    if -1 < op.keep_top_k < sum(len(indices) for _, indices in found):
        found = _best(found, scores, op.keep_top_k)
    rows = []
    for label, indices in found:
        row = np.empty((len(indices), 7), np.float32)
        row[:, 0], row[:, 1], row[:, 2] = image, label, scores[indices, label]
        row[:, 3:] = boxes[indices, 0 if op.shared_locations else label]
        rows.append(row)
    return [row for row in rows if len(row)]


def _best(found: Sequence[tuple[int, NDArray]], scores: NDArray, count: int) -> list[tuple[int, NDArray]]:
    """Return the `count` boxes of the best scores over all classes."""
    of_all = np.concatenate([scores[indices, label] for label, indices in found])
    classes = np.concatenate([np.full(len(indices), label) for label, indices in found])
    kept = np.zeros(len(of_all), bool)
    kept[np.argsort(-of_all, kind="stable")[:count]] = True
    return [(label, indices[kept[classes == label]]) for label, indices in found]
