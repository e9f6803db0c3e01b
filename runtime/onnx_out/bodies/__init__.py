"""What Caffe's detection layers compute, said by ops of ONNX: bodies of local functions, or nodes inline.

A body is called as the reference of an op is (see ``op.CustomOp``) and raises Refused where ONNX cannot say
what the op computes. The executor keeps to the NumPy references, which these are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.onnx_out.bodies.detections import detection_output
from caffeforge.runtime.onnx_out.bodies.proposals import proposal
from caffeforge.runtime.onnx_out.bodies.region_pooling import psroi_pooling
from caffeforge.runtime.op import Op

BODIES: Final[Mapping[type[Op], Callable[..., None]]] = {
    caffe_ops.DetectionOutput: detection_output,
    caffe_ops.Proposal: proposal,
    caffe_ops.PSROIPooling: psroi_pooling,
}
