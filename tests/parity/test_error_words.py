"""Errors speak the language of the caller: flags on a command line only, requests over HTTP only.

Each situation makes the framework raise an error. Every code has a row in one of the tables.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel
from tests.http.asgi_client import AsgiClient
from tests.parity.error_states import ELSEWHERE, STATES

from tooli import Identifier, Option, StdinOr, Tooli, Within
from tooli.annotations import Destructive, ReadOnly
from tooli.errors import ERROR_CODES
from tooli.pipeline.dry_run_recorder import dry_run_support, record_dry_action
from tooli.testing import Case
from tooli.testing.app_interfaces import interfaces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tooli.core.protocols import JsonObject
    from tooli.testing.app_interfaces import Interface

NAMES = ("call", "cli", "http", "mcp", "mcp-stateless")


class Row(BaseModel):
    size: int


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command(annotations=Destructive)
    def delete(path: str, depth: int = 1) -> str:
        """Delete."""
        return path

    @app.command(annotations=ReadOnly, paginated=True)
    def rows(kind: Literal["small", "large"] = "small") -> list[Row]:
        """List rows."""
        return [Row(size=1)]

    @app.command(annotations=ReadOnly)
    def read(
        data: Annotated[StdinOr[str] | None, Option()] = None,
        name: Annotated[str, Option(), Identifier] = "n",
        file: Annotated[Path, Option(), Within("/srv")] = Path("/srv/x"),
    ) -> str:
        """Read."""
        return ""

    @app.command(annotations=Destructive)
    @dry_run_support
    def move(path: str) -> str:
        """Move."""
        return "moved" if not record_dry_action("move", path) else ""

    @app.command(annotations=ReadOnly, rate_limit="1/minute")
    def limited() -> str:
        """Answer once."""
        return ""

    @app.command(requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return ""

    @app.command(danger_level="forbidden")
    def forbidden() -> None:
        """Do what is forbidden."""

    @app.command(sunset="2020-01-31", deprecated="use rows")
    def old() -> None:
        """Do it the old way."""

    @app.command()
    def broken(kind: str = "error") -> None:
        """Fail."""
        if kind == "error":
            raise ValueError("no")
        if kind == "permission":
            raise PermissionError(13, "no", "/x")
        raise SystemExit(3)

    @app.command(timeout=0.2)
    async def slow() -> None:
        """Wait."""
        import asyncio

        await asyncio.sleep(30)

    return app


SITUATIONS: dict[str, Sequence[Case]] = {
    "E1001": [Case("delet", {"path": "x"})],
    "E1002": [Case("delete", {"depth": 3}, {"dry_run": True})],
    "E1003": [Case("rows", {"kind": "smal"}, {"limit": 2})],
    "E1004": [Case("delete", {"path": "x", "deep": 3}, {"dry_run": True})],
    "E1007": [Case("rows", {}, {"limit": "x"})],
    "E1007 timeout": [Case("rows", {}, {"timeout": -1})],
    "E1007 size": [Case("rows", {}, {"max_tokens": 3})],
    "E1010": [Case("delete", {"path": "x"})],
    "E1030": [Case("read", {"name": "a\x07b"})],
    "E1031": [Case("read", {"file": "/etc/passwd"})],
    "E1033": [Case("read", {"data": "http://127.0.0.1/x"})],
    "E1035": [Case("read", {"data": "-"})],
    "E1040": [Case("rows", {}, {"filter": "siez > 3"})],
    "E1041": [Case("rows", {}, {"fields": "siez"})],
    "E1042": [Case("rows", {}, {"cursor": "nonsense"})],
    "E1051": [Case("move", {"path": "x"}, {"apply": "nonsense", "yes": True})],
    "E2000": [Case("forbidden")],
    "E2030": [Case("broken", {"kind": "permission"})],
    "E2101": [Case("pay", {"amount": 3})],
    "E3041": [Case("old")],
    "E3050": [
        Case("move", {"path": "a"}, {"yes": True, "idempotency_key": "k"}),
        Case("move", {"path": "b"}, {"yes": True, "idempotency_key": "k"}),
    ],
    "E4001": [Case("broken", {"kind": "exit"})],
    "E4029": [Case("limited"), Case("limited")],
    "E4031": [Case("broken", {"kind": "permission"})] * 12,
    "E4050": [Case("slow")],
    "E5000": [Case("broken")],
}

FLAG = re.compile(r"(?<![\w-])--[a-z]")
LINE = re.compile(r"\bshop [a-z]")
REQUEST = re.compile(r"(POST|GET) /|\?[a-z_]+=")
PYTHON = re.compile(r"\bapp\.|\b[a-z_]+=True\b")
MEMBER = re.compile(r'"[a-z_]+": ?true')
FOREIGN = {
    "cli": (REQUEST, PYTHON, MEMBER),
    "http": (FLAG, LINE, PYTHON, MEMBER),
    "mcp": (FLAG, LINE, PYTHON, REQUEST),
    "python": (FLAG, LINE, REQUEST, MEMBER),
}
"""What an error does not contain on each interface."""


def answer(situation: str, interface: Interface) -> JsonObject:
    """Send the calls of a situation; return the error of the last one."""
    envelope: JsonObject = {}
    for case in SITUATIONS[situation]:
        envelope = interface.send_case(case).envelope
    return envelope.get("error", {})


SERVERS_ONLY = ("E4029", "E4031", "E1035")
"""Codes of limits for remote callers and agents, and of a stdin that only a command line has."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_error_is_in_the_words_of_the_caller(situation: str, name: str) -> None:
    code = situation[:5]
    interface = next(found for found in interfaces(make_app()) if found.name == name)
    error = answer(situation, interface)
    if code in SERVERS_ONLY and interface.surface != "mcp" and error.get("code") != code:
        pytest.skip("it is another answer on this interface")
    assert error["code"] == code, error
    check_words(error, interface.surface)


@pytest.mark.parametrize("name", ["call", "http", "mcp", "mcp-stateless"])
@pytest.mark.parametrize("situation", ["E1003", "E1004", "E1010", "E1040", "E1051", "E3050"])
def test_model_gets_the_arguments_that_work(situation: str, name: str) -> None:
    interface = next(found for found in interfaces(make_app()) if found.name == name)
    suggestion = answer(situation, interface)["suggestion"]
    assert isinstance(suggestion["arguments"], dict)
    assert json.loads(json.dumps(suggestion["arguments"])) == suggestion["arguments"]


# ------------------------------------------------------------------ codes that need a state


def check_words(error: JsonObject, surface: str) -> None:
    """Check that an error has no words of another interface."""
    suggestion = error.get("suggestion", {})
    assert ("argv" in suggestion) <= (surface == "cli")
    texts = [error["message"], suggestion.get("fix", ""), suggestion.get("example") or ""]
    if suggestion.get("action") == "ask_human":  # a human runs this command at a terminal
        texts[1] = re.sub(r"a human to run `[^`]+`", "", texts[1])
    for pattern in FOREIGN[surface]:
        assert not pattern.search(" ".join(texts)), (pattern.pattern, error)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("code", STATES)
def test_error_of_a_state_is_in_the_words_of_the_caller(
    code: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, (*before, last), change, applies_plan = STATES[code](tmp_path, monkeypatch)
    interface = next(found for found in interfaces(app) if found.name == name)
    if last.argv is not None and not interface.accepts_argv:
        pytest.skip("a command line only")
    if code == "E2102" and name == "mcp-stateless":
        pytest.skip("the question is the answer: the client asks, and repeats the call")
    answers = [interface.send_case(case).envelope for case in before]
    change()
    if applies_plan:
        last = last.replace(options={**last.options, "apply": answers[-1]["result"]["token"]})
    error = interface.send_case(last).envelope.get("error", {})
    assert error.get("code") == code, error
    check_words(error, interface.surface)


class HttpCase(NamedTuple):
    """A request that is refused before a call is made of it."""

    method: str = "POST"
    path: str = "/tools/rows"
    body: bytes | None = b"{}"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    query: bytes = b""
    host: bytes = b"localhost"
    settings: Mapping[str, Any] = {}


HTTP_CASES = {
    "E1400": HttpCase("GET", body=None, query=b"kind=%FF"),
    "E1404": HttpCase(path="/nowhere"),
    "E1405": HttpCase("PUT"),
    "E1408": HttpCase(settings={"chunk_timeout": 0.01}),
    "E1413": HttpCase(body=b" " * 99, settings={"max_body": 9}),
    "E1415": HttpCase(headers=((b"content-type", b"text/plain"),)),
    "E1421": HttpCase(host=b"example.org"),
    "E2401": HttpCase(settings={"token": "secret"}),
    "E2403": HttpCase(headers=((b"origin", b"https://example.org"),)),
}
FOR_OPERATORS = ("E1421", "E2403")
"""Codes whose suggestion says how the server is started: its flags are the right words."""


@pytest.mark.parametrize("code", HTTP_CASES)
async def test_refused_request_is_in_the_words_of_http(code: str) -> None:
    case = HTTP_CASES[code]
    client = AsgiClient(make_app().asgi(mcp=False, **case.settings))
    if code != "E1408":
        client.send_body(case.body or b"")
    headers = [(b"host", case.host), *case.headers]
    if case.body is not None and b"content-type" not in dict(headers):
        headers.append((b"content-type", b"application/json"))
    await asyncio.wait_for(client.start(case.method, case.path, headers, case.query), 120)
    error = client.json()["error"]
    assert error["code"] == code
    if code not in FOR_OPERATORS:
        check_words(error, "http")


def test_every_code_has_a_row() -> None:
    rows = [*[situation[:5] for situation in SITUATIONS], *STATES, *HTTP_CASES, *ELSEWHERE]
    assert set(rows) == ERROR_CODES.keys()
    for place in ELSEWHERE.values():
        assert (Path(__file__).parents[2] / place.rpartition(" ")[2]).exists()
