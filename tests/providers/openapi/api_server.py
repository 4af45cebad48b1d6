"""An HTTP server for tests: it records requests, and answers as the test says."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class Received:
    """A request that the server has received."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """What the server answers. A body that is not bytes is sent as JSON."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False  # end the connection before the whole body is sent


class ApiServer:
    """A server on this machine. `answer` is a function of the request, or the answer itself."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.requests: list[Received] = []
        self.answer: Answer | Callable[[Received], Answer] = Answer({})
        self.release = threading.Event()  # a handler may wait for it

    @property
    def last(self) -> Received:
        return self.requests[-1]


@contextmanager
def serve() -> Iterator[ApiServer]:
    """Run a server during a block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            received = Received(self.command, self.path, headers, self.rfile.read(size))
            api.requests.append(received)
            answer = api.answer(received) if callable(api.answer) else api.answer
            self.send(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = respond

        def send(self, answer: Answer) -> None:
            is_json = not isinstance(answer.body, bytes)
            body = json.dumps(answer.body).encode() if is_json else answer.body
            self.send_response(answer.status)
            headers = {"Content-Type": "application/json"} if is_json else {}
            for name, value in {**headers, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) + (10 if answer.is_cut else 0)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a client that stops waiting closes the connection

    server = Server(("127.0.0.1", 0), Handler)
    api = ApiServer(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield api
    finally:
        api.release.set()
        server.shutdown()
        thread.join()
        server.server_close()


def openapi(paths: dict[str, Any], version: str = "3.0.3", **more: Any) -> dict[str, Any]:
    """Return an OpenAPI document with these paths."""
    return {"openapi": version, "info": {"title": "Test", "version": "1"}, "paths": paths, **more}


def operation(**more: Any) -> dict[str, Any]:
    """Return an operation that answers with JSON."""
    answer = {"description": "OK", "content": {"application/json": {"schema": {}}}}
    return {"operationId": "run", "responses": {"200": answer}, **more}


def parameter(name: str, location: str = "query", **more: Any) -> dict[str, Any]:
    """Return a parameter of type string."""
    declared = {"name": name, "in": location, "schema": {"type": "string"}, **more}
    return {**declared, "required": True} if location == "path" else declared
