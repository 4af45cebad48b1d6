"""mcp, api and skills: serve the app to agents, or install it where they look for it.

Each command imports what it needs when it runs, because servers have to start fast.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, Literal

from tooli.builtins import long_running, owns_stdout, returns_document, with_plan
from tooli.core.agent_hosts import SERVER_HOSTS, SKILL_HOSTS
from tooli.errors import InputError, Suggestion
from tooli.pipeline.context import Context  # noqa: TC001  the annotation is evaluated
from tooli.schema.param_info import Option
from tooli.serving.dispatcher import GRACE_PERIOD

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.protocols import App, F
    from tooli.http.asgi import HttpSettingsDict
    from tooli.http.http_server import ServableApp

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""Hosts of web pages, such as MCP inspectors, that may connect to an MCP server over HTTP."""

# These annotations are evaluated when the module is imported.
Transport = Annotated[
    Literal["stdio", "http", "sse"] | None,
    Option(help="How clients connect. Default: mcp_transport of the app."),
]
Host = Annotated[str, Option(help="Address to listen on.")]
Port = Annotated[int, Option(help="Port to listen on; 0 selects a free port.", min=0, max=65535)]
Token = Annotated[
    str | None,
    Option(help="Bearer token that clients must send.", envvar="TOOLI_TOKEN"),
]
TokenFile = Annotated[
    str | None,
    Option(help="File with the token. Only its owner may have access (chmod 600)."),
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


# ------------------------------------------------------------------ MCP


def serve_mcp(
    app: ServableApp,
    transport: str | None,
    host: str,
    port: int,
    token: str | None,
    token_file: str | None,
    allow_host: list[str],
    deferred: bool,
    grace: float,
    *,
    with_api: bool = False,
) -> None:
    """Serve an app to MCP clients over the requested transport, or the default one of the app.

    With `with_api`, the transport `http` also serves the HTTP API.
    """
    state = app._state
    chosen = transport or state.mcp_transport
    deferred = deferred or state.defer_loading
    if chosen == "stdio":
        from tooli.mcp.stdio_server import serve_stdio

        serve_stdio(app, deferred=deferred)
    else:
        from tooli.mcp import mcp_endpoint

        _warn_about_visible_token(token)
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
            tools=with_api and chosen == "http",
            token=token,
            token_file=token_file,
            mounts=mounts,
            allowed_hosts=allow_host,
            allowed_origins=local,
        )


def add_mcp(group: App, app: ServableApp) -> None:
    """Add `mcp serve`, `export`, `add`, `remove` and `list`."""

    @group.command("serve")
    @long_running
    @owns_stdout
    def serve(
        transport: Transport = None,
        host: Host = "127.0.0.1",
        port: Port = 8000,
        token: Token = None,
        token_file: TokenFile = None,
        allow_host: AllowedHosts = [],  # noqa: B006  never modified
        defer_loading: DeferLoading = False,
        grace: GracePeriod = GRACE_PERIOD,
    ) -> None:
        """Serve the tools, resources and prompts of the app to MCP clients."""
        serve_mcp(app, transport, host, port, token, token_file, allow_host, defer_loading, grace)

    @group.command("export")
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

    _add_server_settings(group, app)


# ------------------------------------------------------------------ HTTP


def add_api(group: App, app: ServableApp) -> None:
    """Add `api serve` and `api export-openapi`."""

    @group.command("serve")
    @long_running
    def serve(
        host: Host = "127.0.0.1",
        port: Port = 8000,
        workers: Annotated[int, Option(min=1, max=256, help="Number of worker processes.")] = 1,
        token: Token = None,
        token_file: TokenFile = None,
        allow_host: AllowedHosts = [],  # noqa: B006  never modified
        grace: GracePeriod = GRACE_PERIOD,
    ) -> None:
        """Serve the tools over HTTP, with a web page, OpenAPI, and MCP at /mcp."""
        http_settings: HttpSettingsDict = {"token": token, "allowed_hosts": allow_host}
        _warn_about_visible_token(token)
        _load_serve_http()(
            app, host, port, workers=workers, token_file=token_file, grace=grace, **http_settings
        )

    @group.command("export-openapi")
    @returns_document
    def export_openapi() -> dict[str, object]:
        """Print the OpenAPI document of the HTTP interface."""
        from tooli.describe.openapi_document import build_openapi

        state = app._state
        return build_openapi(state.name, state.version, state.description, app.catalog)


def _warn_about_visible_token(token: str | None) -> None:
    """Warn if the token is on the command line, where other users of the machine can see it."""
    if token is not None and token != os.environ.get("TOOLI_TOKEN"):
        warning = "Warning: other users can see --token in the list of processes. Use --token-file."
        print(warning, file=sys.stderr, flush=True)


def _load_serve_http():
    from tooli.http.http_server import serve_http

    return serve_http


# ------------------------------------------------------------------ install


# `mcp serve` loads this module, so it imports tooli.install in functions.
if TYPE_CHECKING:
    SkillAgent = ServerAgent = str
else:
    SkillAgent, ServerAgent = Literal[SKILL_HOSTS], Literal[SERVER_HOSTS]
SkillAgents = Annotated[
    list[SkillAgent],
    Option(
        metavar="AGENT",
        help=f"Agent to install for (repeatable): {', '.join(SKILL_HOSTS[1:])}, or "
        f"{SKILL_HOSTS[0]} for all that read .agents. Default: .agents and .claude.",
    ),
]
ServerAgents = Annotated[
    list[ServerAgent],
    Option(
        metavar="AGENT",
        help=f"Agent whose settings to change (repeatable): {', '.join(SERVER_HOSTS)}. "
        "Default: add to those of Claude Code, Codex, Cursor, Gemini CLI and VS Code.",
    ),
]
ForUser = Annotated[
    bool,
    Option("--user/--project", help="For your user account, or for this project (the default)."),
]
Command = Annotated[
    str | None,
    Option(help="Command that starts the app, such as 'uvx mytool'. Default: the current command."),
]
SkillCommand = Annotated[
    str | None,
    Option(help="Command that starts the app in the skill, such as 'uvx mytool'. Default: mytool."),
]
Force = Annotated[bool, Option("--force", help="Overwrite edited files; a copy is kept as .bak.")]
AgentsMd = Annotated[bool, Option("--agents-md", help="Also write a marked block in AGENTS.md.")]
ClaudeMd = Annotated[bool, Option("--claude-md", help="Also write a marked block in CLAUDE.md.")]
Rows = list[dict[str, str]]


def add_skills(group: App, app: App) -> None:
    """Add `skills add`, `skills remove` and `skills list`."""

    def add(
        ctx: Context,
        agent: SkillAgents = [],  # noqa: B006  never modified
        user: ForUser = False,
        agents_md: AgentsMd = False,
        claude_md: ClaudeMd = False,
        force: Force = False,
        command: SkillCommand = None,
    ) -> Rows:
        """Install the skill of the app where agents look for it; --dry-run shows the diff."""
        _confirm_command(ctx, command)
        for warning in _operation("skill_warnings")(app, command):
            ctx.warn(warning)
        return _operation("add_skill")(app, agent, user, agents_md, claude_md, force, command)

    def remove(
        agent: SkillAgents = [],  # noqa: B006
        user: ForUser = False,
        force: Force = False,
    ) -> Rows:
        """Remove what `skills add` has installed."""
        return _operation("remove_skill")(app, agent, user, force)

    def listed() -> Rows:
        """List where the skill can be installed, and whether it is current, stale or edited."""
        return _operation("list_skills")(app)

    group.command("add")(_with_plan(add, "add_skill", app))
    group.command("remove")(_with_plan(remove, "remove_skill", app))
    group.command("list")(listed)


def _add_server_settings(group: App, app: App) -> None:
    """Add `mcp add`, `mcp remove` and `mcp list`."""

    def add(
        ctx: Context,
        agent: ServerAgents = [],  # noqa: B006
        user: ForUser = False,
        command: Command = None,
        force: Force = False,
    ) -> Rows:
        """Add the MCP server of the app to the settings of agents; --dry-run shows the diff."""
        _confirm_command(ctx, command)
        return _operation("add_server")(app, agent, user, command, force)

    def remove(
        agent: ServerAgents = [],  # noqa: B006
        user: ForUser = False,
        command: Command = None,
        force: Force = False,
    ) -> Rows:
        """Remove the MCP server of the app from the settings of agents."""
        return _operation("remove_server")(app, agent, user, command, force)

    def listed() -> Rows:
        """List the agents whose settings can contain the MCP server, and its state there."""
        return _operation("list_servers")(app)

    group.command("add")(_with_plan(add, "add_server", app))
    group.command("remove")(_with_plan(remove, "remove_server", app))
    group.command("list")(listed)


def _confirm_command(ctx: Context, command: str | None) -> None:
    """Ask whether agents may run a command; raise InputError if nobody agrees."""
    if command is None or ctx.confirm(f"Agents will run this command: {command}. Add it?"):
        return
    raise InputError(
        f"Agents will run {command!r}, and nobody confirmed it.",
        code="E1010",
        field="command",
        suggestion=Suggestion("ask_human", "Check the command, then repeat the call with --yes."),
    )


def _operation(name: str) -> Callable[..., Any]:
    from tooli.install import agent_install

    return getattr(agent_install, name)


def _with_plan(fn: F, name: str, app: App) -> F:
    """Return the command with a dry run that plans the same operation."""

    def plan(**arguments: object) -> Rows:
        arguments.pop("ctx", None)
        return _operation(name)(app, **arguments, dry=True)

    return with_plan(fn, plan)
