"""Convert exceptions to errors and outcomes. No other module does that."""

from __future__ import annotations

from tooli.core.call import Failed, Ok
from tooli.errors import (
    CATEGORIES,
    AuthError,
    CommandExited,
    ConflictError,
    DependencyError,
    InputError,
    InternalError,
    Interrupted,
    NotFoundError,
    Suggestion,
    TimeoutExceeded,
    ToolError,
    plain_text,
    read_suggestion,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, TypeVar

    from tooli.core.call import Call, Outcome

    E = TypeVar("E", bound=Exception)

MULTI_STATUS = 207
"""The only HTTP status below 400 that an error may have: some items succeeded."""

_BUILTIN_ERRORS: tuple[tuple[type[BaseException], type[ToolError], str | None], ...] = (
    (FileNotFoundError, NotFoundError, None),
    (FileExistsError, ConflictError, None),
    (PermissionError, AuthError, "E2030"),
    (TimeoutError, TimeoutExceeded, None),
    (ConnectionError, DependencyError, None),
)


def to_outcome(exc: BaseException, stage: str | None = None, call: Call | None = None) -> Outcome:
    """Return the outcome of an exception: a failure, except for an exit with code 0.

    `stage` is the name of the stage that raised the exception. It is added to the details of an
    internal error. If `call` is the call of a server, an unexpected error is logged and masked
    here, so that no stage stores or returns the text of the exception.
    """
    if requested_exit_code(exc) == 0:
        return Ok(None)
    error = as_tool_error(exc if call is None else explain_end_of_input(exc, call))
    if stage is not None and error is not exc and type(error) is InternalError:
        error.details = {**(error.details or {}), "stage": stage}
    has_started = not vars(exc).pop("is_not_started", False)
    items = vars(exc).get("collected_items")
    if isinstance(exc, Exception):  # the caller of a nested call may raise the same error again
        vars(exc).pop("collected_items", None)
    if call is not None and call.request is not None:
        error = call.request.check_error(error, call)
    return Failed(error, has_started, items)


def explain_end_of_input(exc: BaseException, call: Call) -> BaseException:
    """Return E1038 if the function has asked a question and stdin has ended; else the exception.

    On a command line, the error is the one that Typer reports.
    """
    cause = exc.__context__ if _is_typer_exception(exc, "Abort") else exc
    is_end = isinstance(cause, EOFError) and str(cause) in ("", _END_OF_INPUT)
    if not is_end or call.caller.owns_process:
        return exc
    from tooli.pipeline.call_questions import end_of_input_error

    return end_of_input_error(exc, call)


_END_OF_INPUT = "EOF when reading a line"
"""Text of the EOFError of `input`. That of `getpass` has none."""


def as_tool_error(exc: BaseException) -> ToolError:
    """Return an exception as a ToolError, with the original as its cause."""
    if isinstance(exc, ToolError):
        if not _is_valid(exc):
            repair_error(exc)
        return exc
    error = _translate(exc)
    error.__cause__ = exc
    error.is_translated = True
    return error


def mark_not_started(exc: E) -> E:
    """Mark an exception that is raised before the function's own code starts.

    For example, an input cannot be read, or a plan has changed. `to_outcome` removes the mark and
    sets `has_started=False`. If outer code raises the same exception again, it is not marked,
    because that code may have had effects.
    """
    vars(exc)["is_not_started"] = True
    return exc


def is_unexpected(error: ToolError) -> bool:
    """True if the error was made from an exception that the author did not raise for the caller.

    False for a ToolError that the author raised, the exceptions of Typer, exits and Ctrl-C.
    """
    cause = error.__cause__
    return (
        error.is_translated
        and cause is not None
        and is_translated_error(error, cause)
        and not isinstance(error, (InputError, CommandExited, Interrupted))
    )


def is_translated_error(error: ToolError, cause: BaseException) -> bool:
    """True if the error was made from an exception that is not a ToolError."""
    return not isinstance(cause, ToolError) and bool(getattr(error, "is_translated", False))


def _translate(exc: BaseException) -> ToolError:
    code = requested_exit_code(exc)
    if code is not None:
        message = exc.code if isinstance(exc, SystemExit) and isinstance(exc.code, str) else None
        return CommandExited(message or f"The command ended with exit code {code}.", exit_code=code)
    if _is_typer_exception(exc, "Abort") and isinstance(exc.__cause__, KeyboardInterrupt):
        exc = exc.__cause__
    if isinstance(exc, KeyboardInterrupt):
        return Interrupted(_safe_str(exc) or "Interrupted.", code=getattr(exc, "error_code", None))
    if _is_typer_exception(exc, "Abort"):
        return CommandExited("Aborted.", exit_code=1)
    if _is_typer_exception(exc, "UsageError"):
        param = getattr(exc, "param", None)
        return InputError(_click_message(exc), code="E1003", field=getattr(param, "name", None))
    if _is_typer_exception(exc, "ClickException") or _is_typer_exception(exc, "TyperException"):
        return CommandExited(_click_message(exc), exit_code=getattr(exc, "exit_code", 1))
    for builtin, error_class, error_code in _BUILTIN_ERRORS:
        if isinstance(exc, builtin):
            return error_class(_os_message(exc), code=error_code)
    if isinstance(exc, Exception):
        text = _safe_str(exc)
        name = type(exc).__name__
        return InternalError(f"{name}: {text}" if text else name)
    return Interrupted(f"Stopped by {type(exc).__name__}.")


def requested_exit_code(exc: BaseException) -> int | None:
    """Return the exit code of `typer.Exit` and `sys.exit`; None for other exceptions."""
    if isinstance(exc, SystemExit):
        if exc.code is None:
            return 0
        return exc.code & 0xFF if isinstance(exc.code, int) else 1
    if _is_typer_exception(exc, "Exit"):
        return int(getattr(exc, "exit_code", 0)) & 0xFF
    return None


def _is_typer_exception(exc: BaseException, name: str) -> bool:
    """True for the exception of that name in Typer or Click. Neither is imported."""
    return any(
        cls.__name__ == name and cls.__module__.partition(".")[0] in ("typer", "click")
        for cls in type(exc).__mro__
    )


def _click_message(exc: BaseException) -> str:
    format_message = getattr(exc, "format_message", None)
    return str(format_message()) if format_message is not None else _safe_str(exc)


def _safe_str(exc: BaseException) -> str:
    """Return the text of an exception, or an empty string if `__str__` fails."""
    try:
        return str(exc)
    except Exception:
        return ""


def _os_message(exc: BaseException) -> str:
    if isinstance(exc, OSError) and exc.filename is not None and exc.strerror:
        return f"{exc.strerror}: {exc.filename!s}"
    return _safe_str(exc) or type(exc).__name__


def with_item_count(exc: Exception, count: int) -> Exception:
    """Return the exception as a ToolError whose details count the items before the failure.

    Returns the exception itself if there were no items, or if it is an exit with code 0.
    """
    if count == 0 or requested_exit_code(exc) == 0:
        return exc
    error = as_tool_error(exc)
    error.details = {**(error.details or {}), "items_before_failure": count}
    return error


# ------------------------------------------------------------------ errors with invalid fields

_SUGGESTION_TYPES = (type(None), Suggestion)
_DETAILS_TYPES = (type(None), dict)


def repair_error(error: ToolError) -> None:
    """Correct the fields of an error that have an invalid type or value, and add warnings.

    An app can make such an error: `details="text"`, `exit_code="2"`, a subclass that does not call
    `ToolError.__init__`. The error itself must reach the caller.
    """
    warnings: list[str] = []
    name = type(error).__name__
    error.message = plain_text(error.message) or " ".join(
        [plain_text(argument) or "" for argument in error.args]
    )
    error.message = error.message or name
    error.field = plain_text(error.field)
    error.is_retryable = bool(error.is_retryable)
    if type(error.suggestion) not in _SUGGESTION_TYPES:
        error.suggestion = read_suggestion(error.suggestion)
        if error.suggestion is None:
            warnings.append(f"{name}(suggestion=…): must be a Suggestion, a text or a dict")
    if error.suggestion is not None:
        warnings += error.suggestion.warnings
    details: Any = error.details
    if type(details) not in _DETAILS_TYPES:
        if hasattr(details, "keys"):
            error.details = dict(details)
        else:
            warnings.append(f"{name}(details=…): must be a dict")
            error.details = {"value": details}
    _repair_codes(error, name, warnings)
    error.warnings = [*error.warnings, *[line for line in warnings if line not in error.warnings]]


def _repair_codes(error: ToolError, name: str, warnings: list[str]) -> None:
    """Correct the code, the category, the exit code and the HTTP status of an error."""
    code = plain_text(error.code) or ""
    if not _is_code(code):
        warnings.append(f"{name}(code={code[:60]!r}): must have no spaces, such as E3000")
        own_class = next(cls for cls in type(error).__mro__ if cls.__module__ == "tooli.errors")
        code = getattr(own_class, "code", "E5000")
    error.code = code
    category = str(getattr(error.category, "value", error.category)).lower()
    if category not in CATEGORIES:
        warnings.append(f"{name}(category={category[:60]!r}): must be {', '.join(CATEGORIES)}")
        category = "internal"
    error.category = category
    for field, low, high, default in (("exit_code", 1, 255, 70), ("http_status", 400, 599, 500)):
        value = getattr(error, field)
        if field == "http_status" and value == MULTI_STATUS:
            continue
        if type(value) is not int or not low <= value <= high:
            text = (plain_text(value) or "None")[:60]
            warnings.append(f"{name}({field}={text}): must be a number from {low} to {high}")
            setattr(error, field, default)


def _is_valid(error: ToolError) -> bool:
    return (
        type(error.message) is str
        and bool(error.message)
        and (error.field is None or type(error.field) is str)
        and type(error.suggestion) in _SUGGESTION_TYPES
        and (error.suggestion is None or not error.suggestion.warnings)
        and type(error.details) in _DETAILS_TYPES
        and type(error.code) is str
        and _is_code(error.code)
        and error.category in CATEGORIES
        and type(error.category) is str
        and type(error.is_retryable) is bool
        and type(error.exit_code) is int
        and 0 < error.exit_code < 256
        and type(error.http_status) is int
        and (400 <= error.http_status <= 599 or error.http_status == MULTI_STATUS)
    )


def _is_code(code: str) -> bool:
    return 0 < len(code) <= 100 and code.isascii() and code.isprintable() and " " not in code
