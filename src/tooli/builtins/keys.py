"""idempotency list, idempotency forget: the keys that calls were made with."""

from __future__ import annotations

from typing import Annotated

from tooli.contract.info import Argument, Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from tooli.errors import StateError
    from tooli.state.ledger import Entry, Ledger

    T = TypeVar("T")

MOST = 1000
"""How many keys are listed."""


def add_keys(group: Any, app: Any) -> None:
    """`idempotency list`, `idempotency forget`."""
    group.command("list")(_list(app))
    group.command("forget")(_forget(app))


def _list(app: Any) -> Any:
    def keys(
        unsettled: Annotated[
            bool, Option("--open", help="Only those of calls that broke off, or are running.")
        ] = False,
    ) -> list[dict[str, object]]:
        """List the idempotency keys that are kept, the newest first."""
        name = app._house.name
        found = _asked(app, lambda ledger: list(ledger.entries(name, MOST, unsettled=unsettled)))
        return [_shown(entry, name) for entry in found]

    return keys


def _forget(app: Any) -> Any:
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
        from tooli.state.ledger import StillRunning

        found = app.find(command) if command else None
        if command and found is None:
            raise NotFoundError(f"There is no command {command}.")
        name, tool = app._house.name, found.id if found is not None else None
        try:
            count = _asked(app, lambda ledger: ledger.forget(name, key, tool, running=running))
        except StillRunning as still:
            raise _still_running(still.entry) from None
        if not count:
            raise NotFoundError(f"No call with the key {key} is kept.")
        return {"forgotten": count}

    return forget


def _still_running(entry: Entry) -> StateError:
    from tooli.call.shown import when
    from tooli.errors import StateError, Suggestion

    return StateError(
        f"A call with the key {entry.slot.key} is running: it was not forgotten.",
        code="E3051",
        is_retryable=True,
        suggestion=Suggestion(
            "retry_later",
            "Wait until it has ended, or end it. Where it certainly runs no more, and only seems "
            "to, add --running.",
        ),
        details={"first_run": when(entry.started), "owner": entry.owner},
    )


def _asked(app: Any, ask: Callable[[Ledger], T]) -> T:
    """What the app's ledger says."""
    from tooli.config.policy import tighten
    from tooli.errors import Suggestion, TemporaryError
    from tooli.state.ledger import Unavailable, ledger_of

    tighten(app._house)
    ledger: Ledger | None = None
    try:
        ledger = ledger_of(app._house.rules.get("store"))
        return ask(ledger)
    except Unavailable as lost:
        fix = Suggestion("ask_human", lost.fix)
        raise TemporaryError(lost.reason, code="E4060", suggestion=fix) from None
    finally:
        if ledger is not None:
            ledger.close()


def _shown(entry: Entry, app: str) -> dict[str, object]:
    from time import time

    from tooli.call.shown import when
    from tooli.state.ledger import is_running

    state = entry.state
    if state != "done":
        state = "running" if is_running(entry, time()) else "broken off"
    shown: dict[str, object] = {
        "key": entry.slot.key,
        "command": entry.slot.tool[len(app) + 1 :].replace(".", " ") or app,
        "state": state,
        "first_run": when(entry.started),
    }
    if entry.slot.principal:
        shown["principal"] = entry.slot.principal
    return shown
