"""Encode outcomes as JSON for the idempotency store, and decode them for a replay.

Decoding JSON never executes code, unlike pickle. A replay returns what the first call returned.
`Page`, `Next` and content keep their types, and other values become JSON types. For a Python
caller, these are converted back to the tool's return type if possible. Secrets of a call are
redacted before its outcome is stored, because a replay does not know them.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from types import GenericAlias

from tooli.core import Record
from tooli.core.call import Failed, Ok
from tooli.core.result_types import Content, Next, Page, is_content
from tooli.core.tool import MISSING
from tooli.errors import ToolError, error_class_for, restore_error
from tooli.schema.tool_reader import return_annotation
from tooli.text.json_encoder import encode, to_json_and_value
from tooli.text.jsonable import MAX_JSON_DEPTH, is_list, is_object
from tooli.text.redact import RecordRedactor

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.call import Call, Outcome, RedactionPolicy
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool

MAX_OUTCOME_BYTES = 16 << 20
"""Maximum size of a stored outcome."""
NOT_STORED = b'{"large":true}'
"""Stored instead of an outcome that is too large."""
_TOOL_DATA = (
    *("value", "items", "next_cursor", "arguments", "why", "texts", "printed"),
    "fields",  # of an error
)
"""Names in a payload whose values come from the tool and may contain secrets."""


class StoredOutcome(Record):
    """A decoded outcome."""

    outcome: Outcome | None  # None if it was too large
    printed: str = ""
    warnings: tuple[str, ...] = ()


def encode_outcome(
    redaction: Call | RedactionPolicy, outcome: Outcome, printed: str, warnings: list[str]
) -> tuple[bytes, Outcome]:
    """Return the encoded outcome, and the outcome to return to the caller.

    Encoding consumes iterators. So the returned outcome has a copy of the value if the value is not
    plain JSON. In this case a line for each value that JSON cannot represent is added to
    `warnings`.
    """
    all_warnings = list(warnings)
    if isinstance(outcome, Failed):
        payload: JsonObject = {"failed": _encode_error(outcome.error)}
        if outcome.value is not None:
            payload["value"] = to_json_and_value(outcome.value, all_warnings)[1]
    else:
        value, payload = _encode_value(outcome.value, all_warnings)
        if value is not outcome.value:
            outcome, warnings[:] = Ok(value), all_warnings
    if printed:
        payload["printed"] = printed
    subject = "error" if isinstance(outcome, Failed) else "result"
    data = encode(_finish_payload(payload, all_warnings, subject, RecordRedactor(redaction)), [])
    return (data if len(data) <= MAX_OUTCOME_BYTES else NOT_STORED), outcome


def encode_items(
    redaction: Call | RedactionPolicy, items: list[bytes] | None, warnings: list[str]
) -> bytes:
    """Return the items of a stream as bytes. `items` is None if there were too many."""
    if items is None:
        return NOT_STORED
    redactor = RecordRedactor(redaction)
    if redactor.has_secrets:
        payload = {"value": [_parse_json(item) for item in items]}
        return encode(_finish_payload(payload, list(warnings), "result", redactor), [])
    end = b',"warnings":' + encode(warnings, []) + b"}" if warnings else b"}"
    return b'{"value":[' + b",".join(items) + b"]" + end


def _finish_payload(
    payload: JsonObject, warnings: list[str], subject: str, redactor: RecordRedactor
) -> JsonObject:
    """Return the payload without secrets, and with the warnings.

    If secrets were removed, a warning about them is added.
    """
    payload = _redact_payload(payload, redactor)
    redactor.add_warnings(warnings, subject)
    return {**payload, "warnings": redactor.redact(warnings)} if warnings else payload


def _redact_payload(part: object, redactor: RecordRedactor) -> Any:
    """Redact the data of the tool only. Decoding needs the other names and values."""
    if is_list(part):
        return [_redact_payload(item, redactor) for item in part]
    if not is_object(part) or not redactor.has_secrets:
        return part
    return {
        name: redactor.redact_error(item)
        if name == "fields"
        else redactor.redact(item)
        if name in _TOOL_DATA
        else _redact_payload(item, redactor)
        for name, item in part.items()
    }


def decode_outcome(data: bytes) -> StoredOutcome:
    """Decode a stored outcome; raise ValueError if it is invalid."""
    try:
        payload = _parse_json(data)
        if "failed" in payload:
            error = _decode_error(payload["failed"])
            outcome: Outcome | None = Failed(error, value=payload.get("value"))
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


def _encode_value(value: Any, warnings: list[str]) -> tuple[Any, JsonObject]:
    """Return the value or a copy of it, and the JSON object that represents it."""
    kind = value.__class__
    if kind is Page:
        _, items = to_json_and_value(value.items, warnings)
        page = Page(items, next_cursor=value.next_cursor, total=value.total)
        return page, {
            "page": {"items": items, "next_cursor": value.next_cursor, "total": value.total}
        }
    if kind is Next:
        value.result, result = _encode_value(value.result, warnings)
        steps = [
            {"command": step.command, "arguments": step.arguments, "why": step.why}
            for step in value.steps
        ]
        return value, {"next": {"result": result, "steps": steps}}
    if is_content(value):
        listed = kind in (list, tuple)
        blocks = [_encode_content(item) for item in (value if listed else (value,))]
        return value, {"shown": blocks, "listed": listed}
    _, copy = to_json_and_value(value, warnings)
    return (value if _is_json(value) else copy), {"value": copy}


def _is_json(value: object, depth_left: int = MAX_JSON_DEPTH) -> bool:
    """True if a value consists of JSON types and NaN, so that it can be read repeatedly.

    Returns False for values that are nested too deeply, because they may contain themselves. The
    search stops at the first other type. An object that occurs several times is searched each time.
    """
    if is_object(value):
        return depth_left > 0 and all(_is_json(item, depth_left - 1) for item in value.values())
    if is_list(value):
        return depth_left > 0 and all(_is_json(item, depth_left - 1) for item in value)
    return value is None or isinstance(value, (str, int, float))


def _decode_value(payload: JsonObject) -> Any:
    if "page" in payload:
        page = payload["page"]
        return Page(page["items"], next_cursor=page["next_cursor"], total=page["total"])
    if "next" in payload:
        result = Next(_decode_value(payload["next"]["result"]))
        for step in payload["next"]["steps"]:
            result.then(step["command"], step["arguments"], why=step["why"])
        return result
    if "shown" in payload:
        items = [_decode_content(block) for block in payload["shown"]]
        return items if payload["listed"] else items[0]
    return payload["value"]


def _encode_content(item: object) -> JsonObject:
    if not isinstance(item, Content):
        return {"value": item}
    parts = {name: getattr(item, name) for name in type(item).__match_args__}
    data = {name: part for name, part in parts.items() if isinstance(part, bytes)}
    return {
        "kind": type(item).__name__,
        "texts": {name: part for name, part in parts.items() if name not in data},
        "base64": {name: b2a_base64(part, newline=False).decode() for name, part in data.items()},
    }


def _decode_content(block: JsonObject) -> Any:
    if "value" in block:
        return block["value"]
    classes = {cls.__name__: cls for cls in Content.__subclasses__()}
    data = {name: a2b_base64(text) for name, text in block["base64"].items()}
    return classes[block["kind"]](**block["texts"], **data)


def restore_type(tool: Tool, value: object) -> Any:
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

_ERROR_CODES = ("code", "category", "is_retryable")
"""Fields of an error that contain no text of the tool."""


def _encode_error(error: ToolError) -> JsonObject:
    kind, fields = type(error), error.to_dict()
    return {
        "kind": f"{kind.__module__}:{kind.__qualname__}",
        **{name: fields.pop(name) for name in _ERROR_CODES},
        "fields": fields,
        "exit_code": error.exit_code,
        "http_status": error.http_status,
    }


def _decode_error(parts: JsonObject) -> ToolError:
    fields = {**parts, **parts["fields"]}
    kind = _find_error_class(parts["kind"]) or error_class_for(fields["code"], fields["category"])
    error = restore_error(kind, fields, parts["exit_code"])
    error.is_translated = True
    return error


def _find_error_class(name: str) -> type[ToolError] | None:
    classes = [ToolError]
    for cls in classes:
        if f"{cls.__module__}:{cls.__qualname__}" == name:
            return cls
        classes.extend(cls.__subclasses__())
    return None
