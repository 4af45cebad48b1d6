"""Claims: what can be used once, taken before a call goes on and given back where nothing ran.

    a grant, a plan's token ── taken ──▶ the stages further in ── begin ──▶ the function
              ◀── given back: one of them refused, or answered without a run, or it paused

Of several calls that want the same one, the first takes it, before anything else is done. A
process that is killed in between gives nothing back.
"""

from __future__ import annotations

from tooli.core.call import Failed

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome


class SingleUseClaim:
    """One thing that a run of a call uses up."""

    has_started = False

    def start(self, call: Call) -> None:
        """The function is about to run."""
        self.has_started = True

    def commit(self) -> None:
        """It has run."""

    def release(self) -> None:
        """It has not run, or comes again with the answer to a question; raises nothing."""
        raise NotImplementedError


def with_claim(call: Call, claim: SingleUseClaim) -> Generator[Call, Outcome, Outcome]:
    """A call's way onward with a claim: the rest of a stage that has taken one."""
    outcome = yield call.replace(claims=(*call.claims, claim))
    if claim.has_started and not is_awaiting_input(outcome):
        claim.commit()
    else:
        claim.release()
    return outcome


def is_awaiting_input(outcome: Outcome) -> bool:
    """Whether a call only ended to ask something, and will be made again with the answer."""
    from tooli.core.peer import InputRequired

    return isinstance(outcome, Failed) and isinstance(outcome.error.__cause__, InputRequired)


def start_claims(call: Call) -> Generator[Call, Outcome, Outcome]:
    """The stage inside of all others: nothing refuses the call any more, so its claims count."""
    for claim in call.claims:
        claim.start(call)
    return (yield call)
