"""Offers: `resources/read`, `prompts/get` and `completion/complete`, each run like a call.

    URI or arguments, as text ─▶ Call ─▶ Outcome ─▶ {"contents": […]} │ {"messages": […]}

The protocol has no place for a failure in these results: an error of the tree becomes an
error of JSON-RPC that carries it.
"""

from __future__ import annotations

from tooli.annotations import ReadOnly
from tooli.call.cleaning import clean_error, cleaned
from tooli.call.model import Ok
from tooli.call.pipeline import is_async
from tooli.contract.content import Content, Embedded, Message, contents
from tooli.contract.jsonable import is_list, is_object, jsonable
from tooli.contract.reading import read_tool
from tooli.errors import InputError, NotFoundError
from tooli.sources.kinds import BYTES, JSON, TEXT
from tooli.sources.resources import as_arguments
from tooli.surfaces.mcp.service import Request, blocks
from tooli.surfaces.mcp.words import INTERNAL_ERROR, INVALID_PARAMS, NOT_FOUND, RpcError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.call.model import Call, Caller
    from tooli.call.peer import Peer
    from tooli.contract.tool import Tool
    from tooli.errors import ToolError
    from tooli.sources.resources import Prompt, Resource
    from tooli.surfaces.mcp.service import Service
    from tooli.surfaces.serving import Answer

MOST_SUGGESTIONS = 100
"""How many completions one answer may hold."""


def not_found(uri: str, modern: bool) -> RpcError:
    """The refusal of a URI at which nothing stands."""
    code = INVALID_PARAMS if modern else NOT_FOUND
    return RpcError(code, f"Resource not found: {uri}", {"uri": uri})


class Offered(Request):
    """A request for something that is no tool."""

    def _value(self, answer: Answer, missing: RpcError | None = None) -> Any:
        """What the function gave; raises its failure as an error of the protocol."""
        error = answer.error
        if error is not None:
            if self._modern:
                self.check_capability(error)
            raise as_rpc_error(clean_error(error, answer.call, []), missing)
        assert isinstance(answer.outcome, Ok)
        return answer.outcome.value


class Reading(Offered):
    """One `resources/read`."""

    def __init__(
        self,
        service: Service,
        resource: Resource,
        texts: Mapping[str, str],
        params: Mapping[str, Any],
        caller: Caller,
        peer: Peer | None,
        modern: bool,
    ) -> None:
        tool = resource.tool(service.app._house)
        self._uri: str = params["uri"]
        bound = {**params, "arguments": {"resources/read": self._uri}}
        super().__init__(service, tool, bound, caller, peer, modern)
        self._arguments = as_arguments(tool, texts)
        self._resource = resource

    def result(self, answer: Answer) -> dict[str, Any]:
        """The document, or the error that the read ends with."""
        value = self._value(answer, not_found(self._uri, self._modern))
        whole = not is_list(value) or not any([isinstance(part, Embedded) for part in value])
        parts: list[Any] = [value] if whole else list(value)
        call = answer.call
        documents = [self._content(part, call.warnings) for part in parts]
        made = {"contents": cleaned(documents, call, call.warnings)}
        if not self._modern:
            return made
        return {**self._service.cacheable(made), "ttlMs": 0}  # it may be another one next time

    def _content(self, value: Any, warnings: list[str]) -> dict[str, Any]:
        from tooli.call.envelope import encode

        said = self._resource.mime_type
        if isinstance(value, Embedded):
            return contents(value.uri, value.content, value.mime_type or said)
        if isinstance(value, Content) and hasattr(value, "data"):  # a picture, a sound
            shown: Any = value
            return contents(self._uri, shown.data, shown.mime_type)
        if isinstance(value, str):
            return contents(self._uri, value, said or TEXT)
        if isinstance(value, (bytes, bytearray)):
            return contents(self._uri, bytes(value), said or BYTES)
        return contents(self._uri, encode(value, warnings).decode(), said or JSON)


class Asking(Offered):
    """One `prompts/get`."""

    def __init__(
        self,
        service: Service,
        prompt: Prompt,
        params: Mapping[str, Any],
        caller: Caller,
        peer: Peer | None,
        modern: bool,
    ) -> None:
        tool = prompt.tool(service.app._house)
        texts: dict[str, str] = params.get("arguments") or {}
        bound = {**params, "arguments": {"prompts/get": texts}}
        super().__init__(service, tool, bound, caller, peer, modern)
        self._arguments = as_arguments(tool, texts)
        self._prompt = prompt

    def result(self, answer: Answer) -> dict[str, Any]:
        """The messages, or the error that the prompt ends with."""
        value = self._value(answer)
        parts: list[Any] = list(value) if is_list(value) else [value]
        made = {
            "description": self._prompt.description,
            "messages": [_message(part, answer.call) for part in parts],
        }
        return self._service.complete(made) if self._modern else made


class Completing(Offered):
    """One `completion/complete`: behind the same guards as what it completes, and without a human:
    nobody is asked at each letter."""

    def __init__(
        self,
        service: Service,
        offer: Resource | Prompt,
        params: Mapping[str, Any],
        caller: Caller,
        peer: Peer | None,
        modern: bool,
    ) -> None:
        whole = offer.tool(service.app._house)
        argument: dict[str, str] = params["argument"]
        context: dict[str, Any] = params.get("context") or {}
        given: dict[str, str] = context.get("arguments") or {}
        tool = _completion_tool(whole, offer.complete.get(argument["name"]))
        super().__init__(service, tool, {}, caller, peer, modern)
        self._arguments = {"argument": argument["name"], "value": argument["value"], "given": given}

    def result(self, answer: Answer) -> dict[str, Any]:
        """The values, or the error that the completion ends with."""
        found = self._value(answer)
        shown = cleaned(found[:MOST_SUGGESTIONS], answer.call, answer.call.warnings)
        more = len(found) > len(shown)
        made = {"completion": {"values": shown, "total": len(found), "hasMore": more}}
        return self._service.complete(made) if self._modern else made


def _completion_tool(whole: Tool, said: Any) -> Tool:
    """What gives the values of an argument, as a tool of its own; held to what the `whole` is."""
    from tooli.sources.completion import candidates, matching

    def complete(argument: str, value: str, given: dict[str, str]) -> Any:
        found = candidates(whole.param(argument), said, value, given)
        if hasattr(found, "__await__"):
            return later(found, value)
        return matching(found or (), value)

    async def later(found: Any, value: str) -> list[str]:
        return matching(await found or (), value)

    async def on_loop(argument: str, value: str, given: dict[str, str]) -> Any:
        return await complete(argument, value, given)

    tool = read_tool(
        on_loop if is_async(said) else complete,
        app=whole.app,
        path=(*whole.path[:-1], f"{whole.path[-1]}-completion"),
        said={"annotations": ReadOnly},
        version=whole.version,
    )
    guard = whole.guard.replace(approval=False, human_in_the_loop=False, danger=None)
    return tool.replace(guard=guard, limits=whole.limits)


def _message(part: Any, call: Call) -> dict[str, Any]:
    role, content = "user", part
    if isinstance(part, Message):
        role, content = part.role, part.content
    elif is_object(part) and part.keys() == {"role", "content"}:
        role, content = part["role"], part["content"]
        if is_object(content) and "type" in content:
            return cleaned(jsonable(part, call.warnings), call, call.warnings)  # as MCP writes it
    return {"role": role, "content": blocks(content, call)[0]}


def as_rpc_error(error: ToolError, missing: RpcError | None = None) -> RpcError:
    """An error of the tree as an error of the protocol; `missing` is for what is not there."""
    data = {"error": error.to_dict()}
    if missing is not None and isinstance(error, NotFoundError):
        return RpcError(missing.code, error.message, {**missing.data, **data})
    code = INVALID_PARAMS if isinstance(error, InputError) else INTERNAL_ERROR
    return RpcError(code, error.message, data)
