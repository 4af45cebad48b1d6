"""A page of the records, and a cursor for the rest."""

from __future__ import annotations

import sys

from tooli.call.flow import Sieve, records_of
from tooli.call.model import Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.call.flow import Flow, Push
    from tooli.call.model import Call, Outcome
    from tooli.state.paging import Window


def take_page(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Unwrap the `Page` of a tool that pages at the source."""
    outcome = yield call
    home = sys.modules.get("tooli.contract.pages")
    value: Any = outcome.value if isinstance(outcome, Ok) else None
    if home is None or value.__class__ is not home.Page:
        return outcome
    if call.flow is not None:
        call.flow.given = value
    return Ok(value.items)


def paginate(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Give one page, or all; where that is not the end, say where the rest begins."""
    flow = call.flow
    if flow is None:
        return (yield call)
    pager = _Pager(call, flow)
    flow.sieves.append(pager)
    flow.cursor_after = pager.cursor_after
    outcome = yield call
    if not isinstance(outcome, Ok):
        return outcome
    outcome = Ok(pager.page_of(outcome.value))
    if pager.asked or flow.given is not None:
        pager.tell()
    return outcome


class _Pager(Sieve):
    """Opens a window as soon as one is needed: of most answers the whole is the first page."""

    def __init__(self, call: Call, flow: Flow) -> None:
        self._call = call
        self._flow = flow
        self._whole: Any = None
        self._window: Window | None = None
        self.asked = bool(flow.shaping.limit) or flow.start is not None
        if flow.start is not None:
            self._open()

    def _open(self) -> Window:
        from tooli.state.paging import window_of

        window = self._window or window_of(self._call, self._flow)
        if window is None:
            from tooli.errors import InputError, Suggestion

            raise InputError(
                "The cursor belongs to another call: to another command, or to other arguments.",
                code="E1042",
                field="cursor" if "cursor" not in self._call.tool.names else "tooli_cursor",
                suggestion=Suggestion(
                    "retry_with_modified_input",
                    "Repeat the call that gave it, or start again without it.",
                ),
            )
        self._window = window
        return window

    def open(self, push: Push) -> Push:
        """Look at records as they come, where they go out as they come or a page is wanted."""
        return self._open().open(push) if self.asked or self._flow.lines else push

    def finish(self) -> object:
        """The records have come to their end."""
        return None if self._window is None else self._window.finish()

    def page_of(self, value: Any) -> Any:
        """The page of a result; of a stream it has passed already."""
        if self.opened and self._window is not None:
            self._window.end()
            self._call.warnings.extend(self._window.warnings)
            return value
        records = records_of(value)
        is_text = isinstance(value, str)
        if records is None and not is_text:
            self._flow.cursor_after = None
            return value
        if not self.asked and self._flow.given is None:
            self._whole = value if is_text else records
            return value
        window = self._open()
        if is_text:
            value = window.text_from(value)
        elif records is not None:
            window.count_all(records)
            value = window.sift(records)
        self._call.warnings.extend(window.warnings)
        return value

    def cursor_after(self, count: int) -> str | None:
        """The cursor of what follows so many records; None where nothing does."""
        window = self._open()
        if self._whole is not None:
            window.adopt(self._whole)
            self._whole = None
        return window.cursor_after(count)

    def tell(self) -> None:
        """Say which page this is, and how to get the next."""
        from tooli.call.cutting import rest_of

        call, flow = self._call, self._flow
        page: dict[str, Any] = {}
        if flow.cursor_after is None:
            call.warnings.append("The result is no list: there are no pages of it.")
            return
        if flow.shaping.limit:
            page["limit"] = flow.shaping.limit
        cursor = self.cursor_after(self._open().count)
        if cursor is not None:
            page["next_cursor"] = cursor
            flow.lead_on(call, [rest_of(call, cursor)])
        if flow.total is not None:
            page["total"] = flow.total
        flow.tell(call, page=page)
