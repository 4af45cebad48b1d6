"""The virtual environment of the applications, which all tests share."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

from tests.lanes.typer_suite.fetch import run_checked, unpack

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
REPLACEMENT = ROOT / "tests" / "lanes" / "typer_suite" / "hooks" / "replacement"
"""A folder for PYTHONPATH: its sitecustomize.py replaces `typer.Typer` when typer is imported."""
OLDEST_PYTHON = (3, 11)
"""Some of the applications do not support Python 3.10."""


def prepare() -> Path:
    """Create the environment if needed; return the folder with its programs."""
    content = (REQUIREMENTS.read_text(encoding="utf-8"), sys.version, sys.base_prefix)
    digest = hashlib.sha256("\0".join(content).encode()).hexdigest()[:12]
    folder = ROOT / ".cache" / "real-apps" / digest
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / "ready"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            install(folder / "venv")
            ready.touch()
    return folder / "venv" / "bin"


def install(venv: Path) -> None:
    """Create a virtual environment with the pinned applications."""
    run_checked([sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)])
    uv = [sys.executable, "-m", "uv", "pip", "install", "--python", str(venv / "bin" / "python")]
    run_checked([*uv, "--no-deps", "--requirements", str(REQUIREMENTS)])
    # The programs run for the first time in the tests, several at once: compile them before.
    subprocess.run(
        [str(venv / "bin" / "python"), "-m", "compileall", "-q", "-j", "0", str(venv / "lib")],
        check=False,
        capture_output=True,
    )


def fetch_source(package: str, version: str) -> Path:
    """Download and unpack the source distribution of a package, unless it exists already."""
    folder = ROOT / ".cache" / "real-apps" / "sources"
    name = f"{package.replace('-', '_')}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / name).is_dir():
            pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check"]
            wanted = ["--no-deps", "--no-binary", package, f"{package}=={version}"]
            run_checked([*pip, *wanted, "--dest", str(folder)])
            unpack(folder / f"{name}.tar.gz", folder)
    return folder / name


def replacement_variables() -> dict[str, str]:
    """Return the variables of a process in which Tooli replaces Typer."""
    return {
        "PYTHONPATH": f"{REPLACEMENT}:{ROOT / 'src'}",
        "TYPER_SUITE_CLASS": "tooli:Tooli",
    }
