"""Sums of sums and products of products, each as one layer of all terms, in the order in which they were."""

from __future__ import annotations

from collections.abc import Callable

from caffeforge.generated import hub
from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.folds.following import Ways
from caffeforge.runtime.graph import Graph, Node, Value
from caffeforge.runtime.op import Op

Accepts = Callable[[Node], bool]
Terms = list[tuple[Value, float]]  # and the factor of each; in products it is 1


def join_terms(graph: Graph, accepts: Accepts, modules: bool) -> list[Node]:
    """Return the nodes of `graph` with one sum for a sum of sums, and one product for a product of products.

    Args:
        graph: lowered; it is not changed, but the results of its nodes may have new producers.
        accepts: tells whether the target takes a node as it is.
        modules: also where a blob goes away that holds what a module returns.
    """
    ways = Ways(graph, modules)
    found: dict[Node, Node | None] = {}
    for node in graph.nodes:
        for kind in (_sum, _product):
            terms = kind(node)
            inner = _inner(ways, node, terms, kind, found) if terms is not None else None
            if terms is None or inner is None:
                continue
            below = kind(inner) or []
            (made,) = inner.outputs
            sign = next(factor for value, factor in terms if value is made)
            joined = [(value, factor * sign) for value, factor in below]
            joined += [(value, factor) for value, factor in terms if value is not made]
            new = Node(
                node.name, _op(kind is _sum, joined), [v for v, _ in joined], node.outputs, node.origin
            )
            if accepts(new):
                found |= {inner: None, node: new}
                break
    nodes = [new for node in graph.nodes for new in [found.get(node, node)] if new is not None]
    for node in nodes:
        node.own_outputs()
    return nodes


def _inner(
    ways: Ways,
    node: Node,
    terms: Terms,
    kind: Callable[[Node], Terms | None],
    found: dict[Node, Node | None],
) -> Node | None:
    """Return what makes one of the first two terms, in the same way, for `node` alone."""
    for value, factor in terms[:2]:  # of later ones the sum would be rounded otherwise
        maker = ways.producers.get(value)
        if maker is None or maker in found or node in found or abs(factor) != 1:
            continue
        if ways.users[value] == [node] and ways.hidden(value, node) and kind(maker) is not None:
            return maker
    return None


def _sum(node: Node) -> Terms | None:
    op = node.op
    if isinstance(op, caffe_ops.Sum):
        factors = list(op.coeff)
    elif isinstance(op, (hub.Add, hub.Sum)):
        factors = [1.0] * len(node.inputs)
    elif isinstance(op, hub.Sub):
        factors = [1.0, -1.0]
    else:
        return None
    return _terms(node, factors)


def _product(node: Node) -> Terms | None:
    one = isinstance(node.op, (hub.Mul, caffe_ops.Product))
    return _terms(node, [1.0] * len(node.inputs)) if one else None


def _terms(node: Node, factors: list[float]) -> Terms | None:
    """Return the operands with their factors, None if not all are computed and of the result's shape."""
    (result,) = node.outputs
    terms: Terms = []
    for value, factor in zip(node.inputs, factors, strict=True):
        if value is None or value.data is not None or value.dims != result.dims:
            return None
        terms.append((value, factor))
    return terms if len(terms) > 1 else None


def _op(sums: bool, terms: Terms) -> Op:
    if not sums:
        return caffe_ops.Product()
    factors = tuple(factor for _, factor in terms)
    return hub.Sum() if set(factors) == {1.0} else caffe_ops.Sum(coeff=factors)
