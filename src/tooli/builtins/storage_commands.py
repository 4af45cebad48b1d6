"""audit tail, audit verify, idempotency list, idempotency forget: show and manage stored data."""

from __future__ import annotations

from collections.abc import Iterator  # noqa: TC003  evaluated at registration
from time import time
from typing import Annotated

from tooli.builtins import lists_everything
from tooli.config import load_security_settings
from tooli.errors import AuthError, NotFoundError, StateError, Suggestion, TemporaryError
from tooli.pipeline.context import Context  # noqa: TC001  evaluated at registration
from tooli.policy.call_display import escape_value
from tooli.schema.param_info import Argument, Option
from tooli.storage import audit_reader
from tooli.storage.audit_log import get_log_path, set_log_path
from tooli.storage.idempotency_sqlite import get_idempotency_store
from tooli.storage.idempotency_store import KeyStillRunning, StoreUnavailable, is_running
from tooli.text.jsonable import format_timestamp

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tooli.core.protocols import App
    from tooli.storage.idempotency_store import IdempotencyEntry, IdempotencyStore

    T = TypeVar("T")

MAX_LISTED_KEYS = 1000
"""Maximum number of keys in the list."""


# ------------------------------------------------------------------ audit log


def add_audit(group: App, app: App) -> None:
    """Add `audit tail` and `audit verify`."""

    @group.command("tail")
    @lists_everything
    def tail(
        number: Annotated[int, Option("--number", "-n", min=0, help="Number of entries.")] = 10,
        follow: Annotated[
            bool,
            Option("--follow", "-f", help="Show new entries as they are written."),
        ] = False,
    ) -> Iterator[dict[str, object]]:
        """Show the last entries of the audit log."""
        path = _log_path(app)
        try:
            # names and messages in the log come from callers
            if follow:
                yield from map(escape_value, audit_reader.follow_log(path, number))
            elif number:
                yield from map(escape_value, audit_reader.read_last_records(path, number))
        except OSError as failure:
            raise _read_error(path, failure) from None

    @group.command("verify")
    @lists_everything
    def verify() -> dict[str, object]:
        """Verify that no entry of the audit log was changed, removed, added or moved."""
        path = _log_path(app)
        try:
            found = audit_reader.verify_log(path)
        except OSError as failure:
            raise _read_error(path, failure) from None
        report: dict[str, object] = {"log": path, "lines": found.lines, "sealed": found.is_signed}
        if found.partial_lines:
            report["partial_lines"] = found.partial_lines
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


def _log_path(app: App) -> str:
    state = app._state
    set_log_path(state.name, state.security_settings.get("audit_log"))
    return get_log_path(state.name)


def _read_error(path: str, failure: OSError) -> Exception:
    kind = AuthError if isinstance(failure, PermissionError) else StateError
    code = "E2030" if kind is AuthError else None
    return kind(f"{path} cannot be read: {failure.strerror or failure}.", code=code)


# ------------------------------------------------------------------ idempotency keys


def add_keys(group: App, app: App) -> None:
    """Add `idempotency list` and `idempotency forget`."""

    @group.command("list")
    @lists_everything
    def keys(
        ctx: Context,
        is_open: Annotated[
            bool, Option("--open", help="Only keys of calls that are running or were interrupted.")
        ] = False,
    ) -> list[dict[str, object]]:
        """List the stored idempotency keys, newest first."""
        name = app._state.name
        found = _query_store(
            app,
            lambda store: list(store.entries(name, MAX_LISTED_KEYS + 1, unfinished_only=is_open)),
        )
        if len(found) > MAX_LISTED_KEYS:
            ctx.warn(f"There are more keys. Only the newest {MAX_LISTED_KEYS} are listed.")
        return [escape_value(_key_row(entry, name)) for entry in found[:MAX_LISTED_KEYS]]

    @group.command("forget")
    def forget(
        key: Annotated[str, Argument(help="Idempotency key.")],
        command: Annotated[str, Option(help="Only the key of this command.")] = "",
        running: Annotated[
            bool,
            Option(
                "--running",
                help="Delete the key even if its call is running. The next call then runs as well.",
            ),
        ] = False,
    ) -> dict[str, int]:
        """Delete an idempotency key, so that the next call with it runs.

        Check first what the last call with this key did.
        """
        found = app.find(command) if command else None
        if command and found is None:
            raise NotFoundError(f"There is no command {command}.")
        name, tool = app._state.name, found.id if found is not None else None
        try:
            count = _query_store(
                app, lambda store: store.forget(name, key, tool, include_running=running)
            )
        except KeyStillRunning as failure:
            raise _still_running_error(failure.entry) from None
        if not count:
            raise NotFoundError(f"There is no stored call with the key {key}.")
        return {"forgotten": count}


def _still_running_error(entry: IdempotencyEntry) -> StateError:
    return StateError(
        f"A call with the key {entry.scoped_key.key} is running, so the key was kept.",
        code="E3051",
        is_retryable=True,
        suggestion=Suggestion(
            "retry_later",
            "Wait until it has ended. If you are certain that it is not running any more, "
            "add --running.",
        ),
        details={"first_run": format_timestamp(entry.started), "owner": entry.owner},
    )


def _query_store(app: App, query: Callable[[IdempotencyStore], T]) -> T:
    """Query the idempotency store of the app."""
    load_security_settings(app._state)
    store: IdempotencyStore | None = None
    try:
        store = get_idempotency_store(app._state.security_settings.get("store"))
        return query(store)
    except StoreUnavailable as unavailable:
        fix = Suggestion("ask_human", unavailable.fix)
        raise TemporaryError(unavailable.reason, code="E4060", suggestion=fix) from None
    finally:
        if store is not None:
            store.close()


def _key_row(entry: IdempotencyEntry, app: str) -> dict[str, object]:
    state = entry.state
    if state != "done":
        state = "running" if is_running(entry, time()) else "broken off"
    row: dict[str, object] = {
        "key": entry.scoped_key.key,
        "command": entry.scoped_key.tool[len(app) + 1 :].replace(".", " ") or app,
        "state": state,
        "first_run": format_timestamp(entry.started),
    }
    if entry.scoped_key.principal:
        row["principal"] = entry.scoped_key.principal
    return row
