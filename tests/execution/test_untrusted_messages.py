"""Messages of an untrusted process are validated, redacted and sanitized in the calling process."""

from __future__ import annotations

import json
import math
from base64 import b64decode
from typing import Any

import pytest
from tests.execution.calls import make_call
from tests.execution.forged_messages import packed
from tests.pipeline.test_context import Client

from tooli import SecretInput
from tooli.core.call import Call, Options
from tooli.errors import ToolError, ToolRuntimeError
from tooli.execution import safe_codec, untrusted_messages
from tooli.execution.safe_codec import SafeCodec
from tooli.execution.untrusted_messages import UntrustedMessages

SECRET = "s3cr3t-abcdef"
TEXT = f"\x1b[31mtoken is {SECRET} \ud800\u202e"


def data(value: Any) -> bytes:
    """Return a packed value as decode_frame() returns it."""
    return b64decode(packed(value)["!"][1])


def receive(kind: str, payload: Any, *, can_answer: bool = True) -> tuple[list[Any], Call]:
    """Handle one message of a call with a secret; return what the client received."""
    client = Client({"elicitation/create": {}, "sampling/createMessage": {}}, can_answer=can_answer)
    secret = SecretInput(SECRET)
    call = make_call(meta={}, peer=client, secrets=(secret,), policy="standard")
    assert UntrustedMessages(call, SafeCodec(), lambda _: None).handle(kind, payload)
    return client.received, call


def elicit(message: str = "?", schema: Any = None) -> Any:
    return {"!": ["elicit", message, schema or {"type": "object", "properties": {}}]}


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("progress", (1, 2, TEXT)),
        ("log", ("error", data(TEXT))),
        ("log", ("error", data({"a": [TEXT], TEXT: 1}))),
        ("log", (TEXT, data("x"))),
        ("ask", data({"q": elicit(TEXT)})),
        ("ask", data({"q": elicit("?", {"properties": {"a": {"title": TEXT}}})})),
        (
            "ask",
            data(
                {"q": {"!": ["sample", [{"role": "user", "content": TEXT}], 5, TEXT, 0.5, [TEXT]]}}
            ),
        ),
        ("artifact", [TEXT, "file:///a", None]),
        ("artifact", ["a", TEXT, TEXT]),
    ],
)
def test_forged_messages_are_redacted_and_sanitized(kind: str, payload: Any) -> None:
    received, _ = receive(kind, payload)
    sent = json.dumps(received, ensure_ascii=False, allow_nan=False)
    sent.encode()
    assert received and SECRET not in sent
    assert "\x1b" not in sent and "\\u001b" not in sent and "\u202e" not in sent


def test_forged_warnings_are_redacted() -> None:
    filler = "x" * (safe_codec.MAX_TEXT_CHARS - 5)
    for text in (TEXT, filler + SECRET):
        _, call = receive("warning", text)
        assert SECRET[:5] not in call.warnings[0]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("progress", (math.nan, None, None)),
        ("progress", (1, math.inf, None)),
        ("progress", (10**400, None, None)),
        ("progress", (True, None, None)),
        ("progress", (1, None, 5)),
        ("log", (5, data("x"))),
        ("log", ("info", "text")),
        ("ask", data({})),
        ("ask", data({"q": 5})),
        ("ask", data({"q" + chr(27): elicit()})),
        ("ask", data({SECRET: elicit()})),
        ("ask", data({str(n): elicit() for n in range(101)})),
        ("ask", data({"q": elicit("x" * safe_codec.MAX_DATA_BYTES)})),
        ("ask", data({"q": {"!": ["sample", [], 10**400, None, None, []]}})),
        ("artifact", ["a", 5, None]),
        ("artifact", ["a"]),
        ("artifact", None),
        ("meta", data({"artifacts": [{"name": "a"}]})),
        ("meta", data({"artifacts": 5})),
        ("value", [{}]),
        ("item", "text"),
        ("done", "text"),
        ("stream", []),
    ],
)
def test_invalid_messages_end_the_call(kind: str, payload: Any) -> None:
    with pytest.raises(ToolRuntimeError) as caught:
        receive(kind, payload)
    assert caught.value.code == "E4051"


def test_forged_artifacts_of_the_answer_are_limited_and_sanitized() -> None:
    rows = [{"name": TEXT, "uri": f"file:///{n}"} for n in range(200)]
    _, call = receive("meta", data({"artifacts": rows}))
    assert call.meta is not None
    artifacts = call.meta["artifacts"]
    assert len(artifacts) == 100
    assert SECRET not in artifacts[0]["name"]
    assert "\x1b" not in artifacts[0]["name"]


def test_unsupported_questions_are_refused() -> None:
    with pytest.raises(ToolRuntimeError, match="invalid ask"):
        receive("ask", data({"q": elicit()}), can_answer=False)


def test_log_data_is_valid_json() -> None:
    received, _ = receive("log", ("info", data({"a": math.nan, "b": 10**400, "c": "\ud800"})))
    assert received == [("info", {"a": None, "b": str(10**400), "c": "?"})]


def test_large_log_messages_are_omitted() -> None:
    received, _ = receive("log", ("info", data("x" * safe_codec.MAX_DATA_BYTES)))
    assert "omitted" in received[0][1] and len(received[0][1]) < 100


def test_printed_surrogates_are_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    receive("text", ("stdout", "a\ud800b"))
    assert capsys.readouterr().out == "a?b"


def test_number_of_violations_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_messages, "_is_monitored", lambda _: True)
    rows = [["fs:write", f"{n}" + "x" * 20_000, "E2003"] for n in range(1000)]
    _, call = receive("meta", data({"violations": rows}))
    assert call.meta is not None
    stored: Any = call.meta["violations"]
    assert len(stored) == 100 and len(stored[0][1]) == safe_codec.MAX_TEXT_CHARS


def test_report_about_a_plan_is_limited_and_sanitized() -> None:
    row = {"action": TEXT, "target": "t", "after": "0", "forged": "x"}
    report = {"count": 200, "actions": [row] * 200, "state": "1", "forged": "x"}
    call = make_call(meta={}, secrets=(SecretInput(SECRET),), policy="standard")
    call = call.replace(options=Options(apply="p"))
    messages = UntrustedMessages(call, SafeCodec(), lambda _: None)
    assert messages.handle("meta", data({"applied": report}))
    assert call.meta is not None
    applied: Any = call.meta["applied"]
    assert (applied["count"], len(applied["actions"]), applied["state"]) == (200, 100, "1")
    assert applied["actions"][0].keys() == {"action", "target", "after"}
    assert SECRET not in applied["actions"][0]["action"]
    for forged in ([], {"count": 1, "actions": [[]]}, {"count": "x", "actions": []}):
        with pytest.raises(ToolRuntimeError, match="invalid meta"):
            messages.handle("meta", data({"applied": forged}))
    _, other = receive("meta", data({"applied": report}))
    assert other.meta == {}, "the call does not apply a plan"


# ------------------------------------------------------------------ errors

ERROR: dict[str, Any] = {"code": "E4001", "category": "runtime", "message": "m"}
SUGGESTION = {"action": "fix", "fix": "f", "applicability": "maybe_incorrect"}


@pytest.mark.parametrize(
    "fields",
    [
        {"code": "A" * 20_000_000},
        {"code": "E4000\ud800"},
        {"code": "E4000\x1b[31m\n"},
        {"code": ""},
        {"category": "x" * 1000},
        {"suggestion": {**SUGGESTION, "argv": ["x"] * 2000}},
        {"suggestion": {**SUGGESTION, "argv": ["x" * 2_000_000]}},
    ],
    ids=["long", "surrogate", "escape", "empty", "category", "words", "word"],
)
def test_invalid_error_fields_are_refused(fields: dict[str, Any]) -> None:
    error = SafeCodec().unpack_error(("X", {**ERROR, **fields}, None))
    assert isinstance(error, ToolError) and error.code == "E4051"


def test_long_error_fields_are_cut() -> None:
    long = "x" * 1_000_000
    fields = {**ERROR, "message": long, "field": long, "details": {"a": long, "b": long}}
    fields["suggestion"] = {**SUGGESTION, "fix": long, "example": long}
    error = SafeCodec().unpack_error((long, fields, long))
    assert isinstance(error, ToolError) and error.code == "E4001"
    assert len(json.dumps(error.to_dict())) < 5 * safe_codec.MAX_TEXT_CHARS
    assert error.__cause__ is not None and type(error.__cause__).__name__ == "Exception"


def test_large_details_are_left_out_of_a_message() -> None:
    codec = SafeCodec()
    error = ToolRuntimeError("m", details={"rows": [[] for _ in range(200_000)]})
    frame = codec.encode_frame("error", codec.pack_error(error))
    _, payload = codec.decode_frame(frame)
    restored = codec.unpack_error(payload)
    assert isinstance(restored, ToolError) and restored.details is None


def test_exit_values_are_limited() -> None:
    for value in (10**300, None, [1], 1.5):
        error = SafeCodec().unpack_error(("exit", value, None))
        assert isinstance(error, ToolError) and error.code == "E4051"
    text = SafeCodec().unpack_error(("exit", "x" * 1_000_000, None))
    assert isinstance(text, SystemExit) and len(str(text.code)) == safe_codec.MAX_TEXT_CHARS
