"""What a generated ONNX backend is to the runtime: an opset, its rules, and what a vendor takes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from caffeforge.generated import hub
from caffeforge.runtime.backend import RUNTIME_ABI, Alternative, Rule
from caffeforge.runtime.onnx_out.emit import BY_NAME, by_name
from caffeforge.runtime.op import CustomOp, Op
from caffeforge.runtime.pattern import Pattern

_PLAIN = Rule((Alternative(by_name, BY_NAME, computed=True),))


@dataclass(frozen=True)
class OnnxBackend:
    """One opset of ONNX, or the part of it that a vendor takes.

    Attributes:
        opset: of ai.onnx.
        rules: how the hub's ops are written.
        lowerings: ops whose shared lowerings are exact in ONNX.
        custom: ops of the backend's own domain.
        allowed: the ops of the opset that the vendor takes; None for all.
        source: where the vendor says so.
        host: ops that the vendor's tools leave to the CPU.
        types: the element types that the vendor takes of an op's data; any where the op is not in it.
        casts: types that the vendor's tools make others of, by themselves.
        constraints: for an op of the hub, what the vendor refuses of it.
    """

    abi: int
    name: str
    opset: int
    rules: Mapping[type[Op], Rule]
    lowerings: Collection[type[Op]]
    patterns: tuple[Pattern, ...] = ()
    custom: Mapping[str, CustomOp] = field(default_factory=dict)
    allowed: frozenset[str] | None = None
    source: str = ""
    host: frozenset[str] = frozenset()
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    casts: Mapping[str, str] = field(default_factory=dict)
    constraints: Mapping[type[Op], Callable[..., None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.abi != RUNTIME_ABI:
            side = "run gen-backend again" if self.abi < RUNTIME_ABI else "upgrade caffeforge"
            raise ImportError(
                f"backend {self.name} was generated for runtime ABI {self.abi}, this is {RUNTIME_ABI}: {side}"
            )

    @property
    def is_subset(self) -> bool:
        """Whether it is what a vendor takes of an opset, not the opset itself."""
        return self.allowed is not None or bool(self.constraints)


def rules_of(
    opset: int, plain: Collection[str], rules: Mapping[Any, tuple[tuple[int, Rule], ...]]
) -> dict[type[Op], Rule]:
    """Return an opset's rules: for each op the first that holds until it; the `plain` ones go by name."""
    found: dict[type[Op], Rule] = {hub.OPS[name]: _PLAIN for name in plain}
    for op, versions in rules.items():
        held = next((rule for until, rule in versions if until >= opset), None)
        if held is not None:
            found[op] = held
    return found
