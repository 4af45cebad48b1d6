"""Content blocks and the messages of prompts, as MCP defines them.

Every interface returns the messages of a prompt in this form.
"""

from __future__ import annotations

from tooli.core.result_types import Content, Message
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.protocols import JsonObject


def prompt_messages(value: object, to_json: Callable[[Any], str]) -> list[JsonObject]:
    """Return what a prompt function has returned as messages: a text, a Message, or a list."""
    return [_prompt_message(part, to_json) for part in (value if is_list(value) else [value])]


def _prompt_message(part: object, to_json: Callable[[Any], str]) -> JsonObject:
    role, content = "user", part
    if isinstance(part, Message):
        role, content = part.role, part.content
    elif is_object(part) and part.keys() == {"role", "content"}:
        role, content = part["role"], part["content"]
        if is_object(content) and "type" in content:
            return part  # its content is already an MCP content block
    return {"role": role, "content": content_blocks(content, to_json)[0]}


def content_blocks(value: Any, to_json: Callable[[Any], str]) -> list[JsonObject]:
    """Return a result as content blocks. Text stays text, and other values become JSON."""
    items = value if is_list(value) else [value]
    return [_content_block(item, to_json) for item in items]


def _content_block(item: Any, to_json: Callable[[Any], str]) -> JsonObject:
    if isinstance(item, Content):
        return item.to_content_block()
    text = replace_lone_surrogates(item) if isinstance(item, str) else to_json(item)
    return text_block(text)


def text_block(text: str) -> JsonObject:
    """Return a content block with a text."""
    return {"type": "text", "text": text}


def replace_lone_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced, because strict JSON parsers reject them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
