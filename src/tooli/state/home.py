"""Where what must last is kept: one folder for each user, or the one that is named."""

from __future__ import annotations

import os


def state_home() -> str:
    """`TOOLI_STATE_DIR`, else the platform's own place for the state of programs."""
    said = os.environ.get
    chosen = said("TOOLI_STATE_DIR")
    if chosen:
        return chosen
    if os.name == "nt":
        home = said("LOCALAPPDATA") or os.path.join(os.path.expanduser("~"), "AppData", "Local")
    else:
        home = said("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "tooli")
