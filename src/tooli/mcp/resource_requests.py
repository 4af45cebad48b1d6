"""Offers: `resources/read`, `prompts/get` and `completion/complete`, each run like a call.

    URI or arguments, as text ─▶ Call ─▶ Outcome ─▶ {"contents": […]} │ {"messages": […]}

The protocol has no place for a failure in these results: an error of the tree becomes an
error of JSON-RPC that carries it.
"""

from __future__ import annotations

from tooli.annotations import ReadOnly
from tooli.core.content import Content, Embedded, Message, resource_contents
from tooli.errors import InputError, NotFoundError
from tooli.mcp.protocol import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError
from tooli.mcp.result_content import content_blocks
from tooli.mcp.service import ToolCallRequest
from tooli.pipeline.drivers import is_async
from tooli.providers.resources import (
    BYTES_MIME,
    JSON_MIME,
    TEXT_MIME,
    completion_candidates,
    filter_matches,
    texts_to_arguments,
)
from tooli.schema.tool_reader import read_tool
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tooli.core.call import Caller
    from tooli.core.peer import Peer
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.mcp.service import McpService
    from tooli.pipeline.present import Presented
    from tooli.providers.resources import Prompt, Resource

MAX_COMPLETIONS = 100
"""How many completions one answer may hold."""


def resource_not_found_error(uri: str, modern: bool) -> RpcError:
    """The refusal of a URI at which nothing stands."""
    code = INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
    return RpcError(code, f"Resource not found: {uri}", {"uri": uri})


class NonToolRequest(ToolCallRequest):
    """A request for something that is no tool."""

    def _check_success(self, presented: Presented, missing: RpcError | None = None) -> None:
        """Raise the protocol's error if the function failed."""
        error = presented.error
        if error is not None:
            if self._modern:
                self.check_capability(error)
            raise to_rpc_error(error, missing)


class ReadRequest(NonToolRequest):
    """One `resources/read`."""

    def __init__(
        self,
        service: McpService,
        resource: Resource,
        texts: Mapping[str, str],
        params: Mapping[str, Any],
        caller: Caller,
        peer: Peer | None,
        modern: bool,
    ) -> None:
        tool = resource.tool(service.app._state)
        self._uri: str = params["uri"]
        bound_params = {**params, "arguments": {"resources/read": self._uri}}
        super().__init__(service, tool, bound_params, caller, peer, modern)
        self._arguments = texts_to_arguments(tool, texts)
        self._resource = resource

    def result(self, presented: Presented) -> dict[str, Any]:
        """Return the document; raises the error that the read ends with."""
        self._check_success(presented, resource_not_found_error(self._uri, self._modern))
        result = {"contents": presented.build(self._documents)}
        if not self._modern:
            return result
        return {
            **self._service.add_cache_hints(result),
            "ttlMs": 0,
        }  # it may be another one next time

    def _documents(self, value: Any, to_json: Callable[[Any], str]) -> list[dict[str, Any]]:
        is_single = not is_list(value) or not any([isinstance(part, Embedded) for part in value])
        parts: list[Any] = [value] if is_single else list(value)
        return [self._resource_contents(part, to_json) for part in parts]

    def _resource_contents(self, value: Any, to_json: Callable[[Any], str]) -> dict[str, Any]:
        mime_type = self._resource.mime_type
        if isinstance(value, Embedded):
            return resource_contents(value.uri, value.content, value.mime_type or mime_type)
        if isinstance(value, Content) and hasattr(value, "data"):  # a picture, a sound
            media: Any = value
            return resource_contents(self._uri, media.data, media.mime_type)
        if isinstance(value, str):
            return resource_contents(self._uri, value, mime_type or TEXT_MIME)
        if isinstance(value, (bytes, bytearray)):
            return resource_contents(self._uri, bytes(value), mime_type or BYTES_MIME)
        return resource_contents(self._uri, to_json(value), mime_type or JSON_MIME)


class PromptRequest(NonToolRequest):
    """One `prompts/get`."""

    def __init__(
        self,
        service: McpService,
        prompt: Prompt,
        params: Mapping[str, Any],
        caller: Caller,
        peer: Peer | None,
        modern: bool,
    ) -> None:
        tool = prompt.tool(service.app._state)
        texts: dict[str, str] = params.get("arguments") or {}
        bound_params = {**params, "arguments": {"prompts/get": texts}}
        super().__init__(service, tool, bound_params, caller, peer, modern)
        self._arguments = texts_to_arguments(tool, texts)
        self._prompt = prompt

    def result(self, presented: Presented) -> dict[str, Any]:
        """Return the messages; raises the error that the prompt ends with."""
        self._check_success(presented)
        result = {
            "description": self._prompt.description,
            "messages": presented.build(_prompt_messages),
        }
        return self._service.complete(result) if self._modern else result


class CompletionRequest(NonToolRequest):
    """One `completion/complete`: behind the same guards as what it completes, and without a human:
    nobody is asked at each letter."""

    def __init__(
        self,
        service: McpService,
        target: Resource | Prompt,
        params: Mapping[str, Any],
        caller: Caller,
        peer: Peer | None,
        modern: bool,
    ) -> None:
        target_tool = target.tool(service.app._state)
        argument: dict[str, str] = params["argument"]
        context: dict[str, Any] = params.get("context") or {}
        given_arguments: dict[str, str] = context.get("arguments") or {}
        tool = _make_completion_tool(target_tool, target.complete.get(argument["name"]))
        super().__init__(service, tool, {}, caller, peer, modern)
        self._arguments = {
            "argument": argument["name"],
            "value": argument["value"],
            "given_arguments": given_arguments,
        }

    def result(self, presented: Presented) -> dict[str, Any]:
        """Return the values; raises the error that the completion ends with."""
        self._check_success(presented)
        result = {"completion": presented.build(_completion)}
        return self._service.complete(result) if self._modern else result


def _make_completion_tool(target_tool: Tool, completer: Any) -> Tool:
    """What gives the values of an argument, as a tool of its own; held to what the `whole` is."""

    def complete(argument: str, value: str, given_arguments: dict[str, str]) -> object:
        found = completion_candidates(
            target_tool.param(argument), completer, value, given_arguments
        )
        if hasattr(found, "__await__"):
            return later(found, value)
        return filter_matches(found or (), value)

    async def later(found: Any, value: str) -> list[str]:
        return filter_matches(await found or (), value)

    async def on_loop(argument: str, value: str, given_arguments: dict[str, str]) -> object:
        return await complete(argument, value, given_arguments)

    tool = read_tool(
        on_loop if is_async(completer) else complete,
        app=target_tool.app,
        path=(*target_tool.path[:-1], f"{target_tool.path[-1]}-completion"),
        kwargs={"annotations": ReadOnly},
        version=target_tool.version,
    )
    guard = target_tool.guard.replace(approval=False, human_in_the_loop=False, danger=None)
    return tool.replace(guard=guard, limits=target_tool.limits)


def _completion(found: list[str], to_json: Callable[[Any], str]) -> dict[str, Any]:
    values = found[:MAX_COMPLETIONS]
    return {"values": values, "total": len(found), "hasMore": len(found) > len(values)}


def _prompt_messages(value: Any, to_json: Callable[[Any], str]) -> list[dict[str, Any]]:
    parts: list[Any] = list(value) if is_list(value) else [value]
    return [_prompt_message(part, to_json) for part in parts]


def _prompt_message(part: Any, to_json: Callable[[Any], str]) -> dict[str, Any]:
    role, content = "user", part
    if isinstance(part, Message):
        role, content = part.role, part.content
    elif is_object(part) and part.keys() == {"role", "content"}:
        role, content = part["role"], part["content"]
        if is_object(content) and "type" in content:
            return part  # a content block as MCP writes it
    return {"role": role, "content": content_blocks(content, to_json)[0]}


def to_rpc_error(error: ToolError, missing: RpcError | None = None) -> RpcError:
    """An error of the tree as an error of the protocol; `missing` is for what is not there."""
    data = {"error": error.to_dict()}
    if missing is not None and isinstance(error, NotFoundError):
        return RpcError(missing.code, error.message, {**missing.data, **data})
    code = INVALID_PARAMS if isinstance(error, InputError) else INTERNAL_ERROR
    return RpcError(code, error.message, data)
