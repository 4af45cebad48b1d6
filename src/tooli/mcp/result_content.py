"""The content of MCP results, in a form that every client can parse."""

from __future__ import annotations

from tooli.core.result_types import Content
from tooli.describe.mcp_tools import is_result_wrapped
from tooli.schema.json_schema import output_schema
from tooli.text.json_encoder import encode
from tooli.text.jsonable import MAX_JSON_DEPTH, is_list, is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tooli.core.tool import Tool
    from tooli.pipeline.present import Presented


def build_structured_result(tool: Tool, presented: Presented, modern: bool) -> dict[str, Any]:
    """Return a result as structured content, and as the same JSON in one block of text."""
    schema, kind = output_schema(tool), presented.kind
    if kind == "empty" and (schema is None or "type" in schema):
        return {"content": [], "isError": False}  # null would not match the schema
    if schema is None and kind == "text":
        text = replace_lone_surrogates(presented.value())
        return {"content": [{"type": "text", "text": text}], "isError": False}
    is_wrapped = schema is not None and is_result_wrapped(tool, modern)
    warnings: list[str] = []
    text, content = to_portable_json(presented.result_json(wrap=is_wrapped), warnings)
    presented.add_warnings(warnings)
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
    if schema is not None or is_object(content):
        result["structuredContent"] = content
    return result


def to_portable_json(text: str, warnings: list[str]) -> tuple[str, Any]:
    """Return JSON text and its value in a form that every client can parse.

    Some parsers fail on half a surrogate pair or on deep nesting, and the answer would be lost.
    """
    from json import loads

    value = loads(text)
    is_deep = text.count("[") + text.count("{") > MAX_JSON_DEPTH
    if not is_deep and "\\ud" not in text:
        return text, value
    if is_deep:
        value = to_jsonable(value, warnings)
    value = _replace_surrogates_deep(value)
    return encode(value, []).decode(), value


def _replace_surrogates_deep(value: Any) -> Any:
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if is_object(value):
        return {
            replace_lone_surrogates(key): _replace_surrogates_deep(item)
            for key, item in value.items()
        }
    return [_replace_surrogates_deep(item) for item in value] if is_list(value) else value


def replace_lone_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced, because strict JSON parsers reject them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def content_blocks(value: Any, to_json: Callable[[Any], str]) -> list[dict[str, Any]]:
    """Return a result as content blocks; text stays text, other data becomes JSON."""
    items = value if is_list(value) else [value]
    return [_content_block(item, to_json) for item in items]


def _content_block(item: Any, to_json: Callable[[Any], str]) -> dict[str, Any]:
    if isinstance(item, Content):
        return item.to_content_block()
    text = replace_lone_surrogates(item) if isinstance(item, str) else to_json(item)
    return {"type": "text", "text": text}


def continuation_blocks(meta: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a text block that says how to get the rest of a result: models do not see `_meta`."""
    page, truncated = meta.get("page", {}), meta.get("truncated")
    cursor = page.get("next_cursor")
    if cursor is None and truncated is None:
        return []
    total = (truncated or page).get("total")
    text = "This is not all" if total is None else f"This is not all: there are {total}"
    if truncated is not None:
        text += f" {truncated.get('unit', 'records')}, {truncated['shown']} are shown"
        if "needs" in truncated:
            text += f"; the next one needs {truncated['by'].replace('-', '_')}={truncated['needs']}"
    if cursor is not None:
        text += f". Call again with the same arguments and cursor={cursor!r}"
    return [{"type": "text", "text": f"{text}."}]
