"""Images, audio, documents and links as results.

A tool, a resource or a prompt may return one of these or a list that contains some. Over MCP, each
becomes a content block. Every other surface writes the same block as JSON.
"""

from __future__ import annotations

from base64 import b64encode

from tooli.core.record import Record
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject


class Content(Record):
    """A result that an MCP client displays as a content block."""

    def to_content_block(self) -> JsonObject:
        """Return the MCP content block."""
        raise NotImplementedError


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
    return b64encode(data).decode()
