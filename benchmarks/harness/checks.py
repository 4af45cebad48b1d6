"""Checks of the output of a benchmark. A check returns None, or what is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from harness.model import Check, Run


def document(text: str) -> dict[str, Any]:
    """Return the JSON object in an output, or an empty one."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def prints(text: str) -> Check:
    """Check for exit code 0 and this output."""
    return lambda run: None if run.code == 0 and run.stdout == text else f"exit {run.code}"


def json_result(expected: object) -> Check:
    """Check for exit code 0 and an envelope with this result."""

    def check(run: Run) -> str | None:
        envelope = document(run.stdout)
        if run.code:
            return f"exit {run.code}"
        if not envelope.get("ok"):
            return "no envelope with ok=true on stdout"
        result = envelope.get("result")
        return None if result == expected else f"wrong result {json.dumps(result)}"

    return check


def failed_usage(as_json: bool) -> Check:
    """Check for exit code 2, and an envelope on stdout or a message on stderr."""

    def check(run: Run) -> str | None:
        if run.code != 2:
            return f"exit {run.code}"
        has_error = document(run.stdout).get("ok") is False if as_json else bool(run.stderr)
        return None if has_error else "no error message"

    return check


def mentions(*words: str, dashes: bool = False) -> Check:
    """Check for exit code 0 and these words in the output, in any case (`dashes`: `-` is `_`)."""

    def check(run: Run) -> str | None:
        text = run.stdout.lower()
        text = text.replace("-", "_") if dashes else text
        if run.code:
            return f"exit {run.code}"
        missing = [word for word in words if word not in text]
        return f"{missing[0]!r} is not in its output" if missing else None

    return check


def lists_tools(count: int, parameters: Mapping[str, str]) -> Check:
    """Check that the last line is an MCP list of this many tools with these parameter types."""

    def check(run: Run) -> str | None:
        if run.code:
            return f"exit {run.code}"
        listed = document(run.stdout.splitlines()[-1]).get("result", {}).get("tools", [])
        if len(listed) != count:
            return f"{len(listed)} tools instead of {count}"
        for tool in listed:
            properties = tool["inputSchema"]["properties"]
            types = {name: schema.get("type") for name, schema in properties.items()}
            if types != parameters:
                return f"{tool['name']} has the parameters {json.dumps(types)}"
        return None

    return check


def row_count(count: int) -> Check:
    """Check for exit code 0 and this many lines."""

    def check(run: Run) -> str | None:
        if run.code:
            return f"exit {run.code}"
        return None if run.lines == count else f"{run.lines} lines instead of {count}"

    return check


def printed_metrics(run: Run) -> Mapping[str, float]:
    """Return the metrics that a probe printed as a JSON object."""
    return {name: float(value) for name, value in document(run.stdout).items()}
