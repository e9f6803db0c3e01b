"""The base of the hub's operator classes, which are generated into ``caffeforge.generated.hub``.

An op is a frozen value: its class says which ONNX operator it is, its fields hold the attributes
and those inputs that ONNX passes as tensors but that a compiler must know (``schemas/hub/ops.yaml``).
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from caffeforge.runtime.graph import Dim

Option = Literal["single", "optional", "variadic"]


class Formal(NamedTuple):
    """One formal input or output of an op, under ONNX's name."""

    name: str
    option: Option = "single"
    static: bool = False  # an input that is a field of the op when it is constant


class Attribute(NamedTuple):
    """One field of an op: ``kind`` is int, ints, float, floats, string, strings, tensor, graph or type."""

    name: str
    kind: str
    static: bool = False  # ONNX passes it as an input, of element type ``dtype``
    dtype: str = ""


class Op:
    """A hub operator with its static arguments; equal and hashable by value."""

    __slots__: tuple[str, ...] = ()
    op_type: ClassVar[str]
    domain: ClassVar[str] = ""
    inputs: ClassVar[tuple[Formal, ...]] = ()
    outputs: ClassVar[tuple[Formal, ...]] = ()
    attributes: ClassVar[tuple[Attribute, ...]] = ()
    custom: ClassVar[CustomOp | None] = None  # set for an op that ONNX does not have

    def fields(self) -> Iterator[tuple[Attribute, Any]]:
        """Yield each attribute that is present, in declaration order."""
        for attribute in self.attributes:
            value = getattr(self, python_name(attribute.name))
            if value is not None:
                yield attribute, value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, slot) for slot in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __repr__(self) -> str:
        return f"{self.op_type}({', '.join(f'{a.name}={v!r}' for a, v in self.fields())})"


class VersionedOp(Op):
    """An operator as one version of ONNX defines it: what nodes of files are bound to (``generated/onnx``).

    `since` is the opset that brought the version.
    """

    __slots__ = ()
    since: ClassVar[int]

    def fields_by_name(self) -> dict[str, Any]:
        """Return the attributes that are present."""
        return {attribute.name: value for attribute, value in self.fields()}


class CustomOp(NamedTuple):
    """What is said of an op that ONNX does not have: by a backend of its own, by the hub of Caffe's.

    Attributes:
        op: its class.
        shape: `shape(op, *inputs)` gives the sizes of the first result; its dtype is the first input's.
        reference: `reference(b, op, *inputs, *results)` builds it from other ops, None if it is not said.
        torch: the ``torch.library`` op that it stands for, as ``vendory::focus``, or empty.
        further: functions as `shape` for further results, by the names of the outputs.
    """

    op: type[Op]
    shape: Callable[..., tuple[Dim, ...]]
    reference: Callable[..., None] | None
    torch: str
    further: Mapping[str, Callable[..., tuple[Dim, ...]]] = MappingProxyType({})


def full_name(op: Op | type[Op]) -> str:
    """Return an op's name as mappings write it, dotted where it is not of ONNX's domain."""
    return f"{op.domain}.{op.op_type}" if op.domain else op.op_type


def python_name(name: str) -> str:
    """Return an ONNX or proto name as a Python identifier: keywords get a trailing underscore.

    The hub's and the dialects' names are checked to be identifiers when their classes are generated.
    """
    return name + "_" if name in KEYWORDS else name


KEYWORDS = frozenset(keyword.kwlist)
