"""The MCP server of an HTTP server: it is imported and started with the first request."""

from __future__ import annotations

import subprocess
import sys

from tests.http.asgi_client import send

from tooli import Tooli

PROGRAM = """
import asyncio, json, sys
from tooli import Tooli

app = Tooli("shop")
app.command("one")(lambda: 1)
api = app.asgi()
HOST = (b"host", b"localhost")
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}
BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}})
MCP = [HOST, (b"content-type", b"application/json"), (b"mcp-method", b"tools/list"),
       (b"accept", b"application/json, text/event-stream"),
       (b"mcp-protocol-version", b"2026-07-28")]

async def ask(method, path, headers, body=b""):
    sent, incoming = [], [{"type": "http.request", "body": body}]
    async def receive():
        return incoming.pop() if incoming else await asyncio.Event().wait()
    async def keep(message):
        sent.append(message)
    scope = {"type": "http", "method": method, "path": path, "headers": headers,
             "query_string": b"", "root_path": "", "client": None}
    await api(scope, receive, keep)
    return sent[0]["status"]

async def main():
    async with api.lifespan():
        found = [await ask("GET", "/ready", [HOST]), "mcp" in sys.modules]
        answers = await asyncio.gather(*[ask("POST", "/mcp", MCP, BODY.encode()) for _ in range(3)])
        print(json.dumps([*found, *answers, "mcp" in sys.modules]))

asyncio.run(main())
"""


def test_sdk_is_imported_with_the_first_request() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, timeout=120)
    # while the server runs, printed text goes to stderr
    assert done.stderr.split(b"\n")[-2] == b"[200, false, 200, 200, 200, true]"


async def test_server_that_was_never_asked_can_be_closed() -> None:
    api = Tooli("shop").asgi()
    async with api.lifespan():
        assert (await send(api, "GET", "/health")).status == 200
    await api.mounts[0].app.close(0)
    assert api.mounts[0].app._endpoint is None
