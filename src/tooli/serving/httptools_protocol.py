"""HttpToolsConnection: a connection whose messages httptools parses, as strictly as h11 does.

llhttp, the parser of httptools, has no limit for the size of headers. It passes on trailers as if
they were headers, and it accepts other transfer codings than `chunked`. It parses all requests that
have arrived, also those that wait for the response to an earlier one (pipelining). uvicorn knows
only the newest of them, so this class knows the others.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tooli.serving.http_protocols import BAD_REQUEST_BODY, ClientTimeouts

MAX_HEAD_BYTES = 1 << 16
"""Maximum size of the request line and headers, and of what surrounds the chunks of a body."""

MAX_PIPELINED_REQUESTS = 100
"""Maximum number of requests of a connection that are not answered yet."""

_BAD_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(BAD_REQUEST_BODY), BAD_REQUEST_BODY)
)


class InvalidHttpMessage(ValueError):  # noqa: N818
    """A message that the server does not accept. The parser turns it into an error of its own."""


class HttpToolsConnection(ClientTimeouts, HttpToolsProtocol):
    """A connection whose messages httptools parses."""

    _is_reading_head = True
    _overhead = 0  # bytes since the last part of a body

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unanswered: list[Any] = []  # the cycles of the requests, in their order

    def data_received(self, data: bytes) -> None:
        """Handle received data, unless the connection was closed because of an error."""
        if self.parser is None or self.transport.is_closing():  # pyright: ignore[reportUnnecessaryComparison]
            return
        self._overhead += len(data)
        super().data_received(data)
        if self._overhead > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """Handle the start of a request."""
        self._is_reading_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle a header. A trailer, which follows the body, is ignored."""
        if self._is_reading_head:
            super().on_header(name, value.strip(b" \t"))  # whitespace around it is no part of it

    def on_headers_complete(self) -> None:
        """Handle the end of the headers."""
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        if codings and (len(codings) > 1 or codings[0].lower() != b"chunked"):
            raise InvalidHttpMessage("transfer-encoding")
        if self.url[:1] != b"/":
            raise InvalidHttpMessage("the target is not a path")
        if len(self._unanswered) >= MAX_PIPELINED_REQUESTS:
            raise InvalidHttpMessage("too many requests")
        self._is_reading_head = False
        self._overhead = 0
        super().on_headers_complete()
        self._unanswered.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Handle a part of the body."""
        self._overhead = 0
        super().on_body(body)

    def on_chunk_complete(self) -> None:
        """Handle the end of a chunk."""
        self._overhead = 0

    def on_message_complete(self) -> None:
        """Handle the end of a request."""
        self._overhead = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Handle the end of a response. No more is read while other requests wait for theirs."""
        self._unanswered = [cycle for cycle in self._unanswered if not cycle.response_complete]
        super().on_response_complete()
        if self.pipeline and not self.transport.is_closing():
            self.flow.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        super().connection_lost(exc)
        self.end_cycle()
        self._unanswered.clear()

    def end_cycle(self) -> None:
        """Tell the application of each unanswered request that it cannot send a response."""
        for cycle in self._unanswered:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with an envelope, and close the connection."""
        del msg  # uvicorn's own text
        cycle: Any = self.cycle
        if not self.pipeline and (
            cycle is None or cycle.response_complete or not cycle.response_started
        ):
            self.transport.write(_BAD_REQUEST)
        self.end_cycle()
        self.transport.close()
