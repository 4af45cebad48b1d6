"""Pictures, sounds, documents and links as results: MCP clients show them, JSON carries them.

A tool, a resource or a prompt may return one of these, or a list that holds some. Over MCP
each becomes a content block of its own; every other door writes the same block as JSON.
"""

from __future__ import annotations

from tooli.core.record import Record
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


class Content(Record):
    """Something that a client shows rather than reads."""

    def to_content_block(self) -> dict[str, Any]:
        """The content as MCP writes it."""
        raise NotImplementedError


class Image(Content):
    """A picture."""

    data: bytes
    mime_type: str = "image/png"

    def to_content_block(self) -> dict[str, Any]:
        """The content as MCP writes it."""
        return {"type": "image", "data": _to_base64(self.data), "mimeType": self.mime_type}


class Audio(Content):
    """A sound."""

    data: bytes
    mime_type: str = "audio/wav"

    def to_content_block(self) -> dict[str, Any]:
        """The content as MCP writes it."""
        return {"type": "audio", "data": _to_base64(self.data), "mimeType": self.mime_type}


class Embedded(Content):
    """A document, with the address it stands at; text or bytes."""

    uri: str
    content: str | bytes
    mime_type: str | None = None

    def to_content_block(self) -> dict[str, Any]:
        """The content as MCP writes it."""
        return {
            "type": "resource",
            "resource": resource_contents(self.uri, self.content, self.mime_type),
        }


class Link(Content):
    """Where a document stands, for a client that wants to read it."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None

    def to_content_block(self) -> dict[str, Any]:
        """The content as MCP writes it."""
        fields = {"uri": self.uri, "name": self.name, "description": self.description}
        fields["mimeType"] = self.mime_type
        return {"type": "resource_link", **{k: v for k, v in fields.items() if v is not None}}


class Message(Record):
    """One message of a prompt: who says it ("user" or "assistant"), and what."""

    content: str | Content
    role: str = "user"


def resource_contents(uri: str, content: str | bytes, mime_type: str | None) -> dict[str, Any]:
    """A document as MCP writes it: text as text, bytes in base64."""
    resource: dict[str, Any] = {"uri": uri}
    if mime_type is not None:
        resource["mimeType"] = mime_type
    if isinstance(content, str):
        return {**resource, "text": content}
    return {**resource, "blob": _to_base64(content)}


def is_content(value: object) -> bool:
    """Whether a result is content, or a list that holds some."""
    if is_list(value):
        return any([isinstance(item, Content) for item in value])
    return isinstance(value, Content)


def _to_base64(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode()
