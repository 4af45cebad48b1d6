"""What a command may touch while it runs: held to its own word, and to the owner's lists."""

from __future__ import annotations

from tooli.call.model import Failed
from tooli.enforce.allowances import bounds_of, declared_for
from tooli.enforce.watched import RECORDED, SEEN, Watched, refusal
from tooli.enforce.watching import Violation, Watch
from tooli.state.audit import note

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.call.model import Call, Outcome, Stage


def hold_to_capabilities(house: Any) -> Stage:
    """Off: nothing is watched. Standard: what is undeclared is a warning. Strict: an error.

    The lists of allowed and denied paths are orders, not declarations: they hold under all three.
    """

    def hold(call: Call) -> Generator[Call, Outcome, Outcome]:
        declared, bounds = declared_for(call.tool, house), bounds_of(house)
        said = declared is not None
        if call.policy == "off":
            declared = None
        if call.meta is not None and (said or bounds is not None):
            watching = declared is not None or bounds is not None
            call.meta["enforcement"] = "audit" if watching else "none"
        runner, whole = call.runner, call.caller.surface == "cli"
        if declared is not None or bounds is not None:
            watch = Watch(declared, bounds, blocks=call.policy == "strict", whole=whole)
            runner = Watched(watch, runner)
        record = house.rules.get("record_capabilities")
        if record is not None:
            from tooli.enforce.recording import Recorded

            runner = Recorded(runner, whole)  # around whatever holds it: nothing is allowed by that
        outcome = yield (call if runner is call.runner else call.replace(runner=runner))
        while isinstance(runner, Watched):
            runner.watch.hear = None  # whatever was left running says nothing more about the call
            runner = runner.inner
        seen = [Violation(*row) for row in (call.meta or {}).pop(SEEN, ())]
        if record is not None:
            from tooli.enforce.recording import write_down

            write_down(call, seen, record)
        beyond = [one for one in seen if not one.capability.startswith(RECORDED)]
        return _settled(call, beyond, outcome)

    return hold


def _settled(call: Call, seen: list[Violation], outcome: Outcome) -> Outcome:
    """The outcome, with all that was seen on record; a refusal sticks, however the call ended."""
    for one in seen:
        note("violation", call, capability=one.capability, target=one.target, code=one.code)
    refused = [one for one in seen if one.code == "E2005" or call.policy == "strict"]
    if not refused or (isinstance(outcome, Failed) and outcome.error.code in _REFUSALS):
        return outcome
    error = refusal(call, refused[0])
    if isinstance(outcome, Failed):
        error.__cause__ = outcome.error
    return Failed(error)


_REFUSALS = ("E2003", "E2005")
