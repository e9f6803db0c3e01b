"""What an ONNX backend writes, as people read it: see ``runtime/coverage``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from caffeforge.generated import hub
from caffeforge.generated import onnx as versions
from caffeforge.generated.hub.coverage import LOWERINGS
from caffeforge.generated.onnx.coverage import RULES
from caffeforge.generated.onnx.rules import LOWERINGS as EXACT
from caffeforge.runtime.coverage import Condition, Coverage, Entry, Way
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.emit import BY_NAME
from caffeforge.runtime.op import full_name

_PLAIN: Final = "onnx_opset{}/opset.json"


def of(backend: OnnxBackend) -> Coverage:
    """Return the coverage of a backend; it reads no layers."""
    ops = dict(_entries(backend))
    return Coverage(ops, {}, constraints_of(backend), {}, (), ())


def constraints_of(backend: OnnxBackend) -> Mapping[str, tuple[Condition, ...]]:
    """Return what a vendor refuses of ops, by the hub's names."""
    if not backend.constraints:
        return {}
    module = next(iter(backend.constraints.values())).__module__
    package = sys.modules[module].__package__
    try:
        found: Mapping[str, tuple[Condition, ...]] = import_module(".coverage", package).CONSTRAINTS
    except ImportError:
        hint = "generate it with gen-backend"
        raise UsageError(f"the package of {backend.name} holds no coverage.py", hint=hint) from None
    return found


def lowerings(backend: OnnxBackend) -> dict[str, Entry]:
    """Return the lowerings that all backends share and that are exact in ONNX, of ops without a rule."""
    exact = {full_name(op) for op in EXACT}
    return {name: entry for name, entry in LOWERINGS.items() if name in exact}


def defined(backend: OnnxBackend) -> list[str]:
    """Return the ops without a rule that ONNX itself says by other ops."""
    from caffeforge.runtime.onnx_out.definition import is_defined

    ops = of(backend).ops
    return [
        name for name in hub.OPS if name not in ops and name not in lowerings(backend) and is_defined(name)
    ]


def _entries(backend: OnnxBackend) -> Iterator[tuple[str, Entry]]:
    for name, op in hub.OPS.items():
        if op not in backend.rules:
            continue
        said = next((entry for until, entry in RULES.get(name, ()) if until >= backend.opset), None)
        if said is None:
            place = _PLAIN.format(backend.opset) if versions.find(name, backend.opset) else BY_NAME
            said = Entry(place, (Way(place, layers=(name,)),))
        taken = [way for way in said.ways if _is_taken(way, backend)]
        if taken:
            yield name, said._replace(ways=tuple(taken))
    for name in backend.custom:
        place = f"{backend.name}/mapping.yaml"
        yield name, Entry(place, (Way(place, layers=(name,)),))


def _is_taken(way: Way, backend: OnnxBackend) -> bool:
    """Tell whether the opset has the ops that a way writes, and the vendor takes them."""
    known = all(versions.find(name, backend.opset) is not None for name in way.layers)
    return known and (backend.allowed is None or set(way.layers) <= backend.allowed)
