"""Results and errors of MCP servers, as values and errors of tooli.

structuredContent           the result, as it is
one text block              a text
images, audio, resources    content blocks, as an MCP client gets them
several blocks              a list
links beside structured     artifacts of the call
  content
isError, JSON-RPC errors    an error of `tooli.errors`
"""

from __future__ import annotations

from json import loads
from typing import Any

from tooli.core.result_types import Content
from tooli.errors import DependencyError, InputError, ToolRuntimeError
from tooli.providers.foreign_errors import MAX_ERROR_CHARS, restore_foreign_error
from tooli.providers.mcp_client.server_session import INVALID_PARAMS, RpcFailure
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError

ENVELOPE_KEY = "io.tooli/envelope"
"""The key of the envelope in the `_meta` of a failure, if the server is made with tooli."""

_BLOCK_FIELDS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}


class ContentBlock(Content):
    """A content block of a server: a text, an image, audio, a resource or a link."""

    block: JsonObject

    def to_content_block(self) -> JsonObject:
        """Return the MCP content block."""
        return self.block


def read_result(result: JsonObject, has_output_schema: bool, warn: Callable[[str], object]) -> Any:
    """Return the value of a `tools/call` result that is no error."""
    content = result.get("content")
    blocks = [_read_block(block) for block in content] if is_list(content) else []
    if "structuredContent" not in result:
        if has_output_schema:
            warn("The server has sent no structured content, which its output schema promises.")
        return _unwrap(blocks)
    structured = result["structuredContent"]
    blocks = [block for block in blocks if not _is_link(block)]  # `read_links` returns them
    others = [block for block in blocks if _text_of(block) is None]
    if not others:
        return structured
    if has_output_schema:
        warn(f"The result is incomplete: {len(others)} images or other content were left out.")
        return structured
    return [structured, *[b for b in blocks if not _is_json_of(_text_of(b) or "", structured)]]


def read_links(result: JsonObject) -> list[JsonObject]:
    """Return the links to resources beside the structured content: what the call has made."""
    content = result.get("content")
    if "structuredContent" not in result or not is_list(content):
        return []
    return [block for block in content if is_object(block) and _is_link(_read_block(block))]


def _is_link(block: object) -> bool:
    return isinstance(block, ContentBlock) and block.block["type"] == "resource_link"


def _unwrap(blocks: list[Any]) -> Any:
    """Return the only block, a text as a text; or the list of several blocks."""
    if len(blocks) != 1:
        return blocks or None
    text = _text_of(blocks[0])
    return blocks[0] if text is None else text


def _text_of(block: object) -> str | None:
    """Return the text of a text block; None for other blocks."""
    if isinstance(block, ContentBlock) and block.block["type"] == "text":
        return str(block.block["text"])
    return None


def _is_json_of(text: str, value: object) -> bool:
    """True if a text is the JSON of the structured content, which servers send as well."""
    try:
        return loads(text) == value
    except (ValueError, RecursionError):
        return False


def _read_block(block: object) -> Any:
    """Return a valid content block. Anything else is returned as JSON."""
    if not is_object(block):
        return block
    kind, resource = block.get("type"), block.get("resource")
    fields = _BLOCK_FIELDS.get(kind) if isinstance(kind, str) else None
    texts = [None] if fields is None else [block.get(name) for name in fields]
    if kind == "resource" and is_object(resource):
        texts = [resource.get("uri"), resource.get("text", resource.get("blob"))]
    if not all([isinstance(text, str) for text in texts]):
        return block
    return ContentBlock(block)


# ------------------------------------------------------------------ errors


def read_error(result: JsonObject, source: str) -> ToolError:
    """Return the error of a `tools/call` result with `isError`."""
    meta = result.get("_meta")
    envelope = meta.get(ENVELOPE_KEY) if is_object(meta) else None
    error = envelope.get("error") if is_object(envelope) else None
    restored = restore_foreign_error(error) if is_object(error) else None
    if restored is not None:
        return restored
    content = result.get("content")
    texts = [
        str(block["text"])
        for block in (content if is_list(content) else ())
        if is_object(block) and isinstance(block.get("text"), str)
    ]
    text = clean_text("\n".join(texts), MAX_ERROR_CHARS).strip()
    details: dict[str, object] = {}
    if is_object(result.get("structuredContent")):
        details["result"] = result["structuredContent"]
    return ToolRuntimeError(text or f"{source} reported a failure without a text.", details=details)


def rpc_error(failure: RpcFailure, source: str, tool_name: str) -> ToolError:
    """Return the error for a JSON-RPC error in answer to a call."""
    data = failure.data if is_object(failure.data) else {}
    envelope = data.get(ENVELOPE_KEY)
    error = envelope.get("error") if is_object(envelope) else data.get("error")
    restored = restore_foreign_error(error) if is_object(error) else None
    if restored is not None:
        return restored
    message = f"{source} refused the call of {tool_name}: {failure.message}"
    details = {"rpc_code": failure.code}
    if failure.code == INVALID_PARAMS:
        return InputError(message, details=details)
    return DependencyError(message, details=details)
