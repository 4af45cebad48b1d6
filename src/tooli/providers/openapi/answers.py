"""Read the answer to a request: JSON, text, or a file.

application/json, …+json          the value
application/x-ndjson, jsonl       a list of the values
text/…, XML                       text
an image, audio, other bytes      content, up to 1 MB; or a file of any size
"""

from __future__ import annotations

import json

from tooli.core.result_types import Audio, Embedded, Image
from tooli.errors import DependencyError, Suggestion, ToolError
from tooli.inputs.urls import display_url
from tooli.providers.openapi.operations import is_json_type, is_readable
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.inputs.output import Output
    from tooli.providers.openapi.http_client import ApiAnswer

MAX_TEXT_BYTES = 32 << 20
"""Maximum size of an answer that is JSON or text."""
MAX_INLINE_BYTES = 1 << 20
"""Maximum size of other content that is a part of the result."""
MAX_FILE_BYTES = 4 << 30
"""Maximum size of an answer that is written to a file."""
_LINES = ("application/x-ndjson", "application/jsonl", "application/ndjson")
_MAX_CHECKED_ITEMS = 50


def read_answer(answer: ApiAnswer, output: Output | None = None) -> Any:
    """Return the value of an answer to a successful request."""
    if output is not None:
        return _write_file(answer, output)
    media_type = answer.media_type
    if answer.status in (204, 205, 304):
        return None
    if media_type and not is_readable(media_type):
        return _read_content(answer, media_type)
    data = answer.read(MAX_TEXT_BYTES)
    if not data:
        return None
    if is_json_type(media_type):
        return parse_json(answer, data)
    text = decode(answer, data)
    if media_type in _LINES:
        lines = [line for line in data.splitlines() if line.strip()]
        return [parse_json(answer, line) for line in lines]
    return text


def parse_json(answer: ApiAnswer, data: bytes) -> Any:
    """Return the JSON value of an answer; raise DependencyError if it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise DependencyError(
            f"{display_url(answer.url)} answered with invalid JSON.",
            details={"status": answer.status, "body": clean_text(decode(answer, data), 500)},
        ) from None


def decode(answer: ApiAnswer, data: bytes) -> str:
    """Return the text of an answer in its character set."""
    charset = str(answer.headers.get_content_charset() or "utf-8")
    try:
        return data.decode(charset, "replace")
    except (LookupError, UnicodeError):  # idna cannot replace characters
        return data.decode("utf-8", "replace")


def _read_content(answer: ApiAnswer, media_type: str) -> Any:
    try:
        data = answer.read(MAX_INLINE_BYTES)
    except ToolError as error:
        if "larger than the limit" in error.message:
            error.suggestion = Suggestion(
                "retry_with_modified_input",
                "Name a file in output_file, if the tool has this parameter.",
            )
        raise
    if not data:
        return None
    if media_type.startswith("image/"):
        return Image(data, media_type)
    if media_type.startswith("audio/"):
        return Audio(data, media_type)
    return Embedded(display_url(answer.url), data, media_type)


def _write_file(answer: ApiAnswer, output: Output) -> JsonObject:
    """Write the body of an answer to a file, and return what was written."""
    size = 0
    with output.open("wb") as file:
        for chunk in answer.chunks():
            size += len(chunk)
            if size > MAX_FILE_BYTES:
                raise DependencyError(
                    f"The answer of {display_url(answer.url)} is larger than the limit of "
                    f"{MAX_FILE_BYTES:,} bytes."
                )
            file.write(chunk)
    written: JsonObject = {"file": output.target, "bytes": size}
    return {**written, "media_type": answer.media_type} if answer.media_type else written


# ------------------------------------------------------------------ the schema


def find_mismatch(value: Any, schema: JsonObject, path: str = "") -> str | None:
    """Return where a value does not have the type that a schema says, or None.

    Only the beginning of a list is checked.
    """
    kinds = schema.get("type")
    if kinds is not None and not _has_type(value, kinds if is_list(kinds) else [kinds]):
        expected = " or ".join(kinds) if is_list(kinds) else kinds
        return f"{path or 'the result'} must be {expected}"
    return next(_mismatches(value, schema, path), None)


def _mismatches(value: Any, schema: JsonObject, path: str) -> Iterator[str]:
    """Yield where the parts of a value do not have their types."""
    if is_object(value):
        for name, part in schema.get("properties", {}).items():
            if name in value:
                found = find_mismatch(value[name], part, f"{path}.{name}".lstrip("."))
                if found is not None:
                    yield found
    elif is_list(value) and is_object(schema.get("items")):
        for index, item in enumerate(value[:_MAX_CHECKED_ITEMS]):
            found = find_mismatch(item, schema["items"], f"{path}[{index}]")
            if found is not None:
                yield found


def _has_type(value: object, kinds: Any) -> bool:
    names: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
    name = names.get(type(value))
    if name is None:
        name = "null" if value is None else "array" if is_list(value) else "object"
    if name in kinds or (name == "integer" and "number" in kinds):
        return True
    return isinstance(value, float) and value.is_integer() and "integer" in kinds
