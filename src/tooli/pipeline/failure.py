"""Convert exceptions to errors and outcomes. No other module does that."""

from __future__ import annotations

from tooli.core.call import Failed, Ok
from tooli.errors import (
    AuthError,
    CommandExited,
    ConflictError,
    DependencyError,
    InputError,
    InternalError,
    Interrupted,
    NotFoundError,
    TimeoutExceeded,
    ToolError,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import TypeVar

    from tooli.core.call import Outcome

    E = TypeVar("E", bound=Exception)

_BUILTIN_ERRORS: tuple[tuple[type[BaseException], type[ToolError], str | None], ...] = (
    (FileNotFoundError, NotFoundError, None),
    (FileExistsError, ConflictError, None),
    (PermissionError, AuthError, "E2030"),
    (TimeoutError, TimeoutExceeded, None),
    (ConnectionError, DependencyError, None),
)


def to_outcome(exc: BaseException, stage: str | None = None) -> Outcome:
    """Return the outcome of an exception: a failure, except for an exit with code 0.

    `stage` is the name of the stage that raised the exception. It is added to the details of an
    internal error.
    """
    if requested_exit_code(exc) == 0:
        return Ok(None)
    error = as_tool_error(exc)
    if stage is not None and error is not exc and type(error) is InternalError:
        error.details = {**(error.details or {}), "stage": stage}
    return Failed(error, has_started=not vars(exc).pop("is_not_started", False))


def as_tool_error(exc: BaseException) -> ToolError:
    """Return an exception as a ToolError, with the original as its cause."""
    if isinstance(exc, ToolError):
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
