"""The TypeScript SDKs as clients, over stdio: what each of them sees."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import PROCESS_TIMEOUT
from tests.integration.mcp.stdio_client import SERVED, STATELESS_VERSION, failure_of, serve_command
from tests.integration.node import INSPECTOR, SDK_1, SDK_2, environment_for_node, install, node

LOOK = Path(__file__).parent / "look.mjs"


@pytest.fixture(
    scope="module",
    params=[(SDK_1, "legacy"), (SDK_2, "legacy"), (SDK_2, STATELESS_VERSION)],
    ids=["sdk-1", "sdk-2-handshake", "sdk-2-stateless"],
)
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a client has seen, and in which era."""
    package, era = request.param
    done = subprocess.run(
        [node(), LOOK, install(package), era, *serve_command(SERVED)],
        capture_output=True,
        timeout=PROCESS_TIMEOUT,
        env=environment_for_node(),
    )
    assert done.returncode == 0, done.stderr.decode()
    return {**json.loads(done.stdout), "stateless": era == STATELESS_VERSION}


def test_typescript_sees_everything(seen: dict[str, Any]) -> None:
    stateless = seen["stateless"]

    def structured(value: Any) -> Any:
        return value if stateless else {"result": value}

    assert seen["server"]["name"] == "served"
    tools = {tool["name"]: tool for tool in seen["tools"]}
    assert len(tools) > 20
    assert tools["add"]["title"] == "Add"
    assert tools["add"]["annotations"]["readOnlyHint"] is True
    assert tools["add"]["outputSchema"]["type"] == ("integer" if stateless else "object")
    assert tools["add"]["_meta"]["io.tooli/tool"]["version"] == "3"

    assert seen["add"]["structuredContent"] == structured(3)
    assert seen["items"]["structuredContent"] == structured([0, 1, 2])
    assert seen["pet"]["structuredContent"] == {"name": "Rex", "age": 1}
    assert seen["maybe"]["structuredContent"] == {"result": None}
    assert seen["shout"]["content"] == [{"type": "text", "text": "HEY"}]
    assert failure_of(seen["wrong"])["code"] == "E1003"
    assert failure_of(seen["crash"])["code"] == "E5000"
    assert seen["unknown"]["thrown"] == -32602
    assert seen["whoami"]["structuredContent"]["name"] == "typescript"

    assert seen["wipe"]["structuredContent"] == structured("wiped /x")
    assert seen["name"]["structuredContent"] == structured("accept: Ada")
    assert seen["think"]["structuredContent"] == structured("42")
    assert [method for method, _ in seen["asked"]] == [
        "elicitation/create",
        "elicitation/create",
        "sampling/createMessage",
    ]
    assert [one["progress"] for one in seen["progress"]] == [1, 2, 3]
    assert seen["steps"]["structuredContent"] == structured("gate")
    assert "thrown" in seen["aborted"]
    assert seen["cancelled"]["structuredContent"] == structured(1)

    assert {resource["uri"] for resource in seen["resources"]} >= {"fact://one"}
    assert [template["uriTemplate"] for template in seen["templates"]] == ["note://{name}"]
    assert seen["read"][0]["text"] == "note hello"
    assert [prompt["name"] for prompt in seen["prompts"]] == ["review"]
    assert seen["prompt"][0]["content"]["text"] == "Review x"


# ------------------------------------------------------------------ the inspector


def inspect(tmp_path: Path, method: str, *more: str) -> subprocess.CompletedProcess[bytes]:
    """Ask the inspector's command line for one thing."""
    program = install(INSPECTOR) / "node_modules" / "@modelcontextprotocol" / "inspector"
    start = [node(), program / "clients" / "launcher" / "build" / "index.js", "--cli"]
    command, *words = serve_command(SERVED)
    return subprocess.run(
        [*start, "--transport", "stdio", command, *words, "--method", method, *more],
        capture_output=True,
        timeout=PROCESS_TIMEOUT,
        env={**environment_for_node(), "HOME": str(tmp_path)},
    )


@pytest.mark.parametrize(
    ("method", "more", "expected"),
    [
        ("tools/list", [], '"users_create_one"'),
        ("tools/call", ["--tool-name", "add", "--tool-arg", "a=1", "b=2"], '"result": 3'),
        ("resources/list", [], '"fact://one"'),
        ("resources/read", ["--uri", "note://hello"], "note hello"),
        ("prompts/get", ["--prompt-name", "review", "--prompt-args", "code=x"], "Review x"),
    ],
)
def test_the_inspector(tmp_path: Path, method: str, more: list[str], expected: str) -> None:
    done = inspect(tmp_path, method, *more)
    assert done.returncode == 0, done.stderr.decode()
    assert expected in json.dumps(json.loads(done.stdout), ensure_ascii=False)


def test_the_inspector_finds_nothing_wrong_with_the_schemas(tmp_path: Path) -> None:
    done = inspect(tmp_path, "tools/list", "--strict")
    assert done.returncode == 0, done.stderr.decode()


def test_the_inspector_shows_a_failure(tmp_path: Path) -> None:
    done = inspect(tmp_path, "tools/call", "--tool-name", "fail")
    assert b"E1004" in done.stdout + done.stderr
