"""Repeated failures: which calls count as the same, warnings, blocks, and secrets."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import APPS, environment, run
from tests.stages.stage_calls import make_call, pass_through

from tooli import InputError, SecretInput, StateError, StdinOr, ToolError, Tooli
from tooli.core.call import Caller, Failed, Ok, Options
from tooli.errors import TemporaryError, TimeoutExceeded
from tooli.records.call_options import read_result_options
from tooli.schema import RawText
from tooli.serving.dispatcher import ToolDispatcher
from tooli.stages import repeated_failures
from tooli.stages.repeated_failures import (
    count_failures_in_files,
    digest_call,
    record_failure,
)
from tooli.storage import state_files

SHARED_ERROR = StateError("Always the same object.", details={"kept": 1})


class UncopyableError(ToolError):
    """An error that cannot be copied: its constructor needs more than a message."""

    def __init__(self, message: str, more: str) -> None:
        super().__init__(message + more)


def make_exception(kind: str) -> Exception:
    return {
        "shared": lambda: SHARED_ERROR,
        "uncopyable": lambda: UncopyableError("a", "b"),
        "late": lambda: TimeoutExceeded("late"),
        "busy": lambda: TemporaryError("busy"),
        "retry": lambda: StateError("soon", is_retryable=True),
        "input": lambda: InputError("no"),
        "bug": lambda: ValueError("bug"),
        "stop": KeyboardInterrupt,
    }[kind]()


class Calls:
    """Calls of one app through one ToolDispatcher."""

    def __init__(self) -> None:
        self.ran = 0
        self.app = Tooli("app")
        self.app.command("fail")(self.fail)
        self.dispatcher = ToolDispatcher(self.app)

    def fail(self, kind: str, word: str = "") -> str:
        self.ran += 1
        if kind == "fine":
            return kind
        if kind == "counted":
            raise StateError(f"failed {self.ran} times")
        raise make_exception(kind)

    def run(self, arguments: Any, session: str | None = "one", **more: Any) -> Any:
        caller = Caller("http", session=session, address="x", principal=more.pop("who", None))
        arguments = {"kind": arguments} if isinstance(arguments, str) else arguments
        tool = self.app.find("fail")
        assert tool is not None
        return self.dispatcher.prepare(tool, arguments, caller, **more).run()

    def codes(self, times: int, arguments: Any, **more: Any) -> list[str | None]:
        answers = [self.run(arguments, **more) for _ in range(times)]
        return [one.error.code if one.error is not None else None for one in answers]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1e9]
    monkeypatch.setattr(state_files, "time", lambda: clock[0])
    monkeypatch.setattr(repeated_failures, "time", lambda: clock[0])
    return clock


@pytest.mark.parametrize(
    ("kind", "code"), [("shared", "E3000"), ("uncopyable", "E5000"), ("bug", "E5000")]
)
def test_fifth_call_is_blocked(calls: Calls, kind: str, code: str) -> None:
    assert calls.codes(7, kind) == [code] * 4 + ["E4031"] * 3
    assert calls.ran == 4


def test_error_object_is_not_changed(calls: Calls) -> None:
    calls.codes(6, "shared")
    assert SHARED_ERROR.details == {"kept": 1}
    assert SHARED_ERROR.suggestion is None


@pytest.mark.parametrize("kind", ["late", "busy", "retry"])
def test_retryable_failure_is_never_blocked(calls: Calls, kind: str) -> None:
    answers = [calls.run(kind) for _ in range(14)]
    assert calls.ran == 14
    waits = [(one.error.details or {}).get("retry_after") for one in answers]
    assert waits[:5] == [None, None, 2, 4, 8]
    assert waits[-1] == 300
    assert answers[-1].error.suggestion.action == "retry_later"


def test_block_ends_after_ten_minutes(calls: Calls, now: list[float]) -> None:
    assert calls.codes(5, "shared")[-1] == "E4031"
    for _ in range(9):
        now[0] += 60
        assert calls.codes(1, "shared") == ["E4031"]  # a blocked call does not extend the block
    now[0] += 60
    assert calls.codes(1, "shared") == ["E3000"]


def test_block_ends_if_the_clock_is_set_back(calls: Calls, now: list[float]) -> None:
    assert calls.codes(5, "shared")[-1] == "E4031"
    now[0] -= 3600
    assert calls.codes(1, "shared") == ["E3000"]


@pytest.mark.parametrize(
    "other",
    [
        {"arguments": {"kind": "shared", "word": "x"}},
        {"options": Options(dry_run=True)},
        {"options": Options(yes=True)},
        {"options": Options(result_options=read_result_options({"limit": 3}))},
        {"session": "two"},
        {"who": "ada"},
        {"approved_parts": {}},
    ],
)
def test_different_call_is_not_blocked(calls: Calls, other: dict[str, Any]) -> None:
    assert calls.codes(5, "shared")[-1] == "E4031"
    assert calls.codes(1, other.pop("arguments", "shared"), **other)[0] != "E4031"


def test_different_message_is_a_different_failure(calls: Calls) -> None:
    assert calls.codes(9, "counted") == ["E3000"] * 9


def test_input_errors_with_different_messages_are_the_same_failure(calls: Calls) -> None:
    assert calls.codes(6, {"knid": "x"})[-2:] == ["E4031"] * 2
    assert calls.codes(6, "input")[-2:] == ["E4031"] * 2
    assert calls.ran == 4


def test_stopped_call_is_not_a_failure(calls: Calls) -> None:
    assert calls.codes(9, "stop") == ["E4130"] * 9
    assert calls.codes(4, "shared") == ["E3000"] * 4
    assert calls.codes(1, "stop") == ["E4130"]


def test_success_between_failures_resets_the_count(calls: Calls) -> None:
    for _ in range(3):
        assert calls.codes(4, "shared") == ["E3000"] * 4
        assert calls.codes(1, "fine") == [None]


def test_unknown_caller_is_not_blocked(calls: Calls) -> None:
    assert calls.codes(9, "shared", session=None) == ["E3000"] * 9


def test_each_server_has_its_own_history(calls: Calls) -> None:
    assert calls.codes(5, "shared")[-1] == "E4031"
    assert Calls().codes(1, "shared") == ["E3000"]


def test_size_of_the_history_is_limited(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "MAX_MEMORY_FAILURES", 5)
    memory = state_files.MemoryFailureHistory()
    failure = state_files.RepeatedFailure("m", "w", 1, 0.0, {})
    for i in range(100):
        memory.record_failure(f"session {i}", "tool", failure)
    assert len(memory._failures) == 5


# ------------------------------------------------------------------ secrets


def test_failure_file_contains_no_secret(tmp_path: Path) -> None:
    """The blocked call does not read the secret, so the stored message must be redacted."""
    env = environment(
        TOOLI_STATE_DIR=str(tmp_path), TOOLI_SESSION_ID="s", PW="hunter2hunter2", TOOLI_CONFIG="off"
    )
    argv = [APPS / "redaction.py", "login-fails", "env:PW", "--json"]
    answers = [run(*argv, env=env) for _ in range(5)]
    codes = [json.loads(one.out)["error"]["code"] for one in answers]
    assert codes == ["E3020"] * 4 + ["E4031"]
    assert json.loads(answers[4].out)["error"]["details"]["error"]["message"] == "bad ***"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    stored = b"".join([path.read_bytes() for path in files])
    assert b"E3020" in stored and b"hunter2" not in stored


def test_history_of_a_server_contains_no_secret() -> None:
    app = Tooli("app")

    @app.command()
    def login(pw: SecretInput[str]) -> None:
        raise StateError(f"no {pw.reveal()}")

    @app.command()
    def other() -> None: ...

    dispatcher, tool = ToolDispatcher(app), app.find("login")
    assert tool is not None
    caller = Caller("mcp", session="one")
    answers = [dispatcher.prepare(tool, {"pw": "hunter2hunter2"}, caller).run() for _ in range(5)]
    blocked = answers[-1].error
    assert blocked is not None and blocked.code == "E4031"
    assert blocked.details == {"repeated": 5, "error": {"code": "E3000", "message": "no ***"}}


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("base", ["current folder", "work_dir"])
def test_call_with_a_corrected_file_is_a_different_call_on_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "below" if base == "work_dir" else tmp_path
    folder.mkdir(exist_ok=True)
    if base == "work_dir":
        monkeypatch.setenv("TOOLI_WORK_DIR", str(folder))
    app = Tooli("app")

    @app.command()
    def check(path: Path) -> str:
        if path.read_text() != "good":
            raise StateError("The file is malformed.")
        return "fine"

    @app.command()
    def other() -> None: ...

    dispatcher, tool = ToolDispatcher(app), app.find("check")
    assert tool is not None
    file = folder / "input.txt"
    file.write_text("bad")
    for _ in range(6):
        answer = dispatcher.prepare(tool, {"path": "input.txt"}, Caller("mcp", session="one")).run()
    assert answer.error is not None and answer.error.code == "E4031"
    file.write_text("good")
    answer = dispatcher.prepare(tool, {"path": "input.txt"}, Caller("mcp", session="one")).run()
    assert answer.error is None


def test_server_does_not_stat_text_arguments(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        "tooli.stages.repeated_failures._stat_key", lambda *arguments: seen.append(arguments)
    )
    assert calls.codes(5, {"kind": "shared", "word": "/etc/passwd"})[-1] == "E4031"
    assert seen == []


def test_failure_file_has_room_for_the_longest_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest messages of `MAX_TOOLS_PER_SESSION` tools fit in the file."""
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    history = state_files.FileFailureHistory()
    stored_error = {"code": "E3000", "message": "\U0001f600" * 500, "blocks": True}
    for number in range(state_files.MAX_TOOLS_PER_SESSION + 1):
        failure = state_files.RepeatedFailure("m", "w", 1, time.time(), stored_error)
        history.record_failure("me", f"tool{number}", failure)
        for latest in range(max(0, number - 5), number + 1):
            assert history.last_failure("me", f"tool{latest}") is not None
    assert history.last_failure("me", "tool0") is None
    assert history.last_failure("me", "tool1") is not None
    (file,) = (tmp_path / "loops").iterdir()
    assert file.stat().st_size <= state_files._MAX_FAILURES_BYTES


class TestStages:
    """The stages of the module, without a surface."""

    FAILED = Failed(StateError("no"), has_started=False)

    @pytest.fixture(autouse=True)
    def _state(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
        monkeypatch.delenv("TOOLI_SESSION_ID", raising=False)

    def test_server_calls_are_not_counted_in_files(self, tmp_path: Path) -> None:
        call = make_call(surface="http", caller={"session": "s"})
        found = pass_through(count_failures_in_files, call, self.FAILED)
        assert found == (call, self.FAILED)
        assert record_failure(call, self.FAILED) is self.FAILED
        assert not list(tmp_path.iterdir())

    def test_third_failure_of_a_session_warns(self) -> None:
        call = make_call(caller={"session": "s"})
        outcomes = [pass_through(count_failures_in_files, call, self.FAILED)[1] for _ in range(3)]
        assert outcomes[:2] == [self.FAILED, self.FAILED]
        last = outcomes[2]
        assert isinstance(last, Failed)
        assert last.error.details == {"repeated": 3}
        assert last.has_started is False

    def test_success_resets_the_count(self) -> None:
        call = make_call(caller={"session": "s"})
        for outcome in (self.FAILED, self.FAILED, Ok(1), self.FAILED):
            found = pass_through(count_failures_in_files, call, outcome)[1]
        assert found is self.FAILED

    def test_failure_in_an_agent_session_is_stored(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("TOOLI_SESSION_ID", "session-of-an-agent")
        pass_through(count_failures_in_files, make_call(), self.FAILED)
        assert list(tmp_path.rglob("*"))

    def test_first_failure_of_a_session_is_counted(self) -> None:
        call = make_call(caller={"session": "s"})
        assert record_failure(call, self.FAILED) is self.FAILED
        pass_through(count_failures_in_files, call, self.FAILED)
        last = pass_through(count_failures_in_files, call, self.FAILED)[1]
        assert isinstance(last, Failed)
        assert last.error.details == {"repeated": 3}

    @pytest.mark.parametrize(
        ("arguments", "is_blocked"),
        [({"data": RawText(["-"])}, False), ({}, False), ({"data": RawText(["a.txt"])}, True)],
    )
    def test_call_that_may_read_stdin_is_not_blocked(
        self, arguments: dict[str, Any], is_blocked: bool
    ) -> None:
        def go(data: StdinOr[str]) -> None: ...

        call = make_call(go, arguments, caller={"session": "s"})
        for _ in range(4):
            pass_through(count_failures_in_files, call, self.FAILED)
        if is_blocked:
            with pytest.raises(ToolError, match="was not run"):
                pass_through(count_failures_in_files, call, self.FAILED)
        else:
            assert pass_through(count_failures_in_files, call, Ok(1))[1] == Ok(1)

    def test_dotted_options_are_part_of_the_digest(self) -> None:
        def go(config: dict[str, int]) -> None: ...

        digests = {
            digest_call(make_call(go, {"config": RawText((), dotted={"a": [word]})}))
            for word in ("1", "2", "1")
        }
        assert len(digests) == 2

    def test_file_in_a_text_parameter_is_ignored_on_a_server(self, tmp_path: Path) -> None:
        def go(path: Path, text: str) -> None: ...

        file = tmp_path / "x"

        def digests(name: str, surface: str) -> int:
            arguments = {"path": 1, "text": 1, name: str(file)}
            found: set[str] = set()
            for content in ("", "longer"):
                file.write_text(content)
                found.add(digest_call(make_call(go, arguments, surface=surface)))
            return len(found)

        assert digests("path", "http") == 2
        assert digests("text", "http") == 1
        assert digests("text", "cli") == 2

    def test_repeated_question_is_not_blocked_but_counted(self) -> None:
        call = make_call(caller={"session": "s"})
        failed = Failed(InputError("confirm", code="E1010"))
        outcomes = [pass_through(count_failures_in_files, call, failed)[1] for _ in range(7)]
        last = outcomes[-1]
        assert isinstance(last, Failed)
        assert last.error.suggestion is not None
        assert last.error.suggestion.action == "ask_human"
        assert "Asked 7 times." in last.error.suggestion.fix
