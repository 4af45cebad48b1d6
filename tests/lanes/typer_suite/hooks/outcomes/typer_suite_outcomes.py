"""A pytest plugin that writes the outcome of every test to a JSON file.

`TYPER_SUITE_OUTCOMES` is the path of the file. `TYPER_SUITE_HOME` is a folder in which every worker
gets a home folder, because several tests change the same start-up files of shells. With
`TYPER_SUITE_IN_PROCESS`, tests that start programs are not run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

# A warning in an exception group. Often an earlier test failed and left a process or a file open.
_NESTED_WARNING = re.compile(r"^ *\| (\w*Warning: .*)$", re.MULTILINE)
_OUTPUT_SECTION = "Output of the program that the test ran"
_RANK = ("passed", "xfailed", "skipped", "failed")
_outcomes: dict[str, dict[str, str]] = {}


def _outcome(report: pytest.TestReport) -> str:
    """Return the outcome of a phase. Expected failures have a name of their own."""
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return report.outcome


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the first line of the error, nested warnings and the end of the program's output."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        text = crash.message
    elif isinstance(report.longrepr, tuple):
        text = report.longrepr[2]
    else:
        lines = str(report.longrepr or "").strip().splitlines()
        text = next((line for line in reversed(lines) if line.startswith("E ")), "")
        text = text[1:] or (lines[-1] if lines else "")
    first = next(iter(text.strip().splitlines()), "")
    nested = _NESTED_WARNING.findall(str(report.longrepr)) if "ExceptionGroup" in first else []
    outputs = [text for title, text in report.sections if title == _OUTPUT_SECTION]
    last_lines = [line for text in outputs for line in text.strip().splitlines()[-1:]]
    return "; ".join([first[:200], *nested, *last_lines])[:400]


def _failed_output(value: object) -> str:
    """Return the output of a failed program, if the value is the result of running one."""
    if isinstance(value, subprocess.CompletedProcess):
        done = cast("subprocess.CompletedProcess[Any]", value)
        return str(done.stderr or "") if done.returncode else ""
    error = getattr(value, "exception", None) if type(value).__name__ == "Result" else None
    return repr(error) if isinstance(error, BaseException) else ""


def _program_output(error: pytest.ExceptionInfo[BaseException]) -> str:
    """Return the output of the program that a failed test ran, from the variables of the test."""
    values = [value for entry in error.traceback for value in entry.frame.f_locals.values()]
    return next((text for text in map(_failed_output, reversed(values)) if text), "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the output of the program to the report of a failed test."""
    report = yield
    if report.failed and call.excinfo is not None:
        output = _program_output(call.excinfo)
        if output:
            report.sections.append((_OUTPUT_SECTION, output))
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With TYPER_SUITE_IN_PROCESS, deselect the tests that start programs."""
    if "TYPER_SUITE_IN_PROCESS" not in os.environ:
        return
    functions = [getattr(item, "function", None) for item in items]
    deselected = [
        item
        for item, function in zip(items, functions, strict=True)
        if function is not None and "subprocess" in function.__code__.co_names
    ]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if item not in deselected]


def pytest_configure() -> None:
    """Set a separate home folder for this process."""
    homes = os.environ.get("TYPER_SUITE_HOME")
    if homes:
        home = Path(homes) / os.environ.get("PYTEST_XDIST_WORKER", "main")
        home.mkdir(parents=True, exist_ok=True)
        os.environ["HOME"] = os.environ["USERPROFILE"] = str(home)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the outcome of a test: the worst outcome of its phases."""
    outcome = _outcome(report)
    before = _outcomes.get(report.nodeid)
    if before is None or _rank(outcome) > _rank(before["outcome"]):
        reason = "" if outcome == "passed" else _reason(report)
        _outcomes[report.nodeid] = {"outcome": outcome, "reason": reason}


def _rank(outcome: str) -> int:
    """Return the rank of an outcome, a higher one for a worse outcome."""
    return _RANK.index(outcome) if outcome in _RANK else len(_RANK)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a file that could not be collected, with the path of the file as its id."""
    if report.failed:
        _outcomes[report.nodeid] = {"outcome": "uncollected", "reason": _reason(report)}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file in the main process, which has the reports of all workers."""
    target = os.environ.get("TYPER_SUITE_OUTCOMES")
    if target and not hasattr(session.config, "workerinput"):
        Path(target).write_text(json.dumps(_outcomes, indent=1), encoding="utf-8")
