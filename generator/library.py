"""The functions that expressions may call, read from the text of ``runtime/lib/``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from caffeforge.generator.types import ANY, Type, of_annotation

RUNTIME = Path(__file__).resolve().parent.parent / "runtime"
LIBS = tuple(p for p in sorted((RUNTIME / "lib").glob("*.py")) if p.stem != "__init__")
HOOKS = RUNTIME / "hooks"  # functions that a mapping names by hook:, a file per backend


@dataclass(frozen=True)
class Function:
    """One function.

    Attributes:
        least: how many values it takes at least, `most` at most.
        parameters: for each value the types that it may have.
        alike: the values whose elements are of the type that the elements of the result have; none if the
            types of the values do not tell.
    """

    name: str
    least: int
    most: int
    parameters: tuple[tuple[Type, ...], ...] = ()
    returns: Type = ANY
    alike: tuple[int, ...] = ()

    def arity(self) -> str:
        """Return the number of values in words."""
        if self.least == self.most:
            return str(self.least)
        return f"{self.least} to {self.most}" if self.most < MANY else f"at least {self.least}"


MANY = 99
BUILTINS = {
    name: Function(name, least, most)
    for name, least, most in (
        ("len", 1, 1),
        ("int", 1, 1),
        ("float", 1, 1),
        ("abs", 1, 1),
        ("min", 1, MANY),
        ("max", 1, MANY),
        ("sum", 1, 1),
        ("all", 1, 1),
        ("any", 1, 1),
        ("range", 1, 3),
        ("zip", 1, MANY),
        ("round", 1, 1),
    )
}


def functions(*paths: Path) -> dict[str, Function]:
    """Return the public functions of files by name, without importing them; none where there is no file."""
    texts = [path.read_bytes() for path in paths or LIBS if path.exists()]
    return {name: function for text in texts for name, function in _of_text(text).items()}


@cache
def _of_text(text: bytes) -> Mapping[str, Function]:
    """Return the functions of one file; it is read once for all backends of a run."""
    found: dict[str, Function] = {}
    aliases: dict[str, ast.expr] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            aliases[node.targets[0].id] = node.value
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found[node.name] = _function(node, aliases)
    return found


def _function(node: ast.FunctionDef, aliases: dict[str, ast.expr]) -> Function:
    count = len(node.args.args)
    most = MANY if node.args.vararg else count
    parameters = tuple(of_annotation(arg.annotation, aliases) for arg in node.args.args)
    returns = of_annotation(node.returns, aliases)
    least = count - len(node.args.defaults)
    alike = _alike(node)
    return Function(node.name, least, most, parameters, returns[0] if len(returns) == 1 else ANY, alike)


def _alike(node: ast.FunctionDef) -> tuple[int, ...]:
    """Return which parameters are a ``Sequence[T]``, where the result is a tuple of T."""
    if node.returns is None or ast.unparse(node.returns) != "tuple[T, ...]":
        return ()
    annotations = [ast.unparse(arg.annotation) if arg.annotation else "" for arg in node.args.args]
    return tuple(index for index, text in enumerate(annotations) if text == "Sequence[T]")
