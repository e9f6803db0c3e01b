"""Linear over channels that were moved behind all other axes for it: a convolution of one place, unmoved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from caffeforge.generated import hub
from caffeforge.runtime.array import reshape, transpose
from caffeforge.runtime.folds.following import Ways, moved_order
from caffeforge.runtime.folds.linear import Linear, linear
from caffeforge.runtime.graph import Graph, Node, Value, constant
from caffeforge.runtime.refusal import Refused

Accepts = Callable[[Node], bool]
# What acts on each element by itself.
ELEMENTWISE = (
    hub.Relu,
    hub.LeakyRelu,
    hub.Gelu,
    hub.Sigmoid,
    hub.Tanh,
    hub.Swish,
    hub.HardSwish,
    hub.HardSigmoid,
    hub.Mish,
    hub.Elu,
    hub.Selu,
    hub.Softplus,
    hub.Clip,
)


class Run(NamedTuple):
    """Nodes between two moves of the channels: what is read, the nodes on the way, and what is yielded."""

    x: Value
    before: Sequence[Node]
    body: Sequence[Node]
    behind: Sequence[Node]

    @property
    def result(self) -> Value:
        return self.behind[-1].outputs[0]


def join_channels(graph: Graph, modules: bool, accepts: Accepts) -> list[Node]:
    """Return the nodes of `graph` with convolutions of one place for products over moved channels.

    Args:
        graph: what is to be lowered; it is not changed, but its results may have new producers.
        modules: also where a blob goes away that holds what a module returns.
        accepts: tells whether the target takes a node as it is.
    """
    ways = Ways(graph, modules)
    found: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if node in found or not _matrix(linear(node)):
            continue
        try:
            run = _run(ways, node)
            new = _unmoved(run) if run is not None else []
        except Refused:  # a size is a symbol
            continue
        convolutions = [made for made in new if isinstance(made.op, hub.Conv)]
        if run is not None and all(map(accepts, convolutions)):
            found |= {old: [] for old in (*run.before, *run.body, *run.behind)} | {run.behind[-1]: new}
    nodes = [new for node in graph.nodes for new in found.get(node, [node])]
    for node in nodes:
        node.own_outputs()
    return nodes


def _matrix(made: Linear | None) -> bool:
    return made is not None and made.axis == made.x.rank - 1 and not isinstance(made.node.op, hub.Conv)


def _run(ways: Ways, first: Node) -> Run | None:
    """Return the run that begins with the product `first`."""
    steps = ways.before(first)
    for count in range(1, len(steps) + 1):
        path = steps[count - 1 :: -1]
        x = path[0].node.inputs[0]
        if x is None or x.rank < 3 or x.rank > 4:
            continue
        if _in_order(moved_order(path, x.shape[:], 1, len(path[-1].node.outputs[0].dims) - 1)):
            body, last = _body(ways, first)
            behind = _behind(ways, last, x)
            if behind:
                return Run(x, [step.node for step in path], body, behind)
    return None


def _body(ways: Ways, first: Node) -> tuple[list[Node], Value]:
    """Return the products, and what acts on each element or channel by itself, from `first` on."""
    body = [first]
    (value,) = first.outputs
    while len(ways.users[value]) == 1 and ways.hidden(value, ways.users[value][0]):
        (node,) = ways.users[value]
        if not (_matrix(linear(node)) or isinstance(node.op, ELEMENTWISE) or _by_channel(node)):
            break
        if node.inputs[0] is not value or len(node.outputs) != 1:
            break
        body.append(node)
        (value,) = node.outputs
    return body, value


def _by_channel(node: Node) -> bool:
    """Tell whether `node` adds to, or multiplies, each channel by a number of its own."""
    if not isinstance(node.op, (hub.Add, hub.Sub, hub.Mul, hub.Div)) or len(node.inputs) != 2:
        return False
    x, other = node.inputs
    if x is None or other is None or other.data is None or x.dims != node.outputs[0].dims:
        return False
    return all(size == 1 for size in other.dims[:-1])


def _behind(ways: Ways, value: Value, x: Value) -> list[Node]:
    """Return the moves that bring the channels of `value` back to where those of `x` are."""
    steps = ways.behind(value)
    for count in range(1, len(steps) + 1):
        path = steps[:count]
        (result,) = path[-1].node.outputs
        if result.rank != x.rank or result.dims[:1] + result.dims[2:] != x.dims[:1] + x.dims[2:]:
            continue
        if _in_order(moved_order(path, value.shape[:], value.rank - 1, 1)):
            return [step.node for step in path]
    return []


def _in_order(order: Sequence[int] | None) -> bool:
    return order is not None and list(order) == sorted(order)


def _unmoved(run: Run) -> list[Node]:
    """Return what computes the same of channels that stay where they are."""
    nodes: list[Node] = []
    value, places = run.x, run.x.dims[2:]
    for node in run.body:
        (old,) = node.outputs
        last = node is run.body[-1]
        dims = (run.x.dims[0], old.dims[-1], *places)
        result = run.result if last else Value(f"{old.name}/unmoved", old.dtype, dims)
        made = linear(node)
        if made is not None:
            new = _convolution(made, value, result)
        elif isinstance(node.op, ELEMENTWISE):
            new = Node(node.name, node.op, [value, *node.inputs[1:]], [result], node.origin)
        else:
            new = Node(
                node.name, node.op, [value, _raised(node.inputs[1], value.rank)], [result], node.origin
            )
        nodes.append(new)
        value = result
    return nodes


def _convolution(made: Linear, x: Value, result: Value) -> Node:
    assert made.weight.data is not None
    rows = made.weight.data if made.columns_in else transpose(made.weight.data, (1, 0))
    ones = (1,) * (x.rank - 2)
    weight = constant(f"{made.weight.name}/windows", reshape(rows, (*rows.shape, *ones)))
    op = hub.Conv(kernel_shape=ones, strides=ones, dilations=ones, pads=(0,) * (2 * len(ones)), group=1)
    bias = made.bias
    if bias is not None and bias.data is not None and bias.dims != (made.channels,):
        bias = constant(f"{bias.name}/windows", reshape(bias.data, (made.channels,)))
    return Node(made.node.name, op, [x, weight, bias], [result], made.node.origin)


def _raised(other: Value | None, rank: int) -> Value:
    """Return numbers by channel in the shape that broadcasts along the second axis."""
    assert other is not None and other.data is not None
    if other.data.size == 1:
        return other
    return constant(f"{other.name}/raised", reshape(other.data, (other.data.size, *[1] * (rank - 2))))
