"""Layers of Synopsys' Caffe from FlowNet, SegNet and SSD, against PyTorch and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from caffeforge.runtime import CaffeforgeError, load
from tests.e2e import vendor
from tests.e2e.layer_cases import Random
from tests.e2e.synopsys_layers import Case, Floats, check, computed

Pairs = Sequence[tuple[float, float]]
RANDOM = Random(17)
IMAGE = RANDOM.normal(2, 3, 6, 8)
FLOW = 4 * RANDOM.normal(2, 2, 6, 8)
PAIR = [RANDOM.normal(1, 4, 3, 9), RANDOM.normal(1, 4, 3, 9)]
FACTOR, OFFSET = RANDOM.normal(1, 3, 1, 1), RANDOM.normal(1, 3, 1, 1)


def aligned(x: Floats, height: int, width: int) -> Floats:
    found = functional.interpolate(torch.from_numpy(x), (height, width), mode="bilinear", align_corners=True)
    return np.asarray(found.numpy())


def warped(x: Floats, flow: Floats) -> Floats:
    """Return pixels between the four around where the flow points, 0 where that is outside."""
    out = np.zeros_like(x)
    for n, i, j in np.ndindex(len(x), *x.shape[2:]):
        at_x, at_y = j + flow[n, 0, i, j], i + flow[n, 1, i, j]
        if 0 <= at_x < x.shape[3] and 0 <= at_y < x.shape[2]:
            left, top = int(at_x), int(at_y)
            right, low = min(left + 1, x.shape[3] - 1), min(top + 1, x.shape[2] - 1)
            a, b = at_x - left, at_y - top
            above = (1 - a) * x[n, :, top, left] + a * x[n, :, top, right]
            below = (1 - a) * x[n, :, low, left] + a * x[n, :, low, right]
            out[n, :, i, j] = (1 - b) * above + b * below
    return out


def weighed(
    x: Floats, size: tuple[int, int], of: Callable[[int, int], tuple[float, Callable[[float], float]]]
) -> Floats:
    """Return means of all pixels, weighed along each axis by their distance from a place.

    `of` tells for an axis and a place of the result the place in `x`, and the weight by distance.
    """
    out = np.zeros((*x.shape[:2], *size))
    for i, j in np.ndindex(*size):
        weights = []
        for axis, place in enumerate((i, j)):
            at, weight = of(axis, place)
            weights.append(np.array([weight(at - other) for other in range(x.shape[2 + axis])]))
        grid = np.outer(*weights)
        out[:, :, i, j] = (x * grid).sum((2, 3)) / grid.sum()
    return out


def tent(distance: float) -> float:
    return max(0.0, 1 - abs(distance))


def cubic(distance: float) -> float:
    x = abs(distance)
    return 1.5 * x**3 - 2.5 * x**2 + 1 if x <= 1 else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0


def resampled(x: Floats, size: tuple[int, int], kernel: Callable[[float], float], *, smooth: bool) -> Floats:
    factors = [old / new for old, new in zip(x.shape[2:], size, strict=True)]

    def of(axis: int, place: int) -> tuple[float, Callable[[float], float]]:
        wide = factors[axis] if smooth else 1
        return place * factors[axis] + factors[1 - axis] / 2 - 0.5, lambda apart: kernel(apart / wide)

    return weighed(x, size, of)


def downsampled(x: Floats, size: tuple[int, int]) -> Floats:
    scales = [(old - 1) / (new - 1) for old, new in zip(x.shape[2:], size, strict=True)]
    return weighed(
        x, size, lambda axis, place: (place * scales[axis], lambda apart: tent(apart / scales[axis]))
    )


def shifted(a: Floats, b: Floats, count: int) -> Floats:
    out = np.zeros((1, count, *a.shape[2:]), np.float32)
    for c, j in np.ndindex(count, a.shape[3]):
        if j >= c:
            out[0, c, :, j] = (a[0, :, :, j] * b[0, :, :, j - c]).sum(0)
    return out


def attention() -> Case:
    query, state, memory = RANDOM.normal(2, 4), RANDOM.normal(2, 3), RANDOM.normal(2, 3, 4)
    v = np.array([0.5, -0.3, 1.2, 0.1], np.float32)
    weight = v * 0.5 / np.sqrt(np.sqrt(np.maximum(v, 0)).sum())
    keys = memory.transpose(0, 2, 1).reshape(2, 3, 4)
    scores = (np.tanh(keys + query[:, None]) * weight).sum(2)
    expected = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    fields = 'batch_size: 2 query_depth: 4 alignments_size: 3 attention_option: "luong"'
    return Case("Attention", fields, [query, state, memory, v], [expected])


SMALL = RANDOM.normal(2, 1, 3, 4)
WHOLE = np.array([-2, 0.5, 1.5], np.float32)[:, None, None]
QUERY, MEMORY = RANDOM.normal(2, 1024, scale=0.05), RANDOM.normal(2, 500, 1024)
LIKE = functional.softmax(
    torch.einsum("nd,nad->na", torch.from_numpy(QUERY), torch.from_numpy(MEMORY)), 1
).numpy()
LARGE = np.concatenate([aligned(IMAGE, 10, 10), aligned(SMALL, 10, 10)], 1)
CASES = [
    Case("BN", "bn_mode: INFERENCE", [IMAGE], [IMAGE * FACTOR + OFFSET], [FACTOR, OFFSET]),
    Case("Accum", "", [IMAGE, SMALL], [np.concatenate([IMAGE, aligned(SMALL, 6, 8)], 1)]),
    Case("Accum", "size_divisible_by: 5", [IMAGE, SMALL], [LARGE]),
    Case(
        "Accum",
        "top_height: 9 top_width: 5",
        [IMAGE, SMALL],
        [np.concatenate([IMAGE, aligned(SMALL, 6, 8)], 1)],
    ),
    Case("Accum", "have_reference: true", [IMAGE, SMALL], [aligned(IMAGE, 3, 4)]),
    Case("Resample", "height: 12 width: 16", [IMAGE], [resampled(IMAGE, (12, 16), tent, smooth=False)]),
    Case("Resample", "height: 3 width: 4", [IMAGE], [resampled(IMAGE, (3, 4), tent, smooth=True)]),
    Case("Resample", "", [IMAGE, SMALL], [resampled(IMAGE, (3, 4), tent, smooth=True)]),
    Case(
        "Resample",
        "height: 3 width: 4 antialias: false",
        [IMAGE],
        [resampled(IMAGE, (3, 4), tent, smooth=False)],
    ),
    Case(
        "Resample",
        "height: 9 width: 12 type: CUBIC",
        [IMAGE],
        [resampled(IMAGE, (9, 12), cubic, smooth=False)],
    ),
    Case(
        "Resample", "height: 3 width: 4 type: CUBIC", [IMAGE], [resampled(IMAGE, (3, 4), cubic, smooth=True)]
    ),
    Case("Resample", "height: 12 width: 16 type: NEAREST", [IMAGE], [IMAGE.repeat(2, 2).repeat(2, 3)]),
    Case("Downsample", "top_height: 3 top_width: 5", [IMAGE], [downsampled(IMAGE, (3, 5))]),
    Case("Downsample", "", [IMAGE, IMAGE], [IMAGE]),
    Case("FlowWarp", "", [IMAGE, FLOW], [warped(IMAGE, FLOW)]),
    Case("Corr1d", "num_of_shifts: 6 stride: 2", PAIR, [shifted(PAIR[0], PAIR[1], 3)]),
    attention(),
    Case("ChannelNorm", "", [IMAGE], [np.sqrt((IMAGE**2).sum(1, keepdims=True))]),
    Case("SpatialProduct", "", [IMAGE, FLOW[:, :1]], [IMAGE * FLOW[:, :1]]),
    Case("FloorDiv", "", [IMAGE, WHOLE], [IMAGE // WHOLE]),
    Case("FloorDiv", "", [IMAGE], [IMAGE // WHOLE], [WHOLE]),
    Case("FloorMod", "", [IMAGE, WHOLE], [IMAGE % WHOLE]),
    Case("Pow", "", [np.abs(IMAGE), WHOLE], [np.abs(IMAGE) ** WHOLE]),
    Case("Pow", "", [np.abs(IMAGE)], [np.abs(IMAGE) ** WHOLE], [WHOLE]),
    Case("Sub", "", [IMAGE], [IMAGE - WHOLE], [WHOLE]),
    Case("Div", "", [IMAGE], [IMAGE / WHOLE], [WHOLE]),
    Case("Maximum", "", [IMAGE], [np.maximum(IMAGE, WHOLE)], [WHOLE]),
    Case("Minimum", "", [IMAGE], [np.minimum(IMAGE, WHOLE)], [WHOLE]),
    Case("HardTanH", "", [IMAGE], [functional.hardtanh(torch.from_numpy(IMAGE)).numpy()]),
    Case("LuongAttention", "", [QUERY, QUERY, MEMORY], [LIKE]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_layer_computes_what_its_source_does(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


def priors(sides: Pairs, shifts: Pairs = ()) -> Floats:
    """Return boxes of these sides around the middles of 2 x 3 cells, of an image of 20 x 30."""
    rows = []
    for i, j in np.ndindex(2, 3):
        for (w, h), (right, down) in zip(sides, shifts or [(0.0, 0.0)] * len(sides), strict=True):
            x, y = 10 * (j + 0.5) + right, 10 * (i + 0.5) + down
            rows.append([(x - w / 2) / 30, (y - h / 2) / 20, (x + w / 2) / 30, (y + h / 2) / 20])
    return np.array(rows)


A, B = 2**0.5, 0.5**0.5
RATIOS = [(8 * A, 8 * B), (8 * B, 8 * A)]
SIZES = "min_size: 8 max_size: 18 aspect_ratio: 2"
DENSE = [(j * 8, i * 8) for i in range(-2, 2) for j in range(-2, 2)]
DENSER = [(j * 16, i * 16) for i in (-1, 0) for j in (-1, 0)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (SIZES, priors([(8, 8), (12, 12), *RATIOS])),
        (f"{SIZES} tf: true", priors([(8, 8), *RATIOS, (12, 12)])),
        (f"{SIZES} keras: true", priors([(12, 12), (8, 8), *RATIOS])),
        (f"{SIZES} yx_order: true", priors([(8, 8), (12, 12), *RATIOS])[:, [1, 0, 3, 2]]),
        ("box_width: [3, 5] box_height: [4, 7]", priors([(3, 4), (5, 7)])),
        ("min_size: 60 tf: true", priors([(60, 60)]) + np.array([0.05, 0.05, -0.05, -0.05])),
        (
            "min_size: [32, 64, 128] faceboxes: true",
            priors([(31, 31)] * 16 + [(63, 63)] * 4 + [(127, 127)], DENSE + DENSER + [(0, 0)]),
        ),
        ("min_size: 30 clip: true keras: true", priors([(30, 30)]).clip(0, 1)),
    ],
)
def test_default_boxes_come_in_the_order_that_is_asked_for(
    fields: str, expected: Floats, tmp_path: Path
) -> None:
    spread = [0.1, 0.1, 0.2, 0.2]
    layer = f'type: "PriorBox" prior_box_param {{ {fields} variance: {spread} }}'
    (found,) = computed(
        layer, [np.zeros((1, 1, 2, 3), np.float32), np.zeros((1, 1, 20, 30), np.float32)], tmp_path
    )
    flat = expected.reshape(-1)
    np.testing.assert_allclose(found, [[flat, np.resize(spread, flat.shape)]], rtol=1e-4, atol=1e-6)


def test_heads_that_come_one_by_one_give_what_they_give_joined(tmp_path: Path) -> None:
    boxes = RANDOM.generator.uniform(0, 0.6, (1, 2, 10, 4)).astype(np.float32)
    boxes[:, :, :, 2:] = boxes[:, :, :, :2] + 0.3
    boxes[:, 1] = 0.1
    conf, loc = RANDOM.normal(1, 30), 0.1 * RANDOM.normal(1, 40)
    flat = boxes.reshape(1, 2, 40)
    fields = "num_classes: 3 nms_param { nms_threshold: 0.4 top_k: 8 } code_type: CENTER_SIZE keep_top_k: 6"
    joined = f'type: "DetectionOutput" detection_output_param {{ {fields} }}'
    (expected,) = computed(joined, [loc, conf, flat], tmp_path)
    # The same numbers in a net of SSD's own dialect, whose layer a real Caffe runs.
    ssd = vendor.write(tmp_path, SSD % fields, {}, "ssd")
    inputs = {"loc": loc, "conf": conf, "boxes": flat}
    np.testing.assert_array_equal(load(*ssd, dialect="ssd").run(inputs)["y"], expected)
    heads = [conf[:, :18], conf[:, 18:], loc[:, :24], loc[:, 24:]]
    single = joined.replace("num_classes", "nbottom: 2 num_classes")
    for last in ([flat], [boxes[:, :, :6].reshape(1, 2, 24), boxes[:, :, 6:].reshape(1, 2, 16)]):
        (found,) = computed(single, [*heads, *last], tmp_path)
        np.testing.assert_array_equal(found, expected)


FACES = 'type: "PriorBox" prior_box_param { faceboxes: true min_size: [32, 64, 128]'
BLOBS = {'type: "BN"': [FACTOR, OFFSET], 'type: "Add"': [WHOLE]}
SSD = """
layer { name: "loc" type: "Input" top: "loc" input_param { shape { dim: 1 dim: 40 } } }
layer { name: "conf" type: "Input" top: "conf" input_param { shape { dim: 1 dim: 30 } } }
layer { name: "boxes" type: "Input" top: "boxes" input_param { shape { dim: 1 dim: 2 dim: 40 } } }
layer { name: "y" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "boxes" top: "y"
  detection_output_param { %s } }
"""


@pytest.mark.parametrize(
    ("layer", "bottoms", "sentence"),
    [
        ('type: "BN"', [IMAGE], "bn_mode must be INFERENCE"),
        ('type: "Resample" resample_param { height: 12 width: 8 type: NEAREST }', [IMAGE], "lies outside"),
        (
            'type: "FlowWarp" flow_warp_param { fill_value: NOT_A_NUMBER }',
            [IMAGE, FLOW],
            "places outside the image must be zero",
        ),
        ('type: "DenseCRF" dense_crf_param { max_iter: 5 }', [IMAGE], "random fields"),
        ('type: "Add"', [IMAGE], "reads no blob"),
        (f"{FACES} yx_order: true }}", [IMAGE, IMAGE], "does not turn the squares"),
        (f"{FACES} aspect_ratio: 2 }}", [IMAGE, IMAGE], "room for 21 boxes at a place, and fills in 27"),
        (FACES.replace("[32, 64, 128]", "32") + "}", [IMAGE, IMAGE], "room for 1 boxes"),
        ('type: "BiasChannel"', [IMAGE, FLOW], "weak labels"),
        (
            'type: "DetectionOutput" detection_output_param { num_classes: 2 tflite_detection: true }',
            PAIR,
            "Lite",
        ),
    ],
)
def test_what_cannot_be_told_is_refused(
    layer: str, bottoms: list[Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(CaffeforgeError, match=sentence):
        computed(layer, bottoms, tmp_path, blobs=BLOBS.get(layer, []))
