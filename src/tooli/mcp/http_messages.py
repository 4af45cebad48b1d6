"""Headers and responses of MCP over HTTP, as ASGI messages."""

from __future__ import annotations

from json import dumps

from tooli.mcp.protocol import INVALID_REQUEST

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.serving import Message, Scope, Send

PARSE_ERROR, INVALID_MESSAGE = "Parse error", "The JSON-RPC message is invalid"
"""Messages of the errors for bodies that the SDK would describe with their values."""

SESSION_HEADER, VERSION_HEADER = b"mcp-session-id", b"mcp-protocol-version"
SESSION_DATA = "tooli.session_data"
"""The key in the scope of a request with the values of `ctx.state` of its session."""


def header_values(message: Message, name: bytes) -> list[str]:
    """Return the values of a header in a scope or in the start of a response."""
    return [value.decode("latin-1") for key, value in message["headers"] if key.lower() == name]


def with_session(scope: Scope, session_id: str | None) -> Scope:
    """Return a scope with the session id that the SDK knows, or without one."""
    headers = [item for item in scope["headers"] if item[0].lower() != SESSION_HEADER]
    if session_id is not None:
        headers.append((SESSION_HEADER, session_id.encode("latin-1")))
    return {**scope, "headers": headers}


def add_session_id(send: Send, session_id: str) -> Send:
    """Return a function that adds a session id to a successful response."""

    async def send_with_id(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            header = (SESSION_HEADER, session_id.encode("ascii"))
            message = {**message, "headers": [*message["headers"], header]}
        await send(message)

    return send_with_id


def join_body(messages: list[Message]) -> bytes:
    """Return the body of a request from its messages."""
    return b"".join([message.get("body", b"") for message in messages])


def without_session_id(message: Message) -> Message:
    """Return the start of a response without the session id: only `initialize` returns it."""
    headers = [item for item in message["headers"] if item[0].lower() != SESSION_HEADER]
    return {**message, "headers": headers}


def hide_input(send: Send) -> Send:
    """Return a function that sends a response without the input that an error of the SDK repeats.

    The input may contain a secret. The errors have status 400 and one body.
    """
    held: list[Message] = []

    async def send_without_input(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 400:
            held.append(message)
        elif held:
            reason, found, _ = message.get("body", b"").partition(b"rror: ")
            if found:
                text = PARSE_ERROR if b"Parse e" in reason else INVALID_MESSAGE
                await send_error(send, 400, text)
            else:
                await send(held[0])
                await send(message)
            held.clear()
        else:
            await send(message)

    return send_without_input


async def send_error(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    """Send a JSON-RPC error without an id."""
    error = {"code": INVALID_REQUEST, "message": text}
    body = dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    head = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
