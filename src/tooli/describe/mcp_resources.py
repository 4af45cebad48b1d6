"""The resources and prompts of an app, as lists and documents describe them."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.providers.resources import Prompt, Resource


def resource_uri(entry: JsonObject) -> str:
    """Return the URI or the URI template in the description of a resource."""
    return entry.get("uri") or entry["uriTemplate"]


def prompt_usage(entry: JsonObject) -> str:
    """Return the name of a prompt and its arguments, such as `review code=… [lang=…]`."""
    words = [f"{arg['name']}=…" for arg in entry.get("arguments", ()) if arg["required"]]
    words += [f"[{arg['name']}=…]" for arg in entry.get("arguments", ()) if not arg["required"]]
    return " ".join([entry["name"], *words])


def describe_resource(resource: Resource) -> JsonObject:
    """Return the entry of a resource in `resources/list` or `resources/templates/list`."""
    is_static = resource.template.is_static
    fields: JsonObject = {
        "uri" if is_static else "uriTemplate": resource.uri,
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mimeType": resource.mime_type,
        "size": resource.kwargs.get("size") if is_static else None,
        "annotations": resource.kwargs.get("annotations"),
    }
    return _without_none(fields)


def describe_prompt(name: str, prompt: Prompt, tool: Tool) -> JsonObject:
    """Return the entry of a prompt in `prompts/list`."""
    fields: JsonObject = {"name": name, "title": prompt.title, "description": prompt.description}
    docs = tool.doc.params
    arguments = [
        {"name": p.name, "description": p.help or docs.get(p.name), "required": p.required}
        for p in tool.public_params
    ]
    if arguments:
        fields["arguments"] = [_without_none(argument) for argument in arguments]
    return fields


def _without_none(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
