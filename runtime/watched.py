"""Runs functions of a generated package so that each of their ``if`` tells what its condition was.

The functions of rules are plain code: ``if`` with ``raise Refused(sentence, place)`` for what must not be,
any other ``if`` for a choice. To see what a condition was although nothing came of it, the function is
compiled once more from its own source, with every test handed to a listener.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

HEARD: Final = "_heard"  # the listener's name in the compiled function; no generated name begins with _


@dataclass(frozen=True)
class Test:
    """One ``if`` of a function.

    Attributes:
        refuses: (sentence, place) of the refusal that follows; None for a choice.
        inner: it stands below another one.
    """

    refuses: tuple[str, str] | None
    inner: bool


Heard = Callable[[int, bool], None]


@dataclass(frozen=True)
class Watched:
    """A function whose tests are heard.

    Attributes:
        tests: in the order of the source; the listener gets their index.
        run: the function.
        ask: the same without what follows its choices, so that each of them is asked.
    """

    tests: tuple[Test, ...]
    run: Callable[..., None]
    ask: Callable[..., None]


def watched(function: Callable[..., None], heard: Heard) -> Watched:
    """Return a function of a generated module with a listener to its tests."""
    module = sys.modules[function.__module__]
    definition = _functions(str(module.__file__))[function.__name__]
    tests, loud = _loud(definition, asking=False)
    _, asking = _loud(definition, asking=True)
    run, ask = (_compiled(node, module, heard) for node in (loud, asking))
    return Watched(tuple(tests), run, ask)


@lru_cache(maxsize=16)
def _functions(file: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _loud(definition: ast.FunctionDef, *, asking: bool) -> tuple[list[Test], ast.FunctionDef]:
    """Return the tests of a function, and the function with each of them handed to the listener."""
    copy = ast.parse(ast.unparse(definition)).body[0]
    assert isinstance(copy, ast.FunctionDef)
    tests: list[Test] = []
    for node, inner in _ifs(copy.body, inner=False):
        refuses = _refusal(node.body[0])
        call = ast.Call(ast.Name(HEARD, ast.Load()), [ast.Constant(len(tests)), node.test], [])
        node.test = call
        tests.append(Test(refuses, inner))
        if asking and refuses is None:
            node.body = [ast.Pass()]
    return tests, copy


def _ifs(body: list[ast.stmt], *, inner: bool) -> Iterator[tuple[ast.If, bool]]:
    for statement in body:
        if isinstance(statement, ast.If):
            below = list(_ifs(statement.body, inner=True))  # before the body may be taken away
            yield statement, inner
            yield from below


def _refusal(statement: ast.stmt) -> tuple[str, str] | None:
    call = statement.exc if isinstance(statement, ast.Raise) else getattr(statement, "value", None)
    if not isinstance(call, ast.Call):
        return None
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return (texts[0], texts[1]) if len(texts) == 2 else None


def _compiled(definition: ast.FunctionDef, module: Any, heard: Heard) -> Callable[..., None]:
    def listener(index: int, value: object) -> bool:
        heard(index, bool(value))
        return bool(value)

    tree = ast.fix_missing_locations(ast.Module([definition], []))
    names = {**vars(module), HEARD: listener}
    exec(compile(tree, f"<{definition.name}, watched>", "exec"), names)
    found: Callable[..., None] = names[definition.name]
    return found
