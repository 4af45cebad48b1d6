"""Run a function in the sandbox, in its own process, and return the result."""

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


class SandboxResult:
    """The value of a function, or the name and errno of its exception."""

    def __init__(self, value: Any, error: str | None, code: int | None, status: int) -> None:
        self.value = value
        self.error = error
        self.errno = code
        self.status = status

    def __repr__(self) -> str:
        return f"SandboxResult({self.value!r}, {self.error!r}, {self.errno!r}, {self.status!r})"


def sandboxed(
    allowed: list[str] | AllowedAccess,
    fn: Callable[[], Any],
    *,
    support: SandboxSupport | None = None,
    temp_dir: str | None = None,
    files: list[tuple[str, int]] | None = None,
) -> SandboxResult:
    """Run a function in a sandbox with this allowed access and return the result."""
    access = allowed if isinstance(allowed, AllowedAccess) else resolve_access(allowed)
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        report: dict[str, Any] = {}
        try:
            enter_sandbox(
                access, support or detect_sandbox_support(), (write_end,), temp_dir, files or ()
            )
            try:
                report = {"value": fn()}
            except BaseException as failure:
                code = getattr(failure, "errno", None)
                report = {"error": f"{type(failure).__name__}: {failure}", "errno": code}
        except BaseException as failure:
            report = {"error": f"no sandbox: {type(failure).__name__}: {failure}"}
        finally:
            os.write(write_end, json.dumps(report, default=str).encode())
            os._exit(0)
    os.close(write_end)
    data = b""
    while chunk := os.read(read_end, 65536):
        data += chunk
    os.close(read_end)
    _, status = os.waitpid(pid, 0)
    report = json.loads(data) if data else {}
    return SandboxResult(report.get("value"), report.get("error"), report.get("errno"), status)
