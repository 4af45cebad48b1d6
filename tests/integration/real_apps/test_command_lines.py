"""Real programs behave with Tooli as with Typer."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from typing import TYPE_CHECKING

import pytest
from tests.integration.real_apps.differences import DIFFERENCES
from tests.integration.real_apps.environment import (
    OLDEST_PYTHON,
    prepare,
    replacement_variables,
)
from tests.integration.real_apps.process_runs import Folder, run_at_pipe, run_at_terminal
from tests.integration.real_apps.programs import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.real_apps.command_lines import Line, Program
    from tests.integration.real_apps.process_runs import Result

pytestmark = pytest.mark.skipif(
    sys.version_info < OLDEST_PYTHON, reason="some of the applications need Python 3.11"
)
TOOLI_RUNS = {"nothing set": {}, "TOOLI_OUTPUT=text": {"TOOLI_OUTPUT": "text"}}
CASES = [
    pytest.param(program, line, id=f"{program.name} {line.title}")
    for program in PROGRAMS
    for line in program.command_lines()
]


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder with the programs."""
    return prepare()


@pytest.fixture(scope="module")
def runs() -> ThreadPoolExecutor:
    """Threads that wait for the processes of one test."""
    return ThreadPoolExecutor(3)


@pytest.mark.parametrize(("program", "line"), CASES)
def test_line_behaves_as_with_typer(
    program: Program, line: Line, programs: Path, runs: ThreadPoolExecutor, tmp_path: Path
) -> None:
    """Output, exit code and files are the same, except for the differences that are meant."""
    variables = [("Typer", {})]
    variables += [(name, {**replacement_variables(), **more}) for name, more in TOOLI_RUNS.items()]
    cases = [(where, name, more) for where in line.at for name, more in variables]
    futures = [
        runs.submit(run_line, program, line, programs, tmp_path, number, where, more)
        for number, (where, _, more) in enumerate(cases)
    ]
    results = {case[:2]: future.result() for case, future in zip(cases, futures, strict=True)}
    problems = [
        f"at a {where}, {name}:\n{problem}"
        for where in line.at
        for name in TOOLI_RUNS
        for problem in compare(line, results[where, "Typer"], results[where, name])
    ]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def run_line(
    program: Program,
    line: Line,
    programs: Path,
    parent: Path,
    number: int,
    where: str,
    variables: dict[str, str],
) -> Result:
    """Run a command line in folders of its own."""
    folder = Folder(parent, number, program.files, program.setup)
    env = {**folder.environment(programs), **line.env, **variables}
    argv = [str(programs / program.name), *line.arguments]
    if where == "pipe":
        return run_at_pipe(argv, folder, env, line.stdin)
    return run_at_terminal(argv, folder, env, line.answers)


def compare(line: Line, expected: Result, actual: Result) -> list[str]:
    """Return what differs."""
    problems: list[str] = []
    if expected.code != actual.code:
        problems.append(f"exit code {actual.code}, with Typer {expected.code}")
    for name in ("out", "err"):
        wanted: bytes = getattr(expected, name)
        found: bytes = getattr(actual, name)
        if wanted != found:
            for difference in DIFFERENCES:
                found = difference.remove(found) if difference.applies(line) else found
        if wanted != found:
            problems.append(diff(f"std{name}", wanted, found))
    for name in sorted(expected.files.keys() | actual.files.keys()):
        if expected.files.get(name) != actual.files.get(name):
            problems.append(diff(name, expected.files.get(name, b""), actual.files.get(name, b"")))
    return problems


def diff(name: str, wanted: bytes, found: bytes) -> str:
    """Return a short diff of two texts."""
    before, after = (
        data.decode("utf-8", "backslashreplace").splitlines() for data in (wanted, found)
    )
    lines = list(unified_diff(before, after, f"{name} with Typer", f"{name} with Tooli", "", "", 1))
    return "\n".join(repr(line)[1:-1] for line in lines[:40]) or f"{name}: the line ends differ"
