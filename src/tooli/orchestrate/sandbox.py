"""The sandbox of scripts: a worker process of pydantic-monty, used for one script.

pydantic-monty is an optional dependency (`tooli[eval]`), so it is imported when a script runs.
"""

from __future__ import annotations

import atexit
import sys
import sysconfig
import time
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from tooli.core import Record
from tooli.errors import DependencyError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import ModuleType

    from pydantic_monty import AsyncMontySession, ResourceLimits

INSTALL_COMMAND = "pip install 'tooli[eval]>=7.0a1'"
SCRIPT_NAME = "script.py"
_EXIT_SECONDS = 0.05


class SandboxLimits(Record):
    """What a script may use. The times count only while the script itself executes."""

    seconds: float = 30.0  # of execution in total
    turn_seconds: float = 10.0  # of execution between two calls of tools
    memory: int = 256 << 20  # bytes
    depth: int = 500  # nested function calls
    suspensions: int = 100_000  # calls, lookups of names and awaits together


def load_monty() -> ModuleType:
    """Return the module pydantic_monty; raise a DependencyError if it is not installed."""
    try:
        import pydantic_monty
    except ImportError as error:
        raise DependencyError(
            "Scripts need the package pydantic-monty, which is not installed.",
            suggestion=Suggestion("fix", f"Run: {INSTALL_COMMAND}"),
        ) from error
    _let_threads_end_at_exit()
    return pydantic_monty


@cache
def _let_threads_end_at_exit() -> None:
    """Wait a moment when the process exits, if it has used the sandbox.

    The threads of pydantic-monty release Python objects after the last answer. If Python shuts down
    meanwhile, it ends such a thread by force (before 3.14), which aborts the process.
    """
    atexit.register(time.sleep, _EXIT_SECONDS)


def find_worker() -> Path:
    """Return the program of the worker, as the installed package lists it.

    pydantic-monty would also read the variable `MONTY_BIN` and search the PATH. A caller who sets
    these could replace the sandbox by any program, so neither is used.
    """
    name = "monty.exe" if sys.platform == "win32" else "monty"
    try:
        files = distribution("pydantic-monty-runtime").files or ()
    except PackageNotFoundError:
        files = ()
    found = [Path(str(file.locate())) for file in files if file.name == name]
    found.append(Path(sysconfig.get_path("scripts")) / name)
    for path in found:
        if path.is_file():
            return path.resolve()
    raise DependencyError(
        "The program of the script sandbox, monty, is not installed.",
        suggestion=Suggestion("fix", f"Run: {INSTALL_COMMAND}"),
    )


def sandbox_version() -> str:
    """Return the name and version of the sandbox, for `meta.sandbox`."""
    return f"monty {load_monty().__version__}"


@asynccontextmanager
async def open_sandbox(limits: SandboxLimits, stubs: str) -> AsyncGenerator[AsyncMontySession]:
    """Start a worker process for one script, and end it with the context.

    A worker is never used twice, so nothing of one script reaches another.
    """
    monty = load_monty()
    resources: ResourceLimits = {
        "max_feed_duration_secs": limits.seconds,
        "max_turn_duration_secs": limits.turn_seconds,
        "max_memory": limits.memory,
        "max_recursion_depth": limits.depth,
        "max_suspensions": limits.suspensions,
    }
    pool = monty.AsyncMonty(binary_path=find_worker(), max_processes=1, min_processes=1)
    async with (
        pool as workers,
        workers.checkout(
            script_name=SCRIPT_NAME,
            limits=resources,
            type_check=True,
            type_check_stubs=stubs,
            type_check_format="json",
            os_policy={"sleep": "call_host"},
        ) as session,
    ):
        yield session
