"""What a program that uses caffeforge imports: errors, and nets read back from files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caffeforge.runtime.errors import CaffeforgeError

if TYPE_CHECKING:
    from caffeforge.runtime.loaded import LoadedNet, load
    from caffeforge.runtime.report import ExportResult

__all__ = ["CaffeforgeError", "ExportResult", "LoadedNet", "load"]

_HOMES = {"ExportResult": "report", "LoadedNet": "loaded", "load": "loaded"}


def __getattr__(name: str) -> Any:
    """Import what reading and running need only when it is asked for: a generated package stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
