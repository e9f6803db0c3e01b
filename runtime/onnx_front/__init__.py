"""The ONNX front end: a model of any opset from 7 on becomes a hub graph.

It imports onnx, so it is itself imported only when a model is read.

A model passes through these files in this order: ``model_file`` and ``stripped`` (the file, whose weights are
not copied), ``tensors`` (constants as lazy arrays), ``importer`` (node after node, with ``scope`` for names),
which binds each node to the class of its version (``generated/onnx``) and converts it: by ``generic`` where
versions differ in form only, by the ``*_ops`` files where the meaning changed. ``functions`` inlines calls,
``control`` unrolls If and Loop, ``elements`` follows shapes, ``folding`` computes what is constant, and
``kept`` holds on to what the hub cannot say. ``items`` are sequences and optionals, which the hub has not.

To convert an op whose meaning changed write one function, decorated with ``@converts("Name")``.
"""

from caffeforge.runtime.onnx_front import changed_ops as changed_ops  # importing registers the conversions
from caffeforge.runtime.onnx_front import old_ops as old_ops
from caffeforge.runtime.onnx_front import recurrent_ops as recurrent_ops
from caffeforge.runtime.onnx_front import resize_ops as resize_ops
from caffeforge.runtime.onnx_front import sequence_ops as sequence_ops
from caffeforge.runtime.onnx_front import window_ops as window_ops
from caffeforge.runtime.onnx_front.importer import Importer as Importer
from caffeforge.runtime.onnx_front.model_file import ModelFile as ModelFile
from caffeforge.runtime.onnx_front.model_file import is_onnx as is_onnx
from caffeforge.runtime.onnx_front.model_file import open_model as open_model
from caffeforge.runtime.onnx_front.source import OnnxSource as OnnxSource
from caffeforge.runtime.onnx_front.source import read as read
