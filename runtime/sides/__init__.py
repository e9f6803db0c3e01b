"""The sides of a comparison: a PyTorch model, an ONNX file, a Caffe net, or somebody else's program.

Each says which inputs it takes and computes its values by name; `comparison` lines two of them up.
"""

from caffeforge.runtime.sides.comparison import compare_sides as compare_sides
from caffeforge.runtime.sides.opened import open_pair as open_pair
from caffeforge.runtime.sides.side import Side as Side
