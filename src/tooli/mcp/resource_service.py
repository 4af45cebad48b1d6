"""ResourceService: an app's resources and prompts for MCP, with completions for both.

resources/read ─▶ read_request       ─▶ ReadRequest.run │ arun       ─▶ {"contents": […]}
prompts/get    ─▶ prompt_request     ─▶ PromptRequest.run │ arun     ─▶ {"messages": […]}
completion/…   ─▶ completion_request ─▶ CompletionRequest.run │ arun ─▶ {"completion": {…}}

Each request runs as a call. The results of these methods cannot represent a failure, so a
ToolError becomes a JSON-RPC error that contains it.
"""

from __future__ import annotations

from tooli.annotations import ReadOnly
from tooli.core.result_types import Content, Embedded, Message, resource_contents
from tooli.errors import InputError, NotFoundError
from tooli.mcp.protocol import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError
from tooli.mcp.result_content import content_blocks
from tooli.mcp.service import (
    PAGE_SIZE,
    ToolCallRequest,
    make_cursor,
    parse_cursor,
    unknown_name_message,
)
from tooli.pipeline.drivers import is_async
from tooli.providers.resources import (
    BYTES_MIME,
    JSON_MIME,
    TEXT_MIME,
    Resource,
    UriTemplate,
    collect_prompts,
    completion_candidates,
    filter_matches,
    find_resource,
    iter_resources,
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
    from tooli.core.protocols import ResourceOptions
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.mcp.service import McpService
    from tooli.pipeline.present import Presented
    from tooli.providers.resources import Prompt


class ResourceService:
    """The resources and prompts of an app."""

    def __init__(self, service: McpService) -> None:
        self._service = service
        self._revision = -1
        self._resources: list[Resource] = []
        self._prompts: dict[str, Prompt] = {}

    def _refresh(self) -> None:
        """Read the app's resources and prompts again if it has changed."""
        revision = self._service.dispatcher.revision
        if self._revision != revision:
            app = self._service.app
            self._resources = [*iter_resources(app), self._skill_resource()]
            self._prompts = collect_prompts(app)
            self._revision = revision

    def _skill_resource(self) -> Resource:
        app, dispatcher = self._service.app, self._service.dispatcher

        def skill() -> str:
            from tooli.describe.app_info import collect_app_info
            from tooli.describe.skill import render_skill_md

            return render_skill_md(collect_app_info(app))

        settings: ResourceOptions = {
            "name": "skill",
            "title": f"How to use {dispatcher.name}",
            "description": "Instructions for agents that use this app.",
            "mime_type": "text/markdown",
            "auth": (),
        }
        return Resource(
            app._state, UriTemplate(f"skill://{dispatcher.name}/SKILL.md"), skill, settings
        )

    # -------------------------------------------------------------- lists

    def resources(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """Return a page of the resources with a fixed URI."""
        self._refresh()
        plain = [resource for resource in self._resources if resource.template.is_static]
        return self._list_resources("resources", "uri", plain, cursor, modern)

    def templates(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """Return a page of the resources with a URI template."""
        self._refresh()
        templated = [resource for resource in self._resources if not resource.template.is_static]
        return self._list_resources("resourceTemplates", "uriTemplate", templated, cursor, modern)

    def _list_resources(
        self, key: str, uri_key: str, listed: list[Resource], cursor: str | None, modern: bool
    ) -> dict[str, Any]:
        def describe(resource: Resource) -> dict[str, Any]:
            size = resource.settings.get("size") if resource.template.is_static else None
            fields = {
                uri_key: resource.uri,
                "name": resource.name,
                "title": resource.title,
                "description": resource.description,
                "mimeType": resource.mime_type,
                "size": size,
                "annotations": resource.settings.get("annotations"),
            }
            return {name: value for name, value in fields.items() if value is not None}

        return self._list_page(key, listed, describe, cursor, modern)

    def prompts(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """Return a page of prompts."""
        self._refresh()
        state = self._service.app._state

        def describe(item: tuple[str, Prompt]) -> dict[str, Any]:
            name, prompt = item
            tool = prompt.tool(state)
            docs = tool.doc.params
            arguments = [
                {"name": p.name, "description": p.help or docs.get(p.name), "required": p.required}
                for p in tool.public_params
            ]
            fields: dict[str, Any] = {
                "name": name,
                "title": prompt.title,
                "description": prompt.description,
            }
            if arguments:
                fields["arguments"] = [
                    {key: value for key, value in argument.items() if value is not None}
                    for argument in arguments
                ]
            return fields

        return self._list_page("prompts", list(self._prompts.items()), describe, cursor, modern)

    def _list_page(
        self,
        key: str,
        listed: list[Any],
        describe: Callable[[Any], dict[str, Any]],
        cursor: str | None,
        modern: bool,
    ) -> dict[str, Any]:
        first = parse_cursor(cursor, len(listed))
        shown = [describe(item) for item in listed[first : first + PAGE_SIZE]]
        result: dict[str, Any] = {key: shown}
        if first + PAGE_SIZE < len(listed):
            result["nextCursor"] = make_cursor(first + PAGE_SIZE)
        return self._service.add_cache_hints(result) if modern else result

    # -------------------------------------------------------------- requests

    def read_request(
        self, params: Mapping[str, Any], caller: Caller, peer: Peer | None, *, modern: bool
    ) -> ReadRequest:
        """Return a request that reads a resource; raises an RpcError if it is unknown."""
        self._refresh()
        uri = params["uri"]
        found = find_resource(self._resources, uri)
        if found is None:
            raise resource_not_found_error(uri, modern)
        resource, texts = found
        return ReadRequest(self._service, resource, texts, params, caller, peer, modern)

    def prompt_request(
        self, params: Mapping[str, Any], caller: Caller, peer: Peer | None, *, modern: bool
    ) -> PromptRequest:
        """Return a request for a prompt; raises an RpcError if it is unknown."""
        self._refresh()
        name = params["name"]
        prompt = self._prompts.get(name)
        if prompt is None:
            raise RpcError(INVALID_PARAMS, unknown_name_message("prompt", name, self._prompts))
        return PromptRequest(self._service, prompt, params, caller, peer, modern)

    def has_resource(self, uri: str) -> bool:
        """True if there is a resource at a URI."""
        self._refresh()
        return find_resource(self._resources, uri) is not None

    # -------------------------------------------------------------- completion

    def completion_request(
        self, params: Mapping[str, Any], caller: Caller, peer: Peer | None, *, modern: bool
    ) -> CompletionRequest:
        """Return a request for completions; raises an RpcError if its target is unknown."""
        self._refresh()
        ref = params["ref"]
        target: Resource | Prompt | None
        if ref["type"] == "ref/prompt":
            target = self._prompts.get(ref["name"])
            if target is None:
                raise RpcError(
                    INVALID_PARAMS, unknown_name_message("prompt", ref["name"], self._prompts)
                )
        else:
            target = self._find_completion_resource(ref["uri"])
        return CompletionRequest(self._service, target, params, caller, peer, modern)

    def _find_completion_resource(self, uri: str) -> Resource:
        for resource in self._resources:
            if resource.uri == uri:
                return resource
        found = find_resource(self._resources, uri)
        if found is None:
            raise RpcError(INVALID_PARAMS, f"Unknown resource: {uri}", {"uri": uri})
        return found[0]


# ------------------------------------------------------------------ requests


MAX_COMPLETIONS = 100
"""Completions in one answer."""


def resource_not_found_error(uri: str, modern: bool) -> RpcError:
    """Return the error for an unknown resource."""
    code = INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
    return RpcError(code, f"Resource not found: {uri}", {"uri": uri})


class NonToolRequest(ToolCallRequest):
    """A request that runs a function that is not a tool."""

    def _check_success(self, presented: Presented, missing: RpcError | None = None) -> None:
        """Raise an RpcError if the function failed."""
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
        """Return the contents of the resource; raises an RpcError if the read failed."""
        self._check_success(presented, resource_not_found_error(self._uri, self._modern))
        result = {"contents": presented.format_with(self._documents)}
        if not self._modern:
            return result
        # the next read may return another document
        return {**self._service.add_cache_hints(result), "ttlMs": 0}

    def _documents(self, value: Any, to_json: Callable[[Any], str]) -> list[dict[str, Any]]:
        is_single = not is_list(value) or not any([isinstance(part, Embedded) for part in value])
        parts: list[Any] = [value] if is_single else list(value)
        return [self._resource_contents(part, to_json) for part in parts]

    def _resource_contents(self, value: Any, to_json: Callable[[Any], str]) -> dict[str, Any]:
        mime_type = self._resource.mime_type
        if isinstance(value, Embedded):
            return resource_contents(value.uri, value.content, value.mime_type or mime_type)
        if isinstance(value, Content) and hasattr(value, "data"):  # an image or audio
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
        """Return the messages of the prompt; raises an RpcError if its function failed."""
        self._check_success(presented)
        result = {
            "description": self._prompt.description,
            "messages": presented.format_with(_prompt_messages),
        }
        return self._service.complete(result) if self._modern else result


class CompletionRequest(NonToolRequest):
    """One `completion/complete`. The access rules of its target apply, but no human is asked."""

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
        """Return the completions; raises an RpcError if the completer failed."""
        self._check_success(presented)
        result = {"completion": presented.format_with(_completion)}
        return self._service.complete(result) if self._modern else result


def _make_completion_tool(target_tool: Tool, completer: Any) -> Tool:
    """Return a tool that completes an argument, with the access rules and limits of its target."""

    def complete(argument: str, value: str, given_arguments: dict[str, str]) -> object:
        found = completion_candidates(
            target_tool.param(argument), completer, value, given_arguments
        )
        if hasattr(found, "__await__"):
            return later(found, value)
        return filter_matches(found or (), value)

    async def later(found: Any, value: str) -> list[str]:
        return filter_matches(await found or (), value)

    async def complete_async(
        argument: str, value: str, given_arguments: dict[str, str]
    ) -> list[str]:
        param = target_tool.param(argument)
        return await later(completion_candidates(param, completer, value, given_arguments), value)

    tool = read_tool(
        complete_async if is_async(completer) else complete,
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
            return part  # already an MCP content block
    return {"role": role, "content": content_blocks(content, to_json)[0]}


def to_rpc_error(error: ToolError, missing: RpcError | None = None) -> RpcError:
    """Return the RpcError for a ToolError; `missing` is used for a NotFoundError."""
    data = {"error": error.to_dict()}
    if missing is not None and isinstance(error, NotFoundError):
        return RpcError(missing.code, error.message, {**missing.data, **data})
    code = INVALID_PARAMS if isinstance(error, InputError) else INTERNAL_ERROR
    return RpcError(code, error.message, data)
