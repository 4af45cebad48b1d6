"""McpService: an app's tools in the format of MCP. The stdio server and the SDK both use it.

tools/list ─▶ list_tools ─▶ {"tools": […]}
tools/call ─▶ request ─▶ ToolCallRequest.run │ arun ─▶ {"content": […], "structuredContent": …}
"""

from __future__ import annotations

import os

from tooli.core.call import Caller
from tooli.core.peer import InputRequired, Peer
from tooli.describe.mcp_tools import describe_mcp_tool
from tooli.errors import InternalError
from tooli.mcp.protocol import (
    CAPABILITIES_KEY,
    ENVELOPE_KEY,
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    META_KEY,
    MODERN_VERSIONS,
    OPTIONS_KEY,
    SERVER_INFO_KEY,
    RpcError,
)
from tooli.mcp.result_content import (
    build_structured_result,
    content_blocks,
    continuation_blocks,
    to_portable_json,
)
from tooli.pipeline.drivers import is_async
from tooli.pipeline.present import present_text
from tooli.serving.dispatcher import (
    ToolDispatcher,
    make_toolless_call,
    present_error,
    split_options,
    unknown_tool_error,
)
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.core.peer import Question
    from tooli.core.protocols import App
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.mcp.deferred_tools import DeferredTools
    from tooli.mcp.input_requests import RequestState
    from tooli.pipeline.prepared_call import PreparedCall
    from tooli.pipeline.present import Presented

PAGE_SIZE = 500
"""Entries in one page of a list."""

LIST_TTL_MS = 60_000
"""Milliseconds that a client of a stateless version may cache a list."""


class McpService:
    """An app's tools and server information in the format of MCP."""

    def __init__(self, app: App, *, deferred: bool = False) -> None:
        self.dispatcher = ToolDispatcher(app)
        self.app = app
        self.deferred = deferred
        self._revision = -1
        self._listed_tools: dict[bool, list[dict[str, Any]]] = {}
        self._deferred_tools: DeferredTools | None = None

    # -------------------------------------------------------------- server information

    def info(self) -> dict[str, Any]:
        """Return the server's name, version and description."""
        state = self.app._state
        info = {"name": self.dispatcher.name, "version": self.dispatcher.version}
        if state.description:
            info["description"] = state.description
        return info

    def instructions(self) -> str | None:
        """Return the instructions for the client's model."""
        description = self.app._state.description
        if not self.deferred:
            return description
        hint = "Find tools with search_tools, then call them with run_tool."
        return f"{description}\n\n{hint}" if description else hint

    def capabilities(self, *, modern: bool, has_sdk: bool = True) -> dict[str, Any]:
        """Return the server's capabilities. Without the SDK there are only tools."""
        if not has_sdk:
            return {"tools": {"listChanged": False}}
        can: dict[str, Any] = {"completions": {}} if modern else {"completions": {}, "logging": {}}
        return {
            **can,
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "tools": {"listChanged": True},
        }

    def initialize(self, version: str, *, has_sdk: bool = True) -> dict[str, Any]:
        """Return the answer to `initialize`."""
        agreed_version = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        result = {
            "capabilities": self.capabilities(modern=False, has_sdk=has_sdk),
            "protocolVersion": agreed_version,
            "serverInfo": self.info(),
        }
        instructions = self.instructions()
        return {**result, "instructions": instructions} if instructions else result

    def discover(self, *, has_sdk: bool = True) -> dict[str, Any]:
        """Return the answer to `server/discover`."""
        result: dict[str, Any] = {
            "supportedVersions": list(MODERN_VERSIONS),
            "capabilities": self.capabilities(modern=True, has_sdk=has_sdk),
        }
        instructions = self.instructions()
        if instructions:
            result["instructions"] = instructions
        return self.add_cache_hints(result)

    def add_cache_hints(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result of a stateless version, with the time that a client may cache it."""
        return self.complete({**result, "ttlMs": LIST_TTL_MS, "cacheScope": "private"})

    def complete(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result with the fields that stateless versions require in a complete result."""
        meta = {**result.get("_meta", {}), SERVER_INFO_KEY: self.info()}
        return {"resultType": "complete", **result, "_meta": meta}

    # -------------------------------------------------------------- tools

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Every tool that can be called, by its MCP name."""
        return self._get_deferred_tools().tools if self.deferred else self.dispatcher.tools

    def _get_deferred_tools(self) -> DeferredTools:
        if self._deferred_tools is None:
            from tooli.mcp.deferred_tools import DeferredTools

            self._deferred_tools = DeferredTools(self.dispatcher)
        return self._deferred_tools

    def list_tools(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """Return a page of tools."""
        if self._revision != self.dispatcher.revision:
            self._listed_tools = {}
            self._revision = self.dispatcher.revision
        listed = self._listed_tools.get(modern)
        if listed is None:
            tools = self._get_deferred_tools().shown if self.deferred else self.dispatcher.tools
            version = self.app._state.version
            listed = [
                describe_mcp_tool(name, tool, modern=modern, version=version)
                for name, tool in tools.items()
            ]
            self._listed_tools[modern] = listed
        first = parse_cursor(cursor, len(listed))
        result: dict[str, Any] = {"tools": listed[first : first + PAGE_SIZE]}
        if first + PAGE_SIZE < len(listed):
            result["nextCursor"] = make_cursor(first + PAGE_SIZE)
        return self.add_cache_hints(result) if modern else result

    def request(
        self, params: Mapping[str, Any], caller: Caller, peer: Peer | None, *, modern: bool
    ) -> ToolCallRequest:
        """Return the request of a tool call; raises an RpcError if the tool is unknown."""
        name = params["name"]
        if self.deferred:
            name, params = self._get_deferred_tools().resolve_call(name, params)
        tool = self.tools.get(name)
        if tool is None:
            raise self._unknown_tool_error(name, caller)
        return ToolCallRequest(self, tool, params, caller, peer, modern)

    def _unknown_tool_error(self, name: str, caller: Caller) -> RpcError:
        """Return the RpcError for an unknown tool, with the envelope that other surfaces send."""
        error = unknown_tool_error(self.app, name)
        presented = present_error(self.app, caller, error)
        data = {ENVELOPE_KEY: presented.envelope()}
        call = make_toolless_call(self.app, caller)
        is_unknown = error.category == "input"  # otherwise its definition is invalid
        message = unknown_name_message("tool", name, self.tools) if is_unknown else error.message
        message = present_text(message, call)
        return RpcError(INVALID_PARAMS, message, data)


def caller_from_client_info(client: object, env: Mapping[str, str] = os.environ) -> Caller:
    """Return the caller: the client's name, or the one in the environment, and the session."""
    session = env.get("TOOLI_SESSION_ID") or None
    if is_object(client) and isinstance(client.get("name"), str):
        version = client.get("version")
        version = version if isinstance(version, str) else None
        return Caller("mcp", client["name"], version, session, maybe_agent=True)
    name, version = env.get("TOOLI_CALLER"), env.get("TOOLI_CALLER_VERSION")
    return Caller("mcp", name or None, version or None, session, maybe_agent=True)


def unknown_name_message(kind: str, name: str, known: Mapping[str, Any]) -> str:
    """Return the message for an unknown name, with the closest name."""
    from tooli.errors import closest_match

    suggestion = closest_match(name, known)
    return f"Unknown {kind}: {name}" + (f"; did you mean {suggestion}?" if suggestion else "")


def parse_cursor(cursor: str | None, count: int) -> int:
    """Return the first index of a page; raises an RpcError for an unknown cursor."""
    if cursor is None:
        return 0
    first = (
        int(cursor[1:])
        if cursor[:1] == "p" and cursor[1:].isascii() and cursor[1:].isdigit()
        else 0
    )
    if not 0 < first < count or make_cursor(first) != cursor:
        raise RpcError(INVALID_PARAMS, f"Unknown cursor: {cursor[:80]}")
    return first


def make_cursor(first: int) -> str:
    """Return the cursor of the page that starts at an index."""
    return f"p{first}"


# ------------------------------------------------------------------ one call


class ToolCallRequest:
    """One `tools/call`: runs the tool, asks a human if needed, and returns the result."""

    def __init__(
        self,
        service: McpService,
        tool: Tool,
        params: Mapping[str, Any],
        caller: Caller,
        peer: Peer | None,
        modern: bool,
    ) -> None:
        self._service = service
        self._tool = tool
        self._caller = caller
        self._modern = modern
        meta: Any = params.get("_meta") or {}
        self._arguments, self._options, self._problems = split_options(
            tool, params.get("arguments") or {}, meta.get(OPTIONS_KEY)
        )
        self._peer = peer
        self._request_state: RequestState | None = None
        if modern and ("requestState" in params or self._can_ask):
            from tooli.mcp.input_requests import RequestState, StatelessPeer

            self._request_state = RequestState(tool, params, caller.name)
            self._peer = StatelessPeer(
                self._request_state, params["_meta"].get(CAPABILITIES_KEY), peer
            )

    @property
    def _can_ask(self) -> bool:
        tool = self._tool
        injected = any([param.kind == "injected" for param in tool.params])
        return injected or tool.guard.needs_human or tool.behavior.destructive

    def grant(self, scopes: Iterable[str] | None, principal: str | None = None) -> None:
        """Give the caller the scopes of its token; None means all that the tool requires."""
        held_scopes = self._tool.guard.scopes or () if scopes is None else scopes
        self._caller = self._caller.replace(scopes=frozenset(held_scopes), principal=principal)

    @property
    def is_async(self) -> bool:
        """True if the function runs on an event loop."""
        return is_async(self._tool.fn)

    def error_result(self, error: ToolError) -> dict[str, Any]:
        """Return the result of a call that fails before it runs."""
        return self.result(self._prepare(False).fail(error))

    def _prepare(self, approved: bool) -> PreparedCall:
        return self._service.dispatcher.prepare(
            self._tool,
            self._arguments,
            self._caller,
            options=self._options,
            problems=self._problems,
            approved=approved,
            peer=self._peer,
        )

    def run(self) -> dict[str, Any]:
        """Run the call in this thread and return its result."""
        try:
            presented = self._prepare(False).run()
            questions = self._approval_questions(presented)
            if questions is not None:
                assert self._peer is not None
                answers = self._peer.ask(questions)
                presented = self._declined(presented, answers) or self._prepare(True).run()
        except InputRequired as pause:
            return self._input_required_result(pause)
        return self.result(presented)

    async def arun(self) -> dict[str, Any]:
        """Run the call on this event loop and return its result."""
        try:
            presented = await self._prepare(False).arun()
            questions = self._approval_questions(presented)
            if questions is not None:
                assert self._peer is not None
                answers = await self._peer.ask_async(questions)
                declined = self._declined(presented, answers)
                presented = declined or await self._prepare(True).arun()
        except InputRequired as pause:
            return self._input_required_result(pause)
        return self.result(presented)

    def _approval_questions(self, presented: Presented) -> Mapping[str, Question] | None:
        """Return the approval question for a refused call, or None if there is nothing to ask."""
        error = presented.error if self._peer is not None else None
        if error is None or error.approval_text is None:
            return None
        from tooli.mcp.input_requests import approval_question

        return approval_question(error)

    def _declined(self, presented: Presented, answers: Mapping[str, Any]) -> Presented | None:
        """Return the failure that the call ends with, or None if the human approved it."""
        from tooli.mcp.input_requests import is_approved
        from tooli.pipeline.terminal_prompts import declined_error

        if is_approved(answers):
            return None
        assert presented.error is not None
        return presented.with_error(declined_error(presented.error))

    def _input_required_result(self, pause: InputRequired) -> dict[str, Any]:
        assert self._request_state is not None
        return self._service.complete(self._request_state.input_required(pause))

    # -------------------------------------------------------------- the result

    def result(self, presented: Presented) -> dict[str, Any]:
        """Return the answer to a call as a CallToolResult."""
        if presented.error is not None and self._modern:
            self.check_capability(presented.error)
        result = self._success_result(presented) if presented.ok else _error_result(presented)
        return self._service.complete(result) if self._modern else result

    def check_capability(self, error: ToolError) -> None:
        """Raise an RpcError if the call failed because the client cannot answer a question."""
        from tooli.mcp.input_requests import missing_capability_error

        refusal = missing_capability_error(error)
        if refusal is not None:
            raise refusal

    def _success_result(self, presented: Presented) -> dict[str, Any]:
        result: dict[str, Any]
        if presented.kind == "content":
            result = {"content": presented.format_with(content_blocks), "isError": False}
        else:
            result = build_structured_result(self._tool, presented, self._modern)
            content = result.get("structuredContent", {})
            if not self._modern and not is_object(content):
                return self._type_mismatch_result(presented)
        meta = presented.meta()
        if "page" in meta or "truncated" in meta:
            result["content"] = [*result["content"], *continuation_blocks(meta)]
        return {**result, "_meta": {META_KEY: meta}}

    def _type_mismatch_result(self, presented: Presented) -> dict[str, Any]:
        """Return the failure of a tool that declares an object and returns something else.

        Clients reject a result that does not match the declared schema.
        """
        error = InternalError(f"{self._tool.name} did not return the object that it declares.")
        return _error_result(presented.with_error(error))


def _error_result(presented: Presented) -> dict[str, Any]:
    """Return the envelope of a failure as text and in `_meta`.

    The envelope is not structured content, because clients reject structured content that does
    not match the schema.
    """
    text, envelope = to_portable_json(presented.envelope_json().decode(), [])
    return {
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {ENVELOPE_KEY: envelope},
    }
