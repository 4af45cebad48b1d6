"""Sessions that have called before: a mark for each."""

from __future__ import annotations

import os

from tooli.storage.once_files import claim_once
from tooli.storage.state_dir import get_state_dir

SESSION_RETENTION_SECONDS = 30 * 24 * 3600
"""Seconds after which a session is forgotten; the first call of a new one clears up."""


def is_first_call(app: str, session: str) -> bool:
    """Whether an app has not been called in this session; from now on it has.

    Where nothing can be written, no call is known to be the first.
    """
    folder = os.path.join(get_state_dir(), "sessions", safe_file_name(app))
    try:
        return claim_once(folder, safe_file_name(session), SESSION_RETENTION_SECONDS)
    except OSError:
        return False


def safe_file_name(text: str) -> str:
    """A name that any file system takes, another one for each text."""
    is_safe = len(text) <= 60 and text.isascii() and text.replace("-", "a").isalnum()
    if is_safe and text == text.lower():
        return f"as-{text}"
    from hashlib import sha256

    return "by-" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
