"""The private virtual environment in which the suite of one Typer version runs."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .fetch import fetch, run_checked
from .suite_paths import ROOT, SuitePaths

if TYPE_CHECKING:
    from collections.abc import Generator

# Typer's dependency group "tests", without linters and reporters.
SUITE_REQUIREMENTS = ("pytest>=9", "pytest-xdist", "coverage[toml]>=7.13", "shellingham", "rich")


OLD_CLICK = "click==8.2.1"
"""The Click of the versions before 0.26, which do not contain it. Newer ones deprecate names that
these versions import."""


def constraints(version: str) -> str:
    """Return the pinned versions of the project, without Typer, and with the Click of a version."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not re.match(r"(typer|click)\b(?!-)", line, re.I)]
    if tuple(map(int, version.split("."))) < (0, 26):
        pins.append(OLD_CLICK)
    return "\n".join(pins) + "\n"


def fingerprint(paths: SuitePaths) -> str:
    """Return a digest of everything that the environment is built from."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = text.partition("\n[tool.")[0]
    parts = (
        paths.version,
        sys.version,
        sys.base_prefix,
        str(ROOT),
        project,
        constraints(paths.version),
    )
    return hashlib.sha256("\0".join((*parts, *SUITE_REQUIREMENTS)).encode()).hexdigest()


@contextmanager
def lock_environment(paths: SuitePaths, *, exclusive: bool = False) -> Generator[None]:
    """Lock the environment of a version: shared for a run, exclusive to change it."""
    paths.runtime.mkdir(parents=True, exist_ok=True)
    with (paths.runtime / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield


def is_ready(paths: SuitePaths, wanted: str) -> bool:
    """True if the environment exists and is up to date."""
    parts = (paths.tree, paths.python, paths.packages, paths.stamp)
    return all(map(Path.exists, parts)) and paths.stamp.read_text(encoding="utf-8") == wanted


def install(paths: SuitePaths) -> None:
    """Create the virtual environment, with editable installs of Typer and of this project."""
    run_checked([sys.executable, "-m", "venv", "--clear", "--without-pip", str(paths.venv)])
    pins = paths.runtime / "constraints.txt"
    pins.write_text(constraints(paths.version), encoding="utf-8")
    uv = [sys.executable, "-m", "uv", "pip"]
    target = ["--python", str(paths.python)]
    projects = ["-e", str(paths.tree), "-e", str(ROOT)]
    run_checked([*uv, "install", *target, "-c", str(pins), *projects, *SUITE_REQUIREMENTS])
    listing = [*uv, "list", *target, "--format", "json", "--exclude", "tooli"]
    done = subprocess.run(listing, stdout=subprocess.PIPE, text=True, check=True)
    packages = {(package["name"], package["version"]) for package in json.loads(done.stdout)}
    lines = [f"{name}=={version}\n" for name, version in sorted(packages)]
    paths.packages.write_text("".join(lines), encoding="utf-8")


def prepare(paths: SuitePaths) -> str:
    """Fetch the suite and create its environment if needed; return the installed versions."""
    wanted = fingerprint(paths)
    if not is_ready(paths, wanted):
        with lock_environment(paths, exclusive=True):
            if not is_ready(paths, wanted):
                paths.stamp.unlink(missing_ok=True)
                fetch(paths)
                install(paths)
                paths.stamp.write_text(wanted, encoding="utf-8")
    return f"{sys.version}\n{paths.packages.read_text(encoding='utf-8')}"
