"""Helpers for tests that fork, wait, or need a system call to fail."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from typing import Any

WAIT_SECONDS = 120
"""Seconds after which a process counts as hung."""


def run_in_child(work: Callable[[], None]) -> int:
    """Run a function in a forked process; return 0, or 1 if it raised."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def refuse(*_: object, **__: object) -> Any:
    """Fail as a system without /proc does."""
    raise OSError("not available")


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
