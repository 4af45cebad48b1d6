"""Try evasions behind walls, each in a process of its own: `python walled.py [MODULE] [NAME…]`.

Prints one JSON object: what became of each attempt. The process that tries is a fork of a warm
one, with the ground laid out and files open before the walls rise; it ends by itself, so that
what an attempt left for later happens, too. Then the ground is looked at.
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

import evasions

from tooli.core.declared_capabilities import resolve_access
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support, enter_sandbox

PATIENCE = 60
"""Seconds after which an attempt counts as hung, and is killed."""


def try_one(attempt: evasions.Attempt, held: bool = True) -> dict[str, Any]:
    """What became of an attempt: whether it succeeded, and what it said."""
    root = tempfile.mkdtemp(prefix="walled-")
    os.makedirs(os.path.join(root, "outside"))
    listener = evasions.Listener(os.path.realpath(root))
    ground = evasions.lay_out(root, listener)
    before = evasions.survey(ground)
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        _be_tried(attempt, ground, theirs, held)
    os.close(theirs)
    said = b""
    while data := os.read(ours, 65536):
        said += data
    os.close(ours)
    _, status = os.waitpid(pid, 0)
    found = json.loads(said) if said else {"failure": f"the process died: {status}"}
    done = evasions.succeeded(attempt, ground, before, found.get("evidence"), listener.heard())
    for number in (ground.secret_fd, ground.victim_fd, ground.folder_fd):
        os.close(number)
    listener.close()
    shutil.rmtree(root)
    return {"kind": attempt.kind, "succeeded": done, **found}


def _be_tried(attempt: evasions.Attempt, ground: evasions.Ground, report: int, held: bool) -> None:
    """In the child: try, say what happened, and end as any process does."""
    signal.alarm(PATIENCE)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    found: dict[str, Any]
    try:
        if held:
            means = detect_sandbox_support()
            assert not means.missing, means.missing
            words = [f"fs:{act}:{ground.inside}" for act in ("read", "write", "delete")]
            enter_sandbox(resolve_access(words), means, (report,))
        found = {"level": means.level if held else "none"}
        try:
            evidence = attempt.run(ground)
            found["evidence"] = str(evidence)[:2000] if evidence else None
        except BaseException as failure:
            found["failure"] = f"{type(failure).__name__}: {failure}"
    except BaseException as failure:  # no walls: whatever follows must not look like a success
        found = {"level": None, "failure": f"{type(failure).__name__}: {failure}"}
    os.write(report, json.dumps(found).encode())
    os.close(report)
    sys.exit()  # by itself: threads, atexit, finalizers


def main(words: list[str]) -> None:
    """Try every attempt of a module, or those that are named."""
    held = "--free" not in words
    names = [word for word in words if word != "--free"]
    room = importlib.import_module(names.pop(0) if names else "evasions")
    chosen = [one for one in room.ATTEMPTS if not names or one.name in names]
    print(json.dumps({one.name: try_one(one, held) for one in chosen}))


if __name__ == "__main__":
    if os.environ.get(evasions.VARIABLE) != evasions.TOKEN:  # as a process really inherits it
        os.environ[evasions.VARIABLE] = evasions.TOKEN
        os.execv(sys.executable, [sys.executable, *sys.argv])
    main(sys.argv[1:])
