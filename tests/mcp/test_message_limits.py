"""Results that are larger than a client accepts are cut, and have a cursor."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tooli import Image, Tooli
from tooli.core.call import Caller
from tooli.mcp.service import McpService, RequestContext
from tooli.pipeline.stdout_capture import route_stdout

CALLER = Caller("mcp", "client", maybe_agent=True)
MAX_BYTES = 20_000


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def rows(count: int, text: str = "x") -> list[dict[str, Any]]:
        """Show the rows."""
        return [{"n": i, "text": text} for i in range(count)]

    @app.command(paginated=True)
    def pages(count: int, text: str = "x") -> list[dict[str, Any]]:
        """Show a page of the rows."""
        return [{"n": i, "text": text} for i in range(count)]

    @app.command()
    def text(size: int) -> str:
        """Return a text."""
        return "abc\n" * (size // 4)

    @app.command(meta={"anthropic/maxResultSizeChars": 90_000})
    def long_rows(count: int) -> list[dict[str, Any]]:
        """Show more rows than others may."""
        return [{"n": i, "text": "x" * 100} for i in range(count)]

    @app.command()
    def printed(size: int) -> None:
        """Print a text."""
        print("abc\n" * (size // 4))

    @app.command()
    def one(size: int) -> dict[str, str]:
        """Return an object."""
        return {"text": "x" * size}

    @app.command()
    def picture(size: int) -> Image:
        """Return a picture."""
        return Image(b"x" * size, "image/png")

    return app


def call(name: str, arguments: dict[str, Any], *, stateless: bool = False) -> dict[str, Any]:
    context = RequestContext(CALLER, None, stateless, max_message_bytes=MAX_BYTES)
    params = {"name": name, "arguments": arguments}
    restore = route_stdout()
    try:
        result = McpService(make_app()).tool_call_request(params, context).run()
    finally:
        restore()
    assert len(json.dumps(result, ensure_ascii=False).encode()) <= MAX_BYTES + 1000
    return result


def read_all(name: str, arguments: dict[str, Any], *, stateless: bool) -> list[Any]:
    """Return the parts of a result, following the cursors."""
    parts: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        content = call(name, {**arguments, **cursor}, stateless=stateless)["structuredContent"]
        is_wrapped = isinstance(content, dict)
        parts.append(content["result"] if is_wrapped else content)
        page = content.get("meta", {}).get("page", {}) if is_wrapped else {}
        if "next_cursor" not in page:
            return parts
        cursor = {"cursor": page["next_cursor"]}


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("text", ["x", '"\\\n' * 20, "\N{SNOWMAN}" * 50])
@pytest.mark.parametrize("name", ["rows", "pages"])
def test_list_is_cut_between_records(name: str, text: str, stateless: bool) -> None:
    parts = read_all(name, {"count": 1500, "text": text}, stateless=stateless)
    assert len(parts) > 2
    assert [record["n"] for part in parts for record in part] == list(range(1500))


@pytest.mark.parametrize("stateless", [False, True])
def test_filtered_records_are_cut(stateless: bool) -> None:
    arguments = {"count": 3000, "filter": "n >= 1000", "fields": "n"}
    parts = read_all("rows", arguments, stateless=stateless)
    assert len(parts) > 1
    assert [record["n"] for part in parts for record in part] == list(range(1000, 3000))


def test_text_is_cut() -> None:
    parts = read_all("text", {"size": 40_000}, stateless=False)
    assert len(parts) > 1
    assert "".join(parts) == "abc\n" * 10_000


def test_printed_text_is_cut_without_a_cursor() -> None:
    shown, note = [block["text"] for block in call("printed", {"size": 60_000})["content"]]
    assert shown.startswith("abc\n")
    truncated = json.loads(note)["meta"]["truncated"]
    assert truncated["shown"] == len(shown) < truncated["total"]


def test_object_is_shortened() -> None:
    content = call("one", {"size": 50_000})["structuredContent"]
    assert content["result"]["text"].endswith("…")
    assert content["meta"]["truncated"]["unit"] == "bytes"


def test_result_that_cannot_be_cut_is_an_error() -> None:
    result = call("picture", {"size": 50_000})
    assert result["isError"]
    assert "too large for one message" in result["content"][0]["text"]


@pytest.mark.parametrize(("asked", "shown"), [({"max_bytes": 600}, 600), ({"max_bytes": 0}, None)])
def test_limit_of_the_caller_applies_if_it_is_lower(asked: dict[str, int], shown: Any) -> None:
    result = call("rows", {"count": 2000, **asked})
    text = result["content"][0]["text"]
    assert len(text) < 1000 if shown else len(text) > 1000
    assert "next_cursor" in text


# ------------------------------------------------------------------ limits of agents


def call_as(client: str, name: str, **arguments: Any) -> dict[str, Any]:
    context = RequestContext(Caller("mcp", client, maybe_agent=True), None, False)
    params = {"name": name, "arguments": arguments}
    return McpService(make_app()).tool_call_request(params, context).run()


@pytest.mark.parametrize(
    ("client", "limit"),
    [("claude-code", 50_000), ("codex-mcp-client", 10_000), ("opencode", 51_200)],
)
@pytest.mark.parametrize("name", ["rows", "pages"])
def test_result_fits_the_limit_of_the_agent(client: str, limit: int, name: str) -> None:
    arguments: dict[str, Any] = {"count": 600, "text": "x" * 100}
    if name == "pages":
        arguments["limit"] = 600
    found: list[Any] = []
    while True:
        result = call_as(client, name, **arguments)
        (block,) = result["content"]
        assert len(block["text"]) <= limit
        content = result["structuredContent"]
        found += content["result"]
        cursor = content.get("meta", {}).get("page", {}).get("next_cursor")
        if cursor is None:
            break
        assert content["meta"]["truncated"]["by"] == "caller"
        arguments["cursor"] = cursor
    assert [row["n"] for row in found] == list(range(600))


@pytest.mark.parametrize(
    ("client", "limit"), [("claude-code", 90_000), ("codex-mcp-client", 10_000)]
)
def test_tool_raises_the_limit_of_claude_code(client: str, limit: int) -> None:
    (block,) = call_as(client, "long_rows", count=5000)["content"]
    assert limit - 1000 < len(block["text"]) <= limit


def test_result_within_the_limit_of_the_agent_is_the_same_for_every_client() -> None:
    for size in (10, 9000):
        answers = [call_as(client, "one", size=size) for client in ("codex-mcp-client", "other")]
        assert answers[0]["content"] == answers[1]["content"]
        assert answers[0]["structuredContent"] == answers[1]["structuredContent"]


def test_limit_of_the_call_replaces_that_of_the_agent() -> None:
    result = call_as("codex-mcp-client", "rows", count=600, text="x" * 100, max_bytes=900_000)
    assert len(result["structuredContent"]["result"]) == 600
