"""Requests that run a script, and that ask for the functions that it can call.

    POST /orchestrate    {"code": "len(await find())", "inputs": {…}}
    GET  /orchestrate    the stubs: the tools as typed Python functions

Both are calls: scopes, rate limits and the policy apply, and the answer is an envelope. The calls
of a script have the caller of the request. They end if the client disconnects.
"""

from __future__ import annotations

from tooli.annotations import ReadOnly
from tooli.http.get_requests import turn_into_post
from tooli.http.path_errors import method_error
from tooli.orchestrate.run_tool import make_run_tool
from tooli.orchestrate.sandbox import SANDBOX_PACKAGE
from tooli.orchestrate.script_tools import read_script_tools, select_tools, where_stubs_are
from tooli.orchestrate.stubs import render_stubs
from tooli.pipeline.context import Context  # noqa: TC001  the annotation is evaluated
from tooli.schema.tool_reader import read_tool
from tooli.serving.dispatcher import is_installed

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import CommandOptions
    from tooli.core.tool import Tool
    from tooli.http.asgi import Api
    from tooli.http.http_request import HttpRequest
    from tooli.orchestrate.script_tools import ScriptTool
    from tooli.serving.dispatcher import ToolDispatcher

SCRIPTS_PATH = "/orchestrate"
_METHODS = b"GET, HEAD, POST, OPTIONS"


def read_script_request(api: Api, request: HttpRequest, path: str) -> Tool | None:
    """Return the tool that runs a script or shows the stubs, if a request is for one of them.

    A GET request is changed: it is then a POST request with the arguments in its body.
    """
    is_served = api.settings.tools and api.settings.orchestrate
    if path != SCRIPTS_PATH or not is_served or any([m.matches(path) for m in api.mounts]):
        return None
    root, dispatcher = request.url_prefix, api.dispatcher
    if request.method not in _METHODS.decode().split(", ")[:-1]:
        raise method_error(root + path, request.method, make_script_tool(dispatcher), _METHODS)
    if request.scopes is None:  # all scopes of the app: the script calls other tools
        request.scopes = dispatcher.find_scopes()
    if request.method == "POST":
        return make_script_tool(dispatcher)
    api.access_control.check_site(request)  # a browser has not asked this server first
    tool = make_stubs_tool(dispatcher)
    turn_into_post(request, tool, root)
    return tool


def make_script_tool(dispatcher: ToolDispatcher) -> Tool:
    """Return the tool that runs a script with the tools that its caller sees."""

    def make() -> Tool:
        def find_tools(ctx: Context) -> Mapping[str, ScriptTool]:
            return _script_tools(dispatcher, ctx)

        return make_run_tool(dispatcher.app, find_tools, dispatcher.failures)

    return dispatcher.cached("scripts", make)


def make_script_tools(dispatcher: ToolDispatcher) -> tuple[Tool, Tool] | None:
    """Return the tools that run a script and show its functions; None without the sandbox."""
    if not is_installed(SANDBOX_PACKAGE):
        return None
    return make_script_tool(dispatcher), make_stubs_tool(dispatcher)


def make_stubs_tool(dispatcher: ToolDispatcher) -> Tool:
    """Return the tool that shows the functions that a script of its caller can call."""
    return dispatcher.cached("stubs of scripts", lambda: _read_stubs_tool(dispatcher))


def _read_stubs_tool(dispatcher: ToolDispatcher) -> Tool:
    def stubs(ctx: Context, tools: list[str] | None = None, read_only: bool = False) -> str:
        """Return the functions that a script can call, as typed Python stubs."""
        stubs_at = where_stubs_are("http")
        found = _script_tools(dispatcher, ctx)
        selected = select_tools(found, tools, read_only=read_only, stubs_at=stubs_at)
        return render_stubs(selected.values())

    options: CommandOptions = {"auth": (), "annotations": ReadOnly}
    return read_tool(stubs, app=dispatcher.name, path=("orchestrate", "stubs"), kwargs=options)


def _script_tools(dispatcher: ToolDispatcher, ctx: Context) -> Mapping[str, ScriptTool]:
    """Return the functions that scripts of a caller can call."""
    view = dispatcher.view(ctx.caller.scopes)
    return view.cached("script tools", lambda: read_script_tools(view.tools.values()))
