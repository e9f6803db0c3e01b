"""The hub graph: values, nodes, and the invariants that every pass must keep.

A node holds a frozen op of ``caffeforge.generated.hub``, operands and results. Operands stand at the
positions of ONNX's formal inputs; an input that is folded into the op, or absent, is ``None`` there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.op import Op
from caffeforge.runtime.refusal import Refused
from caffeforge.runtime.symbol import Dim as Dim
from caffeforge.runtime.symbol import Symbol as Symbol

if TYPE_CHECKING:
    from caffeforge.runtime.array import Array


class Shape(Sequence[int]):
    """The dimensions of a value as rules read them.

    Reading one that is a symbol raises Refused: a condition on it is unknown, so the rule does not hold.
    """

    __slots__ = ("_dims", "_owner")

    def __init__(self, dims: Sequence[Dim], owner: str) -> None:
        self._dims = tuple(dims)
        self._owner = owner

    def __len__(self) -> int:
        return len(self._dims)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...

    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        if isinstance(index, slice):
            return tuple(self._static(i) for i in range(*index.indices(len(self._dims))))
        if not -len(self._dims) <= index < len(self._dims):
            raise Refused(f"{self._owner} has rank {len(self._dims)}, dimension {index} was asked for")
        return self._static(index)

    def __iter__(self) -> Iterator[int]:
        return iter(self[:])

    def __add__(self, other: Sequence[int]) -> tuple[int, ...]:
        return (*self, *other)

    def __radd__(self, other: Sequence[int]) -> tuple[int, ...]:
        return (*other, *self)

    def __mul__(self, times: int) -> tuple[int, ...]:
        return self[:] * times

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return self[:] == (other[:] if isinstance(other, Shape) else other)

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return repr(self._dims)

    def _static(self, index: int) -> int:
        dim = self._dims[index]
        if isinstance(dim, Symbol):
            raise Refused(f"needs a static {dim}: it is dimension {index} of {self._owner or 'a value'}")
        return dim


class Value:
    """One tensor: a graph input, a result of a node, or a constant with a lazy array.

    Attributes:
        name: unique in its graph once ``Graph.verify`` has passed.
        dtype: NumPy's name of the element type, ``bfloat16`` or ``string``.
        dims: ints or symbols, outermost first.
        data: the elements of a constant, else None.
        producer: the node that yields it, else None.
    """

    __slots__ = ("data", "dims", "dtype", "name", "producer")

    def __init__(self, name: str, dtype: str, dims: Sequence[Dim], data: Array | None = None) -> None:
        self.name = name
        self.dtype = dtype
        self.dims: tuple[Dim, ...] = tuple(dims)
        self.data = data
        self.producer: Node | None = None

    @property
    def shape(self) -> Shape:
        """The dimensions, for rules: reading a symbolic one raises Refused."""
        return Shape(self.dims, self.name)

    @property
    def rank(self) -> int:
        return len(self.dims)

    def size(self, axis: int) -> Dim:
        """Return one dimension, symbol or not; Refused where there is no such axis."""
        if not -len(self.dims) <= axis < len(self.dims):
            raise Refused(f"{self.name} has rank {len(self.dims)}, dimension {axis} was asked for")
        return self.dims[axis]

    def type_text(self) -> str:
        """Return the type in dump notation, as ``float32[1, 3, batch]``."""
        return f"{self.dtype}[{', '.join(map(str, self.dims))}]"

    def __repr__(self) -> str:
        return f"{self.name}: {self.type_text()}"


def constant(name: str, data: Array) -> Value:
    """Return a constant value that holds `data`."""
    return Value(name, data.dtype, data.shape, data)


@dataclass(frozen=True)
class Origin:
    """Where a node comes from in the user's source.

    Attributes:
        module: path of the module that computed it, as ``layer1.0.conv1``; empty for the model itself.
        op: the source's own name of the operator, as ``aten.conv2d.default``.
        source: ``file:line`` of the user's code, or empty.
        value: the source's name of the first result, by which a verifier finds the reference value.
    """

    module: str = ""
    op: str = ""
    source: str = ""
    value: str = ""

    def __str__(self) -> str:
        where = f"module {self.module}" if self.module else "the model"
        return f"{where} ({self.source})" if self.source else where


class Node:
    """One application of an op. `name` is unique and becomes the layer's or node's name in files."""

    __slots__ = ("inputs", "name", "op", "origin", "outputs")

    def __init__(
        self,
        name: str,
        op: Op,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value],
        origin: Origin | None = None,
    ) -> None:
        self.name = name
        self.op = op
        self.inputs = list(inputs)
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()
        self.outputs = list(outputs)
        self.origin = origin or Origin()
        self.own_outputs()

    def own_outputs(self) -> None:
        """Be the producer of the results, also after another node with the same ones was tried."""
        for value in self.outputs:
            value.producer = self

    def __repr__(self) -> str:
        return f"{', '.join(v.name for v in self.outputs)} = {self.op!r}"


class Graph:
    """Nodes in an order in which each operand is defined before its use."""

    def __init__(
        self, name: str, inputs: Sequence[Value], outputs: Sequence[Value], nodes: Sequence[Node]
    ) -> None:
        self.name = name
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.nodes = list(nodes)

    def users(self) -> dict[Value, list[Node]]:
        """Return, for every value, the nodes that read it, in order, each once for each operand."""
        table: dict[Value, list[Node]] = {value: [] for value in self.values()}
        for node in self.nodes:
            for value in node.inputs:
                if value is not None:
                    table[value].append(node)
        return table

    def constants(self) -> list[Value]:
        """Return the constants that nodes read, in order of first use."""
        found = {v: None for node in self.nodes for v in node.inputs if v is not None and v.data is not None}
        return list(found)

    def values(self) -> list[Value]:
        """Return inputs, constants and results, each once."""
        found: dict[Value, None] = dict.fromkeys(self.inputs)
        found.update(dict.fromkeys(self.constants()))
        for node in self.nodes:
            found.update(dict.fromkeys(node.outputs))
        return list(found)

    def verify(self) -> None:
        """Check every invariant.

        Raises:
            GraphError: naming the node or value that breaks one.
        """
        _verify_names(self)
        known = set(self.inputs) | set(self.constants())
        for node in self.nodes:
            _verify_node(node, known)
            known.update(node.outputs)
        for value in self.outputs:
            if value not in known:
                raise GraphError(f"output {value.name} is not computed by the graph", where=self.name)
            if value.data is not None:
                raise GraphError(f"output {value.name} is a constant", where=self.name)

    def dump(self) -> str:
        """Return the graph in the notation of rewrites and tests."""
        from caffeforge.runtime.notation import dump

        return dump(self)

    @staticmethod
    def parse(text: str, weights: Mapping[str, Array] | None = None) -> Graph:
        """Build the graph that `text` describes; `weights` gives constants that the text only names."""
        from caffeforge.runtime.notation import parse

        return parse(text, weights or {})


def _verify_names(graph: Graph) -> None:
    names: dict[str, Value] = {}
    for value in graph.values():
        if not value.name:
            raise GraphError("a value has no name", where=graph.name)
        if names.setdefault(value.name, value) is not value:
            raise GraphError(f"two values are named {value.name}", where=graph.name)
    seen: set[str] = set()
    for node in graph.nodes:
        if node.name in seen:
            raise GraphError(f"two nodes are named {node.name}", where=graph.name)
        seen.add(node.name)
    if len(set(graph.outputs)) != len(graph.outputs):
        raise GraphError("a value is an output twice", where=graph.name)


def _verify_node(node: Node, known: set[Value]) -> None:
    formals = node.op.inputs
    variadic = bool(formals) and formals[-1].option == "variadic"
    if len(node.inputs) > len(formals) and not variadic:
        raise GraphError(
            f"{node.op.op_type} takes {len(formals)} inputs, {len(node.inputs)} given", where=node.name
        )
    for index, formal in enumerate(formals):
        given = node.inputs[index] if index < len(node.inputs) else None
        if given is None and formal.option == "single" and not formal.static:
            raise GraphError(f"input {formal.name} of {node.op.op_type} is missing", where=node.name)
    for value in node.inputs:
        if value is not None and value not in known:
            raise GraphError(f"operand {value.name} is used before it is computed", where=node.name)
    for value in node.outputs:
        if value.producer is not node or value in known:
            raise GraphError(f"result {value.name} belongs to another node", where=node.name)
        if any(isinstance(d, int) and d < 0 for d in value.dims):
            raise GraphError(f"result {value!r} has a negative dimension", where=node.name)
