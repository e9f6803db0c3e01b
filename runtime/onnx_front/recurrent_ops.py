"""RNN, GRU and LSTM: a batch that comes first is moved behind the sequence, as the hub's rules have it."""

from __future__ import annotations

from collections.abc import Sequence

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.onnx_front import generic
from caffeforge.runtime.onnx_front.call import Call
from caffeforge.runtime.onnx_front.registry import converts

_STATES = (5, 6)  # initial_h, initial_c


@converts("RNN", "GRU", "LSTM")
def recurrent(call: Call) -> Sequence[Value]:
    """Transpose operands and results of layout 1, which onnxruntime and Caffe know not."""
    given = call.op.fields_by_name()
    if not given.get("layout"):
        return generic.convert(call, dropped=("output_sequence",))
    swap = hub.Transpose(perm=(1, 0, 2))
    for index in (0, *_STATES):
        operand = call.operand(index)
        if operand is not None:
            call.inputs[index] = call.one(swap, operand)
    results = generic.convert(call, {"layout": 0})
    perms = [hub.Transpose(perm=(2, 0, 1, 3)), *[swap] * (len(results) - 1)]
    rows = zip(perms, results, call.used, strict=True)
    return [call.one(perm, value) if used else value for perm, value, used in rows]
