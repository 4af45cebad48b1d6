"""The programs that judge man pages: Debian's mandoc, groff and lexgrog.

    python tests/integration/documents/setup_validators.py     installs what is missing

They are fetched when they are missing, once; where that cannot be done, it says why.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PACKAGES = {"mandoc": "mandoc", "groff": "groff-base", "lexgrog": "man-db"}


def lacking() -> str | None:
    """Make the programs ready; the reason why they cannot be had, or None."""
    with (Path(tempfile.gettempdir()) / "tooli-validators.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the test's other process waits here
        return _lacking_programs()


def _missing() -> list[str]:
    return [package for program, package in PACKAGES.items() if shutil.which(program) is None]


def _lacking_programs() -> str | None:
    missing = _missing()
    if not missing:
        return None
    apt = shutil.which("apt-get")
    wanted = " ".join(missing)
    if apt is None:
        return f"{wanted} is missing, and there is no apt-get to install it with"
    if os.geteuid() != 0:
        return f"{wanted} is missing, and only root can install it (apt-get install {wanted})"
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = [apt, "install", "-y", "-qq", "--no-install-recommends", *missing]
    for words in (install, [apt, "update", "-qq"], install):
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=600)
        if not _missing():
            return None
    return f"apt-get could not install {wanted}: {done.stderr.strip()[-300:]}"


if __name__ == "__main__":
    print(lacking() or f"{', '.join(PACKAGES)} are ready")
