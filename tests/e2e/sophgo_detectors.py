"""Random settings of the layers of Sophgo's Caffe that find objects; scores are often alike."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.e2e.dialect_cases import Maker, Single
from tests.e2e.layer_cases import Floats, Random

THRESHOLDS = (0.05, 0.2, 0.3, 0.5, 0.7)
OVERLAPS = (0, 0.1, 0.3, 0.45, 0.7, 0.9)
KEPT = (1, 3, 10, 50, 200)


def frcn_detection(r: Random) -> Single:
    """Regions of one image; scores are probabilities, of which at most one of a region is above one half."""
    count, classes, kept = r.size(1, 40), r.pick((2, 3, 21)), r.pick(KEPT)
    corners = r.generator.uniform(0, 200, (count, 2))
    ends = corners + r.generator.uniform(-5 if r.pick((False, True)) else 5, 150, (count, 2))
    rois = np.concatenate([np.zeros((count, 1)), corners, ends], 1)[None, None]
    exponents = np.exp(r.normal(count, classes, scale=r.pick((1, 4))))
    scores = exponents / exponents.sum(1, keepdims=True)
    deltas = r.normal(count, 4 * classes, *r.pick(((), (1, 1))), scale=0.3)
    if r.pick((False, True)):
        rois, scores, deltas = np.round(rois), np.round(scores * 20) / 20, _steps(deltas, 8)
    text = (
        f"nms_threshold: {r.pick(OVERLAPS)} obj_threshold: {r.pick((0.5, 0.6, 0.9))} "
        f"keep_topk: {kept} class_num: {classes}"
    )
    bottoms = deltas, scores.astype(np.float32), rois.astype(np.float32)
    return Single("FrcnDetection", f"frcn_detection_param {{ {text} }}", bottoms, varies=False)


def proposal(r: Random) -> Single:
    """Up to three images; one score of each is high, as this Caffe ends where an image has none."""
    images, rows, columns = r.size(1, 3), r.size(1, 7), r.size(1, 7)
    scores = r.generator.uniform(0, 1, (images, 18, rows, columns))
    scores[:, r.size(9, 17), 0, 0] = 0.95
    deltas = r.normal(images, 36, rows, columns, scale=0.4)
    if r.pick((False, True)):
        scores, deltas = np.round(scores * 10) / 10, _steps(deltas, 8)
    sizes = r.pick(("", f"feat_stride: {r.pick((4, 8))} anchor_base_size: {r.pick((4, 7, 13, 15))}"))
    text = (
        f"{sizes} rpn_obj_threshold: {r.pick(THRESHOLDS)} rpn_nms_threshold: {r.pick(OVERLAPS)} "
        f"rpn_nms_post_top_n: {r.pick(KEPT)} net_input_h: {r.size(20, 300)} net_input_w: {r.size(20, 300)}"
    )
    return Single("Proposal", f"proposal_param {{ {text} }}", (scores.astype(np.float32), deltas))


def retina_face_detection(r: Random) -> Single:
    """Faces of all scores; of more than 16 that are alike this Caffe's order is that of its sort."""
    threshold, share = r.pick(THRESHOLDS), r.pick((0, 0.02, 0.1, 0.5))
    alike = r.pick((False, True)) and share < 0.1
    maps: list[Floats] = []
    for _ in range(3):
        rows, columns = r.size(1, 11), r.size(1, 11)
        scores = r.generator.uniform(0, 1, (1, 4, rows, columns))
        few = r.generator.uniform(size=scores.shape) < share
        scores = np.where(few, 0.75 if alike else scores, scores * threshold * 0.9)
        deltas, points = r.normal(1, 8, rows, columns, scale=0.3), r.normal(1, 20, rows, columns)
        maps += [scores.astype(np.float32), deltas, points]
    text = f"nms_threshold: {r.pick(OVERLAPS)} confidence_threshold: {threshold} keep_topk: {r.pick(KEPT)}"
    return Single("RetinaFaceDetection", f"retinaface_detection_param {{ {text} }}", maps, varies=False)


def yolo_detection(r: Random) -> Single:
    """All versions, with their own anchors and with others."""
    classes, version = r.pick((1, 2, 3, 20, 80)), r.pick(("", "tiny: true", "yolo_v4: true", "spp_net: true"))
    count = 2 if "tiny" in version else 3
    alike, scale = r.pick((False, True)), r.pick((0.5, 2, 3, 60))
    maps = []
    for _ in range(count):
        cells = r.normal(1, 3, 5 + classes, r.size(1, 5), r.size(1, 5), scale=scale)
        cells[:, :, 2:4] = cells[:, :, 2:4].clip(-3, 3)
        cells = _steps(cells, 4) if alike else cells
        maps.append(cells.reshape(1, -1, *cells.shape[3:]))
    if r.pick((False, True)):
        version += f' anchors: "{r.pick((",", ", ")).join(str(r.size(1, 300)) for _ in range(6 * count))}"'
    text = (
        f"net_input_h: {r.size(32, 640)} net_input_w: {r.size(32, 640)} nms_threshold: {r.pick(OVERLAPS)} "
        f"obj_threshold: {r.pick(THRESHOLDS)} keep_topk: {r.pick(KEPT)} {version}"
    )
    text += "" if classes == 80 else f" class_num: {classes}"
    return Single("YoloDetection", f"yolo_detection_param {{ {text} }}", maps, varies=False)


DETECTORS: Mapping[str, Maker] = {
    make.__name__: make for make in (frcn_detection, proposal, retina_face_detection, yolo_detection)
}


def _steps(numbers: Floats, of_one: int) -> Floats:
    """Return numbers rounded to so many steps of one, so that some are alike."""
    return (np.round(numbers * of_one) / of_one).astype(np.float32)
