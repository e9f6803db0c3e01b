"""Whether a written net takes another number of items than the one that it was written for."""

from __future__ import annotations

from collections.abc import Sequence

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.graph import Value
from caffeforge.runtime.hub_from_net import hub_from_net
from caffeforge.runtime.net import Net


def fixed_batch(net: Net, backend: Backend, inputs: Sequence[Value], outputs: Sequence[Value]) -> str:
    """Return a sentence for a report if `net` holds for one batch alone, the first axis of its first input.

    Args:
        net: what was written.
        backend: its dialect.
        inputs: those of the graph that the net computes; others of the same first size are items as well.
        outputs: its outputs.
    """
    batch = inputs[0].dims[0] if inputs and inputs[0].rank else None
    if not isinstance(batch, int) or batch < 1:
        return ""
    more = {v.name: (batch + 1, *v.shape[1:]) for v in inputs if v.rank and v.dims[0] == batch}
    try:
        found = hub_from_net(net, backend, more)
    except ReadError as error:
        return f"the batch is fixed at {batch}: of {batch + 1} items {error.where} cannot be computed"
    for value in outputs:
        sizes, due = found.blobs[value.name].dims, value.dims
        first = due[0] if due else None
        whole = isinstance(first, int) and first % batch == 0
        if not whole or sizes != (first // batch * (batch + 1), *due[1:]):  # type: ignore[operator]
            has = f"{value.name} has the sizes {list(sizes)}"
            return f"the batch is fixed at {batch}: of {batch + 1} items {has}"
    return ""
