"""Run a function with a monitor that reports undeclared access, or records all access."""

from __future__ import annotations

import os
from stat import S_ISREG

from tooli.core.call import Runner
from tooli.core.declared_capabilities import AllowedAccess
from tooli.errors import AuthError, Suggestion
from tooli.execution.monitor.audit_hook import Monitor, MonitorScope, Violation, unmonitored
from tooli.pipeline.drivers import (
    aclose_stream,
    close_stream,
    invoke,
    is_async,
    is_async_stream,
    is_stream,
)
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from typing import Any

    from tooli.core.call import Call

VIOLATIONS_KEY = "violations"
"""The key of violations in the metadata of a call, until a stage removes them.

Each row has three texts: capability, target and code.
"""
RECORD_FILE = "record.jsonl"
"""The name of the file to which the accesses of each call are appended."""
RECORDED_KEY = "recorded"
"""The key of recorded actions in the metadata of a call. The rows are like those of violations."""


class MonitoredRunner(Runner):
    """Runs a function, or another runner, with a monitor. Streams are monitored item by item.

    A refused action fails the call even if the function catches the error.
    """

    def __init__(self, monitor: Monitor, inner: Runner | None = None) -> None:
        super().__init__(inner)
        self.monitor = monitor
        self._reported_count = 0  # how many violations were reported
        self._has_raised_denial = False
        self._pid = 0  # the process that reports; processes that it forks do not report

    def run(self, call: Call) -> Any:
        """Run the call and return its value, or an iterator of its items."""
        self.begin(call)
        try:
            value = self.run_monitored(call, invoke, call.replace(runner=self.inner))
        except BaseException:
            self.finish(call)
            raise
        return self._wrap_result(call, value)

    async def arun(self, call: Call) -> Any:
        """Run the call on an event loop."""
        self.monitor.is_loop_shared = True
        self.begin(call)
        try:
            value = await self._ainvoke(call)
            if hasattr(value.__class__, "__await__"):
                value = await _MonitoredAwaitable(self, call, value)
        except BaseException:
            self.finish(call)
            raise
        return (
            _MonitoredAsyncItems(self, call, value)
            if is_async_stream(value)
            else self._wrap_result(call, value)
        )

    def begin(self, call: Call) -> bool:
        """Start the monitor and return True.

        If it cannot start, return False, or raise an error if the monitor must enforce limits.
        """
        self._pid = os.getpid()
        self.monitor.on_violation = lambda: self._on_violation(call)
        if self.monitor.begin():
            return True
        reason = "another audit hook of the process rejects tooli's hook"
        if self.monitor.must_enforce:
            self.finish(call)
            raise AuthError(f"{call.tool.name} cannot be monitored: {reason}.")
        call.warnings.append(f"not monitored: {reason}")
        return False

    def finish(self, call: Call) -> None:
        """End monitoring; threads that the call left running stay monitored."""
        self.monitor.finish()

    def _wrap_result(self, call: Call, value: Any) -> Any:
        """Return the value, or a monitored iterator."""
        if is_stream(value):
            return _MonitoredItems(self, call, value)
        self.finish(call)
        return value

    async def _ainvoke(self, call: Call) -> Any:
        """Call the function and return its value, or a coroutine that has not started."""
        if self.inner is not None:
            return self.inner.arun(call.replace(runner=self.inner))
        from asyncio import to_thread

        fn = call.tool.fn
        if is_async(fn):
            return fn(**call.arguments)
        from tooli.pipeline.async_drivers import call_without_stop_iteration

        # The function runs in a pool thread of the event loop, so monitoring starts in that thread.
        return await to_thread(
            self.run_monitored, call, call_without_stop_iteration, fn, call.arguments
        )

    # -------------------------------------------------------------- monitored steps

    def run_monitored(self, call: Call, work: Callable[..., Any], *args: object) -> Any:
        """Run one step of the call with the monitor; raise an error if an action was refused."""
        scope = MonitorScope(self.monitor)
        try:
            try:
                scope.begin()
                value = work(*args)
            finally:
                scope.end()
        except (StopIteration, StopAsyncIteration):  # the end of a stream, not a failure
            self.raise_denial(call)
            raise
        except (Exception, SystemExit) as failure:
            self.raise_denial(call, failure)
            raise
        self.raise_denial(call)
        return value

    def _on_violation(self, call: Call) -> None:
        """Report a violation at once, because a killed call cannot report at its end."""
        monitor = self.monitor
        if (
            len(monitor.violations) > self._reported_count
            and not monitor.is_finished
            and os.getpid() == self._pid
        ):
            self.report(call)

    def report(self, call: Call) -> None:
        """Report new violations."""
        monitor, reported = self.monitor, self._reported_count
        self._reported_count = len(monitor.violations)
        store_violations(call, monitor.violations)
        for violation in monitor.violations[reported : self._reported_count]:
            if violation.code == "E2003" and not monitor.is_blocking:
                call.warnings.append(
                    f"undeclared: {violation.capability} of {violation.target}; "
                    f"declare {suggest_declaration(violation)!r}"
                )

    def raise_denial(self, call: Call, failure: BaseException | None = None) -> None:
        """Raise an error if an action was refused."""
        monitor = self.monitor
        if monitor.denial is not None and not self._has_raised_denial:
            self._has_raised_denial = True  # only once: closing the stream checks again
            raise capability_error(call, monitor.denial) from failure


def store_violations(
    call: Call, violations: Iterable[Violation], key: str = VIOLATIONS_KEY
) -> None:
    """Store all violations in the metadata of the call.

    The whole list is assigned each time, because only an assignment is sent to the calling process.
    """
    if call.meta is not None:
        call.meta[key] = [
            [violation.capability, violation.target, violation.code] for violation in violations
        ]


def capability_error(call: Call, denial: Violation) -> AuthError:
    """Return the error for a refused action."""
    details = {"capability": denial.capability, "target": denial.target}
    if denial.code == "E2005":
        problem = f"must not access {denial.target}: the configuration forbids it."
        fix = "Use other files, or ask for a change of allow_paths or deny_paths."
    else:
        details["declaration"] = suggest_declaration(denial)
        problem = f"does not declare {denial.capability} of {denial.target}."
        fix = f"Ask the author to declare capabilities=[…, {details['declaration']!r}]."
    return AuthError(
        f"{call.tool.name} {problem}",
        code=denial.code,
        suggestion=Suggestion("ask_human", fix),
        details=details,
    )


def suggest_declaration(violation: Violation) -> str:
    """Return the capability to declare, such as `fs:read:./data`.

    It names the folder of the file. For a file in the current folder it names the file itself,
    because the whole folder would allow too much.
    """
    if violation.capability[:3] != "fs:":
        return violation.capability
    path = violation.target
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    return f"{violation.capability}:{shorten_path(path if shorten_path(folder) == '.' else folder)}"


def shorten_path(path: str) -> str:
    """Return a path in the current folder as `./path`, and other paths unchanged."""
    try:
        cwd = os.path.realpath(os.getcwd())
    except OSError:
        return path
    if path == cwd:
        return "."
    if cwd != os.sep and path.startswith(cwd + os.sep):
        return f".{path[len(cwd) :]}"
    return path


# ------------------------------------------------------------------ streams and coroutines


class _MonitoredSteps:
    """Base class of iterators and awaitables whose steps are monitored."""

    def __init__(self, runner: MonitoredRunner, call: Call, steps: Any) -> None:
        self._runner, self._call, self._steps = runner, call, steps


class _MonitoredItems(_MonitoredSteps):
    """An iterator whose steps are monitored."""

    def __iter__(self) -> _MonitoredItems:
        return self

    def __next__(self) -> Any:
        return self._runner.run_monitored(self._call, self._steps.__next__)

    def close(self) -> None:
        """Close the stream while it is monitored."""
        try:
            self._runner.run_monitored(self._call, close_stream, self._steps)
        finally:
            self._runner.finish(self._call)


class _MonitoredAwaitable(_MonitoredSteps):
    """An awaitable whose steps are monitored. Other tasks, which run between steps, are not."""

    def __await__(self) -> Generator[Any, Any, Any]:
        run_monitored, call = self._runner.run_monitored, self._call
        steps: Any = self._steps.__await__()
        resume: Callable[..., Any] = next
        value: object = steps
        while True:
            try:
                awaited = run_monitored(call, resume, value)
            except StopIteration as end:
                return end.value
            try:
                sent = yield awaited
            except GeneratorExit:
                run_monitored(call, steps.close)
                raise
            except BaseException as failure:
                resume, value = steps.throw, failure
            else:
                resume, value = (next, steps) if sent is None else (steps.send, sent)


class _MonitoredAsyncItems(_MonitoredSteps):
    """An async iterator whose steps are monitored."""

    def __aiter__(self) -> _MonitoredAsyncItems:
        return self

    async def __anext__(self) -> Any:
        return await _MonitoredAwaitable(self._runner, self._call, self._steps.__anext__())

    async def aclose(self) -> None:
        """Close the stream."""
        try:
            await _MonitoredAwaitable(self._runner, self._call, aclose_stream(self._steps))
        finally:
            self._runner.finish(self._call)


# ------------------------------------------------------------------ recording

MAX_RECORDED = 10_000
"""Maximum number of recorded actions of one call."""
MAX_IMMEDIATE_REPORTS = 100
"""Number of actions that are reported immediately. The others are reported when the call ends."""


class RecordingRunner(MonitoredRunner):
    """Runs a function with a monitor that refuses nothing and records every action."""

    def __init__(self, inner: Runner | None, owns_process: bool) -> None:
        super().__init__(
            Monitor(AllowedAccess(), owns_process=owns_process, max_violations=MAX_RECORDED), inner
        )

    def begin(self, call: Call) -> bool:
        """Start monitoring and store an empty list, which shows that the call is monitored."""
        is_monitored = super().begin(call)
        if is_monitored:
            store_violations(call, (), RECORDED_KEY)
        return is_monitored

    def report(self, call: Call) -> None:
        """Store the recorded actions, without warnings."""
        self._reported_count = len(self.monitor.violations)
        if self._reported_count <= MAX_IMMEDIATE_REPORTS:
            store_violations(call, self.monitor.violations, RECORDED_KEY)

    def raise_denial(self, call: Call, failure: BaseException | None = None) -> None:
        """Do nothing, because a recording monitor refuses nothing."""

    def finish(self, call: Call) -> None:
        """Report the actions that were not reported yet."""
        super().finish(call)
        if self._reported_count > MAX_IMMEDIATE_REPORTS:
            store_violations(call, self.monitor.violations, RECORDED_KEY)


def append_record(call: Call, rows: Iterable[Sequence[str]] | None, path: str) -> None:
    """Append the actions of a call to the record file as one line.

    If `rows` is None, the call was not monitored, and only a warning is added.
    """
    if rows is None:
        call.warnings.append("capabilities were not recorded: the command was not monitored")
        return
    rows = list(rows)
    if len(rows) >= MAX_RECORDED:
        call.warnings.append(f"only the first {MAX_RECORDED} accesses were recorded")
    line = {
        "app": call.tool.app,
        "command": call.tool.key,
        "uses": [[capability, target] for capability, target, _ in rows],
    }
    try:
        with unmonitored():
            fd = _open_record(path)
            try:
                os.write(fd, encode(line, []) + b"\n")
            finally:
                os.close(fd)
    except OSError as failure:
        call.warnings.append(f"capabilities were not recorded: {failure.strerror}")


def _open_record(path: str) -> int:
    """Open the file that `capabilities record` reads, and return its descriptor.

    The path is in a variable, so it could name any file of the user. Only a regular file with the
    name that `capabilities record` gives is changed, and no link is followed.
    """
    if os.path.basename(path) != RECORD_FILE:
        raise OSError(0, f"the name of the file must be {RECORD_FILE}", path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # not in Windows
    fd = os.open(path, flags, 0o600)
    if not S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(0, "it is not a regular file", path)
    return fd
