"""Code shared by the server surfaces (HTTP, MCP): tool dispatch, thread pool, uvicorn server."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import Any, TypeAlias

    Message: TypeAlias = MutableMapping[str, Any]
    """An ASGI message, such as `http.request`."""
    Scope: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
