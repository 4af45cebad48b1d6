"""Check example command lines against the app, without running them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tooli.pipeline.dry_run_recorder import DryRunExecutionDisabled
from tooli.testing.command_runner import invoke

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tooli.app import Tooli
    from tooli.core.tool import Tool

_FILE_MESSAGES = (
    *("does not exist", "cannot be read", "is a file", "is a directory"),
    *("is not readable", "is not writable"),
)
"""Messages that are ignored, because an example may name files that do not exist."""


def assert_examples(app: Tooli) -> None:
    """Check that each command of the app accepts all of its `examples=`."""
    wrong = [
        f"{tool.key}: {problem}"
        for tool in app.catalog
        for example in tool.guidance.examples
        for problem in _example_problems(app, tool, example)
    ]
    assert not wrong, "examples that do not work:\n" + "\n".join(wrong)


def check_line(app: Tooli, argv: Sequence[str]) -> list[str]:
    """Return the problems of a command line, which does not include the program.

    The app parses the line and runs all checks of a dry run. Files need not exist.
    """
    end = argv.index("--") if "--" in argv else len(argv)
    json_argv = [*argv[:end], "--tooli-json", *argv[end:]]  # overrides the output mode of the line
    with DryRunExecutionDisabled():
        command_result = invoke(app, "--tooli-dry-run", *json_argv, mode="json")
    if command_result.exit_code == 0:
        return []
    error = command_result.error or {}
    if error.get("category") != "input":
        return []
    found: list[dict[str, Any]] = error.get("details", {}).get("errors") or [error]
    return [
        f"{problem['message']} [{problem['code']}]"
        for problem in found
        if not any(reason in problem["message"] for reason in _FILE_MESSAGES)
    ]


def _example_problems(app: Tooli, tool: Tool, example: Any) -> Iterator[str]:
    argv = [str(argument) for argument in example["args"]]
    path = () if app.tree().only_command is not None else tool.path
    for problem in check_line(app, [*path, *argv]):
        yield f"{' '.join(argv)}: {problem}"
