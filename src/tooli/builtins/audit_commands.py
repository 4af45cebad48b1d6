"""audit tail, audit verify: show and verify the audit log."""

from __future__ import annotations

from collections.abc import Iterator  # noqa: TC003  evaluated at registration
from typing import Annotated, Any

from tooli.errors import AuthError, StateError, Suggestion
from tooli.schema.param_info import Option
from tooli.storage import audit_reader
from tooli.storage.audit_log import get_log_path, set_log_path

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import App


def add_audit(group: App, app: App) -> None:
    """Add `audit tail` and `audit verify`."""
    group.command("tail")(_tail_command(app))
    group.command("verify")(_verify_command(app))


def _log_path(app: App) -> str:
    state = app._state
    set_log_path(state.name, state.security_settings.get("audit_log"))
    return get_log_path(state.name)


def _tail_command(app: App) -> Any:
    def tail(
        number: Annotated[int, Option("--number", "-n", min=0, help="Number of entries.")] = 10,
        follow: Annotated[
            bool, Option("--follow", "-f", help="Wait for new entries; programs add --jsonl.")
        ] = False,
    ) -> Iterator[dict[str, Any]]:
        """Show the last entries of the audit log."""
        path = _log_path(app)
        try:
            if follow:
                yield from audit_reader.follow_log(path, number)
            elif number:
                yield from audit_reader.read_last_records(path, number)
        except OSError as failure:
            raise _read_error(path, failure) from None

    return tail


def _verify_command(app: App) -> Any:
    def verify() -> dict[str, Any]:
        """Verify that no entry of the audit log was changed, removed, added or moved."""
        path = _log_path(app)
        try:
            found = audit_reader.verify_log(path)
        except OSError as failure:
            raise _read_error(path, failure) from None
        report: dict[str, Any] = {"log": path, "lines": found.lines, "sealed": found.is_signed}
        if found.partial_lines:
            report["torn"] = found.partial_lines
        fault = found.fault
        if fault is None:
            return {**report, "whole": True}
        seq = {"seq": fault.seq} if fault.seq is not None else {}
        location = f"{fault.file}, line {fault.line}" if fault.line else fault.file
        raise StateError(
            f"The audit log was modified: {location}: {fault.reason}.",
            suggestion=Suggestion("ask_human", "Ask a human to check who can write to that file."),
            is_retryable=False,
            details={**report, "file": fault.file, "line": fault.line, **seq, "why": fault.reason},
        )

    return verify


def _read_error(path: str, failure: OSError) -> Exception:
    kind = AuthError if isinstance(failure, PermissionError) else StateError
    code = "E2030" if kind is AuthError else None
    return kind(f"{path} cannot be read: {failure.strerror or failure}.", code=code)
