"""Events and sampling, as callers of real processes and servers see them."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.integration.app_process import APPS, command, environment, run, start_app
from tests.integration.apps.talking import app
from tests.integration.mcp.stdio_client import HANDSHAKE_VERSION, STATELESS_VERSION
from tests.integration.mcp_http.http_process import Server, run_server

TALKING = APPS / "talking.py"
BILL = {"name": "bill", "uri": "https://bakery.example/bills/17", "mime_type": "text/html"}
BAKING: list[dict[str, Any]] = [
    {"type": "log", "level": "warning", "message": "The oven is hot."},
    {"type": "item", "value": "loaf 1"},
    {"type": "progress", "percent": 50, "done": 1, "total": 2},
    {"type": "item", "value": "loaf 2"},
    {"type": "progress", "percent": 100, "done": 2, "total": 2},
    {"type": "artifact", **BILL},
]
BAKERS = ["bake", "bake-apart", "bake-isolated", "abake"]
SECRET = "hunter2-hunter2"


def lines_of(output: bytes) -> list[Any]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture(scope="module")
def api() -> Iterator[Server]:
    """A server of the HTTP API."""
    with run_server(TALKING, interface=("api",)) as server:
        yield server


def post(server: Server, tool: str, arguments: Any, accept: str) -> bytes:
    """Call a tool over HTTP and return the body of the response."""
    connection = http.client.HTTPConnection(*server.address, timeout=120)
    headers = {"content-type": "application/json", "accept": accept}
    try:
        connection.request("POST", f"/tools/{tool}", json.dumps(arguments), headers)
        return connection.getresponse().read()
    finally:
        connection.close()


def mcp_client(version: str, **callbacks: Any) -> Client:
    """Return a client that starts the MCP server."""
    words = command(TALKING, "mcp", "serve")
    server = StdioServerParameters(
        command=str(words[0]), args=[str(word) for word in words[1:]], env=environment()
    )
    mode: Any = "legacy" if version == HANDSHAKE_VERSION else "auto"
    return Client(stdio_client(server), mode=mode, **callbacks)


# ------------------------------------------------------------------ events


@pytest.mark.parametrize("tool", BAKERS)
def test_command_line_and_http_have_the_same_lines(tool: str, api: Server) -> None:
    done = run(TALKING, tool, "--stream")
    assert done.code == 0
    *events, result = lines_of(done.out)
    assert events == BAKING
    assert (result["type"], result["ok"]) == ("result", True)
    assert result["meta"]["artifacts"] == [BILL]

    *http_events, http_result = lines_of(post(api, tool, {}, "application/x-ndjson;events=true"))
    assert http_events == BAKING
    assert http_result["meta"]["artifacts"] == [BILL]


@pytest.mark.parametrize("tool", BAKERS)
def test_python_gets_the_same_events(tool: str) -> None:
    events: list[Any] = []
    result = app.options(on_event=events.append).call(tool)
    assert result.unwrap() == ["loaf 1", "loaf 2"]
    assert events == [event for event in BAKING if event["type"] != "item"]
    assert result.meta["artifacts"] == [BILL]


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
async def test_mcp_client_gets_progress_and_links(version: str) -> None:
    progress: list[Any] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append((done, total))

    async with mcp_client(version) as client:
        for tool in ("bake", "bake_apart", "abake"):
            progress.clear()
            result = await client.call_tool(tool, {}, progress_callback=on_progress)
            assert progress == [(1, 2), (2, 2)]
            (link,) = [block for block in result.content if block.type == "resource_link"]
            assert (link.name, str(link.uri), link.mime_type) == tuple(BILL.values())


def test_failing_stream_keeps_its_items(api: Server) -> None:
    done = run(TALKING, "bake", "--fail", "--stream")
    assert done.code == 40
    *events, result = lines_of(done.out)
    assert events == BAKING[:-1]
    assert result["error"]["code"] == "E4040"
    body = post(api, "bake", {"fail": True}, "application/x-ndjson;events=true")
    assert lines_of(body)[:-1] == events


def test_events_have_no_secrets_and_no_escape_sequences(api: Server) -> None:
    done = run(TALKING, "leak", "--key", "env:KEY", "--stream", env=environment(KEY=SECRET))
    assert done.code == 0
    assert [line["type"] for line in lines_of(done.out)] == [
        *("log", "progress", "artifact", "result"),
    ]
    bodies = [post(api, "leak", {"key": SECRET}, accept) for accept in ("text/event-stream", "*/*")]
    for output in (done.out, done.err, *bodies):
        assert SECRET.encode() not in output
        assert b"u001b" not in output
        assert b"\x1b" not in output


def test_events_arrive_while_the_command_runs() -> None:
    with start_app(
        TALKING, "slogan", "bread", "--sample-via=stdin", stdin=subprocess.PIPE
    ) as bread:
        assert bread.stdout is not None
        assert json.loads(bread.stdout.readline())["type"] == "sample_request"
        assert bread.poll() is None  # it waits for the answer


def test_closed_reader_ends_the_command() -> None:
    with start_app(TALKING, "flood", "--events=100000000", "--stream") as flood:
        assert flood.stdout is not None
        assert json.loads(flood.stdout.readline())["message"].startswith("event 0")
        flood.stdout.close()
        assert flood.wait(120) == 0  # as for other output into a closed pipe


# ------------------------------------------------------------------ sampling


REQUEST = {
    "type": "sample_request",
    "id": "1",
    "prompt": "A slogan for bread.",
    "system": "Use five words.",
    "max_tokens": 50,
}
SLOGANS = ["slogan", "slogan-apart", "aslogan"]


@pytest.mark.parametrize("tool", SLOGANS)
def test_caller_answers_on_stdin(tool: str) -> None:
    with start_app(TALKING, tool, "bread", "--sample-via=stdin", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == REQUEST
        process.stdin.write(b'{"type":"sample_response","id":"1","content":"Fresh!"}\n')
        process.stdin.flush()
        result = json.loads(process.stdout.readline())
        assert (result["type"], result["result"]) == ("result", "Fresh!")
        assert process.wait(120) == 0


@pytest.mark.parametrize("tool", SLOGANS)
def test_killed_caller_ends_the_command(tool: str) -> None:
    with start_app(TALKING, tool, "bread", "--sample-via=stdin", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.close()
        result = json.loads(process.stdout.readline())
        assert result["error"]["code"] == "E4040"
        assert process.wait(120) == 40


@pytest.mark.parametrize("tool", SLOGANS)
def test_answer_that_never_comes_ends_at_the_deadline(tool: str) -> None:
    argv = (tool, "bread", "--sample-via=stdin", "--timeout=0.5")
    with start_app(TALKING, *argv, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [json.loads(line) for line in process.stdout]
        assert lines[-1]["error"]["code"] == "E4050"
        assert process.wait(120) == 50


@pytest.mark.parametrize("tool", SLOGANS)
def test_python_function_answers(tool: str) -> None:
    surface = app.options(sampler=lambda sample: f"{sample.prompt} {sample.system}")
    assert surface.call(tool, product="bread").unwrap() == "A slogan for bread. Use five words."


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
async def test_mcp_client_answers(version: str) -> None:
    async def sample(ctx: Any, params: Any) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text=f"{params.messages[0].content.text} Fresh!")
        return types.CreateMessageResult(role="assistant", content=text, model="m")

    async with mcp_client(version, sampling_callback=sample) as client:
        for tool in ("slogan", "slogan_apart", "aslogan"):
            result = await client.call_tool(tool, {"product": "bread"})
            assert "A slogan for bread. Fresh!" in str(result.content)
