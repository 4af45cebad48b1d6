"""Requests that read a resource or fill in a prompt.

    GET  /resources                 the resources, as JSON
    GET  /resources/read?uri=…      a resource; the answer is an envelope, as of a command
    GET  /prompts                   the prompts, as JSON
    GET  /prompts/review?code=…     the messages of a prompt
    POST /prompts/review            the same, with the arguments as a JSON object

They are calls: scopes, rate limits and the policy apply.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from tooli.errors import InputError, Suggestion, ToolError
from tooli.http.get_requests import turn_into_post
from tooli.http.http_request import HttpError
from tooli.http.path_errors import method_error
from tooli.http.response_forms import CachedForm
from tooli.serving.served_functions import prompt_request, resource_request

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.tool import Tool
    from tooli.http.asgi import Api
    from tooli.http.http_request import HttpRequest

RESOURCE_PATH, PROMPTS_PATH = "/resources/read", "/prompts/"
_RESOURCE_METHODS, _PROMPT_METHODS = b"GET, HEAD", b"GET, HEAD, POST"


def read_served_request(api: Api, request: HttpRequest, path: str) -> Tool | None:
    """Return the tool of a resource or prompt, if a request is for one, and change the request.

    It is then a POST request with the arguments of the tool in its body. Raises an HttpError if
    there is no such resource or prompt.
    """
    is_resource = path == RESOURCE_PATH
    if not (is_resource or path.startswith(PROMPTS_PATH)) or not api.settings.tools:
        return None
    allowed = _RESOURCE_METHODS if is_resource else _PROMPT_METHODS
    if request.method not in allowed.decode().split(", "):
        raise method_error(request.url_prefix + path, request.method, None, allowed)
    shows = api.dispatcher.view(request.scopes).shows
    try:
        if is_resource:
            uri, rest = _take_uri(request)
            tool, texts = resource_request(api.dispatcher.app, uri, shows)
            query = urlencode([*texts.items(), *rest])
            request.scope = {**request.scope, "query_string": query.encode()}
        else:
            tool = prompt_request(api.dispatcher.app, path[len(PROMPTS_PATH) :], shows)
    except ToolError as error:
        raise HttpError(error) from None
    if request.method != "POST":
        api.access_control.check_site(request)  # a browser has not asked this server first
        turn_into_post(request, tool, request.url_prefix)
        request.cached_form = CachedForm()
    return tool


def _take_uri(request: HttpRequest) -> tuple[str, list[tuple[str, str]]]:
    """Return the URI in the query of a request, and the other parameters."""
    pairs = parse_qsl(request.query.decode("latin-1"), keep_blank_values=True)
    uris = [value for name, value in pairs if name == "uri"]
    if len(uris) != 1:
        raise InputError(
            "The query must have one parameter 'uri'.",
            code="E1002",
            field="uri",
            suggestion=Suggestion(
                "retry_with_modified_input", "GET /resources lists the URIs of the resources."
            ),
        )
    return uris[0], [pair for pair in pairs if pair[0] != "uri"]
