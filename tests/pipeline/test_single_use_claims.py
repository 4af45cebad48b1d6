"""Claims on approvals and plan tokens."""

from __future__ import annotations

import pytest
from tests.stages.stage_calls import make_call, pass_through

from tooli.core.call import Call, Failed, Ok
from tooli.core.peer import InputRequired
from tooli.errors import InternalError
from tooli.pipeline.single_use_claims import (
    SingleUseClaim,
    is_awaiting_input,
    start_claims,
    with_claim,
)


class Claim(SingleUseClaim):
    def __init__(self) -> None:
        self.events: list[str] = []

    def start(self, call: Call) -> None:
        super().start(call)
        self.events.append("start")

    def commit(self) -> None:
        self.events.append("commit")

    def release(self) -> None:
        self.events.append("release")


def question() -> Failed:
    error = InternalError("a question")
    error.__cause__ = InputRequired({})
    return Failed(error)


@pytest.mark.parametrize(
    ("starts", "outcome", "end"),
    [
        (True, Ok(1), "commit"),
        (True, Failed(InternalError("no")), "commit"),
        (True, question(), "release"),
        (False, Ok(1), "release"),
    ],
    ids=["success", "failure", "question", "answered by an inner stage"],
)
def test_claim_ends_with_the_call(starts: bool, outcome: Ok | Failed, end: str) -> None:
    claim, call = Claim(), make_call()
    steps = with_claim(call, claim)
    passed = next(steps)
    assert passed.claims == (claim,)
    if starts:
        pass_through(start_claims, passed)
    with pytest.raises(StopIteration) as stopped:
        steps.send(outcome)
    assert stopped.value.value is outcome
    assert claim.events == (["start", end] if starts else [end])


def test_only_a_question_awaits_input() -> None:
    assert is_awaiting_input(question())
    assert not is_awaiting_input(Failed(InternalError("no")))
    assert not is_awaiting_input(Ok(1))


def test_subclass_must_implement_release() -> None:
    claim = SingleUseClaim()
    claim.commit()
    with pytest.raises(NotImplementedError):
        claim.release()
