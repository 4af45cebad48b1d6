"""GET requests that call a command: the arguments are in the query.

    GET /tools/find-files?pattern=*.py&limit=10 ─▶ read_query ─▶ the same call as a POST request

Only commands that only read allow GET. Framework options are in the query as well. If a parameter
has the name of an option, the option has the prefix `tooli_`.
"""

from __future__ import annotations

from json import dumps
from urllib.parse import parse_qsl, quote, urlencode

from tooli.core.secret_fields import may_contain_secret
from tooli.core.tool import ListOf, TupleOf, unwrap_optional
from tooli.errors import InputError, Suggestion
from tooli.http.http_request import JSON_CONTENT_TYPE, HttpError, check_no_body
from tooli.http.request_options import HTTP_OPTIONS
from tooli.http.response_forms import CachedForm
from tooli.inputs.query import can_be_in_query, parse_query_values
from tooli.serving.asgi_receive import replay_messages

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Tool
    from tooli.http.http_request import HttpRequest
    from tooli.serving import Message

MAX_QUERY_PARAMETERS = 2000


def turn_into_post(request: HttpRequest, tool: Tool, root: str) -> None:
    """Change a GET request so that it is handled like a POST request with the same arguments.

    `root` is the prefix that clients use. Raises an HttpError if the query cannot be read.
    """
    check_no_body(request)
    arguments, options = _read_query(request.query, tool)
    body: Message = {"type": "http.request", "body": dumps(arguments).encode()}
    request.receive = replay_messages([body], request.receive)
    request.headers[JSON_CONTENT_TYPE[0]] = JSON_CONTENT_TYPE[1]
    request.headers.pop(b"content-length", None)
    cursor_name = "tooli_cursor" if "cursor" in tool.param_names else "cursor"
    others = [pair for pair in _parse(request.query) if pair[0] != cursor_name]

    def next_page_url(cursor: str) -> str:
        query = urlencode([*others, (cursor_name, cursor)])
        return f"{quote(root + request.path, safe='/%')}?{query}"

    has_secret = any([may_contain_secret(param) for param in tool.public_params])
    request.cached_form = CachedForm(next_page_url, may_compress=not has_secret)
    request.scope = {**request.scope, "query_string": urlencode(options).encode()}


def _parse(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode("latin-1"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_QUERY_PARAMETERS,
        )
    except UnicodeDecodeError:
        raise HttpError(InputError("The query is not UTF-8.", code="E1400")) from None
    except ValueError:
        message = f"The query has more than {MAX_QUERY_PARAMETERS} parameters."
        raise HttpError(InputError(message, code="E1400")) from None


def _read_query(query: bytes, tool: Tool) -> tuple[JsonObject, list[tuple[str, str]]]:
    """Return the arguments in a query, and the framework options in it."""
    texts: dict[str, list[str]] = {}
    options: list[tuple[str, str]] = []
    for name, text in _parse(query):
        own = name in tool.param_names
        option = name[len("tooli_") :] if name.startswith("tooli_") else name
        if not own and option in HTTP_OPTIONS and (option == name) != (option in tool.param_names):
            options.append((option, text))
        else:
            texts.setdefault(name, []).append(text)
    return {
        name: _argument(tool.param(name), name, found) for name, found in texts.items()
    }, options


def _argument(param: Param | None, name: str, texts: list[str]) -> object:
    if param is None:  # binding reports the unknown name, with the closest one
        return texts[-1]
    if not can_be_in_query(param):
        message = f"{name!r} cannot be in a query. Send it in the JSON body of a POST request."
        raise _query_error(message, name)
    is_list = isinstance(unwrap_optional(param.shape), (ListOf, TupleOf))
    if len(texts) > 1 and not is_list:
        raise _query_error(f"{name!r} is in the query {len(texts)} times. Send it once.", name)
    return parse_query_values(param, texts)


def _query_error(message: str, name: str) -> HttpError:
    fix = "Send the arguments as a JSON object in the body of a POST request."
    suggestion = Suggestion("retry_with_modified_input", fix)
    return HttpError(InputError(message, code="E1003", field=name, suggestion=suggestion))
