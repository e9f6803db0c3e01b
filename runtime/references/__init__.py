"""NumPy references of the ops in domain ``caffe``; importing the package registers them all."""

from caffeforge.runtime.references import detections, matrices, proposals, region_pooling, yolo_boxes

__all__ = ["detections", "matrices", "proposals", "region_pooling", "yolo_boxes"]
