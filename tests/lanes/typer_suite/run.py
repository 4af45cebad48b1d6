"""One run of the suite, and the outcomes it gives."""

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

from .environment import held
from .place import HOOKS, WITHIN, Place

TOOLI = "tooli:Tooli"
# How Typer's own scripts/test.sh sets the suite up.
TYPERS_SETTINGS = {
    "TERMINAL_WIDTH": "3000",
    "_TYPER_FORCE_DISABLE_TERMINAL": "1",
    "_TYPER_RUN_INSTALL_COMPLETION_TESTS": "1",
}
# What a run with the stand-in class has on top of that.
TOOLIS_SETTINGS = {"TOOLI_OUTPUT": "text", "TOOLI_FRAMEWORK_HELP": "0"}
# What is taken over from the caller's environment. Nothing else is, so that neither the
# terminal nor an outer test run has a say in the outcomes.
KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USER")
WORKERS = min(2, os.cpu_count() or 1)
TIME_LIMIT = 1800.0
PROBE = """
import importlib, sys, typer.cli, typer.main, typer.testing
wanted = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
places = (typer, typer.main, typer.testing)
wrong = [place.__name__ for place in places if place.Typer is not wanted]
assert not wrong, f"not replaced in {wrong}"
"""


class RunFailed(RuntimeError):
    """A run of the suite that gave no outcomes to compare."""


@dataclass(frozen=True)
class Standin:
    """The class that takes ``Typer``'s place, and the folder it is imported from."""

    name: str = TOOLI
    folder: str = ""

    def environment(self) -> dict[str, str]:
        """The settings of a run with this class."""
        return {"TYPER_SUITE_CLASS": self.name, **TOOLIS_SETTINGS}

    def paths(self) -> list[str]:
        """The import paths of a run with this class."""
        return [str(HOOKS / "standin"), *([self.folder] if self.folder else [])]


@dataclass
class Outcomes:
    """The outcomes of one run: a state and a reason for every test id."""

    seconds: float = 0.0
    tests: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def passed(self) -> set[str]:
        """The ids of the tests that passed."""
        return {test for test, one in self.tests.items() if one["outcome"] == "passed"}

    def failed(self) -> dict[str, str]:
        """Return the ids and reasons of the tests that neither passed nor were skipped."""
        fine = {"passed", "skipped", "xfailed"}
        return {t: one["reason"] for t, one in self.tests.items() if one["outcome"] not in fine}

    def reason(self, test: str) -> str:
        """Return in one line why a test did not pass."""
        one = self.tests.get(test) or self.tests.get(test.partition("::")[0])
        if one is None:
            return "was not run"
        return f"{one['outcome']}: {one['reason']}" if one["reason"] else one["outcome"]

    def save(self, target: Path) -> None:
        """Keep these outcomes in a JSON file."""
        fresh = target.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        fresh.replace(target)

    @classmethod
    def load(cls, source: Path) -> Outcomes:
        """Read outcomes that were kept; none when there is no such file."""
        if not source.is_file():
            return cls()
        return cls(**json.loads(source.read_text(encoding="utf-8")))


def environment(place: Place, standin: Standin | None, work: Path) -> dict[str, str]:
    """Return all environment variables of a run."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    paths = [str(HOOKS / "outcomes"), *(standin.paths() if standin else [])]
    ours = {
        "HOME": str(work),
        "COVERAGE_FILE": str(work / "coverage" / "data"),
        "PYTHONPATH": os.pathsep.join(paths),
        "TYPER_SUITE_HOME": str(work / "homes"),
        "TYPER_SUITE_OUTCOMES": str(work / "outcomes.json"),
        **({"TYPER_SUITE_WITHIN": "1"} if place.version in WITHIN else {}),
    }
    return {**kept, **TYPERS_SETTINGS, **ours, **(standin.environment() if standin else {})}


def command(place: Place, chosen: list[str], workers: int) -> list[str]:
    """Return the command line of a run. It uses Bash if available, because some tests need it."""
    pytest = [str(place.python), "-m", "pytest", "-p", "typer_suite_outcomes"]
    pytest += ["-p", "no:cacheprovider", "--continue-on-collection-errors"]
    pytest += ["-n", str(workers)] if workers > 1 else ["-p", "no:xdist"]
    bash = shutil.which("bash")
    shell = [bash, "-c", '"$@"; exit $?', "typer-suite"] if bash else []
    return [*shell, *pytest, *chosen]


def execute(place: Place, line: list[str], settings: dict[str, str], show: bool) -> str:
    """Run a command in the source tree to its end, and return what it printed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        process = subprocess.Popen(
            line,
            cwd=place.tree,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=None if show else printed,
            stderr=None if show else subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(TIME_LIMIT)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        printed.seek(0)
        text = printed.read()
    if status not in (0, 1, 5):
        raise RunFailed(f"pytest ended with {status}\n{text[-4000:]}")
    return text


def probe(place: Place, standin: Standin, settings: dict[str, str]) -> None:
    """Check that ``typer.Typer`` is the stand-in class in a subprocess."""
    done = subprocess.run(
        [str(place.python), "-c", PROBE, *standin.name.split(":")],
        cwd=place.tree,
        env=settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RunFailed(f"{standin.name} cannot take Typer's place:\n{done.stderr.strip()}")


def run(
    place: Place,
    standin: Standin | None = None,
    chosen: list[str] | None = None,
    workers: int = WORKERS,
    show: bool = False,
) -> Outcomes:
    """Run the suite, or the chosen part of it, and return the outcomes."""
    started = time.monotonic()
    with held(place), tempfile.TemporaryDirectory(prefix="typer-suite-") as folder:
        work = Path(folder)
        settings = environment(place, standin, work)
        if standin:
            probe(place, standin, settings)
        options = chosen if chosen is not None else ["-q"]
        text = execute(place, command(place, options, workers), settings, show)
        written = work / "outcomes.json"
        if not written.is_file():
            raise RunFailed(f"the run wrote no outcomes\n{text[-4000:]}")
        tests = json.loads(written.read_text(encoding="utf-8"))
    return Outcomes(seconds=round(time.monotonic() - started, 1), tests=tests)


def collect(place: Place) -> set[str]:
    """The ids of all tests of the suite, as Typer itself has them."""
    with held(place), tempfile.TemporaryDirectory(prefix="typer-suite-") as folder:
        line = command(place, ["--collect-only", "-q"], workers=1)
        text = execute(place, line, environment(place, None, Path(folder)), show=False)
    return {line.strip() for line in text.splitlines() if "::" in line}
