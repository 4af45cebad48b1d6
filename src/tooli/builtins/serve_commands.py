"""mcp serve, mcp export, api serve, api export-openapi, search-tools."""

from __future__ import annotations

from typing import Annotated, Literal, Optional

from tooli.builtins.command_markers import long_running, owns_stdout, returns_document
from tooli.schema.param_info import Argument, Option
from tooli.serving.dispatcher import GRACE_PERIOD

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.http.http_settings import HttpSettingsDict

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""Where pages may come from that talk to an MCP server on this machine, as inspectors do."""

# Optional, not `| None`: these are evaluated where they stand, on Python 3.10 as well.
Transport = Annotated[
    Optional[Literal["stdio", "http", "sse"]],  # noqa: UP045
    Option(help="How clients connect; without it, as the app says (mcp_transport)."),
]
Host = Annotated[str, Option(help="Address to listen on.")]
Port = Annotated[int, Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)]
Token = Annotated[
    Optional[str],  # noqa: UP045
    Option(help="Bearer token that clients must send.", envvar="TOOLI_TOKEN"),
]
AllowedHosts = Annotated[
    list[str], Option(help="A further name under which clients reach the server: its Host.")
]
GracePeriod = Annotated[
    float, Option(help="Seconds that calls over HTTP get to finish in when it ends.", min=0)
]
DeferLoading = Annotated[
    bool,
    Option(
        "--defer-loading", help="List only a search and a runner; tools are found by searching."
    ),
]


def add_mcp(group: Any, app: Any) -> None:
    """`mcp serve`, `mcp export`."""
    group.command("serve")(_mcp_serve_command(app))
    group.command("export")(_mcp_export_command(app))


def add_api(group: Any, app: Any) -> None:
    """`api serve`, `api export-openapi`."""
    group.command("serve")(_http_serve_command(app))
    group.command("export-openapi")(_openapi_export_command(app))


def add_search(builtin_app: Any, app: Any) -> None:
    """`search-tools`."""
    builtin_app.command("search-tools")(_search_command(app))


# ------------------------------------------------------------------ MCP


def serve_mcp(
    app: Any,
    transport: str | None,
    host: str,
    port: int,
    token: str | None,
    allow_host: list[str],
    deferred: bool,
    grace: float,
) -> None:
    """Serve an app to MCP clients, the way that was asked for or that the app prefers."""
    state = app._state
    chosen = transport or state.mcp_transport
    deferred = deferred or state.defer_loading
    if chosen == "stdio":
        from tooli.mcp.stdio import serve_stdio

        serve_stdio(app, deferred=deferred)
    else:
        from tooli.http.http_server import serve_http
        from tooli.mcp.http_transport import mcp_endpoint

        path, mount_path = ("/sse", "") if chosen == "sse" else ("/mcp", "/mcp")
        mounts = {mount_path: mcp_endpoint(app, deferred=deferred, transport=chosen)}
        local = [f"{scheme}://{name}:*" for scheme in ("http", "https") for name in _LOCAL_HOSTS]
        serve_http(
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


def _mcp_serve_command(app: Any) -> Any:
    @long_running
    @owns_stdout
    def serve(
        transport: Transport = None,
        host: Host = "127.0.0.1",
        port: Port = 8000,
        token: Token = None,
        allow_host: AllowedHosts = [],  # noqa: B006  nobody changes it
        defer_loading: DeferLoading = False,
        grace: GracePeriod = GRACE_PERIOD,
    ) -> None:
        """Serve the app's tools, resources and prompts to an MCP client."""
        serve_mcp(app, transport, host, port, token, allow_host, defer_loading, grace)

    return serve


def _mcp_export_command(app: Any) -> Any:
    @returns_document
    def export(defer_loading: DeferLoading = False) -> dict[str, object]:
        """Print the app's tools as MCP clients see them."""
        from tooli.mcp.service import McpService

        service = McpService(app, deferred=defer_loading or app._state.defer_loading)
        tools: list[object] = []
        cursor: str | None = None
        while True:
            page = service.list_tools(cursor, modern=False)
            tools += page["tools"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return {"tools": tools}

    return export


# ------------------------------------------------------------------ HTTP


def _http_serve_command(app: Any) -> Any:
    @long_running
    def serve(
        host: Host = "127.0.0.1",
        port: Port = 8000,
        workers: Annotated[int, Option(min=1, max=256, help="Processes that share the port.")] = 1,
        token: Token = None,
        allow_host: AllowedHosts = [],  # noqa: B006  nobody changes it
        grace: GracePeriod = GRACE_PERIOD,
    ) -> None:
        """Serve the app's tools over HTTP, with a page for people, OpenAPI, and MCP at /mcp."""
        from tooli.http.http_server import serve_http

        http_settings: HttpSettingsDict = {"token": token, "allowed_hosts": allow_host}
        serve_http(app, host, port, workers=workers, grace=grace, **http_settings)

    return serve


def _openapi_export_command(app: Any) -> Any:
    @returns_document
    def export_openapi() -> dict[str, object]:
        """Print the OpenAPI description of the app's HTTP interface."""
        from tooli.describe.openapi_document import build_openapi

        state = app._state
        return build_openapi(state.name, state.version, state.description, app.catalog)

    return export_openapi


# ------------------------------------------------------------------ finding


def _search_command(app: Any) -> Any:
    def search_tools(
        query: Annotated[str, Argument(help="What the tool should do, or a part of its name.")],
        limit: Annotated[int, Option(min=1, max=100, help="How many to show.")] = 10,
        schema: Annotated[bool, Option("--with-schema", help="With their input schemas.")] = False,
    ) -> list[dict[str, object]]:
        """Find the commands that fit a description, best first."""
        from tooli.providers.search import ToolIndex
        from tooli.providers.signature import format_signature

        found: list[dict[str, object]] = []
        for hit in ToolIndex(app.catalog).search(query, limit):
            row: dict[str, object] = {"name": hit.tool.key, "signature": format_signature(hit.tool)}
            if schema:
                from tooli.schema.json_schema import input_schema

                row["input_schema"] = input_schema(hit.tool)
            found.append(row)
        return found

    return search_tools
