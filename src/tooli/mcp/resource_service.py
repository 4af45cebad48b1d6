"""Shelf: an app's resources and prompts as MCP's wire has them, and completions for both.

resources/read ─▶ Shelf.reading ─▶ Reading.run │ arun ─▶ {"contents": […]}
prompts/get    ─▶ Shelf.asking  ─▶ Asking.run  │ arun ─▶ {"messages": […]}
completion/…   ─▶ Shelf.completing ─▶ Completing.run ─▶ {"completion": {…}}
"""

from __future__ import annotations

from tooli.mcp.protocol import INVALID_PARAMS, RpcError
from tooli.mcp.resource_requests import (
    CompletionRequest,
    PromptRequest,
    ReadRequest,
    resource_not_found_error,
)
from tooli.mcp.service import PAGE_SIZE, make_cursor, parse_cursor, unknown_name_message
from tooli.providers.resources import (
    Resource,
    UriTemplate,
    collect_prompts,
    find_resource,
    iter_resources,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tooli.core.call import Caller
    from tooli.core.keywords import ResourceOptions
    from tooli.core.peer import Peer
    from tooli.mcp.service import McpService
    from tooli.providers.resources import Prompt


class ResourceService:
    """What an app offers beside its tools."""

    def __init__(self, service: McpService) -> None:
        self._service = service
        self._revision = -1
        self._resources: list[Resource] = []
        self._prompts: dict[str, Prompt] = {}

    def _refresh(self) -> None:
        """Be current, whatever was registered meanwhile."""
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
            "description": "What an agent has to know to use this app.",
            "mime_type": "text/markdown",
            "auth": (),
        }
        return Resource(
            app._state, UriTemplate(f"skill://{dispatcher.name}/SKILL.md"), skill, settings
        )

    # -------------------------------------------------------------- lists

    def resources(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """A page of the documents that have one URI."""
        self._refresh()
        plain = [resource for resource in self._resources if resource.template.is_static]
        return self._list_resources("resources", "uri", plain, cursor, modern)

    def templates(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """A page of the documents that have many."""
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
        """A page of prompts."""
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

    # -------------------------------------------------------------- one of them

    def read_request(
        self, params: Mapping[str, Any], caller: Caller, peer: Peer | None, *, modern: bool
    ) -> ReadRequest:
        """A read of a document; raises an RpcError where there is none."""
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
        """A prompt, filled in; raises an RpcError where there is none."""
        self._refresh()
        name = params["name"]
        prompt = self._prompts.get(name)
        if prompt is None:
            raise RpcError(INVALID_PARAMS, unknown_name_message("prompt", name, self._prompts))
        return PromptRequest(self._service, prompt, params, caller, peer, modern)

    def has_resource(self, uri: str) -> bool:
        """Whether there is a document at a URI."""
        self._refresh()
        return find_resource(self._resources, uri) is not None

    # -------------------------------------------------------------- completion

    def completion_request(
        self, params: Mapping[str, Any], caller: Caller, peer: Peer | None, *, modern: bool
    ) -> CompletionRequest:
        """Values for an argument; raises an RpcError where there is nothing to complete."""
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
