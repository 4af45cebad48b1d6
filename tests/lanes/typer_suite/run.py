"""Run the suite and read the outcomes of its tests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .environment import lock_environment
from .suite_paths import HOOKS, IN_PROCESS_VERSIONS, SuitePaths

TOOLI = "tooli:Tooli"
TYPER_VARIABLES = {
    "TERMINAL_WIDTH": "3000",
    "_TYPER_FORCE_DISABLE_TERMINAL": "1",
    "_TYPER_RUN_INSTALL_COMPLETION_TESTS": "1",
}
"""Environment variables of every run, as in Typer's scripts/test.sh."""
TOOLI_VARIABLES = {"TOOLI_OUTPUT": "text", "TOOLI_FRAMEWORK_HELP": "0"}
"""Additional variables of a run with the replacement."""
INHERITED_VARIABLES = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USER"),
)
"""Variables that a run inherits. The others are removed, so that the terminal or an outer test run
does not change the outcomes."""
WORKERS = min(2, os.cpu_count() or 1)
TIME_LIMIT = 1800.0
CHECK_REPLACEMENT = """
import importlib, sys, typer.cli, typer.main, typer.testing
replacement = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
modules = (typer, typer.main, typer.testing)
wrong = [module.__name__ for module in modules if module.Typer is not replacement]
assert not wrong, f"not replaced in {wrong}"
"""


class RunFailed(RuntimeError):
    """A run of the suite has no outcomes."""


@dataclass(frozen=True)
class Replacement:
    """The class that replaces `Typer`, and the folder that it is imported from."""

    name: str = TOOLI
    folder: str = ""

    def environment(self) -> dict[str, str]:
        """Return the environment variables of a run with this class."""
        return {"TYPER_SUITE_CLASS": self.name, **TOOLI_VARIABLES}

    def import_paths(self) -> list[str]:
        """Return the import paths of a run with this class."""
        return [str(HOOKS / "replacement"), *([self.folder] if self.folder else [])]


@dataclass
class Outcomes:
    """The outcomes of one run: outcome and reason by test id."""

    seconds: float = 0.0
    tests: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def passed(self) -> set[str]:
        """Return the ids of the tests that passed."""
        return {test for test, entry in self.tests.items() if entry["outcome"] == "passed"}

    def failed(self) -> dict[str, str]:
        """Return the ids and reasons of the tests that neither passed nor were skipped."""
        accepted = {"passed", "skipped", "xfailed"}
        return {
            test: entry["reason"]
            for test, entry in self.tests.items()
            if entry["outcome"] not in accepted
        }

    def reason(self, test: str) -> str:
        """Return on one line why a test did not pass."""
        entry = self.tests.get(test) or self.tests.get(test.partition("::")[0])
        if entry is None:
            return "was not run"
        return f"{entry['outcome']}: {entry['reason']}" if entry["reason"] else entry["outcome"]

    def save(self, target: Path) -> None:
        """Write the outcomes to a JSON file."""
        temporary = target.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        temporary.replace(target)

    @classmethod
    def load(cls, source: Path) -> Outcomes:
        """Read saved outcomes; there are no tests if the file does not exist."""
        if not source.is_file():
            return cls()
        return cls(**json.loads(source.read_text(encoding="utf-8")))


def environment(paths: SuitePaths, replacement: Replacement | None, work: Path) -> dict[str, str]:
    """Return all environment variables of a run."""
    inherited = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    import_paths = [
        str(HOOKS / "outcomes"),
        *(replacement.import_paths() if replacement is not None else []),
    ]
    variables = {
        "HOME": str(work),
        "COVERAGE_FILE": str(work / "coverage" / "data"),
        "PYTHONPATH": os.pathsep.join(import_paths),
        "TYPER_SUITE_HOME": str(work / "homes"),
        "TYPER_SUITE_OUTCOMES": str(work / "outcomes.json"),
        **({"TYPER_SUITE_IN_PROCESS": "1"} if paths.version in IN_PROCESS_VERSIONS else {}),
    }
    own = replacement.environment() if replacement is not None else {}
    return {**inherited, **TYPER_VARIABLES, **variables, **own}


def command(paths: SuitePaths, pytest_args: list[str], workers: int) -> list[str]:
    """Return the command line of a run. It uses Bash if available, because some tests need it."""
    pytest = [str(paths.python), "-m", "pytest", "-p", "typer_suite_outcomes"]
    pytest += ["-p", "no:cacheprovider", "--continue-on-collection-errors"]
    pytest += ["-n", str(workers)] if workers > 1 else ["-p", "no:xdist"]
    bash = shutil.which("bash")
    shell = [bash, "-c", '"$@"; exit $?', "typer-suite"] if bash else []
    return [*shell, *pytest, *pytest_args]


def execute(paths: SuitePaths, argv: list[str], env: dict[str, str], show: bool) -> str:
    """Run a command in the source tree and return its output."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            argv,
            cwd=paths.tree,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=None if show else output,
            stderr=None if show else subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(TIME_LIMIT)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        output.seek(0)
        text = output.read()
    if status not in (0, 1, 5):
        raise RunFailed(f"pytest exited with {status}\n{text[-4000:]}")
    return text


def check_replacement(paths: SuitePaths, replacement: Replacement, env: dict[str, str]) -> None:
    """Check in a subprocess that `typer.Typer` is the replacement."""
    done = subprocess.run(
        [str(paths.python), "-c", CHECK_REPLACEMENT, *replacement.name.split(":")],
        cwd=paths.tree,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RunFailed(f"{replacement.name} cannot replace Typer:\n{done.stderr.strip()}")


def run(
    paths: SuitePaths,
    replacement: Replacement | None = None,
    pytest_args: list[str] | None = None,
    workers: int = WORKERS,
    show: bool = False,
) -> Outcomes:
    """Run the suite, or the tests that `pytest_args` select, and return the outcomes."""
    started = time.monotonic()
    with lock_environment(paths), tempfile.TemporaryDirectory(prefix="typer-suite-") as folder:
        work = Path(folder)
        env = environment(paths, replacement, work)
        if replacement is not None:
            check_replacement(paths, replacement, env)
        options = pytest_args if pytest_args is not None else ["-q"]
        text = execute(paths, command(paths, options, workers), env, show)
        outcomes_file = work / "outcomes.json"
        if not outcomes_file.is_file():
            raise RunFailed(f"the run wrote no outcomes\n{text[-4000:]}")
        tests = json.loads(outcomes_file.read_text(encoding="utf-8"))
    return Outcomes(seconds=round(time.monotonic() - started, 1), tests=tests)


def collect(paths: SuitePaths) -> set[str]:
    """Return the ids of all tests of the suite, collected with Typer itself."""
    with lock_environment(paths), tempfile.TemporaryDirectory(prefix="typer-suite-") as folder:
        argv = command(paths, ["--collect-only", "-q"], workers=1)
        text = execute(paths, argv, environment(paths, None, Path(folder)), show=False)
    return {line.strip() for line in text.splitlines() if "::" in line}
