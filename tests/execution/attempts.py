"""Run evasion attempts, each in its own process: `python attempts.py LEVEL [NAME…]`.

Prints one JSON object with the result of each attempt. The process of an attempt is forked after
the files are created and opened, and before anything is enforced. It ends by itself, so that exit
handlers of the attempt run. Then the files are compared.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
from typing import TYPE_CHECKING, Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import evasions

if TYPE_CHECKING:
    from collections.abc import Callable

    from evasions import Attempt, Workspace

    # Gets the attempt, its files, and the descriptor that reports the result.
    Enforcement = Callable[[Attempt, Workspace, int], dict[str, Any]]

ATTEMPT_TIMEOUT = 60
"""Seconds after which an attempt counts as hung and is killed."""


def free(attempt: Attempt, workspace: Workspace, report: int) -> dict[str, Any]:
    """Run the attempt without enforcement. An attempt that fails here is not a valid test."""
    return {"evidence": attempt.run(workspace)}


def by_policy(policy: str, **more: Any) -> Enforcement:
    """Return a level that runs the attempt in a command that declares only the inner folder."""

    def enforce(attempt: Attempt, workspace: Workspace, report: int) -> dict[str, Any]:
        from tooli import Tooli
        from tooli.core.call import Call, Caller, Options
        from tooli.pipeline.drivers import run

        app = Tooli("evasions", security_policy=policy)
        capabilities = [f"fs:{act}:{workspace.inside}" for act in ("read", "write", "delete")]

        @app.command("try", capabilities=capabilities, auth=[], **more)
        def run_attempt() -> Any:
            return attempt.run(workspace)

        tool = app.find("try")
        assert tool is not None
        call, stages = app.prepare(Call(tool, {}, Caller("cli"), [], Options()))
        outcome = run(call, stages)
        error = getattr(outcome, "error", None)
        return {
            "evidence": getattr(outcome, "value", None),
            "code": error.code if error is not None else None,
            "warnings": call.warnings,
            "enforcement": (call.meta or {}).get("enforcement"),
        }

    return enforce


LEVELS: dict[str, Enforcement] = {
    "free": free,
    "standard": by_policy("standard"),
    "strict": by_policy("strict"),
    "isolated": by_policy("off", isolation="required"),
}
"""How each level runs an attempt: the result has evidence and what was reported."""


def try_one(attempt: Attempt, enforce: Enforcement) -> dict[str, Any]:
    """Run an attempt; return whether it succeeded and what was reported."""
    root = tempfile.mkdtemp(prefix="evasion-")
    os.makedirs(os.path.join(root, "outside"))
    listener = evasions.Listener(os.path.realpath(root))
    workspace = evasions.create_workspace(root, listener)
    evasions.open_inherited(workspace)
    before = evasions.read_state(workspace)
    read_end, write_end = os.pipe()
    gc.freeze()  # the child does not visit, and thereby copy, the objects of this process
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _run_in_child(attempt, enforce, workspace, write_end)
    os.close(write_end)
    found = _read_result(pid, read_end)
    received = listener.received()
    done = evasions.succeeded(attempt, workspace, before, found.get("evidence"), received)
    for fd in (workspace.secret_fd, workspace.victim_fd, workspace.folder_fd):
        os.close(fd)
    listener.close()
    evasions.close_inherited()
    shutil.rmtree(root)
    return {"succeeded": done, **found, "evidence": str(found.get("evidence"))[:200]}


def _run_in_child(
    attempt: Attempt, enforce: Enforcement, workspace: Workspace, report: int
) -> None:
    """In the child: run the attempt, write the result, and exit normally."""
    signal.alarm(ATTEMPT_TIMEOUT)
    null = os.open(os.devnull, os.O_RDWR)
    if attempt.name in evasions.USES_STANDARD_STREAMS:
        null = evasions.inherited().log_fd
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    try:
        found = enforce(attempt, workspace, report)
    except BaseException as failure:
        found = {"evidence": None, "failure": f"{type(failure).__name__}: {failure}"}
    found["evidence"] = str(found["evidence"]) if found.get("evidence") else None
    os.write(report, json.dumps(found).encode())
    os.close(report)
    sys.exit()  # normally, with threads, atexit and finalizers


def _read_result(pid: int, report: int) -> dict[str, Any]:
    data = b""
    while chunk := os.read(report, 65536):
        data += chunk
    os.close(report)
    os.waitpid(pid, 0)
    return json.loads(data) if data else {"evidence": None, "failure": "the process died"}


def _warm_up() -> None:
    """Import in the parent what every child would import, so that each child starts faster."""
    import tooli.app
    import tooli.execution.monitor.monitored_runner
    import tooli.pipeline.drivers
    import tooli.policy.allowed_access
    import tooli.schema.tool_reader
    import tooli.stages.audit
    import tooli.stages.auth
    import tooli.stages.capabilities  # noqa: F401


def try_all(level: str, names: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Run every attempt at a level and return the results by name."""
    enforce = LEVELS[level]
    if level != "free":
        _warm_up()
    return {
        attempt.name: try_one(attempt, enforce)
        for attempt in evasions.ATTEMPTS
        if not names or attempt.name in names
    }


def restart_with_token() -> None:
    """Start this program again with the token in its initial environment, if it is not there."""
    if os.environ.get(evasions.VARIABLE) != evasions.TOKEN:
        os.environ[evasions.VARIABLE] = evasions.TOKEN
        os.execv(sys.executable, [sys.executable, *sys.argv])


if __name__ == "__main__":
    restart_with_token()
    json.dump(try_all(sys.argv[1], sys.argv[2:]), sys.stdout)
