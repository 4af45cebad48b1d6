"""Run evasion attempts in the sandbox, each in its own process: `sandbox_attempts.py [MODULE]
[NAME…]`.

Prints one JSON object with the result of each attempt. The process of an attempt is forked after
the files are created and opened, and before it enters the sandbox. It ends by itself, so that exit
handlers of the attempt run. Then the files are compared.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.dirname(sys.path[0]))

import evasions

from tooli.core.declared_capabilities import resolve_access
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support, enter_sandbox

ATTEMPT_TIMEOUT = 60
"""Seconds after which an attempt counts as hung and is killed."""


def try_one(attempt: evasions.Attempt, is_sandboxed: bool = True) -> dict[str, Any]:
    """Run an attempt; return whether it succeeded and what it reported."""
    root = tempfile.mkdtemp(prefix="sandboxed-")
    os.makedirs(os.path.join(root, "outside"))
    listener = evasions.Listener(os.path.realpath(root))
    workspace = evasions.create_workspace(root, listener)
    before = evasions.read_state(workspace)
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        _run_in_child(attempt, workspace, theirs, is_sandboxed)
    os.close(theirs)
    data = b""
    while chunk := os.read(ours, 65536):
        data += chunk
    os.close(ours)
    _, status = os.waitpid(pid, 0)
    found = json.loads(data) if data else {"failure": f"the process died: {status}"}
    done = evasions.succeeded(
        attempt, workspace, before, found.get("evidence"), listener.received()
    )
    for number in (workspace.secret_fd, workspace.victim_fd, workspace.folder_fd):
        os.close(number)
    listener.close()
    shutil.rmtree(root)
    return {"kind": attempt.kind, "succeeded": done, **found}


def _run_in_child(
    attempt: evasions.Attempt, workspace: evasions.Workspace, report: int, is_sandboxed: bool
) -> None:
    """In the child: run the attempt, write the result, and exit normally."""
    signal.alarm(ATTEMPT_TIMEOUT)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    found: dict[str, Any]
    try:
        if is_sandboxed:
            support = detect_sandbox_support()
            assert not support.missing, support.missing
            argv = [f"fs:{act}:{workspace.inside}" for act in ("read", "write", "delete")]
            enter_sandbox(resolve_access(argv), support, (report,))
        found = {"level": support.level if is_sandboxed else "none"}
        try:
            evidence = attempt.run(workspace)
            found["evidence"] = str(evidence)[:2000] if evidence else None
        except BaseException as failure:
            found["failure"] = f"{type(failure).__name__}: {failure}"
    except BaseException as failure:  # without a sandbox the attempt must not look like a success
        found = {"level": None, "failure": f"{type(failure).__name__}: {failure}"}
    os.write(report, json.dumps(found).encode())
    os.close(report)
    sys.exit()  # normally, with threads, atexit and finalizers


def main(argv: list[str]) -> None:
    """Run every attempt of a module, or the named ones."""
    is_sandboxed = "--free" not in argv
    names = [word for word in argv if word != "--free"]
    table = importlib.import_module(names.pop(0) if names else "evasions")
    chosen = [one for one in table.ATTEMPTS if not names or one.name in names]
    print(json.dumps({one.name: try_one(one, is_sandboxed) for one in chosen}))


if __name__ == "__main__":
    if os.environ.get(evasions.VARIABLE) != evasions.TOKEN:  # as a process inherits it
        os.environ[evasions.VARIABLE] = evasions.TOKEN
        os.execv(sys.executable, [sys.executable, *sys.argv])
    main(sys.argv[1:])
