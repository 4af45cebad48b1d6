"""Run the reader of a program inside the sandbox, and end everything that the program started.

    tooli ── starts ──▶ this process ── fork ──▶ sandbox ── exec ──▶ interpreter of the program
      └── holds its stdin open             └── kills all descendants at the end

This process adopts orphans, so that a program that forks leaves nothing behind. It ends when tooli
ends, because its stdin is closed then.
"""

from __future__ import annotations

import json
import os
import sys
from time import monotonic

from tooli.core.declared_capabilities import AllowedAccess
from tooli.execution.processes import (
    adopt_orphans,
    die_with_parent,
    fork,
    is_readable,
    kill_descendants,
    kill_process_group,
    reap_children,
)
from tooli.execution.sandbox import landlock
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support, enter_sandbox
from tooli.execution.sandbox.temp_dirs import SandboxDirs

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NoReturn, TypedDict

    class Payload(TypedDict):
        """What to run, and what it can access."""

        argv: list[str]  # the first word is the interpreter
        env: dict[str, str]
        reads: list[str]  # files and folders to read
        lists: list[str]  # folders whose names can be listed
        programs: list[str]  # files to execute
        seconds: float


TIMED_OUT, NO_SANDBOX = 124, 125
"""Exit codes of this process."""
HOME_VARS = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
_POLL_SECONDS = 0.02


def main() -> None:
    """Run the reader, and end this process."""
    payload: Payload = json.loads(sys.argv[1])
    sys.path += [entry for entry in payload["lists"] if entry not in sys.path]
    adopt_orphans()
    access = AllowedAccess(reads=tuple(payload["reads"]), spawns=True)
    folders = SandboxDirs(access)
    exit_code = 0
    try:
        pid = fork()
        if pid == 0:
            _enter_and_run(payload, access, folders.temp_dir)
        exit_code = _wait(pid, payload["seconds"])
        kill_descendants(os.getpid(), reaps=True)
        kill_process_group(pid) if exit_code == TIMED_OUT else None
    finally:
        folders.remove()
    os._exit(exit_code)


def _wait(pid: int, seconds: float) -> int:
    """Wait for the reader; return its exit code. Stop waiting if tooli has ended."""
    deadline = monotonic() + seconds
    while True:
        status = reap_children().get(pid)
        if status is not None:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1
        if monotonic() >= deadline or is_readable(0, _POLL_SECONDS):
            return TIMED_OUT


def _enter_and_run(payload: Payload, access: AllowedAccess, temp_dir: str) -> NoReturn:
    """Enter the sandbox and become the interpreter of the program."""
    try:
        die_with_parent()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.chdir(temp_dir)
        run = landlock.READ | landlock.EXECUTE
        files = [(path, run) for path in payload["programs"]]
        files += [(path, landlock.READ_DIR) for path in payload["lists"]]
        enter_sandbox(access, detect_sandbox_support(), (), temp_dir, files)
        env = {**os.environ, **dict.fromkeys(HOME_VARS, temp_dir), **payload["env"]}
        os.execve(payload["argv"][0], payload["argv"], env)
    except BaseException as failure:
        os.write(2, f"{type(failure).__name__}: {failure}".encode())
    os._exit(NO_SANDBOX)
