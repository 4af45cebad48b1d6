"""McpService: an app's tools in the format of MCP. The stdio server and the SDK both use it.

tools/list ─▶ list_tools ─▶ {"tools": […]}
tools/call ─▶ tool_call_request ─▶ ToolCallRequest.run │ arun ─▶ {"content": […], …}
"""

from __future__ import annotations

import os

from tooli.core import Record
from tooli.core.call import Caller
from tooli.core.output_limits import find_server_limit
from tooli.core.peer import InputRequired, Peer
from tooli.core.placeholder_call import make_placeholder_call
from tooli.core.tool import MAX_QUOTED_CHARS, cut_text
from tooli.describe.mcp_tools import describe_mcp_tool, max_result_chars, with_settings
from tooli.errors import InputError
from tooli.mcp.message_limits import MAX_STDIO_MESSAGE_BYTES, limit_message, limit_options
from tooli.mcp.protocol import (
    CAPABILITIES_KEY,
    ENVELOPE_KEY,
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    OPTIONS_KEY,
    SERVER_INFO_KEY,
    STATELESS_VERSIONS,
    RequestState,
    RpcError,
    StatelessPeer,
    approval_question,
    is_approved,
    missing_capability_error,
)
from tooli.mcp.tool_results import ResultFormat
from tooli.pipeline.drivers import is_async
from tooli.pipeline.present import present_text
from tooli.pipeline.question_scan import may_ask
from tooli.serving.caller_view import CallerView
from tooli.serving.dispatcher import (
    ToolDispatcher,
    present_request_error,
    split_options,
    unknown_tool_error,
)
from tooli.serving.server_request import CANCELLED, log_access
from tooli.similar_names import closest_match
from tooli.stages.auth import environment_scopes
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from tooli.core.output_limits import OutputLimit
    from tooli.core.peer import Question
    from tooli.core.protocols import App, JsonObject
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.mcp.tool_listing import ToolListing
    from tooli.pipeline.prepared_call import PreparedCall
    from tooli.pipeline.present import Presented
    from tooli.serving.server_request import ServerRequest

    T = TypeVar("T")

PAGE_SIZE = 500
"""Maximum number of entries in one page of a list."""

LIST_TTL_MS = 60_000
"""Milliseconds that a client of a stateless version may cache a list."""


class McpService:
    """An app's tools and server information in the format of MCP."""

    def __init__(
        self,
        app: App,
        *,
        deferred: bool = False,
        code_mode: bool = False,
        exposes_errors: bool = False,
    ) -> None:
        self.dispatcher = ToolDispatcher(app)
        self.app = app
        self.all_view = CallerView(self.dispatcher, None)  # for callers who see everything
        self.exposes_errors = exposes_errors  # True: clients get the texts of exceptions
        self.stdio_session_data: dict[str, Any] | None = None  # `ctx.state` of the client of stdio
        self.listing: ToolListing | None = None  # None: all tools are listed
        if code_mode:
            from tooli.mcp.code_mode import CodeMode

            self.listing = CodeMode(self.dispatcher)
        elif deferred:
            from tooli.mcp.deferred_tools import DeferredTools

            self.listing = DeferredTools(self.dispatcher)

    # -------------------------------------------------------------- server information

    def info(self) -> JsonObject:
        """Return the server's name, version and description."""
        state = self.app._state
        info = {"name": self.dispatcher.name, "version": self.dispatcher.version}
        if state.description:
            info["description"] = state.description
        return {**info, **{key: state.mcp[key] for key in ("title", "icons") if key in state.mcp}}

    def instructions(self) -> str | None:
        """Return the instructions for the client's model."""
        description = self.app._state.description
        if self.listing is None:
            return description
        hint = self.listing.instructions
        return f"{description}\n\n{hint}" if description else hint

    def capabilities(
        self, *, stateless: bool, has_sdk: bool = True, can_notify: bool = True
    ) -> JsonObject:
        """Return the server's capabilities. Logging, completions and updates need the SDK."""
        if not has_sdk:
            return {
                "prompts": {"listChanged": True},
                "resources": {"subscribe": False, "listChanged": True},
                "tools": {"listChanged": True},
            }
        logging: JsonObject = {} if stateless else {"logging": {}}
        return {
            "completions": {},
            **logging,
            "prompts": {"listChanged": can_notify},
            "resources": {"subscribe": can_notify, "listChanged": can_notify},
            "tools": {"listChanged": can_notify},
        }

    def initialize(self, version: str, *, has_sdk: bool = True) -> JsonObject:
        """Return the answer to `initialize`."""
        agreed_version = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        result = {
            "capabilities": self.capabilities(stateless=False, has_sdk=has_sdk),
            "protocolVersion": agreed_version,
            "serverInfo": self.info(),
        }
        instructions = self.instructions()
        return {**result, "instructions": instructions} if instructions else result

    def discover(self, *, has_sdk: bool = True) -> JsonObject:
        """Return the answer to `server/discover`."""
        result: JsonObject = {
            "supportedVersions": list(STATELESS_VERSIONS),
            "capabilities": self.capabilities(stateless=True, has_sdk=has_sdk),
        }
        instructions = self.instructions()
        if instructions:
            result["instructions"] = instructions
        return self.add_cache_hints(result)

    def add_cache_hints(self, result: JsonObject) -> JsonObject:
        """Return a result with the cache hints that clients of stateless versions expect."""
        return self.complete_result({**result, "ttlMs": LIST_TTL_MS, "cacheScope": "private"})

    def complete_result(self, result: JsonObject) -> JsonObject:
        """Return a result with the fields that stateless versions require.

        `resultType` is "complete" unless the result contains it.
        """
        meta = {**result.get("_meta", {}), SERVER_INFO_KEY: self.info()}
        return {"resultType": "complete", **result, "_meta": meta}

    # -------------------------------------------------------------- tools

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Every tool that can be called, by its MCP name."""
        return (self.listing or self.dispatcher).tools

    def tool_name(self, command: str) -> str | None:
        """Return the MCP name of a command, or None if it is not a tool."""
        return next((name for name, tool in self.tools.items() if tool.key == command), None)

    def environment_view(self) -> CallerView:
        """Return what the client over stdio sees: its token is in the environment."""
        view = self.dispatcher.view(None)
        if view.is_complete:
            return view
        return self.dispatcher.view(environment_scopes(self.app._state.security_settings))

    def list_tools(
        self,
        cursor: str | None,
        *,
        stateless: bool,
        has_structured_content: bool = True,
        view: CallerView | None = None,
    ) -> JsonObject:
        """Return a page of the tools that a caller sees, or of all tools."""
        view = view or self.all_view

        def describe_tools() -> list[JsonObject]:
            listing = self.listing
            tools = self.dispatcher.tools if listing is None else listing.listed_tools
            state = self.app._state
            return [
                describe_mcp_tool(
                    name,
                    with_settings(view.without_hidden(tool), state),
                    stateless=stateless,
                    has_output_schema=has_structured_content,
                    version=state.version,
                    app_meta=state.mcp.get("meta"),
                    hints=None if listing is None else listing.hints_of(tool),
                )
                for name, tool in tools.items()
                if view.shows(tool)
            ]

        listed = view.cached(("listed tools", stateless, has_structured_content), describe_tools)
        return self.page_result("tools", listed, cursor, stateless=stateless)

    def page_result(
        self,
        key: str,
        items: Sequence[T],
        cursor: str | None,
        describe: Callable[[T], JsonObject] | None = None,
        *,
        stateless: bool,
    ) -> JsonObject:
        """Return the result of a list method: one page of items, each as `describe` returns it."""
        first_indexes = {f"p{index}": index for index in range(PAGE_SIZE, len(items), PAGE_SIZE)}
        if cursor is not None and cursor not in first_indexes:
            raise RpcError(INVALID_PARAMS, f"Unknown cursor: {cursor[:80]}")
        first = 0 if cursor is None else first_indexes[cursor]
        page = items[first : first + PAGE_SIZE]
        result: JsonObject = {key: page if describe is None else [describe(item) for item in page]}
        if first + PAGE_SIZE < len(items):
            result["nextCursor"] = f"p{first + PAGE_SIZE}"
        return self.add_cache_hints(result) if stateless else result

    def tool_call_request(self, params: JsonObject, context: RequestContext) -> ToolCallRequest:
        """Return the request of a tool call; raises an RpcError if the tool is unknown."""
        given_name, given_params = params["name"], params
        name, params = self._resolve_call(params)
        tool = self.tools.get(name)
        if name != given_name and not self._knows(tool, context):
            tool, params = self.tools[given_name], given_params  # `run_tool` reports it as unknown
        if tool is None or not self._knows(tool, context):
            raise self._unknown_tool_error(name, context)
        version = _requested_version(params.get("_meta"))
        if version is not None:
            try:
                tool = self.dispatcher.select_version(tool, version)
            except InputError as error:
                raise RpcError(INVALID_PARAMS, error.message, error.details) from None
            if not self._knows(tool, context):
                raise self._unknown_tool_error(name, context)
        request = ToolCallRequest(self, tool, params, context)
        request.needs_all_scopes = self.listing is not None and self.listing.needs_all_scopes(name)
        return request

    def find_called_tool(self, params: JsonObject) -> Tool | None:
        """Return the tool that a call runs, or None if it is unknown."""
        name, _ = self._resolve_call(params)
        return self.tools.get(name)

    def _resolve_call(self, params: JsonObject) -> tuple[str, JsonObject]:
        """Return the name and the parameters of the tool that a call runs."""
        if self.listing is None:
            return params["name"], params
        return self.listing.resolve_call(params["name"], params)

    def view(self, context: RequestContext) -> CallerView:
        """Return what the caller of a request sees."""
        return self.all_view if context.find_view is None else context.find_view()

    def _knows(self, tool: Tool | None, context: RequestContext) -> bool:
        """False if a tool does not exist for the caller, because of its role."""
        return tool is None or not tool.guard.audience or self.view(context).knows(tool)

    def _unknown_tool_error(self, name: str, context: RequestContext) -> RpcError:
        """Return the RpcError for an unknown tool, with the envelope that other surfaces send."""
        caller = context.caller
        view = self.view(context)
        error = unknown_tool_error(self.app, name, view=view)
        presented = present_request_error(self.app, caller, error)
        data = {ENVELOPE_KEY: presented.envelope()}
        call = make_placeholder_call(self.app._state, caller)
        known = self.tools if view.is_complete else view.tools
        is_unknown = error.category == "input"  # otherwise its definition is invalid
        message = unknown_name_message("tool", name, known) if is_unknown else error.message
        message = present_text(message, call)
        return RpcError(INVALID_PARAMS, message, data)


VERSION_KEY = "io.tooli/version"
"""The key in the `_meta` of a call that names the version of the tool."""


def _requested_version(meta: object) -> str | None:
    """Return the version of a tool that a call names, with our key or with that of FastMCP."""
    if not is_object(meta):
        return None
    version = meta.get(VERSION_KEY)
    if version is None and is_object(meta.get("fastmcp")):
        version = meta["fastmcp"].get("version")
    if version is None or isinstance(version, str):
        return version
    raise RpcError(INVALID_PARAMS, f"_meta.{VERSION_KEY} must be a text, such as '1.0'")


def caller_from_client_info(client: object, env: Mapping[str, str] = os.environ) -> Caller:
    """Return the caller: the client's name and version, and the session from the environment.

    If the client sends no name, the name and version also come from the environment.
    """
    session = env.get("TOOLI_SESSION_ID") or None
    if is_object(client) and isinstance(client.get("name"), str):
        name, version = client["name"], client.get("version")
        name = cut_text(name, MAX_QUOTED_CHARS)
        version = cut_text(version, MAX_QUOTED_CHARS) if isinstance(version, str) else None
        return Caller("mcp", name, version, session, maybe_agent=True)
    name, version = env.get("TOOLI_CALLER"), env.get("TOOLI_CALLER_VERSION")
    return Caller("mcp", name or None, version or None, session, maybe_agent=True)


def unknown_name_message(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown name, with the closest name."""
    suggestion = closest_match(name, known)
    name = cut_text(name, MAX_QUOTED_CHARS)
    return f"Unknown {kind}: {name}" + (f"; did you mean {suggestion}?" if suggestion else "")


# ------------------------------------------------------------------ requests


class RequestContext(Record):
    """The client of a request: the caller, the connection, and the kind of protocol version."""

    caller: Caller
    peer: Peer | None
    stateless: bool
    has_structured_content: bool = True  # False: in its protocol version, results are text only
    max_message_bytes: int = MAX_STDIO_MESSAGE_BYTES
    accepts_encoded: bool = False  # True: the transport sends EncodedJson as it is
    find_view: Callable[[], CallerView] | None = None  # what the caller sees; None: everything
    request: ServerRequest | None = None


class McpRequest:
    """A request that runs a function as a call, and asks a human if needed."""

    needs_all_scopes = False  # True: it acts for the caller on other tools

    def __init__(
        self,
        service: McpService,
        tool: Tool,
        params: JsonObject,
        context: RequestContext,
    ) -> None:
        self._service = service
        self._tool = tool
        self._caller = context.caller
        self._peer = context.peer
        self._context = context
        self._stateless = context.stateless
        meta: JsonObject = params.get("_meta") or {}
        self._arguments, self._options, self._problems = split_options(
            tool, params.get("arguments") or {}, meta.get(OPTIONS_KEY)
        )
        self._request_state: RequestState | None = None
        if context.stateless and ("requestState" in params or self.can_ask):
            self._request_state = RequestState(tool, params, context.caller)
            self._peer = StatelessPeer(
                self._request_state, meta.get(CAPABILITIES_KEY), context.peer
            )

    @property
    def can_ask(self) -> bool:
        """True if the call may send messages to its client, or ask it something."""
        tool = self._tool
        injected = any([param.kind == "injected" for param in tool.params])
        may_need_human = tool.guard.needs_human or tool.behavior.destructive
        return injected or may_need_human or tool.route is not None or may_ask(tool.fn)

    def grant(self, scopes: Iterable[str] | None) -> None:
        """Give the caller the scopes of its token; None means all scopes that the tool requires."""
        guard = self._tool.guard
        if scopes is None and self.needs_all_scopes:
            scopes = self._service.dispatcher.find_scopes()
        held_scopes = (*(guard.scopes or ()), *guard.audience) if scopes is None else scopes
        self._caller = self._caller.replace(scopes=frozenset(held_scopes))

    @property
    def is_async(self) -> bool:
        """True if the function, or a dependency of it, runs on an event loop."""
        return self._tool.needs_loop or is_async(self._tool.fn)

    def _prepare(self, approved_parts: Mapping[str, str] | None = None) -> PreparedCall:
        return self._service.dispatcher.prepare(
            self._tool,
            self._arguments,
            self._caller,
            options=self._options,
            problems=self._problems,
            approved_parts=approved_parts,
            peer=self._peer,
            request=self._context.request,
        )

    def run(self) -> JsonObject:
        """Run the call in this thread and return its result."""
        try:
            return self._run()
        finally:
            self._log_end()

    async def arun(self) -> JsonObject:
        """Run the call on this event loop and return its result."""
        try:
            return await self._arun()
        finally:
            self._log_end()

    def _log_end(self) -> None:
        """Write the call to the access log."""
        request = self._context.request
        if request is not None:
            request.code = request.code or CANCELLED
            log_access(request)

    def _run(self) -> JsonObject:
        try:
            presented = self._prepare().run()
            questions = self._approval_questions(presented)
            if questions is not None:
                assert self._peer is not None
                answers = self._peer.ask_approval(questions)
                declined = self._declined(presented, answers)
                presented = declined or self._prepare(_shown_parts(presented)).run()
        except InputRequired as pause:
            return self._input_required_result(pause)
        return self.result(presented)

    async def _arun(self) -> JsonObject:
        try:
            presented = await self._prepare().arun()
            questions = self._approval_questions(presented)
            if questions is not None:
                assert self._peer is not None
                answers = await self._peer.ask_approval_async(questions)
                declined = self._declined(presented, answers)
                presented = declined or await self._prepare(_shown_parts(presented)).arun()
        except InputRequired as pause:
            return self._input_required_result(pause)
        return self.result(presented)

    def _approval_questions(self, presented: Presented) -> Mapping[str, Question] | None:
        """Return the approval question for a refused call, or None if there is nothing to ask."""
        can_ask = self._peer is not None and presented.is_refused
        error = presented.error if can_ask else None
        if error is None or error.approval_text is None:
            return None
        return approval_question(error)

    def _declined(self, presented: Presented, answers: Mapping[str, Any]) -> Presented | None:
        """Return the failure of a call that the human declined; None if the human approved it."""
        from tooli.pipeline.terminal_prompts import declined_error

        if is_approved(answers):
            return None
        assert presented.error is not None
        return presented.with_error(declined_error(presented.error))

    def _input_required_result(self, pause: InputRequired) -> JsonObject:
        assert self._request_state is not None
        if self._context.request is not None:
            self._context.request.code = "input_required"
        return self._service.complete_result(self._request_state.input_required(pause))

    # -------------------------------------------------------------- the result

    def error_result(self, error: ToolError) -> JsonObject:
        """Return the result of a call that fails before it runs."""
        presented = self._prepare().fail(error)
        self._log_end()
        return self.result(presented)

    def result(self, presented: Presented) -> JsonObject:
        """Return the result of the request.

        Raises an RpcError for a failure that the protocol reports as a JSON-RPC error.
        """
        error = presented.error
        if error is not None and self._stateless and error.code == "E2102":
            raise missing_capability_error(error)
        result = self._build_result(presented)
        return self._service.complete_result(result) if self._stateless else result

    def _build_result(self, presented: Presented) -> JsonObject:
        """Return the fields of the result that all protocol versions have."""
        raise NotImplementedError


class ToolCallRequest(McpRequest):
    """One `tools/call`."""

    def _prepare(self, approved_parts: Mapping[str, str] | None = None) -> PreparedCall:
        max_bytes, output_limit = self._context.max_message_bytes, self._output_limit
        self._options = limit_options(self._options, self._tool, max_bytes, output_limit)
        return super()._prepare(approved_parts)

    def _build_result(self, presented: Presented) -> JsonObject:
        is_limited = self._options.result_options is not None  # during the call, by the stages
        output_limit = None if is_limited else self._output_limit
        max_bytes = self._context.max_message_bytes
        return limit_message(presented, self._result_format, max_bytes, output_limit)

    @property
    def _output_limit(self) -> OutputLimit | None:
        """How much of a result the client passes on to its model."""
        client = self._context.caller.name
        if client != "claude-code":
            return find_server_limit(client)
        state = self._service.app._state
        tool = with_settings(self._tool, state)
        return find_server_limit(client, max_result_chars(tool, state.mcp.get("meta")))

    @property
    def _result_format(self) -> ResultFormat:
        context = self._context
        return ResultFormat(
            self._tool,
            context.stateless,
            context.has_structured_content,
            self._service.tool_name,
            context.accepts_encoded,
        )


def _shown_parts(presented: Presented) -> Mapping[str, str]:
    """Return the digests of what the human was shown in the question about a refused call."""
    assert presented.error is not None
    return presented.error.approval_parts or {}
