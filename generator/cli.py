"""``gen-backend``: compile a schema folder into a typed Python package, or check that it is up to date."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from caffeforge.generator.diagnostics import GenerationError
from caffeforge.generator.generate import Package, differences, generate, write


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 1 if an input is at fault or a package is out of date."""
    options = _parser().parse_args(argv)
    packages, found = [], []
    for source in options.schema:
        try:
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
        return True
    found = differences(package, out)
    sys.stdout.write("".join(found))
    if found:
        print(f"{out / package.name} is out of date: run gen-backend without --check", file=sys.stderr)
    return not found


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
    return parser


if __name__ == "__main__":
    sys.exit(main())
