"""Branch coverage of forked processes, sent to the parent through shared memory.

coverage.py can save the data of a forked process (`patch = ["fork", "_exit"]`), but it writes a
file. A process in a sandbox cannot write one, and the monitor reports the file as an access of the
command. Shared memory needs no file and no descriptor.
"""

from __future__ import annotations

import gc
import marshal
import mmap
import multiprocessing
import os
import sys
from typing import Any, NoReturn

from coverage import Coverage

SIZE = 1 << 26
"""Bytes of shared memory. Pages that are never written take no memory."""
START = 8
"""The first bytes hold the end of the data."""
LOCK_SECONDS = 30.0
"""A process that holds the lock for longer was killed meanwhile."""


class ChildCoverage:
    """Collects the executed branches of the forked processes of this process."""

    def __init__(self, coverage: Coverage) -> None:
        self._executed: dict[str, set[Any]] = coverage._collector.data  # type: ignore[union-attr]
        self._lock = multiprocessing.get_context("fork").Lock()
        self._memory = mmap.mmap(-1, SIZE)
        self._set_end(START)
        self._pid = os.getpid()
        self._exit = os._exit
        os._exit = self._save_and_exit  # type: ignore[assignment]
        os.register_at_fork(after_in_child=self._forget_executed)

    def collect(self) -> None:
        """Add the data of processes that have ended to the data of this process."""
        if self._end() == START and self._is_unlocked():
            return
        while not self._lock.acquire(timeout=LOCK_SECONDS):
            self._lock.release()
        try:
            position, end = START, self._end()
            while position < end:
                size = int.from_bytes(self._memory[position : position + 8], "big")
                position += 8
                for path, branches in marshal.loads(self._memory[position : position + size]):
                    self._executed.setdefault(path, set()).update(branches)
                position += size
            self._set_end(START)
        finally:
            self._lock.release()

    def _forget_executed(self) -> None:
        """In the child: keep only what it executes itself, so that little is sent."""
        for branches in self._executed.values():
            branches.clear()

    def _save_and_exit(self, status: int) -> NoReturn:
        if os.getpid() != self._pid:
            try:
                self._save()
            except Exception:  # the exit status matters more than the measurement
                pass
        self._exit(status)

    def _save(self) -> None:
        gc.disable()
        executed = [
            (path, tuple(branches.copy()))
            for path, branches in self._executed.copy().items()
            if branches
        ]
        data = marshal.dumps(executed)
        if self._lock.acquire(timeout=LOCK_SECONDS / 3):
            end = self._end()
            if end + 8 + len(data) <= SIZE:
                self._memory[end : end + 8] = len(data).to_bytes(8, "big")
                self._memory[end + 8 : end + 8 + len(data)] = data
                self._set_end(end + 8 + len(data))
            self._lock.release()

    def _is_unlocked(self) -> bool:
        if self._lock.acquire(block=False):
            self._lock.release()
            return True
        return False

    def _end(self) -> int:
        return int.from_bytes(self._memory[:START], "big")

    def _set_end(self, end: int) -> None:
        self._memory[:START] = end.to_bytes(START, "big")


def start() -> ChildCoverage | None:
    """Measure forked processes from now on, if this process is measured."""
    coverage = Coverage.current()
    if coverage is None or coverage._collector is None:
        return None
    from tooli.execution.monitor import audit_hook

    # Python traces an audit hook only if the hook has this attribute.
    audit_hook._audit_hook.__cantrace__ = True  # type: ignore[attr-defined]
    if sys.platform != "linux":
        return ChildCoverage(coverage)
    from tooli.execution.sandbox import shared_memory

    find_all = shared_memory.find_shared_mappings
    others = {mapping.start for mapping in find_all()}
    child_coverage = ChildCoverage(coverage)
    own = {mapping.start for mapping in find_all()} - others
    # A sandbox replaces shared memory, and the measured process must keep this one.
    shared_memory.find_shared_mappings = lambda: [
        mapping for mapping in find_all() if mapping.start not in own
    ]
    return child_coverage
