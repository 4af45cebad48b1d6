"""The interfaces of an app. Each one sends a Case and returns an InterfaceResponse.

    Case ─┬▶ app.call, acall, stream, astream ─────────┐
          ├▶ command line, parsed by tooli or by Typer ┼▶ InterfaceResponse
          └▶ HTTP, MCP with and without a handshake ───┘

The answers do not depend on who runs the test: the program always has the name of the app, and the
environment has no variables of an agent. HTTP sends a case to the ASGI app without a network. MCP
sends it to the stdio server without a process. Both servers expose the texts of unexpected errors,
so that all interfaces answer the same.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from tooli.core import Record
from tooli.core._hot_tables import RESULT_OPTIONS, RUN_OPTIONS
from tooli.core.call import RedactionPolicy
from tooli.core.event_loop import iterate_async, run_awaitable
from tooli.describe.mcp_tools import ResultForm, result_form
from tooli.errors import ToolError
from tooli.http.request_options import HTTP_OPTIONS
from tooli.mcp.protocol import (
    CAPABILITIES_KEY,
    ENVELOPE_KEY,
    META_KEY,
    OPTIONS_KEY,
    STATELESS_VERSIONS,
    VERSION_KEY,
)
from tooli.mcp.stdio_server import StdioServer
from tooli.mcp.stdio_transport import StdioTransport, from_json, to_json
from tooli.mcp.tool_results import visible_meta
from tooli.pipeline.argv_builder import build_argv, build_path
from tooli.pipeline.present import ItemPresenter
from tooli.pipeline.stdout_capture import route_stdout
from tooli.serving.dispatcher import MCP_OPTIONS
from tooli.testing.command_runner import app_name, invoke, invoke_callable
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_object, to_jsonable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
    from typing import ClassVar

    from tooli.app import Tooli
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.pipeline.prepared_call import TooliResult
    from tooli.serving import AsgiApp, Message
    from tooli.testing.command_runner import CommandResult


class Case(Record):
    """One request, independent of an interface.

    Args:
        tool: The command.
        arguments: Python values, in the order of the parameters.
        options: Options of the framework, such as `{"yes": True}`.
        argv: Command line arguments that other interfaces cannot express, such as an option
            without its value. The case then runs on the command line only.
        skip: Names of interfaces or surfaces that skip the case, each with the reason.
    """

    tool: str
    arguments: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    argv: Sequence[str] | None = None
    skip: Mapping[str, str] = {}


class InterfaceResponse(Record):
    """The answer of an interface as JSON types, and the exit code if the interface has one."""

    envelope: JsonObject
    exit_code: int | None = None


class Interface:
    """Base class of an interface: a way to call an app with a Case."""

    name: ClassVar[str]
    surface: ClassVar[str]
    accepts_argv: ClassVar[bool] = False
    streams: ClassVar[bool] = False  # returns items, and no metadata

    def __init__(self, app: Tooli) -> None:
        self.app = app

    def send_case(self, case: Case) -> InterfaceResponse:
        """Send a case and return the answer."""
        raise NotImplementedError

    def skip_reason(self, case: Case) -> str | None:
        """Return why a case is skipped, or None."""
        if case.argv is not None and not self.accepts_argv:
            return "it takes values, not command line arguments"
        return case.skip.get(self.name) or case.skip.get(self.surface)


_INTERFACES: list[type[Interface]] = []
# Each response format is an option of its own in Python and MCP. In other interfaces it is a value
# of the option `response_format`.
_RESPONSE_FORMATS = ("detailed", "concise")

InterfaceType = TypeVar("InterfaceType", bound=type[Interface])


def register_interface(interface_class: InterfaceType) -> InterfaceType:
    """Register an interface class, which every parity test then uses."""
    _INTERFACES.append(interface_class)
    return interface_class


def interfaces(app: Tooli) -> list[Interface]:
    """Return every interface of the app."""
    return [interface_class(app) for interface_class in _INTERFACES]


def as_items(envelope: Mapping[str, Any]) -> JsonObject:
    """Return an envelope as a stream reports it: items or an error, without metadata."""
    result = envelope.get("result", [])
    if not envelope["ok"]:
        return failed_stream(result, envelope["error"])
    return {"ok": True, "result": result if isinstance(result, list) else [result]}


def failed_stream(items: Sequence[object], error: Mapping[str, Any]) -> JsonObject:
    """Return the envelope of a stream that failed, with the items before the failure."""
    return {"ok": False, "error": error, **({"result": [*items]} if items else {})}


# ------------------------------------------------------------------ Python


class PythonInterface(Interface):
    """Calls a method of the app. The method has the name of the interface."""

    surface: ClassVar[str] = "python"

    def send_case(self, case: Case) -> InterfaceResponse:
        """Call the tool and return its result; for a stream, return its items or its error."""
        method = getattr(self.app.options(**case.options), self.name)
        answer = method(case.tool, **case.arguments)
        if self.streams:
            items = iterate_async(answer) if hasattr(answer, "__aiter__") else answer
            return _response_from_items(items, self.app)
        return _response_from_result(
            run_awaitable(answer) if hasattr(answer, "__await__") else answer
        )


@register_interface
class CallInterface(PythonInterface):
    """`app.call`."""

    name = "call"


@register_interface
class AsyncCallInterface(PythonInterface):
    """`await app.acall`."""

    name = "acall"


@register_interface
class StreamInterface(PythonInterface):
    """`app.stream`."""

    name, streams = "stream", True


@register_interface
class AsyncStreamInterface(PythonInterface):
    """`app.astream`."""

    name, streams = "astream", True


def _response_from_result(result: TooliResult[Any]) -> InterfaceResponse:
    code = 0 if result.error is None else result.error.to_exception().exit_code
    return InterfaceResponse(json.loads(result.model_dump_json()), code)


def _response_from_items(items: Iterable[object], app: Tooli) -> InterfaceResponse:
    """Return the items, or the error that ended them, as another process would receive them."""
    policy, received = RedactionPolicy(app._state.policy), list[object]()
    presenter = ItemPresenter(policy)
    try:
        received += (json.loads(presenter.encode(item)) for item in items)
    except ToolError as error:
        fields = json.loads(ItemPresenter(policy, part="error").encode(error.to_dict()))
        return InterfaceResponse(failed_stream(received, fields), error.exit_code)
    return InterfaceResponse({"ok": True, "result": received}, 0)


# ------------------------------------------------------------------ the command line


@register_interface
class CommandLineInterface(Interface):
    """The command line, parsed by tooli where possible."""

    name, surface, accepts_argv = "cli", "cli", True

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the envelope on stdout."""
        done = invoke(self.app, *command_line(self.app, case), mode="json")
        return InterfaceResponse(done.envelope, done.exit_code)


@register_interface
class JsonLinesInterface(Interface):
    """The command line with `--jsonl`."""

    name, surface, accepts_argv, streams = "jsonl", "cli", True, True

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the lines on stdout, or the error in the last line if the stream failed."""
        return _response_from_lines(invoke(self.app, *command_line(self.app, case), mode="jsonl"))


@register_interface
class EventLinesInterface(Interface):
    """The command line with `--stream`."""

    name, surface, accepts_argv, streams = "--stream", "cli", True, True

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the items of the lines, or the result in the last line, or the error there."""
        done = invoke(self.app, *command_line(self.app, case), mode="stream")
        envelope = done.lines[-1]
        items = [line["value"] for line in done.lines if line["type"] == "item"]
        envelope = {**envelope, "result": items} if items else envelope
        return InterfaceResponse(as_items(envelope), done.exit_code)


@register_interface
class TyperInterface(Interface):
    """The command line, parsed by Typer."""

    name, surface, accepts_argv = "typer", "cli", True

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the envelope on stdout."""
        from typer.main import get_command

        argv, program = command_line(self.app, case), app_name(self.app)
        command = get_command(self.app)
        done = invoke_callable(
            lambda: command.main(argv, prog_name=program), (program, *argv), mode="json"
        )
        return InterfaceResponse(done.envelope, done.exit_code)


def _response_from_lines(command_result: CommandResult) -> InterfaceResponse:
    lines = command_result.lines
    if not command_result.ok:
        envelope = failed_stream(lines[:-1], lines[-1]["error"])
        return InterfaceResponse(envelope, command_result.exit_code)
    return InterfaceResponse({"ok": True, "result": lines}, command_result.exit_code)


def command_line(app: Tooli, case: Case) -> list[str]:
    """Return the arguments of the command line for a case, without the program."""
    tool = app.find(case.tool)
    if tool is None:
        return [*_flags(case.options, ()), *case.tool.split("."), *(case.argv or ())]
    path = () if app.tree().only_command is not None else tool.path
    own_flags = [flag for param in tool.params for flag in (*param.flags, *param.negations)]
    unknown_flags = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in case.arguments.items()
        if name not in tool.param_names
    ]
    argv = build_argv(tool, case.arguments) if case.argv is None else case.argv
    words = build_path(tool, case.arguments, path)
    return [*words, *_flags(case.options, own_flags), *unknown_flags, *argv]


def _flags(options: Mapping[str, Any], own_flags: Sequence[str]) -> list[str]:
    flags: list[str] = []
    for name, value in options.items():
        is_response_format = name in _RESPONSE_FORMATS
        flag = "--response-format" if is_response_format else f"--{name.replace('_', '-')}"
        if flag in own_flags:
            flag = f"--tooli-{flag[2:]}"
        if name in RESULT_OPTIONS or name in RUN_OPTIONS:
            flags.append(f"{flag}={value}")
            continue
        tokens = [flag, name] if is_response_format else [flag]
        flags += tokens * int(value)
    return flags


# ------------------------------------------------------------------ HTTP


class HttpResponse(Record):
    """A response: status, headers and the chunks of the body."""

    status: int
    headers: Mapping[str, str]
    chunks: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(self.chunks)

    def json(self) -> Any:
        """The body as a JSON document."""
        return json.loads(self.body)

    def lines(self) -> list[Any]:
        """The lines of the body as JSON documents."""
        return [json.loads(line) for line in self.body.split(b"\n") if line]


async def send_request(
    api: AsgiApp,
    method: str,
    path: str,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    query: str = "",
) -> HttpResponse:
    """Send one request to an ASGI application and return the response."""
    request_headers = {
        "host": "localhost",
        **({"content-type": "application/json"} if body else {}),
    }
    request_headers |= {name.lower(): value for name, value in (headers or {}).items()}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (name.encode(), value.encode("latin-1")) for name, value in request_headers.items()
        ],
    }
    incoming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        if incoming:
            return incoming.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    await api(scope, receive, send)
    head = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return HttpResponse(sent[0]["status"], head, tuple(m.get("body", b"") for m in sent[1:]))


@asynccontextmanager
async def run_lifespan(api: AsgiApp) -> AsyncGenerator[AsgiApp]:
    """Context manager that starts and shuts down an ASGI application."""
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    outbox: asyncio.Queue[Message] = asyncio.Queue()
    lifespan_task = asyncio.ensure_future(
        api({"type": "lifespan", "asgi": {"version": "3.0"}}, inbox.get, outbox.put)
    )
    inbox.put_nowait({"type": "lifespan.startup"})
    assert (await outbox.get())["type"] == "lifespan.startup.complete"
    try:
        yield api
    finally:
        inbox.put_nowait({"type": "lifespan.shutdown"})
        await lifespan_task


_OPTIONS_WITH_VALUE = [name for name, kind in HTTP_OPTIONS.items() if kind != "flag"]


@register_interface
class HttpInterface(Interface):
    """`POST /tools/{command}`."""

    name, surface = "http", "http"
    accept = "application/json"

    def skip_reason(self, case: Case) -> str | None:
        """Return why a case is skipped, for example because HTTP lacks an option, or None."""
        if case.options.keys() - {*HTTP_OPTIONS, *_RESPONSE_FORMATS}:
            return "HTTP does not have the option"
        return super().skip_reason(case)

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the envelope in the body of the response."""
        return InterfaceResponse(run_awaitable(post_case(self.app, case, self.accept)).json())


@register_interface
class HttpLinesInterface(HttpInterface):
    """`POST /tools/{command}` with the items of a stream as JSON lines."""

    name, streams = "http-lines", True
    accept = "application/x-ndjson"

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the items, or the error in the last line if the stream failed."""
        response = run_awaitable(post_case(self.app, case, self.accept))
        if response.headers["content-type"] == "application/json":
            return InterfaceResponse(as_items(response.json()))
        lines = response.lines()
        if lines and is_object(lines[-1]) and lines[-1].get("ok") is False:
            return InterfaceResponse(failed_stream(lines[:-1], lines[-1]["error"]))
        return InterfaceResponse({"ok": True, "result": lines})


async def post_case(app: Tooli, case: Case, accept: str) -> HttpResponse:
    """Send a case as a POST request and return the response."""
    arguments = to_jsonable(dict(case.arguments), [])
    query = urlencode(
        [
            _query_pair(name, value)
            for name, value in case.options.items()
            if value or name in _OPTIONS_WITH_VALUE
        ]
    )
    async with run_lifespan(app.asgi(mcp=False, expose_errors=True)) as api:
        return await send_request(
            api,
            "POST",
            f"/tools/{case.tool.replace(' ', '/')}",
            body=encode(arguments, []),
            headers={"accept": accept},
            query=query,
        )


def _query_pair(name: str, value: Any) -> tuple[str, str]:
    if name in _RESPONSE_FORMATS:
        return "response_format", name
    return name, str(value) if name in _OPTIONS_WITH_VALUE else "true"


# ------------------------------------------------------------------ MCP

_CLIENT = {"name": "parity", "version": "1"}


class MemoryTransport(StdioTransport):
    """A transport that collects the sent messages in a list."""

    def __init__(self) -> None:
        super().__init__(-1, -1)
        self.sent: list[Any] = []

    def send(self, *parts: bytes) -> None:
        """Decode a message and add it to the list."""
        self.sent.append(from_json(b"".join(parts)))

    def is_disconnected(self) -> bool:
        """Return False."""
        return False


class McpInterface(Interface):
    """Sends `tools/call` as a client of a stateful or a stateless protocol version does."""

    surface: ClassVar[str] = "mcp"
    stateless: ClassVar[bool]

    def __init__(self, app: Tooli) -> None:
        super().__init__(app)
        self.transport = MemoryTransport()
        self.server = StdioServer(app, self.transport, expose_errors=True)
        if not self.stateless:
            self._send(
                "initialize",
                {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT},
            )

    def skip_reason(self, case: Case) -> str | None:
        """Return why a case is skipped, for example because MCP lacks an option, or None."""
        if case.options.keys() - {*MCP_OPTIONS}:
            return "MCP does not have the option"
        return super().skip_reason(case)

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the envelope of the result."""
        name, tool = _find_tool(self.server, case.tool)
        params: JsonObject = {"name": name, "arguments": dict(case.arguments)}
        if case.options:
            params["_meta"] = {OPTIONS_KEY: dict(case.options)}
        restore = route_stdout()
        try:
            reply = self._send("tools/call", params)
        finally:
            restore()
        return InterfaceResponse(_without_client(envelope_from_reply(reply, tool, self.stateless)))

    def _send(self, method: str, params: JsonObject) -> JsonObject:
        if self.stateless:
            envelope: JsonObject = {VERSION_KEY: STATELESS_VERSIONS[-1], CAPABILITIES_KEY: {}}
            params = {**params, "_meta": {**params.get("_meta", {}), **envelope}}
        request = {
            "jsonrpc": "2.0",
            "id": len(self.transport.sent),
            "method": method,
            "params": params,
        }
        self.server.handle_message(from_json(to_json(request)))
        self.server.pending.wait(60)
        self.server.shut_down()  # end its threads: a test suite creates thousands of interfaces
        return self.transport.sent[-1]


@register_interface
class HandshakeInterface(McpInterface):
    """MCP up to version 2025-11-25, with an `initialize` handshake."""

    name, stateless = "mcp", False


@register_interface
class StatelessInterface(McpInterface):
    """MCP since version 2026-07-28, without a handshake."""

    name, stateless = "mcp-stateless", True


def _find_tool(server: StdioServer, name: str) -> tuple[str, Tool | None]:
    tool = server.service.app.find(name)
    for key, served_tool in server.service.tools.items():
        if tool is not None and served_tool.id == tool.id:
            return key, tool
    return name, tool


def envelope_from_reply(reply: JsonObject, tool: Tool | None, stateless: bool) -> JsonObject:
    """Return the envelope of a reply. For a successful result it is built from the parts."""
    if "error" in reply:
        return reply["error"]["data"][ENVELOPE_KEY]
    result = reply["result"]
    if result["isError"]:
        return result["_meta"][ENVELOPE_KEY]
    envelope: JsonObject = {"ok": True}
    value = _result_value(result, tool, stateless)
    if value is not None:
        envelope["result"] = value
    return {**envelope, "meta": result["_meta"][META_KEY]}


def _result_value(result: JsonObject, tool: Tool | None, stateless: bool) -> Any:
    """Return the result without the `meta` that is added for models."""
    form = None if tool is None else result_form(tool, stateless)
    shown = {} if tool is None else visible_meta(result["_meta"][META_KEY], tool, lambda name: name)
    content = result["content"]
    if "structuredContent" in result:
        return _without_meta(result["structuredContent"], form or ResultForm(False), bool(shown))
    blocks = content[:-1] if shown else content
    if not blocks:
        return None
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return blocks


def _without_meta(value: Any, form: ResultForm, has_meta: bool) -> Any:
    if form.is_wrapped or (has_meta and form.meta_key is None):
        return value["result"]
    if not has_meta:
        return value
    added = "tooli_meta" if "tooli_meta" in value else "meta"
    return {name: part for name, part in value.items() if name != added}


def _without_client(envelope: JsonObject) -> JsonObject:
    """Remove name and version of the client, which other interfaces do not have."""
    meta = {k: v for k, v in envelope["meta"].items() if k not in ("caller_id", "caller_version")}
    return {**envelope, "meta": meta}
