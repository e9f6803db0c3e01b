"""``caffeforge layers``: the layers of a net with their shapes, weights and arithmetic."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from caffeforge.runtime.commands import add_backend, add_random_weights, add_state, describe

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands
    from caffeforge.runtime.layer_costs import LayerCost


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = describe(
        commands, shared, "layers", "list a net's layers with shapes, parameters and multiply-accumulates"
    )
    parser.add_argument("prototxt", metavar="NET.prototxt", help="the net, or a caffemodel alone")
    parser.add_argument("caffemodel", metavar="NET.caffemodel", nargs="?", help="its weights")
    add_backend(parser)
    add_random_weights(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_state(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print a table, or JSON."""
    from caffeforge.runtime.backends import find
    from caffeforge.runtime.caffe_files import read_files
    from caffeforge.runtime.layer_costs import layer_costs

    backend = find(options.backend)
    weights = Path(options.caffemodel) if options.caffemodel else None
    net = read_files(Path(options.prototxt), weights, backend, level=options.level, stages=options.stages)
    costs = layer_costs(net, backend, 0 if options.random_weights else None)
    if options.json:
        print(json.dumps([_document(cost) for cost in costs], indent=1))
        return
    for note in net.notes:
        print(f"note: {note}")
    print("\n".join(_table(costs)))


def _table(costs: Sequence[LayerCost]) -> list[str]:
    rows = [("layer", "type", "tops", "parameters", "MACs")]
    for cost in costs:
        tops = ", ".join(
            f"{name} {'x'.join(map(str, sizes)) or 'scalar'}" for name, sizes in cost.tops.items()
        )
        rows.append((cost.name, cost.type, tops, f"{cost.parameters:,}", _number(cost.macs)))
    known = [cost.macs for cost in costs if cost.macs is not None]
    more = "+" if len(known) < len(costs) else ""
    parameters = sum(cost.parameters for cost in costs)
    rows.append(("total", "", "", f"{parameters:,}", f"{sum(known):,}{more}"))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return [
        "  ".join([*(row[i].ljust(widths[i]) for i in range(3)), *(row[i].rjust(widths[i]) for i in (3, 4))])
        for row in rows
    ]


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _document(cost: LayerCost) -> dict[str, object]:
    return {
        "name": cost.name,
        "type": cost.type,
        "tops": {name: list(sizes) for name, sizes in cost.tops.items()},
        "parameters": cost.parameters,
        "macs": cost.macs,
    }
