"""Invalid input on every interface: errors are short, and checking stops early."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import json
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal

import pydantic
import pytest
from tests.http.asgi_client import post

from tooli import SecretInput, Tooli
from tooli.annotations import Destructive
from tooli.core.tool import MAX_PROBLEMS
from tooli.pipeline import suggestions
from tooli.serving.dispatcher import ToolDispatcher
from tooli.stages import rate_limit
from tooli.storage.audit_log import get_log_path
from tooli.storage.audit_reader import read_last_records
from tooli.testing import Case, invoke
from tooli.testing.app_interfaces import interfaces
from tooli.text import redact

MAX_ANSWER_BYTES = 25_000
COUNT = 3000
LONG = "x" * 200_000

checked: list[object] = []


def count_check(value: object) -> object:
    checked.append(value)
    return value


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Order(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    items: list[int] = []
    parts: list[int | float | dt.date | dict[str, int]] = []
    by_name: dict[str, int] = {}


def make_app(policy: str = "standard") -> Tooli:
    app = Tooli("sized", security_policy=policy)

    @app.command(auth=["orders"])
    def ints(items: list[int]) -> int:
        return len(items)

    @app.command()
    def counted(items: list[Annotated[int, pydantic.BeforeValidator(count_check)]]) -> int:
        return len(items)

    @app.command()
    def colors(items: list[Color]) -> int:
        return len(items)

    @app.command()
    def texts(items: list[str]) -> int:
        return len(items)

    @app.command()
    def order(order: Order) -> int:
        return len(order.items)

    @app.command()
    def orders(orders: list[Order]) -> int:
        return len(orders)

    @app.command()
    def mapping(values: dict[str, int]) -> int:
        return len(values)

    @app.command()
    def one(
        number: int = 0,
        color: Color = Color.RED,
        kind: Literal["a", "b"] = "a",
        price: Decimal = Decimal(1),
        day: dt.date | None = None,
        length: dt.timedelta | None = None,
        either: int | float | dt.date = 1,
    ) -> int:
        return number

    return app


WRONG: dict[str, tuple[str, Mapping[str, Any]]] = {
    "list": ("ints", {"items": ["x"] * COUNT}),
    "end of a list": ("ints", {"items": [*[1] * COUNT, *["x"] * COUNT]}),
    "choices": ("colors", {"items": ["x"] * COUNT}),
    "control characters": ("texts", {"items": ["\x07"] * COUNT}),
    "list in a model": ("order", {"order": {"items": ["x"] * COUNT}}),
    "unions in a model": ("order", {"order": {"parts": ["x"] * COUNT}}),
    "dict in a model": ("order", {"order": {"by_name": {f"k{i}": "x" for i in range(COUNT)}}}),
    "extra fields": ("order", {"order": {f"k{i}": 1 for i in range(COUNT)}}),
    "models": ("orders", {"orders": [{"items": ["x"]}] * COUNT}),
    "dict": ("mapping", {"values": {f"k{i}": "x" for i in range(COUNT)}}),
    "unknown parameters": ("one", {f"numbr{i}": 1 for i in range(COUNT)}),
    "long texts": ("ints", {"items": [LONG[:5000]] * 60}),
    "long keys": ("mapping", {"values": {f"{i}{LONG[:5000]}": "x" for i in range(60)}}),
    "long names": ("one", {f"n{i}{LONG[:5000]}": 1 for i in range(60)}),
    "integer": ("one", {"number": LONG}),
    "digits": ("one", {"number": "9" * 200_000}),
    "enum": ("one", {"color": LONG}),
    "literal": ("one", {"kind": LONG}),
    "decimal": ("one", {"price": LONG}),
    "date": ("one", {"day": LONG}),
    "duration": ("one", {"length": "1" * 200_000}),
    "union": ("one", {"either": LONG}),
    "suggestion": ("texts", {"itemz": ["x" * 100] * COUNT}),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("interface", interfaces(make_app()), ids=lambda item: item.name)
def test_answer_is_short(interface: Any, case: str) -> None:
    tool, arguments = WRONG[case]
    if interface.surface == "cli" and case in ("control characters", "unknown parameters"):
        pytest.skip("tested with --input")
    answer = interface.send_case(Case(tool, arguments)).envelope
    if answer["ok"]:  # a trusted caller may pass control characters
        assert case == "control characters"
        return
    assert len(json.dumps(answer)) < MAX_ANSWER_BYTES
    assert len(answer["error"]["details"]["errors"]) <= MAX_PROBLEMS


@pytest.mark.parametrize("case", WRONG)
def test_input_option(case: str, tmp_path: Path) -> None:
    tool, arguments = WRONG[case]
    path = tmp_path / "arguments.json"
    path.write_text(json.dumps(arguments))
    done = invoke(make_app(), tool, "--input", f"@{path}", mode="json", env={"CLAUDECODE": "1"})
    assert not done.ok
    assert len(done.stdout) < MAX_ANSWER_BYTES
    assert len(done.envelope["error"]["details"]["errors"]) <= MAX_PROBLEMS


@pytest.mark.parametrize(
    ("argv", "problem_count"),
    [
        (["ints", *["x"] * COUNT], MAX_PROBLEMS),
        (["one", *[f"--numbr{i}" for i in range(COUNT)]], MAX_PROBLEMS),
        (["one", *["extra"] * COUNT], 1),
        (["one", f"--{LONG}=1"], 1),
        (["one", "--number", LONG], 1),
        ([f"--{LONG}", "one"], 1),
        (["--output", LONG, "one"], 1),
    ],
    ids=["values", "options", "arguments", "name", "value", "leading option", "mode"],
)
def test_command_line(argv: list[str], problem_count: int) -> None:
    done = invoke(make_app(), *argv, mode="json")
    assert len(done.stdout) < MAX_ANSWER_BYTES
    assert len(done.envelope["error"]["details"]["errors"]) == problem_count


def test_unknown_command_is_cut() -> None:
    assert len(invoke(make_app(), LONG, mode="json").stdout) < 2000


@pytest.mark.parametrize(
    ("items", "count"),
    [(["x"] * 51, 51), (["x"] * 50, None), ([*[1] * 9000, *["x"] * 9000], 51)],
)
def test_count_of_problems(items: list[object], count: int | None) -> None:
    error = make_app().call("ints", items=items).error
    assert error is not None and error.details is not None
    assert len(error.details["errors"]) == 50
    assert error.details.get("error_count", 0) >= (count or 0)
    assert ("error_count" in error.details) is (count is not None)
    assert error.message.endswith("more)")


def test_checking_stops_early() -> None:
    checked.clear()
    error = make_app().call("counted", items=["x"] * 100_000).error
    assert error is not None and error.details is not None
    assert error.details["is_minimum_count"]
    assert "at least" in error.message
    assert len(checked) <= 2000


LARGE: dict[str, tuple[str, Mapping[str, Any]]] = {
    "list": ("ints", {"items": ["x"] * 20_000}),
    "list in a model": ("order", {"order": {"items": ["x"] * 20_000}}),
    "unions in a model": ("order", {"order": {"parts": ["x"] * 20_000}}),
    "dict": ("mapping", {"values": {f"k{i}": "x" for i in range(20_000)}}),
    "models": ("orders", {"orders": [{"items": ["x"]}] * 20_000}),
    "valid items": ("one", {"number": "x", "items": [1] * 20_000}),
    "unknown parameter": ("ints", {"itemz": ["x"] * 20_000}),
}


@pytest.mark.parametrize("case", LARGE)
def test_problems_do_not_multiply_the_cost(case: str) -> None:
    """A suggestion for each of 50 problems copied the whole argument."""
    tool, arguments = LARGE[case]
    app = make_app()
    calls = 0

    def count_call(_frame: FrameType, event: str, _value: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count_call)
    try:
        error = app.call(tool, **arguments).error
    finally:
        sys.setprofile(None)
    assert error is not None
    assert calls < 12 * 20_000


@pytest.mark.parametrize("yes", [False, True])
def test_large_arguments_of_a_destructive_call_are_described_once(
    yes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal and each line of the audit log described all 20,000 values again."""
    described: list[object] = []
    app = Tooli("app")

    @app.command(annotations=Destructive)
    def drop(items: list[dict[str, int]]) -> int:
        return len(items)

    def describe(value: object, warnings: list[str]) -> object:
        described.append(value)
        return value

    def to_json_value(value: object) -> object:
        described.append(value)
        return value

    monkeypatch.setattr(redact, "to_jsonable", describe)
    monkeypatch.setattr(suggestions, "to_json_value", to_json_value)
    items = [{"a": number} for number in range(20_000)]
    result = app.call("drop", items=items, yes=yes)
    assert described == [items]
    if not yes:
        assert result.error is not None
        assert result.error.code == "E1010"
        assert "<items>" in str(result.error.suggestion)


def test_valid_values_are_converted_once() -> None:
    checked.clear()
    assert make_app().call("counted", items=["1"] * 5000).result == 5000
    assert len(checked) == 5000


@pytest.mark.parametrize("values", [["x"] * 20_000, [1] * 20_000])
async def test_body_of_an_unauthorised_caller_is_not_read(values: list[object]) -> None:
    client = await post(make_app("strict").asgi(mcp=False), "ints", {"items": values})
    assert client.code == "E2001"
    assert not client._incoming.empty()


async def test_body_beyond_the_rate_limit_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "_limiter", rate_limit.RateLimiter())
    app = Tooli("limited")

    @app.command(rate_limit="1/hour")
    def go(items: list[int]) -> int:
        return len(items)

    api = app.asgi(mcp=False)
    assert (await post(api, "go", {"items": [1]})).json()["result"] == 1
    client = await post(api, "go", {"items": ["x"]})
    assert client.code == "E4029"
    assert not client._incoming.empty()


@pytest.mark.parametrize("interface", interfaces(make_app("strict")), ids=lambda item: item.name)
def test_unauthorised_caller_learns_nothing_about_the_arguments(interface: Any) -> None:
    if interface.surface == "python" or interface.name == "typer":
        pytest.skip("Python code has all scopes, and Typer converts values before the call")
    case = Case("ints", {"items": ["x"], "unknown": 1})
    error = interface.send_case(case).envelope["error"]
    assert error["code"] == "E2001"
    assert "items" not in json.dumps(error)


def test_denied_call_is_logged_without_arguments() -> None:
    app = make_app("strict")
    error = invoke(app, "ints", "1", mode="json").envelope["error"]
    assert error["code"] == "E2001"
    entry = read_last_records(get_log_path("sized"), 10)[-1]
    assert (entry["event"], entry["code"]) == ("denial", "E2001")
    assert not entry.get("arguments")


def test_refused_call_never_runs_without_its_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate limit may expire between the two checks."""
    ran: list[int] = []
    app = Tooli("racing")
    app.command("go")(lambda: ran.append(1))
    monkeypatch.setattr(ToolDispatcher, "is_refused", lambda *_: True)
    client = asyncio.run(post(app.asgi(mcp=False), "go"))
    assert client.code == "E1008"
    assert not ran


SERVER = """
import enum
from tooli import SecretInput, Tooli
from tooli.annotations import Destructive

class Color(enum.Enum):
    RED = "red"

app = Tooli("sized")

@app.command()
def one(color: Color = Color.RED, items: list[int] = []) -> int:
    return 1

@app.resource("number://{number}")
def number(number: int) -> str:
    return str(number)

app(["mcp", "serve"])
"""
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}} | {
    "clientInfo": {"name": "c", "version": "1"}
}
LONG_REQUESTS: list[tuple[str, Mapping[str, Any]]] = [
    ("tools/call", {"name": LONG}),
    ("tools/call", {"name": "one", "arguments": {"color": LONG}}),
    ("tools/call", {"name": "one", "arguments": {"items": ["x"] * COUNT}}),
    ("tools/call", {"name": "one", "arguments": {f"k{i}": 1 for i in range(COUNT)}}),
    ("tools/call", {"name": "one", "arguments": {"filter": LONG}}),
    ("tools/list", {"cursor": LONG}),
    (LONG, {}),
    ("resources/read", {"uri": f"unknown://{LONG}"}),
    ("resources/read", {"uri": f"number://{LONG}"}),
    ("prompts/get", {"name": LONG}),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": LONG}, "argument": {"name": "n", "value": LONG}},
    ),
]


def test_mcp_answers_are_short(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    for i, (method, params) in enumerate(LONG_REQUESTS, 1):
        messages.append({"jsonrpc": "2.0", "id": i, "method": method, "params": params})
    lines = "".join([f"{json.dumps(message)}\n" for message in messages])
    done = subprocess.run(
        [sys.executable, str(path)], input=lines, capture_output=True, text=True, check=True
    )
    answers = {json.loads(line)["id"]: line for line in done.stdout.splitlines()}
    assert sorted(answers) == list(range(len(LONG_REQUESTS) + 1))
    assert max(map(len, answers.values())) < MAX_ANSWER_BYTES


class Login(pydantic.BaseModel):
    token: pydantic.SecretStr
    number: int = 0

    @pydantic.field_validator("token", mode="before")
    @classmethod
    def reject(cls, value: str) -> str:
        raise ValueError(f"bad token {value}")


@pytest.mark.parametrize("length", [20, 150, 2100, 50_000])
def test_parts_of_secrets_are_not_shown(length: int) -> None:
    """A secret that is cut in a message would not be recognized and redacted."""
    secret = "".join([f"c4nary{i:06}" for i in range(length // 12 + 1)])[:length]
    app = Tooli("guarded")

    @app.command()
    def log_in(login: Login, pin: SecretInput[int]) -> int:
        return 1

    arguments = {"login": {"token": secret, "number": secret}, "pin": secret}
    for interface in interfaces(app):
        if interface.surface not in ("cli", "python"):
            answer = json.dumps(interface.send_case(Case("log_in", arguments)).envelope)
            assert '"ok": false' in answer
            assert "c4nary" not in answer
