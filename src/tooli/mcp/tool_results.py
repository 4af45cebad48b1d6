"""Build the result of a tool call: content, structured content and `_meta`.

    Presented ─▶ build_tool_result ─▶ {"content": […], "structuredContent": …, "_meta": {…}}

The text block and the structured content are the same JSON. `describe/mcp_tools.py` describes where
that JSON has the `meta` that a model must know: warnings, and how to get the rest of a result.
"""

from __future__ import annotations

from json import loads

from tooli.core import Record
from tooli.describe.mcp_tools import ResultForm, result_form
from tooli.errors import InternalError
from tooli.mcp.protocol import ENVELOPE_KEY, META_KEY
from tooli.serving.prompt_messages import content_blocks, replace_lone_surrogates, text_block
from tooli.text.json_encoder import encode, encode_directly, has_escaped_surrogates
from tooli.text.jsonable import MAX_JSON_DEPTH, is_object, map_strings, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.pipeline.present import Presented


class ResultFormat(Record):
    """What decides the form of a result: the tool, and the protocol version of the client."""

    tool: Tool
    stateless: bool
    has_structured_content: bool  # False: the protocol version has only text
    tool_name: Callable[[str], str | None]  # returns the MCP name of a command
    accepts_encoded: bool = False  # True: structured content that is large may be EncodedJson


class EncodedJson:
    """Structured content as JSON, which the transport sends as it is."""

    __slots__ = ("_quoted", "data", "is_text")

    def __init__(self, data: bytes, *, is_text: bool = False) -> None:
        self.data = data
        self.is_text = is_text  # True: the JSON of a text, which has few quotation marks
        self._quoted: tuple[bytes, ...] | None = None

    def quoted(self) -> tuple[bytes, ...]:
        """Return the parts of the JSON as a JSON string, for the block of text.

        It is encoded once, and not copied.
        """
        if self._quoted is None:
            if self.is_text:  # JSON has no control characters: only these two are escaped
                inner = self.data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
                self._quoted = b'"', inner, b'"'
            else:
                text = self.data.decode()
                self._quoted = (encode_directly(text, may_import=True) or encode(text, []),)
        return self._quoted


MIN_ENCODED_BYTES = 1 << 13
"""Smaller structured content is passed to the transport as a value."""


def build_tool_result(presented: Presented, result_format: ResultFormat) -> JsonObject:
    """Return the result of `tools/call`, without the fields of stateless versions."""
    result = _build_result(presented, result_format)
    fields = result["_meta"]
    meta: JsonObject = fields[META_KEY] if META_KEY in fields else fields[ENVELOPE_KEY]["meta"]
    if "artifacts" in meta and result_format.has_structured_content:
        result["content"] += [_resource_link(artifact) for artifact in meta["artifacts"]]
    return result


def _resource_link(artifact: JsonObject) -> JsonObject:
    """Return the content block for something that the call has made."""
    block = {"type": "resource_link", "name": artifact["name"], "uri": artifact["uri"]}
    mime_type = artifact.get("mime_type")
    return block if mime_type is None else {**block, "mimeType": mime_type}


def _build_result(presented: Presented, result_format: ResultFormat) -> JsonObject:
    if not presented.ok:
        result = _error_result(presented)
        if presented.kind != "empty" and result_format.has_structured_content:
            result |= _partial_content(presented, result_format)
        return result
    if presented.kind == "content":
        blocks = presented.format_with(content_blocks)
        return _with_meta_block(blocks, presented, result_format)
    form = result_form(result_format.tool, result_format.stateless)
    if presented.kind == "empty" and (form is None or not form.is_wrapped):
        return _with_meta_block([], presented, result_format)  # null would not match the schema
    if form is None and presented.kind == "text":
        text = replace_lone_surrogates(presented.value())
        return _with_meta_block([text_block(text)], presented, result_format)
    return _structured_result(form, presented, result_format)


def _error_result(presented: Presented) -> JsonObject:
    """Return the envelope of a failure as text and in `_meta`.

    The envelope is not structured content, because clients reject structured content that does
    not match the schema. It contains the items of a partial success.
    """
    text, envelope = _to_portable_json(presented.envelope_json(), [])
    return {"content": [text_block(text)], "isError": True, "_meta": {ENVELOPE_KEY: envelope}}


def _partial_content(presented: Presented, result_format: ResultFormat) -> JsonObject:
    """Return the structured content of a failure that has a result: items that succeeded.

    It matches the declared schema, as that of a success does. The error is in its `meta`, for hosts
    that show nothing else to their model.
    """
    form = result_form(result_format.tool, result_format.stateless)
    if form is None or presented.kind == "content":
        return {}
    data = presented.result_json(wrap=form.is_wrapped)
    text, content = _to_portable_json(data, [])
    error = loads(presented.envelope_json())["error"]
    _, content = _add_meta(text, content, {"error": error}, form)
    return {"structuredContent": content}


def _structured_result(
    form: ResultForm | None, presented: Presented, result_format: ResultFormat
) -> JsonObject:
    """Return a result as structured content, and as the same JSON in one block of text."""
    is_wrapped = form is not None and form.is_wrapped
    warnings: list[str] = []
    data = presented.result_json(wrap=is_wrapped)
    text, content = _to_portable_json(
        data, warnings, result_format.accepts_encoded, is_text=presented.kind == "text"
    )
    presented.add_warnings(warnings)
    is_an_object = text[:1] == "{"
    if form is None and not is_an_object:
        return _with_meta_block([text_block(text)], presented, result_format)
    if not result_format.stateless and not is_an_object:
        # clients reject a result that does not match the declared schema
        message = f"{result_format.tool.name} did not return the object that it declares."
        return _error_result(presented.with_error(InternalError(message)))
    meta = presented.meta()
    visible = _visible_meta(meta, result_format)
    if visible:
        if isinstance(content, EncodedJson):
            content = loads(content.data)
        text, content = _add_meta(text, content, visible, form or ResultForm(False))
    result: JsonObject = {"content": [text_block(text)], "isError": False}
    if result_format.has_structured_content:
        result["structuredContent"] = content
    return {**result, "_meta": {META_KEY: meta}}


def _add_meta(text: str, content: Any, meta: JsonObject, form: ResultForm) -> tuple[str, Any]:
    """Return JSON text and its value with `meta`, where the form of the result has it."""
    added = encode(meta, []).decode()
    key = form.meta_key
    if key is None or not is_object(content):
        return f'{{"result":{text},"meta":{added}}}', {"result": content, "meta": meta}
    if key in content:  # the object has fields that its type does not declare
        key = "tooli_meta"
    comma = "," if content else ""
    return f'{text[:-1]}{comma}"{key}":{added}}}', {**content, key: meta}


def _with_meta_block(
    blocks: list[JsonObject], presented: Presented, result_format: ResultFormat
) -> JsonObject:
    """Return a result without structured content. `meta` is in a text block of its own."""
    meta = presented.meta()
    visible = _visible_meta(meta, result_format)
    if visible:
        blocks = [*blocks, text_block(encode({"meta": visible}, []).decode())]
    return {"content": blocks, "isError": False, "_meta": {META_KEY: meta}}


# ------------------------------------------------------------------ meta for the model


def _visible_meta(meta: JsonObject, result_format: ResultFormat) -> JsonObject:
    """Return `visible_meta`. Versions that have no links to resources get the artifacts in it."""
    visible = visible_meta(meta, result_format.tool, result_format.tool_name)
    if "artifacts" in meta and not result_format.has_structured_content:
        return {**visible, "artifacts": meta["artifacts"]}
    return visible


def visible_meta(
    meta: JsonObject, tool: Tool, tool_name: Callable[[str], str | None]
) -> JsonObject:
    """Return the part of `meta` that a model must know; empty for an ordinary result.

    `tool_name` returns the MCP name of a command, or None if it is not served. Next steps are tools
    with arguments, because a model that calls tools has no command line. The step that returns the
    rest of the result is the sentence `hint`.
    """
    visible: JsonObject = {}
    for name in ("warnings", "printed"):
        if name in meta:
            visible[name] = meta[name]
    idempotency: JsonObject = meta.get("idempotency", {})
    if idempotency.get("replayed") or "kept" in idempotency:
        visible["idempotency"] = idempotency
    if "next_cursor" in meta.get("page", {}):
        visible["page"] = meta["page"]
    if "truncated" in meta:
        visible["truncated"] = meta["truncated"]
    steps: list[JsonObject] = meta.get("next", [])
    other_tools = [
        {"tool": name, **{key: step[key] for key in ("arguments", "why") if key in step}}
        for step in steps
        if "command" in step and (name := tool_name(step["command"])) is not None
    ]
    if other_tools:
        visible["next"] = other_tools
    hints = [_continuation_hint(step, tool) for step in steps if "command" not in step]
    return {**visible, "hint": " ".join(hints)} if hints else visible


def _continuation_hint(step: JsonObject, tool: Tool) -> str:
    """Return a sentence that says how to get the rest of a result, or the whole result."""
    if "cursor" in {**step.get("arguments", {}), **step.get("options", {})}:
        name = "tooli_cursor" if "cursor" in tool.param_names else "cursor"
        return (
            "The result is incomplete: call again with the same arguments and "
            f"{name} set to next_cursor."
        )
    return step.get("why", "")


# ------------------------------------------------------------------ content


def _to_portable_json(
    data: bytes, warnings: list[str], accepts_encoded: bool = False, *, is_text: bool = False
) -> tuple[str, Any]:
    """Return JSON text and its value in a form that every client can parse.

    Some parsers reject lone surrogates or deep nesting, and the client would lose the answer. With
    `accepts_encoded`, the value of a large document is EncodedJson: it is not parsed. `is_text`
    says that the result is a text, which is not nested.
    """
    text = data.decode()
    is_deep = not is_text and _is_deep(data)
    if not is_deep and not has_escaped_surrogates(text):
        if accepts_encoded and len(data) >= MIN_ENCODED_BYTES:
            return text, EncodedJson(data, is_text=is_text)
        return text, loads(text)
    value = loads(text)
    if is_deep:
        value = to_jsonable(value, warnings)
    value = map_strings(value, replace_lone_surrogates)
    return encode(value, []).decode(), value


def _is_deep(data: bytes) -> bool:
    """True if a JSON document is nested deeper than MAX_JSON_DEPTH."""
    if data.count(b"[") + data.count(b"{") <= MAX_JSON_DEPTH:
        return False
    if b"\\" in data:  # remove escaped quotes, so that each quote begins or ends a string
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(data.split(b'"')[::2]).translate(None, _NOT_BRACKETS)
    for _ in range(MAX_JSON_DEPTH):  # each step removes the innermost level
        if not brackets:
            return False
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return bool(brackets)


_NOT_BRACKETS = bytes([code for code in range(256) if code not in b"[]{}"])
