"""``caffeforge test``: run the examples that stand beside a backend's rules."""

from __future__ import annotations

import argparse
import difflib
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from caffeforge.runtime.commands import BACKEND_HELP, describe
from caffeforge.runtime.errors import UsageError, VerificationError

if TYPE_CHECKING:
    from caffeforge.runtime.backend import Backend
    from caffeforge.runtime.commands import Commands
    from caffeforge.runtime.rule_conditions import Seen, Untaken
    from caffeforge.runtime.rule_tests import Trial


def register(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    what = "run the examples of a backend's rules: write each, read it back, run it and compare"
    parser = describe(commands, shared, "test", what)
    parser.add_argument("backend", metavar="BACKEND", help=BACKEND_HELP)
    names = "run only the examples of these ops, layer types and patterns"
    parser.add_argument("names", metavar="NAME", nargs="*", help=names)
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
    _check_names(options.names, backend)
    observer = Observer(backend)
    trials = run_examples(observer.backend, options.names)
    if not trials:
        hint = "write one under the rule, as `example: Relu(float32[2, 3])`, and run gen-backend"
        subject = f"rule for {' or '.join(options.names)}" if options.names else "rule"
        raise UsageError(f"no {subject} of {backend.name} has an example", hint=hint)
    counts = counted(trials)
    seen = [s for s in observer.found() if not options.names or s.subject in options.names]
    untaken = [u for u in observer.untaken(trials) if not options.names or u.subject in options.names]
    if options.json:
        import json

        found: dict[str, Any] = {"backend": backend.name, "examples": [_entry(t) for t in trials]}
        found |= {str(outcome): count for outcome, count in counts.items()}
        if options.conditions:
            found["conditions"] = [{**s._asdict(), "condition": s.condition._asdict()} for s in seen]
            found["never_taken"] = [u._asdict() for u in untaken]
        print(json.dumps(found, indent=1))
    else:
        said = [f"{counts[outcome]} {text}" for outcome, text in OUTCOMES.items() if counts[outcome]]
        print(f"{backend.name}, {len(trials)} examples of rules: {', '.join(said)}")
        for t in trials:
            if t.outcome in ("refused", "failed"):
                print(f"\n{t.outcome}: {t.example.subject}  [{t.example.rule}]")
                print(textwrap.indent(f"{t.example.text}\n{t.why}", "    "))
        if options.conditions:
            print(_conditions(seen, untaken))
    if counts["failed"]:
        raise VerificationError(f"{counts['failed']} of {len(trials)} examples of {backend.name} failed")


def _check_names(names: Sequence[str], backend: Backend) -> None:
    """Raise UsageError for a name that is not one of the backend's rules."""
    from caffeforge.runtime import coverage

    covered = coverage.of(backend)
    known = {*covered.ops, *covered.layers, *covered.patterns}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            listed = f"`caffeforge coverage {backend.name}` lists them"
            hint = f"did you mean {', '.join(near)}?" if near else listed
            raise UsageError(f"{backend.name} has no rule for {name}", hint=hint)


def _entry(trial: Trial) -> dict[str, Any]:
    """Return what became of one example as JSON holds it."""
    example = trial.example
    given = {key: getattr(example, key) for key in ("subject", "rule", "text", "refused")}
    return given | {"outcome": trial.outcome, "why": trial.why}


def _conditions(found: Sequence[Seen], untaken: Sequence[Untaken]) -> str:
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
    lines += [f"  never taken: {one.subject}  [{one.rule}]" for one in untaken]
    return "\n".join(lines)
