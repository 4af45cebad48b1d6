"""Keep the result of a tool call below the size that clients accept in one message.

A client that gets a larger message closes the connection, or waits for an answer that never comes.
Some clients pass only a part of a result on to the model: `core/output_limits.py` has their limits.
A list is cut between two records, and a text between two lines. The answer has a cursor for the
rest.
"""

from __future__ import annotations

from json import loads

from tooli.errors import Suggestion, ToolRuntimeError
from tooli.mcp.tool_results import EncodedJson, build_tool_result
from tooli.pipeline import load_location
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call, Options, Outcome
    from tooli.core.output_limits import OutputLimit
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.mcp.tool_results import ResultFormat
    from tooli.pipeline.present import Presented
    from tooli.records.call_options import ResultOptions

MAX_HTTP_MESSAGE_BYTES = 1_000_000
"""Maximum size of a result over HTTP. The Python SDK reads at most 1 MiB per event (mcp 2.3)."""

MAX_STDIO_MESSAGE_BYTES = 9_500_000
"""Maximum size of a result over stdio.

The buffer of the TypeScript SDK has 10 MiB (version 1.32 and 2.4). It may also contain the
beginning of the next message.
"""

_BYTES_PER_JSON_BYTE = 4
"""Bytes of a message for each byte of the JSON in it: as data, and as quoted text, at most."""

_MAX_ATTEMPTS = 5

_BLOCK_BYTES = len('[{"type":"text","text":}]')


def limit_options(
    options: Options, tool: Tool, max_bytes: int, output_limit: OutputLimit | None = None
) -> Options:
    """Return the options of a call with size limits, if the records of its result are processed.

    The result of any other call is limited after the call, by `limit_message`. This is not possible
    if records were filtered or paged: their cursors are made during the call.
    """
    requested, limits = options.result_options, tool.limits
    if requested is None and not (limits.page_size or limits.returns_page or limits.max_tokens):
        return options
    requested = requested or _result_options()
    budget = max_bytes // _BYTES_PER_JSON_BYTE
    has_own_limit = requested.has_explicit_size_limit
    if not has_own_limit and output_limit is not None:
        requested = requested.replace(caller_limit=output_limit)
    if not requested.max_bytes or requested.max_bytes > budget:
        requested = requested.replace(
            max_bytes=budget, has_default_sizes=requested.has_default_sizes or not has_own_limit
        )
    return options.replace(result_options=requested)


def limit_message(
    presented: Presented,
    result_format: ResultFormat,
    max_bytes: int,
    output_limit: OutputLimit | None = None,
) -> JsonObject:
    """Return the result of `tools/call`, cut if it is larger than `max_bytes` or `output_limit`."""
    result = build_tool_result(presented, result_format)
    if output_limit is not None and _exceeds(result, output_limit) and presented.kind != "content":
        options = _result_options(caller_limit=output_limit)
        presented = _cut(presented, loads(presented.result_json()), options)
        result = build_tool_result(presented, result_format)
    size = _measure(result, max_bytes)
    if size <= max_bytes or result["isError"]:
        return result
    if presented.kind != "content":
        value = loads(presented.result_json())
        budget = max_bytes * len(encode(value, [])) // size
        for _ in range(_MAX_ATTEMPTS):
            budget = budget * 9 // 10
            options = _result_options(max_bytes=budget, has_default_sizes=True)
            result = build_tool_result(_cut(presented, value, options), result_format)
            if not result["isError"] and _measure(result, max_bytes) <= max_bytes:
                return result
    hint = "Ask for less: a narrower request, fewer fields, or a smaller limit."
    error = ToolRuntimeError(
        f"The command has run, but its result of {size} bytes is too large for one message.",
        suggestion=Suggestion("retry_with_modified_input", hint),
    )
    return build_tool_result(presented.with_error(error), result_format)


def _exceeds(result: JsonObject, limit: OutputLimit) -> bool:
    """True if the text of a result has more bytes or characters than a model gets to see."""
    texts = [block["text"] for block in result["content"] if block["type"] == "text"]
    size = sum(map(len, texts))
    if result["isError"] or size * 4 <= limit.amount:
        return False
    size_limit = load_location("tooli.records.size_limits:caller_size_limit")(limit)
    return size_limit.excess("".join(texts).encode("utf-8", "surrogatepass")) > 0


def _cut(presented: Presented, value: object, options: ResultOptions) -> Presented:
    """Return the answer with as much of the value as the limits allow."""
    limit_value = load_location("tooli.serving.late_limits:limit_value")

    def cut(call: Call) -> tuple[Call, Outcome]:
        limited_call, outcome = limit_value(call, value, options)
        _remove_larger_limits(limited_call.meta or {})
        return limited_call, outcome

    return presented.change(cut)


def _remove_larger_limits(meta: JsonObject) -> None:
    """Remove the next steps with a larger limit, because no message can be larger."""
    steps = [step for step in meta.pop("next", ()) if "command" in step or "cursor" in str(step)]
    if steps:
        meta["next"] = steps
    meta.get("truncated", {}).pop("needs", None)


def _result_options(**fields: Any) -> ResultOptions:
    """Return result options. Few calls need them, so their module is loaded on demand."""
    return load_location("tooli.records.call_options:ResultOptions")(**fields)


def _measure(result: JsonObject, max_bytes: int) -> int:
    """Return the size of a result in bytes, or 0 if it is certainly not larger than `max_bytes`.

    A character of JSON has 1 byte as data and 2 as quoted text, or 4 and 4 if it is not ASCII. A
    control character of a text that is not JSON has 6.
    """
    content = result["content"]
    if len(content) == 1 and content[0]["type"] == "text":
        text: str = content[0]["text"]
        bytes_per_character = 8 if "structuredContent" not in result or not text.isascii() else 3
        if len(text) * bytes_per_character < max_bytes * 3 // 4:
            return 0
    structured = result.get("structuredContent")
    if isinstance(structured, EncodedJson):  # the block of text is the same JSON, quoted
        others = {**result, "structuredContent": None, "content": None}
        size = len(structured.data) + sum(map(len, structured.quoted())) + _BLOCK_BYTES
        return size + len(encode(others, []))
    return len(encode(result, []))
