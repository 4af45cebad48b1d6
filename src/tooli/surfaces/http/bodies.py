"""The body of a request: read up to a limit and in time, then understood as one JSON object."""

from __future__ import annotations

import asyncio
from json import JSONDecoder

from tooli.contract.jsonable import DEEPEST, is_list, is_object
from tooli.errors import InputError, Suggestion
from tooli.surfaces.http.exchange import Gone, Refused
from tooli.surfaces.http.patience import Late, within

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, NoReturn

    from tooli.surfaces.http.exchange import Exchange
    from tooli.surfaces.http.settings import Message, Settings

_CLOSE = (b"connection", b"close")


async def read_arguments(exchange: Exchange, settings: Settings) -> dict[str, Any]:
    """The arguments of a call; no body at all stands for none."""
    declared = exchange.headers.get(b"content-type")
    if declared is not None and declared != b"application/json":
        _check_type(declared)
    body = await read_body(exchange, settings)
    if not body:
        return {}
    if declared is None:
        raise _not_json("nothing")
    return understand(body)


# ------------------------------------------------------------------ bytes


async def read_body(exchange: Exchange, settings: Settings) -> bytes:
    """All bytes of the body; one that is too large or comes too slowly is refused."""
    length = exchange.headers.get(b"content-length")
    if length is not None and int(length) > settings.max_body:
        raise _too_large(settings)
    try:
        message = await within(settings.chunk_timeout, exchange.receive())
        body = _piece(message)
        if message.get("more_body"):
            body = await _read_on(body, exchange, settings)
    except Late:
        raise _too_slow() from None
    if len(body) > settings.max_body:
        raise _too_large(settings)
    return body


async def _read_on(first: bytes, exchange: Exchange, settings: Settings) -> bytes:
    """The first piece of a body with those behind it, as far as they are wanted."""
    pieces, size, more = [first], len(first), True
    now = asyncio.get_running_loop().time
    end = now() + settings.body_timeout
    while more and size <= settings.max_body:
        message = await within(min(settings.chunk_timeout, end - now()), exchange.receive())
        pieces.append(_piece(message))
        size += len(pieces[-1])
        more = message.get("more_body")
    return b"".join(pieces)


def _piece(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise Gone
    return message.get("body", b"")


def _check_type(declared: bytes) -> None:
    """Refuse what is not JSON: a form of another page's can only send other types."""
    kind, _, parameters = declared.decode("latin-1").lower().partition(";")
    kind = kind.strip()
    is_json = kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip(' "') not in ("utf-8", "utf8"):
            is_json = False
    if not is_json:
        raise _not_json(kind or "nothing")


# ------------------------------------------------------------------ JSON


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON's")


_decode = JSONDecoder(parse_constant=_refuse_constant).decode


def understand(body: bytes) -> dict[str, Any]:
    """The object that the body is; anything else is refused."""
    try:
        value: object = _decode(body.decode("utf-8"))
    except RecursionError:
        raise _wrong("is nested too deeply") from None
    except ValueError as failure:
        raise _wrong(f"is not valid JSON: {_words_of(failure)}") from None
    if not is_object(value):
        raise _wrong("is not a JSON object")
    if body.count(b"{") + body.count(b"[") > DEEPEST and _depth(value) > DEEPEST:
        raise _wrong("is nested too deeply")
    return value


def _words_of(failure: ValueError) -> str:
    if isinstance(failure, UnicodeDecodeError):
        return f"the byte at {failure.start} is not UTF-8"
    return str(failure)


def _depth(value: object) -> int:
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


def _wrong(what: str) -> Refused:
    advice = Suggestion("retry_with_modified_input", "Send the arguments as one JSON object.")
    return Refused(InputError(f"The body {what}.", code="E1008", field="body", suggestion=advice))


def _not_json(kind: str) -> Refused:
    advice = Suggestion("retry_with_modified_input", "Send 'Content-Type: application/json'.")
    return Refused(InputError(f"The body is declared as {kind}.", code="E1415", suggestion=advice))


def _too_large(settings: Settings) -> Refused:
    advice = Suggestion("retry_with_modified_input", "Send less at a time.")
    message = f"The body is larger than {settings.max_body} bytes."
    return Refused(InputError(message, code="E1413", suggestion=advice))


def _too_slow() -> Refused:
    advice = Suggestion("retry_later", "Send the whole body at once.")
    return Refused(
        InputError("The body did not come in time.", code="E1408", suggestion=advice), _CLOSE
    )
