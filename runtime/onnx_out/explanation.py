"""How one op of the hub is said in an opset, in words; see ``runtime/explanation``."""

from __future__ import annotations

from collections.abc import Iterator

from caffeforge.generated import hub
from caffeforge.generated import onnx as versions
from caffeforge.generated.hub.caffe_ops import CUSTOM
from caffeforge.runtime.coverage import Coverage
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.explanation import signature
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.coverage import lowerings, of
from caffeforge.runtime.onnx_out.definition import is_defined
from caffeforge.runtime.onnx_out.own_ops import bodies_of, has_functions, stays
from caffeforge.runtime.rule_text import constraint_lines, entry_lines, indented, near_names


def explain_onnx(backend: OnnxBackend, name: str) -> str:
    """Return all that is known of an op.

    Raises:
        UsageError: there is no such op.
    """
    known = {**hub.OPS, **{other: custom.op for other, custom in {**CUSTOM, **backend.custom}.items()}}
    names = [name] if name in known else [other for other in known if other.lower() == name.lower()]
    if not names:
        near = near_names(name, known)
        hint = f"did you mean {', '.join(near)}?" if near else f"see caffeforge coverage {backend.name}"
        raise UsageError(f"{name} is no op of {backend.name}", hint=hint)
    covered = of(backend)
    return "\n\n".join("\n".join(_op(backend, covered, found)) for found in names)


def _op(backend: OnnxBackend, covered: Coverage, name: str) -> Iterator[str]:
    entry = covered.ops.get(name)
    custom = {**CUSTOM, **backend.custom}.get(name)
    yield signature(hub.OPS[name] if custom is None else custom.op)
    if entry is not None:
        yield f"op {name}: {backend.name} writes it by the rule at {entry.rule}"
        yield from entry_lines(entry, "op")
    elif custom is not None and stays(custom.op.__new__(custom.op), backend, "auto"):
        yield f"op {name}: {backend.name} writes it as a node of the domain {custom.op.domain}"
        if bodies_of(custom.op.__new__(custom.op)):
            beside = "beside it as a local function" if has_functions(backend, "auto") else "in its place"
            yield f"  what it computes stands {beside}, where the opset has the ops for it"
    else:
        yield f"op {name}: {backend.name} has no rule for it"
        yield from _missing(backend, name)
    yield from _version(backend, name)
    if name in lowerings(backend):
        yield f"  lowering that all backends share, at {lowerings(backend)[name].rule}"
        yield from indented(entry_lines(lowerings(backend)[name], "op"))
    if custom is not None and custom.reference is not None:
        yield "  can also be written by what its reference says"
    elif name in hub.OPS and is_defined(name):
        yield "  can also be written by ONNX's own definition"
    if name in backend.types:
        yield f"  data are of type {', '.join(backend.types[name])}  [{backend.source}]"
    if name in backend.host:
        yield f"  left to the CPU by the vendor's tools  [{backend.source}]"
    yield from constraint_lines(name, covered.constraints.get(name, ()), "op")


def _missing(backend: OnnxBackend, name: str) -> Iterator[str]:
    """Yield why there is no rule for an op."""
    if backend.allowed is not None and versions.find(name, backend.opset) and name not in backend.allowed:
        yield f"  the vendor does not list it  [{backend.source}]"


def _version(backend: OnnxBackend, name: str) -> Iterator[str]:
    """Yield which version of an op the opset has, and when it came."""
    if name not in versions.VERSIONS:
        return
    found = versions.find(name, backend.opset)
    if found is not None:
        yield f"  opset {backend.opset} has {name}-{found.since}"
    else:
        yield f"  opset {backend.opset} has no {name}, it came with opset {versions.VERSIONS[name][0]}"
