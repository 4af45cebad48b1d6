"""Shelf: an app's resources and prompts as MCP's wire has them, and completions for both.

resources/read ─▶ Shelf.reading ─▶ Reading.run │ arun ─▶ {"contents": […]}
prompts/get    ─▶ Shelf.asking  ─▶ Asking.run  │ arun ─▶ {"messages": […]}
completion/…   ─▶ Shelf.completing ─▶ Completing.run ─▶ {"completion": {…}}
"""

from __future__ import annotations

from tooli.sources.resources import Resource, find_resource, prompts_of, resources_of
from tooli.sources.uris import Template
from tooli.surfaces.mcp.offers import Asking, Completing, Reading, not_found
from tooli.surfaces.mcp.service import PAGE, cursor_at, page_start, unknown
from tooli.surfaces.mcp.words import INVALID_PARAMS, RpcError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tooli.call.model import Caller
    from tooli.call.peer import Peer
    from tooli.sources.resources import Prompt
    from tooli.surfaces.mcp.service import Service


class Shelf:
    """What an app offers beside its tools."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._edition = -1
        self._resources: list[Resource] = []
        self._prompts: dict[str, Prompt] = {}

    def _look(self) -> None:
        """Be current, whatever was registered meanwhile."""
        edition = self._service.desk.edition
        if self._edition != edition:
            app = self._service.app
            self._resources = [*resources_of(app), self._skill()]
            self._prompts = prompts_of(app)
            self._edition = edition

    def _skill(self) -> Resource:
        app, desk = self._service.app, self._service.desk

        def skill() -> str:
            from tooli.views.portrait import portray
            from tooli.views.skill import write_skill

            return write_skill(portray(app))

        said = {
            "name": "skill",
            "title": f"How to use {desk.name}",
            "description": "What an agent has to know to use this app.",
            "mime_type": "text/markdown",
            "auth": (),
        }
        return Resource(app._house, Template(f"skill://{desk.name}/SKILL.md"), skill, said)

    # -------------------------------------------------------------- lists

    def resources(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """A page of the documents that have one URI."""
        self._look()
        plain = [resource for resource in self._resources if resource.template.is_plain]
        return self._page("resources", "uri", plain, cursor, modern)

    def templates(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """A page of the documents that have many."""
        self._look()
        wide = [resource for resource in self._resources if not resource.template.is_plain]
        return self._page("resourceTemplates", "uriTemplate", wide, cursor, modern)

    def _page(
        self, key: str, place: str, listed: list[Resource], cursor: str | None, modern: bool
    ) -> dict[str, Any]:
        def described(resource: Resource) -> dict[str, Any]:
            size = resource.said.get("size") if resource.template.is_plain else None
            said = {
                place: resource.uri,
                "name": resource.name,
                "title": resource.title,
                "description": resource.description,
                "mimeType": resource.mime_type,
                "size": size,
                "annotations": resource.said.get("annotations"),
            }
            return {name: value for name, value in said.items() if value is not None}

        return self._listed(key, listed, described, cursor, modern)

    def prompts(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """A page of prompts."""
        self._look()
        root = self._service.app._house

        def described(named: tuple[str, Prompt]) -> dict[str, Any]:
            name, prompt = named
            tool = prompt.tool(root)
            docs = tool.doc.params
            arguments = [
                {"name": p.name, "description": p.help or docs.get(p.name), "required": p.required}
                for p in tool.public
            ]
            said: dict[str, Any] = {
                "name": name,
                "title": prompt.title,
                "description": prompt.description,
            }
            if arguments:
                said["arguments"] = [
                    {key: value for key, value in argument.items() if value is not None}
                    for argument in arguments
                ]
            return said

        return self._listed("prompts", list(self._prompts.items()), described, cursor, modern)

    def _listed(
        self,
        key: str,
        listed: list[Any],
        described: Callable[[Any], dict[str, Any]],
        cursor: str | None,
        modern: bool,
    ) -> dict[str, Any]:
        first = page_start(cursor, len(listed))
        shown = [described(one) for one in listed[first : first + PAGE]]
        answer: dict[str, Any] = {key: shown}
        if first + PAGE < len(listed):
            answer["nextCursor"] = cursor_at(first + PAGE)
        return self._service.cacheable(answer) if modern else answer

    # -------------------------------------------------------------- one of them

    def reading(
        self, params: Mapping[str, Any], caller: Caller, peer: Peer | None, *, modern: bool
    ) -> Reading:
        """A read of a document; raises an RpcError where there is none."""
        self._look()
        uri = params["uri"]
        found = find_resource(self._resources, uri)
        if found is None:
            raise not_found(uri, modern)
        resource, texts = found
        return Reading(self._service, resource, texts, params, caller, peer, modern)

    def asking(
        self, params: Mapping[str, Any], caller: Caller, peer: Peer | None, *, modern: bool
    ) -> Asking:
        """A prompt, filled in; raises an RpcError where there is none."""
        self._look()
        name = params["name"]
        prompt = self._prompts.get(name)
        if prompt is None:
            raise RpcError(INVALID_PARAMS, unknown("prompt", name, self._prompts))
        return Asking(self._service, prompt, params, caller, peer, modern)

    def knows(self, uri: str) -> bool:
        """Whether there is a document at a URI."""
        self._look()
        return find_resource(self._resources, uri) is not None

    # -------------------------------------------------------------- completion

    def completing(
        self, params: Mapping[str, Any], caller: Caller, peer: Peer | None, *, modern: bool
    ) -> Completing:
        """Values for an argument; raises an RpcError where there is nothing to complete."""
        self._look()
        ref = params["ref"]
        offer: Resource | Prompt | None
        if ref["type"] == "ref/prompt":
            offer = self._prompts.get(ref["name"])
            if offer is None:
                raise RpcError(INVALID_PARAMS, unknown("prompt", ref["name"], self._prompts))
        else:
            offer = self._by_template(ref["uri"])
        return Completing(self._service, offer, params, caller, peer, modern)

    def _by_template(self, uri: str) -> Resource:
        for resource in self._resources:
            if resource.uri == uri:
                return resource
        found = find_resource(self._resources, uri)
        if found is None:
            raise RpcError(INVALID_PARAMS, f"Unknown resource: {uri}", {"uri": uri})
        return found[0]
