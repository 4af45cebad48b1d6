"""Plans as people read them: what would be done, line by line, and how to have it done."""

from __future__ import annotations

import sys

from tooli.cli.plain_output import SINGLE_LINE_ESCAPES, summarize

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call

MAX_ACTIONS_SHOWN = 200
"""Actions that are shown; more of them nobody reads."""


def show_plan(plan: dict[str, Any], call: Call) -> None:
    """Write a plan to stdout: `would delete  old.log`."""
    lines = list(_format_plan(plan))
    token = plan.get("token")
    if token is not None:
        from tooli.errors import shell_quote
        from tooli.pipeline.retry_command import build_retry_argv

        line = build_retry_argv(
            call.replace(options=call.options.replace(dry_run=False)), apply=token
        )
        lines += ["", "Nothing was done. To do exactly this, within an hour and once:"]
        lines.append("  " + " ".join(map(shell_quote, line)).translate(SINGLE_LINE_ESCAPES))
    else:
        lines += ["", "Nothing was done."]
    sys.stdout.write("\n".join(lines) + "\n")


def _format_plan(plan: dict[str, Any]) -> list[str]:
    actions: list[dict[str, Any]] | None = plan.get("actions")
    if actions is None:
        arguments = summarize(plan["arguments"], None) if plan["arguments"] else "no arguments"
        effects = ", ".join(plan["effects"]) or "none declared"
        lines = [
            f"would call  {plan['tool']}",
            f"with        {arguments}",
            f"effects     {effects}",
        ]
        lines.append("The command does not tell what it would do: no more is known.")
        return [line.translate(SINGLE_LINE_ESCAPES) for line in lines]
    if not actions:
        return ["would do nothing"]
    width = max([len(entry["action"]) for entry in actions[:MAX_ACTIONS_SHOWN]])
    lines = [
        _format_action(entry, width).translate(SINGLE_LINE_ESCAPES)
        for entry in actions[:MAX_ACTIONS_SHOWN]
    ]
    hidden_count = len(actions) - MAX_ACTIONS_SHOWN
    return [*lines, f"… and {hidden_count} more"] if hidden_count > 0 else lines


def _format_action(entry: dict[str, Any], width: int) -> str:
    details = entry.get("details")
    details_text = f"  ({summarize(details, None)})" if details else ""
    return f"would {entry['action']:<{width}}  {entry['target']}{details_text}"
