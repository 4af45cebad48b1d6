"""A cache on disk for what was read from documents: in `openapi` in the state directory.

An entry is found by the hash of what it was made from. An entry that is damaged or cannot be read
does not exist. If the folder cannot be written, nothing is cached.
"""

from __future__ import annotations

import os
from hashlib import blake2b

from tooli.errors import ToolError
from tooli.storage.state_files import (
    UnusableFile,
    check_private_folder,
    delete_own_files,
    get_state_dir,
    is_hex,
    make_private_folder,
    read_regular_file,
    remove_file,
    write_private_file,
)

MAX_CACHED_FILES = 60
"""Maximum number of entries. The oldest ones are deleted."""
_DIGEST_BYTES = 20
_SUM_BYTES = 16


def content_key(kind: str, *parts: bytes) -> str:
    """Return the key of an entry that is made from these parts."""
    digest = blake2b(kind.encode(), digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


def read_entry(key: str, max_bytes: int) -> bytes | None:
    """Return the content of an entry, or None."""
    try:
        folder = _folder()
        check_private_folder(folder)
        data, _ = read_regular_file(os.path.join(folder, key), max_bytes + _SUM_BYTES)
    except (OSError, UnusableFile, ToolError):
        return None
    content = data[_SUM_BYTES:]
    return content if data[:_SUM_BYTES] == _checksum(content) else None


def write_entry(key: str, content: bytes) -> None:
    """Write an entry, in one step."""
    temporary = ""
    try:
        folder = _folder()
        make_private_folder(folder)
        check_private_folder(folder)
        temporary = os.path.join(folder, f"{key}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
        write_private_file(temporary, _checksum(content) + content)
        os.replace(temporary, os.path.join(folder, key))
        _delete_oldest(folder)
    except (OSError, ToolError):
        if temporary:
            remove_file(temporary)


def _folder() -> str:
    return os.path.join(get_state_dir(), "openapi")


def _checksum(content: bytes) -> bytes:
    return blake2b(content, digest_size=_SUM_BYTES).digest()


def _delete_oldest(folder: str) -> None:
    names = os.listdir(folder)
    if len(names) <= MAX_CACHED_FILES:
        return
    times = {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in names}
    oldest = sorted(times, key=times.__getitem__)[: len(names) - MAX_CACHED_FILES]

    def is_obsolete(name: str, _: os.stat_result) -> bool:
        return name in oldest and is_hex(name.partition(".")[0], 2 * _DIGEST_BYTES)

    delete_own_files(folder, is_obsolete)
