"""mcp, api and skills: serve the app to agents, or install it where they look for it.

Each command imports what it needs when it runs, because servers have to start fast.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, Literal, TypedDict

from tooli.builtins import long_running, owns_stdout, returns_document, with_plan
from tooli.core.agent_hosts import SERVER_HOSTS, SKILL_HOSTS
from tooli.errors import InputError, Suggestion
from tooli.pipeline.context import Context  # noqa: TC001  the annotation is evaluated
from tooli.schema.param_info import Option
from tooli.serving.dispatcher import GRACE_PERIOD, MAX_CONCURRENT_CALLS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tooli.core.protocols import App, F
    from tooli.http.http_server import ServableApp
    from tooli.serving import AsgiApp

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
AllowedOrigins = Annotated[
    list[str],
    Option(help="Origin whose web pages may call the server: https://shop.example (repeatable)."),
]
Workers = Annotated[int, Option(min=1, max=256, help="Number of worker processes.")]
CallLimit = Annotated[
    int, Option(min=1, help="Maximum number of concurrent calls of a worker. Others wait.")
]
RootPath = Annotated[
    str, Option(help="Prefix of the URLs, if a proxy serves the app below one: /shop.")
]
ResourceUrl = Annotated[
    str | None, Option(help="URL of the server for clients. OAuth tokens are issued for it.")
]
TokenIssuer = Annotated[
    str | None, Option(help="URL of the authorization server whose tokens are accepted.")
]
TokenAudience = Annotated[
    str | None, Option(help="Audience of the tokens, if it is not --resource-url.")
]
TlsCert = Annotated[
    str | None, Option(help="File with the TLS certificate chain (PEM), to serve HTTPS.")
]
TlsKey = Annotated[str | None, Option(help="File with the private key of --tls-cert (PEM).")]
Stateless = Annotated[
    bool,
    Option(
        "--stateless",
        help="Give MCP clients no sessions, for several replicas. Implied by --workers.",
    ),
]
JsonResponse = Annotated[
    bool,
    Option("--json-response", help="Answer MCP requests with JSON instead of event streams."),
]
Reload = Annotated[
    bool, Option("--reload", help="Restart the server when a Python file changes (development).")
]
AccessLog = Annotated[
    bool | None,
    Option(
        "--access-log/--no-access-log",
        help="Log each call to stderr. Default: over HTTP yes, over stdio no.",
    ),
]
LogFormat = Annotated[
    Literal["text", "json"] | None,
    Option(help="Format of the log, even if the app configures logging. Default: text."),
]
ExposeErrors = Annotated[
    bool,
    Option("--expose-errors", help="Send the texts of exceptions to clients (development)."),
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
CodeMode = Annotated[
    bool,
    Option(
        "--code-mode",
        help="List only a search tool and a tool that runs scripts, which call the others.",
    ),
]


ServeMcp = Annotated[bool, Option("--mcp/--no-mcp", help="Serve MCP at /mcp.")]
ServeScripts = Annotated[
    bool,
    Option(
        "--orchestrate/--no-orchestrate",
        help="Run scripts that call the commands: POST /orchestrate.",
    ),
]
ServeApi = Annotated[
    bool | None,
    Option(
        "--api/--no-api",
        help="Serve the HTTP API and its web page, over HTTP. --no-api: only MCP.",
    ),
]


class ServerFlags(TypedDict):
    """The flags that all commands have that serve over HTTP."""

    host: str
    port: int
    workers: int
    token: str | None
    token_file: str | None
    allow_host: list[str]
    allow_origin: list[str]
    limit: int
    root_path: str
    resource_url: str | None
    token_issuer: str | None
    token_audience: str | None
    tls_cert: str | None
    tls_key: str | None
    stateless: bool
    json_response: bool
    reload: bool
    access_log: bool | None
    log_format: str | None
    expose_errors: bool
    grace: float


def select_flags(parameters: Mapping[str, Any]) -> ServerFlags:
    """Return the flags of a server among the parameters of a command."""
    flags: Any = {name: parameters[name] for name in ServerFlags.__annotations__}
    return flags


def serve_with_flags(
    app: ServableApp,
    flags: ServerFlags,
    *,
    mcp: bool,
    orchestrate: bool = True,
    display_path: str = "",
    origins: Sequence[str] = (),
    tools: bool = True,
    mounts: Mapping[str, AsgiApp] | None = None,
) -> None:
    """Serve an app over HTTP with the flags of a command line."""
    from tooli.http.http_server import serve_http

    _warn_about_visible_token(flags["token"])
    serve_http(
        app,
        flags["host"],
        flags["port"],
        workers=flags["workers"],
        token_file=flags["token_file"],
        grace=flags["grace"],
        mcp=mcp,
        orchestrate=orchestrate,
        stateless=flags["stateless"],
        json_response=flags["json_response"],
        tls_cert=flags["tls_cert"],
        tls_key=flags["tls_key"],
        reload=flags["reload"],
        access_log=flags["access_log"] is not False,
        log_format=flags["log_format"],
        expose_errors=flags["expose_errors"],
        display_path=display_path,
        token=flags["token"],
        allowed_hosts=flags["allow_host"],
        allowed_origins=[*origins, *flags["allow_origin"]],
        limit=flags["limit"],
        root_path=flags["root_path"],
        resource_url=flags["resource_url"],
        token_issuer=flags["token_issuer"],
        token_audience=flags["token_audience"],
        tools=tools,
        mounts=mounts or {},
    )


# ------------------------------------------------------------------ MCP


def serve_mcp(
    app: ServableApp,
    transport: str | None,
    flags: ServerFlags,
    *,
    deferred: bool,
    code_mode: bool = False,
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

        if flags["access_log"] or flags["log_format"] is not None:
            from tooli.serving.log_setup import configure_logging  # imports logging

            configure_logging(
                access_log=flags["access_log"] or False, log_format=flags["log_format"]
            )
        serve_stdio(
            app, deferred=deferred, code_mode=code_mode, expose_errors=flags["expose_errors"]
        )
        return
    if chosen == "sse" and flags["workers"] > 1:
        raise InputError(
            "The transport sse needs one worker: its sessions belong to one process.",
            field="workers",
            suggestion=Suggestion("retry_with_modified_input", "Use --transport http."),
        )
    from tooli.mcp import mcp_endpoint

    path, mount_path = ("/sse", "") if chosen == "sse" else ("/mcp", "/mcp")
    endpoint = mcp_endpoint(
        app,
        deferred=deferred,
        code_mode=code_mode,
        transport=chosen,
        stateless=flags["stateless"] or flags["workers"] > 1,
        json_response=flags["json_response"],
        expose_errors=flags["expose_errors"],
    )
    serve_with_flags(
        app,
        flags,
        mcp=False,
        display_path=path,
        origins=[f"{scheme}://{name}:*" for scheme in ("http", "https") for name in _LOCAL_HOSTS],
        tools=with_api and chosen == "http",
        mounts={mount_path: endpoint},
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
        workers: Workers = 1,
        token: Token = None,
        token_file: TokenFile = None,
        allow_host: AllowedHosts = [],  # noqa: B006  never modified
        allow_origin: AllowedOrigins = [],  # noqa: B006
        limit: CallLimit = MAX_CONCURRENT_CALLS,
        root_path: RootPath = "",
        resource_url: ResourceUrl = None,
        token_issuer: TokenIssuer = None,
        token_audience: TokenAudience = None,
        tls_cert: TlsCert = None,
        tls_key: TlsKey = None,
        stateless: Stateless = False,
        json_response: JsonResponse = False,
        defer_loading: DeferLoading = False,
        code_mode: CodeMode = False,
        reload: Reload = False,
        access_log: AccessLog = None,
        log_format: LogFormat = None,
        expose_errors: ExposeErrors = False,
        grace: GracePeriod = GRACE_PERIOD,
    ) -> None:
        """Serve the tools, resources and prompts of the app to MCP clients."""
        flags = select_flags(locals())
        serve_mcp(app, transport, flags, deferred=defer_loading, code_mode=code_mode)

    _add_export(group, app)
    _add_server_settings(group, app)


def _add_export(group: App, app: ServableApp) -> None:
    """Add `mcp export`."""

    @group.command("export")
    @returns_document
    def export(
        defer_loading: DeferLoading = False, code_mode: CodeMode = False
    ) -> dict[str, object]:
        """Print the tools as MCP clients see them."""
        from tooli.mcp.service import McpService

        deferred = defer_loading or app._state.defer_loading
        service = McpService(app, deferred=deferred, code_mode=code_mode)
        tools: list[object] = []
        cursor: str | None = None
        while True:
            page = service.list_tools(cursor, stateless=False)
            tools += page["tools"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return {"tools": tools}


# ------------------------------------------------------------------ HTTP


def add_api(group: App, app: ServableApp) -> None:
    """Add `api serve` and `api export-openapi`."""

    @group.command("serve")
    @long_running
    def serve(
        host: Host = "127.0.0.1",
        port: Port = 8000,
        workers: Workers = 1,
        token: Token = None,
        token_file: TokenFile = None,
        allow_host: AllowedHosts = [],  # noqa: B006  never modified
        allow_origin: AllowedOrigins = [],  # noqa: B006
        limit: CallLimit = MAX_CONCURRENT_CALLS,
        root_path: RootPath = "",
        resource_url: ResourceUrl = None,
        token_issuer: TokenIssuer = None,
        token_audience: TokenAudience = None,
        tls_cert: TlsCert = None,
        tls_key: TlsKey = None,
        mcp: ServeMcp = True,
        orchestrate: ServeScripts = True,
        stateless: Stateless = False,
        json_response: JsonResponse = False,
        reload: Reload = False,
        access_log: AccessLog = None,
        log_format: LogFormat = None,
        expose_errors: ExposeErrors = False,
        grace: GracePeriod = GRACE_PERIOD,
    ) -> None:
        """Serve the tools over HTTP, with a web page, OpenAPI, and MCP at /mcp."""
        flags = select_flags(locals())
        serve_with_flags(app, flags, mcp=mcp, orchestrate=orchestrate)

    _add_openapi_export(group, app)


def _add_openapi_export(group: App, app: App) -> None:
    """Add `api export-openapi`."""

    @group.command("export-openapi")
    @returns_document
    def export_openapi() -> dict[str, object]:
        """Print the OpenAPI document of the HTTP interface."""
        from tooli.describe.openapi_document import build_openapi
        from tooli.http.script_requests import make_script_tools
        from tooli.serving.dispatcher import ToolDispatcher

        state = app._state
        script_tools = make_script_tools(ToolDispatcher(app))
        return build_openapi(
            state.name, state.version, state.description, app.catalog, script_tools=script_tools
        )


def _warn_about_visible_token(token: str | None) -> None:
    """Warn if the token is on the command line, where other users of the machine can see it."""
    if token is not None and token != os.environ.get("TOOLI_TOKEN"):
        warning = "Warning: other users can see --token in the list of processes. Use --token-file."
        print(warning, file=sys.stderr, flush=True)


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
