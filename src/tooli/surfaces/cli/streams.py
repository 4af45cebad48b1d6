"""Results that come item by item, shown as they are made; and answers that are not plain JSON."""

from __future__ import annotations

import sys

from tooli.call.envelope import document, encoder
from tooli.call.model import Failed, Ok
from tooli.call.pipeline import stream
from tooli.surfaces.cli.channel import complain

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from typing import Any

    from tooli.call.model import Call, Outcome, Stage
    from tooli.errors import ToolError
    from tooli.surfaces.cli.main import Session
    from tooli.surfaces.cli.tables import Table


def perform(session: Session, call: Call, stages: Sequence[Stage]) -> int:
    """Run a call and show what it gives; ask a person first, where the call needs that."""
    outcome = session.guarded(lambda: show_stream(session, stream(call, stages), call))
    if isinstance(outcome, Failed) and outcome.error.code in ("E1002", "E1010", "E2101"):
        again = _ask(session, call, outcome)
        if again is not None:
            return perform(session, again, stages)
        if outcome.error.shown is not None and outcome.error.code == "E2101":
            from tooli.call.asking import declined

            outcome = Failed(declined(outcome.error))
    return session.finish(outcome, call)


def _ask(session: Session, call: Call, outcome: Failed) -> Call | None:
    """The call as a person completes it, where one is there to ask: approved, or with a secret."""
    from tooli.call.asking import ask_hidden, has_terminal

    if outcome.error.code != "E1002":
        agreed = outcome.error.shown is not None and _agrees(call, outcome.error)
        return call.replace(approved=True) if agreed else None
    options = session.options()
    if not options.interactive or options.no_input:
        return None
    missing = _missing_secrets(call, outcome)
    if not missing or not has_terminal():
        return None
    given = {name: ask_hidden(f"{name} (not shown): ") for name in missing}
    return call.replace(arguments={**call.arguments, **given}) if all(given.values()) else None


def _agrees(call: Call, error: ToolError) -> bool:
    """Whether a person lets the call run, with what it would do in front of them.

    A dangerous one is run by its name: nobody types that without looking.
    """
    from tooli.call.asking import ask, ask_line
    from tooli.call.cleaning import clean_line

    complain(f"{clean_line(error.message, call)}\n{error.shown}")
    name = call.tool.name
    if call.tool.guard.danger not in ("high", "critical"):
        return ask("Run it?")
    try:
        return ask_line(f"Type {name} to run it: ").strip() == name
    except EOFError:
        return False


def _missing_secrets(call: Call, outcome: Failed) -> list[str]:
    """The parameters that are missing, where all of them are secrets and nothing else is wrong."""
    if not call.tool.handles:
        return []
    from tooli.contract.tool import Handle

    errors: Any = (outcome.error.details or {}).get("errors", ())
    names = [error["field"] for error in errors if error["code"] == "E1002"]
    secret = {p.name for p in call.tool.public if isinstance(p.shape, Handle) and p.shape.secret}
    return names if len(names) == len(errors) and secret.issuperset(names) else []


def show_stream(session: Session, items: Generator[Any, None, Outcome], call: Call) -> Outcome:
    """Show each item as it comes; what remains to be shown is in the outcome."""
    taken = _Taken(items)
    try:
        _show(session, taken, call)
    finally:
        items.close()
    session.shown = taken.count
    outcome = taken.outcome
    if isinstance(outcome, Failed) or session.mode != "jsonl":
        return outcome
    value = outcome.value
    if type(value) in (set, frozenset):
        from tooli.contract.jsonable import ordered

        value = ordered(value)
    if type(value) in (list, tuple):
        encode = encoder(session.warnings, call)
        for item in value:
            session.emit(encode(item))
        return Ok(None)
    return outcome


def _show(session: Session, items: Iterator[Any], call: Call) -> None:
    if session.mode == "jsonl":
        encode = encoder(session.warnings, call)
        for item in items:
            session.emit(encode(item))
    elif session.mode in _ENDS:
        end = _ENDS[session.mode]
        for line in _table(session, session.line.tool).stream(_plain_items(items, call)):
            session.emit(line.encode() + end)
    elif session.standalone:
        from tooli.surfaces.cli.people import Writing
        from tooli.surfaces.cli.plain import line_end, plain_lines

        end = line_end(session)
        for line in plain_lines(_plain_items(items, call, exact=end == "\0"), end=end):
            with Writing(session):
                sys.stdout.write(line + end)
                sys.stdout.flush()
    else:
        session.value = list(items)


def _plain_items(items: Iterator[Any], call: Call, *, exact: bool = False) -> Iterator[Any]:
    from tooli.call.cleaning import Tidy

    tidy = Tidy(call, exact=exact)
    for item in items:
        yield tidy(item)


# ------------------------------------------------------------------ answers

_ENDS = {"csv": b"\r", "md": b""}
"""The modes for tables, and what ends their lines, before the newline."""


def finish(session: Session, outcome: Outcome, call: Call) -> int:
    """Show an outcome in a machine mode that is not JSON; the exit code."""
    from tooli.surfaces.cli.people import show_warnings, tell

    if session.mode == "toon":
        from tooli.surfaces.cli.toon import document as toon_document

        session.emit(toon_document(outcome, call, session.milliseconds))
        return session.code
    if session.mode == "jsonl" and isinstance(outcome, Failed):
        session.emit(document(outcome, call, session.milliseconds))
        return session.code
    if isinstance(outcome, Ok) and session.mode == "jsonl":
        if outcome.value is not None:
            session.emit(encoder(call.warnings, call)(outcome.value))
    elif isinstance(outcome, Ok):
        _show_table(session, outcome.value, call)
    error = None
    if isinstance(outcome, Failed):
        from tooli.call.cleaning import clean_error

        error = clean_error(outcome.error, call, call.warnings)
    show_warnings(call)
    if call.meta and isinstance(outcome, Ok) and not call.options.quiet:
        from tooli.surfaces.cli.budgets import tell_rest

        tell_rest(call)
    if error is not None:
        tell(error)
    return session.code


def _show_table(session: Session, value: Any, call: Call) -> None:
    from tooli.call.cleaning import presentable

    if value is None and call.tool.streams and not session.shown:
        value = []
    lines = _table(session, call.tool).lines(presentable(value, call))
    end = _ENDS[session.mode]
    data = (end + b"\n").join([line.encode() for line in lines])
    if data:
        session.emit(data + end)


def _table(session: Session, tool: Any) -> Table:
    from tooli.surfaces.cli.tables import Table

    return Table(session.mode, tool, session.warnings, session.options().concise)


class _Taken:
    """A stream's items, counted; at its end the outcome that it returns."""

    def __init__(self, items: Generator[Any, None, Outcome]) -> None:
        self._items = items
        self.count = 0
        self.outcome: Outcome = Ok(None)

    def __iter__(self) -> _Taken:
        return self

    def __next__(self) -> Any:
        try:
            item = next(self._items)
        except StopIteration as end:
            self.outcome = end.value
            raise StopIteration from None
        self.count += 1
        return item
