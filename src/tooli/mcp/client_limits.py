"""Limit what a session keeps of the client's `initialize` request.

The SDK keeps the parameters of `initialize` as long as the session exists. A small body can contain
millions of empty lists, and one caller can open many sessions.
"""

from __future__ import annotations

from mcp.shared.exceptions import MCPError

from tooli.core.tool import MAX_QUOTED_CHARS, cut_text
from tooli.mcp.protocol import INVALID_PARAMS, QUESTION_CAPABILITIES
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from starlette.requests import Request

    from tooli.core.protocols import JsonObject

    Ctx: TypeAlias = ServerRequestContext[JsonObject, Request]

MAX_INITIALIZE_CHARS = 16_000
"""Maximum size of the parameters of `initialize` over HTTP."""


async def limit_initialize(ctx: Ctx, call_next: CallNext) -> HandlerResult:
    """SDK middleware: refuse large parameters of `initialize`, and remove those that are not used.

    Over stdio they are not refused: there is one client, which started this process.
    """
    params: Any = ctx.params
    if ctx.method == "initialize" and is_object(params):
        if ctx.request is not None and _is_larger_than(params, MAX_INITIALIZE_CHARS):
            raise MCPError(
                INVALID_PARAMS,
                f"The parameters of initialize are larger than {MAX_INITIALIZE_CHARS} characters.",
            )
        _remove_unused(params)
    return await call_next(ctx)


def _is_larger_than(value: object, max_chars: int) -> bool:
    """True if a JSON value is larger than a number of characters. Stops as soon as it is."""
    pending: list[object] = [value]
    while pending:
        part = pending.pop()
        max_chars -= 2 + (len(part) if isinstance(part, str) else 0)
        if is_object(part) and len(part) <= max_chars:
            pending += [*part, *part.values()]
        elif is_list(part) and len(part) <= max_chars:
            pending += part
        elif max_chars < 0 or is_object(part) or is_list(part):
            return True
    return False


def _remove_unused(params: JsonObject) -> None:
    """Remove what tooli does not use from the parameters, which the SDK keeps after the request."""
    capabilities, client = params.get("capabilities"), params.get("clientInfo")
    if is_object(capabilities):
        params["capabilities"] = {
            name: value for name, value in capabilities.items() if name in QUESTION_CAPABILITIES
        }
    if is_object(client):
        params["clientInfo"] = {
            name: cut_text(value, MAX_QUOTED_CHARS) if isinstance(value, str) else value
            for name, value in client.items()
            if name in ("name", "version")
        }
