"""Page: a result that the tool itself divides into pages."""

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
        """Supports `Page[…]` without importing `typing`."""

        __slots__ = ("items",)
        __class_getitem__ = classmethod(GenericAlias)

    T = None


class Page(_PageBase[T]):
    """One page of records, for a tool that fetches its records page by page.

        @app.command()
        def issues(ctx: Context) -> Page[Issue]:
            found, more = fetch(ctx.page.limit, ctx.page.cursor)
            return Page(found, next_cursor=more)

    Callers get the records as a list. `next_cursor` is any text; it comes back as
    `ctx.page.cursor` when a caller asks for the next page. None means that this is the last page.
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
    """The page that a caller asks for, as `ctx.page`."""

    limit: int | None = None  # None: the tool decides
    cursor: str | None = None  # the `next_cursor` of the previous page; None: the first page


def unwrap_page(annotation: Any) -> Any:
    """Return `list[T]` for the annotation `Page[T]`, and any other annotation unchanged."""
    if getattr(annotation, "__origin__", annotation) is not Page:
        return annotation
    inner = getattr(annotation, "__args__", ())
    return GenericAlias(list, inner) if inner else list
