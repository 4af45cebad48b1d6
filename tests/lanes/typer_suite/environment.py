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

from .fetch import checked, fetch
from .place import ROOT, Place

if TYPE_CHECKING:
    from collections.abc import Generator

# What Typer's own "tests" dependency group names, without its linters and reporters.
SUITE_NEEDS = ("pytest>=9", "pytest-xdist", "coverage[toml]>=7.13", "shellingham", "rich")


def constraints() -> str:
    """Return the pinned versions of the project, without Typer."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not re.match(r"typer\b(?!-)", line, re.I)) + "\n"


def fingerprint(place: Place) -> str:
    """Return a digest of everything that the environment is built from."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = text.partition("\n[tool.")[0]
    parts = (place.version, sys.version, sys.base_prefix, str(ROOT), project, constraints())
    return hashlib.sha256("\0".join((*parts, *SUITE_NEEDS)).encode()).hexdigest()


@contextmanager
def held(place: Place, *, alone: bool = False) -> Generator[None]:
    """Lock the environment of a version: shared for a run, exclusive (`alone`) to change it."""
    place.runtime.mkdir(parents=True, exist_ok=True)
    with (place.runtime / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def ready(place: Place, wanted: str) -> bool:
    """True if the environment exists and is up to date."""
    parts = (place.tree, place.python, place.packages, place.stamp)
    return all(map(Path.exists, parts)) and place.stamp.read_text(encoding="utf-8") == wanted


def install(place: Place) -> None:
    """Make the virtual environment, with Typer's tree and this project both editable."""
    checked([sys.executable, "-m", "venv", "--clear", "--without-pip", str(place.venv)])
    pins = place.runtime / "constraints.txt"
    pins.write_text(constraints(), encoding="utf-8")
    uv = [sys.executable, "-m", "uv", "pip"]
    into = ["--python", str(place.python)]
    projects = ["-e", str(place.tree), "-e", str(ROOT)]
    checked([*uv, "install", *into, "-c", str(pins), *projects, *SUITE_NEEDS])
    listing = [*uv, "list", *into, "--format", "json", "--exclude", "tooli"]
    done = subprocess.run(listing, stdout=subprocess.PIPE, text=True, check=True)
    names = {(one["name"], one["version"]) for one in json.loads(done.stdout)}
    lines = [f"{name}=={version}\n" for name, version in sorted(names)]
    place.packages.write_text("".join(lines), encoding="utf-8")


def prepare(place: Place) -> str:
    """Fetch the suite and make its environment where needed; return what it consists of."""
    wanted = fingerprint(place)
    if not ready(place, wanted):
        with held(place, alone=True):
            if not ready(place, wanted):
                place.stamp.unlink(missing_ok=True)
                fetch(place)
                install(place)
                place.stamp.write_text(wanted, encoding="utf-8")
    return f"{sys.version}\n{place.packages.read_text(encoding='utf-8')}"
