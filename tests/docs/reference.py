"""The generated parts of the documentation; run as a program, it writes them anew."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from caffeforge.generated import hub
from caffeforge.generated.hub.caffe_ops import CUSTOM
from caffeforge.generator.library import LIBS
from caffeforge.runtime.explanation import signature
from tests import checkout
from tests.generator import dialects

PLAIN = {"Ints": "ints", "Const": "constant", "Array": "constant array", "Sequence[T]": "list", "T": "any"}
PLAIN |= {"str": "string", "Value": "tensor"}


@dataclass(frozen=True)
class Table:
    """A part of a file between two comments, with the function that writes it."""

    file: str
    begin: str
    end: str
    text: Callable[[], str]

    def current(self) -> str:
        """Return what stands in the file."""
        return self._split()[1]

    def write(self) -> None:
        """Put what is right into the file."""
        before, _, after = self._split()
        path = checkout.ROOT / "docs" / self.file
        path.write_text(before + self.text() + after, encoding="utf-8")

    def _split(self) -> tuple[str, str, str]:
        text = (checkout.ROOT / "docs" / self.file).read_text(encoding="utf-8")
        start, stop = text.index(self.begin) + len(self.begin), text.index(self.end)
        return text[:start], text[start:stop], text[stop:]


def functions() -> str:
    """Return the functions of ``runtime/lib/`` as a table."""
    lines = ["", "| function | gives |", "|---|---|"]
    for node in (node for path in LIBS for node in ast.parse(path.read_bytes()).body):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            lines.append(f"| `{_signature(node)}` | {_sentence(node)} |")
    return "\n".join([*lines, ""])


def _signature(node: ast.FunctionDef) -> str:
    defaults = [None] * (len(node.args.args) - len(node.args.defaults)) + list(node.args.defaults)
    parts = [
        f"{arg.arg}: {_type(arg.annotation)}" + (f" = {_default(default)}" if default is not None else "")
        for arg, default in zip(node.args.args, defaults, strict=True)
    ]
    return f"{node.name}({', '.join(parts)}) -> {_type(node.returns)}"


def _default(node: ast.expr) -> str:
    return (
        ast.unparse(node).lower()
        if isinstance(node, ast.Constant) and node.value is None
        else ast.unparse(node)
    )


def _type(node: ast.expr | None) -> str:
    """Return an annotation in the words of the page; `|` would end a cell."""
    text = ast.unparse(node) if node is not None else "any"
    if isinstance(node, ast.BinOp):
        return f"{_type(node.left)} or {_type(node.right)}"
    if text in PLAIN:
        return PLAIN[text]
    if isinstance(node, ast.Constant) and node.value is None:
        return "none"
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("tuple", "Sequence"):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts = [_type(item) for item in inner if ast.unparse(item) != "..."]
        if len(parts) == len(inner) > 1:
            return f"({', '.join(parts)})"
        return f"{parts[0]}s" if parts[0] in ("int", "float") else f"list of {parts[0]}"
    return text


def _sentence(node: ast.FunctionDef) -> str:
    """Return the first paragraph of a docstring, without its first word, and the sentences after it."""
    paragraphs = (ast.get_docstring(node) or "").split("\n\n")
    words = [" ".join(p.split()) for p in paragraphs if not p.startswith(("Args:", "Raises:", "Returns:"))]
    text = re.sub(r"^(Return|Tell) ", "", " ".join(words)).replace("``", "`").replace("|", "\\|")
    return text[:1].upper() + text[1:]


def ops() -> str:
    """Return all ops of the hub, one a line."""
    listed = [*hub.OPS.values(), *(custom.op for custom in CUSTOM.values())]
    return "\n" + "".join(f"* `{signature(op)}`\n" for op in listed)


def left_out() -> str:
    """Return the operators of core ATen that are refused whatever their arguments, by reason."""
    import torch
    from torch._ops import OpOverload, OpOverloadPacket

    from caffeforge.runtime.torch_front import registry
    from caffeforge.runtime.torch_front.complex_ops import COMPLEX_HANDLERS
    from caffeforge.runtime.torch_front.decompose import decomposes
    from caffeforge.runtime.torch_front.refusals import reason

    found: dict[str, set[str]] = {}
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        overloads: list[str] = packet.overloads() if isinstance(packet, OpOverloadPacket) else []  # type: ignore[no-untyped-call]
        for overload in overloads:
            op = getattr(packet, overload)
            core = isinstance(op, OpOverload) and torch.Tag.core in op.tags and not op._schema.is_mutable
            known = op in registry.HANDLERS or op in COMPLEX_HANDLERS
            if core and not known and not decomposes(op):
                found.setdefault(reason(str(op)), set()).add(f"`{name}`")
    found.pop("", None)  # what makes a tensor of nothing, as arange: a constant when the model is traced
    lines = [f"| {why} | {', '.join(sorted(names))} |" for why, names in sorted(found.items())]
    return "\n".join(["", "| why | operators |", "|---|---|", *lines, ""])


TABLES = (
    Table(
        "rules.md",
        "<!-- functions: written by python -m tests.docs.reference -->\n",
        "<!-- functions: end -->",
        functions,
    ),
    Table(
        "pytorch.md",
        "<!-- left out: written by python -m tests.docs.reference -->\n",
        "<!-- left out: end -->",
        left_out,
    ),
    Table("ops.md", "<!-- ops: written by python -m tests.docs.reference -->\n", "<!-- ops: end -->", ops),
)

if __name__ == "__main__":
    for table in TABLES:
        table.write()
    dialects.write_table()
