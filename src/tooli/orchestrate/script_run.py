"""Run a script in the sandbox, and make the calls of tools that it asks for.

sandbox                         here
------------------------------  ------------------------------------------------
a tool is called            ─▶  InnerCalls.start: the call runs as a task
every task of it waits      ─▶  InnerCalls.wait: the results that there are
a tool is used as a value   ─▶  a function of that name
files, environment, …       ─▶  refused: the sandbox raises PermissionError
"""

from __future__ import annotations

import asyncio
from time import monotonic

from tooli.core import Record
from tooli.core.tool import cut_text
from tooli.errors import did_you_mean
from tooli.orchestrate import script_errors
from tooli.orchestrate.inner_calls import InnerCalls, ScriptLimitError
from tooli.orchestrate.sandbox import SandboxLimits, load_monty, open_sandbox, sandbox_version
from tooli.orchestrate.script_check import BARRIER_LINE, start_script
from tooli.orchestrate.script_values import UnreadableValueError, read_value
from tooli.orchestrate.stubs import render_checker_stubs

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from typing import Any, TypeVar

    from pydantic_monty import (
        AsyncFunctionSnapshot,
        AsyncFutureSnapshot,
        AsyncNameLookupSnapshot,
        AsyncSnapshot,
    )

    from tooli.core.call import Call
    from tooli.core.protocols import App, JsonObject
    from tooli.orchestrate.script_tools import ScriptTool
    from tooli.storage.state_files import MemoryFailureHistory

    T = TypeVar("T")

MAX_PRINTED_CHARS = 20_000
"""Maximum number of characters of what a script prints."""
DEFAULT_MAX_CALLS, DEFAULT_CONCURRENCY = 100, 8
_CLEAN_UP_SECONDS = 0.5


DEFAULT_LIMITS = SandboxLimits()


class Script(Record):
    """A script, what it may call, and what it may use."""

    source: str
    tools: Mapping[str, ScriptTool]
    inputs: Mapping[str, Any] = {}
    max_calls: int = DEFAULT_MAX_CALLS
    concurrency: int = DEFAULT_CONCURRENCY
    limits: SandboxLimits = DEFAULT_LIMITS


async def check_script(script: Script) -> None:
    """Check a script without running it; raise an InputError that lists all errors."""
    stubs = render_checker_stubs(script.tools.values(), script.inputs)
    async with open_sandbox(script.limits, stubs) as session:
        await start_script(session, script.source, script.tools, script.inputs, _ignore_print)


async def run_script(
    app: App, script: Script, outer: Call, failure_history: MemoryFailureHistory | None = None
) -> Any:
    """Run a script as a part of the call `outer`, and return its result.

    Adds `calls`, `printed` and `sandbox` to the `meta` of the call.
    """
    remaining = None if outer.stop is None else outer.stop.remaining_time()
    seconds = None if remaining is None else max(remaining - _CLEAN_UP_SECONDS, remaining / 2)
    calls = InnerCalls(
        app,
        outer,
        max_calls=script.max_calls,
        concurrency=script.concurrency,
        deadline=None if seconds is None else monotonic() + seconds,
        failure_history=failure_history,
    )
    printed = PrintedText()
    run = _ScriptRun(script, calls, printed)
    try:
        return await run.run(remaining)
    finally:
        if outer.meta is not None:
            outer.meta["calls"] = calls.counts()
            if printed.text:
                outer.meta["printed"] = printed.text
            outer.meta["sandbox"] = sandbox_version()


def _ignore_print(stream: str, text: str) -> None:
    """Ignore what a script prints: while it is checked, it prints nothing."""


class PrintedText:
    """Collects what a script prints, up to a limit."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0

    def write(self, stream: str, text: str) -> None:
        """Add some text; drop what exceeds the limit."""
        del stream  # stdout and stderr are shown together
        if self._size <= MAX_PRINTED_CHARS:
            self._parts.append(text[: MAX_PRINTED_CHARS + 1 - self._size])
            self._size += len(text)

    @property
    def text(self) -> str:
        """The text without the newlines at its end. An ellipsis replaces what was dropped."""
        return cut_text("".join(self._parts).rstrip("\n"), MAX_PRINTED_CHARS)


class _ScriptRun:
    """One run of a script: drives the sandbox from snapshot to snapshot."""

    def __init__(self, script: Script, calls: InnerCalls, printed: PrintedText) -> None:
        self._script, self._calls, self._printed = script, calls, printed
        self._file_name = ""  # as the sandbox names the source in positions
        self._bytes = (BARRIER_LINE + script.source).encode("utf-8", "replace")

    async def run(self, seconds: float | None) -> Any:
        """Run the script and return its result."""
        monty = load_monty()
        calls = self._calls
        is_cancelled = True  # until the script has ended by itself
        try:
            result = await self._run()
            is_cancelled = False
            return result
        except monty.MontyRuntimeError as error:
            is_cancelled = False
            await calls.finish(is_cancelled=False)
            raise script_errors.failure_of(error, self._script.source, calls.calls) from None
        except (script_errors.DeadlineReached, ScriptLimitError, monty.MontyCrashedError) as error:
            await calls.finish(is_cancelled=True)
            if isinstance(error, ScriptLimitError):
                raise script_errors.limit_error(str(error), calls.calls) from None
            if isinstance(error, script_errors.DeadlineReached):
                raise script_errors.deadline_error(seconds or 0.0, calls.calls) from None
            raise script_errors.crash_error(str(error), calls.calls) from None
        finally:
            await calls.finish(is_cancelled=is_cancelled)

    async def _run(self) -> Any:
        script = self._script
        stubs = render_checker_stubs(script.tools.values(), script.inputs)
        async with open_sandbox(script.limits, stubs) as session:
            start = start_script(
                session, script.source, script.tools, script.inputs, self._printed.write
            )
            return await self._drive(await self._within_deadline(start))

    async def _drive(self, barrier: AsyncFunctionSnapshot) -> Any:
        """Answer what the sandbox asks for until the script has ended; return its result."""
        from pydantic_monty import AsyncFunctionSnapshot, AsyncNameLookupSnapshot, MontyComplete

        self._file_name = barrier.position.filename
        step: Awaitable[AsyncSnapshot] = barrier.resume({"return_value": None})
        while True:
            snapshot = await self._within_deadline(step)
            if isinstance(snapshot, MontyComplete):
                return self._read_result(snapshot)
            if isinstance(snapshot, AsyncFunctionSnapshot):
                step = self._answer_call(snapshot)
            elif isinstance(snapshot, AsyncNameLookupSnapshot):
                step = self._answer_name(snapshot)
            else:
                step = self._answer_waiting(snapshot)

    def _read_result(self, complete: Any) -> Any:
        try:
            return read_value(complete.output, "the result")
        except UnreadableValueError as error:
            raise script_errors.value_error(str(error), self._calls.calls) from None
        except (ValueError, RecursionError) as error:  # it cannot be decoded
            text = f"the result cannot be read: {error}"
            raise script_errors.value_error(text, self._calls.calls) from None

    def _answer_call(self, snapshot: AsyncFunctionSnapshot) -> Awaitable[AsyncSnapshot]:
        """Start the call of a tool. All other functions are refused."""
        if snapshot.is_os_function:
            return self._answer_system_call(snapshot)
        name = snapshot.function_name
        tool = self._script.tools.get(name)
        if tool is None or snapshot.object_id is not None:
            hint = did_you_mean(name, self._script.tools)
            return _raise(snapshot, "NameError", f"name {name!r} is not defined{hint}")
        if snapshot.position.filename != self._file_name:
            return _raise(snapshot, "PermissionError", "eval() and exec() cannot call tools")
        try:
            arguments: JsonObject = {
                key: read_value(value, f"{name}({key}=…)")
                for key, value in tool.read_arguments(snapshot.args, snapshot.kwargs).items()
            }
        except TypeError as error:  # also an UnreadableValueError
            return _raise(snapshot, "TypeError", str(error))
        except (ValueError, RecursionError) as error:
            return _raise(snapshot, "ValueError", f"an argument of {name}: {error}")
        line = self._bytes.count(b"\n", 0, snapshot.position.start)
        self._calls.start(snapshot.call_id, tool, arguments, line)
        return snapshot.resume({"future": ...})

    def _answer_system_call(self, snapshot: AsyncFunctionSnapshot) -> Awaitable[AsyncSnapshot]:
        """Start a sleep. Everything else that needs the system is refused by the sandbox."""
        id = snapshot.call_id
        if snapshot.function_name == "asyncio.sleep":
            self._calls.start_sleep(id, snapshot.args[0])
            return snapshot.resume({"future": ...})
        if snapshot.function_name == "time.sleep":  # all tasks of the script wait for it
            self._calls.start_sleep(id, snapshot.args[0])
            return self._answer_when_done(snapshot)
        return snapshot.resume_not_handled()

    async def _answer_when_done(self, snapshot: AsyncFunctionSnapshot) -> AsyncSnapshot:
        results = await self._calls.wait([snapshot.call_id])
        return await snapshot.resume(results[snapshot.call_id])  # pyright: ignore[reportArgumentType]

    def _answer_name(self, snapshot: AsyncNameLookupSnapshot) -> Awaitable[AsyncSnapshot]:
        """Return the function of a tool that is used as a value."""
        name = snapshot.variable_name
        if snapshot.object_id is not None or name not in self._script.tools:
            return snapshot.resume()

        def tool() -> None:
            """Stand for the tool. The sandbox knows it by its name, and calls it by that."""

        tool.__name__ = name
        return snapshot.resume(value=tool)

    async def _answer_waiting(self, snapshot: AsyncFutureSnapshot) -> AsyncSnapshot:
        """Wait for calls, and return to the sandbox with the results of those that have ended."""
        results = await self._calls.wait(snapshot.pending_call_ids)
        return await snapshot.resume(results)  # pyright: ignore[reportArgumentType]

    async def _within_deadline(self, awaitable: Awaitable[T]) -> T:
        """Await the sandbox, at most until the deadline. A turn that is cancelled ends with it."""
        remaining = self._calls.remaining_time()
        if remaining is None:
            return await awaitable
        task = asyncio.ensure_future(awaitable)
        try:
            done, _ = await asyncio.wait({task}, timeout=remaining)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            task.cancel()
            await asyncio.wait({task})
            raise script_errors.DeadlineReached
        return task.result()


def _raise(snapshot: AsyncFunctionSnapshot, name: Any, message: str) -> Awaitable[AsyncSnapshot]:
    return snapshot.resume({"exc_type": name, "message": message})
