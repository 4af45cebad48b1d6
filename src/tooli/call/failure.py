"""Any exception, as something a caller can read: the one place where that happens."""

from __future__ import annotations

from tooli.call.model import Failed, Ok
from tooli.errors import (
    AuthError,
    ConflictError,
    DependencyError,
    Ended,
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

    from tooli.call.model import Outcome

    E = TypeVar("E", bound=Exception)

_FAMILIAR: tuple[tuple[type[BaseException], type[ToolError], str | None], ...] = (
    (FileNotFoundError, NotFoundError, None),
    (FileExistsError, ConflictError, None),
    (PermissionError, AuthError, "E2030"),
    (TimeoutError, TimeoutExceeded, None),
    (ConnectionError, DependencyError, None),
)


def outcome_of(exc: BaseException) -> Outcome:
    """What an exception makes of a call: a failure, unless it only says that all is well."""
    code = exit_request(exc)
    if code == 0:
        return Ok(None)
    return Failed(as_tool_error(exc), begun=not vars(exc).pop("unrun", False))


def as_tool_error(exc: BaseException) -> ToolError:
    """Any exception, as an error of the tree; the original stays its cause."""
    if isinstance(exc, ToolError):
        return exc
    error = _translate(exc)
    error.__cause__ = exc
    error.translated = True
    return error


def unrun(exc: E) -> E:
    """The exception, marked as one that came before the function's own code: nothing was done.

    For those that arise where the function is already called for: its inputs cannot be read, the
    plan that it is held to has moved. The mark ends with the call that failed so: whoever raises
    the same error further up may well have done something.
    """
    vars(exc)["unrun"] = True
    return exc


def is_translation(error: ToolError, cause: BaseException) -> bool:
    """Whether the error only stands for an exception that was not one of the tree."""
    return not isinstance(cause, ToolError) and bool(getattr(error, "translated", False))


def _translate(exc: BaseException) -> ToolError:
    code = exit_request(exc)
    if code is not None:
        said = exc.code if isinstance(exc, SystemExit) and isinstance(exc.code, str) else None
        return Ended(said or f"The command ended with exit code {code}.", exit_code=code)
    if _from_typer(exc, "Abort") and isinstance(exc.__cause__, KeyboardInterrupt):
        exc = exc.__cause__
    if isinstance(exc, KeyboardInterrupt):
        return Interrupted(_text(exc) or "Interrupted.", code=getattr(exc, "error_code", None))
    if _from_typer(exc, "Abort"):
        return Ended("Aborted.", exit_code=1)
    if _from_typer(exc, "UsageError"):
        param = getattr(exc, "param", None)
        return InputError(_message(exc), code="E1003", field=getattr(param, "name", None))
    if _from_typer(exc, "ClickException") or _from_typer(exc, "TyperException"):
        return Ended(_message(exc), exit_code=getattr(exc, "exit_code", 1))
    for familiar, kind, error_code in _FAMILIAR:
        if isinstance(exc, familiar):
            return kind(_os_message(exc), code=error_code)
    if isinstance(exc, Exception):
        text = _text(exc)
        name = type(exc).__name__
        return InternalError(f"{name}: {text}" if text else name)
    return Interrupted(f"Stopped by {type(exc).__name__}.")


def exit_request(exc: BaseException) -> int | None:
    """The exit code that `typer.Exit`, `sys.exit` and their like ask for."""
    if isinstance(exc, SystemExit):
        if exc.code is None:
            return 0
        return exc.code & 0xFF if isinstance(exc.code, int) else 1
    if _from_typer(exc, "Exit"):
        return int(getattr(exc, "exit_code", 0)) & 0xFF
    return None


def _from_typer(exc: BaseException, name: str) -> bool:
    """Whether it is Typer's or Click's exception of that name, without importing either."""
    return any(
        cls.__name__ == name and cls.__module__.partition(".")[0] in ("typer", "click")
        for cls in type(exc).__mro__
    )


def _message(exc: BaseException) -> str:
    write = getattr(exc, "format_message", None)
    return str(write()) if write is not None else _text(exc)


def _text(exc: BaseException) -> str:
    """What an exception says, even where its own words fail."""
    try:
        return str(exc)
    except Exception:
        return ""


def _os_message(exc: BaseException) -> str:
    if isinstance(exc, OSError) and exc.filename is not None and exc.strerror:
        return f"{exc.strerror}: {exc.filename!s}"
    return _text(exc) or type(exc).__name__


def after_items(exc: Exception, count: int) -> Exception:
    """The same failure, saying after how many items of a stream it came."""
    if count == 0 or exit_request(exc) == 0:
        return exc
    error = as_tool_error(exc)
    error.details = {**(error.details or {}), "items_before_failure": count}
    return error
