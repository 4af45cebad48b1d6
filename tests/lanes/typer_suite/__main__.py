"""Command line of the Typer suite: the whole comparison, or single tests of it.

Without options it compares on the newest Typer, with ``--version 0.27.0`` on another one.
``-k test_tracebacks --show`` runs what matches and shows pytest's output; ``--last --show``
does so with what differed in the last whole run.
"""

from __future__ import annotations

import argparse
import sys

from .compare import Comparison, compare
from .environment import prepare
from .fetch import SetupFailed
from .place import NEWEST, Place
from .run import TOOLI, Outcomes, RunFailed, Standin, run


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lanes.typer_suite",
        description="Run Typer's own test suite with Tooli in Typer's place.",
    )
    parser.add_argument("--version", default=NEWEST, help="the Typer version (%(default)s)")
    parser.add_argument("-k", dest="expression", help="only the tests that match, as in pytest")
    parser.add_argument("--last", action="store_true", help="only what differed in the last run")
    parser.add_argument("--show", action="store_true", help="show pytest's output, tracebacks too")
    parser.add_argument("--typer", action="store_true", help="run Typer itself, nothing replaced")
    parser.add_argument("--class", dest="name", default=TOOLI, help="the stand-in (%(default)s)")
    parser.add_argument("--path", default="", help="a folder to import the stand-in from")
    return parser.parse_args(arguments)


def chosen_tests(options: argparse.Namespace, place: Place) -> list[str] | None:
    """The pytest arguments that choose tests; none for the whole suite."""
    if options.last:
        kept = Comparison(place.version, *map(Outcomes.load, (place.baseline, place.substituted)))
        return list(kept.differences())
    return ["-k", options.expression] if options.expression else None


def run_chosen(options: argparse.Namespace, place: Place, chosen: list[str]) -> int:
    """Run some tests and list those that do not pass."""
    standin = None if options.typer else Standin(options.name, options.path)
    style = ["-vv", "--tb=short"] if options.show else ["-q"]
    outcomes = run(place, standin, [*style, *chosen], workers=1, show=options.show)
    usual = Outcomes.load(place.baseline).passed()
    failed = outcomes.failed()
    print(f"{len(outcomes.passed())} of {len(outcomes.tests)} passed in {outcomes.seconds} s")
    for test, reason in failed.items():
        remark = "" if test in usual or not usual else " (nor does it with Typer itself)"
        print(f"{test}{remark}\n    {reason}")
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for."""
    options = parse(arguments)
    place = Place(options.version)
    try:
        prepare(place)
        chosen = chosen_tests(options, place)
        if chosen == []:
            print("nothing differed in the last run")
            return 0
        if chosen:
            return run_chosen(options, place, chosen)
        if options.typer:
            kept = run(place)
            print(f"Typer {place.version} passes {len(kept.passed())} tests ({kept.seconds} s)")
            return 0
        comparison = compare(options.version, Standin(options.name, options.path))
    except (SetupFailed, RunFailed) as problem:
        print(problem, file=sys.stderr)
        return 2
    print(comparison.report())
    return 1 if comparison.problems() else 0


if __name__ == "__main__":
    sys.exit(main())
