"""audit tail, audit verify: what was dared and refused, and whether all of it is there."""

from __future__ import annotations

from collections.abc import Iterator  # noqa: TC003  evaluated where the command is read
from typing import Annotated, Any

from tooli.contract.info import Option


def add_audit(group: Any, app: Any) -> None:
    """`audit tail`, `audit verify`."""
    group.command("tail")(_tail(app))
    group.command("verify")(_verify(app))


def _place(app: Any) -> str:
    from tooli.state.audit import keep_at, place_of

    house = app._house
    keep_at(house.name, house.rules.get("audit_log"))
    return place_of(house.name)


def _tail(app: Any) -> Any:
    def tail(
        number: Annotated[int, Option("--number", "-n", min=0, help="How many lines.")] = 10,
        follow: Annotated[
            bool, Option("--follow", "-f", help="Go on as lines come; programs add --jsonl.")
        ] = False,
    ) -> Iterator[dict[str, Any]]:
        """Show the last lines of the audit log: runs, refusals, approvals."""
        from tooli.state import auditing

        path = _place(app)
        try:
            if follow:
                yield from auditing.follow(path, number)
            elif number:
                yield from auditing.tail(path, number)
        except OSError as failure:
            raise _unreadable(path, failure) from None

    return tail


def _verify(app: Any) -> Any:
    def verify() -> dict[str, Any]:
        """See whether the audit log is whole: nothing changed, removed, added or moved."""
        from tooli.errors import StateError, Suggestion
        from tooli.state import auditing

        path = _place(app)
        try:
            found = auditing.verify(path)
        except OSError as failure:
            raise _unreadable(path, failure) from None
        told: dict[str, Any] = {"log": path, "lines": found.lines, "sealed": found.sealed}
        if found.torn:
            told["torn"] = found.torn
        fault = found.fault
        if fault is None:
            return {**told, "whole": True}
        seq = {"seq": fault.seq} if fault.seq is not None else {}
        place = f"{fault.file}, line {fault.line}" if fault.line else fault.file
        raise StateError(
            f"The audit log is not whole: {place}: {fault.why}.",
            suggestion=Suggestion("ask_human", "Somebody should look at who can write that file."),
            is_retryable=False,
            details={**told, "file": fault.file, "line": fault.line, **seq, "why": fault.why},
        )

    return verify


def _unreadable(path: str, failure: OSError) -> Exception:
    from tooli.errors import AuthError, StateError

    kind = AuthError if isinstance(failure, PermissionError) else StateError
    code = "E2030" if kind is AuthError else None
    return kind(f"{path} cannot be read: {failure.strerror or failure}.", code=code)
