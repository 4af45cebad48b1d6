"""audit tail, audit verify: what was dared and refused, and whether all of it is there."""

from __future__ import annotations

from collections.abc import Iterator  # noqa: TC003  evaluated where the command is read
from typing import Annotated, Any

from tooli.schema.param_info import Option


def add_audit(group: Any, app: Any) -> None:
    """`audit tail`, `audit verify`."""
    group.command("tail")(_tail_command(app))
    group.command("verify")(_verify_command(app))


def _log_path(app: Any) -> str:
    from tooli.storage.audit_log import get_log_path, set_log_path

    state = app._state
    set_log_path(state.name, state.security_settings.get("audit_log"))
    return get_log_path(state.name)


def _tail_command(app: Any) -> Any:
    def tail(
        number: Annotated[int, Option("--number", "-n", min=0, help="How many lines.")] = 10,
        follow: Annotated[
            bool, Option("--follow", "-f", help="Go on as lines come; programs add --jsonl.")
        ] = False,
    ) -> Iterator[dict[str, Any]]:
        """Show the last lines of the audit log: runs, refusals, approvals."""
        from tooli.storage import audit_reader

        path = _log_path(app)
        try:
            if follow:
                yield from audit_reader.follow_log(path, number)
            elif number:
                yield from audit_reader.read_last_records(path, number)
        except OSError as failure:
            raise _read_error(path, failure) from None

    return tail


def _verify_command(app: Any) -> Any:
    def verify() -> dict[str, Any]:
        """See whether the audit log is whole: nothing changed, removed, added or moved."""
        from tooli.errors import StateError, Suggestion
        from tooli.storage import audit_reader

        path = _log_path(app)
        try:
            found = audit_reader.verify_log(path)
        except OSError as failure:
            raise _read_error(path, failure) from None
        report: dict[str, Any] = {"log": path, "lines": found.lines, "sealed": found.sealed}
        if found.partial_lines:
            report["torn"] = found.partial_lines
        fault = found.fault
        if fault is None:
            return {**report, "whole": True}
        seq = {"seq": fault.seq} if fault.seq is not None else {}
        location = f"{fault.file}, line {fault.line}" if fault.line else fault.file
        raise StateError(
            f"The audit log is not whole: {location}: {fault.reason}.",
            suggestion=Suggestion("ask_human", "Somebody should look at who can write that file."),
            is_retryable=False,
            details={**report, "file": fault.file, "line": fault.line, **seq, "why": fault.reason},
        )

    return verify


def _read_error(path: str, failure: OSError) -> Exception:
    from tooli.errors import AuthError, StateError

    kind = AuthError if isinstance(failure, PermissionError) else StateError
    code = "E2030" if kind is AuthError else None
    return kind(f"{path} cannot be read: {failure.strerror or failure}.", code=code)
