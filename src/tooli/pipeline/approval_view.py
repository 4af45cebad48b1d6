"""Describe a call for a human who has to approve it.

The description has a maximum length. Omitted text is counted, and invisible characters are escaped.
"""

from __future__ import annotations

from time import gmtime, strftime

from tooli.core.call_fingerprint import caller_arguments
from tooli.core.event_loop import is_in_event_loop
from tooli.pipeline.dry_run_recorder import supports_dry_run
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.core.call import Call, Stage

_MAX_LINE_CHARS, _MAX_LINES = 160, 24


def arguments_for_display(call: Call) -> dict[str, Any]:
    """Return the bound arguments as JSON values.

    Secrets are replaced by a placeholder. A value that can be read only once is replaced by the
    name of its class.
    """
    return {
        name: f"<{value.__class__.__name__}>" if _is_consumable(value) else to_jsonable(value, [])
        for name, value in caller_arguments(call).items()
    }


def _is_consumable(value: Any) -> bool:
    """True if the value can be read only once. Showing it would consume it."""
    kind = value.__class__
    if hasattr(kind, "tooli_json"):
        return False
    return any([hasattr(kind, name) for name in ("__next__", "__anext__", "read")])


def plan_for_display(call: Call, enforcement_stages: Sequence[Stage]) -> Any:
    """Return the plan of a call, or None if the function cannot make one.

    Returns None for a function that needs a dry run on an event loop: it would block the loop.
    """
    tool = call.tool
    can_dry_run = not tool.has_handles and supports_dry_run(tool.fn) and not is_in_event_loop()
    if not can_dry_run and getattr(tool.fn, "tooli_plan", None) is None:
        return None
    from tooli.pipeline.dry_run_execution import make_plan

    return to_jsonable(make_plan(call, enforcement_stages), [])


def describe_call(call: Call, enforcement_stages: Sequence[Stage]) -> str:
    """Return a description of a call and its plan, to be shown before the question."""
    effects = ", ".join(call.tool.behavior.labels())
    lines = [
        call.tool.id,
        *format_lines(arguments_for_display(call), plan_for_display(call, enforcement_stages)),
    ]
    return "\n".join([*lines, f"  effects: {effects}"] if effects else lines)


def format_lines(arguments: Any, plan: Any, max_lines: int = _MAX_LINES) -> list[str]:
    """Return the arguments and the plan as lines. An extra last line counts omitted lines."""
    lines = _format_value(arguments, 1)
    if plan is not None:
        lines += ["  plan:", *_format_value(plan, 2)]
    if len(lines) > max_lines:
        lines[max_lines:] = [f"  … and {len(lines) - max_lines} more lines"]
    return lines


def _format_value(value: Any, depth: int) -> list[str]:
    indent = "  " * depth
    pairs: list[tuple[str, Any]]
    if is_object(value):
        pairs = [(f"{escape_text(str(name))}: ", item) for name, item in value.items()]
    elif is_list(value):
        pairs = [("- ", item) for item in value]
    else:
        return [indent + _truncate_line(_format_scalar(value))]
    lines: list[str] = []
    for head, item in pairs:
        if (is_object(item) or is_list(item)) and item:
            lines += [indent + _truncate_line(head.rstrip()), *_format_value(item, depth + 1)]
        else:
            lines.append(indent + _truncate_line(head + _format_scalar(item)))
    return lines


def _format_scalar(value: Any) -> str:
    return escape_text(encode(value, []).decode())


def _truncate_line(text: str) -> str:
    if len(text) <= _MAX_LINE_CHARS:
        return text
    return f"{text[:_MAX_LINE_CHARS]}… and {len(text) - _MAX_LINE_CHARS} more characters"


def escape_value(value: Any) -> Any:
    """Return a JSON value with every string escaped for a terminal."""
    if isinstance(value, str):
        return escape_text(value)
    if is_object(value):
        return {escape_text(str(name)): escape_value(item) for name, item in value.items()}
    return [escape_value(item) for item in value] if is_list(value) else value


def escape_text(text: str) -> str:
    """Return a text in which control and invisible characters are escaped."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in text])


def format_timestamp(timestamp: float) -> str:
    """Return a time as ISO 8601, in UTC."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(timestamp))
