"""NumPy references of the ops in domain ``caffe``; importing the package registers them all."""

from caffeforge.runtime.references import (
    detections,
    face_detections,
    matrices,
    proposals,
    region_detections,
    region_pooling,
    yolo_boxes,
    yolo_detections,
)

__all__ = [
    "detections",
    "face_detections",
    "matrices",
    "proposals",
    "region_detections",
    "region_pooling",
    "yolo_boxes",
    "yolo_detections",
]
