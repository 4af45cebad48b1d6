"""A surface that contains no redaction code sends no secrets."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.serving.toy_surface import exchange

from tooli import ConflictError, Context, SecretInput, Suggestion, Tooli, record_dry_action

SECRET = 'hunter2 "x" päss'
FORMS = (
    SECRET,
    json.dumps(SECRET)[1:-1],
    json.dumps(SECRET, ensure_ascii=False)[1:-1],
    quote(SECRET, safe=""),
    b64encode(SECRET.encode()).decode().rstrip("=")[4:-4],
    "hunter2",
)
ESCAPE = "\x1b]52;c;aGk=\x07\u202e"


def make_app(policy: str = "standard") -> Tooli:
    app = Tooli("toy", version="1", security_policy=policy)

    @app.command(auth=[])
    def result(token: SecretInput[str]) -> dict[str, Any]:
        """Return the secret in several forms."""
        secret = token.reveal()
        encoded = b64encode(secret.encode()).decode()
        return {secret: [secret, {"url": quote(secret, safe="")}], "b64": encoded, "esc": ESCAPE}

    @app.command(auth=[])
    def text(token: SecretInput[str]) -> str:
        """Return the secret as text."""
        return f"{ESCAPE}<{token.reveal()}>"

    @app.command(auth=[])
    def failing(token: SecretInput[str], ctx: Context) -> str:
        """Fail with the secret in every field of the error, and in a warning."""
        secret = token.reveal()
        ctx.warn(f"using {secret}{ESCAPE}")
        suggestion = Suggestion(
            "fix", f"use {secret}", example=f"toy {secret}", argv=["toy", secret]
        )
        raise ConflictError(
            f"bad {secret}{ESCAPE}",
            field=secret,
            details={secret: [secret]},
            suggestion=suggestion,
        )

    @app.command(auth=[])
    def crashing(token: SecretInput[str]) -> str:
        """Crash with the secret in the message."""
        raise RuntimeError(f"bad {token.reveal()}")

    @app.command(auth=[])
    def items(token: SecretInput[str]) -> Iterator[dict[str, str]]:
        """Stream the secret, then fail with it."""
        for number in range(3):
            yield {"n": f"{number} {token.reveal()}{ESCAPE}", token.reveal(): "key"}
        raise ConflictError(f"no more {token.reveal()}")

    @app.command(auth=[])
    async def async_items(token: SecretInput[str]) -> AsyncIterator[str]:
        """Stream the secret from async code."""
        yield f"{token.reveal()}{ESCAPE}"

    @app.command(auth=[])
    def listed(token: SecretInput[str]) -> list[str]:
        """Return a list, which the surface asks for as a stream."""
        return [token.reveal(), ESCAPE]

    @app.command(auth=[])
    def talking(token: SecretInput[str], ctx: Context) -> str:
        """Log, report progress and ask with the secret."""
        secret = token.reveal()
        ctx.log(f"log {secret}{ESCAPE}", level="error")
        ctx.log({"data": [secret]}, level="error")  # type: ignore[arg-type]
        ctx.report(1, 2, f"progress {secret}{ESCAPE}")
        for _ in ctx.progress([1], label=secret):
            pass
        ctx.elicit(f"question {secret}", {"type": "object", "properties": {secret: {}}})
        ctx.confirm(f"confirm {secret}")
        return "done"

    @app.command(auth=[])
    def printing(token: SecretInput[str]):
        """Print the secret."""
        print(f"printed {token.reveal()}{ESCAPE}")

    @app.command(auth=[])
    def print_and_fail(token: SecretInput[str]):
        """Print the secret, then fail."""
        print(f"printed {token.reveal()}{ESCAPE}")
        raise ConflictError("failed")

    @app.command(auth=[])
    def planning(token: SecretInput[str]) -> str:
        """Plan actions with the secret."""
        if record_dry_action("send", token.reveal(), details={"to": token.reveal()}):
            return f"would send {token.reveal()}"
        return "sent"

    return app


REQUESTS: dict[str, dict[str, Any]] = {
    **{name: {"tool": name} for name in ("result", "text", "failing", "crashing", "talking")},
    **{name: {"tool": name} for name in ("printing", "print_and_fail", "listed")},
    "stream": {"tool": "items", "stream": True},
    "stream as a document": {"tool": "items"},
    "async stream": {"tool": "async_items", "stream": True},
    "list as a stream": {"tool": "listed", "stream": True},
    "dry run": {"tool": "planning", "options": {"dry_run": True}},
    "cut to a budget": {"tool": "text", "options": {"max_bytes": 300}},
}


@pytest.mark.parametrize("policy", ["standard", "strict"])
@pytest.mark.parametrize("name", REQUESTS)
def test_no_secret_is_sent(name: str, policy: str) -> None:
    request = {**REQUESTS[name], "arguments": {"token": SECRET}}
    lines = exchange(make_app(policy), request)
    text = b"\n".join(lines).decode()
    for form in FORMS:
        assert form not in text
    for sequence in (ESCAPE, json.dumps(ESCAPE)[1:7], "\u202e"):
        assert sequence not in text
    assert "***" in text, "the secret was not part of the output"


def test_every_kind_of_message_was_sent() -> None:
    lines = exchange(make_app(), {"tool": "talking", "arguments": {"token": SECRET}})
    kinds = [next(iter(json.loads(line))) for line in lines]
    assert kinds == ["log", "log", "progress", "progress", "question", "question", "answer"]


def test_items_are_streamed_one_by_one() -> None:
    request = {"tool": "items", "stream": True, "arguments": {"token": "secret-word"}}
    *items, answer = map(json.loads, exchange(make_app(), request))
    assert [item["item"]["n"] for item in items] == ["0 ***", "1 ***", "2 ***"]
    assert answer["answer"]["error"]["message"] == "no more ***"


def test_rejected_calls_send_no_secret_or_control_character() -> None:
    unknown, invalid = exchange(
        make_app("strict"),
        {"tool": f"resul{ESCAPE}"},
        {"tool": "result", "arguments": {"token": ["AKIAIOSFODNN7EXAMPLE"]}},
    )
    assert json.loads(unknown)["answer"]["error"]["code"] == "E1001"
    assert "\u202e" not in unknown.decode()
    assert json.loads(invalid)["answer"]["ok"] is False
    assert b"AKIA" not in invalid


def test_surface_contains_no_redaction_code() -> None:
    code = (Path(__file__).parent / "toy_surface.py").read_text()
    body = code.partition('"""\n\nfrom')[2]
    assert not any([word in body for word in ("redact", "sanit", "secret", "clean")])
