"""Examples that work: command lines, read against the live app. None of them is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tooli.call.rehearsal import Unrehearsed
from tooli.testing.running import invoke

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tooli.app import Tooli
    from tooli.contract.tool import Tool

_OF_THE_MACHINE = (
    *("does not exist", "cannot be read", "is a file", "is a directory"),
    *("is not readable", "is not writable"),
)
"""What is said about files: an example may speak of some that are not here."""


def assert_examples(app: Tooli) -> None:
    """Every entry of `examples=` is a line that the command would take."""
    wrong = [
        f"{tool.key}: {problem}"
        for tool in app.catalog
        for example in tool.guidance.examples
        for problem in _example_problems(app, tool, example)
    ]
    assert not wrong, "examples that do not work:\n" + "\n".join(wrong)


def check_line(app: Tooli, words: Sequence[str]) -> list[str]:
    """What is wrong with a command line, given without the program; files need not exist.

    The app reads it as it would read any line, to the end of what a dry run checks.
    """
    end = words.index("--") if "--" in words else len(words)
    asked = [*words[:end], "--tooli-json", *words[end:]]  # whatever mode the line itself asks for
    with Unrehearsed():
        done = invoke(app, "--tooli-dry-run", *asked, mode="json")
    if done.exit_code == 0:
        return []
    error = done.error or {}
    if error.get("category") != "input":
        return []
    found: list[dict[str, Any]] = error.get("details", {}).get("errors") or [error]
    return [
        f"{problem['message']} [{problem['code']}]"
        for problem in found
        if not any(reason in problem["message"] for reason in _OF_THE_MACHINE)
    ]


def _example_problems(app: Tooli, tool: Tool, example: Any) -> Iterator[str]:
    words = _example_words(example)
    if words is None:
        yield f'{example!r} is not {{"args": […], "description": …}}'
        return
    path = () if app.tree().single is not None else tool.path
    for problem in check_line(app, [*path, *words]):
        yield f"{' '.join(words)}: {problem}"


def _example_words(example: Any) -> list[str] | None:
    try:
        words = example["args"]
    except (TypeError, KeyError):
        return None
    return None if isinstance(words, str) else [str(word) for word in words]
