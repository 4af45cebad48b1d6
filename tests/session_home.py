"""A home directory for the tests, so that no process that they start uses that of the user."""

from __future__ import annotations

import os
import shutil
import tempfile

SHARED = {"XDG_CACHE_HOME": ".cache", "npm_config_cache": ".npm", "GIT_CONFIG_GLOBAL": ".gitconfig"}
"""What programs such as pip, npm and git still take from the home of the user, by variable."""
UNUSED = ("TOOLI_STATE_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


def replace_home() -> str:
    """Set HOME and the variables that depend on it; return the new home."""
    user_home = os.path.expanduser("~")
    for name, part in SHARED.items():
        path = os.path.join(user_home, part)
        if name not in os.environ and os.path.exists(path):
            os.environ[name] = path
    for name in UNUSED:
        os.environ.pop(name, None)
    home = os.path.realpath(tempfile.mkdtemp(prefix="tooli-home-"))
    os.environ["HOME"] = home
    os.environ["XDG_STATE_HOME"] = os.path.join(home, ".local", "state")
    return home


def remove_home(home: str) -> None:
    """Remove a home that `replace_home` has made."""
    shutil.rmtree(home, ignore_errors=True)


def remove_approvals() -> None:
    """Remove the approval requests of a test. One caller may have 100 of them at a time."""
    state = os.path.join(os.environ["XDG_STATE_HOME"], "tooli", "approvals")
    shutil.rmtree(state, ignore_errors=True)
