"""A call as a person is shown it before it runs: short, and with nothing hidden in it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.call.model import Call, Stage

_WIDEST, _MOST_LINES = 160, 24


def shown_arguments(call: Call) -> dict[str, Any]:
    """The bound arguments in JSON's own types; of a secret, only that there is one."""
    from tooli.call.canonical import given_to
    from tooli.contract.jsonable import jsonable

    return {
        name: f"<{value.__class__.__name__}>" if _runs_out(value) else jsonable(value, [])
        for name, value in given_to(call).items()
    }


def _runs_out(value: Any) -> bool:
    """Whether to show it would be to use it up."""
    kind = value.__class__
    if hasattr(kind, "tooli_text"):
        return False
    return any([hasattr(kind, name) for name in ("__next__", "__anext__", "read")])


def own_plan(call: Call, holding: Sequence[Stage]) -> Any:
    """What the function itself says that it would do; None where it says nothing.

    On an event loop nothing is rehearsed: all others on it would wait for that.
    """
    from tooli.call.rehearsal import rehearses

    tool = call.tool
    told = not tool.handles and rehearses(tool.fn) and not is_on_a_loop()
    if not told and getattr(tool.fn, "tooli_plan", None) is None:
        return None
    from tooli.call.acting import plan_now
    from tooli.contract.jsonable import jsonable

    return jsonable(plan_now(call, holding), [])


def is_on_a_loop() -> bool:
    """Whether an event loop runs in this thread: who waits here has everybody else wait, too."""
    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None


def describe(call: Call, holding: Sequence[Stage]) -> str:
    """The call and its plan, as the lines that stand above a question."""
    effects = ", ".join(call.tool.behavior.words())
    lines = [call.tool.id, *lines_of(shown_arguments(call), own_plan(call, holding))]
    return "\n".join([*lines, f"  effects: {effects}"] if effects else lines)


def lines_of(arguments: Any, plan: Any, most: int = _MOST_LINES) -> list[str]:
    """Arguments and plan, a line each; what is left out is counted."""
    lines = _lines(arguments, 1)
    if plan is not None:
        lines += ["  plan:", *_lines(plan, 2)]
    if len(lines) > most:
        lines[most:] = [f"  … and {len(lines) - most} more lines"]
    return lines


def _lines(value: Any, depth: int) -> list[str]:
    from tooli.contract.jsonable import is_list, is_object

    indent = "  " * depth
    pairs: list[tuple[str, Any]]
    if is_object(value):
        pairs = [(f"{visible(str(name))}: ", item) for name, item in value.items()]
    elif is_list(value):
        pairs = [("- ", item) for item in value]
    else:
        return [indent + _cut(_scalar(value))]
    lines: list[str] = []
    for head, item in pairs:
        if (is_object(item) or is_list(item)) and item:
            lines += [indent + _cut(head.rstrip()), *_lines(item, depth + 1)]
        else:
            lines.append(indent + _cut(head + _scalar(item)))
    return lines


def _scalar(value: Any) -> str:
    from tooli.call.envelope import encode

    return visible(encode(value, []).decode())


def _cut(text: str) -> str:
    if len(text) <= _WIDEST:
        return text
    return f"{text[:_WIDEST]}… and {len(text) - _WIDEST} more characters"


def seen(value: Any) -> Any:
    """A value of JSON's own types, all of its texts as a person may see them on a terminal."""
    from tooli.contract.jsonable import is_list, is_object

    if isinstance(value, str):
        return visible(value)
    if is_object(value):
        return {visible(str(name)): seen(item) for name, item in value.items()}
    return [seen(item) for item in value] if is_list(value) else value


def visible(text: str) -> str:
    """A text with all that a terminal would act upon, or not show, as escapes."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in text])


def when(moment: float) -> str:
    """A moment as documents write it."""
    from time import gmtime, strftime

    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(moment))
