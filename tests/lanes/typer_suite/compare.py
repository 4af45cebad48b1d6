"""The comparison of Typer's own outcomes with those of the class in its place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .environment import prepare
from .known import LIMIT, known
from .place import Place
from .run import Outcomes, Standin, collect, run

# Fewer passing tests than this, and it was not the suite that ran.
PLAUSIBLE = 900


@dataclass(frozen=True)
class Comparison:
    """What passes with Typer, and what of it does not pass with the stand-in."""

    version: str
    baseline: Outcomes
    substituted: Outcomes

    def differences(self) -> dict[str, str]:
        """The tests that only Typer itself passes, each with why it did not pass."""
        lost = self.baseline.passed() - self.substituted.passed()
        return {test: self.substituted.reason(test) for test in sorted(lost)}

    def problems(self) -> list[str]:
        """Everything that keeps the stand-in from counting as a drop-in."""
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
        """The comparison in words."""
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
