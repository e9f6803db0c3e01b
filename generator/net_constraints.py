"""Prints what a chip refuses whatever a layer's type is, and what it refuses of a net as a whole.

``constraints: {"*": ...}`` sees a layer's type, its bottoms and its results; ``net: constraints:`` the inputs
and outputs of the net. Both are functions of ``read.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from caffeforge.generator.compatibility import Inheritance
from caffeforge.generator.expression import Name, Printer, Scope
from caffeforge.generator.mapping import Condition
from caffeforge.generator.python_text import Code, call, doc, indented
from caffeforge.generator.rule_code import REFUSE, Lets, Statements
from caffeforge.generator.types import STRING, VALUES, Type

ANY: Final = "*"  # stands for every layer type
NET: Final = "net:"  # no layer type can be called so
NAMES: Final = {
    ANY: {"type": ("type_", STRING), "bottoms": ("bottoms", VALUES), "results": ("results", VALUES)},
    NET: {"inputs": ("inputs", VALUES), "outputs": ("outputs", VALUES)},
}
FUNCTIONS: Final = {ANY: ("constrain_any", "each layer"), NET: ("constrain_net", "a net as a whole")}


def context(
    conditions: Mapping[str, Sequence[Condition]],
    printer: Printer,
    types: Iterable[str],
    inheritance: Inheritance,
) -> dict[str, Any]:
    """Return what the templates print: the functions, of ANY and of NET, that there are conditions for.

    The mapping's own conditions can name no other layer types than `types`; inherited ones may.
    """
    for condition in (c for found in conditions.values() for c in found if c.refused is not None):
        sentence = "an example of what is refused belongs to the constraints of one layer type"
        printer.diagnostics.error("example", condition.refused.position, sentence)  # type: ignore[union-attr]
    known = tuple(types)
    functions = []
    for kind, found in conditions.items():
        if found:
            own = not inheritance.is_inherited(found[0].source.position)
            functions.append(
                _function(kind, found, printer, replace(STRING, values=known) if own else STRING)
            )
    return {"whole": functions}


def _function(kind: str, conditions: Sequence[Condition], printer: Printer, types: Type) -> dict[str, Any]:
    held_as = {name: (code, types if held == STRING else held) for name, (code, held) in NAMES[kind].items()}
    names = {name: Name(code, type=held) for name, (code, held) in held_as.items()}
    scope = Scope(names, taken=frozenset({"r", *(name.code for name in names.values())}))
    statements = Statements(Lets([], scope), scope, printer, refusal=REFUSE)
    statements.require(conditions)
    name, subject = FUNCTIONS[kind]
    kinds = {n.code: "Sequence[Value]" if n.type == VALUES else "str" for n in names.values()}
    parameters = ["r: Refusing", *(f"{code}: {kind}" for code, kind in kinds.items())]
    return {
        "name": Code(name),
        "signature": call(f"def {name}", parameters, 0, " -> None:"),
        "comment": doc(f"What the chip refuses of {subject}."),
        "body": Code("\n".join(indented(line, 4) for line in statements.lines)),
    }
