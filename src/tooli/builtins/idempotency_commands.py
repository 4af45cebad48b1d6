"""idempotency list, idempotency forget: the keys that calls were made with."""

from __future__ import annotations

from typing import Annotated

from tooli.schema.param_info import Argument, Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from tooli.errors import StateError
    from tooli.storage.idempotency_store import IdempotencyEntry, IdempotencyStore

    T = TypeVar("T")

MAX_LISTED_KEYS = 1000
"""How many keys are listed."""


def add_keys(group: Any, app: Any) -> None:
    """`idempotency list`, `idempotency forget`."""
    group.command("list")(_list_command(app))
    group.command("forget")(_forget_command(app))


def _list_command(app: Any) -> Any:
    def keys(
        unsettled: Annotated[
            bool, Option("--open", help="Only those of calls that broke off, or are running.")
        ] = False,
    ) -> list[dict[str, object]]:
        """List the idempotency keys that are kept, the newest first."""
        name = app._state.name
        found = _query_ledger(
            app,
            lambda ledger: list(ledger.entries(name, MAX_LISTED_KEYS, unfinished_only=unsettled)),
        )
        return [_key_row(entry, name) for entry in found]

    return keys


def _forget_command(app: Any) -> Any:
    def forget(
        key: Annotated[str, Argument(help="The key.")],
        command: Annotated[str, Option(help="Only that of this command.")] = "",
        running: Annotated[
            bool,
            Option("--running", help="Even while its call runs: the next one runs beside it."),
        ] = False,
    ) -> dict[str, int]:
        """Forget an idempotency key: the next call with it runs. See what the last one did."""
        from tooli.errors import NotFoundError
        from tooli.storage.idempotency_store import KeyStillRunning

        found = app.find(command) if command else None
        if command and found is None:
            raise NotFoundError(f"There is no command {command}.")
        name, tool = app._state.name, found.id if found is not None else None
        try:
            count = _query_ledger(
                app, lambda ledger: ledger.forget(name, key, tool, include_running=running)
            )
        except KeyStillRunning as still:
            raise _still_running_error(still.entry) from None
        if not count:
            raise NotFoundError(f"No call with the key {key} is kept.")
        return {"forgotten": count}

    return forget


def _still_running_error(entry: IdempotencyEntry) -> StateError:
    from tooli.errors import StateError, Suggestion
    from tooli.pipeline.approval_view import format_timestamp

    return StateError(
        f"A call with the key {entry.scoped_key.key} is running: it was not forgotten.",
        code="E3051",
        is_retryable=True,
        suggestion=Suggestion(
            "retry_later",
            "Wait until it has ended, or end it. Where it certainly runs no more, and only seems "
            "to, add --running.",
        ),
        details={"first_run": format_timestamp(entry.started), "owner": entry.owner},
    )


def _query_ledger(app: Any, query: Callable[[IdempotencyStore], T]) -> T:
    """What the app's ledger says."""
    from tooli.config.security_settings import apply_security_policy
    from tooli.errors import Suggestion, TemporaryError
    from tooli.storage.idempotency_backends import get_idempotency_store
    from tooli.storage.idempotency_store import StoreUnavailable

    apply_security_policy(app._state)
    ledger: IdempotencyStore | None = None
    try:
        ledger = get_idempotency_store(app._state.security_settings.get("store"))
        return query(ledger)
    except StoreUnavailable as lost:
        fix = Suggestion("ask_human", lost.fix)
        raise TemporaryError(lost.reason, code="E4060", suggestion=fix) from None
    finally:
        if ledger is not None:
            ledger.close()


def _key_row(entry: IdempotencyEntry, app: str) -> dict[str, object]:
    from time import time

    from tooli.pipeline.approval_view import format_timestamp
    from tooli.storage.idempotency_store import is_running

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
