"""Result types beyond plain JSON values: Next, Page, Partial, and content such as images.

A tool may return a `Next`, a `Page` or a `Partial`. A tool, a resource or a prompt may return an
`Image`, `Audio`, `Embedded` or `Link`, or a list that contains some. Over MCP, each of these
becomes a content block. Every other interface writes the same block as JSON.
"""

from __future__ import annotations

from binascii import b2a_base64
from types import GenericAlias

from tooli.core import Record
from tooli.core.tool import MISSING
from tooli.errors import error_class_for, restore_error
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Generic, TypeVar

    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError

    T = TypeVar("T")
    _GenericBase = Generic
else:

    class _GenericBase:
        """Supports `Next[…]`, `Page[…]` and `Partial[…]` without importing `typing`."""

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
    return _list_of(annotation, Page)


def _list_of(annotation: object, result_class: object) -> object:
    """Return `list[T]` for the annotation `result_class[T]`; any other annotation unchanged."""
    if getattr(annotation, "__origin__", annotation) is not result_class:
        return annotation
    inner = getattr(annotation, "__args__", ())
    return GenericAlias(list, inner) if inner else list


class ItemFailure(Record):
    """One item of a `Partial` that failed."""

    item: Any  # None: the failure names no item
    error: ToolError


class Partial(_GenericBase[T]):
    """The result of a command that processed some items, and failed on others.

        @app.command()
        def fetch(urls: list[str]) -> Partial[Document]:
            found, failed = [], []
            for url in urls:
                try:
                    found.append(download(url))
                except OSError as error:
                    failed.append((url, error))
            return Partial(found, failed=failed)

    The call fails with E4070, and its answer has both: the items that succeeded are the result, and
    `error.details.errors` has one entry for each failure. Without failures, the call succeeds.

    An entry of `failed` is an exception, a message, a pair `(item, exception or message)`, or a
    dict with a `message` and other fields of an error. `failed` may also be a dict with the items
    as its keys.
    """

    __slots__ = ("failed", "items")

    def __init__(
        self, items: Iterable[T], failed: Iterable[object] | Mapping[Any, object] = ()
    ) -> None:
        self.items = list(items)
        self.failed: list[Any] = list(failed.items() if is_object(failed) else failed)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to copy it to another process, where the causes of the errors are unknown."""
        return restore_partial, (self.items, self.packed_failures())

    def packed_failures(self) -> list[list[Any]]:
        """Return the failures as data: the item, the fields of the error, and if it was raised.

        tooli converts the entries of `failed` when the function returns. Entries that are not
        converted yet have no such data.
        """
        return [
            [
                failure.item,
                {
                    **failure.error.to_dict(),
                    "exit_code": failure.error.exit_code,
                    "http_status": failure.error.http_status,
                },
                failure.error.is_translated,
            ]
            for failure in self.failed
        ]

    def __repr__(self) -> str:
        return f"Partial({self.items!r}, failed={self.failed!r})"


def restore_partial(items: list[Any], failures: list[list[Any]]) -> Partial[Any]:
    """Return a Partial from its items and from what `packed_failures` returned."""
    return Partial(
        items,
        [
            restore_failure(
                item, error_class_for(fields["code"], fields["category"]), fields, is_translated
            )
            for item, fields, is_translated in failures
        ],
    )


def restore_failure(
    item: object, error_class: type[ToolError], fields: JsonObject, is_translated: bool
) -> ItemFailure:
    """Return a failure from its parts, which `packed_failures` returned."""
    error = restore_error(error_class, fields, fields["exit_code"])
    if is_translated:  # the exception itself is in the other process
        error.is_translated = True
        error.__cause__ = Exception(error.message)
    return ItemFailure(item, error)


def unwrap_partial(annotation: object) -> object:
    """Return `list[T]` for the annotation `Partial[T]`, and any other annotation unchanged."""
    return _list_of(annotation, Partial)


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
