"""Sessions that have called before: a mark for each."""

from __future__ import annotations

import os

from tooli.state.home import state_home
from tooli.state.marks import claim

KEPT = 30 * 24 * 3600
"""Seconds after which a session is forgotten; the first call of a new one clears up."""


def is_first_call(app: str, session: str) -> bool:
    """Whether an app has not been called in this session; from now on it has.

    Where nothing can be written, no call is known to be the first.
    """
    room = os.path.join(state_home(), "sessions", file_name(app))
    try:
        return claim(room, file_name(session), KEPT)
    except OSError:
        return False


def file_name(text: str) -> str:
    """A name that any file system takes, another one for each text."""
    plain = len(text) <= 60 and text.isascii() and text.replace("-", "a").isalnum()
    if plain and text == text.lower():
        return f"as-{text}"
    from hashlib import sha256

    return "by-" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
