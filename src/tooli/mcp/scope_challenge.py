"""Answer a request whose token lacks a scope with a challenge, before the request runs.

    POST ─▶ method and name ─▶ tools that the request would run ─▶ missing scopes ─▶ 403
                                                                └▶ none: the SDK's transport

The client requests a token with the scopes, and sends its request again. The client does this
because of the status 403: a result with an error would have the status 200. The body is the
JSON-RPC error of the request, for clients that cannot request a token.
"""

from __future__ import annotations

import asyncio
from functools import partial
from json import dumps

from pydantic_core import from_json

from tooli.core.call import Problem
from tooli.core.caller_key import caller_key
from tooli.mcp.protocol import ENVELOPE_KEY, RpcError, is_request_id
from tooli.mcp.service import caller_from_client_info
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tooli.core.call import Caller
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.mcp.protocol import RequestId
    from tooli.mcp.resource_service import ResourceService
    from tooli.mcp.sdk_server import AppServer
    from tooli.pipeline.present import Presented
    from tooli.serving import Scope, Send

CHALLENGE_KEY = "tooli.challenge"
"""Key of the function in an ASGI scope that returns the header `WWW-Authenticate`.

Servers that require no token do not set it: their clients cannot get more scopes.
"""
SCOPE_ERROR = -32001
"""The JSON-RPC error code of a request whose token lacks a scope."""


async def refuse_missing_scope(
    server: AppServer, body: bytes, scope: Scope, send: Send, *, is_large: bool
) -> bool:
    """Answer a message with a challenge if its token lacks a scope; return False otherwise.

    A large message is read in a thread.
    """
    scopes: frozenset[str] | None = scope.get("tooli.scopes")
    if CHALLENGE_KEY not in scope or scopes is None or not server.service.dispatcher.find_scopes():
        return False
    client = scope.get("client")
    caller = caller_from_client_info(None, {}).replace(
        principal=scope.get("tooli.principal"),
        scopes=scopes,
        address=str(client[0]) if client else "network",
    )
    find = partial(_find_refused_tool, server, body, caller)
    found = await asyncio.to_thread(find) if is_large else find()
    if found is None:
        return False
    request_id, tool = found
    # the stages of the call refuse it, and log that
    prepared = server.service.dispatcher.prepare(tool, {}, caller, problems=(_UNREAD_PROBLEM,))
    key = caller_key(caller.principal, caller.address)
    presented = await server.thread_pool.run(prepared.run, key)
    await _send_refusal(request_id, presented, scope, send)
    return True


async def _send_refusal(request_id: object, presented: Presented, scope: Scope, send: Send) -> None:
    failed = presented.error
    assert failed is not None
    error = {
        "code": SCOPE_ERROR,
        "message": failed.message,
        "data": {ENVELOPE_KEY: presented.envelope()},
    }
    body = dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()
    get_challenge: Callable[[Any], tuple[bytes, bytes]] = scope[CHALLENGE_KEY]
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        get_challenge((failed.details or {}).get("missing_scopes", ())),
    ]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _find_refused_tool(
    server: AppServer, body: bytes, caller: Caller
) -> tuple[RequestId | None, Tool] | None:
    """Return the id of a message and the tool that its token has no scope for, or None."""
    try:
        message: object = from_json(body)
    except ValueError:
        return None
    if not is_object(message):
        return None
    for tool in _find_tools(server, message):
        audience = tool.guard.audience
        if audience and caller.scopes.isdisjoint(audience):
            continue  # the tool does not exist for this caller
        error = server.service.dispatcher.find_scope_error(tool, caller)
        if error is not None and error.code == "E2001":
            request_id = message.get("id")
            return request_id if is_request_id(request_id) else None, tool
    return None


_UNREAD_PROBLEM = Problem("E1008", None, "The arguments were not read: send the request again")
"""Prevents a call without its arguments, if the scopes of a tool change meanwhile."""


def _find_tools(server: AppServer, message: JsonObject) -> Iterator[Tool]:
    """Yield the tools whose scopes a message needs. An invalid message needs none."""
    method, params = message.get("method"), message.get("params")
    if not is_object(params):
        return
    try:
        if method == "tools/call":
            if isinstance(params.get("name"), str):
                tool = server.service.find_called_tool(params)
                if tool is not None:
                    yield tool
        elif method in ("resources/read", "resources/subscribe"):
            yield from _find_resources(server.resource_service, [params.get("uri")])
        elif method == "subscriptions/listen":
            notifications = params.get("notifications")
            uris = notifications.get("resourceSubscriptions") if is_object(notifications) else ()
            yield from _find_resources(server.resource_service, uris)
        elif method == "prompts/get":
            yield from server.resource_service.find_prompt_tools(params.get("name"))
        elif method == "completion/complete" and is_object(ref := params.get("ref")):
            yield from server.resource_service.find_prompt_tools(ref.get("name"))
            yield from _find_resources(server.resource_service, [ref.get("uri")])
    except RpcError:  # the request gets this error when it runs
        return


def _find_resources(service: ResourceService, uris: object) -> Iterator[Tool]:
    for uri in (uris if is_list(uris) else ())[:MAX_URIS]:
        if isinstance(uri, str):
            yield from service.find_resource_tools(uri)


MAX_URIS = 1000
"""Maximum number of resources of a stream that are checked here. More are refused later."""
