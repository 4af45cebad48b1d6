"""Errors for requests whose path or method is wrong. They name the right ones of this server."""

from __future__ import annotations

from tooli.core import Record
from tooli.core.tool import MAX_QUOTED_CHARS, cut_text
from tooli.errors import InputError, Suggestion
from tooli.http.http_request import HttpError
from tooli.inputs.query import allows_get
from tooli.serving.dispatcher import unknown_tool_error
from tooli.similar_names import closest_match

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tooli.core.protocols import App
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.serving.caller_view import CallerView

PAGE_METHODS = b"GET, HEAD, OPTIONS"
PLANS_PATH = "/plans/"
"""Beginning of the paths that answer with the plan of a call."""

MAX_PATH_WORDS = 20
"""Number of words at the end of a wrong path in which the name of a command is searched for."""

_MCP_PATHS = ("/mcp", "/sse", "/messages")
_OTHER_NAMES = {
    "/docs": "/",
    "/redoc": "/",
    "/swagger": "/",
    "/openapi": "/openapi.json",
    "/swagger.json": "/openapi.json",
    "/livez": "/health",
    "/readyz": "/ready",
}
"""Paths of other servers, with those that have the same content here."""


class ServerPaths(Record):
    """The paths that a server has, without the prefix at which it is mounted."""

    root: str  # the prefix that clients use
    tools: Mapping[str, Tool]
    pages: Sequence[str]
    mounts: Sequence[str]
    view: CallerView | None = None  # what the caller sees; None: everything

    def describe(self) -> str:
        """Return all paths in one line."""
        tool_paths = [f"{self.root}/tools/{{command}}"] if self.tools else []
        others = [f"{self.root}{path or '/'}" for path in (*self.pages, *self.mounts)]
        return ", ".join([*tool_paths, *others])

    def closest(self, path: str) -> str | None:
        """Return the method and path that a client probably meant."""
        words = path.rpartition("/tools/")[2].strip("/").split("/")[-MAX_PATH_WORDS:]
        for start in range(len(words)):  # `/api/v1/users/list` is meant as `/tools/users/list`
            name = "/".join(words[start:])
            tool = self.tools.get(f"/tools/{name}")
            if tool is not None and (self.view is None or self.view.shows(tool)):
                return f"POST {self.root}/tools/{name}"
        if any([path == known or path.startswith(f"{known}/") for known in _MCP_PATHS]):
            mounted = [mount for mount in self.mounts if mount in _MCP_PATHS]
            return f"POST {self.root}{mounted[0]}" if mounted else None
        meant = _OTHER_NAMES.get(path)
        found = meant if meant in self.pages else closest_match(path, self.pages)
        return f"GET {self.root}{found}" if found else None


def tool_methods(tool: Tool) -> bytes:
    """Return the methods that the path of a tool allows."""
    return b"GET, HEAD, POST, OPTIONS" if allows_get(tool) else b"POST, OPTIONS"


def not_found_error(app: App, path: str, known: ServerPaths) -> ToolError:
    """Return the error for an unknown path; below /tools/ it is an unknown command."""
    for start in ("/tools/", PLANS_PATH):
        if path.startswith(start) and known.tools:
            return unknown_tool_error(app, path[len(start) :][:200], view=known.view)
    meant = known.closest(path)
    fix = f"Send {meant}." if meant else f"Use one of: {known.describe()}."
    return InputError(
        f"This server has no path {cut_text(known.root + path, MAX_QUOTED_CHARS)}.",
        code="E1404",
        suggestion=Suggestion("retry_with_modified_input", fix),
    )


def method_error(
    path: str, method: str, tool: Tool | None, allowed: bytes = PAGE_METHODS
) -> HttpError:
    """Return the error for a method that a path does not allow. `tool` is None for a page."""
    fix = (
        f"Send GET {path}."
        if tool is None
        else f"Send POST {path} with the arguments as a JSON object in the body."
    )
    message = f"{path} does not allow {method}. It allows {allowed.decode()}."
    suggestion = Suggestion("retry_with_modified_input", fix)
    error = InputError(message, code="E1405", suggestion=suggestion)
    return HttpError(error, (b"allow", allowed))
