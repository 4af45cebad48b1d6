"""Install the programs that validate man pages: mandoc, groff and lexgrog of Debian.

`python tests/integration/documents/setup_validators.py` installs those that are missing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PACKAGES = {"mandoc": "mandoc", "groff": "groff-base", "lexgrog": "man-db"}


def install_validators() -> str | None:
    """Install the missing programs; return None, or the reason for a failure."""
    with (Path(tempfile.gettempdir()) / "tooli-validators.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes wait here
        return _install_missing()


def _missing() -> list[str]:
    return [package for program, package in PACKAGES.items() if shutil.which(program) is None]


def _install_missing() -> str | None:
    missing = _missing()
    if not missing:
        return None
    apt = shutil.which("apt-get")
    packages = " ".join(missing)
    if apt is None:
        return f"{packages} is missing, and there is no apt-get to install it with"
    if os.geteuid() != 0:
        return f"{packages} is missing, and only root can install it (apt-get install {packages})"
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = [apt, "install", "-y", "-qq", "--no-install-recommends", *missing]
    for argv in (install, [apt, "update", "-qq"], install):
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=600)
        if not _missing():
            return None
    return f"apt-get could not install {packages}: {done.stderr.strip()[-300:]}"


if __name__ == "__main__":
    print(install_validators() or f"{', '.join(PACKAGES)} are ready")
