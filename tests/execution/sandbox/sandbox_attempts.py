"""Run evasion attempts in the sandbox: `sandbox_attempts.py [--free] [MODULE] [NAME…]`.

Each attempt runs in its own process, which enters the sandbox. Prints one JSON object with the
result of each attempt. With `--free` the attempts run without a sandbox.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.dirname(sys.path[0]))

import attempts
import evasions

from tooli.core.declared_capabilities import resolve_access
from tooli.execution.output_relay import redirect_streams
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support, enter_sandbox


def in_sandbox(
    attempt: evasions.Attempt, workspace: evasions.Workspace, report: int
) -> dict[str, Any]:
    """Enter the sandbox and run the attempt. The level is None if there is no sandbox."""
    found: dict[str, Any] = {"level": None}
    try:
        support = detect_sandbox_support()
        assert not support.missing, support.missing
        capabilities = [f"fs:{act}:{workspace.inside}" for act in ("read", "write", "delete")]
        # As in a worker process, the outputs are pipes and stdin is read-only.
        redirect_streams([[1, 2]], os.pipe()[1:], has_stdin=True)
        enter_sandbox(resolve_access(capabilities), support, (report,))
        found["level"] = support.level
        found["evidence"] = attempt.run(workspace)
    except BaseException as failure:
        found["failure"] = f"{type(failure).__name__}: {failure}"
    return found


def main(argv: list[str]) -> None:
    """Run every attempt of a module, or the named ones."""
    enforce = attempts.free if "--free" in argv else in_sandbox
    names = [word for word in argv if word != "--free"]
    table = importlib.import_module(names.pop(0) if names else "evasions")
    chosen = [one for one in table.ATTEMPTS if not names or one.name in names]
    print(json.dumps({one.name: attempts.try_one(one, enforce) for one in chosen}))


if __name__ == "__main__":
    attempts.restart_with_token()
    main(sys.argv[1:])
