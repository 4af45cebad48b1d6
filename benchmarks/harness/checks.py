"""Did a contestant do its job? Each maker returns a check: None, or what is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from harness.model import Check, Run


def document(text: str) -> dict[str, Any]:
    """The one JSON object of an output, or an empty one."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def prints(text: str) -> Check:
    """It ends well with exactly this on stdout."""
    return lambda run: None if run.code == 0 and run.stdout == text else f"exit {run.code}"


def json_result(expected: object) -> Check:
    """It ends well with one envelope around this result."""

    def check(run: Run) -> str | None:
        envelope = document(run.stdout)
        if run.code:
            return f"exit {run.code}"
        if not envelope.get("ok"):
            return "no envelope with ok=true on stdout"
        right = envelope.get("result") == expected
        return None if right else f"wrong result {json.dumps(envelope.get('result'))}"

    return check


def failed_usage(as_json: bool) -> Check:
    """It refuses with exit 2, as an envelope on stdout or in words on stderr."""

    def check(run: Run) -> str | None:
        if run.code != 2:
            return f"exit {run.code}"
        has_error = document(run.stdout).get("ok") is False if as_json else bool(run.stderr)
        return None if has_error else "did not say what was wrong"

    return check


def mentions(*words: str, dashes: bool = False) -> Check:
    """It ends well and its output holds all these words, in any case (`dashes`: `-` is `_`)."""

    def check(run: Run) -> str | None:
        text = run.stdout.lower()
        text = text.replace("-", "_") if dashes else text
        if run.code:
            return f"exit {run.code}"
        missing = [word for word in words if word not in text]
        return f"{missing[0]!r} is not in its output" if missing else None

    return check


def lists_tools(count: int, parameters: Mapping[str, str]) -> Check:
    """Its last line lists this many tools over MCP, each with parameters of these JSON types."""

    def check(run: Run) -> str | None:
        if run.code:
            return f"exit {run.code}"
        listed = document(run.stdout.splitlines()[-1]).get("result", {}).get("tools", [])
        if len(listed) != count:
            return f"{len(listed)} tools instead of {count}"
        for tool in listed:
            properties = tool["inputSchema"]["properties"]
            types = {name: about.get("type") for name, about in properties.items()}
            if types != parameters:
                return f"{tool['name']} has the parameters {json.dumps(types)}"
        return None

    return check


def row_count(count: int) -> Check:
    """It streamed this many lines."""

    def check(run: Run) -> str | None:
        if run.code:
            return f"exit {run.code}"
        return None if run.lines == count else f"{run.lines} lines instead of {count}"

    return check


def printed(run: Run) -> Mapping[str, float]:
    """The numbers that a probe printed as one JSON object."""
    return {name: float(value) for name, value in document(run.stdout).items()}
