"""Translate the error answers of an API to the errors of tooli.

    400, 422, …      InputError        401, 403   AuthError      404, 410   NotFoundError
    409, 412, 423    ConflictError     429        TemporaryError, with `retry_after`
    5xx              TemporaryError    others     DependencyError

The words of the server are data: they are cleaned and bounded.
"""

from __future__ import annotations

import json

from tooli.errors import (
    ERROR_CODES,
    AuthError,
    ConflictError,
    DependencyError,
    InputError,
    InternalError,
    NotFoundError,
    StateError,
    Suggestion,
    TemporaryError,
    ToolError,
    ToolRuntimeError,
)
from tooli.inputs.urls import display_url
from tooli.providers.foreign_errors import own_code
from tooli.providers.openapi.answers import decode
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.providers.openapi.http_client import ApiAnswer
    from tooli.providers.openapi.operations import Operation

MAX_ERROR_BYTES = 1 << 18
"""Maximum size of the body of an error that is read."""
_MAX_SHOWN_CHARS = 2_000
_MAX_MESSAGE_CHARS = 500
_MAX_PROBLEMS = 20
_TEXT_KEYS = ("detail", "message", "error_description", "error_message", "msg", "title", "error")
_LIST_KEYS = ("errors", "violations", "invalid_params", "invalid-params", "details", "detail")
_FIELD_KEYS = ("field", "param", "parameter", "property", "name", "path", "pointer", "loc")
_CONFLICTS = (409, 412, 423)
_PERMANENT = (501, 505, 506, 508, 510, 511)
_UNSAFE = ("post", "patch")


def read_error(answer: ApiAnswer, operation: Operation, schemes: Sequence[str] = ()) -> ToolError:
    """Return the error for an answer that is not a success."""
    value = _read_body(answer)
    if operation.is_tooli:
        own = _tooli_error(value)
        if own is not None:
            return own
    status = answer.status
    reason = clean_text(answer.reason, 100)
    found = _find_message(value)
    head = f"{operation.entry.label} answered {status}" + (f" {reason}" if reason else "")
    message = f"{head}: {found}" if found else f"{head}."
    details: dict[str, object] = {"status": status, "url": display_url(answer.url)}
    if value not in (None, "", {}, []):
        details["body"] = _bounded(value)
    return _make_error(status, message, details, answer, operation, value, schemes)


def _make_error(
    status: int,
    message: str,
    details: dict[str, object],
    answer: ApiAnswer,
    operation: Operation,
    value: Any,
    schemes: Sequence[str],
) -> ToolError:
    if status in (401, 403, 407, 451):
        fix = "Check the credentials in auth= of the OpenAPIProvider, and their permissions."
        if schemes:
            fix += f" The operation accepts: {clean_text(', '.join(schemes), 200)}."
        return AuthError(message, suggestion=Suggestion("ask_human", fix), details=details)
    if status in (404, 410):
        return NotFoundError(message, details=details)
    if status in _CONFLICTS:
        return ConflictError(message, details=details)
    if status in (402, 426):
        return StateError(message, details=details)
    if status in (408, 425, 429) or (status >= 500 and status not in _PERMANENT):
        return _temporary(message, details, answer, operation)
    if 400 <= status < 500:
        problems = list(_problems(value, operation))[:_MAX_PROBLEMS]
        if problems:
            details["errors"] = problems
        fields = [problem["field"] for problem in problems if "field" in problem]
        return InputError(
            message,
            field=str(fields[0]) if fields else None,
            suggestion=Suggestion(
                "retry_with_modified_input", "Correct the arguments as the server says."
            ),
            details=details,
        )
    return DependencyError(message, details=details)


def _temporary(
    message: str, details: dict[str, object], answer: ApiAnswer, operation: Operation
) -> ToolError:
    fix = "Call again later."
    seconds = read_retry_after(answer.headers.get("retry-after"))
    if seconds is not None:
        details["retry_after"] = seconds
        fix = f"Call again in {seconds} s."
    if answer.status >= 500 and operation.entry.method in _UNSAFE:
        fix += " Find out first whether the request had an effect."
    code = "E4029" if answer.status == 429 else None
    return TemporaryError(
        message, code=code, suggestion=Suggestion("retry_later", fix), details=details
    )


def read_retry_after(text: str | None) -> int | None:
    """Return the seconds of the header `Retry-After`, which is a number or a date."""
    text = (text or "").strip()
    if text.isascii() and text.isdecimal():
        return min(int(text[:9]), 10**7)
    if not text:
        return None
    from email.utils import parsedate_to_datetime
    from time import time

    try:
        return max(0, min(round(parsedate_to_datetime(text).timestamp() - time()), 10**7))
    except (ValueError, TypeError, OverflowError):
        return None


def _read_body(answer: ApiAnswer) -> Any:
    try:
        data = answer.read(MAX_ERROR_BYTES)
    except ToolError:
        return None
    text = decode(answer, data)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        is_page = "html" in answer.media_type
        return None if is_page else clean_text(text, _MAX_SHOWN_CHARS).strip()


def _bounded(value: Any) -> object:
    """Return the body of an error for `details`: as JSON if it is small, else its beginning."""
    if not isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        if len(text) <= _MAX_SHOWN_CHARS:
            return _clean(value)
        return clean_text(text, _MAX_SHOWN_CHARS)
    return clean_text(value, _MAX_SHOWN_CHARS)


def _clean(value: Any) -> Any:
    if is_object(value):
        return {clean_text(str(key), 200): _clean(item) for key, item in value.items()}
    if is_list(value):
        return [_clean(item) for item in value]
    return clean_text(value) if isinstance(value, str) else value


# ------------------------------------------------------------------ messages and fields


def _find_message(value: Any, depth: int = 0) -> str:
    """Return the message in the body of an error: of RFC 9457, OAuth, or another usual form."""
    if isinstance(value, str):
        return clean_text(value, _MAX_MESSAGE_CHARS).strip()
    if is_list(value) and depth < 4:
        found = [_find_message(item, depth + 1) for item in value[:3]]
        return "; ".join(filter(None, found))[:_MAX_MESSAGE_CHARS]
    if is_object(value) and depth < 4:
        for key in (*_TEXT_KEYS, *_LIST_KEYS):
            found = _find_message(value.get(key), depth + 1)
            if found:
                return found
    return ""


def _problems(value: Any, operation: Operation) -> Iterator[JsonObject]:
    """Yield the problems that the body of an error lists, with the names of the arguments."""
    names = _names_of_arguments(operation)
    for item in _listed_problems(value):
        message = _find_message(item)
        field = _find_field(item, names)
        if field is not None:
            yield {"field": field, "code": "E1003", "message": message or "not valid"}
        elif message:
            yield {"code": "E1003", "message": message}


def _listed_problems(value: Any) -> Iterator[Any]:
    if not is_object(value):
        return
    for key in _LIST_KEYS:
        found = value.get(key)
        if is_list(found):
            yield from found
            return
        if is_object(found):  # {"errors": {"name": ["is too short"]}}
            yield from [{"field": str(name), "message": text} for name, text in found.items()]
            return
    inner = value.get("error")
    if is_object(inner):
        listed = list(_listed_problems(inner))
        yield from listed or [inner]
    elif any([isinstance(value.get(key), str) for key in ("field", "param")]):
        yield value


def _find_field(item: Any, names: Mapping[str, str]) -> str | None:
    """Return the argument that a problem is about, or None."""
    if not is_object(item):
        return None
    source = item.get("source")
    if is_object(source):
        item = {**source, **item}
    for key in _FIELD_KEYS:
        found = item.get(key)
        if found is None:
            continue
        words = (
            found if is_list(found) else str(found).replace("[", ".").replace("/", ".").split(".")
        )
        for at, word in enumerate(words):
            name = names.get(str(word).rstrip("]"))
            if name is not None:
                rest = [str(part).rstrip("]") for part in words[at + 1 :]]
                return clean_text(".".join([name, *rest]), 200)
    return None


def _names_of_arguments(operation: Operation) -> dict[str, str]:
    names = {p.wire_name: p.name for p in operation.parameters}
    body = operation.body
    if body is not None and body.fields is not None:
        names |= {wire: name for name, wire in body.fields.items()}
    return names


# ------------------------------------------------------------------ envelopes of tooli

_CLASSES: dict[str, type[ToolError]] = {
    "E1": InputError,
    "E2": AuthError,
    "E301": NotFoundError,
    "E302": ConflictError,
    "E3": StateError,
    "E4040": DependencyError,
    "E4075": TemporaryError,
    "E4": ToolRuntimeError,
    "E5": InternalError,
}


def _tooli_error(value: Any) -> ToolError | None:
    """Return the error in an envelope of tooli, or None."""
    found = value.get("error") if is_object(value) and value.get("ok") is False else None
    if not is_object(found) or found.get("code") not in ERROR_CODES:
        return None
    details: Any = found.get("details")
    code, kept = own_code(str(found["code"]), _clean(details) if is_object(details) else None)
    kind = next(_CLASSES[code[:size]] for size in (5, 4, 2) if code[:size] in _CLASSES)
    suggestion: Any = found.get("suggestion")
    field = found.get("field")
    return kind(
        clean_text(found.get("message"), _MAX_SHOWN_CHARS),
        code=code,
        field=clean_text(field, 200) if isinstance(field, str) else None,
        suggestion=_tooli_suggestion(suggestion) if is_object(suggestion) else None,
        is_retryable=found.get("is_retryable") is True,
        details=kept,
    )


def _tooli_suggestion(found: JsonObject) -> Suggestion | None:
    """Return a suggestion without the call, which is one of the other app."""
    action, fix = found.get("action"), clean_text(found.get("fix"), _MAX_MESSAGE_CHARS)
    return Suggestion(str(action), fix) if isinstance(action, str) else None
