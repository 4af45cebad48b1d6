"""The comparison of Typer's own outcomes with those of the class in its place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .environment import prepare
from .known import LIMIT, known
from .place import Place
from .run import Outcomes, Standin, run

# Fewer passing tests than this, and it was not the suite that ran.
PLAUSIBLE = 1000


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
            f"Typer {self.version}: {len(self.baseline.passed())} tests pass with Typer itself,"
            f" {len(self.baseline.passed()) - len(lost)} of them with the class in its place"
            f" ({self.substituted.seconds:.0f} s); {len(lost)} differ, {len(fresh)} not known."
        ]
        reasons = Counter(lost[test] for test in fresh)
        lines += [f"{count} times: {why}" for why, count in reasons.most_common(5) if count > 1]
        return "\n".join([*lines, *problems])


def baseline(place: Place, wanted: str) -> Outcomes:
    """Typer's own outcomes, run once for an environment and kept.

    What failed gets a second run by itself before it is kept: a test that failed only because
    the machine was busy must not drop out of every later comparison.
    """
    kept = Outcomes.load(place.baseline)
    if kept.tests and kept.fingerprint == wanted:
        return kept
    fresh = run(place)
    again = [test for test in fresh.failed() if "::" in test]
    if again:
        fresh.tests.update(run(place, chosen=["-q", *again], workers=1).tests)
    fresh.fingerprint = wanted
    fresh.save(place.baseline)
    return fresh


def compare(version: str, standin: Standin | None = None) -> Comparison:
    """Run the whole suite of a Typer version with the stand-in, and compare."""
    place = Place(version)
    wanted = prepare(place)
    before = baseline(place, wanted)
    after = run(place, standin or Standin())
    after.fingerprint = wanted
    after.save(place.substituted)
    return Comparison(version, before, after)
