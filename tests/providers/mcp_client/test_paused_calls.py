"""Calls that wait for an answer of their caller."""

from __future__ import annotations

from typing import Any

import pytest
from tests.providers.mcp_client.fakes import RepeatingPeer

from tooli.core.peer import Elicit, InputRequired
from tooli.providers.mcp_client import paused_calls
from tooli.providers.mcp_client.paused_calls import PausedCalls


class AskingCall:
    """A call that asks one question."""

    expires = 0.0

    def __init__(self, key: str) -> None:
        self.open_question: str | None = key
        self.is_cancelled = False

    def run(self, ctx: Any) -> Any:
        return ctx.ask({self.open_question: Elicit("?", {})})[self.open_question]

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeContext:
    def __init__(self, given: dict[str, object] | None = None, name: str = "client") -> None:
        self._call = self
        self.peer = None if given is None else RepeatingPeer({}, given)
        self.caller = self
        self.name, self.principal, self.surface = name, None, "mcp"

    def ask(self, questions: Any) -> Any:
        assert self.peer is not None
        return self.peer.ask(questions)


def pause(paused: PausedCalls, key: str, binding: str = "b") -> AskingCall:
    call = AskingCall(key)
    with pytest.raises(InputRequired):
        paused.run(call, binding, FakeContext({}))  # type: ignore[arg-type]
    return call


def answered(paused: PausedCalls, given: dict[str, object] | None, binding: str = "b") -> Any:
    return paused.run_answered(binding, FakeContext(given))  # type: ignore[arg-type]


def test_answer_continues_its_call_once() -> None:
    paused = PausedCalls()
    pause(paused, "k1")
    pause(paused, "k2")
    assert answered(paused, {"k2": "two"}) == ("two",)
    assert answered(paused, {"k2": "two"}) is None
    assert answered(paused, {"k1": "one"}) == ("one",)


def test_other_calls_do_not_continue_it() -> None:
    paused = PausedCalls()
    pause(paused, "k1")
    assert answered(paused, {}) is None
    assert answered(paused, None) is None
    assert answered(paused, {"k1": "one"}, "another binding") is None
    assert answered(paused, {"k1": "one"}) == ("one",)


def test_binding() -> None:
    def binding(*arguments: Any, **caller: Any) -> str:
        return PausedCalls.binding(*arguments, FakeContext(**caller))  # type: ignore[arg-type]

    same = binding("add", {"a": 1, "b": 2})
    assert binding("add", {"b": 2, "a": 1}) == same
    assert binding("add", {"a": 1}) != same and binding("sub", {"a": 1, "b": 2}) != same
    assert binding("add", {"a": 1, "b": 2}, name="another") != same


def test_calls_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paused_calls, "MAX_PAUSED_CALLS", 2)
    paused = PausedCalls()
    calls = [pause(paused, f"k{n}") for n in range(3)]
    assert [call.is_cancelled for call in calls] == [True, False, False]
    calls[1].expires = 0.0
    assert answered(paused, {"k1": "one"}) is None
    assert [call.is_cancelled for call in calls] == [True, True, False]
