"""The result of a program: its JSON, its JSON lines, or its text; and its failure as an error."""

from __future__ import annotations

import json
import os
import signal

from tooli.errors import (
    DependencyError,
    InputError,
    Interrupted,
    Suggestion,
    ToolError,
    error_class_for,
)
from tooli.providers.foreign_errors import own_code
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from tooli.core.protocols import JsonObject
    from tooli.providers.programs.program_process import FinishedProcess

MAX_MESSAGE_CHARS = 500
MAX_STDERR_CHARS = 4_000
"""How much of the end of stderr an error contains."""
MAX_JSON_DEPTH = 200
_USAGE_EXIT_CODES = (2, 64)


def read_result(
    finished: FinishedProcess, prog: str, warn: Callable[[str], object] | None = None
) -> Any:
    """Return the result of a process; raise its failure as an error.

    A JSON object or array is the result itself, and lines of JSON are a list. An envelope of tooli
    is opened. Everything else is text. If the program has written to stderr only, the result is
    that text.
    """
    text = _decode(finished.stdout)
    value: Any = None if finished.discarded_bytes else parse_json(text)
    if is_envelope(value):
        return _open_envelope(value)
    if finished.exit_code != 0:
        raise make_failure(finished, prog, text)
    if finished.discarded_bytes and warn is not None:
        total = len(finished.stdout) + finished.discarded_bytes
        warn(f"the output of {total:,} bytes was cut to {len(finished.stdout):,} bytes")
    if value is not None:
        return value
    errors = _decode(finished.stderr).strip()
    if not text.strip():
        return errors
    if errors and warn is not None:
        warn(f"{prog} wrote to stderr: {_end_of(errors, MAX_MESSAGE_CHARS)}")
    return text.rstrip("\r\n")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def parse_json(text: str) -> Any:
    """Return the JSON object or array that a text is, or the list of its JSON lines, or None."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return None
    found = _load(stripped)
    if found is not None:
        return found
    lines = [line for line in stripped.splitlines() if line.strip()]
    if len(lines) < 2:
        return None
    values = [_load(line) if line.lstrip()[:1] in ("{", "[") else None for line in lines]
    return None if None in values else values


def _load(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    is_structured = is_object(value) or is_list(value)
    return value if is_structured and _is_shallow(value) else None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [
            inner
            for item in level
            for inner in (item.values() if is_object(item) else item if is_list(item) else ())
        ]
        if not level:
            return True
    return False


# ------------------------------------------------------------------ envelopes


def is_envelope(value: object) -> bool:
    """True for the answer of a program that is made with tooli."""
    if not is_object(value) or type(value.get("ok")) is not bool:
        return False
    meta = value.get("meta")
    if not is_object(meta) or not isinstance(meta.get("tool"), str):
        return False
    return "result" in value if value["ok"] else is_object(value.get("error"))


def _open_envelope(envelope: JsonObject) -> Any:
    if envelope["ok"]:
        return envelope["result"]
    fields: JsonObject = envelope["error"]
    message = clean_text(str(fields.get("message", "")))
    code, details = own_code(str(fields.get("code", "")), fields.get("details"))
    error_class = error_class_for(code, str(fields.get("category", "")))
    field = fields.get("field")
    raise error_class(
        message or "The program failed.",
        code=code if len(code) == 5 and code[:1] == "E" else None,
        field=clean_text(field, 200) if isinstance(field, str) else None,
        is_retryable=fields.get("is_retryable") is True,
        details=details,
    )


# ------------------------------------------------------------------ failures


def make_failure(finished: FinishedProcess, prog: str, text: str) -> ToolError:
    """Return the error for a program that has failed."""
    code = finished.exit_code
    stderr = _decode(finished.stderr).strip()
    shown = stderr or text.strip()
    details: dict[str, object] = {"exit_code": code}
    if stderr:
        details["stderr"] = _end_of(stderr, MAX_STDERR_CHARS)
    if text.strip():
        details["stdout"] = _end_of(text, MAX_STDERR_CHARS)
    if finished.stopped:
        return Interrupted(f"{prog} was stopped.", details=details)
    if code < 0:
        return DependencyError(
            f"{prog} was ended by {_signal_name(-code)}.",
            details=details,
            suggestion=Suggestion("retry_later", "The program crashed or was killed."),
        )
    reason = _last_line(shown)
    if code in _USAGE_EXIT_CODES:
        return InputError(
            f"{prog} does not accept the arguments: {reason}" if reason else f"{prog} exited: 2",
            details=details,
            suggestion=Suggestion(
                "retry_with_modified_input", "Correct the argument that the message names."
            ),
        )
    end = f": {reason}" if reason else "."
    return DependencyError(
        f"{prog} failed with exit code {code}{end}",
        details=details,
        suggestion=Suggestion("fix", "See details.stderr for the last output of the program."),
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(text: str) -> str:
    lines = [line.strip(" \t│╭╮╰╯─|") for line in clean_text(text, 100_000).splitlines()]
    kept = [line for line in lines if line]
    return kept[-1][:MAX_MESSAGE_CHARS] if kept else ""


def _end_of(text: str, max_chars: int) -> str:
    cleaned = clean_text(text, 1 << 20)
    return cleaned if len(cleaned) <= max_chars else f"…{cleaned[1 - max_chars :]}"


# ------------------------------------------------------------------ environment

_QUIET = {
    "NO_COLOR": "1",
    "CLICOLOR": "0",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "TERM": "dumb",
    "COLUMNS": "200",
    "GIT_TERMINAL_PROMPT": "0",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONUNBUFFERED": "1",
    "TOOLI_OUTPUT": "json",
}
"""Variables that switch colors, pagers and questions off."""
_LOUD = ("FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "LS_COLORS", "GREP_COLOR", "GREP_COLORS")


def program_environment(extra: dict[str, str], removed: frozenset[str]) -> dict[str, str]:
    """Return the environment of a program: that of this process without `removed` variables."""
    kept = {name: value for name, value in os.environ.items() if name not in removed}
    for name in _LOUD:
        kept.pop(name, None)
    return {**kept, **_QUIET, **extra}
