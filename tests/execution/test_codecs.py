"""Messages between processes: codecs, errors, invalid messages of untrusted processes."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from tooli import Tooli
from tooli.core.call import Call, Caller, Options
from tooli.core.declared_capabilities import AllowedAccess
from tooli.core.peer import Peer
from tooli.core.result_types import NextStep
from tooli.errors import InputError, ToolError, ToolRuntimeError
from tooli.execution import safe_codec, timeouts
from tooli.execution.ipc import ChildMessages, Codec, FrameReceiver
from tooli.execution.process_runner import MAX_PENDING_FRAMES, ChildCall
from tooli.execution.safe_codec import SafeCodec
from tooli.execution.sandbox.sandbox_runner import SandboxRunner, detect_sandbox_support
from tooli.text.json_encoder import encode


def make_call(**options: Any) -> Call:
    """Return a call of a command that does nothing."""
    app = Tooli("app")

    @app.command()
    def work() -> None: ...

    tool = app.find("work")
    assert tool is not None
    return Call(tool, {}, Caller("python"), [], Options(), **options)


class Unpicklable(Exception):
    def __init__(self, a: str, b: str) -> None:
        super().__init__(a)
        self.b = b


def test_exception_that_cannot_be_restored() -> None:
    codec = Codec()
    error = codec.unpack_error(codec.pack_error(Unpicklable("a", "b")))
    assert isinstance(error, ToolError)
    assert type(error.__cause__).__name__ == "Unpicklable"


def test_abort_of_click_is_an_interrupt() -> None:
    abort = type("Abort", (Exception,), {})()
    abort.__cause__ = KeyboardInterrupt()
    assert type(Codec().unpack_error(Codec().pack_error(abort))) is KeyboardInterrupt


def test_exception_keeps_its_traceback() -> None:
    error = Codec().unpack_error(Codec().pack_error(ValueError("x")))
    assert (type(error), str(error)) == (ValueError, "x")
    assert "ValueError: x" in str(error.__cause__)
    tool_error = Codec().unpack_error(Codec().pack_error(InputError("x")))
    assert (type(tool_error), tool_error.__cause__) == (InputError, None)


def test_value_that_cannot_be_pickled_becomes_json() -> None:
    warnings: list[str] = []

    class Local:
        pass

    codec = Codec()
    codec.unpack(codec.pack(Local(), warnings.append))
    assert "it was converted to JSON" in warnings[-1]


def test_large_values_are_pickled() -> None:
    codec = Codec()
    value = {"a": list(range(500)), "b": ({1: 2.5}, [None, True, b"x"])}
    assert codec.unpack(codec.pack(value, print)) == value


def test_messages_without_a_client_or_metadata() -> None:
    call = make_call()
    messages = ChildMessages(call.replace(meta=None, peer=None), Codec(), lambda _: None)
    codec = Codec()
    assert messages.handle("meta", codec.pack({"a": 1}, print))
    assert messages.handle("progress", (1.0, None, None))
    assert messages.handle("log", ("info", codec.pack("x", print)))
    assert messages.handle("disconnect", None)
    assert not messages.handle("value", None)


def test_messages_reach_the_client() -> None:
    seen: list[Any] = []

    class Client(Peer):
        def progress(self, done: float, total: float | None, message: str | None) -> None:
            seen.append((done, total, message))

        def log(self, level: str, data: object) -> None:
            seen.append((level, data))

        def disconnect_client(self) -> None:
            seen.append("disconnect")

    codec = Codec()
    messages = ChildMessages(make_call(meta={}, peer=Client()), codec, lambda _: None)
    messages.handle("progress", (1.0, 2.0, "x"))
    messages.handle("log", ("info", codec.pack({"a": 1}, print)))
    messages.handle("disconnect", None)
    messages.handle("meta", codec.pack({"a": 1}, print))
    assert seen == [(1.0, 2.0, "x"), ("info", {"a": 1}), "disconnect"]
    assert messages.call.meta == {"a": 1}


# ------------------------------------------------------------------ untrusted processes


def encoded(value: Any) -> bytes:
    return encode(value, [])


@pytest.mark.parametrize("message", ["text", [1], ["kind"], [1, 2], {"a": 1}])
def test_invalid_messages_are_refused(message: Any) -> None:
    with pytest.raises(ToolRuntimeError) as caught:
        SafeCodec().decode_frame(encoded(message))
    assert caught.value.code == "E4051"


def test_too_large_frames_are_refused() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, (safe_codec.MAX_FRAME_BYTES + 1).to_bytes(8, "big"))
    with pytest.raises(ToolRuntimeError, match="more than"):
        list(FrameReceiver(read_end, SafeCodec()).read_frames())
    os.close(read_end)
    os.close(write_end)


@pytest.mark.parametrize(
    "value",
    [{"!": 3}, {"!": ["decimal"]}, {"!": ["decimal", "1"], "a": 1}, {"!": ["decimal", []]}],
    ids=repr,
)
def test_invalid_tagged_values_are_refused(value: Any) -> None:
    with pytest.raises(ToolRuntimeError) as caught:
        SafeCodec().decode_frame(encoded(["value", value]))
    assert caught.value.code == "E4051"


VALID_ERROR = {"code": "E4001", "category": "runtime", "message": "m", "is_retryable": False}


@pytest.mark.parametrize(
    "packed",
    [
        None,
        ["x"],
        ["x", {}, None],
        ["x", {**VALID_ERROR, "message": 3}, None],
        ["x", {**VALID_ERROR, "details": 3}, None],
        ["x", {**VALID_ERROR, "field": 3}, None],
        ["x", {**VALID_ERROR, "suggestion": {"action": "nothing"}}, None],
    ],
)
def test_invalid_errors_are_refused(packed: Any) -> None:
    error = SafeCodec().unpack_error(packed)
    assert getattr(error, "code", None) == "E4051"


def test_exit_of_an_untrusted_process() -> None:
    error = SafeCodec().unpack_error(("exit", 3, None))
    assert isinstance(error, SystemExit) and error.code == 3


def test_unknown_kinds_of_messages_are_refused() -> None:
    messages = safe_codec.UntrustedMessages(make_call(meta={}), SafeCodec(), lambda _: None)
    with pytest.raises(ToolRuntimeError, match="unknown message"):
        messages.handle("run", None)


def test_number_of_warnings_is_limited() -> None:
    call = make_call(meta={})
    messages = safe_codec.UntrustedMessages(call, SafeCodec(), lambda _: None)
    for number in range(safe_codec.MAX_ENTRIES + 5):
        assert messages.handle("warning", str(number))
    assert len(call.warnings) == safe_codec.MAX_ENTRIES
    assert "the rest is omitted" in call.warnings[-1]


# ------------------------------------------------------------------ errors of the process


@pytest.mark.parametrize(
    ("status", "failure", "text"),
    [
        (signal.SIGKILL, None, "SIGKILL (out of memory"),
        (signal.SIGUSR1, None, "of SIGUSR1."),
        (63, None, "of "),
        (3 << 8, None, "exit code 3"),
        (None, None, "unknown reason"),
        (None, "no memory", "its supervisor failed: no memory"),
    ],
)
def test_process_that_died(status: int | None, failure: str | None, text: str) -> None:
    assert text in str(timeouts.process_died_error(status, failure))


def test_unknown_signal() -> None:
    assert timeouts._signal_name(250) == "signal 250"


def test_timeout_error_lists_processes() -> None:
    error = timeouts.timeout_error(1.5, "process", ["b", "a"], has_returned=True)
    assert error.details is not None
    assert (error.details["processes"], error.details["returned"]) == (["a", "b"], True)
    assert "had returned" in str(error)
    assert "may still be running" in str(timeouts.timeout_error(1, "nothing"))


def test_invalid_parts_of_values() -> None:
    with pytest.raises(ValueError, match="not text"):
        safe_codec._make_step(NextStep, "command", {1: 2}, "why")  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        safe_codec._validate_violation("fs:read", "/x", "E1001")
    for tagged in ({"!": 3}, {"!": ["Decimal"], "a": 1}):
        with pytest.raises((ValueError, KeyError)):
            safe_codec._from_tagged(tagged)


# ------------------------------------------------------------------ the calling process


def test_second_interrupt_ends_the_call() -> None:
    written: list[Any] = []
    call: Any = SimpleNamespace(
        _interrupt_count=0,
        _is_running=True,
        _control_fd=7,
        _write=lambda *args: written.append(args),
    )
    ChildCall.interrupt(call)
    with pytest.raises(KeyboardInterrupt):
        ChildCall.interrupt(call)
    assert written == [(b"i", 7)]


def test_untrusted_process_sends_too_many_results() -> None:
    for is_untrusted in (False, True):
        frames: list[Any] = [("item", None)] * MAX_PENDING_FRAMES
        call: Any = SimpleNamespace(_pending_frames=frames, is_untrusted=is_untrusted)
        if not is_untrusted:
            ChildCall._queue_frame(call, "item", None)
            continue
        with pytest.raises(ToolRuntimeError, match="more results"):
            ChildCall._queue_frame(call, "item", None)


def test_sandbox_needs_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    assert "this system cannot fork processes" in detect_sandbox_support().missing


def test_enforcement_level_needs_metadata() -> None:
    runner = SandboxRunner(None, AllowedAccess(), required=True)
    call = make_call(meta={})
    assert runner._set_enforcement(call, "level", 3) == 3
    assert call.meta == {"enforcement": "level"}
    assert runner._set_enforcement(call.replace(meta=None), "level", 3) == 3
