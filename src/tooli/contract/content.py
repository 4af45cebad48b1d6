"""Pictures, sounds, documents and links as results: MCP clients show them, JSON carries them.

A tool, a resource or a prompt may return one of these, or a list that holds some. Over MCP
each becomes a content block of its own; every other door writes the same block as JSON.
"""

from __future__ import annotations

from tooli.contract.jsonable import is_list
from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


class Content(Record):
    """Something that a client shows rather than reads."""

    def block(self) -> dict[str, Any]:
        """The content as MCP writes it."""
        raise NotImplementedError


class Image(Content):
    """A picture."""

    data: bytes
    mime_type: str = "image/png"

    def block(self) -> dict[str, Any]:
        """The content as MCP writes it."""
        return {"type": "image", "data": _text(self.data), "mimeType": self.mime_type}


class Audio(Content):
    """A sound."""

    data: bytes
    mime_type: str = "audio/wav"

    def block(self) -> dict[str, Any]:
        """The content as MCP writes it."""
        return {"type": "audio", "data": _text(self.data), "mimeType": self.mime_type}


class Embedded(Content):
    """A document, with the address it stands at; text or bytes."""

    uri: str
    content: str | bytes
    mime_type: str | None = None

    def block(self) -> dict[str, Any]:
        """The content as MCP writes it."""
        return {"type": "resource", "resource": contents(self.uri, self.content, self.mime_type)}


class Link(Content):
    """Where a document stands, for a client that wants to read it."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None

    def block(self) -> dict[str, Any]:
        """The content as MCP writes it."""
        said = {"uri": self.uri, "name": self.name, "description": self.description}
        said["mimeType"] = self.mime_type
        return {"type": "resource_link", **{k: v for k, v in said.items() if v is not None}}


class Message(Record):
    """One message of a prompt: who says it ("user" or "assistant"), and what."""

    content: str | Content
    role: str = "user"


def contents(uri: str, content: str | bytes, mime_type: str | None) -> dict[str, Any]:
    """A document as MCP writes it: text as text, bytes in base64."""
    written: dict[str, Any] = {"uri": uri}
    if mime_type is not None:
        written["mimeType"] = mime_type
    if isinstance(content, str):
        return {**written, "text": content}
    return {**written, "blob": _text(content)}


def is_content(value: object) -> bool:
    """Whether a result is content, or a list that holds some."""
    if is_list(value):
        return any([isinstance(item, Content) for item in value])
    return isinstance(value, Content)


def _text(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode()
