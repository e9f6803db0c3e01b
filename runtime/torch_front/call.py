"""One ATen call as its handler sees it: arguments by name, and the hub nodes that it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch._ops import OpOverload
from torch.fx import Node as FxNode

from caffeforge.generated import hub
from caffeforge.runtime.array import Full
from caffeforge.runtime.errors import FrontEndError
from caffeforge.runtime.graph import Node, Value, constant
from caffeforge.runtime.op import Op
from caffeforge.runtime.symbol import Dim, Symbol
from caffeforge.runtime.torch_front.binding import bind
from caffeforge.runtime.torch_front.provenance import origin
from caffeforge.runtime.torch_front.registry import Result
from caffeforge.runtime.torch_front.sizes import Sizes
from caffeforge.runtime.torch_front.weights import TorchArray, converted, dtype_name

STATIC: Final = "leave this size out of dynamic_shapes"


class Call:
    """One call of an ATen overload.

    Attributes:
        overload: the ATen operator.
        origin: the module and line that it comes from.
        nodes: the hub nodes built so far.
        dims: the shape of its result, of which sizes may be symbols; of the first, if there are several.
        dtype: the element type of its result; of the first one, if there are several.
    """

    def __init__(self, node: FxNode, operands: Mapping[FxNode, Result], sizes: Sizes) -> None:
        assert isinstance(node.target, OpOverload)
        self.overload = node.target
        self.origin = origin(node)
        self.nodes: list[Node] = []
        self._sizes = sizes
        self._arguments = {
            name: self._with_sizes(a) for name, a in bind(node.target, node.args, node.kwargs).items()
        }
        self._node = node
        self._operands = operands
        value = node.meta["val"]
        self._results: list[torch.Tensor] = [value] if isinstance(value, torch.Tensor) else list(value)

    @property
    def dims(self) -> tuple[Dim, ...]:
        return self._sizes.dims(self._results[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its result as numbers.

        Raises:
            FrontEndError: a dimension is a symbol.
        """
        return self.numbers(self.dims)

    @property
    def dtype(self) -> str:
        return dtype_name(self._results[0].dtype)

    @property
    def result_dims(self) -> list[tuple[Dim, ...]]:
        """The shape of each result, for operators that yield several."""
        return [self._sizes.dims(result) for result in self._results]

    @property
    def results(self) -> list[tuple[str, tuple[Dim, ...]]]:
        """Element type and shape of each result."""
        return [(dtype_name(result.dtype), self._sizes.dims(result)) for result in self._results]

    # Arguments

    def argument(self, name: str) -> Any:
        """Return an argument that is no tensor as it was given: a number, flag, text, dtype or None.

        Raises:
            FrontEndError: it depends on a size that is a symbol.
        """
        given = self._arguments[name]
        for element in given if isinstance(given, (list, tuple)) else [given]:
            if isinstance(element, Symbol):
                raise self.error(f"needs a static {element} as its {name}", hint=STATIC)
        return given

    def size(self, name: str) -> Dim | None:
        """Return an argument that is a size or a place along an axis, which may be a symbol."""
        given: Dim | None = self._arguments[name]
        return given

    def size_list(self, name: str) -> list[Dim]:
        """Return an argument that is a list of sizes, which may be symbols."""
        return list(self._arguments[name])

    def numbers(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        """Return sizes as numbers.

        Raises:
            FrontEndError: one is a symbol.
        """
        for dim in dims:
            if isinstance(dim, Symbol):
                raise self.error(f"needs a static {dim}", hint=STATIC)
        return tuple(dim for dim in dims if isinstance(dim, int))

    def shape_value(self, dims: Sequence[Dim], near: Value | None = None) -> Value:
        """Return sizes as an int64 value; symbols come from the inputs, or from `near`."""
        return self._sizes.shape(self, dims, near)

    def example(self, name: str) -> torch.Tensor:
        """Return a tensor argument as it was traced: a fake tensor, with its strides but without elements."""
        tensor: torch.Tensor = self._arguments[name].meta["val"]
        return tensor

    def has(self, name: str) -> bool:
        """Tell whether an argument is given; an overload may also lack the parameter."""
        return self._arguments.get(name) is not None

    def knows(self, name: str) -> bool:
        """Tell whether the overload has a parameter."""
        return name in self._arguments

    def reads_result(self, index: int) -> bool:
        """Tell whether an operator takes one of several results."""
        return any(user.args[1:] == (index,) for user in self._node.users)

    def value(self, name: str) -> Value:
        """Return the value of a tensor argument; a number becomes a scalar constant of the result's type."""
        return self._value(self._arguments[name])

    @property
    def sizes(self) -> Sizes:
        """The sizes of the program."""
        return self._sizes

    def parts(self, name: str) -> Any:
        """Return an argument as it is: a value, the two parts of complex numbers, or a number."""
        given = self._arguments[name]
        return self._operands[given] if isinstance(given, FxNode) else given

    def optional(self, name: str) -> Value | None:
        """Return the value of a tensor argument, or None if it is not given."""
        return self.value(name) if self.has(name) else None

    def values(self, name: str) -> list[Value]:
        """Return the values of an argument that is a list of tensors."""
        return [self._value(element) for element in self._arguments[name]]

    def optional_values(self, name: str) -> list[Value | None]:
        """Return the values of an argument that is a list of tensors, some of which may be left out."""
        return [None if element is None else self._value(element) for element in self._arguments[name]]

    def operand(self, name: str) -> Value:
        """Return the value of a tensor or number in the result's element type, converted if need be."""
        return self.cast(self.value(name), self.dtype)

    def indices(self, name: str) -> Value:
        """Return a tensor argument that counts elements, as int32 or int64: ONNX takes no other indices."""
        value = self.value(name)
        return value if value.dtype in ("int32", "int64") else self.cast(value, "int64")

    def promoted(self, *names: str) -> list[Value]:
        """Return two operands in the element type in which PyTorch compares or combines them."""
        first, second = (self._typed_argument(name) for name in names)
        dtype = dtype_name(torch.result_type(first, second))
        return [self._number_or_cast(self._arguments[name], dtype) for name in names]

    def scalar(self, size: Dim) -> Value:
        """Return a size as an int64 value without axes."""
        if isinstance(size, int):
            return self.full((), size, "int64")
        return self.helper(hub.Reshape(shape=()), self.shape_value((size,)), dims=(), dtype="int64")

    def ints(self, name: str) -> tuple[int, ...]:
        """Return an argument that is an integer or a list of them."""
        given = self.argument(name)
        return (given,) if isinstance(given, int) else tuple(given)

    def spread(self, name: str, count: int) -> tuple[int, ...]:
        """Return an argument with one integer for each of `count` axes; a single one stands for all."""
        given = self.ints(name)
        return given * count if len(given) == 1 else given

    def axis(self, name: str, rank: int) -> int:
        """Return an argument that is an axis, counted from the front."""
        return normalized(self.argument(name), rank)

    def axes(self, name: str, rank: int) -> tuple[int, ...]:
        """Return a list of axes, counted from the front and sorted; all if it is empty or left out."""
        given = self.ints(name) if self.has(name) else ()
        return tuple(sorted(normalized(axis, rank) for axis in given)) or tuple(range(rank))

    def batched(self, name: str, axes: int) -> Value:
        """Return the value of an argument that must be a batch: (N, C) and `axes` axes more.

        Raises:
            FrontEndError: it has no batch axis; PyTorch allows that, ONNX and Caffe do not.
        """
        value = self.value(name)
        if value.rank != axes + 2:
            expected = "N, C, " + ", ".join("DHW"[3 - axes :])
            raise self.error(f"takes a tensor of rank {value.rank}", hint=f"give it a batch: ({expected})")
        return value

    # What the call becomes

    def node(self, op: Op, *inputs: Value | None) -> Value:
        """Add the node that yields the call's result."""
        return self._add(op, inputs, [(self.dtype, self.dims)])[0]

    def node_of_all(self, op: Op, *inputs: Value | None) -> list[Value]:
        """Add the node that yields all results of a call that has several."""
        return self._add(op, inputs, self.results)

    def helper(self, op: Op, *inputs: Value | None, dims: Sequence[Dim], dtype: str = "") -> Value:
        """Add a node that computes something of shape `dims` on the way, in the result's type by default."""
        return self._add(op, inputs, [(dtype or self.dtype, dims)])[0]

    def helper_of_many(
        self, op: Op, *inputs: Value | None, results: Sequence[tuple[str, Sequence[Dim]]]
    ) -> list[Value]:
        """Add a node that yields several values, of the given element types and shapes."""
        return self._add(op, inputs, results)

    def pointwise(self, op: Op, *inputs: Value, dtype: str = "") -> Value:
        """Add a node that computes element by element, in the first operand's type if none is given."""
        dims = broadcast(*(value.dims for value in inputs))
        return self._add(op, inputs, [(dtype or inputs[0].dtype, dims)])[0]

    def cast(self, value: Value, dtype: str) -> Value:
        """Return `value` in another element type; a constant is converted now, any other by a Cast."""
        if value.dtype == dtype:
            return value
        if value.data is not None:
            return constant("", converted(value.data, dtype))
        from caffeforge.runtime.onnx_node import element_type  # loads onnx

        return self.helper(hub.Cast(to=element_type(dtype)), value, dims=value.dims, dtype=dtype)

    def full(self, dims: Sequence[Dim], number: float, dtype: str = "") -> Value:
        """Return `number` everywhere, in the result's type unless one is given; a constant if it can be."""
        dtype = dtype or self.dtype
        if any(isinstance(dim, Symbol) for dim in dims):
            return self.helper(
                hub.Expand(), self.full((), number, dtype), self.shape_value(dims), dims=dims, dtype=dtype
            )
        return constant("", Full(self.numbers(dims), number, dtype))

    def tensor(self, tensor: torch.Tensor) -> Value:
        """Return a constant that holds `tensor`."""
        return constant("", TorchArray(tensor))

    def error(self, sentence: str, hint: str = "") -> FrontEndError:
        """Return the error that this call cannot be expressed; `sentence` continues the operator's name."""
        return FrontEndError(f"{self.origin.op} {sentence}", where=str(self.origin), hint=hint)

    def _value(self, argument: Any) -> Value:
        if isinstance(argument, Symbol):
            return self.cast(self.scalar(argument), self.dtype)
        if isinstance(argument, (bool, int, float)):
            return self.full((), argument)
        result = self._operands.get(argument) if isinstance(argument, FxNode) else None
        if not isinstance(result, Value):
            raise self.error(f"reads {argument}, which has no place in the hub")
        return result

    def _with_sizes(self, argument: Any) -> Any:
        """Return an argument with sizes in place of PyTorch's symbolic numbers."""
        if isinstance(argument, (list, tuple)):
            return [self._with_sizes(element) for element in argument]
        number = argument.meta.get("val") if isinstance(argument, FxNode) else argument
        return self._sizes.dim(number) if isinstance(number, (torch.SymInt, int)) else argument

    def _typed_argument(self, name: str) -> Any:
        argument = self._arguments[name]
        if isinstance(argument, Symbol):
            return 1  # a whole number, of whatever size
        return argument.meta["val"] if isinstance(argument, FxNode) else argument

    def _number_or_cast(self, argument: Any, dtype: str) -> Value:
        if isinstance(argument, FxNode):
            return self.cast(self._value(argument), dtype)
        if isinstance(argument, Symbol):
            return self.cast(self.scalar(argument), dtype)
        return self.full((), argument, dtype)

    def _add(
        self, op: Op, inputs: Sequence[Value | None], results: Sequence[tuple[str, Sequence[Dim]]]
    ) -> list[Value]:
        # Names are given once the whole graph is known, see naming.py.
        values = [Value("", dtype, dims) for dtype, dims in results]
        self.nodes.append(Node("", op, inputs, values, self.origin))
        return values


def normalized(axis: int, rank: int) -> int:
    """Return an axis counted from the front; PyTorch gives a scalar one axis."""
    return axis % max(rank, 1)


def broadcast(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the shape of a result that is computed element by element.

    Where a symbol meets a number other than 1, or another symbol, the two are equal when the model runs.

    Raises:
        FrontEndError: the shapes do not fit.
    """
    rank = max(map(len, shapes))
    found: list[Dim] = [1] * rank
    for shape in shapes:
        for axis, dim in enumerate(shape, rank - len(shape)):
            known = found[axis]
            if isinstance(dim, int) and isinstance(known, int) and 1 not in (dim, known) and dim != known:
                raise FrontEndError(f"shapes {', '.join(str(list(s)) for s in shapes)} do not fit")
            if known == 1 or (isinstance(known, Symbol) and isinstance(dim, int) and dim != 1):
                found[axis] = dim
    return tuple(found)
