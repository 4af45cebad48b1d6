"""The distribution of tests to the processes of pytest-xdist: whole files, slow files first.

A file stays in one process, so that its fixtures and caches are created once. The groups of
`--dist loadgroup` are not used: pytest 9.2 ignores them, because test ids cannot be changed any
more (https://github.com/pytest-dev/pytest-xdist/issues/1386).
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

SHARED = {
    "evasions": (  # the results of the attempts
        "tests/execution/sandbox/test_isolation_evasions.py",
        "tests/execution/test_evasions.py",
    ),
    "bubblewrap": (  # a program that is downloaded
        "tests/execution/sandbox/test_bwrap.py",
        "tests/execution/sandbox/test_bwrap_evasions.py",
    ),
    "postgres": (  # a database server
        "tests/storage/test_idempotency_postgres.py",
        "tests/storage/test_idempotency_store.py",
    ),
}
"""Files that run in the same process, and what they share."""

SLOW: tuple[str, ...] = (*SHARED["evasions"],)
"""Files that start first, so that no process works alone at the end."""

_GROUPS = {path: name for name, paths in SHARED.items() for path in paths}
_PRIORITIES = {path: index for index, path in enumerate(SLOW)}


class FileScheduling(LoadFileScheduling):
    """Assigns files, in the order of collection, to the process that has finished its files."""

    def _split_scope(self, nodeid: str) -> str:
        path = super()._split_scope(nodeid)
        return _GROUPS.get(path, path)


def priority(nodeid: str) -> int:
    """Return the position of a test: a smaller number starts earlier."""
    return _PRIORITIES.get(nodeid.partition("::")[0], len(SLOW))
