"""The PyTorch front end: a module becomes a hub graph.

It imports torch, so it is itself imported only when a model is traced.

PyTorch offers three ways to a graph: reading a module's code (TorchScript's scripting), reading its module
objects (fx), and running it on example inputs (``torch.export``, tracing). The last one is used here, for it
sees what really runs, whatever the code looks like; it cannot see a branch that the example does not take,
which ``torch.export`` notices and refuses. TorchScript modules and fx GraphModules are run likewise.

A model passes through these files in this order: ``opened`` (files), ``example`` (the inputs), ``cut``
(where it ends), ``capture`` and ``program`` (``torch.export``, and what is tried if that refuses), ``inline``
and ``functionalize`` (no modes, no in-place operators), ``lowering`` (one handler per ATen overload, in the
``*_ops`` files; what has none is taken apart by ``decompose``, what depends on no input is computed by
``folding``), ``naming`` (stable names) and ``source`` (the result, with the reference values for a verifier).

To support another operator write one function, decorated with ``@torch_op(aten.name.overload)``, in the
``*_ops`` file of its family. Why some have none stands in ``refusals``.
"""

from caffeforge.runtime.torch_front.source import TorchSource as TorchSource
from caffeforge.runtime.torch_front.source import trace as trace
