"""NumPy references of the ops in domain ``caffe``; importing the package registers them all."""

from caffeforge.runtime.references import (
    crops,
    detections,
    face_detections,
    mask_rcnn,
    matrices,
    mlu_detections,
    padded_proposals,
    part_sorted_proposals,
    points,
    proposals,
    region_detections,
    region_pooling,
    selection,
    yolo_boxes,
    yolo_detections,
)

__all__ = [
    "crops",
    "detections",
    "face_detections",
    "mask_rcnn",
    "matrices",
    "mlu_detections",
    "padded_proposals",
    "part_sorted_proposals",
    "points",
    "proposals",
    "region_detections",
    "region_pooling",
    "selection",
    "yolo_boxes",
    "yolo_detections",
]
