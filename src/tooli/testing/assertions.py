"""Check the examples of an app, and compare its schema, help and answers with reviewed files.

Set `TOOLI_UPDATE_SNAPSHOTS=1`, or pass `update=True`, to write the files. Review the difference
before you commit it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tooli.pipeline.dry_run_recorder import DryRunExecutionDisabled
from tooli.testing.command_runner import app_name, invoke
from tooli.testing.parity import CommandLineInterface, diff, format_json, without_volatile_fields
from tooli.text.json_encoder import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tooli.app import Tooli
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.testing.parity import Case

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
    found: list[JsonObject] = error.get("details", {}).get("errors") or [error]
    return [
        f"{problem['message']} [{problem['code']}]"
        for problem in found
        if not any(reason in problem["message"] for reason in _FILE_MESSAGES)
    ]


def _example_problems(
    app: Tooli, tool: Tool, example: Mapping[str, Sequence[object]]
) -> Iterator[str]:
    argv = [str(argument) for argument in example["args"]]
    path = () if app.tree().only_command is not None else tool.path
    for problem in check_line(app, [*path, *argv]):
        yield f"{' '.join(argv)}: {problem}"


# ------------------------------------------------------------------ snapshots

UPDATE_VARIABLE = "TOOLI_UPDATE_SNAPSHOTS"


def assert_schema_snapshot(
    app: Tooli, path: str | Path, *, form: str = "json", update: bool = False
) -> None:
    """Check the app's `--schema` against a file; `form` is json, mcp, openai or anthropic."""
    found = invoke(app, "--schema", form)
    assert found.ok, found.stdout
    _compare(format_json(json.loads(found.stdout)), Path(path), update)


def assert_envelope_snapshot(
    app: Tooli, cases: Iterable[Case], path: str | Path, *, update: bool = False
) -> None:
    """Check the answers to some cases against a file, without `duration_ms`."""
    interface = CommandLineInterface(app)
    entries: list[JsonObject] = []
    for case in cases:
        response = interface.send_case(case)
        request = {"tool": case.tool, "arguments": case.arguments, "options": case.options}
        entries.append(
            {
                **{name: value for name, value in request.items() if value},
                **({} if case.argv is None else {"words": list(case.argv)}),
                "exit_code": response.exit_code,
                "envelope": without_volatile_fields(response.envelope),
            }
        )
    _compare(format_json(json.loads(encode(entries, []))), Path(path), update)


def assert_help_snapshot(app: Tooli, path: str | Path, *, update: bool = False) -> None:
    """Check the help of the app and of each command, for people and for agents, against a file."""
    pages: list[str] = []
    for command_path in _command_paths(app):
        for help_flags in (("--help", "--plain"), ("--help-agent",)):
            page = invoke(app, *command_path, *help_flags)
            assert page.ok, page.stdout
            line = " ".join((app_name(app), *command_path, *help_flags))
            pages.append(f"$ {line}\n{page.stdout}")
    _compare("\n".join(pages), Path(path), update)


def _command_paths(app: Tooli) -> list[tuple[str, ...]]:
    """Return the paths of the app, its groups and its commands, parents first."""
    if app.tree().only_command is not None:
        return [()]
    paths = [tool.path for tool in app.catalog if not tool.hidden]
    return list(dict.fromkeys(path[:n] for path in [(), *paths] for n in range(len(path) + 1)))


def _compare(found: str, path: Path, update: bool) -> None:
    if update or os.environ.get(UPDATE_VARIABLE, "") not in ("", "0"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found, encoding="utf-8")
        return
    hint = f"If this is what you want, run again with {UPDATE_VARIABLE}=1 and review the file."
    if not path.exists():
        raise AssertionError(f"There is no snapshot {path} yet. {hint}")
    difference = diff(path.read_text(encoding="utf-8"), found, str(path), "now")
    assert not difference, f"{path} has changed. {hint}\n{difference}"
