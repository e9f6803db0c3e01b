"""The PyTorch front end: a module becomes a hub graph.

It imports torch, so it is itself imported only when a model is traced.

A model passes through these files in this order: ``example`` (the inputs), ``program`` (``torch.export``),
``functionalize`` (no in-place operators), ``lowering`` (one handler per ATen overload, in the ``*_ops``
files), ``naming`` (stable names) and ``source`` (the result, with the reference values for a verifier).

To support another operator write one function, decorated with ``@torch_op(aten.name.overload)``, in the
``*_ops`` file of its family.
"""

from caffeforge.runtime.torch_front.source import TorchSource as TorchSource
from caffeforge.runtime.torch_front.source import trace as trace
