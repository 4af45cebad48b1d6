"""InfoPages: what the HTTP server says about itself and the app.

    GET /               the page on which people run the commands
    GET /health         a health check; `readiness` answers /ready
    GET /tools          the commands, as JSON
    GET /openapi.json   the OpenAPI document
    GET /resources      the resources, as JSON; `served_requests` reads them
    GET /prompts        the prompts, as JSON

The links of all pages are valid under the prefix at which the server is mounted.
"""

from __future__ import annotations

from tooli.core.options import OPTIONS
from tooli.describe.openapi_document import build_openapi
from tooli.describe.schema_formats import describe_tool
from tooli.http.call_events import has_context
from tooli.http.html_page import read_page
from tooli.http.script_requests import make_script_tools
from tooli.inputs.uploads import upload_parameters
from tooli.serving.served_functions import list_prompts, list_resources
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.http.asgi import Headers, HttpSettings
    from tooli.providers import CommandGroup
    from tooli.serving.caller_view import CallerView
    from tooli.serving.dispatcher import ToolDispatcher

MAX_ROOT_CHARS = 200
"""Maximum length of a prefix for which the OpenAPI document is cached."""


_PRIVATE_PATHS = ("/tools", "/openapi.json", "/resources", "/prompts")
_PRIVATE = ((b"cache-control", b"private, no-cache"), (b"vary", b"authorization"))
"""Headers of pages that depend on the token of the caller."""


class InfoPages:
    """Pages about an app. The JSON pages are cached until the app changes."""

    def __init__(
        self, dispatcher: ToolDispatcher, requires_token: bool, settings: HttpSettings
    ) -> None:
        self._dispatcher = dispatcher
        self._requires_token = requires_token
        tool_paths = _PRIVATE_PATHS if settings.tools else ()
        self._json_paths = ("/health", "/ready", *tool_paths)
        self._has_mcp = "/mcp" in settings.mounts
        self._serves_scripts = settings.tools and settings.orchestrate
        self._page = read_page() if settings.page and settings.tools else None

    def paths(self) -> tuple[str, ...]:
        """Return the paths of all pages."""
        return ("/", *self._json_paths) if self._page is not None else self._json_paths

    def get(self, path: str, view: CallerView, root: str = "") -> tuple[bytes, Headers]:
        """Return the page at a path for a caller, and its headers.

        `root` is the prefix that clients use.
        """
        if path == "/":
            assert self._page is not None
            return self._page.body, self._page.headers
        if path != "/openapi.json" or len(root) > MAX_ROOT_CHARS:
            root = ""
        build = self._build_document
        body = view.cached(("page", path, root), lambda: encode(build(path, root, view), []))
        is_private = path in _PRIVATE_PATHS and (self._requires_token or not view.is_complete)
        return body, _PRIVATE if is_private else ()

    def _build_document(self, path: str, root: str, view: CallerView) -> JsonObject:
        state = self._dispatcher.app._state
        if path == "/health":
            return {"ok": True, "app": state.name, "version": self._dispatcher.version}
        if path == "/tools":
            return {
                "app": state.name,
                "version": self._dispatcher.version,
                "description": state.description or "",
                "prog": state.name,
                "options": describe_options(),
                "groups": _describe_groups(self._dispatcher.app.tree(), view),
                "commands": [self._describe(name, tool, view) for name, tool in view.tools.items()],
                **self._describe_served(view),
            }
        if path == "/resources":
            return {"resources": list_resources(self._dispatcher.app, view.shows)}
        if path == "/prompts":
            return {"prompts": list_prompts(self._dispatcher.app, view.shows)}
        tools = view.tools
        return build_openapi(
            state.name,
            state.version,
            state.description,
            list(tools.values()),
            server_url=root or None,
            secured=self._requires_token,
            script_tools=make_script_tools(self._dispatcher) if self._serves_scripts else None,
        )

    def _describe(self, name: str, tool: Tool, view: CallerView) -> JsonObject:
        """Return the description of a tool, with those of its other versions."""
        described = _describe_command(name, tool)
        versions = [version for version in tool.guidance.versions if version != tool.version]
        others = [self._dispatcher.select_version(tool, version) for version in versions]
        shown = [view.without_hidden(other) for other in others if view.shows(other)]
        visible = [_describe_command(name, other) for other in shown]
        return {**described, "other_versions": visible} if visible else described

    def _describe_served(self, view: CallerView) -> JsonObject:
        """Return the resources and prompts, if the server has an MCP server that answers for them.

        Their contents are read at `/mcp`.
        """
        if not self._has_mcp:
            return {}
        app = self._dispatcher.app
        resources = list_resources(app, view.shows)
        return {"resources": resources, "prompts": list_prompts(app, view.shows)}


def describe_options() -> list[JsonObject]:
    """Return the framework options, in the format from which the page builds command lines."""
    return [
        {
            "name": option.name,
            "help": option.help,
            "flags": list(option.flags),
            "shortcuts": [flag for flag, _ in option.shortcuts],
            "takes_value": bool(option.value_name),
            "choices": list(option.choices),
            "interfaces": list(option.interfaces),
            # True: the option only changes how the command line shows an answer
            "is_display": not option.describes
            and option.group != "input"
            and "http" not in option.interfaces,
        }
        for option in OPTIONS
    ]


def _describe_groups(
    group: CommandGroup, view: CallerView, path: tuple[str, ...] = ()
) -> list[JsonObject]:
    """Return the visible groups below a group, in their order, each with its description."""
    found: list[JsonObject] = []
    for name, child in group.groups.items():
        names = (*path, name)
        has_tools = any([tool.path[: len(names)] == names for tool in view.tools.values()])
        if not child.hidden and (has_tools or view.is_complete):
            description = (child.help or "").strip()
            found.append({"path": [*names], "description": description})
            found += _describe_groups(child, view, names)
    return found


def _describe_command(name: str, tool: Tool) -> JsonObject:
    """Return the description of a tool from which the page builds a form and a command line."""
    described = describe_tool(tool, "json")
    described["path"] = list(tool.path)
    described["cli_path"] = list(tool.cli_path)
    described["mcp_name"] = name
    described["positional"] = [p.name for p in tool.command_params if p.kind == "argument"]
    flags = {p.name: max(p.flags, key=len) for p in tool.command_params if p.flags}
    described["flags"] = flags
    described["negations"] = {
        p.name: max(p.negations, key=len) for p in tool.command_params if p.negations
    }
    if tool.is_streaming:
        described["streams"] = True
    uploads = [param.name for param in upload_parameters(tool)]
    if uploads:
        described["uploads"] = uploads
    if has_context(tool):
        described["reports"] = True  # it can send events: progress and log messages
    return described
