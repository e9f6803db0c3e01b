"""The types of expressions: numbers, words, lists, tensors and messages, and which may stand for which."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Type:
    """The type of an expression.

    Attributes:
        kind: any, none, int, float, bool, string, list, value (a tensor), array (weights), message.
        element: of a list, the type of its elements.
        items: of a list of fixed length, the type of each element.
        values: of a string, the only ones it can be.
        fields: of a message, the type of each field.
        optional: it may be absent.
        default: of a field of a message, the Python of what it is where it is absent.
    """

    kind: str
    element: Type | None = None
    items: tuple[Type, ...] | None = None
    values: tuple[str, ...] | None = None
    fields: Mapping[str, Type] | None = None
    optional: bool = False
    default: str = field(default="", compare=False)

    def __str__(self) -> str:
        if self.kind != "list":
            return {"value": "tensor", "array": "constant array"}.get(self.kind, self.kind)
        return f"list of {self.element or ANY}"


ANY = Type("any")
NONE = Type("none")
ANY_OR_NONE = Type("any", optional=True)
INT, FLOAT, BOOL, STRING = Type("int"), Type("float"), Type("bool"), Type("string")
VALUE, ARRAY = Type("value"), Type("array")
INTS, FLOATS = Type("list", INT), Type("list", FLOAT)
VALUES = Type("list", VALUE)

OF_ATTRIBUTE = {
    "int": INT,
    "ints": INTS,
    "float": FLOAT,
    "floats": FLOATS,
    "bool": BOOL,
    "string": STRING,
    "strings": Type("list", STRING),
}
OF_ANNOTATION = {"int": INT, "float": FLOAT, "bool": BOOL, "str": STRING, "Array": ARRAY, "Value": VALUE}


def a(given: Type | str) -> str:
    """Return a type with its article, for sentences."""
    text = str(given)
    return f"an {text}" if text[0] in "aeiou" else f"a {text}"


def optional(given: Type) -> Type:
    """Return the type of what may be absent."""
    return replace(given, optional=True)


def present(given: Type) -> Type:
    """Return the type of what is there."""
    return replace(given, optional=False) if given.optional else given


def fits(given: Type, expected: Type) -> bool:
    """Tell whether a value of one type may stand where the other is expected; absence aside."""
    if "any" in (given.kind, expected.kind) or given.kind == "none":
        return True
    if expected.kind == "float":
        return given.kind in ("float", "int")
    if expected.kind == "array":
        return given.kind in ("array", "value")
    if expected.kind == "list" and given.kind == "list":
        return all(fits(item, expected.element or ANY) for item in elements(given))
    return given.kind == expected.kind


def comparable(one: Type, other: Type) -> bool:
    """Tell whether two values can ever be equal."""
    return fits(one, other) or fits(other, one)


def elements(given: Type) -> tuple[Type, ...]:
    """Return the types that a list's elements have."""
    return given.items if given.items is not None else (given.element or ANY,)


def joined(one: Type, other: Type) -> Type:
    """Return the type of a value that is of one type or the other."""
    if one.kind == "none":
        return optional(other)
    if other.kind == "none":
        return optional(one)
    absent = one.optional or other.optional
    if {one.kind, other.kind} == {"int", "float"}:
        return replace(FLOAT, optional=absent)
    if one.kind == other.kind == "list":
        inner = [*elements(one), *elements(other)]
        element = inner[0] if inner else ANY
        for item in inner[1:]:
            element = joined(element, item)
        return Type("list", element, optional=absent)
    return replace(one, optional=absent, values=None) if one.kind == other.kind else ANY


def of_annotation(node: ast.expr | None, aliases: Mapping[str, ast.expr]) -> tuple[Type, ...]:
    """Return the types that an annotation of ``runtime/lib/`` allows; unknown ones allow any."""
    if node is None:
        return (ANY,)
    if isinstance(node, ast.Constant) and node.value is None:
        return (NONE,)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return (*of_annotation(node.left, aliases), *of_annotation(node.right, aliases))
    if isinstance(node, ast.Name):
        if node.id in aliases:
            return of_annotation(aliases[node.id], aliases)
        return (OF_ANNOTATION.get(node.id, ANY),)
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Sequence", "tuple"):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        types = [of_annotation(item, aliases)[0] for item in inner if not _is_ellipsis(item)]
        if len(types) == len(inner) > 1:
            return (Type("list", items=tuple(types)),)
        return (Type("list", types[0] if types else ANY),)
    return (ANY,)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
