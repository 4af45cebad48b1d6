"""MCPProvider: the tools of an MCP server.

    app.add_provider(MCPProvider("uvx mcp-server-git"), namespace="git")
    app.add_provider(MCPProvider("https://example.com/mcp", headers={"X-Key": "env:MY_KEY"}))

The server is started by the first call, and by the first list of its tools. Later lists come from
the disk. A server that has ended is started again by the next call.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from threading import Event, Lock, RLock, Thread
from time import monotonic
from typing import Any

from tooli.errors import (
    DefinitionError,
    DependencyError,
    Suggestion,
    TimeoutExceeded,
    ToolError,
)
from tooli.providers.http_requests import (
    HttpServer,
    check_headers,
    check_server_url,
    names_secret,
    read_headers,
    read_reference,
)
from tooli.providers.mcp_client.http_endpoint import (
    HttpEndpoint,
    find_param_headers,
    make_param_headers,
)
from tooli.providers.mcp_client.paused_calls import PausedCalls
from tooli.providers.mcp_client.server_call import ServerCall
from tooli.providers.mcp_client.server_process import (
    ServerGone,
    ServerProcess,
    base_environment,
    find_program,
)
from tooli.providers.mcp_client.server_session import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NotMcp,
    RpcFailure,
    ServerSession,
)
from tooli.providers.mcp_client.tool_list_cache import ToolList, ToolListCache
from tooli.providers.provider import Provider, described_tool, hinted_behavior
from tooli.providers.tool_selection import ToolSelection
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_object
from tooli.text.secret_forms import is_secret_name

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Behavior, Tool
    from tooli.pipeline.context import Context

START_TIMEOUT_SECONDS = 60.0
"""Seconds that a server has to start and to list its tools."""
DEFAULT_TIMEOUT_SECONDS = 300.0
"""Default time limit of a call."""
HEALTH_SECONDS = 5.0
"""Seconds in which a server has to react after a call that it did not answer in time."""
_RUNNERS = frozenset(("npx", "uvx", "bunx", "pipx", "node", "python", "python3", "deno", "uv"))
_RUNNER_WORDS = frozenset(("run", "tool", "exec", "-m", "x"))


class MCPProvider(Provider):
    """The tools of an MCP server: a program that speaks MCP on stdio, or a URL (streamable HTTP).

    Args:
        command_or_url: The command, as a text or a list of words, or an http(s) URL.
        name: The name in messages. The default is made of the command or the URL.
        headers: Headers for a URL. A value may be `env:NAME`, `@FILE`, or `Bearer env:NAME`.
        env: Variables for a program, in addition to PATH, HOME and the like. A value may be
            `env:NAME` or `@/FILE`.
        cwd: The folder in which the program runs.
        trusted: Believe what the server says about the effects of its tools. Otherwise it only
            counts where it is stricter than `annotations`.
        annotations: The effects that you guarantee: for all tools, or by name.
        only: The names of the tools to use; `*` is allowed.
        exclude: The names of the tools to leave out; `*` is allowed.
        timeout: The time limit of a call in seconds; None for no limit.
    """

    def __init__(
        self,
        command_or_url: str | Sequence[str],
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        trusted: bool = False,
        annotations: Behavior | Mapping[str, Behavior] | None = None,
        only: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        self.url, self.command = _read_target(command_or_url)
        self.name = name or _default_name(self.url, self.command)
        self.description = f"Tools of the MCP server {self.name}."
        self._source = f"The MCP server {self.name}"
        self._headers = check_headers(headers, "MCPProvider")
        self._env = _check_env(env)
        self._cwd: str | None = None if cwd is None else os.path.abspath(os.fspath(cwd))
        if self.url is not None and (env is not None or cwd is not None):
            raise DefinitionError("MCPProvider: env= and cwd= are for commands, not for URLs")
        if self.url is None and headers is not None:
            raise DefinitionError("MCPProvider: headers= are for URLs, not for commands")
        if timeout is not None and not timeout > 0:
            raise DefinitionError(f"MCPProvider(timeout={timeout!r}): must be more than 0")
        self._secrets = (
            *[value for value in self._headers.values() if names_secret(value)],
            *[v for name, v in self._env.items() if is_secret_name(name) and names_secret(v)],
        )
        self._trusted = trusted
        self._annotations = annotations
        self._selection = ToolSelection("MCPProvider", only, exclude)
        self._timeout = timeout
        self._problems: dict[str, str] = {}
        self._list: ToolList | None = None
        self._reset()

    def _reset(self) -> None:
        """Forget the connection. A forked process cannot use that of its parent."""
        self._pid = os.getpid()
        self._session: ServerSession | None = None
        self._paused = PausedCalls()
        self._changed: Callable[[], None] | None = None
        self._needs_list = Event()
        self._closed = Event()
        self._start_lock, self._list_lock = Lock(), RLock()

    # -------------------------------------------------------------- the list of tools

    def tools(self) -> Iterator[Tool]:
        """Return the tools. The server is started only if its list is not on disk."""
        self._check_process()
        with self._list_lock:
            if self._list is None:
                self._list = self._cache().load()
            if self._list is None:
                deadline = monotonic() + START_TIMEOUT_SECONDS
                self._read_list(self._connect(deadline), deadline)
            found = self._list
        assert found is not None
        return iter(self._make_tools(found.tools))

    def check(self) -> None:
        """Ask the server for its tools, although the list is on disk."""
        self._check_process()
        deadline = monotonic() + START_TIMEOUT_SECONDS
        self._read_list(self._connect(deadline), deadline)

    @property
    def problems(self) -> Mapping[str, str]:
        """The tools that were left out, and why."""
        return self._problems

    def _cache(self) -> ToolListCache:
        if self.url is not None:
            headers = {name: self._secret(value) for name, value in self._headers.items()}
            return ToolListCache(["url", self.url, headers], ())
        env = {name: self._secret(value) for name, value in self._env.items()}
        paths = {**base_environment(), **env}
        program = find_program(self.command, paths, self._cwd)
        folder = self._cwd or os.getcwd()
        words = [os.path.join(folder, word) for word in self.command[1:]]
        files = [path for path in (program, *words) if path is not None and os.path.isfile(path)]
        identity = ["command", list(self.command), self._cwd or folder, env, program]
        return ToolListCache(identity, files)

    def _secret(self, value: str) -> str:
        try:
            return read_reference(value, self._source)
        except ToolError:
            return value

    def _read_list(self, session: ServerSession, deadline: float) -> bool:
        """Ask the server for its tools and store them; return True if they have changed."""
        try:
            tools = session.list_tools(deadline)
        except TimeoutError:
            raise self._error("it did not list its tools in time", session) from None
        except ServerGone as gone:
            raise self._error(gone.reason, session) from None
        except RpcFailure as failure:
            if failure.code != METHOD_NOT_FOUND:
                raise self._error(f"it cannot list its tools: {failure.message}", session) from None
            tools = []
        found = ToolList(tools, session.version, session.server_info)
        with self._list_lock:
            has_changed = self._list is None or self._list.tools != found.tools
            self._list = found
            self._cache().save(found)
        return has_changed

    def _make_tools(self, listed: Sequence[JsonObject]) -> list[Tool]:
        tools: list[Tool] = []
        names = [tool["name"] for tool in listed if isinstance(tool.get("name"), str)]
        self._problems = self._selection.find_unknown(names)
        for tool in listed:
            name = tool.get("name")
            if not isinstance(name, str):
                self._problems["?"] = "a tool has no name"
            elif self._selection.includes(name):
                try:
                    tools.append(self._make_tool(name, tool))
                except DefinitionError as failure:
                    self._problems[clean_text(name, 100)] = failure.message
        return tools

    def _make_tool(self, name: str, listed: JsonObject) -> Tool:
        schema, output = listed.get("inputSchema"), listed.get("outputSchema")
        description, hints = listed.get("description"), listed.get("annotations")
        hints = hints if is_object(hints) else {}
        title = listed.get("title") or hints.get("title")
        declared = self._annotations
        if isinstance(declared, Mapping):
            declared = declared.get(name)
        behavior = hinted_behavior(hints, trusted=self._trusted, declared=declared)
        has_output = is_object(output)
        headers = {} if self.url is None else find_param_headers(schema)

        def call(arguments: JsonObject, ctx: Context) -> Any:
            for secret in self._secrets:
                self._secret(secret)  # hides it in the output of the call
            extra = make_param_headers(headers, arguments)
            return self._call(name, arguments, ctx, behavior, has_output, extra)

        tool = described_tool(
            name,
            call,
            input_schema=schema,
            output_schema=output,
            description=description if isinstance(description, str) else "",
            annotations=behavior,
            title=clean_text(title, 200) if isinstance(title, str) else None,
            timeout=self._timeout,
            stops_itself=True,
        )
        return tool.replace(may_have_secrets=bool(self._secrets))

    # -------------------------------------------------------------- the connection

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            self._reset()

    def _connect(self, deadline: float, stop: Event | None = None) -> ServerSession:
        """Return the connection to the server; start it if there is none."""
        with self._start_lock:
            session = self._session
            if session is not None and session.gone is None:
                return session
            if session is not None:
                session.close(0.0)
            self._session = None
            session = self._open(deadline)
            self._session = session
        if self._changed is not None:
            self._needs_list.set()
        elif self._list is not None:
            Thread(target=self._refresh, args=(session,), daemon=True).start()
        return session

    def _open(self, deadline: float) -> ServerSession:
        known = self._list or self._cache().load()
        eras = [None if known is None else known.version]
        if eras[0] is not None:
            eras.append(None)  # the server was replaced by another version
        else:
            eras.append("")  # it has ended because of a request that it does not know
        for is_last, era in enumerate(eras):
            session = self._make_session()
            try:
                session.open(self._make_transport(session), deadline, era)
                return session
            except ServerGone as gone:
                if gone.was_sent and not is_last and self.url is None:
                    session.close(0.0)
                    continue
                raise self._error(gone.reason, session) from None
            except NotMcp:
                reason = "it prints text that is not MCP, and does not answer"
                raise self._error(reason, session, shown="stdout") from None
            except TimeoutError:
                raise self._error("it did not answer in time after its start", session) from None
            except RpcFailure as failure:
                if not is_last and era is not None:
                    session.close(0.0)
                    continue
                raise self._error(
                    f"it refused the connection: {failure.message}", session
                ) from None
            except BaseException:
                session.close(0.0)
                raise
        raise AssertionError("unreachable")

    def _make_session(self) -> ServerSession:
        return ServerSession(self._source, self._needs_list.set)

    def _make_transport(self, session: ServerSession) -> Any:
        if self.url is None:
            return _ProcessTransport(
                self._source,
                self.command,
                self._env,
                self._cwd,
                session.receive,
                session.end,
                session.receive_noise,
            )
        server = HttpServer(self.url, partial(read_headers, self._headers, self._source))
        return HttpEndpoint(self._source, server, session.receive, session.end)

    def _error(self, reason: str, session: ServerSession, shown: str = "stderr") -> ToolError:
        """Return the error for a server that has failed, with what it has printed."""
        session.close(0.0)
        details: JsonObject = session.output_tail()
        printed = details.get(shown) or details.get("stdout")
        last = f" It has printed: {printed.splitlines()[-1][:300]}" if printed else ""
        return DependencyError(
            f"{self._source} failed: {reason}.{last}",
            details=details,
            suggestion=Suggestion("fix", f"Check that it works: {self._shown_target()}"),
        )

    def _shown_target(self) -> str:
        target = self.url if self.url is not None else shlex.join(self.command)
        return clean_text(target, 300)

    # -------------------------------------------------------------- calls

    def _call(
        self,
        name: str,
        arguments: JsonObject,
        ctx: Context,
        behavior: Behavior,
        has_output: bool,
        headers: Mapping[str, str],
    ) -> Any:
        self._check_process()
        binding = self._paused.binding(name, arguments, ctx)
        answered = self._paused.run_answered(binding, ctx)
        if answered is not None:
            return answered[0]
        attempts = 0
        while True:
            attempts += 1
            session = self._connect(self._start_deadline(ctx))
            call = ServerCall(session, name, arguments, has_output, headers)
            try:
                return self._paused.run(call, binding, ctx)
            except ServerGone as gone:
                may_repeat = not (call.was_sent and gone.was_sent) or behavior.read_only
                if attempts < 2 and may_repeat and ctx.remaining_time() != 0:
                    continue
                raise self._lost_call(name, gone, session, behavior) from None
            except ToolError as error:
                if ctx.remaining_time() == 0:
                    Thread(target=self._check_health, args=(session,), daemon=True).start()
                raise self._noting_changes(error) from None

    def _start_deadline(self, ctx: Context) -> float:
        left = ctx.remaining_time()
        limit = START_TIMEOUT_SECONDS if left is None else min(left, START_TIMEOUT_SECONDS)
        if limit <= 0:
            raise TimeoutExceeded("The time of the call was over before the server was asked.")
        return monotonic() + limit

    def _lost_call(
        self, name: str, gone: ServerGone, session: ServerSession, behavior: Behavior
    ) -> ToolError:
        """Return the error for a call whose server has ended."""
        details: JsonObject = session.output_tail()
        printed = details.get("stderr") or details.get("stdout")
        last = f" It has printed: {printed.splitlines()[-1][:300]}" if printed else ""
        effect = (
            "" if behavior.read_only else " The call may have had effects, so it is not repeated."
        )
        return DependencyError(
            f"{self._source} failed during the call of {name}: {gone.reason}.{effect}{last}",
            details=details,
            is_retryable=behavior.read_only,
            suggestion=Suggestion(
                "retry_later" if behavior.read_only else "ask_human",
                "Call again: the server is started again."
                if behavior.read_only
                else "Find out whether the call had its effect before you call again.",
            ),
        )

    def _noting_changes(self, error: ToolError) -> ToolError:
        """Forget the list of tools on disk if the server does not know a tool of it."""
        if (error.details or {}).get("rpc_code") in (INVALID_PARAMS, METHOD_NOT_FOUND):
            self._needs_list.set()
            if self._changed is None:
                self._cache().forget()
        return error

    def _check_health(self, session: ServerSession) -> None:
        """End a server that no longer responds; the next call starts it again."""
        if self.url is None and not session.is_alive(HEALTH_SECONDS):
            session.end(ServerGone("it no longer responded", was_sent=True))
            session.close(0.0)

    # -------------------------------------------------------------- changes

    def _refresh(self, session: ServerSession) -> None:
        """Correct the list on disk, while the first call of the process is running."""
        try:
            self._read_list(session, monotonic() + START_TIMEOUT_SECONDS)
        except ToolError:
            return

    def watch(self, changed: Callable[[], None]) -> None:
        """Start the server, and call `changed` whenever its list of tools changes."""
        self._check_process()
        self._changed = changed
        self._needs_list.set()
        Thread(target=self._follow, name="tooli-mcp-list", daemon=True).start()

    def _follow(self) -> None:
        listened: ServerSession | None = None
        while self._needs_list.wait() and not self._closed.is_set():
            self._needs_list.clear()
            try:
                deadline = monotonic() + START_TIMEOUT_SECONDS
                session = self._connect(deadline)
                if session is not listened:
                    listened = session
                    session.listen()
                    self._needs_list.clear()
                if self._read_list(session, deadline) and self._changed is not None:
                    self._changed()
            except Exception:  # the next call reports it
                continue

    def close(self) -> None:
        """End the server."""
        if self._pid != os.getpid():
            return
        self._closed.set()
        self._needs_list.set()
        session = self._session
        if session is not None:
            session.close()


class _ProcessTransport(ServerProcess):
    """A program as the transport of a session."""

    def send(
        self,
        message: JsonObject,
        request: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().send(message)

    def cancel(self, request: Any) -> None:
        params = {"requestId": request.id, "reason": "the caller does not wait any more"}
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def set_version(self, version: str, *, is_stateless: bool) -> None:
        """Do nothing: the messages themselves name the version."""

    def listen(self) -> None:
        """Do nothing: the server sends its notifications on stdout."""


def _read_target(target: str | Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Return the URL or the words of the command."""
    if isinstance(target, str):
        if target.lower().startswith(("http://", "https://")):
            return check_server_url(target, "MCPProvider"), ()
        try:
            words = tuple(shlex.split(target, posix=sys.platform != "win32"))
        except ValueError as failure:
            raise DefinitionError(f"MCPProvider({target[:100]!r}): {failure}") from None
    else:
        words = tuple(target)
    if not words or not all([isinstance(word, str) and "\0" not in word for word in words]):  # pyright: ignore
        raise DefinitionError("MCPProvider: the command must be a text, or a list of words")
    return None, words


def _default_name(url: str | None, command: Sequence[str]) -> str:
    """Return the name of the host, of the program, or of the package that a runner starts."""
    if url is not None:
        return url.partition("://")[2].partition("/")[0]
    names = [os.path.basename(command[0].replace("\\", "/")).removesuffix(".exe")]
    if names[0] in _RUNNERS or names[0].startswith("python"):
        names += [
            os.path.basename(word)
            for word in command[1:]
            if word[:1] != "-" and word not in _RUNNER_WORDS
        ][:1]
    return names[-1].rpartition("@")[0] or names[-1]


def _check_env(env: Mapping[str, str] | None) -> dict[str, str]:
    checked: dict[str, str] = {}
    for name, value in dict(env or {}).items():
        is_text = isinstance(name, str) and isinstance(value, str)  # pyright: ignore
        if not is_text or not name or "=" in name or "\0" in name + value:
            raise DefinitionError(f"MCPProvider: env= has an invalid variable: {name!r}")
        checked[name] = value
    return checked
