"""Claims on approvals and plan tokens, which can be used only once.

    taken ──▶ inner stages ──▶ start ──▶ the function ──▶ commit
      ◀── release: an inner stage rejected or answered the call
                                              └──▶ held: the call ends with a question

A stage takes a claim before it passes the call on, so that only one of several concurrent calls
gets it. A process that is killed before `commit` or `release` does not release its claims. A held
claim stays used. Only the call that brings the answers can continue with it, once.
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

    def __init__(self, id: str, *, is_resumed: bool = False) -> None:
        self.id = id
        self.is_resumed = is_resumed  # the function was run before, and asked a question

    def start(self, call: Call) -> None:
        """Use the claim: the function is about to run."""
        self.has_started = True

    def undo_start(self) -> None:
        """Allow the release of the claim after `start`: the function has done nothing."""

    def commit(self) -> None:
        """Finish the claim: the function has run."""

    def release(self) -> None:
        """Give the claim back: the function has not run. Never raises."""
        raise NotImplementedError


def with_claim(call: Call, claim: SingleUseClaim) -> StageRun:
    """Pass a call on with a claim, and commit, hold or release the claim afterwards."""
    outcome = yield call.replace(claims=(*call.claims, claim))
    if not claim.has_started:
        if not claim.is_resumed:
            claim.release()
    elif call.peer is not None and is_awaiting_input(outcome):
        call.peer.hold_claim(claim.id)
    else:
        claim.commit()
    return outcome


def is_held(call: Call, claim_id: str) -> bool:
    """True if the call brings the answers to the questions of a call that used this claim."""
    return call.peer is not None and claim_id in call.peer.held_claims


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
