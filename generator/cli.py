"""``gen-backend``: compile a schema folder into a typed Python package, or check that it is up to date."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from caffeforge.generator.diagnostics import GenerationError
from caffeforge.generator.generate import Package, differences, generate, write
from caffeforge.runtime.collector import paused


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 1 if an input is at fault or a package is out of date."""
    options = _parser().parse_args(argv)
    if options.init:
        return _init(options.schema, options.include)
    packages, found = [], []
    for source in options.schema:
        try:
            with paused():
                packages.append((generate(source, options.include), options.out or _default_out(source)))
        except GenerationError as error:
            found += error.diagnostics
    if found:
        print(GenerationError(found), file=sys.stderr)
        return 1
    try:
        current = [_finish(package, out, options.check) for package, out in packages]
    except OSError as error:
        print(f"{error.filename}: error[output]: {error.strerror}", file=sys.stderr)
        return 1
    return int(not all(current))


def _finish(package: Package, out: Path, check: bool) -> bool:
    if not check:
        changed = write(package, out)
        print(f"{out / package.name}: {len(changed)} of {len(package.files)} files changed")
        for line in _beyond(package):
            print(f"  {line}")
        return True
    found = differences(package, out)
    sys.stdout.write("".join(found))
    if found:
        print(f"{out / package.name} is out of date: run gen-backend without --check", file=sys.stderr)
    return not found


def _beyond(package: Package) -> list[str]:
    """Return what a user should know of a schema that has more than the one that it extends."""
    found = package.arrival
    lines = [f"{kind} may mean several things: {ids}; say which by use:" for kind, ids in found.open]
    if found.unknown:
        names = ", ".join(field.name for field in found.unknown)
        lines.append(f"not known: {names}; gen-backend --init writes a mapping to begin with")
    if found.assumed:
        fields = ", ".join(f"{name} = {value}" for name, value in found.assumed)
        lines.append(f"assumed neutral: {fields}")
    return lines


def _init(sources: Sequence[Path], includes: Sequence[Path]) -> int:
    """Write a mapping.yaml beside each schema that has none, with what is to be said in comments."""
    for source in sources:
        folder = source if source.is_dir() else source.parent
        target = folder / "mapping.yaml"
        if target.exists():
            print(f"{target}: error[output]: is there already and is left as it is", file=sys.stderr)
            return 1
        try:
            text = generate(source, includes).skeleton
            target.write_text(text, encoding="utf-8", newline="\n")
        except GenerationError as error:
            print(error, file=sys.stderr)
            return 1
        except OSError as error:
            print(f"{error.filename}: error[output]: {error.strerror}", file=sys.stderr)
            return 1
        print(f"{target}: written")
    return 0


def _default_out(source: Path) -> Path:
    """Return ``generated/`` beside the ``schemas/`` that holds the source, else ``./generated``."""
    folder = Path(os.path.abspath(source if source.is_dir() else source.parent))
    if folder.parent.name == "schemas":
        return folder.parent.parent / "generated"
    return Path("generated")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gen-backend", description=__doc__)
    parser.add_argument("schema", nargs="+", type=Path, help="folder, caffe.proto, caffe_pb2.py or caffe.pb")
    parser.add_argument(
        "-I", dest="include", action="append", default=[], type=Path, help="folder of what a proto imports"
    )
    parser.add_argument(
        "--out", type=Path, help="folder for the package; default: generated/ beside schemas/"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; print diffs and exit with 1 if any"
    )
    parser.add_argument(
        "--init", action="store_true", help="only write a mapping.yaml that names what is not known"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
