"""The user's own line behind a traced operator or a failed export.

By default ``torch.export`` records only frames of functions named ``forward``, so that the line inside a
helper function or a lambda is lost. `recording` keeps all frames that are not PyTorch's own.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType

import torch
from torch.fx.experimental.proxy_tensor import PythonKeyTracer

_TORCH = os.path.dirname(torch.__file__) + os.sep
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_FRAME = re.compile(r'^\s*File "(.+)", line (\d+), in ')


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Make exports record every frame of the user's code, not only those named ``forward``."""

    def keep(tracer: PythonKeyTracer, summary: traceback.StackSummary) -> traceback.StackSummary:
        return traceback.StackSummary.from_list(_users(summary))

    inherited = PythonKeyTracer.__dict__.get("_filter_traceback_frames")
    PythonKeyTracer._filter_traceback_frames = keep  # type: ignore[method-assign,assignment]  # meant to be
    try:
        yield
    finally:
        if inherited is None:
            del PythonKeyTracer._filter_traceback_frames
        else:
            PythonKeyTracer._filter_traceback_frames = inherited  # type: ignore[method-assign]


def line_of_trace(stack_trace: str) -> str:
    """Return the innermost frame of a node's recorded stack as ``file:line``, or "" if it has none."""
    for text in reversed(stack_trace.splitlines()):
        frame = _FRAME.match(text)
        if frame and not _foreign(frame[1]):
            return f"{frame[1]}:{frame[2]}"
    return ""


def line_of_exception(error: BaseException) -> str:
    """Return the user's innermost frame behind a failed export as ``file:line``, or "" if there is none.

    PyTorch often raises another exception from the one that the user's line caused: causes are searched too.
    """
    current: BaseException | None = error
    while current is not None:
        frames = _users(getattr(current, "real_stack", None) or traceback.extract_tb(current.__traceback__))
        if frames:
            return f"{frames[-1].filename}:{frames[-1].lineno}"
        current = current.__cause__ or current.__context__
    return ""


def line_of_caller() -> str:
    """Return the user's line that called the function of this package which asks, or "" if none did."""
    frame: FrameType | None = sys._getframe(1)
    asking = frame.f_code.co_filename if frame else ""
    while frame is not None and _foreign(frame.f_code.co_filename):
        name = frame.f_code.co_filename
        if name.startswith(_HERE) and name != asking:
            return ""
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _users(frames: Sequence[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Return the frames inside the export, which this package calls, that are not PyTorch's."""
    ours = [index for index, frame in enumerate(frames) if frame.filename.startswith(_HERE)]
    inner = frames[ours[-1] + 1 :] if ours else frames
    return [frame for frame in inner if not _foreign(frame.filename)]


def _foreign(filename: str) -> bool:
    return filename.startswith((_TORCH, _HERE, "<"))
