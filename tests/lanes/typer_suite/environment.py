"""The private virtual environment in which the suite of one Typer version runs."""

from __future__ import annotations

import fcntl
import hashlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .fetch import checked, fetch
from .place import ROOT, Place

# What Typer's own "tests" dependency group names, without its linters and reporters.
SUITE_NEEDS = ("pytest>=9", "pytest-xdist", "coverage[toml]>=7.13", "shellingham", "rich")


def constraints() -> str:
    """The project's pinned versions, without the pin of Typer itself."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not re.match(r"typer\b(?!-)", line, re.I)) + "\n"


def fingerprint(place: Place) -> str:
    """The digest of everything the environment is made from."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    parts = (place.version, sys.version, sys.base_prefix, str(ROOT), project, constraints())
    return hashlib.sha256("\0".join((*parts, *SUITE_NEEDS)).encode()).hexdigest()


@contextmanager
def alone(place: Place) -> Iterator[None]:
    """Hold the version's folder, so that only one process at a time sets it up."""
    place.runtime.mkdir(parents=True, exist_ok=True)
    with (place.runtime / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def install(place: Place) -> None:
    """Make the virtual environment, with Typer's tree and this project both editable."""
    checked([sys.executable, "-m", "venv", "--clear", str(place.venv)])
    pins = place.runtime / "constraints.txt"
    pins.write_text(constraints(), encoding="utf-8")
    pip = [str(place.python), "-m", "pip", "install", "--disable-pip-version-check"]
    projects = ["-e", str(place.tree), "-e", str(ROOT)]
    checked([*pip, "-c", str(pins), *projects, *SUITE_NEEDS])


def prepare(place: Place) -> str:
    """Fetch the suite and make its environment where needed; return the fingerprint."""
    wanted = fingerprint(place)
    with alone(place):
        fetch(place)
        made = place.stamp.read_text(encoding="utf-8") if place.stamp.is_file() else ""
        if made != wanted or not place.python.exists():
            install(place)
            place.stamp.write_text(wanted, encoding="utf-8")
    return wanted
