"""Plans as people read them: what would be done, line by line, and how to have it done."""

from __future__ import annotations

import sys

from tooli.surfaces.cli.plain import ONE_LINE, summary

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.call.model import Call

MOST = 200
"""Actions that are shown; more of them nobody reads."""


def show_plan(plan: dict[str, Any], call: Call) -> None:
    """Write a plan to stdout: `would delete  old.log`."""
    lines = list(_lines(plan))
    token = plan.get("token")
    if token is not None:
        from tooli.call.again import again
        from tooli.errors import quote

        line = again(call.replace(options=call.options.replace(dry_run=False)), apply=token)
        lines += ["", "Nothing was done. To do exactly this, within an hour and once:"]
        lines.append("  " + " ".join(map(quote, line)).translate(ONE_LINE))
    else:
        lines += ["", "Nothing was done."]
    sys.stdout.write("\n".join(lines) + "\n")


def _lines(plan: dict[str, Any]) -> list[str]:
    actions: list[dict[str, Any]] | None = plan.get("actions")
    if actions is None:
        shown = summary(plan["arguments"], None) if plan["arguments"] else "no arguments"
        effects = ", ".join(plan["effects"]) or "none declared"
        lines = [f"would call  {plan['tool']}", f"with        {shown}", f"effects     {effects}"]
        lines.append("The command does not tell what it would do: no more is known.")
        return [line.translate(ONE_LINE) for line in lines]
    if not actions:
        return ["would do nothing"]
    width = max([len(entry["action"]) for entry in actions[:MOST]])
    lines = [_line(entry, width).translate(ONE_LINE) for entry in actions[:MOST]]
    more = len(actions) - MOST
    return [*lines, f"… and {more} more"] if more > 0 else lines


def _line(entry: dict[str, Any], width: int) -> str:
    details = entry.get("details")
    said = f"  ({summary(details, None)})" if details else ""
    return f"would {entry['action']:<{width}}  {entry['target']}{said}"
