"""``caffeforge test``: run the examples that stand beside a backend's rules."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from caffeforge.runtime.commands import BACKEND_HELP, describe
from caffeforge.runtime.errors import UsageError, VerificationError

if TYPE_CHECKING:
    from caffeforge.runtime.commands import Commands
    from caffeforge.runtime.rule_conditions import Seen


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    what = "run the examples of a backend's rules: write each, read it back, run it and compare"
    parser = describe(commands, shared, "test", what)
    parser.add_argument("backend", metavar="BACKEND", help=BACKEND_HELP)
    conditions = "list the conditions of rules that no example made true, or false"
    parser.add_argument("--conditions", action="store_true", help=conditions)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print what became of the examples.

    Raises:
        UsageError: there is none, so that nothing would be tested.
        VerificationError: some failed; they are printed all the same.
    """
    from caffeforge.runtime.backends import find
    from caffeforge.runtime.rule_conditions import Observer
    from caffeforge.runtime.rule_tests import OUTCOMES, counted, run_examples

    backend = find(options.backend)
    observer = Observer(backend)
    tests = run_examples(observer.backend)
    if not tests:
        hint = "write one under the rule, as `example: Relu(float32[2, 3])`, and run gen-backend"
        raise UsageError(f"no rule of {backend.name} has an example", hint=hint)
    counts = counted(tests)
    if options.json:
        import json

        entries = [{**t.example._asdict(), "outcome": t.outcome, "why": t.why} for t in tests]
        found: dict[str, Any] = {"backend": backend.name, "examples": entries}
        found |= {str(outcome): count for outcome, count in counts.items()}
        if options.conditions:
            found["conditions"] = [
                {**s._asdict(), "condition": s.condition._asdict()} for s in observer.found()
            ]
        print(json.dumps(found, indent=1))
    else:
        said = [f"{counts[outcome]} {text}" for outcome, text in OUTCOMES.items() if counts[outcome]]
        print(f"{backend.name}, {len(tests)} examples of rules: {', '.join(said)}")
        for t in tests:
            if t.outcome != "passed":
                print(f"\n{t.outcome}: {t.example.subject}  [{t.example.rule}]")
                print(textwrap.indent(f"{t.example.graph}\n{t.why}", "    "))
        if options.conditions:
            print(_conditions(observer.found()))
    if counts["failed"]:
        raise VerificationError(f"{counts['failed']} of {len(tests)} examples of {backend.name} failed")


def _conditions(found: Sequence[Seen]) -> str:
    both = sum(seen.true and seen.false for seen in found)
    never = [seen for seen in found if not seen.true and not seen.false]
    lines = [f"\n{both} of {len(found)} conditions were seen both true and false"]
    for title, wanted in (("never false", True), ("never true", False)):
        lines += [
            f"  {title}: {seen.subject}  {seen.condition.expression}  [{seen.condition.rule}]"
            for seen in found
            if (seen.true, seen.false) == (wanted, not wanted)
        ]
    lines += [f"  never asked: {s.subject}  {s.condition.expression}  [{s.condition.rule}]" for s in never]
    return "\n".join(lines)
