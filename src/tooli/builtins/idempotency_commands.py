"""idempotency list, idempotency forget: the stored idempotency keys."""

from __future__ import annotations

from time import time
from typing import Annotated

from tooli.config.security_settings import apply_security_policy
from tooli.errors import NotFoundError, StateError, Suggestion, TemporaryError
from tooli.schema.param_info import Argument, Option
from tooli.storage.idempotency_sqlite import get_idempotency_store
from tooli.storage.idempotency_store import KeyStillRunning, StoreUnavailable, is_running
from tooli.text.jsonable import format_timestamp

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from tooli.core.protocols import App
    from tooli.storage.idempotency_store import IdempotencyEntry, IdempotencyStore

    T = TypeVar("T")

MAX_LISTED_KEYS = 1000
"""Maximum number of keys in the list."""


def add_keys(group: App, app: App) -> None:
    """Add `idempotency list` and `idempotency forget`."""
    group.command("list")(_list_command(app))
    group.command("forget")(_forget_command(app))


def _list_command(app: App) -> Any:
    def keys(
        is_open: Annotated[
            bool, Option("--open", help="Only keys of calls that are running or were interrupted.")
        ] = False,
    ) -> list[dict[str, object]]:
        """List the stored idempotency keys, newest first."""
        name = app._state.name
        found = _query_store(
            app,
            lambda store: list(store.entries(name, MAX_LISTED_KEYS, unfinished_only=is_open)),
        )
        return [_key_row(entry, name) for entry in found]

    return keys


def _forget_command(app: App) -> Any:
    def forget(
        key: Annotated[str, Argument(help="Idempotency key.")],
        command: Annotated[str, Option(help="Only the key of this command.")] = "",
        running: Annotated[
            bool,
            Option(
                "--running",
                help="Even if its call is running; the next call then runs too.",
            ),
        ] = False,
    ) -> dict[str, int]:
        """Forget an idempotency key, so that the next call with it runs.

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

    return forget


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
    apply_security_policy(app._state)
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
