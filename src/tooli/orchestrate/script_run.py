"""Run a script in the sandbox, and make the calls of tools that it asks for.

sandbox                         here
------------------------------  ------------------------------------------------
a tool is called            ─▶  the call is noted
every task of it waits      ─▶  InnerCalls.start: the noted calls run as tasks,
                                InnerCalls.wait: the results that there are
a tool is used as a value   ─▶  a function of that name
files, environment, …       ─▶  refused: the sandbox raises PermissionError
"""

from __future__ import annotations

import asyncio
from functools import partial

from tooli.core import Record
from tooli.core.tool import cut_text
from tooli.errors import ToolError
from tooli.orchestrate import script_errors
from tooli.orchestrate.inner_calls import InnerCalls, ScriptLimitError
from tooli.orchestrate.sandbox import Sandbox, SandboxLimits, load_monty, sandbox_version
from tooli.orchestrate.script_check import BARRIER_LINE, start_script
from tooli.orchestrate.script_plans import DryRun, PlanStopped, plan_of
from tooli.orchestrate.script_values import UnreadableValueError, read_value
from tooli.orchestrate.stubs import render_checker_stubs
from tooli.pipeline.dry_run_recorder import DryRunRecorder
from tooli.similar_names import did_you_mean

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pydantic_monty import (
        FunctionSnapshot,
        FutureSnapshot,
        MontyComplete,
        MontySession,
        NameLookupSnapshot,
    )

    from tooli.core.call import Call
    from tooli.core.protocols import App, JsonObject
    from tooli.orchestrate.script_tools import ScriptTool
    from tooli.pipeline.dry_run_recorder import ActionRecorder
    from tooli.storage.state_files import MemoryFailureHistory

    _Stop = FunctionSnapshot | FutureSnapshot | MontyComplete

MAX_PRINTED_CHARS = 20_000
"""Maximum number of characters of what a script prints."""
DEFAULT_MAX_CALLS, DEFAULT_CONCURRENCY = 100, 8
_CLEAN_UP_SECONDS = 1.0
"""Seconds after the deadline in which the calls of a script are ended."""
_MAX_STARTED = 256
"""Number of noted calls with which the thread of the sandbox returns to the event loop."""
_FUTURE = {"future": ...}
"""The answer for a call whose result follows."""

DEFAULT_LIMITS = SandboxLimits()


class Script(Record):
    """A script, what it may call, and what it may use."""

    source: str
    tools: Mapping[str, ScriptTool]
    inputs: Mapping[str, Any] = {}
    max_calls: int = DEFAULT_MAX_CALLS
    concurrency: int = DEFAULT_CONCURRENCY
    limits: SandboxLimits = DEFAULT_LIMITS
    advice: str = ""  # what the script can use, for the error about a wrong script


async def check_script(script: Script) -> None:
    """Check a script without running it; raise an InputError that lists all errors."""
    stubs = render_checker_stubs(script.tools.values(), script.inputs)
    with Sandbox(script.limits, stubs) as sandbox:
        await sandbox.run(lambda session: start_script(session, script, _ignore_print))


async def run_script(
    app: App,
    script: Script,
    outer: Call,
    failure_history: MemoryFailureHistory | None = None,
    recorder: ActionRecorder | None = None,
) -> Any:
    """Run a script as a part of the call `outer`, and return its result.

    `recorder` receives the plan of a dry run, or has the plan that the script must keep to. Adds
    `calls`, `printed` and `sandbox` to the `meta` of the call.
    """
    deadline = None if outer.stop is None else outer.stop.deadline
    if outer.stop is not None:
        outer.stop.grace = _CLEAN_UP_SECONDS
    calls = InnerCalls(
        app,
        outer,
        max_calls=script.max_calls,
        concurrency=script.concurrency,
        deadline=deadline,
        failure_history=failure_history,
        plan=plan_of(recorder, script.source, script.tools, script.inputs),
    )
    printed = PrintedText()
    run = _ScriptRun(script, calls, printed)
    try:
        result = await run.run(None if outer.stop is None else outer.stop.seconds)
        if isinstance(calls.plan, DryRun) and isinstance(recorder, DryRunRecorder):
            calls.plan.finish(recorder)
        return result
    except Exception:
        if not calls.have_changed:  # so the token of the plan can be used again
            for claim in outer.claims:
                claim.undo_start()
        raise
    finally:
        if outer.meta is not None:
            if script.tools:
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
        self._started: list[Callable[[], None]] = []  # calls that the event loop is to start
        self._blocking: set[int] = set()  # calls of time.sleep
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
        except PlanStopped:
            return None
        except ToolError:  # a call is not in the plan, or the result is not JSON
            is_cancelled = False
            raise
        except monty.MontyRuntimeError as error:
            is_cancelled = False
            await calls.finish(is_cancelled=False)
            raise script_errors.failure_of(error, self._script.source, calls.calls) from None
        except (script_errors.DeadlineReached, ScriptLimitError, monty.MontyCrashedError) as error:
            await calls.finish(is_cancelled=True)
            if calls.is_late:
                raise script_errors.deadline_error(seconds or 0.0, calls.calls) from None
            if isinstance(error, ScriptLimitError):
                limited = script_errors.limit_error(str(error), calls.calls, option=error.option)
                raise limited from None
            raise script_errors.crash_error(str(error), calls.calls) from None
        finally:
            await calls.finish(is_cancelled=is_cancelled)

    async def _run(self) -> Any:
        script = self._script
        stubs = render_checker_stubs(script.tools.values(), script.inputs)
        with Sandbox(script.limits, stubs) as sandbox:
            remaining = self._calls.remaining_time()
            timer = None
            if remaining is not None:
                loop = asyncio.get_running_loop()
                timer = loop.call_later(remaining, self._stop_at_deadline, sandbox)
            try:
                return await self._drive(sandbox)
            finally:
                if timer is not None:
                    timer.cancel()

    def _stop_at_deadline(self, sandbox: Sandbox) -> None:
        self._calls.stop_at_deadline()
        sandbox.kill()

    async def _drive(self, sandbox: Sandbox) -> Any:
        """Run the script until it ends; make its calls whenever all of it waits for them."""
        from pydantic_monty import FunctionSnapshot, MontyComplete

        calls = self._calls
        snapshot = await sandbox.run(self._start)
        while True:
            for start in self._started:
                start()
            self._started.clear()
            if isinstance(snapshot, MontyComplete):
                await asyncio.sleep(0)  # calls that the script does not wait for begin
                if isinstance(calls.plan, DryRun):
                    await calls.wait_for_plan(calls.plan)
                return self._read_result(snapshot)
            if isinstance(snapshot, FunctionSnapshot):
                id = snapshot.call_id
                answer: Any = (await calls.wait([id]))[id] if id in self._blocking else _FUTURE
            else:
                answer = await calls.wait(snapshot.pending_call_ids)
            step = partial(self._advance, snapshot, answer)
            snapshot = await sandbox.run(step)

    def _read_result(self, complete: Any) -> Any:
        try:
            return read_value(complete.output, "the result")
        except UnreadableValueError as error:
            raise script_errors.value_error(str(error), self._calls.calls) from None
        except (ValueError, RecursionError) as error:  # it cannot be decoded
            text = f"the result cannot be read: {error}"
            raise script_errors.value_error(text, self._calls.calls) from None

    # -------------------------------------------------------------- in the thread of the sandbox

    def _start(self, session: MontySession) -> _Stop:
        barrier = start_script(session, self._script, self._printed.write)
        self._file_name = barrier.position.filename
        return self._advance(barrier, {"return_value": None}, session)

    def _advance(self, snapshot: Any, answer: Any, session: MontySession) -> _Stop:
        """Answer the sandbox until it waits for calls or has ended.

        The calls of tools are collected: the event loop starts them.
        """
        from pydantic_monty import FunctionSnapshot, NameLookupSnapshot

        del session  # the snapshot belongs to it
        snapshot = snapshot.resume(answer)
        while True:
            if isinstance(snapshot, NameLookupSnapshot):
                snapshot = self._answer_name(snapshot)
            elif isinstance(snapshot, FunctionSnapshot):
                answer = self._answer_call(snapshot)
                is_blocking = snapshot.call_id in self._blocking
                if is_blocking or (answer is _FUTURE and len(self._started) >= _MAX_STARTED):
                    return snapshot
                if answer is None:
                    snapshot = snapshot.resume_not_handled()
                else:
                    snapshot = snapshot.resume(answer)
            else:
                return snapshot

    def _answer_call(self, snapshot: FunctionSnapshot) -> Any:
        """Note the call of a tool; return the answer. All other functions are refused."""
        if snapshot.is_os_function:
            return self._answer_system_call(snapshot)
        name = snapshot.function_name
        tool = self._script.tools.get(name)
        if tool is None or snapshot.object_id is not None:
            hint = did_you_mean(name, self._script.tools)
            return _exception("NameError", f"name {name!r} is not defined{hint}")
        position = snapshot.position
        if position.filename != self._file_name:
            return _exception("PermissionError", "eval() and exec() cannot call tools")
        try:
            arguments: JsonObject = {
                key: read_value(value, f"{name}({key}=…)")
                for key, value in tool.read_arguments(snapshot.args, snapshot.kwargs).items()
            }
        except TypeError as error:  # also an UnreadableValueError
            return _exception("TypeError", str(error))
        except (ValueError, RecursionError) as error:
            return _exception("ValueError", f"an argument of {name}: {error}")
        line = self._bytes.count(b"\n", 0, position.start)
        start = partial(self._calls.start, snapshot.call_id, tool, arguments, line)
        plan = self._calls.plan
        if isinstance(plan, DryRun):
            offset = position.start - len(BARRIER_LINE)
            start = partial(start, is_looked_into=not plan.is_passed_on(offset))
        self._started.append(start)
        return _FUTURE

    def _answer_system_call(self, snapshot: FunctionSnapshot) -> Any:
        """Note a sleep. Return None for all else that needs the system: the sandbox refuses it.

        An expression, which has no tools, has no reason to sleep.
        """
        id, name = snapshot.call_id, snapshot.function_name
        if name not in ("asyncio.sleep", "time.sleep") or not self._script.tools:
            return None
        self._started.append(partial(self._calls.start_sleep, id, snapshot.args[0]))
        if name == "time.sleep":  # all tasks of the script wait for it
            self._blocking.add(id)
        return _FUTURE

    def _answer_name(self, snapshot: NameLookupSnapshot) -> Any:
        """Return the function of a tool that is used as a value."""
        name = snapshot.variable_name
        if snapshot.object_id is not None or name not in self._script.tools:
            return snapshot.resume()

        def tool() -> None:
            """Stand for the tool. The sandbox knows it by its name, and calls it by that."""

        tool.__name__ = name
        return snapshot.resume(value=tool)


def _exception(name: str, message: str) -> JsonObject:
    return {"exc_type": name, "message": message}
