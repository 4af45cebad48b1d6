"""The browser that the page is tried in: Debian's chromium, driven by playwright.

    python tests/integration/page/setup_browser.py     installs what is missing

It is fetched when it is missing, once; where that cannot be done, it says why.
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


def lacking() -> str | None:
    """Make the browser ready; the reason why it cannot be had, or None."""
    with (Path(tempfile.gettempdir()) / "tooli-browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the test's other process waits here
        return _lacking_chromium()


def _lacking_chromium() -> str | None:
    if os.access(CHROMIUM, os.X_OK):
        return None
    apt = shutil.which("apt-get")
    if apt is None:
        return f"{CHROMIUM} is missing, and there is no apt-get to install it with"
    if os.geteuid() != 0:
        return f"{CHROMIUM} is missing, and only root can install it (apt-get install chromium)"
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = [apt, "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    for words in (install, [apt, "update", "-qq"], install):
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=600)
        if os.access(CHROMIUM, os.X_OK):
            return None
    return f"apt-get could not install chromium: {done.stderr.strip()[-300:]}"


if __name__ == "__main__":
    print(lacking() or f"{CHROMIUM} is ready")
