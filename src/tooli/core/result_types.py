"""Result types beyond plain JSON values: Next, Page, and content such as images.

A tool may return a `Next` or a `Page`. A tool, a resource or a prompt may return an `Image`,
`Audio`, `Embedded` or `Link`, or a list that contains some. Over MCP, each of these becomes a
content block. Every other interface writes the same block as JSON.
"""

from __future__ import annotations

from binascii import b2a_base64
from types import GenericAlias

from tooli.core import Record
from tooli.core.tool import MISSING
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Generic, TypeVar

    from tooli.core.protocols import JsonObject

    T = TypeVar("T")
    _GenericBase = Generic
else:

    class _GenericBase:
        """Supports `Next[…]` and `Page[…]` without importing `typing`."""

        __slots__ = ()
        __class_getitem__ = classmethod(GenericAlias)

    T = None


class NextStep(Record):
    """One call that a result suggests."""

    command: str
    arguments: Mapping[str, Any]
    why: str


class Next(_GenericBase[T]):
    """A result and the calls to make next.

        def find(pattern: str) -> Next[list[File]]:
            return Next(found, "rename", {"rule": rule}, why="the names are not unique")

    Callers get the result itself, and the next calls in `meta.next`.
    """

    __slots__ = ("result", "steps")

    def __init__(
        self,
        result: T,
        command: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        *,
        why: str = "",
    ) -> None:
        self.result = result
        self.steps: tuple[NextStep, ...] = ()
        if command is not None:
            self.then(command, arguments, why=why)

    def then(
        self, command: str, arguments: Mapping[str, Any] | None = None, *, why: str = ""
    ) -> Next[T]:
        """Add one more call, and return self."""
        self.steps = (*self.steps, NextStep(command, arguments or {}, why))
        return self

    def __repr__(self) -> str:
        return f"Next({self.result!r}, {', '.join([step.command for step in self.steps])})"


def unwrap_next(annotation: object) -> object:
    """Return `T` for the annotation `Next[T]`, and any other annotation unchanged.

    For a plain `Next`, it returns MISSING: the type of the result is not known.
    """
    if getattr(annotation, "__origin__", annotation) is not Next:
        return annotation
    return getattr(annotation, "__args__", (MISSING,))[0]


class Page(_GenericBase[T]):
    """One page of records, for a tool that fetches its records page by page.

        @app.command()
        def issues(ctx: Context) -> Page[Issue]:
            found, more = fetch(ctx.page.limit, ctx.page.cursor)
            return Page(found, next_cursor=more)

    Callers get the records as a list. `next_cursor` is any text; it comes back as
    `ctx.page.cursor` when a caller asks for the next page. None means that this is the last page.
    """

    __slots__ = ("items", "next_cursor", "total")

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
    position: int = 0  # records after the cursor that the caller has already, and tooli skips
    is_filtered: bool = False  # the caller filters the records of the page
    is_streamed: bool = False  # the caller gets the records one by one


def unwrap_page(annotation: object) -> object:
    """Return `list[T]` for the annotation `Page[T]`, and any other annotation unchanged."""
    if getattr(annotation, "__origin__", annotation) is not Page:
        return annotation
    inner = getattr(annotation, "__args__", ())
    return GenericAlias(list, inner) if inner else list


# ------------------------------------------------------------------ content


class Content(Record):
    """A result that an MCP client displays as a content block."""

    def to_content_block(self) -> JsonObject:
        """Return the MCP content block."""
        raise NotImplementedError

    @property
    def tooli_json(self) -> JsonObject:
        """The content block, which represents the content in JSON."""
        return self.to_content_block()


class Image(Content):
    """An image."""

    data: bytes
    mime_type: str = "image/png"

    def to_content_block(self) -> JsonObject:
        """Return the MCP content block."""
        return {"type": "image", "data": _to_base64(self.data), "mimeType": self.mime_type}


class Audio(Content):
    """An audio clip."""

    data: bytes
    mime_type: str = "audio/wav"

    def to_content_block(self) -> JsonObject:
        """Return the MCP content block."""
        return {"type": "audio", "data": _to_base64(self.data), "mimeType": self.mime_type}


class Embedded(Content):
    """A document with its URI, as text or bytes."""

    uri: str
    content: str | bytes
    mime_type: str | None = None

    def to_content_block(self) -> JsonObject:
        """Return the MCP content block."""
        return {
            "type": "resource",
            "resource": resource_contents(self.uri, self.content, self.mime_type),
        }


class Link(Content):
    """A link to a document that a client can read."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None

    def to_content_block(self) -> JsonObject:
        """Return the MCP content block."""
        fields = {"uri": self.uri, "name": self.name, "description": self.description}
        fields["mimeType"] = self.mime_type
        return {"type": "resource_link", **{k: v for k, v in fields.items() if v is not None}}


class Message(Record):
    """One message of a prompt. The role is "user" or "assistant"."""

    content: str | Content
    role: str = "user"


def resource_contents(uri: str, content: str | bytes, mime_type: str | None) -> JsonObject:
    """Return MCP resource contents: text as it is, bytes in base64."""
    resource: JsonObject = {"uri": uri}
    if mime_type is not None:
        resource["mimeType"] = mime_type
    if isinstance(content, str):
        return {**resource, "text": content}
    return {**resource, "blob": _to_base64(content)}


def is_content(value: object) -> bool:
    """True if a result is a Content or a list that contains one."""
    if is_list(value):
        return any([isinstance(item, Content) for item in value])
    return isinstance(value, Content)


def _to_base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()
