"""``gen-backend``: compile a schema folder into a typed Python package, or check that it is up to date."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from caffeforge.generator.diagnostics import GenerationError
from caffeforge.generator.generate import Package, differences, generate, write


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 1 if an input is at fault or a package is out of date."""
    options = _parser().parse_args(argv)
    failed = False
    for source in options.schema:
        try:
            package = generate(source)
        except GenerationError as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        failed |= not _finish(package, options.out or _default_out(source), options.check)
    return int(failed)


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
    folder = (source if source.is_dir() else source.parent).absolute()
    if folder.parent.name == "schemas":
        return folder.parent.parent / "generated"
    return Path("generated")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gen-backend", description=__doc__)
    parser.add_argument("schema", nargs="+", type=Path, help="schemas/vendorx/caffe.proto, or its folder")
    parser.add_argument(
        "--out", type=Path, help="folder for the package; default: generated/ beside schemas/"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; print diffs and exit with 1 if any"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
