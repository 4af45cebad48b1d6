"""MCPProvider with the reference servers of MCP, on every interface."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from tests.integration.providers.reference_servers import npm_command, python_command

from tooli import Tooli
from tooli.providers import MCPProvider
from tooli.schema.json_schema import input_schema, output_schema
from tooli.testing import Case, assert_parity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the servers run on POSIX")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file and a Git repository."""
    made = tmp_path / "files"
    made.mkdir()
    (made / "a.txt").write_text("hello é\n")
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    return made


def make_command(name: str, folder: Path) -> list[str]:
    if name in ("git", "time", "fetch"):
        return python_command(name)
    if name == "sqlite":
        return python_command(name, "--db-path", str(folder / "a.db"))
    arguments = {"everything": ["stdio"], "filesystem": [str(folder)]}
    return npm_command(name, *arguments.get(name, ()))


@pytest.fixture
def served(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[Tooli, MCPProvider]]:
    app = Tooli("app")
    app.command("local")(lambda: 1)
    provider = MCPProvider(make_command(request.param, folder), name=request.param, trusted=True)
    app.add_provider(provider)
    yield app, provider
    provider.close()


SERVERS = {  # the number of tools, and the version of the protocol
    "everything": (15, "2025-11-25"),
    "filesystem": (14, "2025-11-25"),
    "memory": (9, "2025-11-25"),
    "sequential-thinking": (1, "2025-11-25"),
    "git": (12, "2026-07-28"),
    "time": (2, "2026-07-28"),
    "fetch": (1, "2026-07-28"),
    "sqlite": (6, "2025-11-25"),
}


@pytest.mark.parametrize(("served", "expected"), list(SERVERS.items()), indirect=["served"])
def test_schemas_are_those_of_the_server(served: Any, expected: tuple[int, str]) -> None:
    app, provider = served
    tools = [tool for tool in app.catalog if tool.name != "local"]
    assert (len(tools), provider._list.version) == expected
    listed = {tool["name"]: tool for tool in provider._list.tools}
    for tool in tools:
        raw = listed[tool.path[-1]]
        assert input_schema(tool) == {"properties": {}, **raw["inputSchema"]}
        assert output_schema(tool) == raw.get("outputSchema")
    assert not app.catalog.problems


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("everything", "echo", {"message": "é ☃"}),
    ("everything", "get-sum", {"a": 1, "b": 2.5}),
    ("everything", "get-sum", {"a": "x"}),
    ("everything", "get-structured-content", {"location": "Chicago"}),
    ("everything", "get-tiny-image", {}),
    ("everything", "get-resource-links", {"count": 2}),
    ("everything", "get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("filesystem", "read_text_file", {"path": "a.txt"}),
    ("filesystem", "list_directory", {"path": "."}),
    ("filesystem", "read_text_file", {"path": "/etc/passwd"}),
    ("memory", "read_graph", {}),
    ("git", "git_status", {"repo_path": "."}),
    (
        "time",
        "convert_time",
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
    ),
    ("fetch", "fetch", {"url": "http://127.0.0.1:1/"}),
    ("sqlite", "read_query", {"query": "select 1 as a"}),
]


@pytest.mark.parametrize(("served", "name", "arguments"), CASES, indirect=["served"])
def test_interfaces_agree(served: Any, name: str, arguments: dict[str, Any], folder: Path) -> None:
    app, _ = served
    places = {"a.txt": str(folder / "a.txt"), ".": str(folder)}
    given = {key: places.get(value, value) for key, value in arguments.items()}
    assert_parity(app, Case(name, given, {"yes": True}))


# ------------------------------------------------------------------ through an MCP client


APP = """
import json, sys
from tooli import Tooli
from tooli.providers import MCPProvider

app = Tooli("desk")
app.add_provider(MCPProvider(json.loads({command!r}), name="everything"))
app()
"""


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_questions_and_progress_reach_the_client(tmp_path: Path, mode: str) -> None:
    script = tmp_path / "desk.py"
    command = json.dumps(npm_command("everything", "stdio"))
    script.write_text(textwrap.dedent(APP).format(command=command))
    asked: list[str] = []
    steps: list[tuple[float, float | None]] = []

    async def elicit(_: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})

    async def sample(_: Any, params: Any) -> types.CreateMessageResult:
        asked.append(params.messages[0].content.text)
        text = types.TextContent(type="text", text="sampled here")
        return types.CreateMessageResult(role="assistant", content=text, model="m")

    async def progress(done: float, total: float | None, _: str | None) -> None:
        steps.append((done, total))

    env = {"TOOLI_STATE_DIR": str(tmp_path / "state")}
    server = StdioServerParameters(
        command=sys.executable, args=[str(script), "mcp", "serve"], env=env
    )
    meta: Any = {"io.tooli/options": {"yes": True}}
    async with Client(
        server, mode=mode, elicitation_callback=elicit, sampling_callback=sample
    ) as client:
        answer = await client.call_tool("trigger_elicitation_request", {}, meta=meta)
        assert "Name: Ada" in _text(answer)
        prompt = {"prompt": "hello", "maxTokens": 20}
        answer = await client.call_tool("trigger_sampling_request", prompt, meta=meta)
        assert "sampled here" in _text(answer)
        work = {"duration": 0.3, "steps": 3}
        answer = await client.call_tool(
            "trigger_long_running_operation", work, progress_callback=progress, meta=meta
        )
        assert "completed" in _text(answer)
        answer = await client.call_tool("get_tiny_image", {}, meta=meta)
        assert [block.type for block in answer.content] == ["text", "image", "text"]
    assert asked[0].startswith("The MCP server everything asks: ") and "hello" in asked[1]
    assert len(asked) == 2 and steps == [(1.0, 3.0), (2.0, 3.0), (3.0, 3.0)]


def _text(answer: Any) -> str:
    assert not answer.is_error, answer
    return " ".join(block.text for block in answer.content if block.type == "text")
