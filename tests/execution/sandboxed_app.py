"""Run a function behind walls, in a process of its own, and hear what became of it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tooli.core.declared_capabilities import AllowedAccess, resolve_access
from tooli.execution.sandbox.sandbox_runner import (
    SandboxSupport,
    detect_sandbox_support,
    enter_sandbox,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Found:
    """What a function gave, or the name of what it raised, with its errno."""

    def __init__(self, value: Any, error: str | None, code: int | None, status: int) -> None:
        self.value = value
        self.error = error
        self.errno = code
        self.status = status

    def __repr__(self) -> str:
        return f"Found({self.value!r}, {self.error!r}, {self.errno!r}, {self.status!r})"


def behind(
    allowed: list[str] | AllowedAccess,
    fn: Callable[[], Any],
    *,
    means: SandboxSupport | None = None,
    room: str | None = None,
    files: list[tuple[str, int]] | None = None,
) -> Found:
    """What a function makes of being held to an allowance."""
    allowance = allowed if isinstance(allowed, AllowedAccess) else resolve_access(allowed)
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        said: dict[str, Any] = {}
        try:
            enter_sandbox(
                allowance, means or detect_sandbox_support(), (theirs,), room, files or ()
            )
            try:
                said = {"value": fn()}
            except BaseException as failure:
                code = getattr(failure, "errno", None)
                said = {"error": f"{type(failure).__name__}: {failure}", "errno": code}
        except BaseException as failure:
            said = {"error": f"no walls: {type(failure).__name__}: {failure}"}
        finally:
            os.write(theirs, json.dumps(said, default=str).encode())
            os._exit(0)
    os.close(theirs)
    data = b""
    while piece := os.read(ours, 65536):
        data += piece
    os.close(ours)
    _, status = os.waitpid(pid, 0)
    said = json.loads(data) if data else {}
    return Found(said.get("value"), said.get("error"), said.get("errno"), status)
