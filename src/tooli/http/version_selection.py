"""Versions of commands over HTTP: `?version=1.0`, and headers about the end of a command.

Deprecation: @0                                  RFC 9745; the start is not known
Sunset: Sun, 31 Jan 2027 23:59:59 GMT            RFC 8594
Link: </tools/add>; rel="successor-version"      the default version of the command
"""

from __future__ import annotations

from datetime import date
from urllib.parse import parse_qsl, quote, urlencode

from tooli.core.versions import split_version
from tooli.errors import InputError
from tooli.http.http_request import HttpError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.tool import Tool
    from tooli.http.asgi import Api, Headers
    from tooli.http.http_request import HttpRequest

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def find_tool(api: Api, request: HttpRequest, path: str) -> Tool | None:
    """Return the tool at a path, in the version that the path or the query names.

    Returns None if there is none for this caller. Adds headers about its end to the response.
    Raises an HttpError for a version that the tool does not have.
    """
    tool = api.paths.get(path)
    if tool is not None and not knows_tool(api, request, tool):
        return None
    if b"version=" in request.query or (tool is None and "@" in path):
        try:
            tool = _select_version(api, request, path)
        except InputError as error:
            raise HttpError(error) from None
    if tool is not None and not knows_tool(api, request, tool):
        return None
    if tool is not None and tool.deprecated:
        request.extra_headers += lifecycle_headers(tool, api.root_path or request.root_path)
    return tool


def knows_tool(api: Api, request: HttpRequest, tool: Tool) -> bool:
    """False if a tool does not exist for the caller of a request, because of its role."""
    return not tool.guard.audience or api.dispatcher.view(request.scopes).knows(tool)


def _select_version(api: Api, request: HttpRequest, path: str) -> Tool | None:
    """Return the version of a tool. `?version=` is removed from the query if it is no parameter."""
    path, version = split_version(path)
    tool = api.paths.get(path)
    if tool is None or not knows_tool(api, request, tool):
        return None
    if version is None and "version" not in tool.param_names:
        pairs = parse_qsl(request.query.decode("latin-1"), keep_blank_values=True)
        versions = [value for name, value in pairs if name == "version"]
        if len({*versions}) > 1:
            raise InputError(
                "?version= is given twice with different values: send it once", code="E1007"
            )
        version = versions[-1] if versions else None
        rest = urlencode([pair for pair in pairs if pair[0] != "version"])
        request.scope = {**request.scope, "query_string": rest.encode("latin-1")}
    return tool if version is None else api.dispatcher.select_version(tool, version)


def lifecycle_headers(tool: Tool, root: str) -> Headers:
    """Return the headers of an answer that say that a command is deprecated, and when it ends."""
    headers: list[tuple[bytes, bytes]] = []
    if tool.deprecated:
        headers.append((b"deprecation", b"@0"))
    if tool.guidance.sunset is not None:
        day = date.fromisoformat(tool.guidance.sunset)
        name, month = _DAYS[day.weekday()], _MONTHS[day.month - 1]
        text = f"{name}, {day.day:02} {month} {day.year:04} 23:59:59 GMT"
        headers.append((b"sunset", text.encode()))
    name, version = split_version(tool.key)
    if version is not None and tool.deprecated:
        target = f"{root}/tools/{quote(name.replace('.', '/'))}"
        headers.append((b"link", f'<{target}>; rel="successor-version"'.encode()))
    return tuple(headers)
