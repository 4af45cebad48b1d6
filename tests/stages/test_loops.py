"""Failures that repeat: what is counted as the same, how it ends, and that nothing leaks."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import InputError, StateError, ToolError, Tooli
from tooli.call.model import Caller, Options
from tooli.call.shaping import read_shaping
from tooli.errors import TemporaryError, TimeoutExceeded
from tooli.state import loops
from tooli.surfaces.serving import Desk

ONE = StateError("Always the same object.", details={"kept": 1})


class Own(ToolError):
    """An error that cannot be copied: it wants more than a message."""

    def __init__(self, message: str, more: str) -> None:
        super().__init__(message + more)


def raised(kind: str) -> Exception:
    return {
        "single": lambda: ONE,
        "own": lambda: Own("a", "b"),
        "late": lambda: TimeoutExceeded("late"),
        "busy": lambda: TemporaryError("busy"),
        "retry": lambda: StateError("soon", is_retryable=True),
        "input": lambda: InputError("no"),
        "bug": lambda: ValueError("bug"),
        "stop": KeyboardInterrupt,
    }[kind]()


class Calls:
    """Calls of one app through one server's desk."""

    def __init__(self) -> None:
        self.ran = 0
        self.app = Tooli("looping")
        self.app.command("fail")(self.fail)
        self.desk = Desk(self.app)

    def fail(self, kind: str, word: str = "") -> str:
        self.ran += 1
        if kind == "fine":
            return kind
        if kind == "counted":
            raise StateError(f"failed {self.ran} times")
        raise raised(kind)

    def run(self, arguments: Any, session: str | None = "one", **more: Any) -> Any:
        caller = Caller("http", session=session, address="x", principal=more.pop("who", None))
        arguments = {"kind": arguments} if isinstance(arguments, str) else arguments
        tool = self.app.find("fail")
        assert tool is not None
        return self.desk.open(tool, arguments, caller, **more).run()

    def codes(self, times: int, arguments: Any, **more: Any) -> list[str | None]:
        answers = [self.run(arguments, **more) for _ in range(times)]
        return [one.error.code if one.error is not None else None for one in answers]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1e9]
    monkeypatch.setattr(loops, "time", lambda: clock[0])
    monkeypatch.setattr("time.time", lambda: clock[0])
    return clock


@pytest.mark.parametrize(
    ("kind", "code"), [("single", "E3000"), ("own", "E5000"), ("bug", "E5000")]
)
def test_five_times(calls: Calls, kind: str, code: str) -> None:
    assert calls.codes(7, kind) == [code] * 4 + ["E4031"] * 3
    assert calls.ran == 4


def test_an_error_that_is_raised_again_is_not_changed(calls: Calls) -> None:
    calls.codes(6, "single")
    assert ONE.details == {"kept": 1}
    assert ONE.suggestion is None


@pytest.mark.parametrize("kind", ["late", "busy", "retry"])
def test_patience(calls: Calls, kind: str) -> None:
    answers = [calls.run(kind) for _ in range(14)]
    assert calls.ran == 14
    waits = [(one.error.details or {}).get("retry_after") for one in answers]
    assert waits[:5] == [None, None, 2, 4, 8]
    assert waits[-1] == 300
    assert answers[-1].error.suggestion.action == "retry_later"


def test_ten_minutes(calls: Calls, now: list[float]) -> None:
    assert calls.codes(5, "single")[-1] == "E4031"
    for _ in range(9):
        now[0] += 60
        assert calls.codes(1, "single") == ["E4031"]  # asking does not make it longer
    now[0] += 60
    assert calls.codes(1, "single") == ["E3000"]


def test_a_clock_that_is_put_back(calls: Calls, now: list[float]) -> None:
    assert calls.codes(5, "single")[-1] == "E4031"
    now[0] -= 3600
    assert calls.codes(1, "single") == ["E3000"]


@pytest.mark.parametrize(
    "other",
    [
        {"arguments": {"kind": "single", "word": "x"}},
        {"options": Options(dry_run=True)},
        {"options": Options(yes=True)},
        {"options": Options(shaping=read_shaping({"limit": 3}))},
        {"session": "two"},
        {"who": "ada"},
        {"approved": True},
    ],
)
def test_another_call(calls: Calls, other: dict[str, Any]) -> None:
    assert calls.codes(5, "single")[-1] == "E4031"
    assert calls.codes(1, other.pop("arguments", "single"), **other)[0] != "E4031"


def test_a_failure_that_says_something_new_is_another(calls: Calls) -> None:
    assert calls.codes(9, "counted") == ["E3000"] * 9


def test_mistakes_count_whatever_they_say(calls: Calls) -> None:
    assert calls.codes(6, {"knid": "x"})[-2:] == ["E4031"] * 2
    assert calls.codes(6, "input")[-2:] == ["E4031"] * 2
    assert calls.ran == 4


def test_what_was_stopped_is_no_failure(calls: Calls) -> None:
    assert calls.codes(9, "stop") == ["E4130"] * 9
    assert calls.codes(4, "single") == ["E3000"] * 4
    assert calls.codes(1, "stop") == ["E4130"]


def test_a_success_in_between(calls: Calls) -> None:
    for _ in range(3):
        assert calls.codes(4, "single") == ["E3000"] * 4
        assert calls.codes(1, "fine") == [None]


def test_nobody_knows_who_repeats_himself(calls: Calls) -> None:
    assert calls.codes(9, "single", session=None) == ["E3000"] * 9


def test_each_server_has_its_own_memory(calls: Calls) -> None:
    assert calls.codes(5, "single")[-1] == "E4031"
    assert Calls().codes(1, "single") == ["E3000"]


def test_memory_is_bounded(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MOST_SESSIONS", 5)
    memory = loops.Memory()
    failure = loops.Failure("m", "w", 1, 0.0, {})
    for i in range(100):
        memory.note(f"session {i}", "tool", failure)
    assert len(memory._failures) == 5
