"""What Caffe's detection layers compute, said by ops of ONNX: bodies of local functions, or nodes inline.

A body is called as the reference of an op is (see ``op.CustomOp``) and raises Refused where ONNX cannot say
what the op computes. The executor keeps to the NumPy references, which these are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.onnx_out.bodies.crops import crop_and_resize, pyramid_crop
from caffeforge.runtime.onnx_out.bodies.detections import detection_output
from caffeforge.runtime.onnx_out.bodies.face_detections import retina_face_detection
from caffeforge.runtime.onnx_out.bodies.mask_rcnn import mask_detection, mask_proposal
from caffeforge.runtime.onnx_out.bodies.matrices import matrix_inverse
from caffeforge.runtime.onnx_out.bodies.mlu_detections import detection_out, image_detect, yolov3_detection
from caffeforge.runtime.onnx_out.bodies.padded_proposals import padded_proposal
from caffeforge.runtime.onnx_out.bodies.points import ball_query, farthest_points, nearest_three
from caffeforge.runtime.onnx_out.bodies.proposals import part_sorted_proposal, proposal
from caffeforge.runtime.onnx_out.bodies.region_pooling import psroi_mask_pooling, psroi_pooling
from caffeforge.runtime.onnx_out.bodies.selection import selected_boxes
from caffeforge.runtime.onnx_out.bodies.sophgo_detections import frcn_detection, regions_above, yolo_detection
from caffeforge.runtime.onnx_out.bodies.suppression import by_loop
from caffeforge.runtime.onnx_out.bodies.yolo_boxes import yolo_detection_output
from caffeforge.runtime.op import Op

BODIES: Final[Mapping[type[Op], tuple[Callable[..., None], ...]]] = {  # the first that an opset can say
    caffe_ops.DetectionOutput: (detection_output, partial(detection_output, suppress=by_loop)),
    caffe_ops.Proposal: (proposal, partial(proposal, suppress=by_loop)),
    caffe_ops.PartSortedProposal: (
        part_sorted_proposal,
        partial(part_sorted_proposal, suppress=by_loop),
    ),
    caffe_ops.PSROIPooling: (psroi_pooling,),
    caffe_ops.PSROIMaskPooling: (psroi_mask_pooling,),
    caffe_ops.CropAndResize: (crop_and_resize,),
    caffe_ops.PyramidCrop: (pyramid_crop,),
    caffe_ops.MaskProposal: (mask_proposal, partial(mask_proposal, suppress=by_loop)),
    caffe_ops.MaskDetection: (mask_detection, partial(mask_detection, suppress=by_loop)),
    caffe_ops.SelectedBoxes: (selected_boxes, partial(selected_boxes, suppress=by_loop)),
    caffe_ops.FarthestPoints: (farthest_points,),
    caffe_ops.BallQuery: (ball_query,),
    caffe_ops.NearestThree: (nearest_three,),
    caffe_ops.MatrixInverse: (matrix_inverse,),
    caffe_ops.YoloDetectionOutput: (yolo_detection_output, partial(yolo_detection_output, suppress=by_loop)),
    caffe_ops.RegionsAbove: (regions_above,),
    caffe_ops.FrcnDetection: (frcn_detection,),
    caffe_ops.YoloDetection: (yolo_detection,),
    caffe_ops.RetinaFaceDetection: (retina_face_detection,),
    caffe_ops.DetectionOut: (detection_out, partial(detection_out, suppress=by_loop)),
    caffe_ops.Yolov3Detection: (yolov3_detection, partial(yolov3_detection, suppress=by_loop)),
    caffe_ops.ImageDetect: (image_detect,),
    caffe_ops.PaddedProposal: (padded_proposal, partial(padded_proposal, suppress=by_loop)),
}
