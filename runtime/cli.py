"""``caffeforge``: convert, run and print models, and say what a backend can express and why not.

Each command is a module of ``runtime/commands``; what is slow to import is imported when it runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from caffeforge.runtime.commands import (
    backends,
    check,
    coverage,
    diff,
    dump,
    explain,
    explain_error,
    export,
    identify,
    layers,
    run,
    simplify,
    test,
    transcode,
    verify,
)
from caffeforge.runtime.errors import CaffeforgeError, UsageError

OK, AT_FAULT, USAGE = 0, 1, 2  # exit codes; argparse itself exits with 2
COMMANDS = (
    export,
    run,
    verify,
    dump,
    layers,
    simplify,
    backends,
    check,
    coverage,
    test,
    explain,
    explain_error,
    diff,
    identify,
    transcode,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0, 1 if an input is at fault, 2 for wrong usage."""
    options = _parser().parse_args(argv)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # as by `caffeforge dump net.prototxt | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except CaffeforgeError as error:
        if options.debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError) else AT_FAULT
    except MemoryError as error:
        if options.debug:
            raise
        print(f"error: there is not enough memory: {error}".removesuffix(": "), file=sys.stderr)
        return AT_FAULT
    return OK


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--debug", action="store_true", help="show where in the program an error was raised")
    parser = argparse.ArgumentParser(prog="caffeforge", description="Turn models into what a backend reads.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.register(commands, shared)
    return parser


if __name__ == "__main__":
    sys.exit(main())
