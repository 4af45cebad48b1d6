"""Errors about the content of an input, and the results of commands that are piped into it."""

from __future__ import annotations

from tooli.core.tool import MAX_PROBLEMS, count_text, join_path
from tooli.errors import FormatError, Suggestion
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import TypeIs

    from tooli.core.protocols import JsonObject
    from tooli.inputs.source import Input
    from tooli.schema import ConversionError

_ENVELOPE_KEYS = {"ok", "result", "error", "meta"}
_JSONL_HINT = "Pass JSON, JSONL or CSV. A tooli command writes JSONL with --jsonl."


def build_format_error(
    source: Input,
    message: str,
    line: int | None = None,
    column: int | None = None,
    *,
    suggestion: Suggestion | None = None,
) -> FormatError:
    """Return the error for data that cannot be parsed, with its position."""
    source_name = "stdin" if source.is_stdin else source.display_name
    line_text = f", line {line}" if line is not None else ""
    details: JsonObject = {"source": source.display_name}
    if line is not None:
        details["line"] = line
    if column is not None:
        details["column"] = column
    return FormatError(
        f"{source_name}{line_text}: {message}",
        field=source.field,
        details=details,
        suggestion=suggestion,
    )


def build_syntax_error(
    source: Input, message: str, line: int | None = None, column: int | None = None
) -> FormatError:
    """Return the error for data in a format that is not expected, with the formats that are."""
    suggestion = Suggestion("fix", _JSONL_HINT) if source.is_stdin else None
    return build_format_error(source, message, line, column, suggestion=suggestion)


def build_validation_error(
    source: Input, error: ConversionError, line: int | None = None
) -> FormatError:
    """Return the error for data that does not match the annotated type."""
    reasons = [
        (join_path(*reason.location), reason.message) for reason in (error, *error.other_errors)
    ]
    listing = [
        {"field": field, "message": message} if field else {"message": message}
        for field, message in reasons[:MAX_PROBLEMS]
    ]
    field, first = reasons[0]
    message_text = f"{field!r}: {first}" if field else first
    more = count_text(len(reasons), is_minimum=error.has_more)
    format_error = build_format_error(source, message_text + more, line)
    details: JsonObject = {**(format_error.details or {}), "errors": listing}
    if len(reasons) > len(listing):
        details |= {"error_count": len(reasons), "is_minimum_count": error.has_more}
    format_error.details = details
    return format_error


# ------------------------------------------------------------------ results of other commands


def is_envelope(value: Any) -> TypeIs[JsonObject]:
    """True if a value is the whole answer of a command, with `ok`, `meta`, and result or error."""
    if not is_object(value) or not value.keys() <= _ENVELOPE_KEYS:
        return False
    is_ok, meta = value.get("ok"), value.get("meta")
    return (
        isinstance(is_ok, bool)
        and is_object(meta)
        and isinstance(meta.get("tool"), str)
        and ("error" in value) is not is_ok
    )


def unwrap_envelope(source: Input, envelope: JsonObject, line: int | None = None) -> Any:
    """Return the result in the answer of a command.

    Adds a warning if the result is incomplete. Raises FormatError if the command failed.
    """
    meta = envelope["meta"]
    if not envelope["ok"]:
        raise _failed_command_error(source, envelope, line)
    page, truncated = meta.get("page"), meta.get("truncated")
    if truncated is not None or (is_object(page) and "next_cursor" in page):
        result = envelope.get("result")
        count = f"{len(result)} records" if is_list(result) else "a part"
        remedy = "with --jsonl" if truncated is not None else "with a larger --limit"
        source.warn(
            f"The input contains only {count} of the result of {meta['tool']}. Run that command "
            f"{remedy} to pass more of it."
        )
    return envelope.get("result")


def _failed_command_error(source: Input, envelope: JsonObject, line: int | None) -> FormatError:
    """Return the error for an input that is the error of the command that wrote it."""
    reported = envelope["error"] if is_object(envelope["error"]) else {}
    upstream = {key: str(reported[key])[:500] for key in ("code", "message") if key in reported}
    name = envelope["meta"]["tool"]
    reason = " ".join(upstream.values())
    error = build_format_error(
        source,
        f"{name} failed and wrote this input: {reason}",
        line,
        suggestion=Suggestion("fix", f"Correct the call of {name}, then repeat both commands."),
    )
    error.details = {**(error.details or {}), "error": upstream}
    return error


def result_rows(result: Any) -> list[Any]:
    """Return the records of a result: the items of a list, or the one object."""
    if result is None:
        return []
    return list(result) if is_list(result) else [result]
