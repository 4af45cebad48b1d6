"""Watched: runs a function under watch, and says what it does beyond its word."""

from __future__ import annotations

import os

from tooli.core.call import Runner
from tooli.errors import AuthError, Suggestion
from tooli.execution.monitor.audit_hook import Monitor, MonitorScope
from tooli.pipeline.drivers import invoke, is_async, is_stream

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
    from typing import Any

    from tooli.core.call import Call
    from tooli.execution.monitor.audit_hook import Violation

VIOLATIONS_KEY = "violations"
"""Under which name a call's `meta` carries what was seen, until its stage takes it out: rows of
three texts, a capability, what it was of, and a code."""
RECORDED_PREFIX = "recorded:"
"""Stands before a capability: nobody minds it, it is written down."""


class MonitoredRunner(Runner):
    """Runs under watch whatever stands inside it; each step of a stream, too.

    A refusal sticks: a function that swallowed the error has failed all the same.
    """

    def __init__(self, monitor: Monitor, inner: Runner | None = None) -> None:
        super().__init__(inner)
        self.monitor = monitor
        self._reported_count = 0  # violations that somebody was told of
        self._has_raised_denial = False
        self._pid = 0  # where it runs: forks of it tell nobody

    def run(self, call: Call) -> Any:
        """What the function gives, or an iterator of its items."""
        self.begin(call)
        try:
            value = self.run_monitored(call, lambda: invoke(call.replace(runner=self.inner)))
        except BaseException:
            self.finish(call)
            raise
        return self._wrap_result(call, value)

    async def arun(self, call: Call) -> Any:
        """The same on an event loop."""
        from tooli.pipeline.async_drivers import is_async_stream

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
        """Set the watch, or say that there is none; then nothing runs that must be held."""
        self._pid = os.getpid()
        self.monitor.on_violation = lambda: self._on_violation(call)
        if self.monitor.begin():
            return True
        reason = "cannot be watched here: another audit hook of the process forbids it"
        if self.monitor.must_enforce:
            self.finish(call)
            raise AuthError(f"What {call.tool.name} touches {reason}.")
        call.warnings.append(f"what it touches {reason}")
        return False

    def finish(self, call: Call) -> None:
        """The call is over; what it left running stays under watch."""
        self.monitor.finish()

    def _wrap_result(self, call: Call, value: Any) -> Any:
        """The value, or its items that are still to come."""
        if is_stream(value):
            return _MonitoredItems(self, call, value)
        self.finish(call)
        return value

    async def _ainvoke(self, call: Call) -> Any:
        """What the function gives at once: coroutines have not begun yet."""
        if self.inner is not None:
            return self.inner.arun(call.replace(runner=self.inner))
        from asyncio import to_thread

        fn = call.tool.fn
        if is_async(fn):
            return fn(**call.arguments)
        from tooli.pipeline.async_drivers import call_without_stop_iteration

        # The thread is the loop's: the watch begins inside it.
        return await to_thread(
            self.run_monitored, call, lambda: call_without_stop_iteration(fn, call.arguments)
        )

    # -------------------------------------------------------------- under watch

    def run_monitored(self, call: Call, work: Callable[[], Any]) -> Any:
        """Do some work under watch; what it did beyond its word is told, or is an error."""
        scope = MonitorScope(self.monitor)
        try:
            try:
                scope.begin()
                value = work()
            finally:
                scope.end()
        except (StopIteration, StopAsyncIteration):  # the end of a step, not a failure
            self.raise_denial(call)
            raise
        except Exception as failure:
            self.raise_denial(call, failure)
            raise
        except SystemExit as end:
            self.raise_denial(call, end)
            raise
        self.raise_denial(call)
        return value

    def _on_violation(self, call: Call) -> None:
        """Tell at once what was seen: a call that is cut off says nothing afterwards."""
        monitor = self.monitor
        if (
            len(monitor.violations) > self._reported_count
            and not monitor.is_finished
            and os.getpid() == self._pid
        ):
            self.report(call)

    def report(self, call: Call) -> None:
        """Say what is new."""
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
        """Raise where something was refused."""
        monitor = self.monitor
        if monitor.denial is not None and not self._has_raised_denial:
            self._has_raised_denial = True  # once: a stream is closed behind its failure
            raise capability_error(call, monitor.denial) from failure


def store_violations(call: Call, violations: list[Violation]) -> None:
    """Let a call's `meta` carry all that a watch has seen.

    It is set anew each time: that is what reaches whoever waits in another process. What is only
    recorded stands last: not all of it may be heard.
    """
    if call.meta is None or not violations:
        return
    is_recorded = violations[0].capability.startswith(RECORDED_PREFIX)
    stored = call.meta.get(VIOLATIONS_KEY, ())
    others = [row for row in stored if row[0].startswith(RECORDED_PREFIX) is not is_recorded]
    rows = [[violation.capability, violation.target, violation.code] for violation in violations]
    call.meta[VIOLATIONS_KEY] = [*others, *rows] if is_recorded else [*rows, *others]


def capability_error(call: Call, denial: Violation) -> AuthError:
    """The error for something that a command may not touch."""
    if denial.code == "E2005":
        return AuthError(
            f"{call.tool.name} may not touch {denial.target}: the configuration does not allow it.",
            code="E2005",
            suggestion=Suggestion(
                "ask_human", "Work on other files, or have allow_paths and deny_paths changed."
            ),
            details={"capability": denial.capability, "target": denial.target},
        )
    declared_as = suggest_declaration(denial)
    return AuthError(
        f"{call.tool.name} does not declare {denial.capability} of {denial.target}, and tried it.",
        code="E2003",
        suggestion=Suggestion(
            "ask_human", f"Its author declares capabilities=[…, {declared_as!r}]."
        ),
        details={
            "capability": denial.capability,
            "target": denial.target,
            "declaration": declared_as,
        },
    )


def suggest_declaration(violation: Violation) -> str:
    """The capability that would have allowed it: a file's folder, as seen from here.

    All of the current folder would be too much for one file in it.
    """
    if violation.capability[:3] != "fs:":
        return violation.capability
    path = violation.target
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    return f"{violation.capability}:{shorten_path(path if shorten_path(folder) == '.' else folder)}"


def shorten_path(path: str) -> str:
    """A path as an author would write it: from the current folder, or from home."""
    try:
        cwd = os.path.realpath(os.getcwd())
    except OSError:
        return path
    if path == cwd:
        return "."
    if cwd != os.sep and path.startswith(cwd + os.sep):
        return f".{path[len(cwd) :]}"
    return path


# ------------------------------------------------------------------ step by step


class _MonitoredItems:
    """A stream, each step of it under watch."""

    def __init__(self, runner: MonitoredRunner, call: Call, items: Iterator[Any]) -> None:
        self._runner, self._call, self._items = runner, call, items

    def __iter__(self) -> _MonitoredItems:
        return self

    def __next__(self) -> Any:
        return self._runner.run_monitored(self._call, self._items.__next__)

    def close(self) -> None:
        """Close the stream: what it does in the end is watched as well."""
        close = getattr(self._items, "close", None)
        try:
            if close is not None:
                self._runner.run_monitored(self._call, close)
        finally:
            self._runner.finish(self._call)


class _MonitoredAwaitable:
    """A coroutine, each step of it under watch; between steps the loop is everybody's."""

    def __init__(self, runner: MonitoredRunner, call: Call, awaitable: Awaitable[Any]) -> None:
        self._runner, self._call, self._awaitable = runner, call, awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        run_monitored, call = self._runner.run_monitored, self._call
        steps: Any = self._awaitable.__await__()
        step: Callable[[], Any] = lambda: next(steps)  # noqa: E731
        while True:
            try:
                awaited = run_monitored(call, step)
            except StopIteration as end:
                return end.value
            try:
                sent = yield awaited
            except GeneratorExit:
                run_monitored(call, steps.close)
                raise
            except BaseException as failure:
                step = _throw_step(steps, failure)
            else:
                step = _send_step(steps, sent)


def _throw_step(steps: Any, failure: BaseException) -> Callable[[], Any]:
    return lambda: steps.throw(failure)


def _send_step(steps: Any, sent: Any) -> Callable[[], Any]:
    return (lambda: next(steps)) if sent is None else (lambda: steps.send(sent))


class _MonitoredAsyncItems:
    """An async stream, each step of it under watch."""

    def __init__(self, runner: MonitoredRunner, call: Call, items: AsyncIterator[Any]) -> None:
        self._runner, self._call, self._items = runner, call, items

    def __aiter__(self) -> _MonitoredAsyncItems:
        return self

    async def __anext__(self) -> Any:
        return await _MonitoredAwaitable(self._runner, self._call, self._items.__anext__())

    async def aclose(self) -> None:
        """Close the stream."""
        close = getattr(self._items, "aclose", None)
        try:
            if close is not None:
                await _MonitoredAwaitable(self._runner, self._call, close())
        finally:
            self._runner.finish(self._call)
