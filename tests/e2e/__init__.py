"""Tests of the whole way: models and nets in, files out, results compared with PyTorch and real Caffe."""
