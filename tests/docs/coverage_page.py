"""docs/coverage.md and docs/coverage.json: what becomes of every op on every backend; run, it writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from caffeforge.runtime import coverage
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.backends import dialects, find_any, onnx_names
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from tests import checkout
from tests.docs.op_coverage import OpCoverage, cases_of, op_coverage

PAGE: Final = checkout.ROOT / "docs" / "coverage.md"
DATA: Final = checkout.ROOT / "docs" / "coverage.json"
BASE: Final = "bvlc"
OPSETS: Final = "onnx_opset"
MARKS: Final = {"direct": "●", "conditional": "◐", "lowered": "", "refused": "·"}
HEAD: Final = """\
# Coverage

<!-- Written by python -m tests.docs.coverage_page -->

What becomes of every op of the hub on every backend, seen by trying: the examples of all rules, {cases} \
of {ops} ops, are legalized for each. [coverage.json](coverage.json) holds the same, with conditions, layers \
and witnesses. `caffeforge coverage BACKEND` lists one backend, `caffeforge explain BACKEND OP` tells the \
rules of an op in words.

| sign | means |
|---|---|
| ● | direct: the backend's own rules write it, whatever its fields |
| ◐ | conditional: they write some of it; for the rest it is lowered or refused |
| 3 or 2..5 | lowered: other ops take its place, and its examples become so many layers or nodes |
| · | refused: none of its examples can be written |
| * | unverified: no witness is named for one of the layers |

Beside ● and ◐ stands how many layers or nodes there are, if there may be more than one.

A witness is a program not written here that was seen to compute what a layer's rule says. That of an \
inherited rule has seen the layer in the dialect that it comes from; a vendor's own tools were asked only \
where they are named.
"""
Table = Mapping[str, Mapping[str, OpCoverage]]  # by backend, by op


def tables() -> tuple[Table, Mapping[str, Sequence[str]]]:
    """Return what becomes of all ops on all backends that caffeforge brings, and the examples."""
    backends = [*_caffe(), *map(find_any, onnx_names())]
    cases = cases_of(_caffe())
    return {b.name: {found.op: found for found in op_coverage(b, cases)} for b in backends}, cases


def _caffe() -> list[Backend]:
    """Return the dialects, the base of all others first."""
    return sorted(dialects(), key=lambda backend: (backend.name != BASE, backend.name))


def page(found: Table, cases: Mapping[str, Sequence[str]]) -> str:
    """Return the page."""
    caffe = [backend.name for backend in _caffe()]
    subsets = [name for name in found if name not in caffe and not name.startswith(OPSETS)]
    opsets = [name for name in found if name.startswith(OPSETS)]
    head = HEAD.format(cases=sum(map(len, cases.values())), ops=len(cases))
    parts = [
        ["## Counts", "", *_counts(found)],
        ["## Caffe dialects", "", *_matrix(found, caffe), "", *_everywhere_refused(found, caffe)],
        ["## What the rules ask for", "", *_conditions(found, caffe)],
        ["## Witnesses", "", *_witnesses()],
        ["## Vendors' parts of ONNX", "", *_matrix(found, subsets)],
        ["## ONNX by opset", "", *_by_opset(found, opsets)],
    ]
    return "\n\n".join([head.rstrip(), *("\n".join(part).rstrip() for part in parts)]) + "\n"


def data(found: Table) -> str:
    """Return the page's numbers as JSON, an op of a backend a line."""
    lines = []
    for name, ops in found.items():
        each = ",\n".join(f"  {json.dumps(op)}: {json.dumps(c.document())}" for op, c in ops.items())
        lines.append(f' {json.dumps(name)}: {{"ops": {{\n{each}\n }}{_layers(name)}}}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _layers(name: str) -> str:
    backend = find_any(name)
    if isinstance(backend, OnnxBackend):
        return ""
    layers: dict[str, Any] = {k: e.witness or None for k, e in coverage.of(backend).layers.items()}
    return f',\n "witness_of_layer": {json.dumps(layers)}'


def _counts(found: Table) -> Iterator[str]:
    """Yield for each backend how many ops become what, and what no witness has seen."""
    yield "| backend | direct | conditional | lowered | refused | layer types read | of these unverified |"
    yield "|---|---|---|---|---|---|---|"
    for name, ops in found.items():
        kinds = [sum(c.kind == kind for c in ops.values()) for kind in MARKS]
        backend = find_any(name)
        read = [] if isinstance(backend, OnnxBackend) else list(coverage.of(backend).layers.values())
        last = [len(read), sum(not entry.witness for entry in read)] if read else ["", ""]
        yield _row([name, *kinds, *last])


def _matrix(found: Table, backends: Sequence[str]) -> Iterator[str]:
    yield _row(["op", *backends])
    yield "|---" * (len(backends) + 1) + "|"
    for op in found[backends[0]]:
        cells = [found[name][op] for name in backends]
        if any(cell.kind != "refused" for cell in cells):
            yield _row([op, *map(_cell, cells)])


def _cell(one: OpCoverage) -> str:
    mark = MARKS[one.kind]
    star = "*" if one.unverified else ""
    if one.cost is None or (one.kind in ("direct", "refused") and one.cost == (1, 1)):
        return mark + star
    least, most = one.cost
    count = str(most) if least == most else f"{least}..{most}"
    return f"{mark} {count}{star}".strip()


def _everywhere_refused(found: Table, backends: Sequence[str]) -> Iterator[str]:
    """Yield the ops that no dialect can say, by reason."""
    reasons: dict[str, list[str]] = {}
    for op, one in found[backends[0]].items():
        if all(found[name][op].kind == "refused" for name in backends):
            reasons.setdefault(one.refused[-1], []).append(op)
    yield "No dialect says these, and a model with one is refused with the reason:"
    yield ""
    yield "| why | ops |"
    yield "|---|---|"
    for why, ops in reasons.items():
        yield _row([why.replace("|", "\\|"), ", ".join(ops)])


def _conditions(found: Table, backends: Sequence[str]) -> Iterator[str]:
    """Yield the conditions of conditional ops; those of other dialects where they are not the base's."""
    yield "What is not so is lowered where the table above shows more than one layer, else refused."
    yield ""
    yield "| op | backends | written as | where |"
    yield "|---|---|---|---|"
    for op in found[backends[0]]:
        groups: dict[tuple[Any, ...], list[str]] = {}
        for name in backends:
            one = found[name][op]
            if one.kind == "conditional":
                groups.setdefault((one.layers, one.conditions, one.refused), []).append(name)
        for (layers, conditions, refused), names in groups.items():
            where = "<br>".join(map(_code, conditions)) or _without(refused)
            yield _row([op, ", ".join(names), ", ".join(layers), where])


def _code(condition: str) -> str:
    """Return a condition for a cell: expressions as code, sentences as they are."""
    text = condition.replace("|", "\\|").replace("\n", " ")
    return f"`{text}`" if any(sign in text for sign in ("==", "(", "[", "<", ">", "!=")) else text


def _without(refused: Iterable[str]) -> str:
    return "not: " + "; ".join(refused).replace("|", "\\|") if refused else "its rule lowers some of it"


def _witnesses() -> Iterator[str]:
    yield "| dialect | witness | layer types |"
    yield "|---|---|---|"
    for backend in _caffe():
        groups: dict[str, list[str]] = {}
        for layer, entry in coverage.of(backend).layers.items():
            groups.setdefault(entry.witness or "unverified", []).append(layer)
        for witness, layers in sorted(groups.items(), key=lambda item: item[0] == "unverified"):
            yield _row([backend.name, witness, ", ".join(layers)])


def _by_opset(found: Table, opsets: Sequence[str]) -> Iterator[str]:
    """Yield each op with ranges of opsets over which the same becomes of it."""
    yield "| op | opsets |"
    yield "|---|---|"
    for op in found[opsets[0]]:
        runs: list[tuple[str, str, str]] = []
        for name in opsets:
            number, cell = name.removeprefix(OPSETS), _cell(found[name][op])
            if runs and runs[-1][2] == cell:
                runs[-1] = (runs[-1][0], number, cell)
            else:
                runs.append((number, number, cell))
        cells = [f"{first if first == last else f'{first}..{last}'}: {cell}" for first, last, cell in runs]
        if any(found[name][op].kind != "refused" for name in opsets):
            yield _row([op, "; ".join(cells)])


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    tried, examples = tables()
    PAGE.write_text(page(tried, examples), encoding="utf-8")
    DATA.write_text(data(tried), encoding="utf-8")
