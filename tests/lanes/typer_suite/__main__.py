"""Command line of the Typer suite: run the whole comparison, or some tests.

By default it runs the comparison with the newest Typer; `--version 0.27.0` selects another version.
`-k test_tracebacks --show` runs the tests that match and shows pytest's output. `--last --show`
runs the tests that differed in the last comparison.
"""

from __future__ import annotations

import argparse
import sys

from .compare import Comparison, compare
from .environment import prepare
from .fetch import SetupFailed
from .run import TOOLI, Outcomes, Replacement, RunFailed, run
from .suite_paths import NEWEST, SuitePaths


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lanes.typer_suite",
        description="Run Typer's own test suite with Tooli instead of Typer.",
    )
    parser.add_argument("--version", default=NEWEST, help="the Typer version (%(default)s)")
    parser.add_argument("-k", dest="expression", help="run only the tests that match, as in pytest")
    parser.add_argument("--last", action="store_true", help="run only the tests that differed")
    parser.add_argument("--show", action="store_true", help="show pytest's output with tracebacks")
    parser.add_argument("--typer", action="store_true", help="run the tests with Typer itself")
    parser.add_argument(
        "--class", dest="name", default=TOOLI, help="the class to test (%(default)s)"
    )
    parser.add_argument("--path", default="", help="a folder to import the class from")
    return parser.parse_args(arguments)


def select_tests(options: argparse.Namespace, paths: SuitePaths) -> list[str] | None:
    """Return the pytest arguments that select tests; None for the whole suite."""
    if options.last:
        last = Comparison(paths.version, *map(Outcomes.load, (paths.baseline, paths.substituted)))
        return list(last.differences())
    return ["-k", options.expression] if options.expression else None


def run_selected(options: argparse.Namespace, paths: SuitePaths, selection: list[str]) -> int:
    """Run some tests, print those that fail, and return the exit code."""
    replacement = None if options.typer else Replacement(options.name, options.path)
    style = ["-vv", "--tb=short"] if options.show else ["-q"]
    outcomes = run(paths, replacement, [*style, *selection], workers=1, show=options.show)
    passed_with_typer = Outcomes.load(paths.baseline).passed()
    failed = outcomes.failed()
    print(f"{len(outcomes.passed())} of {len(outcomes.tests)} passed in {outcomes.seconds} s")
    for test, reason in failed.items():
        fails_with_typer = passed_with_typer and test not in passed_with_typer
        note = " (it also fails with Typer itself)" if fails_with_typer else ""
        print(f"{test}{note}\n    {reason}")
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = parse(arguments)
    paths = SuitePaths(options.version)
    try:
        prepare(paths)
        selection = select_tests(options, paths)
        if selection == []:
            print("No test differed in the last comparison.")
            return 0
        if selection:
            return run_selected(options, paths, selection)
        if options.typer:
            outcomes = run(paths)
            passed_count = len(outcomes.passed())
            print(f"Typer {paths.version} passes {passed_count} tests ({outcomes.seconds} s)")
            return 0
        comparison = compare(options.version, Replacement(options.name, options.path))
    except (SetupFailed, RunFailed) as problem:
        print(problem, file=sys.stderr)
        return 2
    print(comparison.report())
    return 1 if comparison.problems() else 0


if __name__ == "__main__":
    sys.exit(main())
