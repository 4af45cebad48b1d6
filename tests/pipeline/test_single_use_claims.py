"""Claims on approvals and plan tokens."""

from __future__ import annotations

import pytest
from tests.stages.stage_calls import make_call, pass_through

from tooli.core.call import Call, Failed, Ok
from tooli.core.peer import InputRequired, Peer
from tooli.errors import InternalError
from tooli.pipeline.single_use_claims import (
    SingleUseClaim,
    is_awaiting_input,
    is_held,
    start_claims,
    with_claim,
)


class Claim(SingleUseClaim):
    def __init__(self, *, is_resumed: bool = False) -> None:
        super().__init__("claim 1", is_resumed=is_resumed)
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
        (True, question(), "commit"),
        (False, Ok(1), "release"),
    ],
    ids=["success", "failure", "question without a peer", "answered by an inner stage"],
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


class Client(Peer):
    def __init__(self) -> None:
        self.held: list[str] = []

    def hold_claim(self, claim_id: str) -> None:
        self.held.append(claim_id)


def test_claim_is_held_during_a_question() -> None:
    claim, client = Claim(), Client()
    steps = with_claim(make_call().replace(peer=client), claim)
    pass_through(start_claims, next(steps))
    with pytest.raises(StopIteration):
        steps.send(question())
    assert (claim.events, client.held) == (["start"], [claim.id])


def test_resumed_claim_is_never_released() -> None:
    claim = Claim(is_resumed=True)
    steps = with_claim(make_call(), claim)
    next(steps)
    with pytest.raises(StopIteration):
        steps.send(Failed(InternalError("no"), has_started=False))
    assert claim.events == []


def test_claim_is_held_for_the_peer_that_answers() -> None:
    client = Client()
    call = make_call().replace(peer=client)
    assert not is_held(make_call(), "claim 1")
    assert not is_held(call, "claim 1")
    client.held_claims = frozenset(("claim 1",))
    assert is_held(call, "claim 1")


def test_only_a_question_awaits_input() -> None:
    assert is_awaiting_input(question())
    assert not is_awaiting_input(Failed(InternalError("no")))
    assert not is_awaiting_input(Ok(1))


def test_subclass_must_implement_release() -> None:
    claim = SingleUseClaim("claim 1")
    claim.commit()
    with pytest.raises(NotImplementedError):
        claim.release()
