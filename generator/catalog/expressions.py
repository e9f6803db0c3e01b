"""Errors of expressions: their grammar, names, calls and types."""

from __future__ import annotations

from caffeforge.generator.catalog.entry import Entry


def _when(expression: str) -> str:
    return f'ops:\n  Conv: {{when: "{expression}", layer: Convolution, blobs: [W]}}'


def _pooling(condition: str) -> str:
    return f"layers:\n  Pooling:\n    when: {condition}\n    rewrite: tops[0] = GlobalAveragePool(bottom)"


ENTRIES = (
    Entry(
        "expression-syntax",
        "the text is no expression",
        "Expressions are written as in Python, on one line or in brackets. One that holds a comma, "
        "bracket or colon must be in quotes within { } and [ ] of YAML.",
        _when("group == "),
        _when("group == 1"),
    ),
    Entry(
        "expression-form",
        "Python, but more than a mapping may say",
        "There are literals, names, lists, indexing, .shape and .rank, arithmetic, comparisons, "
        "and/or/not, 'a if c else b', calls of known functions, and [x for x in list]. What is more "
        "goes into a function of runtime/lib/.",
        _when("strides[::2] == [1]"),
        _when("strides[:1] == [1]"),
    ),
    Entry(
        "unknown-name",
        "nothing here is called so",
        "An expression may name the op's attributes, inputs and outputs (under ops:), the layer's "
        "fields, bottoms, blobs and tops (under layers:), and the values of let: above it.",
        _when("groups == 1"),
        _when("group == 1"),
    ),
    Entry(
        "unknown-function",
        "there is no such function",
        "Expressions call the functions of runtime/lib/ and a few of Python's own.",
        _when("length(strides) == 2"),
        _when("len(strides) == 2"),
    ),
    Entry(
        "call-arity",
        "a function is called with too many or too few values",
        "has() takes one name; the other functions say in runtime/lib/ what they take.",
        _when("len(strides, pads) == 2"),
        _when("len(strides) == 2"),
    ),
    Entry(
        "type",
        "a value of another type is due",
        "Conditions are true or false, repeated fields take lists, and so on.",
        _when("group"),
        _when("group == 1"),
    ),
    Entry(
        "type-optional",
        "a value that may be absent",
        "An optional input or attribute must be asked for first: 'has(B) and ...', or '... if has(B) "
        "else ...'.",
        _when("B.rank == 1"),
        _when("has(B) and B.rank == 1"),
    ),
    Entry(
        "type-field",
        "the value has no such part",
        "Tensors have shape, rank, dtype and name; messages have their fields.",
        _when("X.size == 4"),
        _when("X.rank == 4"),
    ),
    Entry(
        "type-index",
        "the value has no elements, or not as many",
        "Lists can be indexed and have a length; numbers and tensors have neither.",
        _when("group[0] == 1"),
        _when("strides[0] == 1"),
    ),
    Entry(
        "type-operator",
        "an operator between values that do not go with it",
        "Numbers can be added, multiplied and ordered, lists be joined; a list is compared with == only.",
        _when("strides > 1"),
        _when("strides[0] > 1"),
    ),
    Entry(
        "type-compare",
        "two values that can never be equal",
        "Values of different types are compared, so that the condition is always the same.",
        _when("group == 'one'"),
        _when("group == 1"),
    ),
    Entry(
        "type-enum",
        "a word that the field can never hold",
        "The value of an enum is compared with a word that is none of the enum's values.",
        _pooling('pool == "MEAN" and global_pooling'),
        _pooling('pool == "AVE" and global_pooling'),
    ),
)
