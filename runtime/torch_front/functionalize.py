"""In-place ATen operators of a traced graph become functional ones; every other operator stays as it is.

Which tensors share memory need not be guessed: the fake tensors in ``meta["val"]`` share storages exactly
as the real ones did. A write replaces the written tensor, puts a written view back into what it is a view
of, and views that were taken before are taken again when they are read next. What nobody reads is dropped
at the end, so an in-place operator without living aliases is just its functional form.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import torch
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Interpreter, Node, map_arg

from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.torch_front.binding import bind
from caffeforge.runtime.torch_front.provenance import op_name, origin

aten = torch.ops.aten

_SCATTER: Final[Mapping[object, OpOverload]] = {
    aten.slice.Tensor: aten.slice_scatter.default,
    aten.select.int: aten.select_scatter.default,
    aten.diagonal.default: aten.diagonal_scatter.default,
    aten.as_strided.default: aten.as_strided_scatter.default,
}

_UNTRACKED: Final = "shares memory with other tensors in a way that cannot be followed"


def functionalize(graph: Graph, state: Collection[Node]) -> dict[Node, str]:
    """Replace the in-place operators of `graph`, in the graph itself, and drop what no output needs.

    Args:
        graph: nodes whose ``meta["val"]`` share storages as the real tensors do.
        state: the placeholders of parameters, buffers and constants.

    Returns:
        Notes for the user, by node: views that had to be rebuilt, inputs that the model writes into.

    Raises:
        FrontEndError: an operator has no functional form, or the model changes its own state.
    """
    return _Functionalizer(graph, state).run()


def restore_storages(module: GraphModule, graph: Graph) -> None:
    """Compute ``meta["val"]`` anew: a program loaded from a file has lost which tensors share memory."""
    values = [node.meta["val"] for node in graph.nodes if node.op == "placeholder"]
    fake_mode = detect_fake_mode(values)
    if fake_mode is None:
        raise FrontEndError("the program holds no fake tensors: shapes of its values are unknown")
    with fake_mode, torch.no_grad():
        _Repropagation(module, graph=graph).run(*values, enable_io_processing=False)


def writes(node: Node) -> bool:
    """Tell whether an operator writes into one of its arguments."""
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


class _Repropagation(Interpreter):
    """Runs a graph on its own fake inputs and stores the values."""

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n.op == "call_function":
            n.meta["val"] = value
        return value


class _Functionalizer:
    """The state of one run.

    Attributes:
        now: the functional node that holds a tensor's value, where that is not the node itself.
        bases: what a view was taken of, with the view's arguments as they were.
        seen: how many writes to its storage a view's present node reflects.
        writes: how many writes to a storage there were.
        known: the storages of the nodes so far.
        untracked: storages that a node shows without being a view of one of its arguments.
        rebuilt: nodes that put a part back into its whole, with the in-place operator behind them.
        written_inputs: inputs of the model that it writes into.
    """

    def __init__(self, graph: Graph, state: Collection[Node]) -> None:
        self.graph = graph
        self.state = frozenset(state)
        self.now: dict[Node, Node] = {}
        self.bases: dict[Node, tuple[Node, tuple[Any, ...], dict[str, Any]]] = {}
        self.seen: dict[Node, int] = {}
        self.writes: Counter[int | None] = Counter()
        self.known = {_storage(node) for node in graph.nodes if node.op == "placeholder"}
        self.untracked: set[int | None] = set()
        self.rebuilt: dict[Node, Node] = {}
        self.written_inputs: dict[Node, None] = {}

    def run(self) -> dict[Node, str]:
        for node in list(self.graph.nodes):
            if node.op in ("call_function", "output"):
                with self.graph.inserting_before(node):
                    self._visit(node)
        self.graph.eliminate_dead_code()
        self.graph.lint()
        return self._notes()

    def _visit(self, node: Node) -> None:
        if node.target is aten.detach_.default:  # writes nothing
            node.replace_all_uses_with(node.all_input_nodes[0])
            self.graph.erase_node(node)
            return
        storage = _storage(node)
        base = next((i for i in node.all_input_nodes if storage is not None and _storage(i) == storage), None)
        arguments = (node.args, node.kwargs)
        if self.writes:
            node.args, node.kwargs = map_arg(arguments, self._read)
        if writes(node):
            written = arguments[0][0] if arguments[0] else None
            result = self._functional_call(node, written)
            self._write(written, result, writer=node)  # type: ignore[arg-type]  # a node, _functional_call checks
            node.replace_all_uses_with(written)  # type: ignore[arg-type]
            self.graph.erase_node(node)
        elif node.op != "call_function" or node.target is aten.lift_fresh_copy.default:
            pass  # a literal in forward() is new in each call, although its fake tensor is the constant's
        elif base is not None:
            self.bases[node] = (base, *arguments)
            self.seen[node] = self.writes[storage]
        elif storage in self.known:
            self.untracked.add(storage)
            if self.writes[storage]:
                raise _refusal(node, _UNTRACKED)
        self.known.add(storage)

    def _read(self, node: Node) -> Node:
        """Return the functional node that holds the value of `node` now; take a stale view again."""
        if node in self.bases and self.seen[node] != self.writes[_storage(node)]:
            base, args, kwargs = self.bases[node]
            args, kwargs = map_arg((args, kwargs), lambda a: self._read(a) if a is base else a)
            self.now[node] = self._call(node.target, args, kwargs, value_of=node, traced_as=node)
            self.seen[node] = self.writes[_storage(node)]
        return self.now.get(node, node)

    def _write(self, written: Node, new: Node, writer: Node) -> None:
        """Let `written` be `new` from here on, and so whatever it is a view of."""
        storage = _storage(written)
        if storage in self.untracked:
            raise _refusal(writer, _UNTRACKED)
        chain, node = [written], written
        while node in self.bases:
            self.now[node] = new
            whole = self.bases[node][0]
            if isinstance(whole.meta["val"], (tuple, list)):  # a piece of split or unbind: skip the tuple
                whole = self.bases[whole][0]
            new, node = self._put_back(node, whole, new, writer), whole
            chain.append(node)
        self.now[node] = new
        if node.op == "placeholder":
            self._note_write_to(node, writer)
        self.writes[storage] += 1
        self.seen.update((link, self.writes[storage]) for link in chain)

    def _put_back(self, view: Node, whole: Node, new: Node, writer: Node) -> Node:
        """Return the value of `whole` after the part of it that `view` shows became `new`."""

        def call(target: Any, *args: Any) -> Node:
            return self._call(target, args, {}, value_of=whole, traced_as=writer)

        def scatter(target: OpOverload, *where: Any) -> Node:
            node = call(target, self._read(whole), new, *where)
            self.rebuilt[node] = writer
            return node

        if view.target is operator.getitem:
            return self._put_piece_back(view, scatter)
        if not isinstance(view.target, OpOverload):
            raise _refusal(writer, f"writes through a view made by {op_name(view)}")
        where = bind(view.target, *self.bases[view][1:])
        del where[next(iter(where))]  # the tensor itself
        if view.target in _SCATTER:
            return scatter(_SCATTER[view.target], *where.values())
        if view.target is aten.permute.default:
            order = [axis % len(where["dims"]) for axis in where["dims"]]
            return call(view.target, new, [order.index(axis) for axis in range(len(order))])
        if view.target in (aten.transpose.int, aten.t.default):
            return call(view.target, new, *where.values())
        if _layout(view) == _layout(
            whole
        ):  # alias, contiguous, dropout in evaluation, view, flatten, squeeze
            return call(aten.reshape.default, new, list(whole.meta["val"].shape))
        raise _refusal(writer, f"writes through a view made by {op_name(view)}")

    def _put_piece_back(self, piece: Node, scatter: Callable[..., Node]) -> Node:
        """Put back one of the pieces that split, chunk or unbind gave."""
        pieces, index = self.bases[piece][1]
        axis = bind(pieces.target, *self.bases[pieces][1:])["dim"]
        if pieces.target is aten.unbind.int:
            return scatter(aten.select_scatter.default, axis, index)
        start = sum(value.shape[axis] for value in pieces.meta["val"][:index])
        return scatter(aten.slice_scatter.default, axis, start, start + piece.meta["val"].shape[axis])

    def _functional_call(self, node: Node, written: object) -> Node:
        target = _functional_form(node)
        if not isinstance(written, Node):
            raise _refusal(node, "writes to something that is no tensor of the graph")
        result = self._call(target, node.args, node.kwargs, value_of=node, traced_as=node)
        dtype = written.meta["val"].dtype
        if any(getattr(i.meta["val"], "dtype", dtype) != dtype for i in node.all_input_nodes):
            # int_tensor.add_(float_tensor) keeps the dtype of what is written.
            result = self._call(aten.to.dtype, (result, dtype), {}, value_of=node, traced_as=node)
        return result

    def _call(
        self, target: Any, args: Sequence[Any], kwargs: dict[str, Any], value_of: Node, traced_as: Node
    ) -> Node:
        node = self.graph.call_function(target, tuple(args), dict(kwargs))
        node.meta = {**traced_as.meta, "val": value_of.meta["val"]}
        return node

    def _note_write_to(self, placeholder: Node, writer: Node) -> None:
        if placeholder in self.state:
            raise _refusal(writer, f"changes the model's own {placeholder.name}, which a net cannot do")
        self.written_inputs[placeholder] = None

    def _notes(self) -> dict[Node, str]:
        notes = {
            node: f"the model writes into its input {node.name}, the net does not"
            for node in self.written_inputs
        }
        alive = set(self.graph.nodes)
        for node, writer in self.rebuilt.items():
            if node in alive:
                notes[node] = (
                    f"{origin(writer)}: {op_name(writer)} writes into a part of a tensor that is read again; "
                    f"the whole is rebuilt by {op_name(node)}"
                )
        return notes


def _storage(node: Node) -> int | None:
    value = node.meta.get("val")
    if isinstance(value, (tuple, list)):
        value = value[0] if value else None
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    storage: int = value.untyped_storage()._cdata
    return storage


def _layout(node: Node) -> tuple[object, ...]:
    """Return what tells which elements of its storage a tensor shows, in which order.

    Two tensors of one layout differ in shape only: axes of size one do not count, and neighbours that are
    stepped through as one axis are joined.
    """
    tensor: torch.Tensor = node.meta["val"]
    axes: list[tuple[Any, Any]] = []
    for size, stride in zip(map(_compared, tensor.shape), map(_compared, tensor.stride()), strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1] == size * stride:
            axes[-1] = (axes[-1][0] * size, stride)
        else:
            axes.append((size, stride))
    return tensor.dtype, _compared(tensor.storage_offset()), *axes


def _compared(size: Any) -> Any:
    """Return a number, or the expression of one: to compare PyTorch's symbolic numbers would fix them."""
    return size if isinstance(size, int) else size.node.expr


def _functional_form(node: Node) -> OpOverload:
    """Return the overload that computes what the in-place operator of `node` writes."""
    op = node.target
    assert isinstance(op, OpOverload)
    written = [i for i, a in enumerate(op._schema.arguments) if a.alias_info and a.alias_info.is_write]
    if torch.Tag.inplace_view in op.tags:
        raise _refusal(node, "changes the shape of its argument")
    if written != [0]:
        raise _refusal(node, "writes to more than its first argument")
    namespace, name = op._schema.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), name.removesuffix("_"), None)
    overload = getattr(packet, op._overloadname, None)
    if not isinstance(overload, OpOverload) or overload._schema.is_mutable:
        raise _refusal(node, "has no functional form")
    return overload


def _refusal(node: Node, sentence: str) -> FrontEndError:
    hint = "write this line without in-place operators"
    return FrontEndError(f"{op_name(node)} {sentence}", where=str(origin(node)), hint=hint)
