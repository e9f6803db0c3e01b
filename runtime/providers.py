"""onnxruntime's execution providers as users name them: CPU, CUDA, or onnxruntime's own names."""

from __future__ import annotations

from caffeforge.runtime.errors import UsageError

_ENDING = "ExecutionProvider"
_LIBRARIES = {
    "CUDAExecutionProvider": "install onnxruntime-gpu in place of onnxruntime; "
    "it needs a GPU and NVIDIA's libraries",
}


def provider_named(text: str) -> str:
    """Return onnxruntime's name of a provider that is here, for ``CUDA`` as for its full name.

    Raises:
        UsageError: onnxruntime has none of that name here.
    """
    import onnxruntime

    available: list[str] = onnxruntime.get_available_providers()
    full = text if text.endswith(_ENDING) else f"{text}{_ENDING}"
    known = {name.lower(): name for name in available}
    if full.lower() in known:
        return known[full.lower()]
    listed = ", ".join(name.removesuffix(_ENDING) for name in available)
    hint = next((hint for name, hint in _LIBRARIES.items() if name.lower() == full.lower()), "")
    raise UsageError(f"onnxruntime has no {full} here, it has {listed}", hint=hint)


def check_used(wanted: str, used: list[str]) -> None:
    """Refuse a session that onnxruntime silently runs elsewhere.

    Raises:
        UsageError: the provider is not among those that the session uses.
    """
    if wanted not in used:
        raise UsageError(
            f"provider {wanted} cannot be used here",
            hint="its libraries do not load, or there is no such device",
        )
