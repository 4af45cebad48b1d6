"""Process the records of a result one by one: filter, page, select fields, count.

    tool ──▶ processor ──▶ processor ──▶ … ──▶ answer
                 ╰── returns True: no more records are read from the tool

A processor receives a record, passes any number of records to the next processor, and returns True
when it needs no more. It never requests records itself, so the same processor works for lists,
generators and async generators.
"""

from __future__ import annotations

from tooli.text.jsonable import sort_set

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
    from typing import Any, TypeAlias

    from tooli.core.call import Call
    from tooli.core.protocols import JsonObject
    from tooli.core.result_types import Page
    from tooli.records.call_options import ResultOptions
    from tooli.records.observed_fields import ExpressionObserver

    Push: TypeAlias = Callable[[Any], object]
    """Passes a record on. Returns True if no more records are needed."""


class RecordProcessor:
    """One step in the processing of records."""

    is_opened = False  # True after `open`: the records pass through the processor

    def open(self, push: Push) -> Push:
        """Return a function that receives records; it calls `push` for the records to pass on."""
        raise NotImplementedError

    def finish(self) -> object:
        """Pass on the records that were held back. It is called after the last record.

        Returns True if no more records are needed.
        """

    def process_list(self, records: Iterable[Any]) -> list[Any]:
        """Return the records that the processor passes on for a complete list of records."""
        out: list[Any] = []
        self.is_opened = True
        push = self.open(out.append)
        for record in records:
            if push(record):
                return out
        self.finish()
        return out


class MapProcessor(RecordProcessor):
    """Passes on every record, changed by a function."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self._change = change

    def open(self, push: Push) -> Push:
        """Return a function that receives records."""
        change = self._change
        return lambda record: push(change(record))


class RecordFlow:
    """The processing of one call's records.

    It holds the result options, the processors, and the data for `meta.page` and `meta.next`.
    """

    __slots__ = (
        "cursor_after",
        "cursor_position",
        "is_streamed",
        "next_steps",
        "observers",
        "predicate",
        "processors",
        "projection",
        "raw_arguments",
        "result_options",
        "tool_page",
        "total",
    )

    def __init__(
        self,
        result_options: ResultOptions,
        raw_arguments: Mapping[str, Any],
        *,
        is_streamed: bool = False,
    ) -> None:
        self.result_options = result_options
        self.raw_arguments = raw_arguments  # the arguments as the interface received them
        self.processors: list[RecordProcessor] = []  # the last one receives a record first
        self.is_streamed = is_streamed  # records are sent one by one, not as one document
        self.predicate: Callable[[object], bool] | None = None
        self.projection: Callable[[Any], Any] | None = None
        self.observers: dict[str, ExpressionObserver] = {}  # by option: "filter" or "fields"
        self.cursor_position: Any = None  # decoded from the cursor
        self.tool_page: Page[Any] | None = None  # set if the tool returned a `Page`
        self.total: int | None = None  # the number of all records, if it is known
        self.cursor_after: Callable[[int], str | None] | None = None
        """Returns the cursor after a number of records, or None if no record follows."""
        self.next_steps: list[JsonObject] = []  # commands in `meta.next` that return the rest

    def requested_page(self) -> tuple[int | None, str | None, int, bool, bool]:
        """Return the fields of the `PageRequest` of a tool that pages its result itself."""
        start = self.cursor_position
        return (
            self.result_options.limit or None,
            None if start is None else start.source_cursor,
            0 if start is None else start.position,
            self.predicate is not None,
            self.is_streamed,
        )

    # -------------------------------------------------------------- streams

    def _open(self, out: list[Any]) -> Push:
        push: Push = out.append
        for processor in self.processors:
            processor.is_opened = True
            push = processor.open(push)
        return push

    def _finish(self) -> None:
        for processor in reversed(self.processors):
            if processor.finish():
                return

    def process(self, items: Iterator[Any]) -> Iterator[Any]:
        """Yield the processed items of a stream; close it when no more items are needed."""
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

    async def aprocess(self, items: AsyncIterator[Any]) -> AsyncGenerator[Any]:
        """Yield the processed items of an async stream; close it when no more are needed."""
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

    # -------------------------------------------------------------- meta

    def set_meta(self, call: Call, **values: object) -> None:
        """Set entries of `meta`; an empty value removes the entry."""
        meta = call.meta
        if meta is None:
            return
        for name, value in values.items():
            meta.pop(name, None)
            if value:
                meta[name] = value
        for name in ("page", "truncated", "next"):  # always last, in this order
            if name in meta:
                meta[name] = meta.pop(name)

    def add_next_steps(self, call: Call, steps: list[JsonObject]) -> None:
        """Put the commands for the rest of the result first in `meta.next`."""
        if call.meta is not None:
            other_steps = [
                step for step in call.meta.get("next", ()) if step not in self.next_steps
            ]
            self.next_steps = steps
            self.set_meta(call, next=[*steps, *other_steps])


def as_records(value: Any) -> list[Any] | None:
    """Return the records of a result, or None if it is not a list."""
    kind = value.__class__
    if kind is list:
        return value
    if kind is tuple:
        return list(value)
    if kind in (set, frozenset):
        return sort_set(value)
    return None
