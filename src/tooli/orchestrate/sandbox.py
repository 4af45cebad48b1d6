"""The sandbox of scripts: a worker process of pydantic-monty, used for one script.

pydantic-monty is an optional dependency (`tooli[eval]`), so it is imported when a script runs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import sysconfig
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread

from tooli.core import Record
from tooli.errors import DependencyError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, TypeVar

    from pydantic_monty import MontySession, ResourceLimits

    T = TypeVar("T")

SANDBOX_PACKAGE = "pydantic_monty"
INSTALL_COMMAND = "pip install 'tooli[eval]>=7.0a1'"
SCRIPT_NAME = "script.py"
_KILL_SIGNAL = getattr(signal, "SIGKILL", signal.SIGTERM)


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
    return pydantic_monty


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


class Sandbox:
    """A worker process for one script, and the thread that exchanges messages with it.

        with Sandbox(limits, stubs) as sandbox:
            snapshot = await sandbox.run(lambda session: session.feed_start(source))

    The thread blocks while the script executes; the event loop does not. `kill` ends the worker
    from any thread, and a step that waits for it then raises a MontyCrashedError. A worker is never
    used twice, so nothing of one script reaches another. At the end of the context the worker and
    the thread have ended: a thread of pydantic-monty that outlives the event loop, as AsyncMonty
    starts them, can abort the process at its exit.
    """

    def __init__(self, limits: SandboxLimits, stubs: str) -> None:
        self._monty = load_monty()
        self._worker_path = find_worker()
        self._resources: ResourceLimits = {
            "max_feed_duration_secs": limits.seconds,
            "max_turn_duration_secs": limits.turn_seconds,
            "max_memory": limits.memory,
            "max_recursion_depth": limits.depth,
            "max_suspensions": limits.suspensions,
        }
        self._stubs = stubs
        self._pid: int | None = None
        self._lock = Lock()  # the process is killed or forgotten, not both at once
        self._is_killed = False
        self._steps: SimpleQueue[Callable[[MontySession], None] | None] = SimpleQueue()
        self._start_error: BaseException | None = None
        self._thread = Thread(target=self._serve, name="tooli-script")

    def __enter__(self) -> Sandbox:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()
        self._steps.put(None)
        self._thread.join()

    async def run(self, step: Callable[[MontySession], T]) -> T:
        """Run a step in the thread and return its result. Await one step at a time."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def run_step(session: MontySession) -> None:
            try:
                if self._start_error is not None:
                    raise self._start_error
                result = step(session)
            except BaseException as error:
                _send(loop, _set_exception, future, error)
            else:
                _send(loop, _set_result, future, result)

        self._steps.put(run_step)
        return await future

    def kill(self) -> None:
        """End the worker, whatever it does. A worker that is not yet ready ends when it is."""
        with self._lock:
            self._is_killed = True
            if self._pid is not None:
                with suppress(OSError):
                    os.kill(self._pid, _KILL_SIGNAL)

    def _serve(self) -> None:
        """Start the worker, and run the steps until None arrives."""
        pool = self._monty.Monty(binary_path=self._worker_path, max_processes=1, min_processes=0)
        session = pool.checkout(
            script_name=SCRIPT_NAME,
            limits=self._resources,
            type_check=True,
            type_check_stubs=self._stubs,
            type_check_format="json",
            os_policy={"sleep": "call_host"},
        )
        try:
            with pool, session:
                self._note_process(session.worker_pid)
                self._run_steps(session)
                self._forget_process()
        except BaseException as error:
            self._start_error = _start_error(error)
            self._run_steps(session)

    def _note_process(self, pid: int | None) -> None:
        with self._lock:
            self._pid = pid
            is_killed = self._is_killed
        if is_killed:
            self.kill()

    def _forget_process(self) -> None:
        """Do not kill the process any more: its identifier can belong to another one soon."""
        with self._lock:
            self._pid = None

    def _run_steps(self, session: MontySession) -> None:
        while (step := self._steps.get()) is not None:
            step(session)


def _start_error(error: BaseException) -> BaseException:
    """Return what a step raises if the worker could not start."""
    if isinstance(error, RuntimeError):  # the program does not run on this machine
        return DependencyError(f"The program of the script sandbox cannot start: {error}")
    return error


def _send(
    loop: asyncio.AbstractEventLoop,
    function: Callable[[asyncio.Future[T], Any], None],
    future: asyncio.Future[T],
    value: object,
) -> None:
    with suppress(RuntimeError):  # the loop is closed, so nothing waits for the step
        loop.call_soon_threadsafe(function, future, value)


def _set_result(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _set_exception(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
