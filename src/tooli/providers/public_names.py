"""The names that `from tooli.providers import …` loads on demand, and the modules they are in."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_MODULES = {
    "provider": (
        *("Provider", "LocalProvider", "described_tool", "function_tool"),
        *("hinted_behavior", "UNKNOWN_EFFECTS"),
    ),
    "file_system_provider": ("FileSystemProvider", "tool"),
    "mcp_client.mcp_provider": ("MCPProvider",),
    "remote_provider": ("RemoteProvider",),
    "sql.sql_provider": ("SQLProvider",),
    "programs.cli_provider": ("CLIProvider",),
    "openapi.openapi_provider": ("OpenAPIProvider",),
}


def load(name: str) -> Any:
    """Return a public name of `tooli.providers`."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"tooli.providers.{module}"), name)
    raise AttributeError(f"module 'tooli.providers' has no attribute {name!r}")
