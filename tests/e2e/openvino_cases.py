"""Layers that OpenVINO's model optimizer has and Caffe lacks, with settings and data drawn at random."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.e2e.dialect_cases import Maker, Single
from tests.e2e.layer_cases import Random


def greedy_decoder(r: Random) -> Single:
    steps, sequences = r.size(1, 15), r.size(1, 4)
    scores = r.normal(steps, sequences, r.size(2, 5))
    marks = np.ones((steps, sequences), np.float32)
    for sequence in range(sequences):
        marks[r.size(0, steps) :, sequence] = 0
        marks[r.size(0, steps) :, sequence] = 0.5  # any number but 0, also behind the end
    fields = f"ctc_merge_repeated: {r.pick(('true', 'false'))} blank_index: {r.size(-1, 1)}"
    return Single("CTCGreedyDecoder", f"ctc_decoder_param {{ {fields} }}", (scores, marks), varies=False)


def grn(r: Random) -> Single:
    shape = [r.size(1, 3), r.size(2, 6), r.size(1, 5), r.size(1, 5)][: r.size(2, 4)]
    text = r.pick(("", f"grn_param {{ bias: {r.size(1, 30) / 10} }}"))
    return Single("GRN", text, (r.normal(*shape),))


def prior_box_clustered(r: Random) -> Single:
    rows, columns = r.size(1, 5), r.size(1, 5)
    sizes = " ".join(
        f"width: {r.size(1, 300) / 10} height: {r.size(1, 300) / 10}" for _ in range(r.size(1, 4))
    )
    steps = r.pick(("", "step: 7.5", "step: 9 step_h: 5 step_w: 4", "step: 9 step_h: 0 step_w: 0"))
    variance = r.pick(("", "variance: 0.3", "variance: [0.1, 0.2, 0.3, 0.4]"))
    text = f"{sizes} {steps} {variance} offset: {r.size(0, 4) / 4} clip: {r.pick(('true', 'false'))}"
    maps = r.normal(1, 2, rows, columns), r.normal(1, 3, r.size(20, 60), r.size(20, 60))
    return Single("PriorBoxClustered", f"prior_box_param {{ {text} flip: false }}", maps)


def region(r: Random) -> Single:
    coords, classes, boxes = r.size(3, 6), r.size(1, 5), r.size(1, 3)
    x = 3 * r.normal(r.size(1, 2), boxes * (coords + 1 + classes), r.size(1, 4), r.size(1, 4))
    fields = f"coords: {coords} classes: {classes} anchors: 0.5 anchors: 2"
    if r.pick((True, False)):
        axes = r.pick(("", "flatten_param { axis: 2 }", "flatten_param { axis: 1 end_axis: -2 }"))
        return Single(
            "RegionYolo", f"region_yolo_param {{ {fields} num: {boxes} mask: [7, 8] }} {axes}", (x,)
        )
    mask = [*range(3, 3 + boxes)]
    return Single(
        "RegionYolo", f"region_yolo_param {{ {fields} num: 9 do_softmax: false mask: {mask} }}", (x,)
    )


def reorg(r: Random) -> Single:
    stride = r.size(1, 3)
    x = r.normal(r.size(1, 2), stride**2 * r.size(1, 3), stride * r.size(1, 4), stride * r.size(1, 4))
    return Single("ReorgYolo", f"reorg_yolo_param {{ stride: {stride} }}", (x,))


def resample(r: Random) -> Single:
    x = r.normal(r.size(1, 2), r.size(1, 3), r.size(1, 8), r.size(1, 8))
    size = r.pick((f"height: {r.size(1, 12)} width: {r.size(1, 12)} factor: 3", "factor: 2", "factor: 3"))
    way = f"type: {r.pick(('NEAREST', 'LINEAR', 'CUBIC'))} antialias: {r.pick(('true', 'false'))}"
    return Single("Resample", f"resample_param {{ {size} {way} }}", (x,))


MAKERS: Mapping[str, Maker] = {
    "CTCGreedyDecoder": greedy_decoder,
    "GRN": grn,
    "PriorBoxClustered": prior_box_clustered,
    "RegionYolo": region,
    "ReorgYolo": reorg,
    "Resample": resample,
}
