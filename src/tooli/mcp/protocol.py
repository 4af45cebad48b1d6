"""MCP's own words: protocol versions, keys, and the errors of JSON-RPC."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions that begin with `initialize`, oldest first."""

MODERN_VERSIONS = ("2026-07-28",)
"""The versions in which every request stands for itself."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"

META_KEY = "io.tooli/meta"
"""Where a result carries what the envelope calls `meta`."""

ENVELOPE_KEY = "io.tooli/envelope"
"""Where a failure carries the whole envelope."""

OPTIONS_KEY = "io.tooli/options"
"""Where a request names the framework's options: `{"dry_run": true}`."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002  # a resource, in the handshake era
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of a log, quietest first."""

DEFAULT_LOG_LEVEL = "info"
"""How loud a handshake-era client hears us before it sets a level itself."""


class RpcError(Exception):
    """A request that the protocol itself refuses: not a tool's failure."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_dict(self) -> dict[str, Any]:
        """The error as JSON-RPC writes it."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


def invalid_params_error() -> RpcError:
    """The refusal of parameters that have the wrong form, in the SDK's words."""
    return RpcError(INVALID_PARAMS, "Invalid request parameters", "")


def method_not_found_error(method: str) -> RpcError:
    """The refusal of a method that is not served."""
    return RpcError(METHOD_NOT_FOUND, "Method not found", method)
