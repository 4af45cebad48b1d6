"""The TypeScript SDKs and the MCP inspector as clients, over stdio."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import PROCESS_TIMEOUT
from tests.integration.mcp.stdio_client import SERVED, STATELESS_VERSION, failure_of, serve_command
from tests.integration.node import INSPECTOR, SDK_1, SDK_2, environment_for_node, install, node

CLIENT = Path(__file__).with_name("typescript_client.mjs")


@pytest.fixture(
    scope="module",
    params=[(SDK_1, "legacy"), (SDK_2, "legacy"), (SDK_2, STATELESS_VERSION)],
    ids=["sdk-1", "sdk-2-handshake", "sdk-2-stateless"],
)
def answers(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Run the client with a version of the SDK; return the answers that it got."""
    package, mode = request.param
    done = subprocess.run(
        [node(), CLIENT, install(package), mode, *serve_command(SERVED)],
        capture_output=True,
        timeout=PROCESS_TIMEOUT,
        env=environment_for_node(),
    )
    assert done.returncode == 0, done.stderr.decode()
    return {**json.loads(done.stdout), "stateless": mode == STATELESS_VERSION}


def test_typescript_client_receives_the_expected_answers(answers: dict[str, Any]) -> None:
    stateless = answers["stateless"]

    def structured(value: Any) -> Any:
        return value if stateless else {"result": value}

    assert answers["server"]["name"] == "served"
    tools = {tool["name"]: tool for tool in answers["tools"]}
    assert len(tools) > 20
    assert tools["add"]["title"] == "Add"
    assert tools["add"]["annotations"]["readOnlyHint"] is True
    assert tools["add"]["outputSchema"].get("type") == (None if stateless else "object")
    assert tools["add"]["_meta"]["io.tooli/tool"]["version"] == "3"

    assert answers["add"]["structuredContent"] == structured(3)
    assert answers["items"]["structuredContent"] == structured([0, 1, 2])
    assert answers["pet"]["structuredContent"] == {"name": "Rex", "age": 1}
    assert answers["maybe"]["structuredContent"] == {"result": None}
    assert answers["shout"]["content"] == [{"type": "text", "text": "HEY"}]
    assert failure_of(answers["invalid"])["code"] == "E1003"
    assert failure_of(answers["crash"])["code"] == "E5000"
    assert answers["unknown"]["thrown"] == -32602
    assert answers["whoami"]["structuredContent"]["name"] == "typescript"

    rows = answers["rows"]["structuredContent"]
    assert len(rows["result"]) == 100
    assert rows["meta"]["page"]["total"] == 250
    assert rows["meta"]["page"]["next_cursor"]
    warned = {"warnings": ["Be careful."]}
    assert answers["careful"]["structuredContent"] == {"name": "pet", "age": 1, "meta": warned}
    assert answers["carefulCount"]["structuredContent"] == {"result": 1, "meta": warned}
    assert answers["allRows"] == {"count": 25_000, "isOrdered": True}

    assert answers["wipe"]["structuredContent"] == structured("wiped /x")
    assert answers["name"]["structuredContent"] == structured("accept: Ada")
    assert answers["think"]["structuredContent"] == structured("42")
    assert [method for method, _ in answers["questions"]] == [
        "elicitation/create",
        "elicitation/create",
        "sampling/createMessage",
    ]
    assert [progress["progress"] for progress in answers["progress"]] == [1, 2, 3]
    assert answers["steps"]["structuredContent"] == structured("gate")
    assert answers["lastProgress"] == ["done"] * 25
    assert "thrown" in answers["aborted"]
    assert answers["cancelled"]["structuredContent"] == structured(1)

    assert {resource["uri"] for resource in answers["resources"]} >= {"fact://one"}
    assert [template["uriTemplate"] for template in answers["templates"]] == ["note://{name}"]
    assert answers["read"][0]["text"] == "note hello"
    assert [prompt["name"] for prompt in answers["prompts"]] == ["review"]
    assert answers["prompt"][0]["content"]["text"] == "Review x"


# ------------------------------------------------------------------ the inspector


def run_inspector(tmp_path: Path, method: str, *flags: str) -> subprocess.CompletedProcess[bytes]:
    """Send one request with the command line of the inspector."""
    package = install(INSPECTOR) / "node_modules" / "@modelcontextprotocol" / "inspector"
    inspector = [node(), package / "clients" / "launcher" / "build" / "index.js", "--cli"]
    server = serve_command(SERVED)
    return subprocess.run(
        [*inspector, "--transport", "stdio", *server, "--method", method, *flags],
        capture_output=True,
        timeout=PROCESS_TIMEOUT,
        env={**environment_for_node(), "HOME": str(tmp_path)},
    )


@pytest.mark.parametrize(
    ("method", "flags", "expected"),
    [
        ("tools/list", [], '"users_create_one"'),
        ("tools/call", ["--tool-name", "add", "--tool-arg", "a=1", "b=2"], '"result": 3'),
        ("resources/list", [], '"fact://one"'),
        ("resources/read", ["--uri", "note://hello"], "note hello"),
        ("prompts/get", ["--prompt-name", "review", "--prompt-args", "code=x"], "Review x"),
    ],
)
def test_inspector_shows_the_result(
    tmp_path: Path, method: str, flags: list[str], expected: str
) -> None:
    done = run_inspector(tmp_path, method, *flags)
    assert done.returncode == 0, done.stderr.decode()
    assert expected in json.dumps(json.loads(done.stdout), ensure_ascii=False)


def test_inspector_accepts_the_schemas(tmp_path: Path) -> None:
    done = run_inspector(tmp_path, "tools/list", "--strict")
    assert done.returncode == 0, done.stderr.decode()


def test_inspector_shows_the_error_of_a_failed_call(tmp_path: Path) -> None:
    done = run_inspector(tmp_path, "tools/call", "--tool-name", "fail")
    assert b"E1004" in done.stdout + done.stderr
