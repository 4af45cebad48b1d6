"""MCP clients of all versions against several workers, replicas and restarted servers."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.integration.app_process import PROCESS_TIMEOUT
from tests.integration.mcp_http.http_process import Server, run_server
from tests.integration.node import SDK_1, SDK_2, environment_for_node, install, node
from tests.mcp.sdk_client import each_mode

SHOP = Path(__file__).with_name("shop.py")
TYPESCRIPT_CLIENT = Path(__file__).with_name("typescript_client.mjs")
SESSIONS = 8


@asynccontextmanager
async def connect(url: str, mode: Any, **headers: str) -> AsyncIterator[Client]:
    """Connect a client that opens a connection for each request, so that workers alternate."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with httpx2.AsyncClient(headers=headers, timeout=60, limits=limits) as http_client:
        transport = streamable_http_client(url, http_client=http_client)
        async with Client(transport, mode=mode) as client:
            yield client


async def use_session(url: str, mode: Any, **headers: str) -> list[Any]:
    """Use a server as an agent does; return the process ids that answered."""
    processes: list[Any] = []
    async with connect(url, mode, **headers) as client:
        assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["add", "process"]
        for i in range(5):
            added = await client.call_tool("add", {"a": i, "b": 1})
            assert added.content[0].text in (str(i + 1), f'{{"result":{i + 1}}}')
            name = await client.call_tool("whoami", {})
            assert "mcp" in name.content[0].text
            processes.append((await client.call_tool("process", {})).content[0].text)
        assert (await client.read_resource("shop://facts/one")).contents[0].text == "one"
        progress: list[float] = []

        async def on_progress(done: float, *_: Any) -> None:
            progress.append(done)

        await client.call_tool("steps", {"count": 3}, progress_callback=on_progress)
        assert progress == [1, 2, 3]
    return processes


@pytest.fixture(scope="module")
def workers() -> Iterator[Server]:
    with run_server(SHOP, "--workers", "3", interface=("api",)) as server:
        yield server


@each_mode
async def test_all_sessions_work_with_several_workers(workers: Server, mode: str) -> None:
    answers = await asyncio.gather(
        *[use_session(f"{workers.url}/mcp", mode) for _ in range(SESSIONS)]
    )
    assert len({process for processes in answers for process in processes}) > 1


@each_mode
async def test_mcp_serve_has_workers(mode: str) -> None:
    with run_server(SHOP, "--workers", "2") as server:
        await asyncio.gather(*[use_session(server.url, mode) for _ in range(3)])


async def visit_five_times(url: str, mode: str) -> list[Any]:
    """Return the answers of a command that counts the calls of its session."""
    answers: list[Any] = []
    async with connect(url, mode) as client:
        for name in "abcde":
            answers.append((await client.call_tool("visit", {"name": name})).structured_content)
        answers.append((await client.call_tool("visits", {})).content[0].text)
    return answers


async def test_state_of_a_session_is_in_every_worker(workers: Server) -> None:
    url = f"{workers.url}/mcp"
    for answers in await asyncio.gather(*[visit_five_times(url, "legacy") for _ in range(4)]):
        assert [answer["visits"] for answer in answers[:5]] == [1, 2, 3, 4, 5]
        assert answers[4] == {"visits": 5, "names": list("abcde"), "kept": True}
        assert "5" in answers[5]


async def test_version_without_sessions_has_state_for_one_request(workers: Server) -> None:
    answers = await visit_five_times(f"{workers.url}/mcp", "2026-07-28")
    assert answers[4] == {"visits": 1, "names": ["e"], "kept": False}


async def test_replicas_with_a_store_share_the_state(postgres_server: str, tmp_path: Path) -> None:
    environment = {"TOOLI_STORE": postgres_server, "TOOLI_SEAL_KEY": "a secret of both"}
    one, two = ({**environment, "TOOLI_STATE_DIR": str(tmp_path / name)} for name in ("a", "b"))
    with (
        run_server(SHOP, "--stateless", interface=("api",), **one) as first,
        run_server(SHOP, "--stateless", interface=("api",), **two) as second,
    ):
        async with balance(first, second) as url:
            answers = await visit_five_times(url, "legacy")
    assert answers[4] == {"visits": 5, "names": list("abcde"), "kept": True}


@pytest.mark.parametrize(
    ("package", "mode"),
    [(SDK_1, "legacy"), (SDK_2, "legacy"), (SDK_2, "2026-07-28")],
    ids=["sdk-1", "sdk-2-handshake", "sdk-2-stateless"],
)
def test_typescript_sessions_work_with_several_workers(
    workers: Server, package: str, mode: str
) -> None:
    done = subprocess.run(
        [node(), TYPESCRIPT_CLIENT, install(package), mode, f"{workers.url}/mcp", str(SESSIONS)],
        capture_output=True,
        timeout=PROCESS_TIMEOUT,
        env=environment_for_node(),
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = json.loads(done.stdout)
    assert len(answers) == SESSIONS
    for answer in answers:
        assert answer["sums"] == [1, 2, 3, 4, 5]
        assert answer["name"] == "typescript"
        assert answer["progress"] == [1, 2, 3]


# ------------------------------------------------------------------ replicas


@asynccontextmanager
async def balance(*servers: Server) -> AsyncIterator[str]:
    """A proxy that sends each connection to the next server; yield the URL."""
    addresses = cycle([server.address for server in servers])
    tasks: set[asyncio.Task[None]] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(*next(addresses))
        for pair in ((reader, inner_writer), (inner_reader, writer)):
            task = asyncio.ensure_future(copy(*pair))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    proxy = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with proxy:
        yield f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}/mcp"
        proxy.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@each_mode
@pytest.mark.parametrize("flags", [("--stateless",), ()])
async def test_all_sessions_work_with_replicas(
    mode: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    """Without --stateless, replicas that share the state folder know each other's sessions."""
    environment = {"TOOLI_STATE_DIR": str(tmp_path)}
    with (
        run_server(SHOP, *flags, interface=("api",), **environment) as one,
        run_server(SHOP, *flags, interface=("api",), **environment) as two,
    ):
        async with balance(one, two) as url:
            answers = await asyncio.gather(*[use_session(url, mode) for _ in range(SESSIONS)])
    assert len({process for processes in answers for process in processes}) == 2


@each_mode
async def test_json_answers_have_no_event_stream(mode: str) -> None:
    types: list[str] = []

    async def record(response: httpx2.Response) -> None:
        types.append(response.headers.get("content-type", ""))

    with run_server(SHOP, "--stateless", "--json-response", interface=("api",)) as server:
        hooks = {"response": [record]}
        async with httpx2.AsyncClient(timeout=60, event_hooks=hooks) as http_client:
            transport = streamable_http_client(f"{server.url}/mcp", http_client=http_client)
            async with Client(transport, mode=mode) as client:
                assert not (await client.call_tool("add", {"a": 1, "b": 2})).is_error
    assert "application/json" in types
    assert not [name for name in types if "event-stream" in name]


# ------------------------------------------------------------------ restarts


async def test_session_survives_a_restart(tmp_path: Path) -> None:
    environment = {"TOOLI_STATE_DIR": str(tmp_path)}
    with run_server(SHOP, interface=("api",), **environment) as first:
        port = str(first.address[1])
        limits = httpx2.Limits(max_keepalive_connections=0)
        async with httpx2.AsyncClient(timeout=60, limits=limits) as http_client:
            transport = streamable_http_client(f"{first.url}/mcp", http_client=http_client)
            async with Client(transport, mode="legacy") as client:
                await client.call_tool("add", {"a": 1, "b": 2})
                assert first.shut_down() == 0
                with run_server(SHOP, "--port", port, interface=("api",), **environment):
                    added = await client.call_tool("add", {"a": 3, "b": 4})
                    assert added.structured_content == {"result": 7}
                    name = await client.call_tool("whoami", {})
                    assert name.structured_content == {"result": "mcp"}
