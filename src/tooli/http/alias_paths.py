"""Paths that name one use of a command: its plan, or a call with uploaded files.

    POST /plans/{command}      POST /tools/{command}?dry_run=true
    POST /uploads/{command}    POST /tools/{command} with a form

Generators of clients make one function for each path and method, and support one type of body and
of result for it.
"""

from __future__ import annotations

from tooli.http.path_errors import PLANS_PATH, method_error
from tooli.http.version_selection import find_tool
from tooli.inputs.uploads import upload_parameters

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.tool import Tool
    from tooli.http.asgi import Api
    from tooli.http.http_request import HttpRequest

UPLOADS_PATH = "/uploads/"
"""Beginning of the paths that take a form with files."""

ALIAS_PATHS = (PLANS_PATH, UPLOADS_PATH)
ALIAS_METHODS = b"POST, OPTIONS"


def find_alias(api: Api, request: HttpRequest, path: str) -> Tool | None:
    """Return the tool of a path such as `/plans/drop` or `/plans/drop@1.0`, or None."""
    for start in ALIAS_PATHS:
        if not path.startswith(start):
            continue
        tool = find_tool(api, request, f"/tools/{path[len(start) :]}")
        if tool is not None and (start == PLANS_PATH or upload_parameters(tool)):
            return tool
    return None


def check_alias_method(request: HttpRequest, tool: Tool, root: str) -> None:
    """Raise an HttpError for another method than POST. `root` is the prefix that clients use."""
    if request.method != "POST":
        raise method_error(root + request.path, request.method, tool, ALIAS_METHODS)


def turn_into_plan(request: HttpRequest) -> None:
    """Change a request so that it asks for a dry run."""
    query = b"&".join([part for part in (request.query, b"dry_run=true") if part])
    request.scope = {**request.scope, "query_string": query}
