"""What a mapping says, as data; expressions are still text with their places."""

from __future__ import annotations

from dataclasses import dataclass, field

from caffeforge.generator.diagnostics import Position
from caffeforge.generator.source import Source
from caffeforge.generator.yaml_source import Node, Scalar


@dataclass(frozen=True)
class Condition:
    """An expression that must hold, the sentence shown when it does not, and examples of that."""

    source: Source
    sentence: str
    refused: Node | None = None


@dataclass(frozen=True)
class LayerEntry:
    """One layer that a rule writes.

    Attributes:
        fields: parameter fields with the YAML that gives their values.
        bottoms: None for the rule's default: the result of the layer before, or the op's operands.
        loose: how many tops it has besides the one that goes on, which is number `kept`.
        when: the layer is left out where this does not hold.
        top: a name for its result, by which later layers can take it as a bottom.
    """

    type: Scalar
    fields: tuple[tuple[Scalar, Node], ...] = ()
    blobs: tuple[Source, ...] = ()
    bottoms: tuple[Source, ...] | None = None
    loose: int = 0
    kept: int = 0
    when: Source | None = None
    top: Scalar | None = None


@dataclass(frozen=True)
class Alternative:
    """One way to write an op or to read a layer: layers, the text of a rewrite, or a function in Python.

    Attributes:
        common: how many of `require` are those of all alternatives; they come first, and before `when`.
        inputs: the shapes of a net's inputs, for a layer type that gives them.
        hook: a function of ``runtime/hooks/<backend>.py``; for a layer, `reads` lists the fields it reads.
        note: what a report says where the alternative is taken.
        approximate: it is taken only where approximations are allowed.
    """

    position: Position
    let: tuple[tuple[Scalar, Source], ...] = ()
    require: tuple[Condition, ...] = ()
    when: Source | None = None
    layers: tuple[LayerEntry, ...] = ()
    rewrite: Source | None = None
    inputs: Source | None = None
    hook: Scalar | None = None
    reads: tuple[Scalar, ...] = ()
    note: str = ""
    approximate: bool = False
    common: int = 0


@dataclass(frozen=True)
class Rule:
    """The entry of one op or layer type.

    Attributes:
        ignore: fields without meaning for inference.
        example: applications that it takes.
        witness: what, not written here, was seen to compute the same.
        older: fields that only later Caffes have, with the value that stands for one that is not there.
        refused: applications that none of its alternatives takes.
    """

    name: Scalar
    alternatives: tuple[Alternative, ...]
    otherwise: str = ""
    ignore: tuple[Scalar, ...] = ()
    example: Node | None = None
    witness: str = ""
    older: tuple[tuple[Scalar, Source], ...] = ()
    refused: Node | None = None


@dataclass(frozen=True)
class ConstraintRule:
    """What a chip refuses of one layer type, or of any (``*``), although the schema allows it."""

    type: Scalar
    require: tuple[Condition, ...]


Shape = tuple[Source, ...] | Source  # sizes one by one, or an expression that gives all


@dataclass(frozen=True)
class CustomOp:
    """An op of the backend's own domain.

    Attributes:
        attributes: name and ``type`` or ``type = default`` of each.
        shape: the sizes of its first result.
        further: names of further results, and their sizes.
        open: names of sizes in `shape` that are known only when the net runs.
        torch: name of the ``torch.library`` op that it stands for.
        reference: what it computes, in other ops.
    """

    name: Scalar
    inputs: tuple[Scalar, ...]
    outputs: tuple[Scalar, ...]
    attributes: tuple[tuple[Scalar, Scalar], ...]
    shape: Shape | None
    torch: Scalar | None
    reference: Source | None
    open: tuple[Scalar, ...] = ()
    further: tuple[tuple[Scalar, Shape], ...] = ()


@dataclass(frozen=True)
class NetRule:
    """How nets are written.

    Attributes:
        input: the layer of an input.
        loose_tops: the layer type that takes tops which nothing reads.
        in_place: layer types that are written in place where that is safe, and read so.
        views: layer types whose tops share their bottom's memory.
        shared: layer types whose weights are written once for layers that have the same.
        takes_in_place: layer types that are read in place as well, though never written so.
        training: layer types that are left out when a net is read, where nothing reads what they compute.
        data: layer types that read files or memory; their tops are inputs of a net that is read.
        untold: layer types of which it is not known what they compute, each with the reason.
        require: what must hold of a net's inputs and outputs.
    """

    input: LayerEntry | None = None
    loose_tops: Scalar | None = None
    in_place: tuple[Scalar, ...] = ()
    views: tuple[Scalar, ...] = ()
    shared: tuple[Scalar, ...] = ()
    takes_in_place: tuple[Scalar, ...] = ()
    training: tuple[Scalar, ...] = ()
    data: tuple[Scalar, ...] = ()
    untold: tuple[tuple[Scalar, str], ...] = ()
    require: tuple[Condition, ...] = ()


@dataclass
class MappingFile:
    """All of a mapping."""

    backend: Scalar
    types: dict[str, tuple[Scalar, tuple[Scalar, ...]]] = field(default_factory=dict)
    ops: list[Rule] = field(default_factory=list)
    layers: list[Rule] = field(default_factory=list)
    patterns: list[PatternRule] = field(default_factory=list)
    constraints: list[ConstraintRule] = field(default_factory=list)
    custom: list[CustomOp] = field(default_factory=list)
    net: NetRule = field(default_factory=NetRule)
    unread: frozenset[str] = frozenset()  # layer types whose rules are not well formed


@dataclass(frozen=True)
class PatternRule:
    """Several nodes that are one op.

    Attributes:
        match: the nodes, in the notation of graphs.
        rewrite: what stands for them.
        optional: names that may stand for an absent operand.
        constant: names that stand for constants only.
    """

    name: Scalar
    match: Source
    rewrite: Source
    let: tuple[tuple[Scalar, Source], ...] = ()
    require: tuple[Condition, ...] = ()
    when: Source | None = None
    optional: tuple[Scalar, ...] = ()
    constant: tuple[Scalar, ...] = ()
    example: Node | None = None
    refused: Node | None = None


@dataclass
class RewritesFile:
    """What all backends share: fusions, and lowerings of the same form as ``ops:`` of a mapping.

    Attributes:
        folds: patterns over what lowerings wrote.
        impossible: ops that Caffe cannot compute, and why.
    """

    fusions: list[PatternRule] = field(default_factory=list)
    lowerings: list[Rule] = field(default_factory=list)
    folds: list[PatternRule] = field(default_factory=list)
    impossible: list[tuple[Scalar, str]] = field(default_factory=list)
