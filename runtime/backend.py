"""What a generated Caffe backend is to the runtime: tables, without one line of behaviour of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from caffeforge.runtime.graph import Value
from caffeforge.runtime.message import LayerParam, Message
from caffeforge.runtime.op import CustomOp, Op
from caffeforge.runtime.pattern import Pattern
from caffeforge.runtime.refusal import Refusing

RUNTIME_ABI: Final = 1  # generated code names the number it was written for; `Backend` refuses another


@dataclass(frozen=True)
class Alternative:
    """One way to express an op: `function(e, op, *inputs, *outputs)` fills the Emit `e` or raises Refused.

    Attributes:
        rule: where it stands, as ``mapping.yaml:38``.
        note: what a report says where it is taken.
        approximate: it is taken only where approximations are allowed.
        computed: it holds also where an input that a compiler must know is computed when the model runs.
    """

    function: Callable[..., None]
    rule: str
    note: str = ""
    approximate: bool = False
    computed: bool = False


@dataclass(frozen=True)
class Rule:
    """How this backend expresses one op; `otherwise` says in words what it can express."""

    alternatives: tuple[Alternative, ...]
    otherwise: str = ""


@dataclass(frozen=True)
class Reader:
    """What a layer type computes.

    Attributes:
        function: `function(r, param)` builds hub nodes in the Read `r`.
        rule: where it stands.
        reads: the parameter fields that the rule reads: names, or paths as ``shape.dim`` where it reads only
            parts of a message.
        ignores: those that carry no meaning for inference; ``blobs`` for weights that do not.
    """

    function: Callable[..., None]
    rule: str
    reads: tuple[str, ...]
    ignores: tuple[str, ...]


@dataclass(frozen=True)
class Skeleton:
    """The field numbers that every file of the dialect needs; 0 for weights as doubles if it has none."""

    net_name: int
    net_layer: int
    layer_name: int
    layer_type: int
    layer_bottom: int
    layer_top: int
    layer_blobs: int
    blob_shape: int
    blob_data: int
    blob_double_data: int
    shape_dim: int


@dataclass(frozen=True)
class NetStyle:
    """How this dialect's tools want a net written (``net:`` of the mapping).

    Attributes:
        input: gives the layer for an input; None for ``input:`` and ``input_shape:`` fields of the net.
        loose_tops: the layer that takes tops which nothing reads, so that they are no outputs.
        in_place: layer types that are written in place where that is safe, and read so.
        views: layer types whose tops share their bottom's memory.
        shared: layer types whose weights are written once for layers that have the same.
        takes_in_place: layer types that are read in place as well, though never written so.
        training: layer types that are left out when a net is read, where nothing reads what they compute.
        data: layer types that read files or memory; their tops are inputs of a net that is read.
        untold: layer types of which it is not known what they compute, each with the reason.
    """

    input: Callable[[Value], LayerParam] | None = None
    loose_tops: type[LayerParam] | None = None
    in_place: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    takes_in_place: tuple[str, ...] = ()
    training: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    untold: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Backend:
    """One Caffe dialect.

    Attributes:
        constraints: by layer type, what the chip refuses: functions of a Read and the layer's parameters.
        constrain_any: what it refuses of any layer: of its type, its bottoms and its results.
        constrain_net: what it refuses of a net: of its inputs and outputs.
    """

    abi: int
    name: str
    package: str
    descriptor: Callable[[], bytes]  # a serialized FileDescriptorSet
    skeleton: Skeleton
    layer_types: Mapping[str, type[LayerParam]]
    messages: Mapping[str, type[Message]]  # by full name within the package
    rules: Mapping[type[Op], Rule]
    readers: Mapping[str, Reader]
    patterns: tuple[Pattern, ...] = ()
    constraints: Mapping[str, Callable[[Any, Any], None]] = field(default_factory=dict)
    constrain_any: Callable[[Refusing, str, Sequence[Value], Sequence[Value]], None] | None = None
    constrain_net: Callable[[Refusing, Sequence[Value], Sequence[Value]], None] | None = None
    custom: Mapping[str, CustomOp] = field(default_factory=dict)
    net: NetStyle = field(default_factory=NetStyle)

    def __post_init__(self) -> None:
        if self.abi != RUNTIME_ABI:
            side = "run gen-backend again" if self.abi < RUNTIME_ABI else "upgrade caffeforge"
            raise ImportError(
                f"backend {self.name} was generated for runtime ABI {self.abi}, this is {RUNTIME_ABI}: {side}"
            )
