"""Codecs, frames and messages of a trusted process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NoReturn, cast

import pytest
from tests.execution.calls import make_call

from tooli.core.call import PYTHON_CALLER, Call
from tooli.core.peer import Elicit, Peer, Question
from tooli.errors import InputError, InternalError, TimeoutExceeded, ToolError
from tooli.execution import ipc
from tooli.execution.ipc import ChildMessages, Codec


class Unpicklable:
    """A value that cannot be sent to another process."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")

    def __str__(self) -> str:
        return "as text"


class Renamed(Exception):
    """An exception that pickle cannot rebuild, because its __init__ takes other arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


@pytest.mark.parametrize("value", [None, 1, "a", [1, {"b": (2, b"c")}], {1: 2}])
def test_small_plain_values_are_marshalled(value: object) -> None:
    data = ipc.dumps(value)
    assert data[:1] == b"m"
    assert ipc.loads(data) == value


@pytest.mark.parametrize("value", [{1, 2}, list(range(1000)), complex(1, 2)], ids=repr)
def test_other_values_are_pickled(value: object) -> None:
    data = ipc.dumps(value)
    assert data[:1] == b"p"
    assert ipc.loads(data) == value


def test_unpicklable_value_is_converted_to_json_with_a_warning() -> None:
    warnings: list[str] = []
    codec = ipc.Codec()
    assert codec.unpack(codec.pack([1, Unpicklable()], warnings.append)) == [1, "as text"]
    assert "a list cannot be sent between processes" in warnings[-1]


def test_exception_keeps_its_class_and_traceback() -> None:
    codec = ipc.Codec()
    try:
        raise KeyError("missing")
    except KeyError as exc:
        packed = codec.pack_error(exc)
    error = codec.unpack_error(packed)
    assert type(error) is KeyError
    assert isinstance(error.__cause__, ipc.RemoteTraceback)
    assert "KeyError: 'missing'" in str(error.__cause__)


def test_tool_error_keeps_its_fields() -> None:
    codec = ipc.Codec()
    error = codec.unpack_error(codec.pack_error(InputError("wrong", field="name")))
    assert isinstance(error, InputError)
    assert (error.message, error.field) == ("wrong", "name")


def test_exception_that_cannot_be_rebuilt_becomes_a_tool_error() -> None:
    codec = ipc.Codec()
    error = codec.unpack_error(codec.pack_error(Renamed("a", "b")))
    assert isinstance(error, InternalError)
    assert error.is_translated
    assert type(error.__cause__).__name__ == "Renamed"


class OutOfStock(ToolError):
    """An error class of an app whose __init__ takes other arguments."""

    category, code = "state", "E3991"

    def __init__(self, item: str) -> None:
        super().__init__(f"no {item}", code="E3991", details={"item": item})


def test_error_class_with_its_own_init_is_rebuilt() -> None:
    codec = ipc.Codec()
    error = codec.unpack_error(codec.pack_error(OutOfStock("tea")))
    assert isinstance(error, OutOfStock)
    assert (error.message, error.details) == ("no tea", {"item": "tea"})


def test_abort_of_click_is_the_interrupt_that_caused_it() -> None:
    class Abort(RuntimeError):
        pass

    abort = Abort()
    abort.__cause__ = KeyboardInterrupt()
    codec = ipc.Codec()
    assert isinstance(codec.unpack_error(codec.pack_error(abort)), KeyboardInterrupt)


def test_frames_arrive_in_order_and_in_parts() -> None:
    read_end, write_end = os.pipe()
    receiver = ipc.FrameReceiver(read_end, ipc.Codec())
    try:
        assert list(receiver.read_frames()) == []
        sender = ipc.FrameSender(write_end, ipc.Codec())
        sender.send("warning", "first")
        sender.send("value", b"second")
        data = ipc.Codec().encode_frame("done", None)
        frame = len(data).to_bytes(8, "big") + data
        os.write(write_end, frame[:5])
        assert list(receiver.read_frames()) == [("warning", "first"), ("value", b"second")]
        os.write(write_end, frame[5:])
        assert list(receiver.read_frames()) == [("done", None)]
        assert not receiver.is_closed
    finally:
        os.close(write_end)
    assert list(receiver.read_frames()) == []
    assert receiver.is_closed
    os.close(read_end)


def test_frame_above_the_limit_of_the_codec_is_refused() -> None:
    class Limited(ipc.Codec):
        max_frame_bytes = 10

    read_end, write_end = os.pipe()
    try:
        os.write(write_end, (11).to_bytes(8, "big"))
        with pytest.raises(ToolError, match="11 bytes at once, more than 10"):
            list(ipc.FrameReceiver(read_end, Limited()).read_frames())
    finally:
        os.close(read_end)
        os.close(write_end)


def test_messages_are_added_to_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    call = Call(cast("Any", None), {}, PYTHON_CALLER, [], meta={})
    codec = ipc.Codec()
    messages = ipc.ChildMessages(call, codec, lambda _: None)
    assert messages.handle("warning", "careful")
    assert messages.handle("meta", codec.pack({"enforcement": "audit"}, call.warnings.append))
    assert messages.handle("text", ("stderr", "printed"))
    assert messages.handle("progress", (1, None, None))  # without a client it is dropped
    assert not messages.handle("value", b"")
    assert (call.warnings, call.meta) == (["careful"], {"enforcement": "audit"})
    assert capsys.readouterr().err == "printed"


def test_large_values_are_pickled() -> None:
    codec = Codec()
    value = {"a": list(range(500)), "b": ({1: 2.5}, [None, True, b"x"])}
    assert codec.unpack(codec.pack(value, print)) == value


def test_messages_without_a_client_or_metadata_are_dropped() -> None:
    call = make_call()
    messages = ChildMessages(call.replace(meta=None, peer=None), Codec(), lambda _: None)
    codec = Codec()
    assert messages.handle("meta", codec.pack({"a": 1}, print))
    assert messages.handle("progress", (1.0, None, None))
    assert messages.handle("log", ("info", codec.pack("x", print)))
    assert messages.handle("disconnect", None)
    assert not messages.handle("value", None)


def test_question_without_a_client_is_not_answered() -> None:
    answers: list[bytes] = []
    messages = ChildMessages(make_call(), Codec(), answers.append)
    messages.ask({"who": Elicit("Who?", {"type": "object"})})
    assert answers == []


def test_question_that_is_open_at_the_deadline_is_not_answered() -> None:
    class Client(Peer):
        def ask(self, questions: Mapping[str, Question]) -> NoReturn:
            raise TimeoutExceeded("The client did not answer.")

    answers: list[bytes] = []
    messages = ChildMessages(make_call(peer=Client()), Codec(), answers.append)
    messages.ask({"who": Elicit("Who?", {"type": "object"})})
    assert answers == []


def test_text_without_a_stdout_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert ChildMessages(make_call(), Codec(), lambda _: None).handle("text", ("stdout", "x"))


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
