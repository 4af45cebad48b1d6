"""Choose the idempotency store: SQLite for one user, Postgres for several machines."""

from __future__ import annotations

import atexit
import os

from tooli.storage.idempotency_sqlite import SqliteIdempotencyStore
from tooli.storage.state_files import get_state_dir

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.storage.idempotency_store import IdempotencyStore

# The key contains the process ID, because a forked process needs its own locks and files.
_open_stores: dict[tuple[int, str], IdempotencyStore] = {}
_pids_with_exit_hook: list[int] = []


def get_idempotency_store(url: str | None) -> IdempotencyStore:
    """Return the store at a URL; without one, the SQLite store of the current user."""
    cache_key = os.getpid(), get_state_dir() if url is None else url
    if cache_key not in _open_stores:
        _open_stores.setdefault(cache_key, _open_store(url))
    return _open_stores[cache_key]


def _open_store(url: str | None) -> IdempotencyStore:
    if url is None:
        return SqliteIdempotencyStore(get_state_dir())
    from tooli.storage.idempotency_postgres import PostgresIdempotencyStore

    return PostgresIdempotencyStore(url)


def close_at_exit() -> None:
    """Close the stores of this process when it ends."""
    pid = os.getpid()
    if pid not in _pids_with_exit_hook:
        _pids_with_exit_hook.append(pid)
        atexit.register(_close_all)


def _close_all() -> None:
    for (pid, _), store in list(_open_stores.items()):
        if pid == os.getpid():
            store.close()
