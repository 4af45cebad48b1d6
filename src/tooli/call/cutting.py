"""Cutting: an answer made to fit, always at a record, always with a way to the rest.

    records ──▶ as many as fit ──▶ the document
                └─▶ meta.truncated   how many of how many, by which limit, the whole as a file
                    meta.page        the cursor of the rest
                    meta.next        the command for the rest

What cannot be divided (an object, or one record that is too large alone) is shortened: texts
and lists inside lose their ends, everything keeps its type.
"""

from __future__ import annotations

from tooli.call.again import again
from tooli.call.envelope import encode, encoder, measure
from tooli.call.flow import records_of
from tooli.call.model import Ok
from tooli.call.shaping import BYTES_PER_TOKEN
from tooli.contract.jsonable import is_list, is_object, jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tooli.call.flow import Flow
    from tooli.call.model import Call, Outcome

    Spill = Callable[[str, Iterable[bytes]], str | None]

SPARE = 40
"""Bytes by which a larger budget is larger than it has to be: its own digits, a longer cursor."""
_ELLIPSIS = "…"


def cut(call: Call, flow: Flow, value: Any, spill: Spill | None) -> Outcome:
    """As much of a result as fits, and what is said about the rest; `spill` keeps the whole."""
    return _Cut(call, flow, value, spill).outcome()


class _Cut:
    def __init__(self, call: Call, flow: Flow, value: Any, spill: Spill | None) -> None:
        self.call = call
        self.flow = flow
        self.value = value
        self.room, self.by = flow.shaping.room or (None, "max-items")
        self.path: str | None = None
        if spill is not None and flow.shaping.spills and flow.start is None:
            self.path = spill(call.tool.id, _pieces(value, call))

    def outcome(self) -> Outcome:
        records = records_of(self.value)
        if records is not None:
            return self._records(records)
        if isinstance(self.value, str):
            return self._text(self.value)
        return self._object()

    def _fits(self, outcome: Outcome) -> bool:
        return self.room is None or measure(outcome, self.call) <= self.room

    # -------------------------------------------------------------- lists

    def _records(self, records: list[Any]) -> Outcome:
        most = self.flow.shaping.max_items or len(records)
        count = min(len(records), most)
        if self.room is not None:
            count = min(count, self._estimate(records[:count]))
        by = "max-items" if count == most < len(records) else self.by
        while count > 0:
            self._tell(count, by, len(records))
            outcome = Ok(records[:count])
            if self.room is None or (size := measure(outcome, self.call)) <= self.room:
                return outcome
            by = self.by
            count = self._fewer(records, count, size - self.room)
        return self._none_fits(records)

    def _estimate(self, records: list[Any]) -> int:
        """How many records fit if there were nothing else."""
        assert self.room is not None
        write, used = encoder([], self.call), 0
        for count, record in enumerate(records):
            used += len(write(record)) + 1
            if used > self.room:
                return count
        return len(records)

    def _fewer(self, records: list[Any], count: int, excess: int) -> int:
        """How many records are left where as many bytes are taken away, one of them at least."""
        write = encoder([], self.call)
        while count > 0 and excess > 0:
            count -= 1
            excess -= len(write(records[count])) + 1
        return count

    def _none_fits(self, records: list[Any]) -> Outcome:
        """Not even one record fits: none is given, but a look at it, and the budget it needs."""
        self._tell(1, self.by, len(records))
        assert self.room is not None
        needed = self._needed(Ok(records[:1]))
        self._tell(0, self.by, len(records), needed)
        return self._squeeze(records[0])

    def _needed(self, outcome: Outcome) -> int:
        """The budget in which an outcome would fit, in the unit that it is given in."""
        size = measure(outcome, self.call) + SPARE
        return -(-size // BYTES_PER_TOKEN) if self.by == "max-tokens" else size

    def _squeeze(self, record: Any) -> Outcome:
        """An empty answer, as small as it has to be, with a look at the record if there is room."""
        meta, empty = self.call.meta, Ok([])
        assert meta is not None
        assert self.room is not None
        spare = self.room - measure(empty, self.call)
        if spare > 60:
            preview = shorten(self._clean(record), spare - len(',"preview":'), self.call.warnings)
            if preview is not None:
                meta["truncated"]["preview"] = preview
        self._spare_words(empty)
        return empty

    def _spare_words(self, outcome: Outcome) -> None:
        """Leave out what is said about the answer, the least important first, until it fits."""
        meta = self.call.meta or {}
        for leave_out in (
            lambda: meta.pop("output_schema", None),
            lambda: self.flow.tell(self.call, next=self.flow.steps),
            lambda: [step.pop("why", None) for step in self.flow.steps],
            lambda: meta["truncated"].pop("full", None),
            lambda: meta.pop("page" if self.call.caller.surface == "cli" else "next", None),
        ):
            if self._fits(outcome):
                return
            leave_out()

    # -------------------------------------------------------------- text

    def _text(self, text: str) -> Outcome:
        """The beginning of a text, up to the end of a line if there is one near enough."""
        assert self.room is not None
        whole = None if self.flow.cursor_after is not None else self._needed(Ok(text))
        low, high = 0, min(len(text), self.room)
        while low < high:
            middle = (low + high + 1) // 2
            self._tell_text(middle, len(text), whole)
            if self._fits(Ok(text[:middle])):
                low = middle
            else:
                high = middle - 1
        shown = text.rfind("\n", low // 2, low) + 1 or low
        if self.call.secrets:
            from tooli.call.cleaning import before_secret

            shown = before_secret(text, shown, self.call)
        if shown:
            self._tell_text(shown, len(text), whole)
            return Ok(text[:shown])
        self._tell_text(1, len(text))
        needed = self._needed(Ok(text[:1]))
        self.flow.cursor_after = None  # no text was given, and none of it may be passed over
        self._tell_text(0, len(text), whole or needed)
        self._spare_words(Ok(""))
        return Ok("")

    def _tell_text(self, shown: int, length: int, needed: int | None = None) -> None:
        self._tell(shown, self.by, length, needed)
        assert self.call.meta is not None
        self.call.meta["truncated"]["unit"] = "characters"

    # -------------------------------------------------------------- anything else

    def _object(self) -> Outcome:
        """A value that cannot be divided: shortened inside, and the budget that it needs."""
        assert self.room is not None
        call = self.call
        value = self._clean(self.value)
        total = len(encode(value, call.warnings))
        needed = self._needed(Ok(self.value))
        truncated = {"shown": total, "total": total, "unit": "bytes", "by": self.by}
        if self.path is not None:
            truncated["full"] = self.path
        self.flow.tell(call, truncated=truncated)
        self.flow.lead_on(call, [larger(self.call, self.by, needed)])
        spare = self.room - measure(Ok(None), call) - len(',"result":')
        shown = shorten(value, spare, call.warnings)
        truncated["shown"] = 0 if shown is None else len(encode(shown, []))
        outcome = Ok(shown)
        self._spare_words(outcome)
        return outcome

    def _clean(self, value: Any) -> Any:
        """A value whose texts are to be shortened: half a secret would be nobody's secret."""
        from tooli.call.cleaning import cleaned

        call = self.call
        return cleaned(jsonable(value, call.warnings), call, call.warnings)

    # -------------------------------------------------------------- what is said

    def _tell(self, shown: int, by: str, count: int, needed: int | None = None) -> None:
        tell_cut(self.call, self.flow, shown, by, count, self.path)
        if needed is not None and self.call.meta is not None:
            self.call.meta["truncated"]["needs"] = needed
            self.flow.lead_on(self.call, [larger(self.call, self.by, needed), *self.flow.steps])


def tell_cut(
    call: Call, flow: Flow, shown: int, by: str, count: int | None, path: str | None = None
) -> None:
    """Say that only so many records are shown, and how to get the rest."""
    total = flow.total if flow.total is not None else count
    truncated: dict[str, Any] = {"shown": shown}
    if total is not None:
        truncated["total"] = total
    truncated["by"] = by
    if path is not None:
        truncated["full"] = path
    flow.tell(call, truncated=truncated)
    # a record that does not fit is passed over by whoever follows the cursor alone
    cursor = flow.cursor_after(shown or 1) if flow.cursor_after is not None else None
    page = dict((call.meta or {}).get("page", {}))
    page.pop("next_cursor", None)
    if cursor is not None:
        page = {**{k: v for k, v in page.items() if k == "limit"}, "next_cursor": cursor}
        if flow.total is not None:
            page["total"] = flow.total
    flow.tell(call, page=page)
    steps = [] if cursor is None else [rest_of(call, cursor)]
    flow.lead_on(call, steps)


def larger(call: Call, by: str, needed: int) -> dict[str, Any]:
    """The step that asks for the same with room enough."""
    argv = again(call, **{by.replace("-", "_"): needed})
    return {"argv": argv, "why": f"It needs --{by} {needed} to be whole."}


def rest_of(call: Call, cursor: str) -> dict[str, Any]:
    """The step that leads on to what is left of a result."""
    return {"argv": again(call, cursor=cursor), "why": "The rest of the result."}


def _pieces(value: Any, call: Call) -> Iterable[bytes]:
    """The whole of a result as JSON, each record of a list on a line of its own."""
    write = encoder(call.warnings, call)
    records = records_of(value)
    if records is None:
        yield write(value)
        yield b"\n"
        return
    for i, record in enumerate(records):
        yield b",\n" if i else b"[\n"
        yield write(record)
    yield b"\n]\n"


# ------------------------------------------------------------------ shortening

_STEPS = (
    *((8000, 400), (4000, 150), (2000, 60), (1000, 30), (500, 15), (250, 8)),
    *((120, 5), (60, 3), (30, 2), (15, 1), (8, 1), (1, 1)),
)
"""How long a text, and how many items a list may have, step by step."""


def shorten(value: Any, room: int, warnings: list[str]) -> Any:
    """A value whose JSON has so many bytes at most: texts and lists lose their ends.

    None where even that does not fit.
    """
    if room <= 2:
        return None
    plain = jsonable(value, warnings)
    for depth in (12, 4, 2, 1, 0):
        for longest, most in _STEPS:
            shown = _shortened(plain, longest, most, depth)
            if len(encode(shown, [])) <= room:
                return shown
    return None


def _shortened(value: Any, longest: int, most: int, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else value[:longest] + _ELLIPSIS
    if is_list(value):
        kept = value[:most] if depth else ()
        return [_shortened(item, longest, most, depth - 1) for item in kept]
    if is_object(value):
        keys = list(value)[: max(most, 8) if depth else 0]
        return {key: _shortened(value[key], longest, most, depth - 1) for key in keys}
    return value
