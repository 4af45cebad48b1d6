"""Collecting the coverage of forked processes."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import pytest
from tests import child_coverage

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks processes")


class FakeCollector:
    def __init__(self) -> None:
        self.data: dict[str, set[Any]] = {}


class FakeCoverage:
    def __init__(self) -> None:
        self._collector = FakeCollector()


@pytest.mark.parametrize("has_data", [False, True])
def test_killed_process_leaves_the_lock_usable(
    monkeypatch: pytest.MonkeyPatch, has_data: bool
) -> None:
    monkeypatch.setattr(os, "_exit", os._exit)
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    monkeypatch.setattr(child_coverage, "LOCK_SECONDS", 0.1)
    coverage: Any = FakeCoverage()
    children = child_coverage.ChildCoverage(coverage)
    if has_data:
        coverage._collector.data["a.py"] = {(1, 2)}
        children._save()
        coverage._collector.data.clear()
    pid = os.fork()
    if pid == 0:
        children._lock.acquire()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    children.collect()
    assert coverage._collector.data == ({"a.py": {(1, 2)}} if has_data else {})
    assert children._is_unlocked()
