"""Values from a sandbox keep their types, and forged messages have no effect."""

from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, cast
from uuid import UUID

import pydantic
import pytest
from tests.execution import forged_messages
from tests.execution.calls import make_call
from tests.pipeline import test_context

from tooli import Context, Next, Page, Partial, Tooli
from tooli.core.call import PYTHON_CALLER, Call, Failed, Ok, Options
from tooli.core.peer import Elicit, Question, Roots, Sample
from tooli.core.result_types import Audio, Embedded, Image, Link, Message, NextStep
from tooli.errors import InternalError, NotFoundError, ToolError, ToolRuntimeError
from tooli.execution import ipc, safe_codec, untrusted_messages
from tooli.execution.ipc import FrameReceiver
from tooli.execution.monitor.audit_hook import MAX_VIOLATIONS, Monitor
from tooli.execution.monitor.monitored_runner import RECORDED_KEY, VIOLATIONS_KEY, MonitoredRunner
from tooli.execution.safe_codec import SafeCodec
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.execution.untrusted_messages import UntrustedMessages
from tooli.pipeline.drivers import run
from tooli.pipeline.partial_results import read_failures
from tooli.storage.audit_log import UnwrittenLogWarning
from tooli.text.json_encoder import encode

SUPPORT = detect_sandbox_support()
needs_sandbox = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))


# ------------------------------------------------------------------ forged messages


@cache
def forged() -> dict[str, dict[str, Any]]:
    """Return the result of every forged message, from a process whose classes may be changed."""
    program = [sys.executable, forged_messages.__file__]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_sandbox
@pytest.mark.parametrize("name", [*forged_messages.FORGERIES, *forged_messages.FALSE_MESSAGES])
def test_forged_message_has_no_effect(name: str) -> None:
    found = forged()[name]
    assert not found["touched"], found
    assert not found["changed"], found
    assert forged_messages.SECRET not in json.dumps(found)
    outcome = found["outcome"]
    assert outcome["meta"]["tool"] == "forging.forge"
    assert outcome["meta"]["enforcement"] == SUPPORT.level
    assert not {"caller_id", "violations", "recorded"} & set(outcome["meta"])
    if name in forged_messages.FORGERIES:
        assert outcome["error"]["code"] == "E4051", found
        assert "it sent an invalid message" in outcome["error"]["message"]


@needs_sandbox
def test_false_but_valid_messages_are_limited() -> None:
    found = {name: one["outcome"] for name, one in forged().items()}
    assert found["warning_is_a_number"]["meta"]["warnings"][0] == "5"
    warnings = found["too_many_warnings"]["meta"]["warnings"]
    assert warnings[:3] == ["again"] * 3
    assert "omitted" in warnings[3]
    assert warnings[4] == "996 more warnings that begin with 'again'"
    assert warnings[5:] == ["1 secret was hidden in the result"]
    assert len(found["long_warning"]["meta"]["warnings"][0]) == 2_000
    assert found["error_with_exit_code_zero"]["error"]["code"] == "E1000"


def test_safe_codec_does_not_load_pickles(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    data = ipc.dumps(forged_messages.Bomb(str(folder)))
    for invalid in (data, ipc.dumps([1]), pickle.dumps(1), b"", b"j", b"j{", b"j\xff"):
        with pytest.raises(ToolError, match="it sent an invalid message"):
            safe_codec.loads(invalid)
    assert not folder.exists()
    ipc.Codec().unpack(data)
    assert folder.exists()


# ------------------------------------------------------------------ values

VALUES: list[Any] = [
    *(None, True, 1, -(10**40), 1.5, "text", "\ud800", "ü", ""),
    *([], {}, (), set(), b"", [1, [2, (3,)]], {"a": {"b": (1, "c")}}),
    *({1, 2}, frozenset({"a"}), b"\0\xff", bytearray(b"x"), complex(1, -0.5)),
    *({1: "a", (2, 3): "b", None: 1}, {"!": 1}, {"!": ["path", "/"]}, {"a": {"!": [{}]}}),
    *(date(2026, 1, 2), time(1, 2, 3, 4), time(1, tzinfo=timezone.utc, fold=1)),
    *(datetime(2026, 1, 2, 3, 4, 5, 6), datetime(2026, 1, 2, tzinfo=timezone.utc, fold=1)),
    datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=-3, seconds=7), "THERE")),
    *(timedelta(days=-1, microseconds=1), timezone.utc, timezone(timedelta(hours=1), "HERE")),
    *(Decimal("1.50"), Decimal("-Infinity"), UUID(int=7), Path("/x/y"), PurePosixPath("x")),
    *(Image(b"\0"), Audio(b"\1", "audio/mp3"), Embedded("a:b", b"x"), Embedded("a:b", "x", "t/p")),
    *(Link("a:b", "name"), Message("hello"), Message(Image(b"\0"), "assistant")),
    *(NextStep("run", {"a": Path("x")}, "because"), Elicit("how?", {"type": "object"}), Roots()),
    Sample([{"role": "user"}], 10, "be brief"),
    {"day": date(2026, 1, 2), "of": {1, 2}, "path": [Path("/x")], "raw": b"\0"},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_value_keeps_its_type(value: Any) -> None:
    decoded = safe_codec.loads(safe_codec.dumps(value))
    assert decoded == value
    assert type(decoded) is type(value)
    assert repr(decoded) == repr(value)


def test_nan_round_trip() -> None:
    assert math.isnan(safe_codec.loads(safe_codec.dumps(math.nan)))


class Note(pydantic.BaseModel):
    """A result of a class that has no kind."""

    number: int
    day: date


class Word(str):
    """A subclass of str."""

    __slots__ = ()


def test_values_of_unsupported_types_become_json() -> None:
    note, as_json = Note(number=1, day=date(2026, 1, 2)), {"number": 1, "day": "2026-01-02"}
    page = safe_codec.loads(safe_codec.dumps(Page([note], next_cursor="2", total=5)))
    assert (page.items, page.next_cursor, page.total) == ([as_json], "2", 5)
    next_result = Next([note], "run", {"path": Path("x")}, why="because")
    found = safe_codec.loads(safe_codec.dumps(next_result))
    assert (found.result, found.steps) == ([as_json], next_result.steps)
    mixed = {"day": date(2026, 1, 2), "note": note, "word": Word("w"), "!": {"!": Word("!")}}
    assert safe_codec.loads(safe_codec.dumps(mixed)) == {**mixed, "note": as_json}


def test_unsupported_part_becomes_json() -> None:
    from zoneinfo import ZoneInfo

    warnings: list[str] = []
    moment = {"at": datetime(2026, 1, 2, tzinfo=ZoneInfo("UTC"))}
    assert safe_codec.loads(safe_codec.dumps(moment, warnings.append)) == {
        "at": "2026-01-02T00:00:00Z"
    }
    assert warnings == []


def test_recursive_part_is_left_out() -> None:
    warnings: list[str] = []
    value: list[Any] = [1]
    value.append(value)
    assert safe_codec.loads(safe_codec.dumps(value, warnings.append)) == [1, None]
    assert warnings == ["a part that contains itself was left out"]


def test_partial_round_trip() -> None:
    failures = [("a", NotFoundError("gone")), ("b", OSError("no disk"))]
    partial = read_failures(Partial([Path("x")], failed=failures))
    found = safe_codec.loads(safe_codec.dumps(partial))
    assert found.items == [Path("x")]
    assert [failure.item for failure in found.failed] == ["a", "b"]
    assert [type(failure.error) for failure in found.failed] == [NotFoundError, InternalError]
    assert [failure.error.is_translated for failure in found.failed] == [False, True]


@pytest.mark.parametrize("entry", [["a", {}, False], ["a", 1, False], ["a"], 7])
def test_forged_failure_is_refused(entry: Any) -> None:
    forged = b"j" + json.dumps({"!": ["partial", [], [entry]]}, separators=(",", ":")).encode()
    with pytest.raises(ToolError) as failure:
        SafeCodec().unpack(forged)
    assert failure.value.code == "E4051"


@needs_sandbox
def test_isolated_command_returns_a_partial_result() -> None:
    app = Tooli("isolated")

    @app.command(isolation="required")
    def fetch() -> Partial[int]:
        return Partial([1], failed=[("a", NotFoundError("gone"))])

    found = app.call("fetch")
    assert (found.result, found.error and found.error.code) == ([1], "E4070")


@needs_sandbox
def test_isolated_command_keeps_the_types_of_values() -> None:
    app = Tooli("isolated")
    value = {"day": date(2026, 1, 2), "sum": Decimal("1.5"), "of": {1, 2}, "path": Path("/x")}

    @app.command(isolation="required")
    def give() -> Any:
        return value

    @app.command(isolation="required")
    def pages() -> Page[Note]:
        return Page([Note(number=1, day=date(2026, 1, 2))], total=1)

    assert app.call("give").result == value
    assert app.call("pages").result == [{"number": 1, "day": "2026-01-02"}]


@needs_sandbox
def test_result_above_the_frame_limit_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Tooli("isolated")
    monkeypatch.setattr(safe_codec, "MAX_FRAME_BYTES", 100_000)

    @app.command(isolation="required")
    def repeat(size: int) -> str:
        return "x" * size

    assert app.call("repeat", size=50_000).ok
    error = app.call("repeat", size=200_000).error
    assert error is not None
    assert error.code == "E4000"
    assert "one by one" in str(error.suggestion)


class ErrorWithSideEffects(ToolError):
    """An error class of an app with side effects in its constructor."""

    category, code = "runtime", "E4991"
    made: list[str] = []

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message, **more)
        ErrorWithSideEffects.made.append(message)


def test_error_does_not_instantiate_classes_of_the_app() -> None:
    fields = {"code": "E4991", "category": "runtime", "message": "m", "is_retryable": True}
    error = safe_codec.SafeCodec().unpack_error(("ErrorWithSideEffects", fields, None))
    assert isinstance(error, ToolError)
    assert (error.code, error.category, error.is_retryable) == ("E4991", "runtime", True)
    assert ErrorWithSideEffects.made == []


# ------------------------------------------------------------------ a client


class Client(test_context.Client):
    """A client that accepts every question and records all messages."""

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        self.received.extend(questions.values())
        return {name: {"action": "accept", "content": {"name": "Ada"}} for name in questions}


def run_with_client(fn: Callable[[Context], Any]) -> tuple[Ok | Failed, list[Any]]:
    """Run an isolated command with a client; return the outcome and the messages to the client."""
    app, client = Tooli("isolated"), Client()

    @app.command(isolation="required")
    def talk(ctx: Context) -> Any:
        return fn(ctx)

    tool = app.find("talk")
    assert tool is not None
    call, stages = app.prepare(Call(tool, {}, PYTHON_CALLER, [], Options(), peer=client))
    return run(call, stages), client.received


@needs_sandbox
def test_questions_progress_and_logs_reach_the_client() -> None:
    def talk(ctx: Context) -> Any:
        ctx.report(1, 2.5, "half")
        ctx.log("going on", level="warning")
        return ctx.ask({"who": Elicit("Who?", {"type": "object"})})

    outcome, received = run_with_client(talk)
    assert outcome == Ok({"who": {"action": "accept", "content": {"name": "Ada"}}})
    question = Elicit("Who?", {"type": "object"})
    assert received == [(1, 2.5, "half"), ("warning", "going on"), question]


@needs_sandbox
@pytest.mark.parametrize(
    "frame",
    [
        forged_messages.frame("progress", ["far", None, None]),
        forged_messages.frame("log", [5, forged_messages.packed("x")]),
        forged_messages.frame("log", ["info", 5]),
        forged_messages.frame("ask", forged_messages.packed({"who": "Ada"})),
        forged_messages.frame("ask", forged_messages.packed(["who"])),
    ],
    ids=["progress", "level", "log", "question", "questions"],
)
def test_forged_messages_do_not_reach_the_client(frame: bytes) -> None:
    outcome, received = run_with_client(lambda _: forged_messages.write_all([frame], endless=False))
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "E4051"
    assert received == []


def test_printed_text_is_limited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(untrusted_messages, "MAX_FRAME_BYTES", 10)
    warnings: list[str] = []
    call = Call(cast("Any", None), {}, PYTHON_CALLER, warnings)
    received = untrusted_messages.UntrustedMessages(call, safe_codec.SafeCodec(), lambda _: None)
    for text in ("12345", "67890", "beyond", "and more"):
        assert received.handle("text", ["stdout", text])
    assert capsys.readouterr().out == "1234567890"
    assert warnings == ["the command printed too much; the rest is omitted"]


# ------------------------------------------------------------------ limits

COLLIDING = [n * (2**61 - 1) for n in range(1, 60_000)]


@pytest.mark.parametrize(
    "value",
    [
        {"!": ["set", COLLIDING]},
        {"!": ["frozenset", COLLIDING]},
        {"!": ["dict", [[n, 0] for n in COLLIDING]]},
        {"!": ["set", [float(n << 60) for n in range(1, 10_000)]]},
        {"!": ["set", [{"!": ["tuple", [n]]} for n in COLLIDING]]},
        {"!": ["set", [{"!": ["decimal", str(n)]} for n in COLLIDING]]},
        {"!": ["set", [{"!": ["uuid", f"{n:032x}"]} for n in COLLIDING]]},
        {"!": ["set", [{"!": ["timedelta", n, 0, 0]} for n in range(10_000)]]},
        {"!": ["set", [{"!": ["frozenset", [n]]} for n in range(10_000)]]},
        {"!": ["set", [{"!": ["tuple", ["x" * 10_000, n]]} for n in COLLIDING[:1000]]]},
        {"!": ["set", [{"!": ["tuple", [*[1] * 100, n]]} for n in COLLIDING[:1000]]]},
        [{"!": ["set", COLLIDING[:1500]]}, {"!": ["set", COLLIDING[:1500]]}],
    ],
    ids=[
        *("set", "frozenset", "dict", "floats", "tuples", "decimals", "uuids", "timedeltas"),
        *("frozensets", "long_text", "long_tuples", "two_sets"),
    ],
)
def test_members_with_predictable_hashes_are_limited(value: Any) -> None:
    with pytest.raises(ToolRuntimeError, match="too many members"):
        safe_codec.loads(encoded(value))


def test_large_sets_of_text_are_decoded() -> None:
    value = {str(n) for n in range(10_000)}
    assert safe_codec.loads(safe_codec.dumps(value)) == value


def test_large_set_of_numbers_becomes_a_list() -> None:
    value = set(range(safe_codec.MAX_HASHED_PARTS + 1))
    assert sorted(safe_codec.loads(safe_codec.dumps(value))) == sorted(value)
    smaller = set(range(1000))
    assert safe_codec.loads(safe_codec.dumps(smaller)) == smaller


@pytest.mark.parametrize("part", ["{}", "[]", '{"":0}', "[0]", "1.5", '"ab"', '{"!":["roots"]}'])
def test_memory_of_decoded_frames_is_limited(part: str) -> None:
    data = b'j["value",[' + ",".join([part] * 100_000).encode() + b"]]"
    with pytest.raises(ToolRuntimeError, match="too many parts"):
        SafeCodec().decode_frame(data)


def test_memory_of_decoded_values_is_limited() -> None:
    with pytest.raises(ToolRuntimeError, match="too many parts") as caught:
        safe_codec.loads(b"j[" + b"{}," * 2_700_000 + b"{}]")
    assert caught.value.code == "E4051"
    with pytest.raises(ToolRuntimeError, match="too many parts") as caught:
        safe_codec.dumps([[] for _ in range(300_000)])
    assert "one by one" in str(caught.value.suggestion)


def test_brackets_in_text_are_not_counted() -> None:
    text = '{"\\[],' * 400_000
    assert safe_codec.loads(safe_codec.dumps([text, text])) == [text, text]


def test_text_ends_at_the_first_quote_that_is_not_escaped() -> None:
    for texts in (["\\", "[" * 400_000], ['\\"', "," * 2_000_000], ['"\\"', "", "{" * 400_000]):
        assert safe_codec.loads(safe_codec.dumps(texts)) == texts
    with pytest.raises(ToolRuntimeError, match="too many parts"):
        safe_codec.loads(b'j["\\\\",' + b"[]," * 400_000 + b'""]')


@pytest.mark.parametrize(
    "data",
    [
        b'"' + b'\\"' * 1_000_000,
        b'"' + b"\\" * 2_000_000,
        b'""' * 5_000_000,
        b'"' * 5_000_001,
        b'"\\"' * 1_000_000,
        b"\\" * 2_000_001,
    ],
    ids=["quotes", "backslashes", "empty", "odd", "mixed", "no text"],
)
def test_malformed_text_is_refused_in_linear_time(data: bytes) -> None:
    """The calling process cannot stop the call at its deadline while it decodes a message.

    With a scan from each quote to the end this test would take hours.
    """
    for brackets in (b"[" * 30_000, b"[" * 400_000):
        for limit in (safe_codec.MAX_FRAME_PARTS_BYTES, safe_codec.MAX_VALUE_PARTS_BYTES):
            with pytest.raises(ToolRuntimeError, match="invalid message") as caught:
                safe_codec.loads(b"j" + brackets + data, limit)
            assert caught.value.code == "E4051"


# ------------------------------------------------------------------ invalid messages


def encoded(value: Any) -> bytes:
    return b"j" + encode(value, [])


def test_valid_message() -> None:
    value = {"!": ["decimal", "1"]}
    assert SafeCodec().decode_frame(encoded(["value", value])) == ("value", Decimal(1))


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
    [
        *({"!": 3}, {"!": ["decimal"]}, {"!": ["decimal", "1"], "a": 1}, {"!": ["decimal", []]}),
        *({"!": ["unknown", "1"]}, {"!": ["next", 1, ["text"]]}),
    ],
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


def test_exit_code_of_an_untrusted_process_is_kept() -> None:
    error = SafeCodec().unpack_error(("exit", 3, None))
    assert isinstance(error, SystemExit) and error.code == 3


def test_unknown_kinds_of_messages_are_refused() -> None:
    messages = untrusted_messages.UntrustedMessages(make_call(meta={}), SafeCodec(), lambda _: None)
    with pytest.raises(ToolRuntimeError, match="unknown message"):
        messages.handle("run", None)


def test_number_of_warnings_is_limited() -> None:
    call = make_call(meta={})
    messages = untrusted_messages.UntrustedMessages(call, SafeCodec(), lambda _: None)
    for number in range(untrusted_messages.MAX_ENTRIES + 5):
        assert messages.handle("warning", str(number))
    assert len(call.warnings) == untrusted_messages.MAX_ENTRIES
    assert "the rest is omitted" in call.warnings[-1]


def make_monitored_messages() -> UntrustedMessages:
    call = make_call(meta={}, runner=MonitoredRunner(Monitor(None)))
    return UntrustedMessages(call, SafeCodec(), lambda answer: None)


@pytest.mark.parametrize("key", [VIOLATIONS_KEY, RECORDED_KEY])
def test_reported_violations_cannot_be_withdrawn(key: str) -> None:
    messages, codec = make_monitored_messages(), SafeCodec()
    first, second = ["fs:read", "/etc/passwd", "E2003"], ["net", "h:1", "E2005"]
    for rows in ([first], [], [["fs:read", "/etc/passwd", "E2005"]], [first, second]):
        messages.handle("meta", codec.pack({key: rows}, str))
    assert messages.call.meta is not None
    changed = ["fs:read", "/etc/passwd", "E2005"]
    assert messages.call.meta[key] == [first, changed, second]


def test_number_of_violations_in_several_messages_is_limited() -> None:
    messages, codec = make_monitored_messages(), SafeCodec()
    for start in (0, 700, 1400):
        rows = [["net", f"h:{number}", "E2003"] for number in range(start, start + 700)]
        messages.handle("meta", codec.pack({VIOLATIONS_KEY: rows}, str))
    assert messages.call.meta is not None
    targets = [target for _, target, _ in messages.call.meta[VIOLATIONS_KEY]]
    assert targets == [f"h:{number}" for number in range(MAX_VIOLATIONS)]


def test_warnings_of_an_untrusted_process_are_plain_texts() -> None:
    messages = make_monitored_messages()
    messages.handle("warning", UnwrittenLogWarning("the audit log cannot be written: x"))
    assert [type(warning) for warning in messages.call.warnings] == [str]


def test_invalid_parts_of_values_are_refused() -> None:
    with pytest.raises(ValueError, match="not text"):
        safe_codec._make_step(NextStep, "command", {1: 2}, "why")  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        untrusted_messages._validate_violation("fs:read", "/x", "E1001")
    for tagged in ({"!": 3}, {"!": ["Decimal"], "a": 1}):
        with pytest.raises((ValueError, KeyError)):
            safe_codec._ValueBuilder().build(tagged)
