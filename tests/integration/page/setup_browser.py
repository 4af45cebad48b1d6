"""Install the browser for the tests of the page: Debian's chromium, which playwright controls.

python tests/integration/page/setup_browser.py     installs chromium if it is missing
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

CHROMIUM = "/usr/bin/chromium"
ARGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def install_browser() -> str | None:
    """Install the browser if it is missing; return an error message, or None on success."""
    with (Path(tempfile.gettempdir()) / "tooli-browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test process waits here
        return _install_chromium()


def _install_chromium() -> str | None:
    if os.access(CHROMIUM, os.X_OK):
        return None
    apt = shutil.which("apt-get")
    if apt is None:
        return f"{CHROMIUM} is missing, and there is no apt-get to install it with"
    if os.geteuid() != 0:
        return f"{CHROMIUM} is missing, and only root can install it (apt-get install chromium)"
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = [apt, "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    for command in (install, [apt, "update", "-qq"], install):
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
        if os.access(CHROMIUM, os.X_OK):
            return None
    return f"apt-get could not install chromium: {done.stderr.strip()[-300:]}"


if __name__ == "__main__":
    print(install_browser() or f"{CHROMIUM} is ready")
