"""Layers of Synopsys' Caffe that choose and cut boxes, against PyTorch, torchvision and loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch.nn import functional

from caffeforge.runtime import CaffeforgeError
from tests.e2e.layer_cases import Random
from tests.e2e.synopsys_layers import Case, Floats, check, computed

RANDOM = Random(11)
DEVIATIONS = [0.1, 0.1, 0.2, 0.2]
MAPS = RANDOM.normal(2, 3, 7, 9)


def boxes(count: int, least: float = -0.2, most: float = 1.2) -> Floats:
    """Return boxes (count, 4) as (top, left, bottom, right), some beyond the image and some upside down."""
    return RANDOM.generator.uniform(least, most, (count, 4)).astype(np.float32)


def upright(count: int) -> Floats:
    """Return boxes (count, 4) with top before bottom and left before right."""
    found = boxes(count, 0, 1).reshape(count, 2, 2)
    return np.sort(found, 1).reshape(count, 4)


def cut(data: Floats, of: Floats, size: tuple[int, int], outside: float) -> Floats:
    """Return PyTorch's samples of a map (channels, height, width) at the places of a box."""
    sides = [
        np.linspace(of[axis], of[axis + 2], count) if count > 1 else np.array([(of[axis] + of[axis + 2]) / 2])
        for axis, count in enumerate(size)
    ]
    y, x = np.meshgrid(*sides, indexing="ij")
    grid = torch.from_numpy(np.stack([x, y], -1)[None] * 2 - 1).float()
    mode: dict[str, Any] = {"align_corners": True, "padding_mode": "border"}
    found = functional.grid_sample(torch.from_numpy(data)[None], grid, **mode)[0].numpy()
    return np.where((x < 0) | (x > 1) | (y < 0) | (y > 1), np.float32(outside), found)


IN = boxes(6)
OF = np.array([0, 1, 1, 0, 1, 0], np.float32)
CUT = np.stack([cut(MAPS[int(image)], box, (4, 3), 0.5) for image, box in zip(OF, IN, strict=True)])
ONE = np.stack([cut(MAPS[int(image)], box, (1, 2), 0) for image, box in zip(OF, IN, strict=True)])
LEVELS = [RANDOM.normal(1, 4, 6, side) for side in (24, 12, 6, 4)]
META = np.array([[0, 500, 600, 3, 448, 448, 0, 10, 20, 440, 430, 1]], np.float32)
SIZES = np.array([0.05, 0.2, 0.3, 0.4, 0.6, 0.9, 0.0], np.float32)
SQUARES = np.stack([0.1 + 0 * SIZES, 0 * SIZES, 0.1 + SIZES, SIZES], 1)
# The level of a box of side s: 4 + log2(s * 448 / 224), from 2 to 5.
OWN = [2, 3, 3, 4, 4, 5, 2]
PYRAMID = np.stack(
    [cut(LEVELS[level - 2][0], box, (2, 3), 0) for level, box in zip(OWN, SQUARES, strict=True)]
)

CASES = [
    Case(
        "CropAndResize",
        'crop_h: 4 crop_w: 3 extrapolation_value: 0.5 data_format: "NCHW"',
        [MAPS, OF, IN],
        [CUT],
    ),
    Case(
        "CropAndResize",
        "crop_h: 1 crop_w: 2",
        [MAPS.transpose(0, 2, 3, 1), OF, IN],
        [ONE.transpose(0, 2, 3, 1)],
    ),
    Case(
        "PyramidROIAlign",
        "crop_height: 2 crop_width: 3",
        [SQUARES[None], META, *[level.transpose(0, 2, 3, 1) for level in LEVELS]],
        [PYRAMID.transpose(0, 2, 3, 1)[None]],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_box_is_cut_as_pytorch_samples_it(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


def test_a_box_of_no_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaffeforgeError, match="index of one of 2 images"):
        computed('type: "CropAndResize" crop_and_resize_param { crop_h: 1 crop_w: 1 data_format: "NCHW" }',
                 [MAPS, OF + 1, IN], tmp_path)  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
def test_boxes_that_stay_are_those_of_torchvision(axis: int, tmp_path: Path) -> None:
    found = upright(40)
    expected = torchvision.ops.nms(torch.from_numpy(found), torch.arange(40, 0, -1.0), 0.3)[:6].numpy()
    x = found if axis == 0 else np.ascontiguousarray(found.T)
    (stay,) = computed(f'type: "NMS" nms_param {{ top_k: 6 axis: {axis} iou_threshold: 0.3 }}', [x], tmp_path)
    np.testing.assert_array_equal(stay, expected)
    layer = f'type: "NMSGather" nms_gather_param {{ top_k: 6 axis: {axis} iou_threshold: 0.3 }}'
    np.testing.assert_array_equal(computed(layer, [x], tmp_path)[0], x.take(expected, axis))


@pytest.mark.parametrize("centers", [0, 1])
def test_suppression_by_class_is_that_of_torchvision(centers: int, tmp_path: Path) -> None:
    of, scores = np.stack([upright(20), upright(20)]), RANDOM.normal(2, 3, 20)
    rows = []
    for image, kind in np.ndindex(2, 3):
        good = np.flatnonzero(scores[image, kind] > 0.2)
        stay = torchvision.ops.nms(
            torch.from_numpy(of[image][good]), torch.from_numpy(scores[image, kind][good]), 0.4
        )
        rows += [[image, kind, good[index]] for index in stay[:3].tolist()]
    expected = np.zeros((18, 3))
    expected[: len(rows)] = rows
    given = of
    if centers:
        size = of[..., 2:] - of[..., :2]
        given = np.concatenate([of[..., :2] + size / 2, size], -1)
    fields = (
        f"max_output_boxes_per_class: 3 iou_threshold: 0.4 score_threshold: 0.2 center_point_box: {centers}"
    )
    check(Case("NonMaxSuppression", fields, [given, scores], [expected]), tmp_path)


def moved(box: Floats, delta: Floats) -> list[float]:
    """Return a box moved by parts of its size, its sides scaled by exponents."""
    height, width = float(box[2] - box[0]), float(box[3] - box[1])
    y, x = box[0] + (0.5 + delta[0]) * height, box[1] + (0.5 + delta[1]) * width
    height, width = height * np.exp(delta[2]), width * np.exp(delta[3])
    return [y - height / 2, x - width / 2, y + height / 2, x + width / 2]


def staying(of: list[list[float]], threshold: float) -> list[int]:
    """Return which of boxes, the best first, overlap no better one by the threshold or more."""
    kept: list[int] = []
    for index, box in enumerate(of):
        if all(share(box, of[other]) < threshold for other in kept):
            kept.append(index)
    return kept


def share(a: list[float], b: list[float]) -> float:
    common = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return common / (both - common) if both else 0


def test_proposals_of_mask_rcnn(tmp_path: Path) -> None:
    scores, deltas, anchors = RANDOM.normal(1, 60, 2), RANDOM.normal(1, 60, 4), upright(60)[None]
    best = np.argsort(-scores[0, :, 1])[:40]
    of = [np.clip(moved(anchors[0, i], deltas[0, i] * DEVIATIONS), 0, 1).tolist() for i in best]
    expected = np.zeros((1, 30, 4))
    kept = staying(of, 0.3)[:30]
    assert 5 < len(kept) < 30
    expected[0, : len(kept)] = np.array(of)[kept]
    fields = (
        f"rpn_bbox_std_dev: {DEVIATIONS} pre_nms_limit: 40 rpn_nms_threshold: 0.3 post_nms_rois_inference: 30"
    )
    layer = f'type: "MaskRCNNProposal" maskrcnn_proposal_param {{ {fields} }}'
    (found,) = computed(layer, [scores, deltas, anchors], tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_objects_of_mask_rcnn(tmp_path: Path) -> None:
    rois, deltas = upright(50)[None], RANDOM.normal(1, 50, 4, 4)
    scores = functional.softmax(torch.from_numpy(RANDOM.normal(1, 50, 4, scale=3.0)), 2).numpy()
    window = (META[0, 7:11] - [0, 0, 1, 1]) / 447
    rows = []
    for kind in (1, 2, 3):
        good = [i for i in range(50) if scores[0, i].argmax() == kind and scores[0, i, kind] > 0.5]
        good.sort(key=lambda i: -scores[0, i, kind])
        of = [moved(rois[0, i], deltas[0, i, kind] * DEVIATIONS) for i in good]
        low, high = window[[0, 1, 0, 1]], window[[2, 3, 2, 3]]
        of = [np.maximum(np.minimum(box, high), low).tolist() for box in of]
        rows += [[*of[i], kind, scores[0, good[i], kind]] for i in staying(of, 0.3)]
    rows.sort(key=lambda row: -row[5])
    for limit in (4, 40):
        expected = np.zeros((1, limit, 6))
        expected[0, : min(limit, len(rows))] = rows[:limit]
        fields = f"bbox_std_dev: {DEVIATIONS} detection_max_instances: {limit} detection_min_confidence: 0.5"
        layer = f'type: "MaskRCNNDetection" maskrcnn_detection_param {{ {fields} }}'
        (found,) = computed(layer, [rois, scores, deltas, META], tmp_path)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def turns(scores: list[float], count: int) -> list[int]:
    """Return in which order the source takes boxes, of which std::partial_sort has sorted ``count``."""
    best, rest = list(range(min(count, len(scores)))), []
    for place in range(len(best), len(scores)):
        worst = min(best, key=lambda i: (scores[i], i))
        if scores[place] >= scores[worst]:
            best[best.index(worst)] = place
            rest.append(worst)
        else:
            rest.append(place)
    return sorted(best, key=lambda i: (-scores[i], -i)) + rest


@pytest.mark.parametrize(
    ("kinds", "sorts", "least", "limit"),
    [(3, 6000, 16, 7), (1, 6000, 16, 7), (3, 6000, 40, 99), (3, 20, 16, 99), (3, 1, 0, 99), (1, 6, 300, 99)],
)
def test_proposals_are_those_of_faster_rcnn(
    kinds: int, sorts: int, least: int, limit: int, tmp_path: Path
) -> None:
    """Written from the layer's source: anchors around (7.5, 7.5), moved from their left + width / 2.

    The last anchor is one too small, and scores are equal among each other.
    """
    count, rows, columns = kinds * kinds, 4, 5
    scores = RANDOM.normal(1, 2 * count, rows, columns).round(1)
    deltas = RANDOM.normal(1, 4 * count, rows, columns, scale=0.3)
    deltas[0, -4:, -1, -1] = [0, 0, -5, -5]
    shapes = [(16, 16)] if kinds == 1 else [(23, 12), (16, 16), (11, 22)]
    found = []
    for k, (wide, high) in enumerate(shapes):
        for s, scale in enumerate([32] if kinds == 1 else [8, 16, 32]):
            a = k * kinds + s
            w, h = wide * scale, high * scale
            for i, j in np.ndindex(rows, columns):
                dx, dy, dw, dh = deltas[0, 4 * a : 4 * a + 4, i, j].astype(float)
                x, y = (
                    7.5 - (w - 1) / 2 + w / 2 + 16 * j + w * dx,
                    7.5 - (h - 1) / 2 + h / 2 + 16 * i + h * dy,
                )
                half = w * np.exp(dw) / 2, h * np.exp(dh) / 2
                box = np.clip([y - half[1], x - half[0], y + half[1], x + half[0]], 0, [119, 159, 119, 159])
                last = (a, i, j) == (count - 1, rows - 1, columns - 1)
                if last or min(box[2:] - box[:2]) + 1 >= least * 1.5:
                    found.append((scores[0, count + a, i, j], box + np.array([0, 0, 1, 1])))
    stay: list[int] = []
    for index in turns([float(score) for score, _ in found], sorts):
        if all(share(list(found[index][1]), list(found[other][1])) <= 0.5 for other in stay):
            stay.append(index)
    stay = stay[:limit]
    boxes = np.array([[0, b[1], b[0], b[3] - 1, b[2] - 1] for b in (found[i][1] for i in stay)])
    own = np.array([[found[i][0]] for i in stay])
    fields = (
        f"anchor_scale: {kinds} anchor_ratio: {kinds} max_rois: {limit} rpn_nms_thresh: 0.5 "
        f"pre_nms_topn: {sorts} rpn_min_size: {least}"
    )
    info = np.array([[120.7, 160.2, 1.5]], np.float32)  # the image's sides lose their fractions
    check(Case("Proposal", fields, [scores, deltas, info], [boxes, own]), tmp_path)


POINTS = RANDOM.normal(2, 700, 4)
CENTERS = RANDOM.normal(2, 30, 3)
WIDE = np.concatenate([CENTERS, RANDOM.normal(2, 30, 1)], 2)  # as many numbers as points have


def far(points: Floats, count: int) -> Floats:
    """Return which points are far from each other, one after the other."""
    found = [0]
    while len(found) < count:
        apart = torch.cdist(
            torch.from_numpy(points[:, :3]).double(), torch.from_numpy(points[found, :3]).double()
        )
        found.append(int(apart.min(1).values.argmax()))
    return np.array(found, np.float32)


def near(points: Floats, center: Floats, count: int, radius: float) -> list[int]:
    inside = [i for i, point in enumerate(points) if ((point[:3] - center) ** 2).sum() <= radius**2][:count]
    return (inside + [inside[0] if inside else 0] * count)[:count]


BALLS = np.array([[near(p, c, 6, 0.6) for c in of] for p, of in zip(POINTS, CENTERS, strict=True)])
GROUPS = np.stack([p[b] for p, b in zip(POINTS, BALLS, strict=True)])
APART = torch.cdist(torch.from_numpy(CENTERS), torch.from_numpy(POINTS[..., :3])) ** 2
LEAST = APART.topk(3, largest=False)
WEIGHTS = RANDOM.normal(2, 30, 3)
TAKEN = np.stack([p[i] for p, i in zip(POINTS, LEAST.indices.numpy(), strict=True)])


@pytest.mark.parametrize(
    "case",
    [
        Case("FarthestPointSample", "n_sample_point: 12", [POINTS], [np.stack([far(p, 12) for p in POINTS])]),
        Case("QueryBallPoint", "n_sample_point: 6 radius: 0.6", [POINTS, WIDE], [BALLS]),
        Case("GroupPoint", "", [POINTS, BALLS.astype(np.float32)], [GROUPS]),
        Case("GroupPoint", "", [POINTS, BALLS[:, 0].astype(np.float32)], [GROUPS[:, 0]]),
        Case("ThreeNN", "", [CENTERS, POINTS[..., :3].copy()], [LEAST.values.numpy(), LEAST.indices.numpy()]),
        Case(
            "ThreeInterpolate",
            "",
            [POINTS, LEAST.indices.numpy().astype(np.float32), WEIGHTS],
            [(TAKEN * WEIGHTS[..., None]).sum(2)],
        ),
    ],
    ids=str,
)  # fmt: skip
def test_points_are_chosen_as_in_pointnet(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.parametrize(
    ("layer", "bottoms", "sentence"),
    [
        ("QueryBallPoint", [POINTS, CENTERS], "steps of the points"),
        ("QueryBallPoint", [POINTS[:1], WIDE], "steps of the points"),
        ("ThreeNN", [CENTERS, POINTS], "three coordinates"),
        (
            "ThreeInterpolate",
            [POINTS, LEAST.indices.numpy().astype(np.float32), WEIGHTS[..., :1]],
            "three weights",
        ),
    ],
)
def test_points_that_the_source_would_read_in_a_wrong_step_are_refused(
    layer: str, bottoms: list[Floats], sentence: str, tmp_path: Path
) -> None:
    fields = "point_net_param { n_sample_point: 6 radius: 0.6 }" if layer == "QueryBallPoint" else ""
    with pytest.raises(CaffeforgeError, match=sentence):
        computed(f'type: "{layer}" {fields}', bottoms, tmp_path, tops=2 if layer == "ThreeNN" else 1)


def test_of_equally_far_points_that_of_the_least_place_among_512_is_taken(tmp_path: Path) -> None:
    points = np.zeros((1, 520, 3), np.float32)
    points[0, [3, 300, 515]] = [1, 0, 0]  # 515 is the fourth of the second 512
    (found,) = computed(
        'type: "FarthestPointSample" point_net_param { n_sample_point: 2 }', [points], tmp_path
    )
    assert found.tolist() == [[0, 3]]
    points[0, 3] = 0
    (found,) = computed(
        'type: "FarthestPointSample" point_net_param { n_sample_point: 2 }', [points], tmp_path
    )
    assert found.tolist() == [[0, 515]]


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        ('type: "ROIAlign" roi_align_param { pooled_h: 2 pooled_w: 2 }', "passes over every region"),
        ('type: "Where4GatherndCrop" where4_gathernd_crop_param { crop_h: 2 }', "size of the level before"),
    ],
)
def test_a_layer_that_contradicts_itself_is_refused(layer: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(CaffeforgeError, match=sentence):
        computed(layer, [MAPS, boxes(2)], tmp_path)


@pytest.mark.parametrize(
    ("layer", "shapes"),
    [
        ('"NonMaxSuppression" non_max_suppression_param { max_output_boxes_per_class: 2 }',
         [(1, 9, 4), (1, 2, 8)]),
        ('"MaskRCNNProposal" maskrcnn_proposal_param { batch_size: 1 rpn_bbox_std_dev: [1, 1, 1, 1] }',
         [(1, 9, 2), (1, 8, 4), (1, 9, 4)]),
        ('"PyramidROIAlign" pyramid_roi_align_param { crop_height: 2 crop_width: 2 }',
         [(2, 3, 4), (1, 12), *[(2, side, side, 4) for side in (8, 4, 2, 1)]]),
    ],
)  # fmt: skip
def test_bottoms_of_other_counts_are_refused(
    layer: str, shapes: list[tuple[int, ...]], tmp_path: Path
) -> None:
    with pytest.raises(CaffeforgeError, match=r"for each|as many images"):
        computed(f"type: {layer}", [np.zeros(shape, np.float32) for shape in shapes], tmp_path)
