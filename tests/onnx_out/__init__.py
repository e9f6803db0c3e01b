"""Tests of writing ONNX."""
