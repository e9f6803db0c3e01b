"""``caffeforge check``: whether a backend takes a model or a net, and all that it does not."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caffeforge.runtime.commands import BACKEND_HELP, add_backend, describe
from caffeforge.runtime.errors import CaffeforgeError, TrainingModeWarning, UsageError

if TYPE_CHECKING:
    from caffeforge.runtime.backend import Backend
    from caffeforge.runtime.check import CheckResult
    from caffeforge.runtime.commands import Commands
    from caffeforge.runtime.onnx_out.backend import OnnxBackend

NETS = (".prototxt", ".caffemodel")


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    from caffeforge.runtime.commands.export import shape_argument

    parser = describe(commands, shared, "check", "list all that a backend refuses in a model or net")
    source = "what export takes, or a net: a .prototxt or .caffemodel of the backend's own dialect"
    parser.add_argument("source", metavar="SOURCE", help=source)
    parser.add_argument("weights", metavar="NET.caffemodel", nargs="?", help="the weights of a .prototxt")
    add_backend(parser)
    written = f"dialect that a net is written in, if it is another one: {BACKEND_HELP}"
    parser.add_argument("--from", dest="dialect", metavar="NAME|DIR", help=written)
    shape = "the shape of an input, as 1x3x224x224; once for each input"
    parser.add_argument("--shape", action="append", type=shape_argument, metavar="AxBxC", help=shape)
    close = "take rules that are approximations"
    parser.add_argument("--approximate", action="store_true", help=close)
    parser.add_argument("--brief", action="store_true", help="print one line for each thing that is refused")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print what is refused, or what an export would change.

    Raises:
        CaffeforgeError: the backend does not take all of it; what it refuses is printed all the same.
    """
    from caffeforge.runtime.backends import find, find_any

    is_net = Path(options.source).suffix in NETS
    if not is_net and (options.dialect or options.weights):
        raise UsageError("--from and weights belong to a net", hint="give a .prototxt")
    if is_net:
        backend: Backend | OnnxBackend = find(options.backend)
        found = _net(options, find(options.backend))
    else:
        backend = find_any(options.backend)
        found = _model(options, backend)
    text = _brief(found) if options.brief and not found.passed else _text(found)
    print(json.dumps(_document(found), indent=1) if options.json else text)
    if not found.passed:
        count = len(found.findings)
        what = f"{backend.name} refuses {count} {'thing' if count == 1 else 'things'}"
        raise CaffeforgeError(what, where=options.source)


def _net(options: argparse.Namespace, backend: Backend) -> CheckResult:
    """Check a net in its own dialect, or what a transcoding would say."""
    from caffeforge.runtime.backends import find
    from caffeforge.runtime.caffe_files import read_files
    from caffeforge.runtime.check import check_net, check_transcoding
    from caffeforge.runtime.file_kind import BINARY, kind_of
    from caffeforge.runtime.joining import read_text

    weights = Path(options.weights) if options.weights else None
    if options.dialect is not None:
        return check_transcoding(Path(options.source), weights, find(options.dialect), backend)
    source = Path(options.source)
    net = read_files(source, weights, backend)
    if weights is None and kind_of(source) is BINARY:
        return check_net(net, backend)
    text = read_text(source, backend)
    places = {layer.name: text.place(index) for index, layer in enumerate(text.net.layers)}
    return check_net(net, backend, places)


def _model(options: argparse.Namespace, backend: Backend | OnnxBackend) -> CheckResult:
    from caffeforge.runtime.check import check_source
    from caffeforge.runtime.commands.export import example_inputs, model_named
    from caffeforge.runtime.source import source_of

    if options.shape is None and Path(options.source).suffix not in (".onnx", ".pt2"):
        raise UsageError("the input shapes are not known", hint="give --shape once for each input")
    warnings.simplefilter("ignore", TrainingModeWarning)
    source = source_of(
        options.source if Path(options.source).is_file() else model_named(options.source),
        None if options.shape is None else example_inputs(options.source, options.shape),
        input_names=None,
        output_names=None,
        outputs_at=None,
        custom=backend.custom,
        dequantize=False,
    )
    return check_source(source, backend, approximate=options.approximate)


def _text(found: CheckResult) -> str:
    if found.passed:
        operations = f"{found.operations} operations become {found.layers}"
        layers = "1 layer" if found.layers == 1 else f"{found.layers} layers"
        what = operations if found.operations else layers
        return "\n".join([f"{found.backend} takes it: {what}", *(f"note: {note}" for note in found.notes)])
    if found.refusal:
        return found.refusal
    return "\n".join(f"{f.where}: {f.reason}" if f.where else f.reason for f in found.findings)


def _brief(found: CheckResult) -> str:
    """Return a line for each node: what the innermost of the rules that were tried say of it."""
    refused = (found.document or {}).get("refused", [])
    if not refused:
        return "\n".join(f"{f.where}: {f.reason}".removeprefix(": ") for f in found.findings)
    lines = []
    for each in refused:
        place = f" at {each['source']}" if each["source"] else ""
        reasons = "; ".join(dict.fromkeys(_reasons(each)))
        lines.append(f"{each['node']} ({each['op']}){place}: {reasons}")
    return "\n".join(lines)


def _reasons(refusal: dict[str, Any]) -> Iterator[str]:
    for below in refusal["below"]:
        yield from _reasons(below)
    if not refusal["below"]:
        yield from (f"{refusal['op']}: {alternative['refused']}" for alternative in refusal["alternatives"])


def _document(found: CheckResult) -> dict[str, object]:
    return {
        "backend": found.backend,
        "passed": found.passed,
        "operations": found.operations,
        "layers": found.layers,
        "notes": found.notes,
        "findings": [{"where": f.where, "reason": f.reason} for f in found.findings],
        "refused": (found.document or {}).get("refused", []),
    }
