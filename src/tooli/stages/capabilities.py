"""What a command may touch while it runs: held to its own word, and to the owner's lists."""

from __future__ import annotations

from tooli.enforce.allowances import bounds_of, declared_for
from tooli.enforce.watched import SEEN, Watched
from tooli.enforce.watching import Watch
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
            return (yield from _recording(call.replace(runner=runner), record, whole))
        outcome = yield (call if runner is call.runner else call.replace(runner=runner))
        for capability, target, code in (call.meta or {}).pop(SEEN, ()):
            note("violation", call, capability=capability, target=target, code=code)
        return outcome

    return hold


def _recording(call: Call, path: str, whole: bool) -> Generator[Call, Outcome, Outcome]:
    """Note what the function touches, around whatever holds it: nothing is allowed by that."""
    from tooli.enforce.recording import Recorded, write_down

    recorded = Recorded(call.runner, whole)
    outcome = yield call.replace(runner=recorded)
    write_down(call, recorded, path)
    return outcome
