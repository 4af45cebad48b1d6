"""An MCP server over HTTP for tests, whose faults are chosen by its attributes."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

META = "io.modelcontextprotocol/"
TOOLS: list[dict[str, Any]] = [
    {
        "name": "echo",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "x-mcp-header": "Text"},
                "deep": {
                    "type": "object",
                    "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}},
                },
            },
        },
    },
    {"name": "ask", "inputSchema": {"type": "object"}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "resume", "inputSchema": {"type": "object"}},
    {"name": "break", "inputSchema": {"type": "object"}},
]


class FakeHttpServer(ThreadingHTTPServer):
    """The server and what it has received."""

    daemon_threads = True

    def __init__(self, era: str = "handshake", *, sse: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.era = era
        self.sse = sse
        self.tools = [*TOOLS]
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.answers: dict[str, tuple[Event, list[Any]]] = {}
        self.session = 0
        self.fault: tuple[int, dict[str, str], bytes] | None = None
        self.listeners: list[Any] = []
        self.closing = Event()
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def methods(self) -> list[str]:
        """Return the methods of the messages, and of the other HTTP requests."""
        return [name for name, _, _ in self.requests]

    def headers_of(self, method: str) -> dict[str, str]:
        """Return the headers of the last request of a method."""
        return next(headers for name, headers, _ in reversed(self.requests) if name == method)

    def stop(self) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeHttpServer

    def log_message(self, *_: Any) -> None:
        pass

    def note(self, method: str, body: Any = None) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((method, headers, body))

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def start_events(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, message: Any, number: str = "") -> None:
        lines = f"id: {number}\n" if number else ""
        data = json.dumps({"jsonrpc": "2.0", **message})
        self.wfile.write(f": hello\nretry: 10\n{lines}data: {data}\n\n".encode())
        self.wfile.flush()

    def do_DELETE(self) -> None:
        self.note("DELETE")
        self.reply(200)

    def do_GET(self) -> None:
        self.note("GET")
        last = self.headers.get("last-event-id")
        if last is not None:
            self.start_events()
            result = {"content": [{"type": "text", "text": f"resumed after {last}"}]}
            self.event({"id": int(last), "result": result})
        elif self.server.sse:
            self.start_events()
            self.server.listeners.append(self)
            self.server.closing.wait(60)
        else:
            self.reply(405)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = body.get("method", "answer")
        self.note(method, body)
        server = self.server
        if server.fault is not None:
            status, headers, data = server.fault
            self.reply(status, data, **headers)
        elif method == "answer":
            event, found = server.answers[body["id"]]
            found.append(body.get("result"))
            event.set()
            self.reply(202)
        elif "id" not in body:
            self.reply(202)
        elif self.has_wrong_session(method):
            self.reply(404)
        else:
            self.answer(body["id"], method, body.get("params") or {})

    def has_wrong_session(self, method: str) -> bool:
        given = self.headers.get("mcp-session-id")
        is_start = method in ("initialize", "server/discover")
        return self.server.era == "handshake" and not is_start and given != str(self.server.session)

    def answer(self, number: int, method: str, params: dict[str, Any]) -> None:
        server = self.server
        extra: dict[str, str] = {}
        if method == "initialize" and server.era == "handshake":
            info = {"name": "fake", "version": "1"}
            result: Any = {"protocolVersion": "2025-06-18", "serverInfo": info, "capabilities": {}}
            extra = {"mcp_session_id": str(server.session)}
        elif method == "server/discover" and server.era == "stateless":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        elif method == "tools/list":
            result = {"tools": server.tools}
        elif method == "subscriptions/listen" and server.era == "stateless":
            self.start_events()
            server.listeners.append(self)
            server.closing.wait(60)
            return
        elif method == "tools/call":
            self.call(number, params)
            return
        else:
            error = {"code": -32601, "message": "Method not found"}
            data = json.dumps({"jsonrpc": "2.0", "id": number, "error": error})
            self.reply(404, data.encode(), content_type="application/json")
            return
        data = json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
        self.reply(200, data.encode(), content_type="application/json", **extra)

    def call(self, number: int, params: dict[str, Any]) -> None:
        name = params["name"]
        text = json.dumps(params.get("arguments"))
        if name == "hang":
            self.server.closing.wait(60)
            return
        if name == "break":
            self.start_events()
            return
        if name == "resume":
            self.start_events()
            self.event({"method": "notifications/progress", "params": {}}, str(number))
            return
        if name == "ask" or self.server.sse:
            self.start_events()
            progress = {"progressToken": number, "progress": 1}
            self.event({"method": "notifications/progress", "params": progress})
            if name == "ask":
                event, found = self.server.answers["q1"] = (Event(), [])
                form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
                self.event({"id": "q1", "method": "elicitation/create", "params": form})
                event.wait(60)
                text = json.dumps(found[0])
            self.event({"id": number, "result": {"content": [{"type": "text", "text": text}]}})
            return
        result = {"content": [{"type": "text", "text": text}]}
        data = json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
        self.reply(200, data.encode(), content_type="application/json")
