"""Pages: the records of one page on their way through, and the cursors of those that follow.

The tool is asked for no more than the page has: a stream is closed behind its last record.
A cursor knows how many records were given and the marks of the last of them, so that what
comes or goes before it neither repeats nor hides any.
"""

from __future__ import annotations

from tooli.core.call_fingerprint import canonical_bytes
from tooli.records.record_flow import Sieve
from tooli.storage.cursors import (
    MAX_RECORD_DIGESTS,
    CursorPosition,
    compute_cursor_binding,
    digest_record,
    encode_cursor,
)
from tooli.storage.signing import get_cursor_key
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call
    from tooli.records.record_flow import Push, RecordFlow

SEARCH_DISTANCE = 500
"""How far from its place a stream's record is looked for; a list is searched as a whole."""
CONTEXT_CHARS = 64
"""Characters before a place in a text that it is known by."""


def make_page_window(call: Call, flow: RecordFlow) -> PageWindow | None:
    """The window for a call; None where its cursor belongs to another one."""
    binding = compute_cursor_binding(
        call.tool.id, canonical_bytes(call, flow.result_options.filter)
    )
    if flow.cursor_position is not None and flow.cursor_position.binding != binding:
        return None
    return PageWindow(flow, binding, get_cursor_key(owns_process=call.caller.owns_process))


class PageWindow(Sieve):
    """The records of a page, on their way through."""

    def __init__(self, flow: RecordFlow, binding: bytes, key: bytes) -> None:
        self.flow = flow
        self.count = 0  # records that went on
        self.warnings: list[str] = []
        start: CursorPosition | None = flow.cursor_position
        self._start = start or CursorPosition(binding, 0)
        self._key = key
        self._offset = self._start.position
        self._limit = flow.result_options.limit or -1
        self._passed_records: list[
            Any
        ] = []  # the records that went on; of a stream in lines the last few
        self._known_total: int | None = None  # how many records there are, where they are all there
        self._seen_count = 0
        self._is_positioned = self._offset == 0
        self._nearby_records: list[Any] = []  # records near the place, while it is looked for
        self._is_exhausted = False  # there are no more records than came
        self._text: str | None = None

    def open(self, push: Push) -> Push:
        self._push = push
        return self._accept if self._is_positioned else self._seek

    def finish(self) -> object:
        self._is_exhausted = True
        return None if self._is_positioned else self._reposition()

    def _accept(self, record: Any) -> object:
        self.count += 1
        self._passed_records.append(record)
        if (
            self.flow.is_streamed
            and self._known_total is None
            and len(self._passed_records) > MAX_RECORD_DIGESTS + 1
        ):
            del self._passed_records[0]
        return self._push(record) or self.count == self._limit

    def set_all_records(self, records: list[Any]) -> None:
        """All records are there: they can be counted, and searched as a whole."""
        self._known_total = len(records)
        source_page = self.flow.tool_page
        self.flow.total = self._known_total if source_page is None else source_page.total

    def use_whole_result(self, value: Any) -> None:
        """The whole of a result is the page: only where to go on will be asked."""
        if isinstance(value, str):
            self.remaining_text(value)
            return
        self._passed_records = value
        self.count = len(value)
        self.set_all_records(value)

    def end(self) -> None:
        """The answer is complete: where all records have passed, it is known how many there are."""
        if self._is_exhausted and self._known_total is None and self._text is None:
            self.flow.total = self._known_total = self._offset + self.count

    # -------------------------------------------------------------- finding the place again

    def _seek(self, record: Any) -> object:
        if self._is_positioned:
            return self._accept(record)
        at, last = self._seen_count, self._offset - 1
        self._seen_count += 1
        reach = SEARCH_DISTANCE if self._known_total is None else self._known_total
        if at < last - reach:
            return False
        self._nearby_records.append(record)
        if at == last and (
            not self._start.record_digests
            or _digest_record(record) == self._start.record_digests[0]
        ):
            self._is_positioned = True
            self._nearby_records = []
        return at >= last + reach and not self._is_positioned and self._reposition()

    def _reposition(self) -> object:
        """The record at the place is another one: go on behind where it, or one before it, is."""
        first = self._seen_count - len(self._nearby_records)
        self._is_positioned = True
        last = self._offset - 1
        self._offset = self._find_offset(first, last)
        around, self._nearby_records = self._nearby_records, []
        return any(self._accept(record) for record in around[max(self._offset - first, 0) :])

    def _find_offset(self, first: int, last: int) -> int:
        digests = [_digest_record(record) for record in self._nearby_records]
        for steps_back, digest in enumerate(self._start.record_digests):
            places = [first + i for i, found in enumerate(digests) if found == digest]
            if places:
                if steps_back:
                    self.warnings.append(
                        "A record before the cursor is gone or has changed: it may come again."
                    )
                return min(places, key=lambda place: abs(place - last + steps_back)) + 1
        self.warnings.append(
            "The records before the cursor are gone or have changed: the page goes on by position."
        )
        return min(last + 1, self._seen_count)

    # -------------------------------------------------------------- texts

    def remaining_text(self, text: str) -> str:
        """What is left of a text."""
        self._text = text
        self._is_exhausted = True
        self.flow.total = len(text)
        if self._offset and _digest_record(
            text[max(0, self._offset - CONTEXT_CHARS) : self._offset]
        ) not in (self._start.record_digests):
            self.warnings.append("The text before the cursor has changed since.")
        self.count = len(text) - self._offset
        return text[self._offset :]

    # -------------------------------------------------------------- where the rest begins

    def cursor_after(self, count: int) -> str | None:
        """The cursor of what follows so many records of this page; None where nothing does."""
        position = self._offset + count
        if self._text is not None:
            if position >= len(self._text):
                return None
            context = self._text[max(0, position - CONTEXT_CHARS) : position]
            return self._make_cursor(position, (_digest_record(context),), None)
        source_page, total = self.flow.tool_page, self._known_total
        source_cursor = self._start.source_cursor
        if source_page is not None and total is not None and position >= total:
            if source_page.next_cursor is None:
                return None
            return self._make_cursor(0, (), source_page.next_cursor)
        if total is not None and position >= total:
            return None
        return self._make_cursor(position, self._last_digests(count), source_cursor)

    def _last_digests(self, count: int) -> tuple[bytes, ...]:
        dropped = self.count - len(self._passed_records)
        returned = self._passed_records[: max(0, count - dropped)][-MAX_RECORD_DIGESTS:]
        return (
            *[_digest_record(record) for record in reversed(returned)],
            *self._start.record_digests,
        )[:MAX_RECORD_DIGESTS]

    def _make_cursor(
        self, position: int, digests: tuple[bytes, ...], source_cursor: str | None
    ) -> str:
        return encode_cursor(
            CursorPosition(self._start.binding, position, digests, source_cursor), self._key
        )


def _digest_record(record: Any) -> bytes:
    return digest_record(encode(record, []))
