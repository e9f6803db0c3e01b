"""``torch.library`` operators as references of the ops that stand for them; imported where torch is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.op import Op, python_name
from caffeforge.runtime.reference import Reference


def of_library(name: str) -> Reference | None:
    """Return the operator called `name`, as ``vendory::focus``, as a reference; None if there is none."""
    namespace, _, rest = name.partition("::")
    kind, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), kind, None)
    operator = getattr(packet, overload or "default", None)
    if operator is None:
        return None

    def run(op: Op, operands: Sequence[NDArray | None]) -> list[NDArray]:
        with torch.no_grad():
            results = operator(**_arguments(operator, op, operands))
        found = [results] if isinstance(results, torch.Tensor) else list(results)
        return [np.array(tensor.detach().cpu().numpy(), order="C") for tensor in found]

    return run


def _arguments(operator: Any, op: Op, operands: Sequence[NDArray | None]) -> dict[str, Any]:
    """Return the operator's arguments: tensors in order, all others by the names of attributes."""
    tensors = iter([None if o is None else torch.from_numpy(np.array(o)) for o in operands])
    names = {attribute.name for attribute in op.attributes}
    given: dict[str, Any] = {}
    for parameter in operator._schema.arguments:
        if parameter.name in names:
            value = getattr(op, python_name(parameter.name))
            given[parameter.name] = list(value) if isinstance(value, tuple) else value
        elif "List[" in str(parameter.type) and "Tensor" in str(parameter.type):
            given[parameter.name] = list(tensors)
        elif "Tensor" in str(parameter.type):
            given[parameter.name] = next(tensors, None)
    return given
