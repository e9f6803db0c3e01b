"""Examples of ops of Caffe's that the mappings give none of: what opsets of ONNX are asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

# The shapes of its operands, float32, and its attributes.
_ASKED: Final[Mapping[str, tuple[Sequence[tuple[int, ...]], str]]] = {
    "caffe.Proposal": (
        [(1, 4, 3, 4), (1, 8, 3, 4), (1, 3)],
        "stride=16, base_size=16, ratios=(1.0,), scales=(2.0, 4.0), min_size=4.0, pre_nms_top_n=20, "
        "post_nms_top_n=5, nms_threshold=0.7",
    ),
    "caffe.PartSortedProposal": (
        [(1, 4, 3, 4), (1, 8, 3, 4), (1, 3)],
        "stride=16, base_size=16, ratios=(1.0,), scales=(2.0, 4.0), min_size=4.0, sorted=24, count=5, "
        "nms_threshold=0.7",
    ),
    "caffe.DetectionOut": (
        [(1, 14, 3, 3)],
        "num_classes=2, anchors=(1.0, 2.0, 3.0, 4.0), score_threshold=0.3, nms_threshold=0.4",
    ),
    "caffe.Yolov3Detection": (
        [(1, 21, 3, 3)],
        "num_classes=2, anchors=(9.0, 8.0, 5.0, 6.0, 7.0, 8.0), image_size=(64, 96), most=9, "
        "score_threshold=0.3, nms_threshold=0.4",
    ),
    "caffe.ImageDetect": (
        [(4, 12), (4, 3), (4, 5)],
        "num_classes=3, image_size=(64, 96), scale=1.0, score_threshold=0.3, nms_threshold=0.4",
    ),
    "caffe.PaddedProposal": (
        [(1, 4, 3, 4), (1, 8, 3, 4), (1, 3)],
        "stride=16.0, base_size=16.0, ratios=(1.0,), scales=(2.0, 4.0), rounded=False, least=(4.0, "
        "4.0), image=(64.0, 96.0, 1.0), pre_nms_top_n=20, count=5, nms_threshold=0.7",
    ),
    "caffe.PSROIPooling": ([(1, 8, 5, 6), (3, 5)], "output_dim=2, group_size=2, spatial_scale=0.5"),
    "caffe.PSROIMaskPooling": (
        [(1, 8, 5, 6), (3, 5)],
        "output_dim=2, group_size=2, spatial_scale=0.5, bin_scale=1.7",
    ),
    "caffe.CropAndResize": ([(1, 3, 5, 6), (4,), (4, 4)], "size=(2, 3), outside=0.0"),
    "caffe.PyramidCrop": (
        [(1, 3, 4), (1, 12), (1, 4, 8, 8), (1, 4, 4, 4), (1, 4, 2, 2), (1, 4, 1, 1)],
        "size=(2, 3), outside=0.0",
    ),
    "caffe.MaskProposal": (
        [(1, 9, 2), (1, 9, 4), (1, 9, 4)],
        "deviations=(0.1, 0.1, 0.2, 0.2), pre_nms_top_n=6, post_nms_top_n=3, nms_threshold=0.7",
    ),
    "caffe.MaskDetection": (
        [(1, 9, 4), (1, 9, 3), (1, 9, 3, 4), (1, 12)],
        "deviations=(0.1, 0.1, 0.2, 0.2), limit=3, score_threshold=0.3, nms_threshold=0.3",
    ),
    "caffe.SelectedBoxes": (
        [(1, 9, 4), (1, 3, 9)],
        "centers=False, limit=3, full=False, score_threshold=0.3, nms_threshold=0.3",
    ),
    "caffe.FarthestPoints": ([(1, 9, 3)], "count=4"),
    "caffe.BallQuery": ([(1, 9, 3), (1, 4, 3)], "count=4, radius=0.5"),
    "caffe.NearestThree": ([(1, 4, 3), (1, 9, 3)], ""),
}


def _example(op: str, shapes: Sequence[tuple[int, ...]], attributes: str) -> str:
    """Return the graph of one node in the dump's notation."""
    inputs = ", ".join(f"x{i}: float32{[*shape]}" for i, shape in enumerate(shapes))
    operands = [*(f"x{i}" for i in range(len(shapes))), *filter(None, [attributes])]
    return f"def example({inputs}):\n    result = {op}({', '.join(operands)})\n    return result\n"


EXAMPLES: Final = {op: _example(op, *asked) for op, asked in _ASKED.items()}
