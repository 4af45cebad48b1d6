"""Messages, and the parameters of requests: right, wrong, or the SDK's to judge."""

from __future__ import annotations

from tooli.contract.jsonable import is_list, is_object
from tooli.surfaces.mcp.words import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    INVALID_PARAMS,
    MODERN,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    RpcError,
    invalid_params,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Doubt(Exception):  # noqa: N818
    """Neither plainly right nor plainly wrong: the SDK knows."""


def has_envelope(params: Any) -> bool:
    """Whether a request says its protocol version itself, as the stateless era does."""
    meta = params.get("_meta") if is_object(params) else None
    return is_object(meta) and VERSION_KEY in meta


def plain(params: Any) -> None:
    """Parameters that are nothing but a `_meta`, if they are there."""
    if params is None:
        return
    _check_meta(params.get("_meta"))


def listing(params: Any) -> None:
    """The parameters of a list."""
    plain(params)
    cursor = params.get("cursor") if params is not None else None
    if cursor is not None and not isinstance(cursor, str):
        raise invalid_params()


def calling(params: Any) -> None:
    """The parameters of a tool call."""
    if params is None or not isinstance(params.get("name"), str):
        raise invalid_params()
    plain(params)
    arguments = params.get("arguments")
    if arguments is not None and not is_object(arguments):
        raise invalid_params()
    if not params.keys() <= {"name", "arguments", "_meta", "requestState", "inputResponses"}:
        raise Doubt
    if "requestState" in params and not isinstance(params["requestState"], str):
        raise Doubt
    if "inputResponses" in params:
        answers = params["inputResponses"]
        if not is_object(answers) or not all([_is_reply(one) for one in answers.values()]):
            raise Doubt


def _is_reply(answer: Any) -> bool:
    """Whether an answer is surely a filled-in form, or one that was sent back empty."""
    if not is_object(answer) or not answer.keys() <= {"action", "content"}:
        return False
    if answer.get("action") not in ("accept", "decline", "cancel"):
        return False
    content: Any = answer.get("content", {})
    return is_object(content) and all([type(v) in (str, int, bool) for v in content.values()])


def greeting(params: Any) -> tuple[str, Any, Any]:
    """Version, client and capabilities of a handshake."""
    if params is None:
        raise invalid_params()
    plain(params)
    version, client = params.get("protocolVersion"), params.get("clientInfo")
    capabilities = params.get("capabilities")
    if not isinstance(version, str) or not is_object(capabilities):
        raise invalid_params()
    _check_client(client)
    _check_capabilities(capabilities)
    return version, client, capabilities


def route(params: Any) -> tuple[Any, Any]:
    """Client and capabilities of a request that stands for itself, or why it cannot be served."""
    meta: Any = params.get("_meta") if params is not None else None
    if not is_object(meta):
        raise RpcError(
            INVALID_PARAMS,
            "params._meta must be an object carrying the required "
            f"{VERSION_KEY!r} and {CAPABILITIES_KEY!r} envelope keys",
        )
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        keys = ", ".join(missing)
        raise RpcError(
            INVALID_PARAMS, f"params._meta is missing the required envelope key(s): {keys}"
        )
    version: Any = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in MODERN:
        data = {"supported": list(MODERN), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    client: Any = meta.get(CLIENT_KEY)
    if client is not None:
        _check_client(client)
    _check_capabilities(meta[CAPABILITIES_KEY])
    return client, meta[CAPABILITIES_KEY]


def _check_meta(meta: Any) -> None:
    if meta is None:
        return
    if not is_object(meta):
        raise invalid_params()
    said: dict[str, Any] = meta
    if "progressToken" in said and type(said["progressToken"]) not in (str, int):
        raise Doubt


def _check_client(client: Any) -> None:
    if not is_object(client):
        raise invalid_params()
    said: dict[str, Any] = client
    if not isinstance(said.get("name"), str) or not isinstance(said.get("version"), str):
        raise invalid_params()
    if any([key not in _TEXTS or not isinstance(value, str) for key, value in said.items()]):
        raise Doubt


_TEXTS = frozenset(("name", "version", "title", "description", "websiteUrl"))


def _check_capabilities(capabilities: Any) -> None:
    """Objects of objects are surely right; anything else may be."""
    if not is_object(capabilities):
        raise invalid_params()
    said: dict[str, Any] = capabilities
    for name, value in said.items():
        if not is_object(value):
            raise Doubt
        inner: dict[str, Any] = value
        if name == "roots":
            if not all([isinstance(part, bool) for part in inner.values()]):
                raise Doubt
        elif not all([is_object(part) for part in inner.values()]):
            raise Doubt


# ------------------------------------------------------------------ messages


def is_id(value: Any) -> bool:
    """Whether a request may be called that."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def ids_of(messages: Sequence[Any]) -> list[int | str]:
    """The ids of the requests in a batch, in whatever they are wrapped."""
    found: dict[int | str, None] = {}
    waiting = [messages]
    while waiting:
        for one in waiting.pop():
            if is_list(one):
                waiting.append(one)
            elif is_object(one) and is_id(one.get("id")) and not {"result", "error"} & one.keys():
                found[one["id"]] = None
    return list(found)


def wrong_with(message: Any) -> str | None:
    """What is wrong with a message as JSON-RPC; None where nothing is."""
    if not is_object(message):
        return "A message is a JSON object"
    said: dict[str, Any] = message
    if said.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if "id" in said and not is_id(said["id"]):
        return "id must be a string or an integer"
    if "method" in said:
        if not isinstance(said["method"], str):
            return "method must be a string"
        if said.get("params") is not None and not is_object(said["params"]):
            return "params must be an object"
        return None
    if "result" not in said and "error" not in said:
        return "method is missing"
    return None
