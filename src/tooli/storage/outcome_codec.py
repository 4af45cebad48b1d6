"""Encode outcomes as JSON for the idempotency store, and decode them for a replay.

Decoding JSON never executes code, unlike pickle. A replay returns what the first call returned.
`Page`, `Next` and content keep their types, and other values become JSON types.
Python callers get values of the tool's return type. Secrets of a call are redacted before its
outcome is stored, because a replay does not know them.
"""

from __future__ import annotations

import sys
from binascii import a2b_base64, b2a_base64
from types import GenericAlias

from tooli.core.call import Failed, Ok
from tooli.core.handoffs import Next
from tooli.core.page import Page
from tooli.core.record import Record
from tooli.core.tool import MISSING
from tooli.errors import Suggestion, ToolError, error_class_for
from tooli.schema.tool_reader import return_annotation
from tooli.text.json_encoder import encode, measure_json
from tooli.text.jsonable import MAX_JSON_DEPTH, is_list, is_object
from tooli.text.redact import RecordRedactor

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.call import Call, Outcome
    from tooli.core.content import Content
    from tooli.core.tool import Tool

MAX_OUTCOME_BYTES = 16 << 20
"""Maximum size of a stored outcome."""
NOT_STORED = b'{"large":true}'
"""Stored instead of an outcome that is too large."""


class StoredOutcome(Record):
    """A decoded outcome."""

    outcome: Outcome | None  # None if it was too large
    printed: str = ""
    warnings: tuple[str, ...] = ()


def encode_outcome(
    outcome: Outcome, printed: str, warnings: list[str], call: Call
) -> tuple[bytes, Outcome]:
    """Return the outcome of a call as bytes, and the outcome to return to the caller.

    Encoding consumes iterators. So the second outcome is a copy if the value is not plain JSON, and
    then `warnings` gets a line for each value that JSON cannot hold.
    """
    all_warnings, redactor = list(warnings), RecordRedactor(call)
    if isinstance(outcome, Failed):
        payload: dict[str, Any] = {"failed": _encode_error(outcome.error, redactor)}
    else:
        value, payload = _encode_value(outcome.value, all_warnings, redactor)
        if value is not outcome.value:
            outcome, warnings[:] = Ok(value), all_warnings
    if printed:
        payload["printed"] = redactor.value(printed)
    _add_warnings(
        payload, all_warnings, redactor, "error" if isinstance(outcome, Failed) else "result"
    )
    data = encode(payload, [])
    return (data if len(data) <= MAX_OUTCOME_BYTES else NOT_STORED), outcome


def encode_items(items: list[bytes] | None, warnings: list[str], call: Call) -> bytes:
    """Return the items of a stream as bytes. `items` is None if there were too many."""
    if items is None:
        return NOT_STORED
    redactor = RecordRedactor(call)
    if redactor.is_active:
        items = [encode(redactor.value(_parse_json(item)), []) for item in items]
    rest: dict[str, Any] = {}
    _add_warnings(rest, warnings, redactor, "result")
    return b'{"value":[' + b",".join(items) + b"]" + (b"," + encode(rest, [])[1:] if rest else b"}")


def _add_warnings(
    payload: dict[str, Any], warnings: list[str], redactor: RecordRedactor, subject: str
) -> None:
    """Store the warnings, and one about redacted secrets."""
    warnings = list(warnings)
    redactor.add_warnings(warnings, subject)
    if warnings:
        payload["warnings"] = redactor.value(warnings)


def decode_outcome(data: bytes) -> StoredOutcome:
    """Decode a stored outcome; raise ValueError if it is invalid."""
    try:
        payload = _parse_json(data)
        if "failed" in payload:
            outcome: Outcome | None = Failed(_decode_error(payload["failed"]))
        elif "large" in payload:
            outcome = None
        else:
            outcome = Ok(_decode_value(payload))
        warnings = tuple(payload.get("warnings", ()))
        return StoredOutcome(outcome, payload.get("printed", ""), warnings)
    except (KeyError, TypeError, AttributeError, RecursionError) as failure:
        raise ValueError(str(failure)) from failure


def _parse_json(data: bytes) -> Any:
    from json import loads  # slow to import, and only replays and secrets need it

    return loads(data)


# ------------------------------------------------------------------ values


def _encode_value(
    value: Any, warnings: list[str], redactor: RecordRedactor
) -> tuple[Any, dict[str, Any]]:
    """Return the value or a copy of it, and the JSON object that represents it."""
    kind = value.__class__
    if kind is Page:
        _, items = measure_json(value.items, warnings)
        page = Page(items, next_cursor=value.next_cursor, total=value.total)
        rest = {"next_cursor": redactor.value(value.next_cursor), "total": value.total}
        return page, {"page": {"items": redactor.value(items), **rest}}
    if kind is Next:
        result, parts = _encode_value(value.result, warnings, redactor)
        value.result = result
        steps = [
            [
                step.command,
                redactor.value(step.arguments),
                redactor.value(step.why),
            ]
            for step in value.steps
        ]
        return value, {"next": {"result": parts, "steps": steps}}
    if _is_content(value):
        listed = kind in (list, tuple)
        blocks = [_encode_content(item, redactor) for item in (value if listed else (value,))]
        return value, {"shown": blocks, "listed": listed}
    _, copy = measure_json(value, warnings)
    return (value if _is_json(value) else copy), {"value": redactor.value(copy)}


def _is_json(value: Any, depth_left: int = MAX_JSON_DEPTH) -> bool:
    """True if a value consists of JSON types and NaN, so that it can be read repeatedly.

    Values that are nested too deeply return False, because they may contain themselves. The search
    stops at the first other type, because a part that occurs many times is searched many times.
    """
    if is_object(value):
        return depth_left > 0 and all(_is_json(item, depth_left - 1) for item in value.values())
    if is_list(value):
        return depth_left > 0 and all(_is_json(item, depth_left - 1) for item in value)
    return value is None or isinstance(value, (str, int, float))


def _decode_value(payload: dict[str, Any]) -> Any:
    if "page" in payload:
        page = payload["page"]
        return Page(page["items"], next_cursor=page["next_cursor"], total=page["total"])
    if "next" in payload:
        result = Next(_decode_value(payload["next"]["result"]))
        for command, arguments, reason in payload["next"]["steps"]:
            result.then(command, arguments, why=reason)
        return result
    if "shown" in payload:
        items = [_decode_content(*block) for block in payload["shown"]]
        return items if payload["listed"] else items[0]
    return payload["value"]


def _is_content(value: Any) -> bool:
    content_module = sys.modules.get("tooli.core.content")
    return content_module is not None and content_module.is_content(value)


def _encode_content(item: Any, redactor: RecordRedactor) -> list[Any]:
    if not isinstance(item, _content_class()):
        return ["", redactor.value(item)]
    fields: dict[str, Any] = {}
    for name in type(item).__match_args__:
        part = getattr(item, name)
        raw = isinstance(part, bytes)
        fields[name] = [b2a_base64(part, newline=False).decode()] if raw else redactor.value(part)
    return [type(item).__name__, fields]


def _decode_content(kind: str, fields: Any) -> Any:
    if not kind:
        return fields
    classes = {cls.__name__: cls for cls in _content_class().__subclasses__()}
    parts = {name: a2b_base64(part[0]) if is_list(part) else part for name, part in fields.items()}
    return classes[kind](**parts)


def _content_class() -> type[Content]:
    from tooli.core.content import Content  # imports base64 and re, which few results need

    return Content


def restore_type(tool: Tool, value: Any) -> Any:
    """Return a value converted to the tool's return type, or unchanged if that fails."""
    cached = _validators.get(tool.id)
    if cached is None or cached[0] is not tool.returns:
        cached = _validators[tool.id] = (tool.returns, _make_validator(tool))
    validate = cached[1]
    if validate is None or value is None:
        return value
    text = encode(value, [])
    try:
        restored = validate(text)
        return restored if encode(restored, []) == text else value
    except Exception:  # the tool returned another type, or the type cannot be validated
        return value


_validators: dict[str, tuple[Any, Callable[[bytes], Any] | None]] = {}


def _make_validator(tool: Tool) -> Callable[[bytes], Any] | None:
    """Return a function that parses JSON as the return type; None if that is a JSON type."""
    annotation = return_annotation(tool)
    name = getattr(getattr(annotation, "__origin__", None), "__name__", "")
    if name in ("Generator", "Iterator", "Iterable", "AsyncGenerator", "AsyncIterator"):
        annotation = GenericAlias(list, annotation.__args__[:1])
    if _is_json_type(annotation):
        return None
    from tooli.schema.pydantic_bridge import get_type_adapter

    try:
        return get_type_adapter(annotation).validate_json
    except Exception:  # pydantic does not support the type
        return None


def _is_json_type(annotation: Any) -> bool:
    if annotation in (MISSING, None, type(None), str, int, float, bool, dict, list):
        return True
    is_container = getattr(annotation, "__origin__", None) in (dict, list)
    return is_container and all([_is_json_type(part) for part in annotation.__args__])


# ------------------------------------------------------------------ errors


def _encode_error(error: ToolError, redactor: RecordRedactor) -> dict[str, Any]:
    kind, fields = type(error), redactor.error_fields(error.to_dict())
    return {
        "kind": f"{kind.__module__}:{kind.__qualname__}",
        "fields": fields,
        "exit_code": error.exit_code,
        "http_status": error.http_status,
    }


def _decode_error(parts: dict[str, Any]) -> ToolError:
    fields = parts["fields"]
    kind = _find_error_class(parts["kind"]) or error_class_for(fields["code"], fields["category"])
    error = kind.__new__(kind)
    suggestion = fields.get("suggestion")
    ToolError.__init__(
        error,
        fields["message"],
        code=fields["code"],
        field=fields.get("field"),
        suggestion=Suggestion.from_dict(suggestion) if suggestion else None,
        is_retryable=fields["is_retryable"],
        details=fields.get("details"),
        exit_code=parts["exit_code"],
    )
    error.http_status = parts["http_status"]
    error.is_translated = True
    if error.category != fields["category"]:  # the class is not defined in this process
        error.__dict__["category"] = fields["category"]
    return error


def _find_error_class(name: str) -> type[ToolError] | None:
    classes = [ToolError]
    for cls in classes:
        if f"{cls.__module__}:{cls.__qualname__}" == name:
            return cls
        classes.extend(cls.__subclasses__())
    return None
