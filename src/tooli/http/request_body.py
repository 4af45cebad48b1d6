"""The body of a request: read up to a limit and in time, then understood as one JSON object."""

from __future__ import annotations

import asyncio
from json import JSONDecoder

from tooli.errors import InputError, Suggestion
from tooli.http.client_timeouts import ClientTimeout, wait_with_timeout
from tooli.http.http_request import HttpDisconnect, HttpError
from tooli.text.jsonable import MAX_JSON_DEPTH, is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, NoReturn

    from tooli.http.http_request import HttpRequest
    from tooli.http.http_settings import HttpSettings, Message

_CONNECTION_CLOSE = (b"connection", b"close")


async def read_arguments(request: HttpRequest, settings: HttpSettings) -> dict[str, Any]:
    """The arguments of a call; no body at all stands for none."""
    content_type = request.headers.get(b"content-type")
    if content_type is not None and content_type != b"application/json":
        _check_content_type(content_type)
    body = await read_body(request, settings)
    if not body:
        return {}
    if content_type is None:
        raise _content_type_error("nothing")
    return parse_json_object(body)


# ------------------------------------------------------------------ bytes


async def read_body(request: HttpRequest, settings: HttpSettings) -> bytes:
    """All bytes of the body; one that is too large or comes too slowly is refused."""
    length = request.headers.get(b"content-length")
    if length is not None and int(length) > settings.max_body:
        raise _body_too_large_error(settings)
    try:
        message = await wait_with_timeout(settings.chunk_timeout, request.receive())
        body = _body_chunk(message)
        if message.get("more_body"):
            body = await _read_remaining(body, request, settings)
    except ClientTimeout:
        raise _body_timeout_error() from None
    if len(body) > settings.max_body:
        raise _body_too_large_error(settings)
    return body


async def _read_remaining(
    first_chunk: bytes, request: HttpRequest, settings: HttpSettings
) -> bytes:
    """The first piece of a body with those behind it, as far as they are wanted."""
    chunks, size, more = [first_chunk], len(first_chunk), True
    now = asyncio.get_running_loop().time
    deadline = now() + settings.body_timeout
    while more and size <= settings.max_body:
        message = await wait_with_timeout(
            min(settings.chunk_timeout, deadline - now()), request.receive()
        )
        chunks.append(_body_chunk(message))
        size += len(chunks[-1])
        more = message.get("more_body")
    return b"".join(chunks)


def _body_chunk(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise HttpDisconnect
    return message.get("body", b"")


def _check_content_type(content_type: bytes) -> None:
    """Refuse what is not JSON: a form of another page's can only send other types."""
    media_type, _, parameters = content_type.decode("latin-1").lower().partition(";")
    media_type = media_type.strip()
    is_json = media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip(' "') not in ("utf-8", "utf8"):
            is_json = False
    if not is_json:
        raise _content_type_error(media_type or "nothing")


# ------------------------------------------------------------------ JSON


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON's")


_decode = JSONDecoder(parse_constant=_reject_constant).decode


def parse_json_object(body: bytes) -> dict[str, Any]:
    """The object that the body is; anything else is refused."""
    try:
        value: object = _decode(body.decode("utf-8"))
    except RecursionError:
        raise _invalid_body_error("is nested too deeply") from None
    except ValueError as failure:
        raise _invalid_body_error(f"is not valid JSON: {_describe_decode_error(failure)}") from None
    if not is_object(value):
        raise _invalid_body_error("is not a JSON object")
    if (
        body.count(b"{") + body.count(b"[") > MAX_JSON_DEPTH
        and _nesting_depth(value) > MAX_JSON_DEPTH
    ):
        raise _invalid_body_error("is nested too deeply")
    return value


def _describe_decode_error(failure: ValueError) -> str:
    if isinstance(failure, UnicodeDecodeError):
        return f"the byte at {failure.start} is not UTF-8"
    return str(failure)


def _nesting_depth(value: object) -> int:
    """How deep it is; without recursion, which is what too much of it would break."""
    depth, level = 0, [value]
    while level:
        depth += 1
        deeper: list[object] = []
        for item in level:
            if is_object(item):
                deeper.extend(item.values())
            elif is_list(item):
                deeper.extend(item)
        level = deeper
    return depth


# ------------------------------------------------------------------ refusals


def _invalid_body_error(problem: str) -> HttpError:
    advice = Suggestion("retry_with_modified_input", "Send the arguments as one JSON object.")
    return HttpError(
        InputError(f"The body {problem}.", code="E1008", field="body", suggestion=advice)
    )


def _content_type_error(media_type: str) -> HttpError:
    advice = Suggestion("retry_with_modified_input", "Send 'Content-Type: application/json'.")
    return HttpError(
        InputError(f"The body is declared as {media_type}.", code="E1415", suggestion=advice)
    )


def _body_too_large_error(settings: HttpSettings) -> HttpError:
    advice = Suggestion("retry_with_modified_input", "Send less at a time.")
    message = f"The body is larger than {settings.max_body} bytes."
    return HttpError(InputError(message, code="E1413", suggestion=advice))


def _body_timeout_error() -> HttpError:
    advice = Suggestion("retry_later", "Send the whole body at once.")
    return HttpError(
        InputError("The body did not come in time.", code="E1408", suggestion=advice),
        _CONNECTION_CLOSE,
    )
