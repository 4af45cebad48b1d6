"""Compare the test outcomes of Typer with those of the stand-in class."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .environment import prepare
from .known import LIMIT, known
from .place import Place
from .run import Outcomes, Standin, collect, run

# If fewer tests pass, the suite did not run completely.
PLAUSIBLE = 900


@dataclass(frozen=True)
class Comparison:
    """The outcomes of a run with Typer and of a run with the stand-in class."""

    version: str
    baseline: Outcomes
    substituted: Outcomes

    def differences(self) -> dict[str, str]:
        """Return the tests that pass only with Typer, each with the reason of its failure."""
        lost = self.baseline.passed() - self.substituted.passed()
        return {test: self.substituted.reason(test) for test in sorted(lost)}

    def problems(self) -> list[str]:
        """Return the unexpected differences, and errors in the list of known differences."""
        listed, lost = known(self.version), self.differences()
        found: list[str] = []
        count = len(self.baseline.passed())
        if count <= PLAUSIBLE:
            found.append(f"Typer itself passes only {count} tests: that is not its whole suite")
        if len(listed) > LIMIT:
            found.append(f"{len(listed)} known differences are listed, over the limit of {LIMIT}")
        found += [f"no reason is given for {test}" for test, why in listed.items() if not why]
        found += [f"stale, it passes or is gone: {t}" for t in sorted(listed.keys() - lost.keys())]
        found += [f"{test}\n    {why}" for test, why in lost.items() if test not in listed]
        return found

    def report(self) -> str:
        """Return a report of the comparison."""
        listed, lost, problems = known(self.version), self.differences(), self.problems()
        fresh = [test for test in lost if test not in listed]
        lines = [
            f"Typer {self.version}: of {len(self.baseline.passed())} tests"
            f" {len(self.baseline.passed()) - len(lost)} pass with the class in its place"
            f" ({self.substituted.seconds:.0f} s); {len(lost)} differ, {len(fresh)} not known."
        ]
        reasons = Counter(lost[test] for test in fresh)
        lines += [f"{count} times: {why}" for why, count in reasons.most_common(5) if count > 1]
        return "\n".join([*lines, *problems])


def baseline(place: Place, after: Outcomes) -> Outcomes:
    """What Typer itself makes of the suite, as far as it matters.

    A test that passes with the stand-in cannot be lost, so only the others are run with Typer.
    The list of tests is Typer's own, so that one which is not even collected is missed.
    """
    fine = after.passed()
    tests = {test: {"outcome": "passed", "reason": ""} for test in collect(place)}
    doubtful = sorted(tests.keys() - fine)
    if doubtful:
        outcomes = run(place, chosen=["-q", *doubtful], workers=1).tests
        tests.update({test: outcomes[test] for test in doubtful if test in outcomes})
    return Outcomes(tests=tests)


def compare(version: str, standin: Standin | None = None) -> Comparison:
    """Run the whole suite of a Typer version with the stand-in, and compare."""
    place = Place(version)
    prepare(place)
    after = run(place, standin or Standin())
    after.save(place.substituted)
    before = baseline(place, after)
    before.save(place.baseline)
    return Comparison(version, before, after)
