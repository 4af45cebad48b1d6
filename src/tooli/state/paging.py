"""Pages: the records of one page on their way through, and the cursors of those that follow.

The tool is asked for no more than the page has: a stream is closed behind its last record.
A cursor knows how many records were given and the marks of the last of them, so that what
comes or goes before it neither repeats nor hides any.
"""

from __future__ import annotations

from tooli.call.canonical import canonical
from tooli.call.envelope import encode
from tooli.call.flow import Sieve
from tooli.state.cursors import LAST, Start, bind_to, mark, seal
from tooli.state.keys import lasting_key

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.call.flow import Flow, Push
    from tooli.call.model import Call

REACH = 500
"""How far from its place a stream's record is looked for; a list is searched as a whole."""
CONTEXT = 64
"""Characters before a place in a text that it is known by."""


def window_of(call: Call, flow: Flow) -> Window | None:
    """The window for a call; None where its cursor belongs to another one."""
    binding = bind_to(call.tool.id, canonical(call, flow.shaping.filter))
    if flow.start is not None and flow.start.binding != binding:
        return None
    return Window(flow, binding, lasting_key(call.caller.surface))


class Window(Sieve):
    """The records of a page, on their way through."""

    def __init__(self, flow: Flow, binding: bytes, key: bytes) -> None:
        self.flow = flow
        self.count = 0  # records that went on
        self.warnings: list[str] = []
        start: Start | None = flow.start
        self._start = start or Start(binding, 0)
        self._key = key
        self._base = self._start.position
        self._limit = flow.shaping.limit or -1
        self._kept: list[Any] = []  # the records that went on; of a stream in lines the last few
        self._known: int | None = None  # how many records there are, where they are all there
        self._seen = 0
        self._found = self._base == 0
        self._around: list[Any] = []  # records near the place, while it is looked for
        self._ended = False  # there are no more records than came
        self._text: str | None = None

    def open(self, push: Push) -> Push:
        self._push = push
        return self._take if self._found else self._seek

    def finish(self) -> object:
        self._ended = True
        return None if self._found else self._settle()

    def _take(self, record: Any) -> object:
        self.count += 1
        self._kept.append(record)
        if self.flow.lines and self._known is None and len(self._kept) > LAST + 1:
            del self._kept[0]
        return self._push(record) or self.count == self._limit

    def count_all(self, records: list[Any]) -> None:
        """All records are there: they can be counted, and searched as a whole."""
        self._known = len(records)
        given = self.flow.given
        self.flow.total = self._known if given is None else given.total

    def adopt(self, value: Any) -> None:
        """The whole of a result is the page: only where to go on will be asked."""
        if isinstance(value, str):
            self.text_from(value)
            return
        self._kept = value
        self.count = len(value)
        self.count_all(value)

    def end(self) -> None:
        """The answer is complete: where all records have passed, it is known how many there are."""
        if self._ended and self._known is None and self._text is None:
            self.flow.total = self._known = self._base + self.count

    # -------------------------------------------------------------- finding the place again

    def _seek(self, record: Any) -> object:
        if self._found:
            return self._take(record)
        at, last = self._seen, self._base - 1
        self._seen += 1
        reach = REACH if self._known is None else self._known
        if at < last - reach:
            return False
        self._around.append(record)
        if at == last and (not self._start.marks or _mark(record) == self._start.marks[0]):
            self._found = True
            self._around = []
        return at >= last + reach and not self._found and self._settle()

    def _settle(self) -> object:
        """The record at the place is another one: go on behind where it, or one before it, is."""
        first = self._seen - len(self._around)
        self._found = True
        last = self._base - 1
        self._base = self._behind(first, last)
        around, self._around = self._around, []
        return any(self._take(record) for record in around[max(self._base - first, 0) :])

    def _behind(self, first: int, last: int) -> int:
        marks = [_mark(record) for record in self._around]
        for back, wanted in enumerate(self._start.marks):
            places = [first + i for i, found in enumerate(marks) if found == wanted]
            if places:
                if back:
                    self.warnings.append(
                        "A record before the cursor is gone or has changed: it may come again."
                    )
                return min(places, key=lambda place: abs(place - last + back)) + 1
        self.warnings.append(
            "The records before the cursor are gone or have changed: the page goes on by position."
        )
        return min(last + 1, self._seen)

    # -------------------------------------------------------------- texts

    def text_from(self, text: str) -> str:
        """What is left of a text."""
        self._text = text
        self._ended = True
        self.flow.total = len(text)
        if self._base and _mark(text[max(0, self._base - CONTEXT) : self._base]) not in (
            self._start.marks
        ):
            self.warnings.append("The text before the cursor has changed since.")
        self.count = len(text) - self._base
        return text[self._base :]

    # -------------------------------------------------------------- where the rest begins

    def cursor_after(self, count: int) -> str | None:
        """The cursor of what follows so many records of this page; None where nothing does."""
        position = self._base + count
        if self._text is not None:
            if position >= len(self._text):
                return None
            near = self._text[max(0, position - CONTEXT) : position]
            return self._sealed(position, (_mark(near),), None)
        given, total = self.flow.given, self._known
        token = self._start.token
        if given is not None and total is not None and position >= total:
            if given.next_cursor is None:
                return None
            return self._sealed(0, (), given.next_cursor)
        if total is not None and position >= total:
            return None
        return self._sealed(position, self._marks(count), token)

    def _marks(self, count: int) -> tuple[bytes, ...]:
        dropped = self.count - len(self._kept)
        shown = self._kept[: max(0, count - dropped)][-LAST:]
        return (*[_mark(record) for record in reversed(shown)], *self._start.marks)[:LAST]

    def _sealed(self, position: int, marks: tuple[bytes, ...], token: str | None) -> str:
        return seal(Start(self._start.binding, position, marks, token), self._key)


def _mark(record: Any) -> bytes:
    return mark(encode(record, []))
