"""Service: an app's tools as MCP's wire has them. The stdio front and the SDK both ask here.

tools/list ─▶ list_tools ─▶ {"tools": […]}
tools/call ─▶ request ─▶ Request.run │ arun ─▶ {"content": […], "structuredContent": …}
"""

from __future__ import annotations

import os
from time import perf_counter

from tooli.call.cleaning import clean_error, clean_line, cleaned
from tooli.call.envelope import meta_of
from tooli.call.model import Caller, Failed
from tooli.call.peer import Pause, Peer
from tooli.call.pipeline import is_async
from tooli.contract.jsonable import is_object, jsonable
from tooli.errors import InternalError
from tooli.surfaces.mcp.results import blocks, readable, rest, structured
from tooli.surfaces.mcp.words import (
    CAPABILITIES_KEY,
    ENVELOPE_KEY,
    HANDSHAKE,
    INVALID_PARAMS,
    META_KEY,
    MODERN,
    OPTIONS_KEY,
    SERVER_KEY,
    RpcError,
)
from tooli.surfaces.serving import (
    Answer,
    Desk,
    no_such_tool,
    take_options,
    without_tool,
)
from tooli.views.mcp import describe

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.contract.tool import Tool
    from tooli.errors import ToolError
    from tooli.surfaces.mcp.asking import Rounds
    from tooli.surfaces.serving import Served

PAGE = 500
"""How many tools one answer lists: a cursor leads to the rest."""

TTL = 60_000
"""For how many milliseconds a stateless client may keep a list."""


class Service:
    """An app, as MCP clients see it."""

    def __init__(self, app: Any, *, deferred: bool = False) -> None:
        self.desk = Desk(app)
        self.app = app
        self.deferred = deferred
        self._edition = -1
        self._listed: dict[bool, list[dict[str, Any]]] = {}
        self._deferral: Any = None

    # -------------------------------------------------------------- who we are

    def info(self) -> dict[str, Any]:
        """The server's name and version."""
        house = self.app._house
        said = {"name": self.desk.name, "version": self.desk.version}
        if house.description:
            said["description"] = house.description
        return said

    def instructions(self) -> str | None:
        """What a client may tell its model about the app."""
        about = self.app._house.description
        if not self.deferred:
            return about
        how = "Find tools with search_tools, then call them with run_tool."
        return f"{about}\n\n{how}" if about else how

    def capabilities(self, *, modern: bool, whole: bool = True) -> dict[str, Any]:
        """What the server can do; not `whole` is the front alone, where the SDK is missing."""
        if not whole:
            return {"tools": {"listChanged": False}}
        can: dict[str, Any] = {"completions": {}} if modern else {"completions": {}, "logging": {}}
        return {
            **can,
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "tools": {"listChanged": True},
        }

    def initialize(self, version: str, *, whole: bool = True) -> dict[str, Any]:
        """The answer to a handshake."""
        agreed = version if version in HANDSHAKE else HANDSHAKE[-1]
        answer = {
            "capabilities": self.capabilities(modern=False, whole=whole),
            "protocolVersion": agreed,
            "serverInfo": self.info(),
        }
        about = self.instructions()
        return {**answer, "instructions": about} if about else answer

    def discover(self, *, whole: bool = True) -> dict[str, Any]:
        """The answer to `server/discover`."""
        answer: dict[str, Any] = {
            "supportedVersions": list(MODERN),
            "capabilities": self.capabilities(modern=True, whole=whole),
        }
        about = self.instructions()
        if about:
            answer["instructions"] = about
        return self.cacheable(answer)

    def cacheable(self, answer: dict[str, Any]) -> dict[str, Any]:
        """A list or a read of the stateless era, with how long it holds."""
        return self.complete({**answer, "ttlMs": TTL, "cacheScope": "private"})

    def complete(self, answer: dict[str, Any]) -> dict[str, Any]:
        """A result of the stateless era."""
        meta = {**answer.get("_meta", {}), SERVER_KEY: self.info()}
        return {"resultType": "complete", **answer, "_meta": meta}

    # -------------------------------------------------------------- tools

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Every tool that can be called, by its MCP name."""
        return self._deferred().tools if self.deferred else self.desk.tools

    def _deferred(self) -> Any:
        if self._deferral is None:
            from tooli.surfaces.mcp.deferral import Deferral

            self._deferral = Deferral(self.desk)
        return self._deferral

    def list_tools(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """A page of tools."""
        if self._edition != self.desk.edition:
            self._listed = {}
            self._edition = self.desk.edition
        listed = self._listed.get(modern)
        if listed is None:
            shown = self._deferred().shown if self.deferred else self.desk.tools
            version = self.app._house.version
            listed = [
                describe(name, tool, modern=modern, version=version) for name, tool in shown.items()
            ]
            self._listed[modern] = listed
        first = page_start(cursor, len(listed))
        answer: dict[str, Any] = {"tools": listed[first : first + PAGE]}
        if first + PAGE < len(listed):
            answer["nextCursor"] = cursor_at(first + PAGE)
        return self.cacheable(answer) if modern else answer

    def request(
        self, params: Mapping[str, Any], caller: Caller, peer: Peer | None, *, modern: bool
    ) -> Request:
        """A call of a tool; raises an RpcError where there is no such tool."""
        name = params["name"]
        if self.deferred:
            name, params = self._deferred().meant(name, params)
        tool = self.tools.get(name)
        if tool is None:
            raise self._no_tool(name, caller)
        return Request(self, tool, params, caller, peer, modern)

    def _no_tool(self, name: str, caller: Caller) -> RpcError:
        """The protocol's own error, with the envelope that every other door would answer."""
        from json import loads

        call = without_tool(self.app, caller)
        answer = Answer(Failed(no_such_tool(self.app, name)), call, perf_counter())
        data = {ENVELOPE_KEY: loads(answer.document())}
        said = clean_line(unknown("tool", name, self.tools), call)
        return RpcError(INVALID_PARAMS, said, data)


def caller_named(client: Any, env: Mapping[str, str] = os.environ) -> Caller:
    """Who is calling: the client's own name, else what its environment says; and the session."""
    session = env.get("TOOLI_SESSION_ID") or None
    if is_object(client) and isinstance(client.get("name"), str):
        version = client.get("version")
        version = version if isinstance(version, str) else None
        return Caller("mcp", client["name"], version, session, agent=True)
    name, version = env.get("TOOLI_CALLER"), env.get("TOOLI_CALLER_VERSION")
    return Caller("mcp", name or None, version or None, session, agent=True)


def unknown(what: str, name: str, known: Mapping[str, Any]) -> str:
    """That there is no such thing, and what was probably meant."""
    from tooli.errors import nearest

    close = nearest(name, known)
    return f"Unknown {what}: {name}" + (f"; did you mean {close}?" if close else "")


def page_start(cursor: str | None, count: int) -> int:
    """Where a page begins; a cursor that we did not give is refused."""
    if cursor is None:
        return 0
    first = (
        int(cursor[1:])
        if cursor[:1] == "p" and cursor[1:].isascii() and cursor[1:].isdigit()
        else 0
    )
    if not 0 < first < count or cursor_at(first) != cursor:
        raise RpcError(INVALID_PARAMS, f"Unknown cursor: {cursor[:80]}")
    return first


def cursor_at(first: int) -> str:
    """The cursor of a page."""
    return f"p{first}"


# ------------------------------------------------------------------ one call


class Request:
    """One `tools/call`: it runs, asks a human where one is needed, and becomes a result."""

    def __init__(
        self,
        service: Service,
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
        said: Any = params.get("_meta") or {}
        self._arguments, self._options, self._problems = take_options(
            tool, params.get("arguments") or {}, said.get(OPTIONS_KEY)
        )
        self._peer = peer
        self._rounds: Rounds | None = None
        if modern and ("requestState" in params or self._may_ask):
            from tooli.surfaces.mcp.asking import Rounds, StatelessPeer

            self._rounds = Rounds(tool, params, caller.name)
            self._peer = StatelessPeer(self._rounds, params["_meta"].get(CAPABILITIES_KEY), peer)

    @property
    def _may_ask(self) -> bool:
        tool = self._tool
        injected = any([param.kind == "injected" for param in tool.params])
        return injected or tool.guard.human or tool.behavior.destructive

    def grant(self, scopes: Iterable[str] | None, principal: str | None = None) -> None:
        """Let the caller hold the scopes of its token; None is every scope that is asked for."""
        held = self._tool.guard.scopes or () if scopes is None else scopes
        self._caller = self._caller.replace(scopes=frozenset(held), principal=principal)

    @property
    def is_async(self) -> bool:
        """Whether the function wants an event loop."""
        return is_async(self._tool.fn)

    def refuse(self, error: ToolError) -> dict[str, Any]:
        """The result of a call that is not begun."""
        call = self._open(False).call
        return self.result(Answer(Failed(error), call, perf_counter()))

    def _open(self, approved: bool) -> Served:
        return self._service.desk.open(
            self._tool,
            self._arguments,
            self._caller,
            options=self._options,
            problems=self._problems,
            approved=approved,
            peer=self._peer,
        )

    def run(self) -> dict[str, Any]:
        """The result, made in this thread."""
        try:
            answer = self._open(False).run()
            questions = self._approval(answer)
            if questions is not None:
                assert self._peer is not None
                agreed = self._agreed(answer, self._peer.ask(questions))
                answer = agreed or self._open(True).run()
        except Pause as pause:
            return self._paused(pause)
        return self.result(answer)

    async def arun(self) -> dict[str, Any]:
        """The same on an event loop."""
        try:
            answer = await self._open(False).arun()
            questions = self._approval(answer)
            if questions is not None:
                assert self._peer is not None
                agreed = self._agreed(answer, await self._peer.ask_async(questions))
                answer = agreed or await self._open(True).arun()
        except Pause as pause:
            return self._paused(pause)
        return self.result(answer)

    def _approval(self, answer: Answer) -> Any:
        """The question to a human that a refused call leads to, where one can be asked."""
        error = answer.error
        if error is None or self._peer is None or error.shown is None:
            return None
        from tooli.surfaces.mcp.asking import approval_question

        return approval_question(error)

    def _agreed(self, answer: Answer, answers: Mapping[str, Any]) -> Answer | None:
        """None where the human agreed; otherwise the failure that the call ends with."""
        from tooli.call.asking import declined
        from tooli.surfaces.mcp.asking import is_approved

        if is_approved(answers):
            return None
        error = answer.error
        assert error is not None
        answer.outcome = Failed(declined(error))
        return answer

    def _paused(self, pause: Pause) -> dict[str, Any]:
        assert self._rounds is not None
        return self._service.complete(self._rounds.input_required(pause))

    # -------------------------------------------------------------- the result

    def result(self, answer: Answer) -> dict[str, Any]:
        """What became of a call, as a CallToolResult."""
        error = answer.error
        if error is not None and self._modern:
            self.check_capability(clean_error(error, answer.call, []))
        made = self._failure(answer) if error is not None else self._success(answer)
        return self._service.complete(made) if self._modern else made

    def check_capability(self, error: ToolError) -> None:
        """Refuse the request itself where the call had to ask and the client cannot be asked."""
        from tooli.surfaces.mcp.asking import lacking

        refusal = lacking(error)
        if refusal is not None:
            raise refusal

    def _failure(self, answer: Answer) -> dict[str, Any]:
        """The envelope as text and in `_meta`: off-schema structured content breaks clients."""
        text, envelope = readable(answer.document().decode(), [])
        return {
            "content": [{"type": "text", "text": text}],
            "isError": True,
            "_meta": {ENVELOPE_KEY: envelope},
        }

    def _mistyped(self, answer: Answer) -> dict[str, Any]:
        """The failure of a tool that declares an object and returns none: no client takes that."""
        error = InternalError(f"{self._tool.name} did not return the object that it declares.")
        answer.outcome = Failed(error)
        return self._failure(answer)

    def _success(self, answer: Answer) -> dict[str, Any]:
        from tooli.contract.content import is_content

        assert not isinstance(answer.outcome, Failed)
        value, call, tool = answer.outcome.value, answer.call, self._tool
        made: dict[str, Any]
        if is_content(value):
            made = {"content": blocks(value, call), "isError": False}
        else:
            made = structured(tool, value, call, self._modern)
            said = made.get("structuredContent", {})
            if not self._modern and not is_object(said):
                return self._mistyped(answer)
        if call.meta and ("page" in call.meta or "truncated" in call.meta):
            made["content"] = [*made["content"], *rest(call.meta)]
        meta = cleaned(jsonable(meta_of(call, answer.milliseconds()), []), call, [], "")
        return {**made, "_meta": {META_KEY: meta}}
