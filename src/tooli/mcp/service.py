"""McpService: an app's tools in the format of MCP. The stdio server and the SDK both use it.

tools/list ─▶ list_tools ─▶ {"tools": […]}
tools/call ─▶ tool_call_request ─▶ ToolCallRequest.run │ arun ─▶ {"content": […], …}
"""

from __future__ import annotations

import os

from tooli.core import Record
from tooli.core.call import Caller
from tooli.core.output_limits import find_output_limit
from tooli.core.peer import InputRequired, Peer
from tooli.core.placeholder_call import make_placeholder_call
from tooli.core.tool import MAX_QUOTED_CHARS, cut_text
from tooli.describe.mcp_tools import describe_mcp_tool, with_settings
from tooli.errors import closest_match
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
from tooli.serving.dispatcher import (
    ToolDispatcher,
    present_request_error,
    split_options,
    unknown_tool_error,
)
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
    from tooli.mcp.deferred_tools import DeferredTools
    from tooli.pipeline.prepared_call import PreparedCall
    from tooli.pipeline.present import Presented

    T = TypeVar("T")

PAGE_SIZE = 500
"""Maximum number of entries in one page of a list."""

LIST_TTL_MS = 60_000
"""Milliseconds that a client of a stateless version may cache a list."""


class McpService:
    """An app's tools and server information in the format of MCP."""

    def __init__(self, app: App, *, deferred: bool = False) -> None:
        self.dispatcher = ToolDispatcher(app)
        self.app = app
        self.deferred = deferred
        self._deferred_tools: DeferredTools | None = None
        if deferred:
            from tooli.mcp.deferred_tools import DeferredTools

            self._deferred_tools = DeferredTools(self.dispatcher)

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
        if not self.deferred:
            return description
        hint = "Find tools with search_tools, then call them with run_tool."
        return f"{description}\n\n{hint}" if description else hint

    def capabilities(self, *, stateless: bool, has_sdk: bool = True) -> JsonObject:
        """Return the server's capabilities. Without the SDK there are only tools."""
        if not has_sdk:
            return {"tools": {"listChanged": False}}
        logging: JsonObject = {} if stateless else {"logging": {}}
        return {
            "completions": {},
            **logging,
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "tools": {"listChanged": True},
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
        return (self._deferred_tools or self.dispatcher).tools

    def tool_name(self, command: str) -> str | None:
        """Return the MCP name of a command, or None if it is not a tool."""
        return next((name for name, tool in self.tools.items() if tool.key == command), None)

    def list_tools(
        self, cursor: str | None, *, stateless: bool, has_structured_content: bool = True
    ) -> JsonObject:
        """Return a page of tools."""

        def describe_tools() -> list[JsonObject]:
            deferred = self._deferred_tools
            tools = self.dispatcher.tools if deferred is None else deferred.listed_tools
            state = self.app._state
            return [
                describe_mcp_tool(
                    name,
                    with_settings(tool, state),
                    stateless=stateless,
                    has_output_schema=has_structured_content,
                    version=state.version,
                    app_meta=state.mcp.get("meta"),
                    effects=None if deferred is None else deferred.effects_of(tool),
                )
                for name, tool in tools.items()
            ]

        listed = self.dispatcher.cached(
            ("listed tools", stateless, has_structured_content), describe_tools
        )
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
        name = params["name"]
        if self._deferred_tools is not None:
            name, params = self._deferred_tools.resolve_call(name, params)
        tool = self.tools.get(name)
        if tool is None:
            raise self._unknown_tool_error(name, context.caller)
        return ToolCallRequest(self, tool, params, context)

    def _unknown_tool_error(self, name: str, caller: Caller) -> RpcError:
        """Return the RpcError for an unknown tool, with the envelope that other surfaces send."""
        error = unknown_tool_error(self.app, name)
        presented = present_request_error(self.app, caller, error)
        data = {ENVELOPE_KEY: presented.envelope()}
        call = make_placeholder_call(self.app._state, caller)
        is_unknown = error.category == "input"  # otherwise its definition is invalid
        message = unknown_name_message("tool", name, self.tools) if is_unknown else error.message
        message = present_text(message, call)
        return RpcError(INVALID_PARAMS, message, data)


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


class McpRequest:
    """A request that runs a function as a call, and asks a human if needed."""

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
        if context.stateless and ("requestState" in params or self._can_ask):
            self._request_state = RequestState(tool, params, context.caller)
            self._peer = StatelessPeer(
                self._request_state, meta.get(CAPABILITIES_KEY), context.peer
            )

    @property
    def _can_ask(self) -> bool:
        tool = self._tool
        injected = any([param.kind == "injected" for param in tool.params])
        return injected or tool.guard.needs_human or tool.behavior.destructive

    def grant(self, scopes: Iterable[str] | None) -> None:
        """Give the caller the scopes of its token; None means all scopes that the tool requires."""
        held_scopes = self._tool.guard.scopes or () if scopes is None else scopes
        self._caller = self._caller.replace(scopes=frozenset(held_scopes))

    @property
    def is_async(self) -> bool:
        """True if the function runs on an event loop."""
        return is_async(self._tool.fn)

    def _prepare(self, approved_parts: Mapping[str, str] | None = None) -> PreparedCall:
        return self._service.dispatcher.prepare(
            self._tool,
            self._arguments,
            self._caller,
            options=self._options,
            problems=self._problems,
            approved_parts=approved_parts,
            peer=self._peer,
        )

    def run(self) -> JsonObject:
        """Run the call in this thread and return its result."""
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

    async def arun(self) -> JsonObject:
        """Run the call on this event loop and return its result."""
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
        return self._service.complete_result(self._request_state.input_required(pause))

    # -------------------------------------------------------------- the result

    def error_result(self, error: ToolError) -> JsonObject:
        """Return the result of a call that fails before it runs."""
        return self.result(self._prepare().fail(error))

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
        return find_output_limit(self._context.caller.name)

    @property
    def _result_format(self) -> ResultFormat:
        context = self._context
        return ResultFormat(
            self._tool,
            context.stateless,
            context.has_structured_content,
            self._service.tool_name,
        )


def _shown_parts(presented: Presented) -> Mapping[str, str]:
    """Return the digests of what the human was shown in the question about a refused call."""
    assert presented.error is not None
    return presented.error.approval_parts or {}
