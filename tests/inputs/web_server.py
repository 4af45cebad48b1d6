"""A small web server on 127.0.0.1 for tests that read URLs."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Site:
    """The pages of a web server by path.

    A page is a content type and a body, or a function that answers with the request handler.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.pages: dict[str, tuple[str, bytes] | Callable[[Any], None]] = {}
        self.requested_paths: list[str] = []

    def __call__(self, path: str) -> str:
        """Return the URL of a path."""
        return f"http://{self.address}{path}"

    def redirect(self, path: str, to: str) -> None:
        """Add a page that redirects to a URL."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(302)
            handler.send_header("Location", to)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        self.pages[path] = answer


@contextlib.contextmanager
def site() -> Iterator[Site]:
    """Run a web server for the duration of a `with` block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            running.requested_paths.append(self.path)
            page = running.pages.get(self.path)
            if callable(page):
                page(self)
            elif page is None:
                self.send_error(404)
            else:
                self.send_response(200)
                self.send_header("Content-Type", page[0])
                self.send_header("Content-Length", str(len(page[1])))
                self.end_headers()
                self.wfile.write(page[1])

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running = Site(f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
