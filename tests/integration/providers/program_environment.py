"""The virtual environment of the programs, which all tests share."""

from __future__ import annotations

import fcntl
import hashlib
import sys
from pathlib import Path

from tests.lanes.typer_suite.fetch import run_checked

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = Path(__file__).with_name("program_requirements.txt")


def prepare() -> Path:
    """Create the environment if needed; return the folder with its programs."""
    content = (REQUIREMENTS.read_text(encoding="utf-8"), sys.version, sys.base_prefix)
    digest = hashlib.sha256("\0".join(content).encode()).hexdigest()[:12]
    folder = ROOT / ".cache" / "programs" / digest
    folder.mkdir(parents=True, exist_ok=True)
    venv, ready = folder / "venv", folder / "ready"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            run_checked([sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)])
            uv = [sys.executable, "-m", "uv", "pip", "install", "--compile-bytecode", "--no-deps"]
            python = str(venv / "bin" / "python")
            run_checked([*uv, "--python", python, "--requirements", str(REQUIREMENTS)])
            ready.touch()
    return venv / "bin"


def list_scripts(programs: Path) -> list[Path]:
    """Return the console scripts of the environment."""
    skipped = ("python", "activate", "Activate", "pip")
    return sorted(
        path
        for path in programs.iterdir()
        if path.is_file()
        and not path.name.startswith(skipped)
        and b"python" in path.read_bytes()[:200]
    )
