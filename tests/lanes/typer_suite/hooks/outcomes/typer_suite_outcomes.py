"""A pytest plugin that writes every test's outcome to a JSON file.

``TYPER_SUITE_OUTCOMES`` names the file. ``TYPER_SUITE_HOME`` names a folder in which every
worker gets a home of its own, because several tests rewrite the same shell start-up files.
With ``TYPER_SUITE_WITHIN`` tests that start programs are left out.
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

# A warning inside of an exception group. It tends to come from an earlier test that failed
# and left a process or a file behind.
_INSIDE = re.compile(r"^ *\| (\w*Warning: .*)$", re.MULTILINE)
_EVIDENCE = "Program that the test ran"
_RANK = ("passed", "xfailed", "skipped", "failed")
_outcomes: dict[str, dict[str, str]] = {}


def _outcome(report: pytest.TestReport) -> str:
    """The name of a phase's outcome, with an expected failure told apart."""
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return report.outcome


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The first line of what went wrong."""
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
    inside = _INSIDE.findall(str(report.longrepr)) if "ExceptionGroup" in first else []
    printed = [text for title, text in report.sections if title == _EVIDENCE]
    last = [line for text in printed for line in text.strip().splitlines()[-1:]]
    return "; ".join([first[:200], *inside, *last])[:400]


def _printed_by(value: object) -> str:
    """Return what a failed program printed, if the value is the result of running one."""
    if isinstance(value, subprocess.CompletedProcess):
        done = cast("subprocess.CompletedProcess[Any]", value)
        return str(done.stderr or "") if done.returncode else ""
    error = getattr(value, "exception", None) if type(value).__name__ == "Result" else None
    return repr(error) if isinstance(error, BaseException) else ""


def _evidence(error: pytest.ExceptionInfo[BaseException]) -> str:
    """What the program that a failed test ran had to say, from the test's own variables."""
    values = [value for entry in error.traceback for value in entry.frame.f_locals.values()]
    return next((text for text in map(_printed_by, reversed(values)) if text), "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failed test's report what its program had to say."""
    report = yield
    if report.failed and call.excinfo is not None:
        evidence = _evidence(call.excinfo)
        if evidence:
            report.sections.append((_EVIDENCE, evidence))
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what starts programs, where that is asked for."""
    if "TYPER_SUITE_WITHIN" not in os.environ:
        return
    functions = [getattr(item, "function", None) for item in items]
    starting = [
        item
        for item, function in zip(items, functions, strict=True)
        if function is not None and "subprocess" in function.__code__.co_names
    ]
    config.hook.pytest_deselected(items=starting)
    items[:] = [item for item in items if item not in starting]


def pytest_configure() -> None:
    """Give this process a home folder of its own."""
    homes = os.environ.get("TYPER_SUITE_HOME")
    if homes:
        home = Path(homes) / os.environ.get("PYTEST_XDIST_WORKER", "main")
        home.mkdir(parents=True, exist_ok=True)
        os.environ["HOME"] = os.environ["USERPROFILE"] = str(home)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test's outcome; of its phases, the worst one counts."""
    outcome = _outcome(report)
    before = _outcomes.get(report.nodeid)
    if before is None or _rank(outcome) > _rank(before["outcome"]):
        reason = "" if outcome == "passed" else _reason(report)
        _outcomes[report.nodeid] = {"outcome": outcome, "reason": reason}


def _rank(outcome: str) -> int:
    """How bad an outcome is; one that is not listed is the worst."""
    return _RANK.index(outcome) if outcome in _RANK else len(_RANK)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a file that could not be collected, under the file's own name."""
    if report.failed:
        _outcomes[report.nodeid] = {"outcome": "uncollected", "reason": _reason(report)}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file, from the process that has everybody's reports."""
    target = os.environ.get("TYPER_SUITE_OUTCOMES")
    if target and not hasattr(session.config, "workerinput"):
        Path(target).write_text(json.dumps(_outcomes, indent=1), encoding="utf-8")
