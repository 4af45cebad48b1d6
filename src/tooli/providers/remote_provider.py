"""RemoteProvider: the commands of another tooli app that is served over HTTP.

    app.add_provider(RemoteProvider("https://shop.example.com", token="env:SHOP_TOKEN"))

    GET /tools          ─▶ the commands, their schemas, versions and effects
    POST /tools/NAME    ─▶ the envelope: its result, its pages, or its error with the same code

The other app runs dry runs. A confirmation, the idempotency key and the remaining time are passed
on. The credentials of the caller are not: the other app gets only those of this provider.
"""

from __future__ import annotations

from functools import partial
from json import dumps, loads
from threading import RLock
from typing import Any
from urllib.parse import quote, urlencode

from tooli.core.result_types import Page
from tooli.core.tool import Behavior
from tooli.errors import (
    DefinitionError,
    DependencyError,
    NotFoundError,
    Suggestion,
    TemporaryError,
    ToolError,
)
from tooli.inputs.urls import RequestDeadline
from tooli.providers.foreign_errors import restore_foreign_error
from tooli.providers.http_requests import (
    AnswerTooLarge,
    ConnectionFailed,
    EventStream,
    HttpServer,
    abort_connection,
    check_headers,
    check_server_url,
    is_reference,
    names_secret,
    read_headers,
    status_error,
)
from tooli.providers.provider import Provider, described_tool, hinted_behavior
from tooli.providers.tool_selection import ToolSelection
from tooli.schema.described import clean_text
from tooli.text.json_limits import JsonLimitError, check_json_limits
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.pipeline.context import Context
    from tooli.providers.http_requests import HttpAnswer

DEFAULT_TIMEOUT_SECONDS = 300.0
"""Default time limit of a call."""
LIST_TIMEOUT_SECONDS = 30.0
"""Longest time without data while the commands are read."""
LIST_TOTAL_SECONDS = 60.0
"""Longest time in which the commands are read. A server could send one byte at a time."""
MAX_ANSWER_BYTES = 64 << 20
MAX_WARNINGS = 20
_EVENTS = "text/event-stream"


class RemoteProvider(Provider):
    """The commands of a tooli app that is served over HTTP (`api serve`).

    Args:
        url: The URL of the server.
        token: The bearer token for the server: `env:NAME` or `@FILE`.
        headers: Other headers. A value may be `env:NAME` or `@FILE`.
        name: The name in messages. The default is the host.
        trusted: Believe what the app says about the effects of its commands. Otherwise it only
            counts where it is stricter than `annotations`.
        annotations: The effects that you guarantee: for all commands, or by name.
        only: The names of the commands to use; `*` is allowed.
        exclude: The names of the commands to leave out; `*` is allowed.
        timeout: The time limit of a call in seconds; None for no limit.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
        trusted: bool = False,
        annotations: Behavior | Mapping[str, Behavior] | None = None,
        only: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        self.url = check_server_url(url, "RemoteProvider").rstrip("/") + "/"
        self.name = name or self.url.partition("://")[2].partition("/")[0]
        self.description = f"Commands of the app at {self.name}."
        self._source = f"The app at {self.name}"
        if token is not None and not is_reference(token):
            raise DefinitionError("RemoteProvider: token= must be env:NAME or @FILE")
        self._headers = check_headers(headers, "RemoteProvider")
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        if timeout is not None and not timeout > 0:
            raise DefinitionError(f"RemoteProvider(timeout={timeout!r}): must be more than 0")
        self._trusted = trusted
        self._annotations = annotations
        self._selection = ToolSelection("RemoteProvider", only, exclude)
        self._timeout = timeout
        self._problems: dict[str, str] = {}
        self._server = HttpServer(self.url, self._read_headers)
        self._lock = RLock()

    def _read_headers(self) -> dict[str, str]:
        return read_headers(self._headers, self._source)

    # -------------------------------------------------------------- the list of commands

    def tools(self) -> Iterator[Tool]:
        """Return the commands that the server lists."""
        with self._lock:
            listed = self._read_list()
            tools: list[Tool] = []
            self._problems = self._selection.find_unknown([c["name"] for c in listed])
            for command in listed:
                if not self._selection.includes(command["name"]):
                    continue
                others = command.get("other_versions")
                versions = [command, *(others if is_list(others) else ())]
                for version in versions:
                    try:
                        tools.append(self._make_tool(version, has_versions=len(versions) > 1))
                    except DefinitionError as failure:
                        self._problems[clean_text(command["name"], 100)] = failure.message
            return iter(tools)

    @property
    def problems(self) -> Mapping[str, str]:
        """The commands that were left out, and why."""
        return self._problems

    def _read_list(self) -> list[JsonObject]:
        deadline = RequestDeadline(LIST_TOTAL_SECONDS)
        try:
            answer = self._server.send(
                "GET", "tools", timeout=LIST_TIMEOUT_SECONDS, on_open=deadline.track_connection
            )
            try:
                data = answer.read(MAX_ANSWER_BYTES)
            finally:
                answer.release()
        except (ConnectionFailed, AnswerTooLarge) as failure:
            raise self._unreachable(failure) from None
        finally:
            deadline.cancel()
        if answer.status != 200:
            raise self._read_failure(answer, data)
        try:
            page = _decode(data)
        except ValueError:
            page = None
        commands = page.get("commands") if is_object(page) else None
        if not is_list(commands):
            raise DependencyError(
                f"{self._source} is not a tooli app: it has no list at {self.url}tools.",
                suggestion=Suggestion("fix", "Give the URL at which `api serve` serves the app."),
            )
        return [c for c in commands if is_object(c) and isinstance(c.get("name"), str)]

    def _make_tool(self, command: JsonObject, *, has_versions: bool) -> Tool:
        name = command["name"]
        path = command.get("path")
        parts = path if is_list(path) and path else name.split(".")
        if not all([isinstance(part, str) for part in parts]):
            parts = name.split(".")
        words = [part.partition("@")[0] for part in parts]
        version = command.get("version") if has_versions else None
        schema, output = command.get("input_schema"), command.get("output_schema")
        description, positional = command.get("description"), command.get("positional")
        deprecated = command.get("deprecated")
        behavior = self._find_behavior(name, command)
        remote = _RemoteCommand(
            self,
            "tools/" + "/".join([quote(word, safe="") for word in words]),
            version=version if isinstance(version, str) else None,
            is_destructive=behavior.destructive,
            sends_events=command.get("streams") is True or command.get("reports") is True,
            is_paginated=bool(command.get("paginated")),
        )
        tool = described_tool(
            [*words],
            remote.stream if command.get("streams") is True else remote.call,
            input_schema=schema if is_object(schema) else None,
            output_schema=output if is_object(output) else None,
            description=description if isinstance(description, str) else "",
            annotations=behavior,
            positional=[p for p in positional if isinstance(p, str)] if is_list(positional) else (),
            version=remote.version,
            deprecated=clean_text(deprecated, 500)
            if isinstance(deprecated, str)
            else bool(deprecated),
            timeout=self._timeout,
            stops_itself=True,
        )
        plan: Any = tool.fn
        plan.tooli_plan = remote.plan
        # The other app decides how long a page is.
        return tool.replace(
            limits=tool.limits.replace(returns_page=remote.is_paginated),
            may_have_secrets=any(map(names_secret, self._headers.values())),
        )

    def _find_behavior(self, name: str, command: JsonObject) -> Behavior:
        labels = command.get("annotations")
        labels = labels if is_list(labels) else []
        found = Behavior(
            read_only="read-only" in labels,
            destructive="destructive" in labels,
            idempotent="idempotent" in labels,
            open_world="open-world" in labels,
        )
        declared = self._annotations
        if declared is not None and not isinstance(declared, Behavior):
            declared = declared.get(name)
        if self._trusted and declared is None:
            return found
        hints = {
            "readOnlyHint": found.read_only or None,
            "destructiveHint": found.destructive or None,
            "idempotentHint": found.idempotent or None,
            "openWorldHint": found.open_world,
        }
        return hinted_behavior(hints, declared=declared)

    # -------------------------------------------------------------- requests

    def request(
        self, path: str, arguments: JsonObject, query: JsonObject, accept: str, ctx: Context | None
    ) -> HttpAnswer:
        """Send a call and return the answer. The deadline of the call ends it."""
        body = dumps(arguments, separators=(",", ":")).encode("ascii")
        headers = {"Content-Type": "application/json", "Accept": accept}
        target = f"{path}?{urlencode(query)}" if query else path

        def track(sock: Any) -> None:
            if ctx is not None:
                ctx.on_stop(partial(abort_connection, sock))

        try:
            return self._server.send("POST", target, body, headers, on_open=track)
        except ConnectionFailed as failure:
            raise self._unreachable(failure, is_call=True) from None

    def _unreachable(self, failure: Exception, *, is_call: bool = False) -> ToolError:
        if isinstance(failure, ConnectionFailed) and not (is_call and failure.was_sent):
            return TemporaryError(
                f"{self._source} cannot be reached: {failure}",
                suggestion=Suggestion("retry_later", f"Check that {self.url} is served."),
            )
        return DependencyError(
            f"{self._source} did not answer: {failure}. The call may have had effects.",
            suggestion=Suggestion("ask_human", "Find out whether it had, before you call again."),
        )

    def read_envelope(self, answer: HttpAnswer, ctx: Context | None) -> JsonObject:
        """Return the envelope of a success; raise the error of a failure."""
        try:
            try:
                data = answer.read(MAX_ANSWER_BYTES)
            finally:
                answer.release()
        except (ConnectionFailed, AnswerTooLarge) as failure:
            raise self._unreachable(failure, is_call=True) from None
        try:
            envelope = _decode(data)
        except JsonLimitError as failure:
            raise DependencyError(f"{self._source} sent an answer that {failure}.") from None
        except ValueError:
            envelope = None
        if is_object(envelope) and envelope.get("ok") is True:
            self.pass_warnings(envelope, ctx)
            return envelope
        raise self._read_failure(answer, data)

    def _read_failure(self, answer: HttpAnswer, data: bytes) -> ToolError:
        try:
            envelope = _decode(data)
        except ValueError:
            envelope = None
        error = self.envelope_error(envelope)
        if error is not None:
            return error
        if answer.status == 200:
            return DependencyError(f"{self._source} sent an answer that is no envelope of tooli.")
        if answer.status == 404:
            return NotFoundError(f"{self._source} has no such path: {self.url} (HTTP 404).")
        return status_error(
            self._source, answer.status, retry_after=answer.headers.get("retry-after", "")
        )

    def envelope_error(self, envelope: object) -> ToolError | None:
        """Return the error in an envelope; None if it is not that of a failure."""
        error = envelope.get("error") if is_object(envelope) else None
        return restore_foreign_error(error) if is_object(error) else None

    def pass_warnings(self, envelope: JsonObject, ctx: Context | None) -> None:
        """Pass on the warnings in an envelope, and that its result is incomplete."""
        meta = envelope.get("meta")
        if not is_object(meta) or ctx is None:
            return
        warnings, truncated = meta.get("warnings"), meta.get("truncated")
        for warning in warnings[:MAX_WARNINGS] if is_list(warnings) else ():
            ctx.warn(clean_text(warning, 1_000))
        if is_object(truncated):
            shown, total = truncated.get("shown"), truncated.get("total")
            ctx.warn(f"{self._source} has sent only a part of the result: {shown!s} of {total!s}.")

    def close(self) -> None:
        """Close the connections."""
        self._server.close()


class _RemoteCommand:
    """One command of the other app, in one version."""

    def __init__(
        self,
        provider: RemoteProvider,
        path: str,
        *,
        version: str | None,
        is_destructive: bool,
        sends_events: bool,
        is_paginated: bool,
    ) -> None:
        self.version = version
        self.is_paginated = is_paginated
        self._provider = provider
        self._path = path if version is None else f"{path}@{quote(version, safe='')}"
        self._is_destructive = is_destructive
        self._sends_events = sends_events

    def _query(self, ctx: Context) -> JsonObject:
        """Return the options of the call that apply there."""
        options, query = ctx.options, dict[str, Any]()
        # A destructive command runs only after it was confirmed here.
        if options.yes or self._is_destructive:
            query["yes"] = "true"
        if options.idempotency_key is not None:
            query["idempotency_key"] = options.idempotency_key
        left = ctx.remaining_time()
        if left is not None:
            query["timeout"] = f"{max(left, 0.01):.2f}"
        if self.is_paginated:
            page = ctx.page
            if page.limit is not None:
                query["limit"] = str(page.limit)
            if page.cursor is not None:
                query["cursor"] = page.cursor
        return query

    def call(self, arguments: JsonObject, ctx: Context) -> Any:
        """Run the command, and return its result."""
        if self._sends_events:
            result: Any = None
            for event, value in self._events(arguments, ctx):
                result = value if event == "end" else result
            return result
        accept = "application/json"
        answer = self._provider.request(self._path, arguments, self._query(ctx), accept, ctx)
        envelope = self._provider.read_envelope(answer, ctx)
        return self._read_page(envelope) if self.is_paginated else envelope.get("result")

    def _read_page(self, envelope: JsonObject) -> Any:
        result, meta = envelope.get("result"), envelope.get("meta")
        page = meta.get("page") if is_object(meta) else None
        page = page if is_object(page) else {}
        cursor, total = page.get("next_cursor"), page.get("total")
        if not is_list(result):
            return result
        return Page(
            result,
            next_cursor=cursor if isinstance(cursor, str) else None,
            total=total if type(total) is int else None,
        )

    def stream(self, arguments: JsonObject, ctx: Context) -> Iterator[Any]:
        """Run the command, and yield the items of its result as they arrive."""
        for event, value in self._events(arguments, ctx):
            if event == "message":
                yield value

    def _events(self, arguments: JsonObject, ctx: Context) -> Iterator[tuple[str, Any]]:
        """Yield the items of a stream, and the result at its end; pass on progress and logs."""
        provider = self._provider
        answer = provider.request(self._path, arguments, self._query(ctx), _EVENTS, ctx)
        if answer.status != 200 or answer.content_type != _EVENTS:
            yield "end", provider.read_envelope(answer, ctx).get("result")
            return
        try:
            lines = answer.lines(MAX_ANSWER_BYTES)
            for name, data in EventStream(MAX_ANSWER_BYTES).read(lines):
                value = _decode(data)
                if name == "end":
                    provider.pass_warnings(value, ctx)
                    yield "end", value.get("result") if is_object(value) else None
                    return
                if name == "error":
                    raise provider.envelope_error(value) or _broken(provider)
                if name == "progress" and is_object(value):
                    _report(ctx, value)
                elif name == "log" and is_object(value):
                    level = value.get("level")
                    text = clean_text(str(value.get("message")), 4_000)
                    ctx.log(text, level=level if isinstance(level, str) else 1)
                elif name == "artifact" and is_object(value):
                    _pass_artifact(ctx, value)
                elif name == "message":
                    yield "message", value
        except (ConnectionFailed, AnswerTooLarge, ValueError) as failure:
            raise _broken(provider, failure) from None
        finally:
            answer.close()
        raise _broken(provider)

    def plan(self, **arguments: Any) -> Any:
        """Return the plan of a call: that of a dry run of the other app."""
        query = {"dry_run": "true"}
        answer = self._provider.request(self._path, arguments, query, "application/json", None)
        plan = self._provider.read_envelope(answer, None).get("result")
        if is_object(plan):
            plan.pop("token", None)  # it would apply the plan there, and not here
        return plan


def _broken(provider: RemoteProvider, failure: Exception | None = None) -> ToolError:
    reason = "" if failure is None else f": {failure}"
    return DependencyError(
        f"The app at {provider.name} has ended the stream before its end{reason}.",
        suggestion=Suggestion("retry_later", "Call again if the command can be repeated."),
    )


def _report(ctx: Context, progress: JsonObject) -> None:
    done, total, message = (progress.get(name) for name in ("done", "total", "message"))
    if isinstance(done, (int, float)):
        text = clean_text(message, 1_000) if isinstance(message, str) else None
        ctx.report(done, total if isinstance(total, (int, float)) else None, text)


def _pass_artifact(ctx: Context, artifact: JsonObject) -> None:
    name, uri, mime_type = (artifact.get(field) for field in ("name", "uri", "mime_type"))
    if isinstance(name, str) and isinstance(uri, str):
        mime_type = clean_text(mime_type, 200) if isinstance(mime_type, str) else None
        ctx.artifact(clean_text(name, 200), clean_text(uri, 2_000), mime_type=mime_type)


def _decode(data: bytes) -> Any:
    """Return a JSON value. Raises a ValueError."""
    check_json_limits(data, outer_depth=2)
    return loads(data)
