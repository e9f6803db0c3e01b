"""Simplifying an ONNX model: fewer nodes that compute the same, under the same names of inputs and outputs.

Reading folds constants and follows shapes; the passes here, each a function from a graph to how often it
applied, take away what moves nothing, what undoes itself, what is there twice, and what a layer before can
do.
"""

from caffeforge.runtime.onnx_simplify.run import simplify as simplify
