"""Scripts over MCP and HTTP: real servers, the client of the MCP SDK, a real HTTP client."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.integration.app_process import PROCESS_TIMEOUT, environment
from tests.integration.http.server_process import wait_until
from tests.integration.mcp.stdio_client import HANDSHAKE_VERSION, STATELESS_VERSION, StdioClient

pytest.importorskip("pydantic_monty", reason="pydantic-monty has no wheel for this platform")

PROGRAM = '''
import asyncio
from pathlib import Path

from tooli import Tooli
from tooli.annotations import Destructive, ReadOnly

app = Tooli("files", version="1.0")

@app.command(annotations=ReadOnly)
def names(folder: Path) -> list[str]:
    """List the names of files."""
    return sorted(path.name for path in folder.iterdir())

@app.command(annotations=Destructive)
def remove(folder: Path, name: str) -> None:
    """Remove a file."""
    (folder / name).unlink()

@app.command(annotations=ReadOnly)
async def beat(folder: Path) -> None:
    """Write the time until the call is cancelled."""
    marker = folder / "beat"
    try:
        while True:
            marker.write_text("x")
            await asyncio.sleep(0.01)
    finally:
        (folder / "ended").touch()

app()
'''
CLEAN_UP = """
found = await names(folder=folder)
old = [name for name in found if name.endswith(".old")]
for name in old:
    await remove(folder=folder, name=name)
old
"""
BEAT = {"code": "await beat(folder=folder)"}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "files.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a.txt", "b.old", "c.old"):
        (folder / name).touch()
    return folder


@contextlib.contextmanager
def connect(program: Path, version: str) -> Iterator[StdioClient]:
    """Yield a client of a process in code mode."""
    with subprocess.Popen(
        [sys.executable, str(program), "mcp", "serve", "--code-mode"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        client = StdioClient(process, version)
        try:
            client.initialize()
            yield client
            client.remaining_messages()
        finally:
            process.kill()


async def test_client_of_the_sdk_cleans_up_with_one_script(program: Path, folder: Path) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=[str(program), "mcp", "serve", "--code-mode"]
    )
    async with Client(stdio_client(server)) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["search_tools", "run_code"]
        stubs = await client.call_tool("search_tools", {"query": "remove a file"})
        assert "async def remove(folder: str, name: str)" in stubs.content[0].text  # type: ignore[union-attr]
        arguments: dict[str, Any] = {"code": CLEAN_UP, "inputs": {"folder": str(folder)}}
        refused = await client.call_tool("run_code", arguments)
        assert refused.is_error
        assert len(list(folder.iterdir())) == 3
        done = await client.call_tool("run_code", {**arguments, "yes": True})
        assert done.structured_content is not None
        assert done.structured_content["result"] == ["b.old", "c.old"]
    assert [path.name for path in folder.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
def test_cancelled_script_leaves_no_running_tool(program: Path, folder: Path, version: str) -> None:
    with connect(program, version) as client:
        call = client.start_call("run_code", {**BEAT, "inputs": {"folder": str(folder)}})
        wait_until((folder / "beat").exists)
        client.notify("notifications/cancelled", client.params({"requestId": call}))
        wait_until((folder / "ended").exists)
        names = {"code": "await names(folder=folder)", "inputs": {"folder": str(folder)}}
        result = client.call("run_code", names)  # the server goes on
        assert "ended" in result["structuredContent"]["result"]


def test_two_scripts_at_once(program: Path, folder: Path) -> None:
    with connect(program, HANDSHAKE_VERSION) as client:
        arguments = {"code": "len(await names(folder=folder))", "inputs": {"folder": str(folder)}}
        calls = [client.start_call("run_code", arguments) for _ in range(2)]
        results = [client.response_to(call)["result"] for call in calls]
        assert [result["structuredContent"]["result"] for result in results] == [3, 3]


def test_plan_on_the_command_line(program: Path, folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "clean_up.py"
    script.write_text(CLEAN_UP)
    inputs = json.dumps({"folder": str(folder)})
    line = [sys.executable, str(program), "orchestrate", "run", str(script), "--inputs", inputs]
    env = environment(TOOLI_STATE_DIR=str(tmp_path / "state"))

    def run(*flags: str) -> Any:
        done = subprocess.run([*line, *flags, "--json"], capture_output=True, env=env, check=False)
        return json.loads(done.stdout)

    plan = run("--dry-run")["result"]
    assert [action["details"]["line"] for action in plan["actions"]] == [5, 5]
    assert len(list(folder.iterdir())) == 3
    (folder / "d.old").touch()
    changed = run("--apply", plan["token"], "--yes")["error"]
    assert (changed["code"], len(list(folder.iterdir()))) == ("E3053", 4)
    (folder / "d.old").unlink()
    shown = [*line, "--dry-run", "--text"]
    text = subprocess.run(shown, capture_output=True, env=env, check=True, encoding="utf-8").stdout
    assert "--yes" in text.splitlines()[-1]
    token = run("--dry-run")["result"]["token"]
    assert run("--apply", token)["error"]["code"] == "E1010"
    assert run("--apply", token, "--yes")["result"] == ["b.old", "c.old"]
    assert [path.name for path in folder.iterdir()] == ["a.txt"]


# ------------------------------------------------------------------ HTTP


@contextlib.contextmanager
def serve_http(program: Path, *flags: str) -> Iterator[int]:
    """Yield the port of an HTTP server."""
    with subprocess.Popen(
        [sys.executable, str(program), *flags, "--port", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stderr is not None
        try:
            found = re.search(r"http://\S+?:(\d+)", process.stderr.readline())
            assert found is not None
            yield int(found[1])
        finally:
            process.terminate()
            process.communicate(timeout=PROCESS_TIMEOUT)


def post(port: int, body: dict[str, Any], query: str = "") -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROCESS_TIMEOUT)
    with contextlib.closing(connection):
        headers = {"content-type": "application/json"}
        connection.request("POST", f"/orchestrate{query}", json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def test_script_over_http(program: Path, folder: Path) -> None:
    body = {"code": CLEAN_UP, "inputs": {"folder": str(folder)}}
    with serve_http(program, "api", "serve", "--no-mcp") as port:
        status, refused = post(port, body)
        assert (status, refused["error"]["code"]) == (428, "E1010")
        status, done = post(port, body, "?yes=true")
        assert (status, done["result"]) == (200, ["b.old", "c.old"])
    assert [path.name for path in folder.iterdir()] == ["a.txt"]


def test_script_of_a_client_that_disconnects(program: Path, folder: Path) -> None:
    body = json.dumps({**BEAT, "inputs": {"folder": str(folder)}})
    with serve_http(program, "api", "serve", "--no-mcp") as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROCESS_TIMEOUT)
        connection.request("POST", "/orchestrate", body, {"content-type": "application/json"})
        wait_until((folder / "beat").exists)
        connection.close()
        wait_until((folder / "ended").exists)
        names = {"code": "await names(folder=folder)", "inputs": {"folder": str(folder)}}
        assert post(port, names)[0] == 200


async def test_code_mode_over_http(program: Path, folder: Path) -> None:
    flags = ("mcp", "serve", "--transport", "http", "--code-mode")
    with serve_http(program, *flags) as port:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == ["search_tools", "run_code"]
            arguments = {
                "code": "await names(folder=folder)",
                "inputs": {"folder": str(folder)},
            }
            done = await client.call_tool("run_code", arguments)
            assert done.structured_content is not None
            assert done.structured_content["result"] == ["a.txt", "b.old", "c.old"]
        assert post(port, {"code": "1"})[0] == 404  # this server has no HTTP API
