"""The keys and tokens of tooli that are in the memory of this process.

A sandboxed process is a copy of the process of the app. Before its function runs, it overwrites
every copy of these values in its memory (execution/sandbox/key_wiping.py). So every module that
reads, creates or derives a key adds it here, unless the sandboxed process needs the key itself.
"""

from __future__ import annotations

held_keys: set[bytes] = set()
"""The keys and tokens, as they are in memory."""


def hold_key(key: str | bytes) -> None:
    """Add a key or a token. A text is added in every form in which Python stores it."""
    if isinstance(key, bytes):
        held_keys.add(key)
        return
    held_keys.add(key.encode("utf-8", "surrogateescape"))
    if not key.isascii():
        for encoding in ("latin-1", "utf-16-le", "utf-32-le"):
            held_keys.add(key.encode(encoding, "replace"))
