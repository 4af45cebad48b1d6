"""Apps that FastAPI and Starlette mount, in uvicorn, Hypercorn and Granian, with MCP clients."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from mcp import Client
from tests.integration.app_process import PROCESS_TIMEOUT, free_port

FOLDER = Path(__file__).parent
SERVERS: dict[str, list[str]] = {
    "uvicorn": ["uvicorn", "{app}", "--port={port}", "--timeout-graceful-shutdown=5"],
    "hypercorn": ["hypercorn", "{app}", "--bind=127.0.0.1:{port}", "--graceful-timeout=5"],
    "granian": ["granian", "{app}", "--interface=asgi", "--port={port}"],
}


@contextmanager
def run_asgi_server(server: str, app: str) -> Iterator[str]:
    """Run an application of mounted_apps.py; yield its URL."""
    port = free_port()
    module, *flags = [part.format(app=f"mounted_apps:{app}", port=port) for part in SERVERS[server]]
    command = [sys.executable, "-m", module, *flags]
    with subprocess.Popen(
        command, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            _wait_until_answered(f"http://127.0.0.1:{port}/", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            output = process.communicate(timeout=PROCESS_TIMEOUT)[0].decode()
    assert process.returncode in (0, -15), output
    for word in ("Traceback", "was never awaited", "was destroyed but it is pending"):
        assert word not in output, output


def _wait_until_answered(url: str, process: subprocess.Popen[bytes]) -> None:
    """Send requests until one is answered: Granian does not say when it listens."""
    deadline = monotonic() + PROCESS_TIMEOUT
    while True:
        try:
            urllib.request.urlopen(url, timeout=60).close()
            return
        except urllib.error.HTTPError as failure:
            failure.close()
            return
        except OSError:
            assert process.poll() is None and monotonic() < deadline
            sleep(0.02)


def post(url: str, body: bytes = b"{}", **headers: str) -> tuple[int, Any]:
    """Send a request; return the status and the JSON of the response."""
    all_headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, body, all_headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as failure:
        with failure:
            return failure.code, json.load(failure)


async def use_mcp(url: str, mode: Any) -> None:
    """Use two mounted apps at once."""
    async with (
        Client(f"{url}/shop/mcp", mode=mode) as shop,
        Client(f"{url}/garden/mcp", mode=mode) as garden,
    ):
        progress: list[float] = []

        async def on_progress(done: float, *_: Any) -> None:
            progress.append(done)

        await shop.call_tool("steps", {"count": 3}, progress_callback=on_progress)
        assert progress == [1, 2, 3]
        assert (await shop.call_tool("shout", {"word": "hey"})).content[0].text == "HEY"
        assert (await shop.read_resource("shop://facts/one")).contents[0].text == "one"
        crop = await garden.call_tool("crop", {})
        assert "rice" in crop.content[0].text


@pytest.mark.parametrize("app", ["fast", "starlette", "wired"])
@pytest.mark.parametrize("server", SERVERS)
async def test_mounted_apps_are_served(server: str, app: str) -> None:
    with run_asgi_server(server, app) as url:
        assert post(f"{url}/shop/tools/add/", b'{"a": 1, "b": 2}')[1]["result"] == 3
        status, wrong = post(f"{url}/shop/add")
        assert (status, wrong["error"]["suggestion"]["fix"]) == (404, "Send POST /shop/tools/add.")
        with urllib.request.urlopen(f"{url}/garden/openapi.json", timeout=60) as response:
            assert json.load(response)["servers"] == [{"url": "/garden"}]
        with urllib.request.urlopen(f"{url}/shop", timeout=60) as page:
            assert page.url == f"{url}/shop/"
            assert "text/html" in page.headers["content-type"]
        for mode in ("legacy", "auto"):
            await use_mcp(url, mode)


async def test_prefixes_are_nested() -> None:
    with run_asgi_server("uvicorn", "nested") as url:
        with urllib.request.urlopen(f"{url}/outer/shop/openapi.json", timeout=60) as response:
            assert json.load(response)["servers"] == [{"url": "/outer/shop"}]
        await use_mcp(f"{url}/outer", "legacy")


def test_unknown_host_names_the_setting() -> None:
    with run_asgi_server("uvicorn", "fast") as url:
        status, answer = post(f"{url}/shop/tools/add", Host="shop.example")
        assert status == 421
        assert 'allowed_hosts=["shop.example"]' in answer["error"]["suggestion"]["fix"]
