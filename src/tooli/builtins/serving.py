"""mcp serve, mcp export, api serve, api export-openapi, search-tools."""

from __future__ import annotations

from typing import Annotated, Literal, Optional

from tooli.builtins.marks import is_document, lasts, takes_stdout
from tooli.contract.info import Argument, Option
from tooli.surfaces.serving import GRACE

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.surfaces.http.settings import SettingWords

_HERE = ("localhost", "127.0.0.1", "[::1]")
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
Names = Annotated[
    list[str], Option(help="A further name under which clients reach the server: its Host.")
]
Grace = Annotated[
    float, Option(help="Seconds that calls over HTTP get to finish in when it ends.", min=0)
]
Deferred = Annotated[
    bool,
    Option(
        "--defer-loading", help="List only a search and a runner; tools are found by searching."
    ),
]


def add_mcp(group: Any, app: Any) -> None:
    """`mcp serve`, `mcp export`."""
    group.command("serve")(_serving(app))
    group.command("export")(_mcp_document(app))


def add_api(group: Any, app: Any) -> None:
    """`api serve`, `api export-openapi`."""
    group.command("serve")(_http_serving(app))
    group.command("export-openapi")(_openapi_document(app))


def add_search(whole: Any, app: Any) -> None:
    """`search-tools`."""
    whole.command("search-tools")(_search(app))


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
    house = app._house
    chosen = transport or house.mcp_transport
    deferred = deferred or house.defer_loading
    if chosen == "stdio":
        from tooli.surfaces.mcp.stdio import serve_stdio

        serve_stdio(app, deferred=deferred)
    else:
        from tooli.surfaces.http.serve import serve_http
        from tooli.surfaces.mcp.http import mcp_endpoint

        at, mounted = ("/sse", "") if chosen == "sse" else ("/mcp", "/mcp")
        mounts = {mounted: mcp_endpoint(app, deferred=deferred, transport=chosen)}
        local = [f"{scheme}://{name}:*" for scheme in ("http", "https") for name in _HERE]
        serve_http(
            app,
            host,
            port,
            mcp=False,
            at=at,
            grace=grace,
            tools=False,
            token=token,
            mounts=mounts,
            allowed_hosts=allow_host,
            allowed_origins=local,
        )


def _serving(app: Any) -> Any:
    @lasts
    @takes_stdout
    def serve(
        transport: Transport = None,
        host: Host = "127.0.0.1",
        port: Port = 8000,
        token: Token = None,
        allow_host: Names = [],  # noqa: B006  nobody changes it
        defer_loading: Deferred = False,
        grace: Grace = GRACE,
    ) -> None:
        """Serve the app's tools, resources and prompts to an MCP client."""
        serve_mcp(app, transport, host, port, token, allow_host, defer_loading, grace)

    return serve


def _mcp_document(app: Any) -> Any:
    @is_document
    def export(defer_loading: Deferred = False) -> dict[str, object]:
        """Print the app's tools as MCP clients see them."""
        from tooli.surfaces.mcp.service import Service

        service = Service(app, deferred=defer_loading or app._house.defer_loading)
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


def _http_serving(app: Any) -> Any:
    @lasts
    def serve(
        host: Host = "127.0.0.1",
        port: Port = 8000,
        workers: Annotated[int, Option(min=1, max=256, help="Processes that share the port.")] = 1,
        token: Token = None,
        allow_host: Names = [],  # noqa: B006  nobody changes it
        grace: Grace = GRACE,
    ) -> None:
        """Serve the app's tools over HTTP, with a page for people, OpenAPI, and MCP at /mcp."""
        from tooli.surfaces.http.serve import serve_http

        said: SettingWords = {"token": token, "allowed_hosts": allow_host}
        serve_http(app, host, port, workers=workers, grace=grace, **said)

    return serve


def _openapi_document(app: Any) -> Any:
    @is_document
    def export_openapi() -> dict[str, object]:
        """Print the OpenAPI description of the app's HTTP interface."""
        from tooli.views.openapi import describe

        house = app._house
        return describe(house.name, house.version, house.description, app.catalog)

    return export_openapi


# ------------------------------------------------------------------ finding


def _search(app: Any) -> Any:
    def search_tools(
        query: Annotated[str, Argument(help="What the tool should do, or a part of its name.")],
        limit: Annotated[int, Option(min=1, max=100, help="How many to show.")] = 10,
        schema: Annotated[bool, Option("--with-schema", help="With their input schemas.")] = False,
    ) -> list[dict[str, object]]:
        """Find the commands that fit a description, best first."""
        from tooli.sources.search import Index
        from tooli.sources.signature import signature

        found: list[dict[str, object]] = []
        for hit in Index(app.catalog).search(query, limit):
            shown: dict[str, object] = {"name": hit.tool.key, "signature": signature(hit.tool)}
            if schema:
                from tooli.contract.schema import input_schema

                shown["input_schema"] = input_schema(hit.tool)
            found.append(shown)
        return found

    return search_tools
