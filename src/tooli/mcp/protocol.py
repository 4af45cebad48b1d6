"""Constants of MCP: protocol versions, keys and JSON-RPC errors."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Handshake versions: a connection starts with `initialize`. Oldest first."""

MODERN_VERSIONS = ("2026-07-28",)
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

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_dict(self) -> dict[str, Any]:
        """Return the error as JSON-RPC represents it."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


def invalid_params_error() -> RpcError:
    """Return the error for invalid parameters, with the SDK's message."""
    return RpcError(INVALID_PARAMS, "Invalid request parameters", "")


def method_not_found_error(method: str) -> RpcError:
    """Return the error for an unknown method."""
    return RpcError(METHOD_NOT_FOUND, "Method not found", method)
