"""The MCP protocol: versions, keys, JSON-RPC errors, and validation of messages and parameters.

The SDK validates what this module cannot decide (`NeedsSdk`).
"""

from __future__ import annotations

from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias, TypeGuard

    from tooli.core.protocols import JsonObject

    RequestId: TypeAlias = int | str

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Handshake versions: a connection starts with `initialize`. Oldest first."""

STATELESS_VERSIONS = ("2026-07-28",)
"""Stateless versions: every request contains its version, client and capabilities."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"

META_KEY = "io.tooli/meta"
"""The key in a result's `_meta` with the envelope's `meta`."""

ENVELOPE_KEY = "io.tooli/envelope"
"""The key in a failure's `_meta` with the whole envelope."""

OPTIONS_KEY = "io.tooli/options"
"""The key in a request's `_meta` with framework options: `{"dry_run": true}`."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002  # used in handshake versions only
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Log levels, from the least to the most severe."""

DEFAULT_LOG_LEVEL = "info"
"""The log level of a client of a handshake version until it sets one."""


class RpcError(Exception):
    """A JSON-RPC error, as opposed to the failure of a tool."""

    def __init__(self, code: int, message: str, data: JsonObject | str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_dict(self) -> JsonObject:
        """Return the error as JSON-RPC represents it."""
        error: JsonObject = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


def invalid_params_error() -> RpcError:
    """Return the error for invalid parameters, with the SDK's message."""
    return RpcError(INVALID_PARAMS, "Invalid request parameters", "")


def method_not_found_error(method: str) -> RpcError:
    """Return the error for an unknown method."""
    return RpcError(METHOD_NOT_FOUND, "Method not found", method)


# ------------------------------------------------------------------ request parameters


class NeedsSdk(Exception):  # noqa: N818
    """The parameters are neither clearly valid nor clearly invalid: the SDK decides."""


def has_version_meta(params: JsonObject) -> bool:
    """True if a request contains its protocol version, as in the stateless versions."""
    meta = params.get("_meta")
    return is_object(meta) and VERSION_KEY in meta


def check_params(params: JsonObject) -> None:
    """Check the parameters of a method that has none except `_meta`."""
    meta = params.get("_meta")
    if meta is None:
        return
    if not is_object(meta):
        raise invalid_params_error()
    if "progressToken" in meta and type(meta["progressToken"]) not in (str, int):
        raise NeedsSdk


def check_list_params(params: JsonObject) -> None:
    """Check the parameters of a list request."""
    check_params(params)
    if not isinstance(params.get("cursor"), (str, type(None))):
        raise invalid_params_error()


def check_call_params(params: JsonObject) -> None:
    """Check the parameters of a tool call."""
    if not isinstance(params.get("name"), str):
        raise invalid_params_error()
    check_params(params)
    if not isinstance(params.get("arguments"), (dict, type(None))):
        raise invalid_params_error()
    responses = params.get("inputResponses", {})
    if (
        not params.keys() <= {"name", "arguments", "_meta", "requestState", "inputResponses"}
        or not isinstance(params.get("requestState", ""), str)
        or not is_object(responses)
        or not all([_is_elicit_result(response) for response in responses.values()])
    ):
        raise NeedsSdk


def _is_elicit_result(response: object) -> bool:
    """True if an answer is a valid result of an elicitation."""
    if not is_object(response) or not response.keys() <= {"action", "content"}:
        return False
    if response.get("action") not in ("accept", "decline", "cancel"):
        return False
    content = response.get("content", {})
    return is_object(content) and all([type(v) in (str, int, bool) for v in content.values()])


def read_initialize_params(params: JsonObject) -> tuple[str, JsonObject, JsonObject]:
    """Return the version, client and capabilities of an `initialize` request."""
    check_params(params)
    version = params.get("protocolVersion")
    if not isinstance(version, str) or not is_object(params.get("capabilities")):
        raise invalid_params_error()
    client = _check_client(params.get("clientInfo"))
    return version, client, _check_capabilities(params["capabilities"])


def read_stateless_meta(params: JsonObject) -> tuple[JsonObject | None, JsonObject]:
    """Return the client and capabilities of a stateless request; raises an RpcError if invalid."""
    meta = params.get("_meta")
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
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in STATELESS_VERSIONS:
        data = {"supported": list(STATELESS_VERSIONS), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    client = meta.get(CLIENT_INFO_KEY)
    checked_client = None if client is None else _check_client(client)
    return checked_client, _check_capabilities(meta[CAPABILITIES_KEY])


_CLIENT_INFO_KEYS = frozenset(("name", "version", "title", "description", "websiteUrl"))


def _check_client(client: object) -> JsonObject:
    """Return the information about a client if it is valid."""
    if (
        not is_object(client)
        or not isinstance(client.get("name"), str)
        or not isinstance(client.get("version"), str)
    ):
        raise invalid_params_error()
    if any([k not in _CLIENT_INFO_KEYS or not isinstance(v, str) for k, v in client.items()]):
        raise NeedsSdk
    return client


def _check_capabilities(capabilities: object) -> JsonObject:
    """Return the client's capabilities if they are valid.

    The SDK validates capabilities that are not an object of objects.
    """
    if not is_object(capabilities):
        raise invalid_params_error()
    for name, value in capabilities.items():
        part_type = bool if name == "roots" else dict
        if not is_object(value) or not all([isinstance(v, part_type) for v in value.values()]):
            raise NeedsSdk
    return capabilities


# ------------------------------------------------------------------ messages


def is_request_id(value: object) -> TypeGuard[RequestId]:
    """True if a value is a valid request id."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def request_ids(messages: Iterable[object]) -> list[RequestId]:
    """Return the ids of the requests in a batch, nested batches included."""
    found: dict[RequestId, None] = {}
    queue = [messages]
    while queue:
        for item in queue.pop():
            if is_list(item):
                queue.append(item)
            elif (
                is_object(item)
                and is_request_id(item.get("id"))
                and not {"result", "error"} & item.keys()
            ):
                found[item["id"]] = None
    return list(found)


def check_message(message: object) -> JsonObject:
    """Return a message if it is valid JSON-RPC; raises an RpcError otherwise."""
    if not is_object(message):
        problem = "A message must be a JSON object"
    elif message.get("jsonrpc") != "2.0":
        problem = 'jsonrpc must be "2.0"'
    elif "id" in message and not is_request_id(message["id"]):
        problem = "id must be a string or an integer"
    elif "method" not in message and "result" not in message and "error" not in message:
        problem = "method is missing"
    elif not isinstance(message.get("method", ""), str):
        problem = "method must be a string"
    elif "method" in message and not isinstance(message.get("params"), (dict, type(None))):
        problem = "params must be an object"
    else:
        return message
    raise RpcError(INVALID_REQUEST, problem)
