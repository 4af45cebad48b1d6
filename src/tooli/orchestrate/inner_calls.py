"""The calls of tools that a script makes.

Each is an ordinary Call with the caller, the session, the peer and the confirmation of the call
that runs the script, so all stages apply to it: scopes, approvals, rate limits, the audit log. The
script gets what any other caller would get: the redacted result in JSON types, or the error.
"""

from __future__ import annotations

import asyncio
from time import monotonic

from tooli.core.call import Call, Options
from tooli.core.option_words import words_of
from tooli.describe.mcp_tools import can_be_confirmed, with_settings
from tooli.errors import TemporaryError
from tooli.orchestrate.script_errors import DeadlineReached
from tooli.orchestrate.script_plans import DryRun, PlanStopped, has_reference
from tooli.orchestrate.script_values import ResultPlaceholder
from tooli.pipeline.drivers import is_async
from tooli.pipeline.dry_run_recorder import PlanEnforcer, RecorderReplaced
from tooli.pipeline.prepared_call import PreparedCall
from tooli.records.call_options import read_result_options

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.protocols import App, JsonObject
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.orchestrate.script_plans import AppliedPlan
    from tooli.orchestrate.script_tools import ScriptTool
    from tooli.storage.state_files import MemoryFailureHistory

MAX_SLEEP_SECONDS = 60.0
"""How long a script may sleep in total."""

_EXCEPTIONS = {
    "input": "ValueError",
    "state": "LookupError",
    "auth": "PermissionError",
    "human": "PermissionError",
}
"""The exceptions that a script can catch, by the category of the error."""


class ScriptLimitError(Exception):
    """The script makes more calls, or sleeps longer, than it may.

    `option` is the option of the caller that raises the limit, if there is one.
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


class InnerCall:
    """One call of a tool in a script, and how it ended."""

    __slots__ = ("error", "is_looked_into", "line", "milliseconds", "number", "state", "tool")

    def __init__(
        self, tool: ScriptTool, line: int, number: int = 1, *, is_looked_into: bool = False
    ) -> None:
        self.tool = tool
        self.line = line
        self.number = number  # the first call of the script is 1
        self.is_looked_into = is_looked_into  # the script may do more than to pass its result on
        # Then "running", then "ok", "planned", "failed", "refused" or "stopped".
        self.state = "waiting"
        self.milliseconds = 0
        self.error: ToolError | None = None

    @property
    def may_have_changed(self) -> bool:
        """True if the tool has started and does not only read."""
        has_run = self.state not in ("waiting", "refused", "planned")
        return has_run and not self.tool.tool.effects.read_only

    @property
    def error_text(self) -> str:
        """The message of the exception that the script gets."""
        return "" if self.error is None else f"{self.error.code}: {self.error.message}"

    def to_dict(self) -> JsonObject:
        """Return the call as `details.calls` shows it."""
        is_ok = self.state in ("ok", "planned")
        fields: JsonObject = {"tool": self.tool.name, "line": self.line, "ok": is_ok}
        if self.error is not None:
            fields["code"] = self.error.code
        elif self.state != "ok":
            fields["state"] = self.state
        return {**fields, "ms": self.milliseconds}


class InnerCalls:
    """Makes the calls of one script, a few at the same time."""

    def __init__(
        self,
        app: App,
        outer: Call,
        *,
        max_calls: int,
        concurrency: int,
        deadline: float | None,
        failure_history: MemoryFailureHistory | None = None,
        plan: DryRun | AppliedPlan | None = None,
    ) -> None:
        self.plan = plan  # that the run makes, or that it has to keep to
        self._app, self._outer = app, outer
        self._max_calls, self._deadline = max_calls, deadline
        self._slots = asyncio.Semaphore(concurrency)
        self._history = failure_history
        self._tasks: dict[int, asyncio.Task[JsonObject]] = {}
        self._calls: dict[int, InnerCall] = {}  # a sleep is a task that is not among them
        self._slept = 0.0
        self._waiter: asyncio.Future[None] | None = None  # done when a call has ended
        self.is_late = False

    @property
    def have_changed(self) -> bool:
        """True if a call that may change something has started."""
        return any([call.may_have_changed for call in self._calls.values()])

    @property
    def calls(self) -> list[InnerCall]:
        """All calls, in order."""
        return list(self._calls.values())

    def counts(self) -> dict[str, int]:
        """Return how often each tool was called."""
        counts: dict[str, int] = {}
        for call in self._calls.values():
            counts[call.tool.name] = counts.get(call.tool.name, 0) + 1
        return counts

    def start(
        self,
        id: int,
        tool: ScriptTool,
        arguments: dict[str, object],
        line: int,
        *,
        is_looked_into: bool = False,
    ) -> None:
        """Start a call. Raises a ScriptLimitError if the script makes too many.

        `is_looked_into` says that the script may do more than to pass its result on.
        """
        if len(self._calls) >= self._max_calls:
            outer, option = self._outer, ""
            if "max_calls" in outer.tool.param_names:
                option = "--max-calls" if words_of(outer).is_command_line else "`max_calls`"
            text = f"The script makes more than {self._max_calls} calls, which is the limit."
            raise ScriptLimitError(text, option)
        number = len(self._calls) + 1
        self._calls[id] = call = InnerCall(tool, line, number, is_looked_into=is_looked_into)
        self._tasks[id] = asyncio.ensure_future(self._run(call, arguments))

    def start_sleep(self, id: int, seconds: float) -> None:
        """Start a sleep of the script. Raises a ScriptLimitError if it sleeps too long."""
        self._slept += max(0.0, seconds)
        if isinstance(self.plan, DryRun):
            seconds = 0.0
        elif not self._slept <= MAX_SLEEP_SECONDS:  # also for NaN
            text = f"The script sleeps longer than {MAX_SLEEP_SECONDS:g} s, which is the limit."
            raise ScriptLimitError(text)
        self._tasks[id] = asyncio.ensure_future(self._sleep(seconds))

    async def wait(self, ids: list[int]) -> dict[int, JsonObject]:
        """Wait until at least one of these calls has ended; return the results of those that have.

        In a dry run, return one result at a time, in the order of the calls, so that the plan does
        not depend on how long they take.
        Raises a DeadlineReached if none ends before `stop_at_deadline` is called, and PlanStopped
        at the end of an incomplete plan.
        """
        tasks = self._tasks
        if isinstance(self.plan, DryRun):
            await self.wait_for_plan(self.plan)
            return {min(ids): tasks[min(ids)].result()}
        while not self.is_late:
            results = {id: tasks[id].result() for id in ids if tasks[id].done()}
            if results:
                return results
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        raise DeadlineReached

    async def wait_for_plan(self, plan: DryRun) -> None:
        """Wait until all calls are planned. Raises PlanStopped if the plan is incomplete."""
        while not all([task.done() for task in self._tasks.values()]):
            if self.is_late:
                raise DeadlineReached
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if plan.stopped is not None:
            raise PlanStopped

    def _wake(self) -> None:
        """Let `wait` continue. A task that ends calls it: a callback of the task runs later."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def stop_at_deadline(self) -> None:
        """End a `wait`, and refuse further ones: the deadline is reached."""
        self.is_late = True
        self._wake()

    def remaining_time(self) -> float | None:
        """Return the seconds until the deadline; None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - monotonic())

    async def finish(self, *, is_cancelled: bool) -> None:
        """End all calls: no tool runs after this.

        Calls that have not started are dropped. Those that only read are cancelled. The others are
        cancelled if the whole script is cancelled; else they run to their end, so that their
        outcome is known. A function in a thread cannot be cancelled, so it runs to its end as well.
        """
        for id, task in self._tasks.items():
            call = self._calls.get(id)
            if call is None:
                task.cancel()
                continue
            tool = call.tool.tool
            is_needed = not is_cancelled and not tool.effects.read_only
            can_stop = is_async(tool.fn) or tool.limits.stops_itself or self._deadline is not None
            if call.state == "waiting" or (can_stop and not is_needed):
                task.cancel()
        pending = [task for task in self._tasks.values() if not task.done()]
        if pending:
            await asyncio.wait(pending)

    async def _run(self, call: InnerCall, arguments: dict[str, object]) -> JsonObject:
        """Make a call; return what the sandbox gets: a value or an exception."""
        try:
            async with self._slots:
                started = monotonic()
                call.state = "running"
                try:
                    return await self._call_tool(call, arguments)
                except BaseException:
                    call.state = "stopped"
                    raise
                finally:
                    call.milliseconds = int((monotonic() - started) * 1000)
        finally:
            self._wake()

    async def _sleep(self, seconds: float) -> JsonObject:
        try:
            await asyncio.sleep(max(0.0, seconds))
        finally:
            self._wake()
        return {"return_value": None}

    async def _call_tool(self, inner: InnerCall, arguments: dict[str, object]) -> JsonObject:
        plan = self.plan
        if isinstance(plan, DryRun):
            return await self._plan_call(plan, inner, arguments)
        if plan is None or inner.tool.tool.effects.read_only:
            return await self._make_call(inner, arguments)
        entry = plan.claim(inner, arguments)
        details: JsonObject = entry.get("details", {})
        enforcer = PlanEnforcer(details.get("actions", []), _ignore_report)
        with RecorderReplaced(enforcer if "actions" in details else None):
            answer = await self._make_call(inner, arguments)
        if inner.state == "refused":
            plan.release(entry)
            return answer
        enforcer.raise_if_failed()
        plan.keep_result(entry, answer.get("return_value"))
        return answer

    async def _plan_call(
        self, plan: DryRun, inner: InnerCall, arguments: dict[str, object]
    ) -> JsonObject:
        """Make a call that only reads; plan any other one."""
        name, has_unknown = inner.tool.name, has_reference(arguments)
        if inner.tool.tool.effects.read_only and not has_unknown:
            return await self._make_call(inner, arguments)
        reason = ""
        if inner.tool.tool.effects.read_only:
            reason = f"{name}() needs the result of a planned call"
        elif inner.tool.tool.may_have_secrets:
            reason = f"{name}() takes secrets, which a plan does not contain"
        if reason:
            inner.state = "stopped"
            plan.stop(inner.line, reason)
            return {"return_value": None}
        answer: JsonObject = {}
        if not has_unknown:
            with RecorderReplaced(None):
                answer = await self._make_call(inner, arguments, dry_run=True)
            if "return_value" not in answer:
                return answer
        plan.add(inner, arguments, answer.get("return_value"))
        if can_be_confirmed(with_settings(inner.tool.tool, self._app._state)):
            plan.needs_yes = True
        inner.state = "planned"
        if inner.is_looked_into:
            plan.stop(inner.line, f"the script looks into the result of {name}()")
        from pydantic_monty import ClassInstance

        return {"return_value": ClassInstance(ResultPlaceholder(inner.number))}

    async def _make_call(
        self, inner: InnerCall, arguments: dict[str, object], *, dry_run: bool = False
    ) -> JsonObject:
        outer, tool = self._outer, inner.tool.tool
        remaining = self.remaining_time()
        if remaining is not None:
            limit = min(remaining, tool.limits.timeout or remaining)
            tool = tool.replace(limits=tool.limits.replace(timeout=max(limit, 0.001)))
        call, stages = self._app.prepare(
            Call(
                tool,
                arguments,
                outer.caller,
                [],
                _inner_options(outer.options, tool, dry_run=dry_run),
                peer=outer.peer,
                request=outer.request,
                session_data=outer.session_data,
                keeps_session=outer.keeps_session,
                is_from_script=True,
            ),
            self._history,
        )
        presented = await PreparedCall(call, stages).arun()
        value, error = presented.value(), presented.error
        self._keep_secrets(call)
        for line in presented.warnings():
            text = f"{inner.tool.name}: {line}"
            if text not in outer.warnings:
                outer.warnings.append(text)
        if error is None:
            inner.state = "ok"
            return {"return_value": value}
        inner.state = "refused" if presented.is_refused else "failed"
        inner.error = error
        return {"exc_type": _exception_name(error), "message": inner.error_text}

    def _keep_secrets(self, call: Call) -> None:
        """Add the secrets of a call to those of the outer one: its result may repeat them."""
        if call.secrets and self._outer.secrets is not None:
            self._outer.secrets.extend(call.secrets)


def _ignore_report(report: JsonObject) -> None:
    """Ignore what a planned call did: the report of the script has the call itself."""


def _inner_options(outer: Options, tool: Tool, *, dry_run: bool) -> Options:
    """Return the options of a call in a script.

    A script gets all records of a result: it could not see that there are more pages. It never
    prompts, and stdin is not its own.
    """
    values: dict[str, Any] = {}
    if tool.limits.page_size or tool.limits.returns_page:
        values["limit"] = 0
    if tool.limits.max_tokens:
        values["max_tokens"] = 0
    return Options(
        yes=outer.yes,
        dry_run=dry_run,
        no_input=True,
        verbose=outer.verbose,
        quiet=outer.quiet,
        detailed=False,
        is_machine_mode=True,
        stdin_consumed=True,
        result_options=read_result_options(values) if values else None,
        given={
            **values,
            **({"yes": True} if outer.yes else {}),
            **({"dry_run": True} if dry_run else {}),
        }
        or None,
    )


def _exception_name(error: ToolError) -> str:
    if error.code == "E4050":
        return "TimeoutError"
    if error.code == "E4040" or isinstance(error, TemporaryError):
        return "OSError"
    return _EXCEPTIONS.get(error.category, "RuntimeError")
