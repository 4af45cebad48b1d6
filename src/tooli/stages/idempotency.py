"""One key, one run: a call that is made again gets the first answer."""

from __future__ import annotations

import sys

from tooli.call.canonical import fingerprint
from tooli.call.claims import is_paused
from tooli.call.envelope import encode, weigh
from tooli.call.flow import Sieve
from tooli.call.model import Failed, Ok
from tooli.call.shown import is_on_a_loop, when
from tooli.errors import StateError, Suggestion, TemporaryError
from tooli.state.ledger import (
    PATIENCE,
    Indeterminate,
    Mismatch,
    New,
    Replay,
    Running,
    Slot,
    Unavailable,
    close_at_exit,
    ledger_of,
)
from tooli.state.outcomes import MOST, UNKEPT, cleaner_for, pack, pack_items, revive, unpack

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.call.flow import Push
    from tooli.call.model import Call, Outcome, Stage
    from tooli.errors import ToolError
    from tooli.state.ledger import Found, Ledger, Token

PATIENCE_ON_A_LOOP = 2.0
"""Seconds to wait for other processes; a loop has others to serve meanwhile."""
SETTLING = 300
"""How often an entry is tried to be settled that others were in the way of."""
STOPPED = frozenset(("E4051", "E4130", "E4143"))
"""Codes of calls that were stopped, and did not come to an end of their own."""


def run_once(store: str | None) -> Stage:
    """A stage that runs a call with a key unless it has run, and keeps what became of it.

    `store` is the address of the ledger. What is kept is the tool's own result: how much of
    it is shown, and in which form, is each caller's own matter.
    """

    def once(call: Call) -> Generator[Call, Outcome, Outcome]:
        ledger = ledger_of(store)
        try:
            found = _begin(call, ledger)
            if isinstance(found, Replay):
                return _replay(call, found)
            if not isinstance(found, New):
                raise _refusal(call, found)
            return (yield from _run(call, ledger, found))
        finally:
            if call.caller.surface == "cli":  # the process ends with the call
                ledger.close()
            else:
                close_at_exit()

    return once


# ------------------------------------------------------------------ before


def _begin(call: Call, ledger: Ledger) -> Found:
    """Look the key up; a ledger that was damaged is begun anew where that does no harm."""
    key, behavior = call.options.idempotency_key or "", call.tool.behavior
    slot = Slot(call.tool.id, call.caller.principal or "", key)
    again = behavior.idempotent or behavior.read_only
    whole = not again or call.policy == "strict"
    asked = fingerprint(call, *_page_wanted(call))
    patience = PATIENCE_ON_A_LOOP if is_on_a_loop() else PATIENCE
    for attempt in (1, 2):
        try:
            return ledger.begin(
                slot,
                asked,
                again=again,
                durable=not behavior.read_only,
                patience=patience,
                whole=whole,
            )
        except Unavailable as lost:
            if attempt == 2 or whole or lost.damaged is None:
                raise _lost(lost) from lost
            call.warnings.append(lost.reason)
    raise AssertionError


def _page_wanted(call: Call) -> tuple[Any, ...]:
    """Which page a tool is asked for that pages at the source: that is an argument, too."""
    return call.flow.wanted() if call.tool.limits.sourced and call.flow is not None else ()


def _replay(call: Call, found: Replay) -> Outcome:
    try:
        kept = unpack(found.outcome)
    except ValueError as strange:
        reason = f"What became of the first call cannot be read: {strange}"
        raise _lost(Unavailable(reason, _ANEW)) from strange
    if kept.outcome is None:
        raise _unkept(call, found)
    _tell(call, found.since, replayed=True)
    call.warnings.extend([said for said in kept.warnings if said not in call.warnings])
    if kept.printed and call.caller.surface != "python":
        sys.stdout.write(kept.printed)
    outcome = kept.outcome
    if isinstance(outcome, Failed):
        vars(outcome.error)["on_record"] = True  # with the first run, which it is an answer of
    elif call.caller.surface == "python":
        return Ok(revive(call.tool, outcome.value))
    return outcome


# ------------------------------------------------------------------ the run


def _run(call: Call, ledger: Ledger, found: New) -> Generator[Call, Outcome, Outcome]:
    """Run the call; settle its entry, however it ends."""
    _tell(call, found.since, replayed=False)
    items = _Items()
    if call.flow is not None:
        call.flow.sieves.append(items)  # the innermost: all that the function gives passes here
    overheard, before = _overhear(call), len(call.warnings)
    outcome = yield call
    printed = overheard() if overheard is not None else ""
    error = outcome.error if isinstance(outcome, Failed) else None
    state = "broken" if error is not None and _was_stopped(error) else "done"
    data: bytes | None = None
    try:
        if isinstance(outcome, Failed) and _is_free(outcome):
            ledger.release(found.token)
            return outcome
        data, outcome = _packed(call, found.since, outcome, items, call.warnings[before:], printed)
        if not ledger.finish(found.token, state, data):
            call.warnings.append("Another call with this idempotency key has run meanwhile.")
    except Unavailable as lost:  # it has run: that must be said, whatever else is wrong
        call.warnings.append(f"What became of the call could not be kept. {lost.reason}")
        _tell(call, found.since, replayed=False, kept=False)
        if lost.busy and call.caller.surface != "cli":
            _settle_later(ledger, found.token, state, data)
    return outcome


def _settle_later(ledger: Ledger, token: Token, state: str, data: bytes | None) -> None:
    """Go on trying to settle an entry while others are in the way.

    The process lives on, and so the call would seem to run for as long as it does.
    """
    from threading import Event, Thread

    def settle() -> None:
        waiting = Event()  # never set: only time passes
        for _ in range(SETTLING):
            waiting.wait(1.0)
            try:
                ledger.release(token) if data is None else ledger.finish(token, state, data)
                return
            except Unavailable as lost:
                if not lost.busy:
                    return

    Thread(target=settle, name="tooli-settling", daemon=True).start()


def _packed(
    call: Call, since: float, outcome: Outcome, items: _Items, said: list[str], printed: str
) -> tuple[bytes, Outcome]:
    """What is kept of an outcome, and the outcome; one that cannot be written is not kept."""
    try:
        cleaner = cleaner_for(call)
        if items.opened and isinstance(outcome, Ok):
            return pack_items(items.texts, said, cleaner), outcome
        data, outcome = pack(outcome, printed, said, cleaner)
        call.warnings.extend([line for line in said if line not in call.warnings])
        return data, outcome
    except Exception as failure:  # whatever it is made of: it has run, and its entry is settled
        kind = type(failure).__name__
        call.warnings.append(f"The result could not be kept, for it cannot be written ({kind}).")
        _tell(call, since, replayed=False, kept=False)
        return UNKEPT, outcome


def _is_free(outcome: Failed) -> bool:
    """Whether the key is: the call was refused before it ran, or ended with a question, and with
    the answer it is made again."""
    return is_paused(outcome) or outcome.error.category == "human" or not outcome.begun


def _was_stopped(error: ToolError) -> bool:
    """Whether something ended the call from outside: then nobody knows how far it came."""
    cause = error.__cause__
    if error.code in STOPPED or (cause is not None and not isinstance(cause, Exception)):
        return not isinstance(cause, SystemExit)
    return error.code == "E4050" and not error.translated


class _Items(Sieve):
    """Keeps a copy of what a stream gives, as long as there is not too much of it.

    A call with a key runs to its end, however few of its items this caller wants: the others
    can be had by asking again. So whoever has enough is given no more, and the stream goes on.
    """

    def __init__(self) -> None:
        self.texts: list[bytes] | None = []
        self._size = 0
        self._enough = False

    def open(self, push: Push) -> Push:
        """What takes the items."""

        def keep(item: Any) -> object:
            if self.texts is not None:
                _, item, _ = weigh(item, [])
                self.texts.append(encode(item, []))
                self._size += len(self.texts[-1]) + 1
                if self._size > MOST:
                    self.texts = None
            self._enough = self._enough or bool(push(item))
            return False

        return keep

    def finish(self) -> object:
        """The stream has come to its end; nothing is asked of those who had enough before."""
        return self._enough


# ------------------------------------------------------------------ what is printed


def _overhear(call: Call) -> Any:
    """Listen to what a command prints; gives what ends it, with the text."""
    if not call.tool.prints or call.caller.surface == "python":
        return None
    from tooli.call.printing import overhear

    return overhear()


# ------------------------------------------------------------------ what is said


def _tell(call: Call, since: float, **said: Any) -> None:
    if call.meta is not None:
        call.meta["idempotency"] = {
            "key": call.options.idempotency_key,
            "replayed": said["replayed"],
            "first_run": when(since),
            **({"kept": False} if said.get("kept") is False else {}),
        }


def _details(call: Call, since: float, **more: Any) -> dict[str, object]:
    return {"key": call.options.idempotency_key, "first_run": when(since), **more}


_ANEW = "Use a new key, once you know whether the first call took effect."


def _refusal(call: Call, found: Found) -> StateError:
    if isinstance(found, Mismatch):
        return StateError(
            "This idempotency key was used for the same command with other arguments.",
            code="E3050",
            suggestion=Suggestion("retry_with_modified_input", "Use a new key for a new call."),
            details=_details(call, found.since),
        )
    if isinstance(found, Running):
        return StateError(
            "A call with this idempotency key is running.",
            code="E3051",
            suggestion=Suggestion("retry_later", "Repeat the call with the same key in a moment."),
            is_retryable=True,
            details=_details(call, found.since, owner=found.owner),
        )
    assert isinstance(found, Indeterminate)
    return _broken_off(call, found)


def _broken_off(call: Call, found: Indeterminate) -> StateError:
    """Nobody knows whether it took effect: a human looks, and says so."""
    details = _details(call, found.since, owner=found.owner)
    try:
        kept = unpack(found.outcome).outcome if found.outcome else None
    except ValueError:
        kept = None
    if isinstance(kept, Failed):
        details["ended_by"] = {"code": kept.error.code, "message": kept.error.message}
    return StateError(
        "A call with this idempotency key broke off: nobody knows how far it came.",
        code="E3052",
        suggestion=_settling(call),
        details=details,
    )


def _settling(call: Call) -> Suggestion:
    program = call.caller.prog or (call.tool.app,)
    argv = [*program, "idempotency", "forget", call.options.idempotency_key or ""]
    return Suggestion(
        "ask_human",
        "Find out whether it took effect. If it did, leave it; if not, forget the key and repeat "
        "the call.",
        argv=argv,
    )


def _unkept(call: Call, found: Replay) -> StateError:
    return StateError(
        "The call with this idempotency key has run; its result was not kept: it was too large, "
        "or could not be written.",
        code="E3052",
        suggestion=Suggestion(
            "ask_human",
            "It took effect and is not run again. With a new key it would run, and take effect, "
            "once more.",
        ),
        details=_details(call, found.since, done=True, most=MOST),
    )


def _lost(lost: Unavailable) -> TemporaryError:
    return TemporaryError(
        f"{lost.reason} Nothing ran.",
        code="E4060",
        suggestion=Suggestion("ask_human", lost.fix),
    )
