"""The resources and prompts of an app as calls, for every interface but MCP.

    URI  ─▶ resource_request ─▶ the tool of a call, and its arguments as texts
    name ─▶ prompt_request   ─▶ the tool of a call

The result of a resource is what its function returns. The result of a prompt is its description and
its messages, in the form of MCP. MCP itself is in `mcp/resource_service.py`.
"""

from __future__ import annotations

from tooli.core.call import Failed
from tooli.core.tool import MISSING, cut_text
from tooli.describe.mcp_resources import describe_prompt, describe_resource
from tooli.errors import DefinitionError, NotFoundError, Suggestion
from tooli.pipeline import STAGES
from tooli.pipeline.custom_stages import CustomStage
from tooli.pipeline.drivers import is_async
from tooli.providers.resources import (
    collect_prompts,
    find_resource,
    iter_resources,
    texts_to_arguments,
)
from tooli.serving.prompt_messages import prompt_messages
from tooli.similar_names import closest_match
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.call import Call, StageRun
    from tooli.core.protocols import JsonObject, ToolSource
    from tooli.core.tool import Tool
    from tooli.providers.resources import Prompt, ServedFunction

    Shows = Callable[[Tool], bool]
    """Returns whether a caller sees a tool."""

MAX_URI_CHARS = 2000
"""Maximum number of characters of the URI of a resource."""

_MAX_SHOWN_CHARS = 200
_MAX_LISTED = 10


def is_listed(tool: Tool) -> bool:
    """True if every local caller sees a tool: it has no audience."""
    return not tool.guard.audience


def is_any(tool: Tool) -> bool:
    """True: Python code sees every tool."""
    return True


def list_resources(app: ToolSource, shows: Shows = is_listed) -> list[JsonObject]:
    """Return the descriptions of the resources that a caller sees."""
    return [
        describe_resource(resource)
        for resource in iter_resources(app)
        if is_shown(resource, app, shows)
    ]


def list_prompts(app: ToolSource, shows: Shows = is_listed) -> list[JsonObject]:
    """Return the descriptions of the prompts that a caller sees."""
    return [
        describe_prompt(name, prompt, prompt.tool(app._state))
        for name, prompt in collect_prompts(app).items()
        if is_shown(prompt, app, shows)
    ]


def is_shown(item: ServedFunction, app: ToolSource, shows: Shows) -> bool:
    """True if a caller sees a resource or a prompt. One with an invalid definition is hidden."""
    try:
        return shows(item.tool(app._state))
    except DefinitionError:
        return False


def resource_request(
    app: ToolSource, uri: str, shows: Shows = is_listed
) -> tuple[Tool, dict[str, str]]:
    """Return the tool that reads the resource at a URI, and its arguments as texts.

    Raises NotFoundError if there is none.
    """
    resources = [*iter_resources(app)]
    found = find_resource(resources, uri) if len(uri) <= MAX_URI_CHARS else None
    if found is None or not shows(_read_tool(found[0], app)):
        known = [resource.uri for resource in resources if is_shown(resource, app, shows)]
        raise _unknown_error("resource", uri, known)
    resource, texts = found
    return _without_suggested_calls(_read_tool(resource, app)), texts


def resource_call(
    app: ToolSource, uri: str, shows: Shows = is_listed
) -> tuple[Tool, dict[str, Any]]:
    """Return the tool that reads the resource at a URI, and its arguments."""
    tool, texts = resource_request(app, uri, shows)
    return tool, texts_to_arguments(tool, texts)


def prompt_request(app: ToolSource, name: str, shows: Shows = is_listed) -> Tool:
    """Return the tool that fills in a prompt. Raises NotFoundError if there is no such prompt."""
    prompts = collect_prompts(app)
    prompt = prompts.get(name)
    if prompt is None or not shows(_read_tool(prompt, app)):
        known = [key for key, item in prompts.items() if is_shown(item, app, shows)]
        raise _unknown_error("prompt", name, known)
    return _without_suggested_calls(_prompt_tool(prompt, _read_tool(prompt, app)))


def _read_tool(item: ServedFunction, app: ToolSource) -> Tool:
    """Return the tool of a resource or prompt; raise a ToolError if its definition is invalid."""
    try:
        return item.tool(app._state)
    except DefinitionError as error:
        raise error.to_tool_error() from error


def _prompt_tool(prompt: Prompt, tool: Tool) -> Tool:
    """Return the tool of a prompt; its result is the description and the messages."""
    fn = tool.fn

    def build(value: object) -> JsonObject:
        messages = prompt_messages(value, lambda part: encode(part, []).decode())
        return {"description": prompt.description, "messages": messages}

    def fill_in(**arguments: Any) -> JsonObject:
        return build(fn(**arguments))

    async def fill_in_async(**arguments: Any) -> JsonObject:
        return build(await fn(**arguments))

    return tool.replace(fn=fill_in_async if is_async(fn) else fill_in, returns=MISSING)


def _without_suggested_calls(tool: Tool) -> Tool:
    """Return a tool whose errors suggest no call of it, because it is not a command."""
    stage = CustomStage(drop_suggested_call, STAGES[0][0], is_after=False)
    return tool.replace(custom_stages=(stage, *tool.custom_stages))


def drop_suggested_call(call: Call) -> StageRun:
    """Remove the call that an error suggests; what to do about it stays."""
    outcome = yield call
    suggestion = outcome.error.suggestion if isinstance(outcome, Failed) else None
    if isinstance(outcome, Failed) and suggestion is not None and suggestion.target is not None:
        outcome.error.suggestion = suggestion.replace(target=None, applicability="maybe_incorrect")
    return outcome


def _unknown_error(kind: str, name: str, known: list[str]) -> NotFoundError:
    """Return the error for an unknown name. It names the closest one, or those there are."""
    shown = cut_text(name, _MAX_SHOWN_CHARS)
    closest = closest_match(shown, known)
    listed = ", ".join(known[:_MAX_LISTED]) + (", …" if len(known) > _MAX_LISTED else "")
    fix = f"The {kind}s are: {listed}." if known else f"The app has no {kind}s."
    if closest is not None:
        fix = f"Did you mean {closest}?"
    return NotFoundError(
        f"There is no {kind} {shown}.",
        field="uri" if kind == "resource" else "name",
        suggestion=Suggestion("retry_with_modified_input", fix),
        details={f"{kind}s": known[:_MAX_LISTED]} if known else None,
    )
