"""What stands in ONNX files for Caffe's detection layers, by itself: it computes what the references do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from caffeforge.generated.hub.caffe_ops import DetectionOutput, PartSortedProposal, Proposal, PSROIPooling
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.builder import Builder
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph, Node, Origin, Value
from caffeforge.runtime.onnx_out.bodies import BODIES
from caffeforge.runtime.op import Op
from caffeforge.runtime.reference import find
from caffeforge.runtime.refusal import Refused
from caffeforge.runtime.shapes import infer


def node_of(op: Op, operands: Sequence[NDArray], count: int = 1) -> Node:
    inputs = [
        Value(formal.name, array.dtype.name, array.shape)
        for formal, array in zip(op.inputs, operands, strict=True)
    ]
    types = infer(op, inputs, count)
    outputs = [Value(formal.name, *each) for formal, each in zip(op.outputs, types, strict=False)]
    return Node("node", op, [*inputs], outputs)


def both(op: Op, operands: Sequence[NDArray], count: int = 1) -> list[tuple[NDArray, NDArray]]:
    """Return each result by the reference and by the body, which onnxruntime runs."""
    node = node_of(op, operands, count)
    expected = find(node)(op, operands)
    builder = Builder("node", Origin())
    BODIES[type(op)][0](builder, op, *node.inputs, *node.outputs)
    inputs = [value for value in node.inputs if value is not None]
    for inner in builder.nodes:
        assert not inner.op.domain
        for value in inner.outputs:
            value.producer = inner
    executor = Executor(Graph("body", inputs, node.outputs, builder.nodes))
    found = executor.run({v.name: array for v, array in zip(inputs, operands, strict=True)})
    return [(array, found[v.name]) for array, v in zip(expected, node.outputs, strict=False)]


def agree(pairs: Sequence[tuple[NDArray, NDArray]], tolerance: float = 1e-5) -> None:
    for expected, found in pairs:
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def detections(**changed: object) -> DetectionOutput:
    settings: dict[str, object] = {
        "num_classes": 4,
        "shared_locations": True,
        "background": 0,
        "code": "CENTER_SIZE",
        "variance_in_target": False,
        "last_pixel": False,
        "score_threshold": 0.3,
        "nms_threshold": 0.45,
        "nms_top_k": -1,
        "nms_eta": 1.0,
        "keep_top_k": -1,
    }
    return DetectionOutput(**{**settings, **changed})  # type: ignore[arg-type]


def boxes(op: DetectionOutput, images: int, seed: int, levels: int = 0) -> list[NDArray]:
    """Return operands with 60 default boxes; scores are of so many levels, so that many are equal."""
    random = np.random.default_rng(seed)
    corners = random.uniform(0, 0.5, (60, 2))
    default = np.concatenate([corners, corners + random.uniform(0.1, 0.5, (60, 2))], 1)
    priors = np.stack([default, random.uniform(0.05, 0.3, (60, 4))]).reshape(1, 2, 240)
    coded = 1 if op.shared_locations else op.num_classes
    scores = random.uniform(0, 1, (images, 60 * op.num_classes))
    if levels:
        scores = np.floor(scores * levels) / levels
    locations = random.normal(0, 0.5, (images, 60 * coded * 4))
    return [each.astype(np.float32) for each in (locations, scores, priors)]


CASES: list[dict[str, object]] = [
    {},
    {"nms_top_k": 10, "keep_top_k": 12},
    {"nms_top_k": 400, "keep_top_k": 200},
    {"code": "CORNER", "background": -1},  # sides may change places: such boxes are empty
    {"code": "CORNER_SIZE", "keep_top_k": 3},
    {"variance_in_target": True, "background": 3, "nms_threshold": 1.5},
    {"num_classes": 2, "score_threshold": -3.4e38, "nms_threshold": 0.0},
    {"background": 9, "last_pixel": True},
    {"score_threshold": 0.99, "nms_top_k": 2},
    {"score_threshold": 2.0},
]


@pytest.mark.parametrize("changed", CASES, ids=[" ".join(case) or "plain" for case in CASES])
@pytest.mark.parametrize("shared", [True, False])
def test_found_boxes_are_those_of_the_reference(changed: dict[str, object], shared: bool) -> None:
    op = detections(shared_locations=shared, **changed)
    for images, seed, levels in ((1, 0, 0), (3, 1, 5)):
        agree(both(op, boxes(op, images, seed, levels)))


def test_an_image_without_boxes_beside_one_that_has_some_gives_no_row() -> None:
    op = detections()
    operands = boxes(op, 2, 3)
    operands[1][0] = 0
    ((expected, found),) = both(op, operands)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert set(found[0, 0, :, 0]) == {1}


def test_what_no_op_of_onnx_says_is_refused() -> None:
    for changed, reason in (
        ({"nms_top_k": 0}, "no box"),
        ({"code": "OTHER"}, "code OTHER"),
        ({"nms_eta": 0.9}, "no threshold that falls"),
    ):
        op = detections(**changed)
        node = node_of(op, boxes(op, 1, 0))
        with pytest.raises(Refused, match=reason):
            BODIES[DetectionOutput][0](Builder("node", Origin()), op, *node.inputs, *node.outputs)
    node = node_of(detections(), boxes(detections(num_classes=3), 1, 0))
    with pytest.raises(Refused, match="confidences has 180 numbers, 240 are due"):
        BODIES[DetectionOutput][0](Builder("node", Origin()), node.op, *node.inputs, *node.outputs)


PROPOSALS: list[dict[str, object]] = [
    {},
    {"pre_nms_top_n": 0, "post_nms_top_n": 0},
    {"pre_nms_top_n": 100000, "min_size": 40.0},
    {"post_nms_top_n": 3, "nms_threshold": 0.1, "scales": (1.0,), "ratios": (0.5, 1.0, 2.0)},
    {"min_size": 1000.0},  # nothing is left
]


@pytest.mark.parametrize("changed", PROPOSALS, ids=[" ".join(case) or "plain" for case in PROPOSALS])
def test_proposed_regions_are_those_of_the_reference(changed: dict[str, object]) -> None:
    settings: dict[str, object] = {
        "stride": 16,
        "base_size": 16,
        "ratios": (0.5, 1.0, 2.0),
        "scales": (2.0, 4.0),
        "min_size": 16.0,
        "pre_nms_top_n": 200,
        "post_nms_top_n": 50,
        "nms_threshold": 0.7,
    }
    op = Proposal(**{**settings, **changed})  # type: ignore[arg-type]
    count = len(op.ratios) * len(op.scales)
    random = np.random.default_rng(5)
    scores = random.uniform(0, 1, (1, 2 * count, 7, 9)).astype(np.float32)
    scores[0, :, 3] = np.round(scores[0, :, 3], 1)  # some are equal
    deltas = random.normal(0, 0.4, (1, 4 * count, 7, 9)).astype(np.float32)
    info = np.array([[108.5, 140, 1.25]], np.float32)
    for results in (1, 2):
        pairs = both(op, [scores, deltas, info], results)
        assert len(pairs) == results
        agree(pairs, 1e-4)
        assert (len(pairs[0][0]) == 0) == (op.min_size == 1000)


@pytest.mark.parametrize("images", [1, 3])
def test_several_images_share_one_size(images: int) -> None:
    op = Proposal(
        stride=8,
        base_size=8,
        ratios=(1.0, 2.0),
        scales=(2.0,),
        min_size=4.0,
        pre_nms_top_n=30,
        post_nms_top_n=8,
        nms_threshold=0.5,
    )
    random = np.random.default_rng(8)
    scores = random.uniform(0, 1, (images, 4, 5, 6)).astype(np.float32)
    deltas = random.normal(0, 0.4, (images, 8, 5, 6)).astype(np.float32)
    info = np.array([[38, 47, 1]], np.float32)
    pairs = both(op, [scores, deltas, info], 2)
    agree(pairs, 1e-4)
    assert set(pairs[0][0][:, 0]) == set(range(images))
    two = [scores[[0, 0]], deltas[[0, 0]], info[[0, 0]]]
    with pytest.raises(CaffeforgeError, match="one row tells the size of all images"):
        find(node_of(op, two))(op, two)
    with pytest.raises(Refused, match="one row tells the size of all images"):
        BODIES[Proposal][0](
            Builder("node", Origin()), op, *node_of(op, two, 2).inputs, *node_of(op, two, 2).outputs
        )


@pytest.mark.parametrize("least", [4.0, 24.0, 1000.0])
def test_regions_that_are_sorted_in_part_are_those_of_the_reference(least: float) -> None:
    op, less = (
        PartSortedProposal(
            stride=8,
            base_size=8,
            ratios=(1.0, 2.0),
            scales=(2.0, 4.0),
            min_size=least,
            sorted=count,
            count=30,
            nms_threshold=0.5,
        )
        for count in (120, 119)
    )
    random = np.random.default_rng(9)
    scores = random.uniform(0, 1, (1, 8, 5, 6)).round(1).astype(np.float32)
    deltas = random.normal(0, 0.4, (1, 16, 5, 6)).astype(np.float32)
    pairs = both(op, [scores, deltas, np.array([[38.5, 47.2, 1]], np.float32)], 2)
    agree(pairs, 1e-4)
    assert (len(pairs[0][0]) == 1) == (least == 1000)  # the last is never too small
    node = node_of(less, [scores, deltas, np.zeros((1, 3), np.float32)], 2)
    with pytest.raises(Refused, match="of 120 anchors 119 are sorted"):
        BODIES[PartSortedProposal][0](Builder("node", Origin()), less, *node.inputs, *node.outputs)


def test_bins_of_regions_are_those_of_the_reference() -> None:
    random = np.random.default_rng(6)
    data = random.normal(3, 2, (2, 27, 11, 14)).astype(np.float32)
    corners = random.uniform(-30, 200, (40, 2))
    rois = np.concatenate(
        [random.integers(0, 2, (40, 1)), corners, corners + random.uniform(-20, 120, (40, 2))], 1
    ).astype(np.float32)
    rois[:10, 1:] = np.round(rois[:10, 1:]) + 0.5  # halves, which C rounds away from zero
    rois[10:20, 1:] = np.round(rois[10:20, 1:] / 16) * 16  # edges on pixels
    for scale in (1 / 16, 0.11):
        pairs = both(PSROIPooling(output_dim=3, group_size=3, spatial_scale=scale), [data, rois])
        agree(pairs)
        assert (pairs[0][0] == 0).any() and (pairs[0][0] != 0).any()
