"""Compare the test outcomes of Typer with those of the class that replaces it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .environment import prepare
from .known import MAX_KNOWN_DIFFERENCES, known_differences
from .run import Outcomes, Replacement, collect, run
from .suite_paths import SuitePaths

MIN_PASSED = 650
"""Minimum number of tests that pass with Typer. If fewer pass, the suite is not complete. The
oldest version has the fewest tests."""


@dataclass(frozen=True)
class Comparison:
    """The outcomes of a run with Typer and of a run with its replacement."""

    version: str
    baseline: Outcomes
    substituted: Outcomes

    def differences(self) -> dict[str, str]:
        """Return the tests that pass only with Typer, each with the reason of its failure."""
        lost = self.baseline.passed() - self.substituted.passed()
        return {test: self.substituted.reason(test) for test in sorted(lost)}

    def problems(self) -> list[str]:
        """Return the unexpected differences, and errors in the list of known differences."""
        known, lost = known_differences(self.version), self.differences()
        found: list[str] = []
        count = len(self.baseline.passed())
        if count <= MIN_PASSED:
            found.append(f"only {count} tests pass with Typer: this is not the whole suite")
        if len(known) > MAX_KNOWN_DIFFERENCES:
            found.append(f"{len(known)} known differences, more than {MAX_KNOWN_DIFFERENCES}")
        found += [f"{test} is listed without a reason" for test, why in known.items() if not why]
        stale = sorted(known.keys() - lost.keys())
        found += [f"{test} is listed, but it passes or does not exist" for test in stale]
        found += [f"{test}\n    {why}" for test, why in lost.items() if test not in known]
        return found

    def report(self) -> str:
        """Return a report of the comparison."""
        known, lost = known_differences(self.version), self.differences()
        new = [test for test in lost if test not in known]
        total = len(self.baseline.passed())
        lines = [
            f"Typer {self.version}: {total - len(lost)} of {total} tests pass with the replacement"
            f" ({self.substituted.seconds:.0f} s). {len(lost)} differ, {len(new)} of them are new."
        ]
        reasons = Counter(lost[test] for test in new)
        lines += [f"{count} times: {why}" for why, count in reasons.most_common(5) if count > 1]
        return "\n".join([*lines, *self.problems()])


def run_baseline(paths: SuitePaths, substituted: Outcomes) -> Outcomes:
    """Return the outcomes with Typer itself.

    Tests that pass with the replacement are not run again, and count as passed. The tests are
    collected with Typer, so that a test which cannot be collected with the replacement is a
    difference.
    """
    tests = {test: {"outcome": "passed", "reason": ""} for test in collect(paths)}
    not_passed = sorted(tests.keys() - substituted.passed())
    if not_passed:
        outcomes = run(paths, pytest_args=["-q", *not_passed], workers=1).tests
        tests.update({test: outcomes[test] for test in not_passed if test in outcomes})
    return Outcomes(tests=tests)


def compare(version: str, replacement: Replacement | None = None) -> Comparison:
    """Run the whole suite of a Typer version with the replacement, and compare."""
    paths = SuitePaths(version)
    prepare(paths)
    substituted = run(paths, replacement or Replacement())
    substituted.save(paths.substituted)
    baseline = run_baseline(paths, substituted)
    baseline.save(paths.baseline)
    return Comparison(version, baseline, substituted)
