"""ResourceService: an app's resources and prompts for MCP, with completions for both.

resources/read ─▶ read_request       ─▶ ReadRequest.run │ arun       ─▶ {"contents": […]}
prompts/get    ─▶ prompt_request     ─▶ PromptRequest.run │ arun     ─▶ {"messages": […]}
completion/…   ─▶ completion_request ─▶ CompletionRequest.run │ arun ─▶ {"completion": {…}}

Each request runs as a call. The results of these methods cannot represent a failure, so a
ToolError becomes a JSON-RPC error that contains it.
"""

from __future__ import annotations

from tooli.annotations import ReadOnly
from tooli.core.result_types import Audio, Embedded, Image, resource_contents
from tooli.core.tool import cut_text
from tooli.describe.agent_documents import render_skill_md
from tooli.describe.mcp_resources import describe_prompt, describe_resource
from tooli.describe.sections import collect_app_info
from tooli.errors import InputError, NotFoundError
from tooli.mcp.protocol import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError
from tooli.mcp.service import McpRequest, unknown_name_message
from tooli.pipeline.context import Context  # noqa: TC001  the annotation is evaluated
from tooli.pipeline.drivers import is_async
from tooli.providers.completions import completion_candidates, filter_matches
from tooli.providers.resources import (
    BYTES_MIME,
    JSON_MIME,
    TEXT_MIME,
    Resource,
    UriTemplate,
    collect_prompts,
    find_resource,
    iter_resources,
    texts_to_arguments,
)
from tooli.schema.tool_reader import read_tool
from tooli.serving.prompt_messages import prompt_messages
from tooli.serving.served_functions import list_prompts, list_resources
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from tooli.core.protocols import JsonObject, ResourceOptions
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.mcp.service import McpService, RequestContext
    from tooli.pipeline.present import Presented
    from tooli.providers.resources import Prompt, ServedFunction
    from tooli.serving.caller_view import CallerView

    Completer: TypeAlias = Sequence[Any] | Callable[..., Any] | None


class ResourceService:
    """The resources and prompts of an app."""

    def __init__(self, service: McpService) -> None:
        self._service = service

    @property
    def _resources(self) -> list[Resource]:
        app, cached = self._service.app, self._service.dispatcher.cached
        return cached("resources", lambda: [*iter_resources(app), self._skill_resource()])

    @property
    def _prompts(self) -> dict[str, Prompt]:
        app = self._service.app
        return self._service.dispatcher.cached("prompts", lambda: collect_prompts(app))

    def _skill_resource(self) -> Resource:
        app, dispatcher = self._service.app, self._service.dispatcher

        def skill(ctx: Context) -> str:
            info, view = collect_app_info(app), dispatcher.view(ctx.caller.scopes)
            tools = tuple([view.without_hidden(t) for t in info.tools if view.shows(t)])
            resources = tuple(list_resources(app, view.shows))
            prompts = tuple(list_prompts(app, view.shows))
            return render_skill_md(info.replace(tools=tools, resources=resources, prompts=prompts))

        kwargs: ResourceOptions = {
            "name": "skill",
            "title": f"How to use {dispatcher.name}",
            "description": "Instructions for agents that use this app.",
            "mime_type": "text/markdown",
            "auth": (),
        }
        return Resource(
            app._state, UriTemplate(f"skill://{dispatcher.name}/SKILL.md"), skill, kwargs
        )

    # -------------------------------------------------------------- lists

    def list_resources(
        self, cursor: str | None, *, stateless: bool, view: CallerView | None = None
    ) -> JsonObject:
        """Return a page of the resources with a fixed URI."""
        shown = self._shown(self._resources, view)
        fixed = [resource for resource in shown if resource.template.is_static]
        return self._service.page_result(
            "resources", fixed, cursor, describe_resource, stateless=stateless
        )

    def list_resource_templates(
        self, cursor: str | None, *, stateless: bool, view: CallerView | None = None
    ) -> JsonObject:
        """Return a page of the resources with a URI template."""
        shown = self._shown(self._resources, view)
        templated = [resource for resource in shown if not resource.template.is_static]
        return self._service.page_result(
            "resourceTemplates", templated, cursor, describe_resource, stateless=stateless
        )

    def list_prompts(
        self, cursor: str | None, *, stateless: bool, view: CallerView | None = None
    ) -> JsonObject:
        """Return a page of prompts."""
        state = self._service.app._state

        def describe(item: tuple[str, Prompt]) -> JsonObject:
            name, prompt = item
            return describe_prompt(name, prompt, prompt.tool(state))

        prompts = [
            (name, prompt)
            for name, prompt in self._prompts.items()
            if view is None or view.shows(prompt.tool(state))
        ]
        return self._service.page_result("prompts", prompts, cursor, describe, stateless=stateless)

    def _shown(self, resources: list[Resource], view: CallerView | None) -> list[Resource]:
        """Return the resources that a caller sees."""
        if view is None or view.is_complete:
            return resources
        state = self._service.app._state
        return [resource for resource in resources if view.shows(resource.tool(state))]

    # -------------------------------------------------------------- requests

    def read_request(self, params: JsonObject, context: RequestContext) -> ReadRequest:
        """Return a request that reads a resource; raises an RpcError if it is unknown."""
        found = self._find_resource(params["uri"])
        if found is None or not self._knows(found[0], context):
            raise resource_not_found_error(params["uri"], context.stateless)
        request = ReadRequest(self._service, *found, params, context)
        request.needs_all_scopes = found[0].fn is self._resources[-1].fn  # the skill resource
        return request

    def subscription_request(
        self, params: JsonObject, context: RequestContext
    ) -> SubscriptionRequest:
        """Return a request to subscribe to a resource; raises an RpcError if it is unknown."""
        found = self._find_resource(params["uri"])
        if found is None or not self._knows(found[0], context):
            raise resource_not_found_error(params["uri"], context.stateless)
        return SubscriptionRequest(self._service, found[0], context)

    def prompt_request(self, params: JsonObject, context: RequestContext) -> PromptRequest:
        """Return a request for a prompt; raises an RpcError if it is unknown."""
        prompt = self._find_prompt(params["name"], context)
        return PromptRequest(self._service, prompt, params, context)

    def completion_request(self, params: JsonObject, context: RequestContext) -> CompletionRequest:
        """Return a request for completions; raises an RpcError if its target is unknown."""
        ref: JsonObject = params["ref"]
        is_prompt = ref["type"] == "ref/prompt"
        target = (
            self._find_prompt(ref["name"], context)
            if is_prompt
            else self._find_template(ref["uri"], context)
        )
        return CompletionRequest(self._service, target, params, context)

    def find_prompt_tools(self, name: object) -> list[Tool]:
        """Return the tool of a prompt, or nothing if it is unknown."""
        prompt = self._prompts.get(name) if isinstance(name, str) else None
        return [] if prompt is None else [prompt.tool(self._service.app._state)]

    def find_resource_tools(self, uri: str) -> list[Tool]:
        """Return the tool of the resource at a URI or with a template, or nothing if unknown."""
        found = [resource for resource in self._resources if resource.uri == uri]
        if not found and (match := self._find_resource(uri)) is not None:
            found = [match[0]]
        return [resource.tool(self._service.app._state) for resource in found[:1]]

    def _find_prompt(self, name: str, context: RequestContext) -> Prompt:
        """Return a prompt; raise an RpcError, which names only what the caller sees."""
        prompt = self._prompts.get(name)
        if prompt is None or not self._knows(prompt, context):
            state = self._service.app._state
            view = self._service.view(context)
            known = [n for n, item in self._prompts.items() if view.shows(item.tool(state))]
            raise RpcError(INVALID_PARAMS, unknown_name_message("prompt", name, known))
        return prompt

    def _find_resource(self, uri: str) -> tuple[Resource, dict[str, str]] | None:
        """Return the resource at a URI and the values of its parameters."""
        if len(uri) > MAX_URI_CHARS:
            message = f"The URI has {len(uri)} characters; the maximum is {MAX_URI_CHARS}."
            raise RpcError(INVALID_PARAMS, message)
        return find_resource(self._resources, uri)

    def _find_template(self, uri: str, context: RequestContext) -> Resource:
        """Return the resource with a URI or URI template."""
        found = [resource for resource in self._resources if resource.uri == uri]
        if not found and (match := self._find_resource(uri)) is not None:
            found = [match[0]]
        if not found or not self._knows(found[0], context):
            uri = cut_text(uri, MAX_REPEATED_CHARS)
            raise RpcError(INVALID_PARAMS, f"Unknown resource: {uri}", {"uri": uri})
        return found[0]

    def _knows(self, item: ServedFunction, context: RequestContext) -> bool:
        """False if a resource or prompt does not exist for the caller, because of its role."""
        tool = item.tool(self._service.app._state)
        return not tool.guard.audience or self._service.view(context).knows(tool)


# ------------------------------------------------------------------ requests


MAX_COMPLETIONS = 100
"""Maximum number of completions in one answer."""


MAX_URI_CHARS = 2000
"""Maximum number of characters of the URI of a resource."""

MAX_REPEATED_CHARS = 500
"""Maximum number of characters of a URI that an error repeats."""


def resource_not_found_error(uri: str, stateless: bool) -> RpcError:
    """Return the error for an unknown resource."""
    code = INVALID_PARAMS if stateless else RESOURCE_NOT_FOUND
    uri = cut_text(uri, MAX_REPEATED_CHARS)
    return RpcError(code, f"Resource not found: {uri}", {"uri": uri})


class _FunctionRequest(McpRequest):
    """A request whose failure is a JSON-RPC error."""

    def _raise_failure(self, error: ToolError | None) -> None:
        """Raise the RpcError for a failed call."""
        if error is not None:
            code = INVALID_PARAMS if isinstance(error, InputError) else INTERNAL_ERROR
            raise RpcError(code, error.message, self._failure_data(error))

    def _failure_data(self, error: ToolError) -> JsonObject:
        """Return the data of the RpcError: the error, and the request id if it is shown."""
        data: JsonObject = {"error": error.to_dict()}
        request = self._context.request
        if request is not None and request.is_id_shown:
            data["meta"] = {"request_id": request.id}
        return data


class ReadRequest(_FunctionRequest):
    """One `resources/read`."""

    def __init__(
        self,
        service: McpService,
        resource: Resource,
        texts: Mapping[str, str],
        params: JsonObject,
        context: RequestContext,
    ) -> None:
        tool = resource.tool(service.app._state)
        self._uri: str = params["uri"]
        bound_params = {**params, "arguments": {"resources/read": self._uri}}
        super().__init__(service, tool, bound_params, context)
        self._arguments = texts_to_arguments(tool, texts)
        self._mime_type = resource.mime_type

    def _build_result(self, presented: Presented) -> JsonObject:
        error = presented.error
        if isinstance(error, NotFoundError):
            missing = resource_not_found_error(self._uri, self._stateless)
            uri = cut_text(self._uri, MAX_REPEATED_CHARS)
            data: JsonObject = {"uri": uri, **self._failure_data(error)}
            raise RpcError(missing.code, error.message, data)
        self._raise_failure(error)
        result: JsonObject = {"contents": presented.format_with(self._format_contents)}
        if self._stateless:  # the content may change at any time
            return {**self._service.add_cache_hints(result), "ttlMs": 0}
        return result

    def _format_contents(self, value: object, to_json: Callable[[Any], str]) -> list[JsonObject]:
        if is_list(value) and any([isinstance(part, Embedded) for part in value]):
            return [self._resource_contents(part, to_json) for part in value]
        return [self._resource_contents(value, to_json)]

    def _resource_contents(self, value: object, to_json: Callable[[Any], str]) -> JsonObject:
        mime_type = self._mime_type
        if isinstance(value, Embedded):
            return resource_contents(value.uri, value.content, value.mime_type or mime_type)
        if isinstance(value, (Image, Audio)):
            return resource_contents(self._uri, value.data, value.mime_type)
        if isinstance(value, str):
            return resource_contents(self._uri, value, mime_type or TEXT_MIME)
        if isinstance(value, (bytes, bytearray)):
            return resource_contents(self._uri, bytes(value), mime_type or BYTES_MIME)
        return resource_contents(self._uri, to_json(value), mime_type or JSON_MIME)


class SubscriptionRequest(_FunctionRequest):
    """The access check of a subscription. The access rules of the resource apply.

    No human is asked, because notifications contain nothing of the resource.
    """

    def __init__(self, service: McpService, resource: Resource, context: RequestContext) -> None:
        def subscribe() -> None:
            """Allow the subscription."""

        tool = _with_guard_of(resource.tool(service.app._state), subscribe, "subscription")
        super().__init__(service, tool, {}, context)

    def _build_result(self, presented: Presented) -> JsonObject:
        self._raise_failure(presented.error)
        return {}


class PromptRequest(_FunctionRequest):
    """One `prompts/get`."""

    def __init__(
        self, service: McpService, prompt: Prompt, params: JsonObject, context: RequestContext
    ) -> None:
        tool = prompt.tool(service.app._state)
        texts: dict[str, str] = params.get("arguments") or {}
        bound_params = {**params, "arguments": {"prompts/get": texts}}
        super().__init__(service, tool, bound_params, context)
        self._arguments = texts_to_arguments(tool, texts)
        self._description = prompt.description

    def _build_result(self, presented: Presented) -> JsonObject:
        self._raise_failure(presented.error)
        messages = presented.format_with(prompt_messages)
        return {"description": self._description, "messages": messages}


class CompletionRequest(_FunctionRequest):
    """One `completion/complete`. The access rules of its target apply, but no human is asked."""

    def __init__(
        self,
        service: McpService,
        target: Resource | Prompt,
        params: JsonObject,
        context: RequestContext,
    ) -> None:
        argument: dict[str, str] = params["argument"]
        context_fields: JsonObject = params.get("context") or {}
        completer = target.complete.get(argument["name"])
        tool = _make_completion_tool(target.tool(service.app._state), completer)
        super().__init__(service, tool, {}, context)
        self._arguments: JsonObject = {
            "argument": argument["name"],
            "value": argument["value"],
            "given_arguments": context_fields.get("arguments") or {},
        }

    def _build_result(self, presented: Presented) -> JsonObject:
        self._raise_failure(presented.error)
        return {"completion": presented.format_with(_completion)}


def _make_completion_tool(target_tool: Tool, completer: Completer) -> Tool:
    """Return a tool that completes an argument, with the access rules and limits of its target."""

    def complete(argument: str, value: str, given_arguments: dict[str, str]) -> object:
        found = completion_candidates(
            target_tool.param(argument), completer, value, given_arguments
        )
        if hasattr(found, "__await__"):
            return filter_async(found, value)
        return filter_matches(found or (), value)

    async def filter_async(found: Awaitable[Iterable[Any] | None], value: str) -> list[str]:
        return filter_matches(await found or (), value)

    async def complete_async(
        argument: str, value: str, given_arguments: dict[str, str]
    ) -> list[str]:
        param = target_tool.param(argument)
        found = completion_candidates(param, completer, value, given_arguments)
        return await filter_async(found, value)

    fn = complete_async if callable(completer) and is_async(completer) else complete
    return _with_guard_of(target_tool, fn, "completion")


def _with_guard_of(target_tool: Tool, fn: Callable[..., Any], suffix: str) -> Tool:
    """Return a tool with the access rules and limits of another, which asks no human."""
    tool = read_tool(
        fn,
        app=target_tool.app,
        path=(*target_tool.path[:-1], f"{target_tool.path[-1]}-{suffix}"),
        kwargs={"annotations": ReadOnly},
        version=target_tool.version,
    )
    guard = target_tool.guard.replace(approval=False, human_in_the_loop=False, danger=None)
    limits = target_tool.limits.replace(rate_counters=())  # completions are counted separately
    return tool.replace(guard=guard, limits=limits)


def _completion(found: list[str], to_json: Callable[[Any], str]) -> JsonObject:
    values = found[:MAX_COMPLETIONS]
    return {"values": values, "total": len(found), "hasMore": len(found) > len(values)}
