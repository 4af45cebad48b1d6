"""Claims on approvals and plan tokens, which can be used only once.

    taken ──▶ inner stages ──▶ start ──▶ the function ──▶ commit
      ◀── release: an inner stage rejected or answered the call, or the call asks a question

A stage takes a claim before it passes the call on, so that only one of several concurrent calls
gets it. A process that is killed before `commit` or `release` does not release its claims.
"""

from __future__ import annotations

from tooli.core.call import Failed
from tooli.core.peer import InputRequired

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call, Outcome, StageRun


class SingleUseClaim:
    """A claim of one call on something that can be used once."""

    has_started = False

    def start(self, call: Call) -> None:
        """Use the claim: the function is about to run."""
        self.has_started = True

    def commit(self) -> None:
        """Finish the claim: the function has run."""

    def release(self) -> None:
        """Give the claim back: the function has not run. Never raises."""
        raise NotImplementedError


def with_claim(call: Call, claim: SingleUseClaim) -> StageRun:
    """Pass a call on with a claim, and commit or release the claim afterwards."""
    outcome = yield call.replace(claims=(*call.claims, claim))
    if claim.has_started and not is_awaiting_input(outcome):
        claim.commit()
    else:
        claim.release()
    return outcome


def is_awaiting_input(outcome: Outcome) -> bool:
    """True if the call ended with a question, and will be sent again with the answer."""
    return isinstance(outcome, Failed) and isinstance(outcome.error.__cause__, InputRequired)


def start_claims(call: Call) -> StageRun:
    """Use up the approval or the plan token of a call.

    It is the last stage before the function, so no other stage can reject the call afterwards.
    """
    for claim in call.claims:
        claim.start(call)
    return (yield call)
