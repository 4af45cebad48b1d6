"""jq, where the machine has it or Debian gives it: unpacked beside the environments."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from harness.envs import CACHE

PACKAGES = ("jq", "libjq1", "libonig5")
PATIENCE_S = 60


def find_jq() -> str | None:
    """The words that start jq, or None where there is none to be had."""
    found = shutil.which("jq")
    if found:
        return found
    home = CACHE / "jq"
    program = home / "usr" / "bin" / "jq"
    if not program.exists():
        _unpack(home)
    return str(program) if program.exists() else None


def _unpack(home: Path) -> None:
    """Fetch the packages with apt and unpack them: that needs no rights on the machine."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return
    home.mkdir(parents=True, exist_ok=True)
    try:
        fetch = ["apt-get", "download", *PACKAGES]
        subprocess.run(fetch, cwd=home, check=True, capture_output=True, timeout=PATIENCE_S)
        for package in home.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), str(home)], check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return
