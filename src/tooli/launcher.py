"""The program `tooli`: run, serve and inspect any source of tools.

A source is a Tooli or Typer app in Python, a program, an API, an MCP server, and more: see
`tooli.sources.source_grammar`. It needs no changes. Every built-in command of an app can be run:
`tooli docs llms app.py`.
"""

from __future__ import annotations

import sys
from typing import Annotated

import tooli
from tooli.annotations import ReadOnly
from tooli.app import Tooli
from tooli.builtins import long_running, owns_stdout, with_plan
from tooli.builtins.agent_commands import (
    AccessLog,
    AllowedHosts,
    AllowedOrigins,
    CallLimit,
    CodeMode,
    DeferLoading,
    ExposeErrors,
    GracePeriod,
    Host,
    JsonResponse,
    LogFormat,
    Port,
    Reload,
    ResourceUrl,
    RootPath,
    ServeApi,
    ServeMcp,
    ServeScripts,
    Stateless,
    TlsCert,
    TlsKey,
    Token,
    TokenAudience,
    TokenFile,
    TokenIssuer,
    Transport,
    Workers,
    select_flags,
    serve_mcp,
    serve_with_flags,
)
from tooli.builtins.approval_commands import add_approvals
from tooli.core import BUILTIN_COMMANDS
from tooli.errors import InputError, ToolError
from tooli.pipeline.context import Context  # noqa: TC001  the annotation is evaluated
from tooli.schema.param_info import Argument, Option
from tooli.serving.dispatcher import GRACE_PERIOD, MAX_CONCURRENT_CALLS
from tooli.sources.console_scripts import is_console_script
from tooli.sources.parameters import (
    Auth,
    BaseUrl,
    Database,
    Exclude,
    Headers,
    Include,
    NoSandbox,
    ReadOnlyTools,
    SourceText,
    Trusted,
    Variables,
    count_option_words,
    parse_option_words,
    read_options,
)
from tooli.sources.source_grammar import NO_OPTIONS, join_words, parse_source

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.sources.adopt import Adoption
    from tooli.sources.registry import RegistryEntry
    from tooli.sources.source_grammar import SourceOptions

launcher = Tooli("tooli", description="Run, serve and inspect apps, programs, APIs and servers.")
approvals = Tooli("approvals", description="Approve or deny waiting calls of any app.")
add_approvals(approvals)
launcher.add_typer(approvals, name="approvals")


@launcher.command()
@long_running
@owns_stdout
def serve(
    source: SourceText,
    transport: Transport = None,
    api: ServeApi = None,
    mcp: ServeMcp = True,
    orchestrate: ServeScripts = True,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Workers = 1,
    token: Token = None,
    token_file: TokenFile = None,
    allow_host: AllowedHosts = [],  # noqa: B006  never changed
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
    include: Include = [],  # noqa: B006
    exclude: Exclude = [],  # noqa: B006
    read_only: ReadOnlyTools = False,
    headers: Headers = [],  # noqa: B006
    env: Variables = [],  # noqa: B006
    auth: Auth = None,
    base_url: BaseUrl = None,
    database: Database = None,
    trusted: Trusted = False,
    no_sandbox: NoSandbox = False,
) -> None:
    """Serve a source to MCP clients, or over HTTP with its API. The source needs no changes."""
    flags, options = select_flags(locals()), read_options(locals())
    over_http = _serves_api(transport, api=api, mcp=mcp)
    app = _load(source, options)
    if not over_http:
        with_api = api is not False
        serve_mcp(
            app, transport, flags, deferred=defer_loading, code_mode=code_mode, with_api=with_api
        )
        return
    app._state.defer_loading = app._state.defer_loading or defer_loading
    app._state.code_mode = code_mode
    serve_with_flags(app, flags, mcp=mcp, orchestrate=orchestrate)


def _serves_api(transport: str | None, *, api: bool | None, mcp: bool) -> bool:
    """True if the flags ask for the HTTP API; raise InputError if they contradict each other."""
    if not api and mcp:
        return False
    if api is False:
        raise InputError("--no-api and --no-mcp leave nothing to serve.", field="api")
    if transport not in (None, "http"):
        flag = "--api" if api else "--no-mcp"
        raise InputError(
            f"{flag} needs HTTP, and --transport {transport} serves only MCP.", field="transport"
        )
    return True


@launcher.command()
def tools(
    ctx: Context,
    source: SourceText,
    include: Include = [],  # noqa: B006  never changed
    exclude: Exclude = [],  # noqa: B006
    read_only: ReadOnlyTools = False,
    headers: Headers = [],  # noqa: B006
    env: Variables = [],  # noqa: B006
    auth: Auth = None,
    base_url: BaseUrl = None,
    database: Database = None,
    trusted: Trusted = False,
    no_sandbox: NoSandbox = False,
) -> list[dict[str, object]]:
    """List the tools of a source, each with its signature."""
    from tooli.providers.search import format_signature
    from tooli.sources.loader import check_has_tools

    options = read_options(locals())
    app = _load(source, options)
    check_has_tools(app, parse_source(source, options))
    for problem in app.catalog.problems.values():
        ctx.warn(str(problem))
    visible = [tool for tool in app.catalog if not tool.hidden]
    return [{"name": tool.key, "signature": format_signature(tool)} for tool in visible]


@launcher.command(context_settings={"allow_interspersed_args": False})
def run(
    source: SourceText,
    arguments: Annotated[
        list[str], Argument(help="The command line of the app, with the options of tooli.")
    ] = [],  # noqa: B006  never changed
) -> None:
    """Run a source as a command line with the output modes and options of tooli.

    Everything after the source belongs to its command line: `tooli run mytool list --json`. The
    options of the source stand before it: `tooli run --base-url URL openapi:api.json list`.
    """
    from tooli.sources.loader import load_program

    _raise_known_failure(source)
    load_program(source)
    raise InputError(
        "Write the options after the source: tooli run SOURCE --json", field="arguments"
    )


@launcher.command()
def adopt(
    ctx: Context,
    name: Annotated[str, Argument(help="The name: a-z, 0-9, '-', '_' and '.'.")],
    source: SourceText,
    include: Include = [],  # noqa: B006  never changed
    exclude: Exclude = [],  # noqa: B006
    read_only: ReadOnlyTools = False,
    headers: Headers = [],  # noqa: B006
    env: Variables = [],  # noqa: B006
    auth: Auth = None,
    base_url: BaseUrl = None,
    database: Database = None,
    trusted: Trusted = False,
    no_sandbox: NoSandbox = False,
    install: Annotated[
        bool, Option("--install", help="Also write a program NAME that runs the source.")
    ] = False,
    bin_dir: Annotated[
        str | None, Option(help="Folder for the program. Default: ~/.local/bin.")
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Replace another source that has the name.")
    ] = False,
) -> dict[str, object]:
    """Keep a source under a name: then `@NAME` is the source in every command of tooli.

    The source is opened first. Credentials are not stored, only references to them.
    """
    done = _adopt(locals(), dry=False)
    for warning in done.path_warnings():
        ctx.warn(warning)
    return done.to_dict()


def _adopt(arguments: dict[str, Any], *, dry: bool) -> Adoption:
    from tooli.sources import adopt

    flags = {name: arguments[name] for name in ("install", "bin_dir", "force")}
    options = read_options(arguments)
    return adopt.adopt(arguments["name"], arguments["source"], options, **flags, dry=dry)


def _plan_adoption(**arguments: object) -> dict[str, object]:
    return _adopt(arguments, dry=True).to_dict()


with_plan(adopt, _plan_adoption)

registry = Tooli("registry", description="Find apps, kept sources and servers of agents.")
launcher.add_typer(registry, name="registry")
Programs = Annotated[
    bool,
    Option(
        "--programs",
        help="Also run the Python programs on the PATH that have tooli, in the sandbox, with "
        "--discover.",
    ),
]
Unconfined = Annotated[
    bool, Option("--unconfined", help="With --programs: run them without the sandbox.")
]


@registry.command("list", annotations=ReadOnly)
def list_registry(
    ctx: Context, programs: Programs = False, unconfined: Unconfined = False
) -> list[dict[str, object]]:
    """List kept sources, installed apps and the MCP servers of agents."""
    return [entry.to_row() for entry in _collect(ctx, programs, unconfined)]


@registry.command("search", annotations=ReadOnly)
def search_registry(
    ctx: Context,
    query: Annotated[list[str], Argument(help="Words of a name, a description or a tool.")],
    programs: Programs = False,
    unconfined: Unconfined = False,
) -> list[dict[str, object]]:
    """Search names, descriptions and tools, best matches first."""
    from tooli.sources.registry import search

    found = search(_collect(ctx, programs, unconfined), " ".join(query))
    return [entry.to_row() for entry in found]


@registry.command("show", annotations=ReadOnly)
def show_registry(
    ctx: Context,
    name: Annotated[str, Argument(help="A name in the list.")],
    programs: Programs = False,
    unconfined: Unconfined = False,
) -> list[dict[str, object]]:
    """Show all about the entries of a name, with the tools of kept and installed ones."""
    from tooli.sources.registry import show

    return show(_collect(ctx, programs, unconfined), name)


@registry.command("forget")
def forget_source(
    name: Annotated[str, Argument(help="The name of a kept source.")],
) -> dict[str, object]:
    """Delete a kept source, and the program that was written for it."""
    from tooli.sources.adopt import forget

    return forget(name.removeprefix("@"))


def _plan_forget(name: str) -> dict[str, object]:
    from tooli.sources.adopt import forget

    return forget(name.removeprefix("@"), dry=True)


with_plan(forget_source, _plan_forget)


def _collect(ctx: Context, programs: bool, unconfined: bool) -> list[RegistryEntry]:
    from tooli.sources.registry import collect

    entries, problems = collect(programs=programs, unconfined=unconfined)
    for problem in problems:
        ctx.warn(problem)
    return entries


capabilities = Tooli("capabilities", description="Record what the commands of an app access.")
launcher.add_typer(capabilities, name="capabilities")


@capabilities.command(name="record")
def record_capabilities(
    source: SourceText,
    tests: Annotated[
        list[str], Argument(help="A command that runs the app's tests, after --.")
    ] = [],  # noqa: B006  never changed
    examples: Annotated[
        bool, Option("--examples", help="Run the examples in addition to the tests.")
    ] = False,
    everything: Annotated[
        bool, Option("--all", help="Also run examples of commands that may change something.")
    ] = False,
    root: Annotated[
        list[str], Option(help="Count every access below this folder as access to the folder.")
    ] = [],  # noqa: B006
) -> dict[str, object]:
    """Run an app's examples or tests and report what each command accesses.

    Examples of commands that are not ReadOnly are skipped unless --all is given.
    """
    from tooli.builtins.capabilities_command import record_usage

    app = _load(source, NO_OPTIONS)
    return record_usage(app, source, tests, examples or not tests, everything, root)


def main() -> None:
    """Run the program `tooli`.

    `tooli docs llms app.py` and `tooli app.py docs llms` run a built-in command of an app, whatever
    names the commands of the app have. `tooli run app.py` runs the command line of an app.
    """
    argv = sys.argv[1:]
    if argv[:1] == ["run"]:
        end = 1 + count_option_words(argv[1:])
        if "".join(argv[end : end + 1])[:1] not in ("", "-"):
            _run_source(argv[1 : end + 1], argv[end + 1 :])
            return
    if "--version" in argv:
        launcher._state.version = str(tooli.__version__)  # takes longer than starting a server
    found = find_source(argv)
    if found is None:
        launcher()
        return
    start, end = found
    words, arguments = argv[start:end], [*argv[:start], *argv[end:]]
    app = _load_words(words, arguments, "tools")
    if app is not None:
        app._run_command_line(arguments, builtin_prog=("tooli", *words))


def run_kept_source(name: str) -> None:
    """Run the program that `tooli adopt --install` wrote for a kept source."""
    sys.argv[0] = name
    app = _load_words([f"@{name}"], sys.argv[1:], "tools")
    if app is not None:
        app._state.name = name
        app._state.reference, app._state.needs_launcher = (), False
        app()


def _run_source(words: Sequence[str], arguments: Sequence[str]) -> None:
    """Run the command line of a source, as its own program does, with Tooli in Typer's place."""
    from tooli.sources.loader import load_program

    try:
        program = load_program(words[-1], parse_option_words(words[:-1]))
    except ToolError as failure:
        _report_failure(words, arguments, "run", failure)
    else:
        sys.argv = [f"tooli run {join_words(words)}", *arguments]
        sys.exit(program())


def _load_words(words: Sequence[str], arguments: Sequence[str], command: str) -> Tooli | None:
    """Return the app of the words that name a source; None if it fails, which is reported."""
    from tooli.sources.loader import load_app

    try:
        return load_app(words[-1], parse_option_words(words[:-1]))
    except ToolError as failure:
        _report_failure(words, arguments, command, failure)
        return None


_known_failures: dict[str, ToolError] = {}
"""Why the source of this command line cannot be loaded. It is not loaded a second time."""


def _report_failure(
    words: Sequence[str], arguments: Sequence[str], command: str, failure: ToolError
) -> None:
    """End this process with an error, in the output mode of the command line."""
    _known_failures[words[-1]] = failure
    launcher([*[word for word in arguments if word in _OUTPUT_FLAGS], command, words[-1]])


def _raise_known_failure(source: str) -> None:
    failure = _known_failures.get(source)
    if failure is not None:
        raise failure


def _load(source: str, options: SourceOptions) -> Tooli:
    from tooli.sources.loader import load_app

    _raise_known_failure(source)
    return load_app(source, options)


_OUTPUT_FLAGS = ("--json", "--jsonl", "--text", "--plain")


def find_source(argv: Sequence[str]) -> tuple[int, int] | None:
    """Return where the words of a source are in the line of a built-in command of its app.

    These are its options and the source itself. None if the line has no source, or names a command
    of the launcher, such as `approvals list`.
    """
    end = count_option_words(argv)
    if is_source(argv[end] if end < len(argv) else ""):
        return 0, end + 1
    own = [path for path, _ in launcher.tree().walk()]
    group = launcher.builtins().tree() if argv and argv[0] in BUILTIN_COMMANDS else None
    for i, word in enumerate(argv):
        if group is None or tuple(argv[: i + 1]) in own:
            return None
        if word in group.commands:
            end = i + 1 + count_option_words(argv[i + 1 :])
            after = "".join(argv[end : end + 1])
            return (i + 1, end + 1) if is_source(after) or is_console_script(after) else None
        group = group.groups.get(word)
    return None


def is_source(word: str) -> bool:
    """True if a word has the form of a source that is more than the name of a program."""
    return word[:1] not in ("", "-") and (word[0] == "@" or word.endswith(".py") or ":" in word)
