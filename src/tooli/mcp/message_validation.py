"""Validation of messages and request parameters. Unclear cases are left to the SDK."""

from __future__ import annotations

from tooli.mcp.protocol import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    INVALID_PARAMS,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    RpcError,
    invalid_params_error,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class NeedsSdk(Exception):  # noqa: N818
    """The parameters are neither clearly valid nor clearly invalid: the SDK decides."""


def has_version_meta(params: Any) -> bool:
    """True if a request contains its protocol version, as in the stateless versions."""
    meta = params.get("_meta") if is_object(params) else None
    return is_object(meta) and VERSION_KEY in meta


def check_params(params: Any) -> None:
    """Check the parameters of a method that has none except `_meta`."""
    if params is None:
        return
    _check_meta(params.get("_meta"))


def check_list_params(params: Any) -> None:
    """Check the parameters of a list request."""
    check_params(params)
    cursor = params.get("cursor") if params is not None else None
    if cursor is not None and not isinstance(cursor, str):
        raise invalid_params_error()


def check_call_params(params: Any) -> None:
    """Check the parameters of a tool call."""
    if params is None or not isinstance(params.get("name"), str):
        raise invalid_params_error()
    check_params(params)
    arguments = params.get("arguments")
    if arguments is not None and not is_object(arguments):
        raise invalid_params_error()
    if not params.keys() <= {"name", "arguments", "_meta", "requestState", "inputResponses"}:
        raise NeedsSdk
    if "requestState" in params and not isinstance(params["requestState"], str):
        raise NeedsSdk
    if "inputResponses" in params:
        responses = params["inputResponses"]
        if not is_object(responses) or not all(
            [_is_elicit_result(response) for response in responses.values()]
        ):
            raise NeedsSdk


def _is_elicit_result(response: object) -> bool:
    """True if an answer is a valid result of an elicitation."""
    if not is_object(response) or not response.keys() <= {"action", "content"}:
        return False
    if response.get("action") not in ("accept", "decline", "cancel"):
        return False
    content: Any = response.get("content", {})
    return is_object(content) and all([type(v) in (str, int, bool) for v in content.values()])


def read_initialize_params(params: Any) -> tuple[str, Any, Any]:
    """Return the version, client and capabilities of an `initialize` request."""
    if params is None:
        raise invalid_params_error()
    check_params(params)
    version, client = params.get("protocolVersion"), params.get("clientInfo")
    capabilities = params.get("capabilities")
    if not isinstance(version, str) or not is_object(capabilities):
        raise invalid_params_error()
    _check_client(client)
    _check_capabilities(capabilities)
    return version, client, capabilities


def read_stateless_meta(params: Any) -> tuple[Any, Any]:
    """Return the client and capabilities of a stateless request; raises an RpcError if invalid."""
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
    version: object = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in MODERN_VERSIONS:
        data = {"supported": list(MODERN_VERSIONS), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    client: object = meta.get(CLIENT_INFO_KEY)
    if client is not None:
        _check_client(client)
    _check_capabilities(meta[CAPABILITIES_KEY])
    return client, meta[CAPABILITIES_KEY]


def _check_meta(meta: object) -> None:
    if meta is None:
        return
    if not is_object(meta):
        raise invalid_params_error()
    fields: dict[str, Any] = meta
    if "progressToken" in fields and type(fields["progressToken"]) not in (str, int):
        raise NeedsSdk


def _check_client(client: object) -> None:
    if not is_object(client):
        raise invalid_params_error()
    fields: dict[str, Any] = client
    if not isinstance(fields.get("name"), str) or not isinstance(fields.get("version"), str):
        raise invalid_params_error()
    if any(
        [
            key not in _CLIENT_INFO_KEYS or not isinstance(value, str)
            for key, value in fields.items()
        ]
    ):
        raise NeedsSdk


_CLIENT_INFO_KEYS = frozenset(("name", "version", "title", "description", "websiteUrl"))


def _check_capabilities(capabilities: object) -> None:
    """Check client capabilities; anything but an object of objects is left to the SDK."""
    if not is_object(capabilities):
        raise invalid_params_error()
    fields: dict[str, Any] = capabilities
    for name, value in fields.items():
        if not is_object(value):
            raise NeedsSdk
        inner: dict[str, Any] = value
        if name == "roots":
            if not all([isinstance(part, bool) for part in inner.values()]):
                raise NeedsSdk
        elif not all([is_object(part) for part in inner.values()]):
            raise NeedsSdk


# ------------------------------------------------------------------ messages


def is_request_id(value: object) -> bool:
    """True if a value is a valid request id."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def request_ids(messages: Sequence[Any]) -> list[int | str]:
    """Return the ids of the requests in a batch, nested batches included."""
    found: dict[int | str, None] = {}
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


def find_message_error(message: object) -> str | None:
    """Return the error of an invalid JSON-RPC message, or None."""
    if not is_object(message):
        return "A message is a JSON object"
    fields: dict[str, Any] = message
    if fields.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if "id" in fields and not is_request_id(fields["id"]):
        return "id must be a string or an integer"
    if "method" in fields:
        if not isinstance(fields["method"], str):
            return "method must be a string"
        if fields.get("params") is not None and not is_object(fields["params"]):
            return "params must be an object"
        return None
    if "result" not in fields and "error" not in fields:
        return "method is missing"
    return None
