"""Values as the content of an MCP result, in a form that the parsers of all clients take."""

from __future__ import annotations

from tooli.describe.mcp_tools import is_result_wrapped
from tooli.pipeline.envelope import encode
from tooli.schema.json_schema import output_schema
from tooli.text.jsonable import MAX_JSON_DEPTH, is_list, is_object, to_jsonable
from tooli.text.redact import redact_value

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.call import Call
    from tooli.core.tool import Tool


def build_structured_result(tool: Tool, value: Any, call: Call, modern: bool) -> dict[str, Any]:
    """A value as structured content, and as the same JSON in one block of text."""
    schema = output_schema(tool)
    if value is None and (schema is None or "type" in schema):
        return {"content": [], "isError": False}  # there is nothing, and null would not fit
    if schema is None and isinstance(value, str):
        text = replace_lone_surrogates(redact_value(value, call, call.warnings))
        return {"content": [{"type": "text", "text": text}], "isError": False}
    data = {"result": value} if schema is not None and is_result_wrapped(tool, modern) else value
    text, content = to_portable_json(encode(data, call.warnings, call).decode(), call.warnings)
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
    if schema is not None or is_object(content):
        result["structuredContent"] = content
    return result


def to_portable_json(text: str, warnings: list[str]) -> tuple[str, Any]:
    """JSON, and what it says, as the parsers of all clients take it.

    Some give up on half a surrogate pair, and on parts that are nested very deeply; then the
    whole answer would be lost.
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
    """The text without half a surrogate pair, which no strict reader of JSON takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def content_blocks(value: Any, call: Call) -> list[dict[str, Any]]:
    """A result that a client shows, as content blocks: text stays text."""
    from tooli.core.content import Content

    items = value if is_list(value) else [value]
    content: list[dict[str, Any]] = []
    for item in items:
        if isinstance(item, Content):
            content.append(item.to_content_block())
        else:
            text = (
                replace_lone_surrogates(item) if isinstance(item, str) else to_json_text(item, call)
            )
            content.append({"type": "text", "text": text})
    return redact_value(content, call, call.warnings)


def to_json_text(value: Any, call: Call) -> str:
    """A value as JSON, where that is the text that somebody reads."""
    return encode(value, call.warnings, call).decode()


def continuation_blocks(meta: Mapping[str, Any]) -> list[dict[str, Any]]:
    """That the result goes on, in words: models are not shown `_meta`."""
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
