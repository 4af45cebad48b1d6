"""idempotency list, idempotency forget: the keys that calls were made with."""

from __future__ import annotations

from typing import Annotated

from tooli.contract.info import Argument, Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.state.ledger import Entry, Ledger

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
        shown = [_shown(entry, app._house.name) for entry in _opened(app, "entries")]
        return [one for one in shown if not unsettled or one["state"] != "done"]

    return keys


def _forget(app: Any) -> Any:
    def forget(
        key: Annotated[str, Argument(help="The key.")],
        command: Annotated[str, Option(help="Only that of this command.")] = "",
    ) -> dict[str, int]:
        """Forget an idempotency key: the next call with it runs. See what the last one did."""
        from tooli.errors import NotFoundError

        tool = app.find(command) if command else None
        if command and tool is None:
            raise NotFoundError(f"There is no command {command}.")
        count = _opened(app, "forget", key, tool.id if tool is not None else None)
        if not count:
            raise NotFoundError(f"No call with the key {key} is kept.")
        return {"forgotten": count}

    return forget


def _opened(app: Any, what: str, *words: Any) -> Any:
    """Ask the app's ledger."""
    from tooli.config.policy import tighten
    from tooli.errors import Suggestion, TemporaryError
    from tooli.state.ledger import Unavailable, ledger_of

    tighten(app._house)
    name = app._house.name
    ledger: Ledger | None = None
    try:
        ledger = ledger_of(app._house.rules.get("store"))
        if what == "forget":
            return ledger.forget(name, *words)
        return list(ledger.entries(name, MOST))
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
