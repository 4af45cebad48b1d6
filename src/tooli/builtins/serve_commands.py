"""mcp serve, mcp export, api serve, api export-openapi.

Each command imports what it needs when it runs, because servers have to start fast.
"""

from __future__ import annotations

from typing import Annotated, Literal, Optional

from tooli.builtins import long_running, owns_stdout, returns_document
from tooli.schema.param_info import Option
from tooli.serving.dispatcher import GRACE_PERIOD

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.protocols import App
    from tooli.http.asgi import HttpSettingsDict
    from tooli.http.http_server import ServableApp

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""Origins of web pages that may use an MCP server on this machine, such as inspectors."""

# Optional, because these are evaluated at run time, on Python 3.10 as well.
Transport = Annotated[
    Optional[Literal["stdio", "http", "sse"]],  # noqa: UP045
    Option(help="How clients connect. Default: mcp_transport of the app."),
]
Host = Annotated[str, Option(help="Address to listen on.")]
Port = Annotated[int, Option(help="Port to listen on; 0 selects a free port.", min=0, max=65535)]
Token = Annotated[
    Optional[str],  # noqa: UP045
    Option(help="Bearer token that clients must send.", envvar="TOOLI_TOKEN"),
]
AllowedHosts = Annotated[
    list[str], Option(help="Host name that clients may use for the server (repeatable).")
]
GracePeriod = Annotated[
    float, Option(help="Seconds that running HTTP calls have to finish at shutdown.", min=0)
]
DeferLoading = Annotated[
    bool,
    Option(
        "--defer-loading",
        help="List only a search tool and a call tool; clients find the others by searching.",
    ),
]


def add_mcp(group: App, app: ServableApp) -> None:
    """Add `mcp serve` and `mcp export`."""
    group.command("serve")(_mcp_serve_command(app))
    group.command("export")(_mcp_export_command(app))


def add_api(group: App, app: ServableApp) -> None:
    """Add `api serve` and `api export-openapi`."""
    group.command("serve")(_http_serve_command(app))
    group.command("export-openapi")(_openapi_export_command(app))


# ------------------------------------------------------------------ MCP


def serve_mcp(
    app: ServableApp,
    transport: str | None,
    host: str,
    port: int,
    token: str | None,
    allow_host: list[str],
    deferred: bool,
    grace: float,
) -> None:
    """Serve an app to MCP clients over the requested transport, or the default one of the app."""
    state = app._state
    chosen = transport or state.mcp_transport
    deferred = deferred or state.defer_loading
    if chosen == "stdio":
        from tooli.mcp.stdio_server import serve_stdio

        serve_stdio(app, deferred=deferred)
    else:
        from tooli.mcp import mcp_endpoint

        path, mount_path = ("/sse", "") if chosen == "sse" else ("/mcp", "/mcp")
        mounts = {mount_path: mcp_endpoint(app, deferred=deferred, transport=chosen)}
        local = [f"{scheme}://{name}:*" for scheme in ("http", "https") for name in _LOCAL_HOSTS]
        _load_serve_http()(
            app,
            host,
            port,
            mcp=False,
            display_path=path,
            grace=grace,
            tools=False,
            token=token,
            mounts=mounts,
            allowed_hosts=allow_host,
            allowed_origins=local,
        )


def _mcp_serve_command(app: ServableApp) -> Callable[..., object]:
    @long_running
    @owns_stdout
    def serve(
        transport: Transport = None,
        host: Host = "127.0.0.1",
        port: Port = 8000,
        token: Token = None,
        allow_host: AllowedHosts = [],  # noqa: B006  never modified
        defer_loading: DeferLoading = False,
        grace: GracePeriod = GRACE_PERIOD,
    ) -> None:
        """Serve the tools, resources and prompts of the app to MCP clients."""
        serve_mcp(app, transport, host, port, token, allow_host, defer_loading, grace)

    return serve


def _mcp_export_command(app: App) -> Callable[..., object]:
    @returns_document
    def export(defer_loading: DeferLoading = False) -> dict[str, object]:
        """Print the tools as MCP clients see them."""
        from tooli.mcp.service import McpService

        service = McpService(app, deferred=defer_loading or app._state.defer_loading)
        tools: list[object] = []
        cursor: str | None = None
        while True:
            page = service.list_tools(cursor, stateless=False)
            tools += page["tools"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return {"tools": tools}

    return export


# ------------------------------------------------------------------ HTTP


def _http_serve_command(app: ServableApp) -> Callable[..., object]:
    @long_running
    def serve(
        host: Host = "127.0.0.1",
        port: Port = 8000,
        workers: Annotated[int, Option(min=1, max=256, help="Number of worker processes.")] = 1,
        token: Token = None,
        allow_host: AllowedHosts = [],  # noqa: B006  never modified
        grace: GracePeriod = GRACE_PERIOD,
    ) -> None:
        """Serve the tools over HTTP, with a web page, OpenAPI, and MCP at /mcp."""
        http_settings: HttpSettingsDict = {"token": token, "allowed_hosts": allow_host}
        _load_serve_http()(app, host, port, workers=workers, grace=grace, **http_settings)

    return serve


def _openapi_export_command(app: App) -> Callable[..., object]:
    @returns_document
    def export_openapi() -> dict[str, object]:
        """Print the OpenAPI document of the HTTP interface."""
        from tooli.describe.openapi_document import build_openapi

        state = app._state
        return build_openapi(state.name, state.version, state.description, app.catalog)

    return export_openapi


def _load_serve_http():
    from tooli.http.http_server import serve_http

    return serve_http
