"""Names of hub nodes and values: stable from export to export, and close to the user's own.

A node is named by the path of the module that it computes (``layer1.0.conv1``), or, if it is one of several
operators in forward() of a container, by path and operator (``layer1.0.add``, ``flatten``). Repetitions get
``_1``, ``_2``; results and constants without a name of their own are named by their node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from torch.fx import Node as FxNode

from caffeforge.runtime.graph import Node, Value
from caffeforge.runtime.torch_front.lowering import Step
from caffeforge.runtime.torch_front.provenance import ModuleCall, module_calls, short_name


class _Wish(NamedTuple):
    """The name that a node should have; names of modules are given before those of operators within them."""

    name: str
    of_module: bool
    step: Step
    node: Node


def name_nodes(
    steps: Sequence[Step], operators: Iterable[FxNode], owners: Mapping[FxNode, str], taken: Collection[str]
) -> None:
    """Name all nodes of `steps`, their results, and constants without a name.

    Args:
        steps: what the operators became, in order.
        operators: all operators that are no constants; they tell which modules contain others.
        owners: for parameters and buffers, the path of the module that they belong to.
        taken: names of inputs and weights, which no value may have.
    """
    names = set(taken)
    wishes = list(_wishes([step for step in steps if step.nodes], _containers(operators), owners))
    waiting = []
    for wish in sorted(wishes, key=lambda wish: not wish.of_module):
        if wish.name in names:
            waiting.append(wish)
        else:
            wish.node.name = wish.name
            names.add(wish.name)
    for wish in waiting:
        wish.node.name = unused(wish.name, names)
        names.add(wish.node.name)
    for wish in wishes:
        _name_helpers(wish, names)
    for node in (node for step in steps for node in step.nodes):
        _name_values(node, names)


def unused(name: str, names: Collection[str]) -> str:
    """Return `name`, or the first of name_1, name_2 ... that is not in `names`."""
    candidate, count = name, 0
    while candidate in names:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


def _containers(operators: Iterable[FxNode]) -> set[str]:
    """Return the paths of modules that call other modules."""
    return {call.path for node in operators for call in module_calls(node)[:-1]}


def _wishes(
    steps: Sequence[Step], containers: Collection[str], owners: Mapping[FxNode, str]
) -> Iterable[_Wish]:
    calls = [_call(step.source, owners) for step in steps]
    own = [
        call.path in {owners.get(i) for i in step.source.all_input_nodes}
        for step, call in zip(steps, calls, strict=True)
    ]
    count: Counter[ModuleCall] = Counter(calls)
    with_weights: Counter[ModuleCall] = Counter(call for call, reads in zip(calls, own, strict=True) if reads)
    for step, call, reads in zip(steps, calls, own, strict=True):
        # The main operator of a module is its only one, or the only one that reads the module's weights.
        main = count[call] == 1 or (reads and with_weights[call] == 1)
        of_module = main and bool(call.path) and call.path not in containers
        name = call.path if of_module else _joined(call.path, short_name(step.source))
        yield _Wish(name, of_module, step, step.main or step.nodes[-1])


def _call(source: FxNode, owners: Mapping[FxNode, str]) -> ModuleCall:
    """Return the module call that an operator belongs to: the innermost, or that of the weights it reads.

    Programs from files may not know their modules, but weights keep the names of theirs.
    """
    call = module_calls(source)[-1]
    readers = {owners.get(operand, "") for operand in source.all_input_nodes} - {""}
    return ModuleCall(readers.pop(), 0) if not call.path and len(readers) == 1 else call


def _name_helpers(wish: _Wish, names: set[str]) -> None:
    for node in wish.step.nodes:
        if node is not wish.node:
            node.name = unused(_joined(wish.node.name, node.op.op_type.lower()), names)
            names.add(node.name)


def _name_values(node: Node, names: set[str]) -> None:
    """Name a node's results like the node, and its nameless constants by their place."""
    if len(node.outputs) == 1:
        node.outputs[0].name = node.name
    else:
        for index, value in enumerate(node.outputs):
            value.name = unused(f"{node.name}.{index}", names)
            names.add(value.name)
    formals = node.op.inputs
    for index, operand in enumerate(node.inputs):
        if isinstance(operand, Value) and operand.data is not None and not operand.name:
            place = (
                formals[index].name
                if index < len(formals) - 1 or formals[-1].option != "variadic"
                else str(index)
            )
            operand.name = unused(f"{node.name}.{place}", names)
            names.add(operand.name)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
