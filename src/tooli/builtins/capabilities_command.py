"""capabilities record: run an app's examples or tests and report what each command accesses.

tooli ──▶ one process for each example, or one for the tests
            └─ every call of the app appends a line to TOOLI_RECORD_CAPABILITIES
tooli ◀── reads the lines, reduces files to folders, prints the declaration to paste

The recorded program can write any line itself. The lines are therefore validated, and the report is
a suggestion for a person to review. It is never written to a file.
"""

from __future__ import annotations

import json
import os
from stat import S_ISREG
from subprocess import DEVNULL, TimeoutExpired, run
from tempfile import TemporaryDirectory, gettempdir

from tooli.core.command_words import command_words
from tooli.core.declared_capabilities import (
    CAPABILITIES,
    PATH_CAPABILITIES,
    find_disallowed,
    is_under_any,
)
from tooli.core.safe_files import OpenFolder
from tooli.describe.calls import insert_flags
from tooli.errors import NotFoundError, StateError, Suggestion
from tooli.execution.interpreter import isolated_argv
from tooli.execution.monitor.monitored_runner import RECORD_FILE, shorten_path
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tooli.core.protocols import App
    from tooli.core.tool import Tool

RECORD_VARIABLE = "TOOLI_RECORD_CAPABILITIES"
LIMITATIONS = "env:read and state:mutate cannot be detected; net:write is detected as net:read"
REVIEW_NOTE = (
    "a suggestion: the recorded program can hide or invent accesses; review each line before you "
    "paste it"
)
_MAX_RECORD_BYTES = 256 << 20
_EXAMPLE_TIMEOUT = 60.0  # seconds for one example
_BOOTSTRAP_CODE = (
    "from tooli.sources.loader import load_app; app = load_app(sys.argv.pop(1));"
    " app._state.policy = 'standard'; tree = app.tree();"
    " apps = [a for path, command in tree.walk() for a in tree.levels(path, command) or ()];"
    " [setattr(state, 'declared_policy', 'standard') for state in (app._state, *apps)]; app()"
)


def record_usage(
    app: App,
    app_target: str,
    tests: Sequence[str],
    examples: bool,
    include_all: bool,
    roots: Sequence[str],
) -> dict[str, object]:
    """Run examples or tests; return what each command accessed and a declaration that allows it."""
    with TemporaryDirectory() as folder:
        path = os.path.join(os.path.realpath(folder), RECORD_FILE)
        report = _run_examples(app, app_target, include_all, path) if examples else {}
        if tests:
            report |= _run_tests(tests, path)
        usage, invalid_lines = _read_usage(path, app._state.name)
    if invalid_lines:
        report["invalid_lines"] = invalid_lines
    known = {tool.key: tool for tool in app.catalog}
    root_paths = [os.path.realpath(root) for root in roots]
    commands = [
        _usage_row(known[key], uses, root_paths) for key, uses in usage.items() if key in known
    ]
    if not commands and not report.get("not_run"):
        raise NotFoundError(
            f"No call of {app._state.name!r} was recorded.",
            suggestion=Suggestion(
                "fix", "Run tests that call the app, or add examples to commands."
            ),
            details=report,
        )
    return {"commands": commands, **report, "unseen": LIMITATIONS, "review": REVIEW_NOTE}


# ------------------------------------------------------------------ run


def _run_tests(argv: Sequence[str], path: str) -> dict[str, object]:
    """Run a command that calls the app; its output goes to stderr."""
    try:
        done = run(list(argv), env={**os.environ, RECORD_VARIABLE: path}, stdout=2, check=False)
    except OSError as failure:
        message = f"{argv[0]!r} cannot be run: {failure.strerror}"
        raise NotFoundError(message, field="tests") from None
    return {"exit_code": done.returncode}


def _run_examples(app: App, app_target: str, include_all: bool, path: str) -> dict[str, object]:
    """Run each example in its own process, and report the skipped and the failed ones.

    Commands that are not read-only are skipped unless `include_all` is set. Commands that need
    approval are always skipped.
    """
    skipped: list[dict[str, str]] = []
    failed: list[dict[str, str]] = []
    for tool in app.catalog:
        reason = _skip_reason(tool, include_all)
        if reason is not None:
            skipped.append({"command": tool.key, "why": reason})
            continue
        for example in tool.guidance.examples:
            argv = [str(argument) for argument in example.get("args", ())]
            problem = _run_example(tool, app_target, argv, path)
            if problem is not None:
                failed.append({"command": " ".join([tool.key, *argv]), "why": problem})
    found = {"not_run": skipped, "failed": failed}
    return {name: rows for name, rows in found.items() if rows}


def _skip_reason(tool: Tool, include_all: bool) -> str | None:
    if not tool.guidance.examples:
        return "the command has no examples"
    if tool.guard.may_need_approval:
        return "the command needs approval"
    if include_all or tool.behavior.read_only:
        return None
    if tool.behavior.destructive:
        return "the command is destructive; --all runs it as well"
    return "the command is not declared ReadOnly; --all runs it as well"


def _run_example(tool: Tool, app_target: str, argv: list[str], path: str) -> str | None:
    """Run an example; return the problem, or None."""
    flags = ["--tooli-json", *(["--tooli-yes"] if tool.behavior.destructive else [])]
    command_line = command_words(tool, insert_flags(argv, flags))
    try:
        done = run(
            [*isolated_argv(_BOOTSTRAP_CODE), app_target, *command_line],
            env={**os.environ, RECORD_VARIABLE: path},
            stdin=DEVNULL,
            capture_output=True,
            timeout=_EXAMPLE_TIMEOUT,
            check=False,
        )
    except TimeoutExpired:
        return f"the example took more than {_EXAMPLE_TIMEOUT:g} s"
    if done.returncode == 0:
        return None
    try:
        return str(json.loads(done.stdout)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"exit code {done.returncode}"


# ------------------------------------------------------------------ report


def _read_usage(path: str, name: str) -> tuple[dict[str, set[tuple[str, str]]], int]:
    """Return what each command of the app accessed, and the number of lines that are not valid."""
    found: dict[str, set[tuple[str, str]]] = {}
    lines = _read_record(path).splitlines()
    invalid_lines = 0
    for line in lines:
        entry = _parse_line(line)
        if entry is None:
            invalid_lines += 1
        elif entry[0] == name:
            found.setdefault(entry[1], set()).update(entry[2])
    return found, invalid_lines


def _read_record(path: str) -> bytes:
    """Return the content of the record file. Nothing else at its path is followed or read."""
    try:
        folder = OpenFolder(os.path.dirname(path))
        with os.fdopen(folder.open(os.path.basename(path), os.O_RDONLY), "rb") as file:
            found = os.fstat(file.fileno())
            is_valid = S_ISREG(found.st_mode) and found.st_size <= _MAX_RECORD_BYTES
            data = file.read(found.st_size) if is_valid else None
    except FileNotFoundError:
        return b""
    except OSError:  # a link, or a file without permissions
        data = None
    if data is None:
        raise StateError(
            "The recorded program has replaced the record, or made it too large. "
            "Nothing is reported.",
            suggestion=Suggestion("ask_human", "Find out what the program does with the file."),
        )
    return data


def _parse_line(line: bytes) -> tuple[str, str, list[tuple[str, str]]] | None:
    """Return the app, the command and its uses; None if the line is not valid."""
    try:
        entry: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not is_object(entry):
        return None
    app, command, rows = entry.get("app"), entry.get("command"), entry.get("uses")
    if not isinstance(app, str) or not isinstance(command, str) or not is_list(rows):
        return None
    uses: list[tuple[str, str]] = []
    for row in rows:
        match row:
            case [str(capability), str(target)] if (
                capability in CAPABILITIES and capability != "none"
            ):
                if capability in PATH_CAPABILITIES and not os.path.isabs(target):
                    return None
                uses.append((capability, target))
            case _:
                return None
    return app, command, uses


def _usage_row(
    tool: Tool, uses: set[tuple[str, str]], root_paths: Sequence[str]
) -> dict[str, object]:
    used = sorted(minimal_capabilities(uses, root_paths)) or ["none"]
    row: dict[str, object] = {"command": tool.key, "used": used}
    declared = [capability for capability in tool.guard.capabilities if capability != "none"]
    if tool.guard.capabilities:
        row["declared"] = list(tool.guard.capabilities)
        used = find_disallowed(used, declared)
        if not used:  # the declaration is complete
            return row
        row["undeclared"] = used
    capability_list = ", ".join(
        [json.dumps(item, ensure_ascii=False) for item in (*declared, *used)]
    )
    return {**row, "paste": f"capabilities=[{capability_list}]"}


def minimal_capabilities(uses: Iterable[tuple[str, str]], root_paths: Sequence[str]) -> set[str]:
    """Return the fewest capabilities that allow these actions.

    A file is replaced by its folder, and a folder inside another one is left out. A path below one
    of `root_paths` is replaced by that root. Any other path in the temporary folder is replaced by
    the temporary folder, unless it is in the current folder.
    """
    folders: dict[str, set[str]] = {}
    capabilities: set[str] = set()
    for capability, target in uses:
        if capability[:3] != "fs:":
            capabilities.add(capability)
            continue
        folder = target if os.path.isdir(target) else os.path.dirname(target)
        folders.setdefault(capability, set()).add(_generalize_folder(folder, root_paths))
    for capability, found in folders.items():
        for folder in found:
            above = folder
            while above != (above := os.path.dirname(above)):
                if above in found:
                    break
            else:
                capabilities.add(f"{capability}:{shorten_path(folder)}")
    return capabilities


def _generalize_folder(folder: str, root_paths: Sequence[str]) -> str:
    for root in root_paths:
        if is_under_any(folder, (root,)):
            return root
    temporary = os.path.realpath(gettempdir())
    is_temporary = is_under_any(folder, (temporary,)) and not is_under_any(
        folder, (os.path.realpath("."),)
    )
    return temporary if is_temporary else folder
