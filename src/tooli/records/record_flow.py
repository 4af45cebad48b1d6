"""Flow: the way of a call's records outward, through what filters, pages, selects and counts.

    tool ──▶ sieve ──▶ sieve ──▶ … ──▶ out
                 ╰── enough: the tool is asked for no more

A sieve takes a record, pushes none, one or several of them on, and says when it has enough.
It is pushed, never pulled, and so the same one serves lists, generators and async generators.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
    from typing import Any, TypeAlias

    from tooli.core.call import Call
    from tooli.core.page import Page
    from tooli.records.result_options import ResultOptions

    Push: TypeAlias = Callable[[Any], object]
    """Gives a record on; what is true says that no more are wanted."""


class Sieve:
    """One thing that happens to records on their way out."""

    is_opened = False

    def open(self, push: Push) -> Push:
        """What takes the records, and pushes on what is to go on."""
        raise NotImplementedError

    def finish(self) -> object:
        """The records have come to their end: push on what was held back."""

    def sift(self, records: Iterable[Any]) -> list[Any]:
        """What becomes of records that are all there."""
        out: list[Any] = []
        self.is_opened = True
        push = self.open(out.append)
        for record in records:
            if push(record):
                return out
        self.finish()
        return out


class MapSieve(Sieve):
    """Gives every record on, changed."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self._change = change

    def open(self, push: Push) -> Push:
        """What takes the records."""
        change = self._change
        return lambda record: push(change(record))


class RecordFlow:
    """What is wanted of a call's records, and what is known of them; made anew for each call."""

    __slots__ = (
        "cursor_after",
        "cursor_position",
        "is_streamed",
        "next_steps",
        "predicate",
        "projection",
        "raw_arguments",
        "result_options",
        "sieves",
        "tool_page",
        "total",
    )

    def __init__(self, result_options: ResultOptions, raw_arguments: Mapping[str, Any]) -> None:
        self.result_options = result_options
        self.raw_arguments = raw_arguments  # the arguments as the door gave them
        self.sieves: list[Sieve] = []  # outermost first
        self.is_streamed = False  # records go out one by one, not as one document
        self.predicate: Callable[[Any], bool] | None = None
        self.projection: Callable[[Any], Any] | None = None
        self.cursor_position: Any = None  # what the cursor says
        self.tool_page: Page[Any] | None = None  # what the tool paged itself
        self.total: int | None = None  # how many records there are, where that is known
        self.cursor_after: Callable[[int], str | None] | None = None
        """Where the answer goes on after so many records; None says that nothing follows."""
        self.next_steps: list[dict[str, Any]] = []  # what `meta.next` says about the rest

    def requested_page(self) -> tuple[int | None, str | None]:
        """What is asked of a tool that pages itself: how many records, and from where."""
        return (
            self.result_options.limit or None,
            None if self.cursor_position is None else self.cursor_position.source_cursor,
        )

    # -------------------------------------------------------------- streams

    def _open(self, out: list[Any]) -> Push:
        push: Push = out.append
        for sieve in self.sieves:
            sieve.is_opened = True
            push = sieve.open(push)
        return push

    def _finish(self) -> None:
        for sieve in reversed(self.sieves):
            if sieve.finish():
                return

    def sift(self, items: Iterator[Any]) -> Iterator[Any]:
        """What is left of a stream; it is closed as soon as nothing more is wanted."""
        pending: list[Any] = []
        push = self._open(pending)
        try:
            for item in items:
                is_done = push(item)
                if pending:
                    yield from pending
                    pending.clear()
                if is_done:
                    return
            self._finish()
            yield from pending
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    async def asift(self, items: AsyncIterator[Any]) -> AsyncGenerator[Any]:
        """The same of an async stream."""
        pending: list[Any] = []
        push = self._open(pending)
        try:
            async for item in items:
                is_done = push(item)
                for out in pending:
                    yield out
                pending.clear()
                if is_done:
                    return
            self._finish()
            for out in pending:
                yield out
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()

    # -------------------------------------------------------------- what is said about it

    def set_meta(self, call: Call, **values: Any) -> None:
        """Put something into `meta`; None takes it out."""
        meta = call.meta
        if meta is None:
            return
        for name, value in values.items():
            meta.pop(name, None)
            if value:
                meta[name] = value
        for name in ("page", "truncated", "next"):  # in this order, whoever spoke last
            if name in meta:
                meta[name] = meta.pop(name)

    def add_next_steps(self, call: Call, steps: list[dict[str, Any]]) -> None:
        """Say how to get the rest, before whatever else makes sense next."""
        if call.meta is not None:
            other_steps = [
                step for step in call.meta.get("next", ()) if step not in self.next_steps
            ]
            self.next_steps = steps
            self.set_meta(call, next=[*steps, *other_steps])


def as_records(value: Any) -> list[Any] | None:
    """The records of a result that is a list of them; None where it is none."""
    kind = value.__class__
    if kind is list:
        return value
    if kind is tuple:
        return list(value)
    if kind in (set, frozenset):
        from tooli.text.jsonable import sort_set

        return sort_set(value)
    return None
