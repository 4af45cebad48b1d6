"""The errors of scripts that have started: where they failed, and which calls had run."""

from __future__ import annotations

import re

from tooli.core.tool import cut_text
from tooli.errors import (
    Suggestion,
    TimeoutExceeded,
    ToolRuntimeError,
    error_class_for,
    restore_error,
)
from tooli.orchestrate.script_hints import hint_for

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_monty import MontyRuntimeError

    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError
    from tooli.orchestrate.inner_calls import InnerCall

MAX_LISTED_CALLS = 100
_MAX_FRAMES = 20
_MAX_TEXT_CHARS = 500
_LIMITS = re.compile(r"(time|memory|sleep|suspension)\w* limit|recursion depth|suspensions", re.I)

_PERMISSION_ERRORS = ("E1010", "E2101", "E2102")
"""A confirmation or an answer is missing: the script itself is not wrong."""


class DeadlineReached(Exception):  # noqa: N818  it is caught before anybody sees it
    """The time of the script is over."""


def failure_of(error: MontyRuntimeError, source: str, calls: Sequence[InnerCall]) -> ToolError:
    """Return the error for a script that ended with an exception.

    If the exception is that of a tool, the error has the code and the category of the tool's.
    """
    text = str(error)
    name, _, message = text.partition(": ")
    failed = _find_failed_call(message, calls)
    frames = _read_frames(error, source)
    if failed is not None:
        own = [frame for frame in frames if frame["line"] == failed.line]
        frames = [frame for frame in frames if frame not in own]
        frames += own[-1:] or [_frame(failed.line, None, source)]
    details: JsonObject = {**(frames[-1] if frames else {}), "exception": name}
    if len(frames) > 1:
        details["traceback"] = frames[-_MAX_FRAMES:]
    details |= _list_calls(calls)
    line = details.get("line")
    place = f" on line {line}" if line else ""
    if failed is not None:
        return _tool_failure(failed, place, details, calls)
    if _LIMITS.search(message):
        return limit_error(f"The script exceeds a limit{place}: {message}", calls, details)
    return ToolRuntimeError(
        f"The script failed{place}: {cut_text(text, _MAX_TEXT_CHARS)}",
        code="E4080",
        suggestion=Suggestion("retry_with_modified_input", hint_for(text) or _repeat_hint(calls)),
        details=details,
    )


def _tool_failure(
    failed: InnerCall, place: str, details: JsonObject, calls: Sequence[InnerCall]
) -> ToolError:
    """Return the error of a tool as the error of the script."""
    cause = failed.error
    assert cause is not None
    details["tool"] = failed.tool.name
    if cause.field is not None:
        details["field"] = cause.field
    if cause.details:
        details["error"] = cause.details
    fix = cause.suggestion.fix if cause.suggestion is not None else ""
    action = "ask_human" if cause.category == "human" else "retry_with_modified_input"
    hint = _repeat_hint(calls)
    if not _has_changed(calls) and (cause.code in _PERMISSION_ERRORS or action == "ask_human"):
        hint = "Nothing was changed."
    fields: JsonObject = {
        "code": cause.code,
        "category": cause.category,
        "message": f"{failed.tool.name}(){place}: {cause.message}",
        "suggestion": Suggestion(action, " ".join([fix, hint]).strip()).to_dict(),
        "is_retryable": cause.is_retryable and not _has_changed(calls),
        "details": details,
        "http_status": cause.http_status,
    }
    return restore_error(error_class_for(cause.code, cause.category), fields, cause.exit_code)


def limit_error(
    message: str,
    calls: Sequence[InnerCall],
    details: JsonObject | None = None,
    *,
    option: str = "",
) -> ToolError:
    """Return the error for a script that exceeds a limit. `option` is the one that raises it."""
    fix = f"Do less in one script{f', or raise the limit with {option}' if option else ''}."
    return ToolRuntimeError(
        message,
        code="E4081",
        suggestion=Suggestion(
            "retry_with_modified_input",
            f"{fix} {_repeat_hint(calls)}",
        ),
        details=_list_calls(calls) if details is None else details,
    )


def crash_error(message: str, calls: Sequence[InnerCall]) -> ToolError:
    """Return the error for a sandbox whose process died."""
    return limit_error(f"The process of the script ended: {cut_text(message, 300)}", calls)


def deadline_error(seconds: float, calls: Sequence[InnerCall]) -> ToolError:
    """Return the error for a script that did not end in time."""
    return TimeoutExceeded(
        f"The script did not finish within {seconds:.3g} s and was stopped.",
        suggestion=Suggestion(
            "retry_with_modified_input",
            f"Request less at a time, or set a longer timeout. {_repeat_hint(calls)}",
        ),
        is_retryable=not _has_changed(calls),
        details={"seconds": round(seconds, 3), **_list_calls(calls)},
    )


def value_error(message: str, calls: Sequence[InnerCall]) -> ToolError:
    """Return the error for a result that is not JSON."""
    return ToolRuntimeError(
        f"{message[:1].upper()}{cut_text(message[1:], _MAX_TEXT_CHARS)}.",
        code="E4080",
        suggestion=Suggestion(
            "retry_with_modified_input",
            f"Return dicts, lists, texts and numbers. {_repeat_hint(calls)}",
        ),
        details=_list_calls(calls),
    )


# ------------------------------------------------------------------ details


def _find_failed_call(message: str, calls: Sequence[InnerCall]) -> InnerCall | None:
    """Return the call whose exception ended the script: the sandbox passes on only its text."""
    return next((c for c in calls if c.error is not None and c.error_text == message), None)


def _read_frames(error: MontyRuntimeError, source: str) -> list[JsonObject]:
    """Return the lines of the script that were active, outermost first."""
    frames = [frame for frame in error.traceback() if frame.filename != "<string>"]
    found = [_frame(frame.line - 1, frame.column, source) for frame in frames[-_MAX_FRAMES:]]
    return [frame for i, frame in enumerate(found) if frame not in found[i + 1 :]]  # recursion


def _frame(line: int, column: int | None, source: str) -> JsonObject:
    lines = source.split("\n", line)
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    frame: JsonObject = {"line": line, "column": column, "source": cut_text(text.strip(), 200)}
    return {name: value for name, value in frame.items() if value is not None}


def _list_calls(calls: Sequence[InnerCall]) -> JsonObject:
    """Return the calls that had started. The first ones are left out if there are many."""
    started = [call for call in calls if call.state != "waiting"]
    if not started:
        return {}
    listed = [call.to_dict() for call in started[-MAX_LISTED_CALLS:]]
    left_out = len(started) - len(listed)
    return {"calls": listed, **({"calls_left_out": left_out} if left_out else {})}


def _has_changed(calls: Sequence[InnerCall]) -> bool:
    """True if a call that may change something has started."""
    return any([call.may_have_changed for call in calls])


def _repeat_hint(calls: Sequence[InnerCall]) -> str:
    if not _has_changed(calls):
        return "Nothing was changed: correct the script and run it again."
    return "`details.calls` lists the calls that have run: do not repeat those that changed data."
