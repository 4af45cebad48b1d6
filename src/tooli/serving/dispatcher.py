"""ToolDispatcher: finds an app's tools by name and prepares their calls for a server surface.

name, arguments ─▶ ToolDispatcher.prepare ─▶ PreparedCall ─▶ run │ arun │ stream ─▶ Presented
"""

from __future__ import annotations

import sys
from time import perf_counter

from tooli.config import load_security_settings
from tooli.config.token_settings import verifies_tokens
from tooli.core import find_loaded
from tooli.core._hot_tables import CALL_OPTIONS
from tooli.core.call import DEFAULT_OPTIONS, Call, Failed, Options, Problem, RedactionPolicy
from tooli.core.definitions import RATE_LIMIT_FORMAT, is_rate_limit
from tooli.core.placeholder_call import make_placeholder_call
from tooli.errors import DefinitionError, DependencyError, InputError, Suggestion, TemporaryError
from tooli.pipeline.prepared_call import PreparedCall
from tooli.pipeline.present import Presented, present_text
from tooli.pipeline.unknown_names import missing_command_error, unknown_command_error
from tooli.serving.caller_view import CallerView
from tooli.similar_names import did_you_mean
from tooli.stages.auth import scope_error
from tooli.stages.rate_limit import is_rate_limited
from tooli.storage.state_files import MemoryFailureHistory
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeAlias, TypeVar

    from tooli.core import AppState, SecuritySettings
    from tooli.core.call import Caller
    from tooli.core.peer import Peer
    from tooli.core.protocols import App, JsonObject
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.policy.token_verifier import TokenVerifier
    from tooli.serving import Scope
    from tooli.serving.server_request import ServerRequest

    FindSpec: TypeAlias = Callable[[str, None], object]
    T = TypeVar("T")

_CONCISE_OPTIONS = Options(detailed=False)
MCP_OPTIONS = tuple([name for name, (_, interfaces) in CALL_OPTIONS.items() if "mcp" in interfaces])
"""The options that the `_meta` of a request may contain."""

_MAX_UNKNOWN = 10  # unknown options that are reported


def check_server_settings(state: AppState) -> None:
    """Load the security settings of an app; raise an InputError if it cannot be served with them.

    A setting that is ignored may have been meant to restrict callers. The server starts only if a
    trusted layer sets it as well.
    """
    load_security_settings(state)
    find_settings = find_loaded("tooli.config.app_settings", "find_app_settings")
    for settings in find_settings(state) if find_settings is not None else ():
        settings.value()
    rules = state.security_settings
    if "faults" not in rules and "ignored" not in rules:
        return
    from tooli.config.layers import make_ignored_error, make_settings_error

    if "faults" in rules:
        raise make_settings_error(rules["faults"])
    ignored = rules.get("ignored", [])
    fatal = [setting for setting in ignored if setting.stops_servers]
    if fatal:
        raise make_ignored_error(fatal)
    for setting in ignored:
        print(present_text(f"Warning: {setting}", RedactionPolicy()), file=sys.stderr)
    rules.pop("ignored", None)


class ToolDispatcher:
    """The tools of an app by protocol-safe name, including tools that are registered later."""

    def __init__(self, app: App) -> None:
        check_server_settings(app._state)
        rules = app._state.security_settings
        if "rate_limit" in rules:
            check_rate_limit(rules["rate_limit"])
        self.app = app
        self.failures = MemoryFailureHistory()
        self._revision = -1
        self._cache: dict[object, Any] = {}
        self._reported: Mapping[str, None] = {}  # the invalid definitions, after the last report

    def make_verifier(self, settings: SecuritySettings) -> TokenVerifier | None:
        """Return the verifier for callers' tokens, or None if the settings define none."""
        if not verifies_tokens(settings):
            return None
        from tooli.policy.token_verifier import TokenVerifier

        return TokenVerifier(settings)

    @property
    def name(self) -> str:
        """The app's name."""
        return self.app._state.name

    @property
    def version(self) -> str:
        """The app's version, or an empty string."""
        return self.app._state.version or ""

    def cached(self, key: object, build: Callable[[], T]) -> T:
        """Return the result of `build`, cached under this key until the app changes."""
        revision = self.app._state.revision
        if self._revision != revision:
            self._cache, self._revision = {}, revision
        cache = self._cache  # if the app changes during the build, this cache is dropped
        if key not in cache:
            cache[key] = build()
        return cache[key]

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Every visible tool, by its name in `[a-z0-9_]`, in the order of registration."""
        return self.cached("tools", self._read_tools)

    def _read_tools(self) -> Mapping[str, Tool]:
        from tooli.describe.mcp_tools import tools_by_safe_name

        if self.app.tree().has_mounts:
            from tooli.providers.provider_mounts import iter_mounts

            for mount in iter_mounts(self.app._state):
                mount.watch(lambda: self.tools)  # reading them reports the problems
        catalog = self.app.catalog
        tools = tools_by_safe_name(catalog)
        problems = dict.fromkeys(map(str, catalog.problems.values()))
        for problem in problems:
            if problem not in self._reported:  # a problem that stays is not reported again
                report_invalid_definition(problem)
        self._reported = problems
        return tools

    def find_scopes(self) -> frozenset[str]:
        """Return every scope that a tool, a resource or a prompt of the app needs."""
        return self.cached("scopes", self._read_scopes)

    def _read_scopes(self) -> frozenset[str]:
        tools = self._served_tools()
        return frozenset([scope for tool in tools for scope in _scopes_of(tool)])

    def _served_tools(self) -> list[Tool]:
        """Return the tools, and the functions of the resources and prompts."""
        from tooli.providers.resources import collect_prompts, iter_resources

        served = [*iter_resources(self.app), *collect_prompts(self.app).values()]
        return [*self.tools.values(), *[item.tool(self.app._state) for item in served]]

    def view(self, scopes: frozenset[str] | None) -> CallerView:
        """Return what a caller with these scopes sees; None means all scopes."""
        if not self.cached("hides tools", self._hides_tools):
            return CallerView(self, None)
        known = self.find_scopes()
        return CallerView(self, known if scopes is None else known & scopes)

    def _hides_tools(self) -> bool:
        """True if the policy of the app or of a part of it, or a role, hides some tools."""
        state = self.app._state
        # an app with resources or prompts has loaded their module
        has_served = "tooli.providers.resources" in sys.modules
        tools = self._served_tools() if has_served else self.tools.values()
        return state.policy == "strict" or any(
            [tool.guard.audience or state.effective_policy(tool) == "strict" for tool in tools]
        )

    def select_version(self, tool: Tool, version: str) -> Tool:
        """Return a version of a tool; raise an InputError that lists those there are."""
        from tooli.providers.command_versions import select_version

        return select_version(self.app, tool, version)

    def is_refused(self, tool: Tool, caller: Caller) -> bool:
        """True if a call will be refused whatever its arguments are.

        A server then does not read the arguments. The stages of the call refuse it, and log that.
        """
        state = self.app._state
        if is_rate_limited(tool, state, caller):
            return True
        return self.find_scope_error(tool, caller) is not None

    def find_scope_error(self, tool: Tool, caller: Caller) -> ToolError | None:
        """Return the error if the scopes of a caller do not allow it to run a tool."""
        if tool.guard.scopes is None and self.app._state.effective_policy(tool) != "strict":
            return None
        call, _ = self.app.prepare(Call(tool, {}, caller, []))
        return scope_error(call)

    def prepare(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        caller: Caller,
        *,
        options: Options = DEFAULT_OPTIONS,
        problems: tuple[Problem, ...] = (),
        approved_parts: Mapping[str, str] | None = None,
        peer: Peer | None = None,
        request: ServerRequest | None = None,
    ) -> PreparedCall:
        """Return a call that is ready to run."""
        started = perf_counter()
        call, stages = self.app.prepare(
            Call(
                tool,
                arguments,
                caller,
                [],
                options,
                problems=problems,
                approved=approved_parts is not None,
                approved_parts=approved_parts,
                peer=peer,
                request=request,
            ),
            self.failures,
        )
        if request is not None:
            request.call = call
        return PreparedCall(call, stages, started)


def _scopes_of(tool: Tool) -> tuple[str, ...]:
    return (*(tool.guard.scopes or ()), *tool.guard.audience)


def check_rate_limit(rate: object) -> None:
    """Raise an InputError if the setting `rate_limit` is invalid."""
    if not is_rate_limit(rate):
        hint = "Correct it in the configuration file or in TOOLI_RATE_LIMIT, or leave it out."
        fix = Suggestion("fix", hint)
        text = f"The setting rate_limit is {str(rate)[:60]!r}: it must be {RATE_LIMIT_FORMAT}."
        raise InputError(text, code="E1011", field="rate_limit", suggestion=fix, is_retryable=False)


def is_installed(package: str) -> bool:
    """True if a package is installed. Imports neither the package nor `importlib.util`."""
    if package in sys.modules:
        return sys.modules[package] is not None  # pyright: ignore[reportUnnecessaryComparison]
    try:
        for finder in sys.meta_path:
            find: FindSpec | None = getattr(finder, "find_spec", None)
            if find is not None and find(package, None) is not None:
                return True
    except ImportError:  # an import hook blocks it
        return False
    return False


def require_package(package: str, message: str, fix: str) -> None:
    """Raise a DependencyError with this message and fix if a package is not installed."""
    if not is_installed(package):
        raise DependencyError(message, suggestion=Suggestion("fix", fix))


def report_invalid_definition(problem: str) -> None:
    """Write a warning about a command with an invalid definition to stderr, if it is open."""
    try:
        sys.stderr.write(f"Warning: invalid definition: {problem}\n")
    except (OSError, ValueError, AttributeError):
        return


def unknown_tool_error(
    app: App,
    name: str,
    arguments: Mapping[str, Any] | None = None,
    view: CallerView | None = None,
) -> ToolError:
    """Return the error for a name that is not in the app's catalog.

    It suggests the closest name. A command that exists but has an invalid definition is reported
    as such. With a view, the error names only what the caller sees.
    """
    if view is not None and not view.is_complete:
        return view.unknown_tool_error(name)
    problem = app.catalog.find_problem(name)
    if problem is not None:
        return problem.to_tool_error()
    group, path = app.tree(), list[str]()
    names = name.replace(".", " ").replace("/", " ").split() or [name]
    while names and names[0] in group.groups:
        path.append(names[0])
        group = group.groups[names.pop(0)]
    if not names:
        return missing_command_error(group)
    return unknown_command_error(group, names[0], path, arguments=arguments)


def path_without_root(scope: Scope) -> str:
    """Return the path of an ASGI scope without its root path."""
    path: str = scope["path"]
    root: str | None = scope.get("root_path")
    if root:
        root = root.rstrip("/")
        if root and (path == root or path.startswith(root + "/")):
            return path[len(root) :] or "/"
    return path


def check_root_path(root: str) -> str:
    """Return a root path without the slash at its end; raise a DefinitionError if it is invalid.

    A proxy may remove the prefix or keep it. So the prefix must not look like a path of the server.
    """
    path = root.rstrip("/")
    if not path:
        return ""
    first = path.split("/")[1:2]
    if path[0] != "/" or not set(path) <= _ROOT_CHARACTERS or "//" in path:
        raise DefinitionError(f"root_path={root!r} must be a path such as '/shop'")
    if first[0] in ("tools", "mcp", "sse", "messages"):
        raise DefinitionError(f"root_path={root!r} must not begin with a path of the server itself")
    return path


_ROOT_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~%")

GRACE_PERIOD = 10.0
"""Seconds that running calls get to finish when a server shuts down."""

MAX_CONCURRENT_CALLS = 256
"""Default limit of concurrent calls of a server."""


def too_busy_error() -> ToolError:
    """Return the error for a call that exceeds the limit of concurrent calls."""
    return TemporaryError(
        "The server is at its limit of concurrent calls.",
        suggestion=Suggestion("retry_later", "Wait a second, then call again."),
        details={"retry_after": 1},
    )


def too_many_requests_error(limit: int) -> ToolError:
    """Return the error for a call of a caller who has too many open requests."""
    return TemporaryError(
        f"The caller has {limit} open requests, which is the limit.",
        suggestion=Suggestion("retry_later", "Wait for the answers of other calls."),
        details={"retry_after": 1},
    )


def present_request_error(
    app: App, caller: Caller, error: ToolError, request: ServerRequest | None = None
) -> Presented:
    """Return the answer to a request that fails before it reaches a tool."""
    call = make_placeholder_call(app._state, caller)
    if request is not None:
        if error.http_status >= 500:
            request.is_id_shown = True
        call = call.replace(request=request)
    return Presented(Failed(error), call, lambda: 0)


def split_options(
    tool: Tool, raw_arguments: JsonObject, requested: object = None
) -> tuple[JsonObject, Options, tuple[Problem, ...]]:
    """Return the arguments, the framework options, and the problems with the options.

    Options come from `requested` and from the arguments, and `requested` wins. An argument that
    is a parameter of the tool is never an option: that option has the prefix `tooli_`. Null means
    that an option is not given.
    """
    arguments = dict(raw_arguments)
    values: JsonObject = {}
    for name in MCP_OPTIONS:
        argument = f"tooli_{name}" if name in tool.param_names else name
        if argument in arguments and argument not in tool.param_names:
            values[name] = arguments.pop(argument)
        if is_object(requested) and requested.get(name) is not None:
            values[name] = requested[name]
    values = {name: value for name, value in values.items() if value is not None}
    unknown = () if requested is None else _find_unknown_options(requested)
    if not values:
        return arguments, _CONCISE_OPTIONS, unknown
    from tooli.records.call_options import build_options

    options, problems = build_options({"detailed": False, **values})
    return arguments, options, (*unknown, *problems)


def _find_unknown_options(requested: object) -> tuple[Problem, ...]:
    """Return the problems with options that do not exist: the call may rely on `dryrun`."""
    if not is_object(requested):
        return (Problem("E1007", None, "The options must be a JSON object"),)
    names = [name for name, value in requested.items() if value is not None]
    unknown = [name for name in names if name not in MCP_OPTIONS]
    return tuple([unknown_option_problem(name, MCP_OPTIONS) for name in unknown[:_MAX_UNKNOWN]])


def unknown_option_problem(name: str, known: Iterable[str]) -> Problem:
    """Return the problem of an option that does not exist."""
    known = tuple(known)
    hint = did_you_mean(name[:80], known) or f"; the options are {', '.join(known)}"
    return Problem("E1007", None, f"Unknown option {name[:80]!r}{hint}")
