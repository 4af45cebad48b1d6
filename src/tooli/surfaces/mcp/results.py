"""Values as the content of an MCP result, in a form that the parsers of all clients take."""

from __future__ import annotations

from tooli.call.cleaning import cleaned
from tooli.call.envelope import encode
from tooli.contract.jsonable import DEEPEST, is_list, is_object, jsonable
from tooli.contract.schema import output_schema
from tooli.views.mcp import wraps

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.call.model import Call
    from tooli.contract.tool import Tool


def structured(tool: Tool, value: Any, call: Call, modern: bool) -> dict[str, Any]:
    """A value as structured content, and as the same JSON in one block of text."""
    schema = output_schema(tool)
    if value is None and (schema is None or "type" in schema):
        return {"content": [], "isError": False}  # there is nothing, and null would not fit
    if schema is None and isinstance(value, str):
        text = whole(cleaned(value, call, call.warnings))
        return {"content": [{"type": "text", "text": text}], "isError": False}
    data = {"result": value} if schema is not None and wraps(tool, modern) else value
    text, said = readable(encode(data, call.warnings, call).decode(), call.warnings)
    made: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
    if schema is not None or is_object(said):
        made["structuredContent"] = said
    return made


def readable(text: str, warnings: list[str]) -> tuple[str, Any]:
    """JSON, and what it says, as the parsers of all clients take it.

    Some give up on half a surrogate pair, and on parts that are nested very deeply; then the
    whole answer would be lost.
    """
    from json import loads

    said = loads(text)
    deep = text.count("[") + text.count("{") > DEEPEST
    if not deep and "\\ud" not in text:
        return text, said
    if deep:
        said = jsonable(said, warnings)
    said = _mended(said)
    return encode(said, []).decode(), said


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return whole(value)
    if is_object(value):
        return {whole(key): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if is_list(value) else value


def whole(text: str) -> str:
    """The text without half a surrogate pair, which no strict reader of JSON takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def blocks(value: Any, call: Call) -> list[dict[str, Any]]:
    """A result that a client shows, as content blocks: text stays text."""
    from tooli.contract.content import Content

    items = value if is_list(value) else [value]
    made: list[dict[str, Any]] = []
    for item in items:
        if isinstance(item, Content):
            made.append(item.block())
        else:
            text = whole(item) if isinstance(item, str) else written(item, call)
            made.append({"type": "text", "text": text})
    return cleaned(made, call, call.warnings)


def written(value: Any, call: Call) -> str:
    """A value as JSON, where that is the text that somebody reads."""
    return encode(value, call.warnings, call).decode()


def rest(meta: Mapping[str, Any]) -> list[dict[str, Any]]:
    """That the result goes on, in words: models are not shown `_meta`."""
    page, truncated = meta.get("page", {}), meta.get("truncated")
    cursor = page.get("next_cursor")
    if cursor is None and truncated is None:
        return []
    total = (truncated or page).get("total")
    said = "This is not all" if total is None else f"This is not all: there are {total}"
    if truncated is not None:
        said += f" {truncated.get('unit', 'records')}, {truncated['shown']} are shown"
        if "needs" in truncated:
            said += f"; the next one needs {truncated['by'].replace('-', '_')}={truncated['needs']}"
    if cursor is not None:
        said += f". Call again with the same arguments and cursor={cursor!r}"
    return [{"type": "text", "text": f"{said}."}]
