"""Where what must last is kept: one folder for each user, or the one that is named."""

from __future__ import annotations

import os


def get_state_dir() -> str:
    """`TOOLI_STATE_DIR`, else the platform's own place for the state of programs."""
    getenv = os.environ.get
    configured = getenv("TOOLI_STATE_DIR")
    if configured:
        return configured
    if os.name == "nt":
        base_dir = getenv("LOCALAPPDATA") or os.path.join(
            os.path.expanduser("~"), "AppData", "Local"
        )
    else:
        base_dir = getenv("XDG_STATE_HOME") or os.path.join(
            os.path.expanduser("~"), ".local", "state"
        )
    return os.path.join(base_dir, "tooli")
