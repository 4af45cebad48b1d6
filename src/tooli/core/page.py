"""Page: a result that its author pages at the source, and what is asked of such a tool."""

from __future__ import annotations

from types import GenericAlias

from tooli.core.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Generic, TypeVar

    T = TypeVar("T")

    class _PageBase(Generic[T]):
        items: list[T]
else:

    class _PageBase:
        """Says `Page[…]` without the price of `typing`."""

        __slots__ = ("items",)
        __class_getitem__ = classmethod(GenericAlias)

    T = None


class Page(_PageBase[T]):
    """Some of the records, and where the rest begins: `return Page(found, next_cursor="…")`.

    A tool that returns it says so: `-> Page[Issue]`. It is asked for a page by `ctx.page`;
    its callers get the records as a list. `next_cursor` is the author's own word for where
    to go on, and comes back as `ctx.page.cursor`; None says that nothing follows.
    """

    __slots__ = ("next_cursor", "total")

    def __init__(
        self, items: Iterable[T], *, next_cursor: str | None = None, total: int | None = None
    ) -> None:
        self.items = list(items)
        self.next_cursor = None if next_cursor is None else str(next_cursor)
        self.total = total

    def __repr__(self) -> str:
        return f"Page({self.items!r}, next_cursor={self.next_cursor!r}, total={self.total!r})"


class PageRequest(Record):
    """What a caller wants of a tool that pages at the source: how many records, from where."""

    limit: int | None = None  # None: as many as the author thinks right
    cursor: str | None = None  # the author's own; None: from the beginning


def unwrap_page(annotation: Any) -> Any:
    """What callers get of `Page[T]`: a `list[T]`. Any other annotation as it is."""
    if getattr(annotation, "__origin__", annotation) is not Page:
        return annotation
    inner = getattr(annotation, "__args__", ())
    return GenericAlias(list, inner) if inner else list
