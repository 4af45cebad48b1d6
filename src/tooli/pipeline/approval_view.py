"""A call as a person is shown it before it runs: short, and with nothing hidden in it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.core.call import Call, Stage

_MAX_LINE_CHARS, _MAX_LINES = 160, 24


def arguments_for_display(call: Call) -> dict[str, Any]:
    """The bound arguments in JSON's own types; of a secret, only that there is one."""
    from tooli.pipeline.call_fingerprint import caller_arguments
    from tooli.text.jsonable import to_jsonable

    return {
        name: f"<{value.__class__.__name__}>" if _is_consumable(value) else to_jsonable(value, [])
        for name, value in caller_arguments(call).items()
    }


def _is_consumable(value: Any) -> bool:
    """Whether to show it would be to use it up."""
    kind = value.__class__
    if hasattr(kind, "tooli_json"):
        return False
    return any([hasattr(kind, name) for name in ("__next__", "__anext__", "read")])


def plan_for_display(call: Call, enforcement_stages: Sequence[Stage]) -> Any:
    """What the function itself says that it would do; None where it says nothing.

    On an event loop nothing is rehearsed: all others on it would wait for that.
    """
    from tooli.pipeline.dry_run_recorder import supports_dry_run

    tool = call.tool
    can_dry_run = not tool.has_handles and supports_dry_run(tool.fn) and not is_in_event_loop()
    if not can_dry_run and getattr(tool.fn, "tooli_plan", None) is None:
        return None
    from tooli.pipeline.dry_run_execution import make_plan
    from tooli.text.jsonable import to_jsonable

    return to_jsonable(make_plan(call, enforcement_stages), [])


def is_in_event_loop() -> bool:
    """Whether an event loop runs in this thread: who waits here has everybody else wait, too."""
    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None


def describe_call(call: Call, enforcement_stages: Sequence[Stage]) -> str:
    """The call and its plan, as the lines that stand above a question."""
    effects = ", ".join(call.tool.behavior.labels())
    lines = [
        call.tool.id,
        *format_lines(arguments_for_display(call), plan_for_display(call, enforcement_stages)),
    ]
    return "\n".join([*lines, f"  effects: {effects}"] if effects else lines)


def format_lines(arguments: Any, plan: Any, max_lines: int = _MAX_LINES) -> list[str]:
    """Arguments and plan, a line each; what is left out is counted."""
    lines = _format_value(arguments, 1)
    if plan is not None:
        lines += ["  plan:", *_format_value(plan, 2)]
    if len(lines) > max_lines:
        lines[max_lines:] = [f"  … and {len(lines) - max_lines} more lines"]
    return lines


def _format_value(value: Any, depth: int) -> list[str]:
    from tooli.text.jsonable import is_list, is_object

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
    from tooli.text.json_encoder import encode

    return escape_text(encode(value, []).decode())


def _truncate_line(text: str) -> str:
    if len(text) <= _MAX_LINE_CHARS:
        return text
    return f"{text[:_MAX_LINE_CHARS]}… and {len(text) - _MAX_LINE_CHARS} more characters"


def escape_value(value: Any) -> Any:
    """A value of JSON's own types, all of its texts as a person may see them on a terminal."""
    from tooli.text.jsonable import is_list, is_object

    if isinstance(value, str):
        return escape_text(value)
    if is_object(value):
        return {escape_text(str(name)): escape_value(item) for name, item in value.items()}
    return [escape_value(item) for item in value] if is_list(value) else value


def escape_text(text: str) -> str:
    """A text with all that a terminal would act upon, or not show, as escapes."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in text])


def format_timestamp(timestamp: float) -> str:
    """A moment as documents write it."""
    from time import gmtime, strftime

    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(timestamp))
