"""Plans: documents that describe what a call would do, and functions that make and apply them.

{"tool": …, "arguments": {…}, "effects": ["destructive"], "basis": "dry_run",
 "actions": [{"action": "delete", "target": "old.log", "state": …}], "state": …, "token": …}

A dry run, and a run that applies a plan, replace the function of the call. The replacement runs
where the function itself would run: in a thread, on an event loop or in a process of its own.
"""

from __future__ import annotations

from contextlib import aclosing
from itertools import tee

from tooli.core.call import Failed
from tooli.core.call_fingerprint import digest
from tooli.core.event_loop import run_awaitable
from tooli.errors import StateError, Suggestion
from tooli.pipeline.context import Context
from tooli.pipeline.drivers import is_stream, run
from tooli.pipeline.dry_run_recorder import (
    MAX_STREAM_ITEMS,
    DryRunRecorder,
    PlanEnforcer,
    supports_dry_run,
)
from tooli.pipeline.failure import mark_not_started
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Sequence
    from typing import Any

    from tooli.core.call import Call, Stage

_COROUTINE, _ASYNC_STREAM = 0x80, 0x200  # flags of a code object


def build_plan(call: Call, actions: list[dict[str, Any]] | None = None) -> Any:
    """Return the plan of a bound call.

    A function with `tooli_plan` makes its own plan. For other functions it is a document about the
    call. `actions` are the actions that a dry run recorded. Without them the document contains
    what the command declares.
    """
    tool = call.tool
    plan = getattr(tool.fn, "tooli_plan", None)
    if plan is not None:
        return plan(**{param.name: call.arguments[param.name] for param in tool.public_params})
    document: dict[str, Any] = {
        "tool": tool.id,
        "arguments": _plan_arguments(call),
        "effects": list(tool.behavior.labels()),
        "basis": "declared" if actions is None else "dry_run",
    }
    if actions is not None:
        document["actions"] = actions
        states = [entry["state"] for entry in actions if "state" in entry]
        if states:
            document["state"] = digest_plan(states)
    return document


def _plan_arguments(call: Call) -> dict[str, Any]:
    """Return the arguments by the names that callers use."""
    tool = call.tool
    if tool.input_model is None:
        return {param.name: call.arguments[param.name] for param in tool.public_params}

    return to_jsonable(call.arguments[tool.input_model[0]], [])


def is_plan(value: Any) -> bool:
    """True if a result is a plan document. A plan that the function made itself is not."""
    return is_object(value) and value.get("basis") in ("declared", "dry_run")


def digest_plan(plan: Any) -> str:
    """Return a digest of a plan."""
    return digest(encode(plan, []), 16).hex()


def digest_plan_basis(call: Call, actions: list[dict[str, Any]] | None) -> str:
    """Return a digest of the command and the actions, which must be unchanged to apply a plan.

    The arguments are not part of it: the plan token is bound to them.
    """
    tool = call.tool
    return digest_plan([tool.id, tool.version, list(tool.behavior.labels()), actions])


# ------------------------------------------------------------------ invalid plans

MAX_MARKED_ACTIONS = 24
"""Maximum number of actions that a plan token identifies one by one."""


def digest_actions(actions: list[dict[str, Any]] | None) -> bytes:
    """Return four bytes for each action: two for name and target, two for the whole entry.

    Returns no bytes if there are no actions or too many.
    """
    if not actions or len(actions) > MAX_MARKED_ACTIONS:
        return b""
    return b"".join(
        [
            digest(encode([entry["action"], entry["target"]], []), 2) + digest(encode(entry, []), 2)
            for entry in actions
        ]
    )


def plan_changed_error(
    actions: list[dict[str, Any]] | None,
    digests: bytes,
    reason: str = "what it depends on has changed",
) -> StateError:
    """Return the error for a plan that has become invalid, with the differences."""
    details: dict[str, Any] = {"actions": actions} if actions is not None else {}
    if digests and actions is not None:
        details = _compare_actions(actions, digests)

    error = StateError(
        f"The plan is no longer valid: {reason}. Nothing was done.",
        code="E3053",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Repeat the call with --dry-run, check the new plan, and apply that one.",
        ),
        details=details,
    )
    return mark_not_started(error)


def _compare_actions(actions: Sequence[dict[str, Any]], digests: bytes) -> dict[str, Any]:
    """Return which actions are new or changed, and how many are gone."""
    planned = [(digests[i : i + 2], digests[i + 2 : i + 4]) for i in range(0, len(digests), 4)]
    known = [digest_pair[0] for digest_pair in planned]
    added: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for entry in actions:
        digest_pair = digest_actions([entry])
        if digest_pair[:2] not in known:
            added.append(entry)
            continue
        known.remove(digest_pair[:2])
        if (digest_pair[:2], digest_pair[2:]) not in planned:
            changed.append(entry)
    by_kind: dict[str, Any] = {"added": added, "changed": changed}
    differences = {name: entries for name, entries in by_kind.items() if entries}
    return {**differences, "gone": len(known)} if known else differences


# ------------------------------------------------------------------ replacement functions


def make_dry_run_function(call: Call) -> Callable[..., Any]:
    """Return a function that dry-runs the function of a call and returns the recorder's report."""
    fn = call.tool.fn
    if not _code_flags(fn) & (_COROUTINE | _ASYNC_STREAM):

        def run_sync(**arguments: Any) -> Any:
            return _dry_run(call, fn, arguments)

        return _mark_wrapper(run_sync)

    async def run_async(**arguments: Any) -> dict[str, Any]:
        return await _dry_run(call, fn, arguments)

    return _mark_wrapper(run_async)


def make_plan(call: Call, enforcement_stages: Sequence[Stage]) -> Any:
    """Return the plan of a bound call, for a human who has to approve it.

    The call is not approved yet, so the dry run is confined like a run: by monitor, sandbox and
    timeout. Raises the error of a failed dry run. If the function does not support dry runs, or
    has inputs to read, the plan contains only what the command declares.
    """
    tool = call.tool
    if tool.has_handles or hasattr(tool.fn, "tooli_plan") or not supports_dry_run(tool.fn):
        return build_plan(call)
    dry_call = call.replace(
        tool=tool.replace(fn=make_dry_run_function(call)),
        options=call.options.replace(dry_run=True),
        flow=None,
        warnings=[],  # the run adds the same warnings
    )
    outcome = run(dry_call, enforcement_stages)
    if isinstance(outcome, Failed):
        call.warnings.extend(dry_call.warnings)
        raise outcome.error
    return build_plan(call, outcome.value["actions"])


def make_planned_function(
    call: Call, check_plan: Callable[[dict[str, Any]], None]
) -> Callable[..., Any]:
    """Return a function that dry-runs, checks the report, and then runs only planned actions."""
    fn = call.tool.fn
    flags = _code_flags(fn)

    def make_enforcer(report: dict[str, Any]) -> PlanEnforcer:
        check_plan(report)
        return PlanEnforcer(report["actions"])

    if flags & _ASYNC_STREAM:

        async def run_stream(**arguments: Any) -> Any:
            dry_run_arguments, run_arguments = _duplicate_arguments(arguments)
            enforcer = make_enforcer(await _dry_run(call, fn, dry_run_arguments))
            async for item in _aiterate_items(enforcer, fn(**run_arguments)):
                yield item

        return _mark_wrapper(run_stream)
    if flags & _COROUTINE:

        async def run_async(**arguments: Any) -> Any:
            dry_run_arguments, run_arguments = _duplicate_arguments(arguments)
            enforcer = make_enforcer(await _dry_run(call, fn, dry_run_arguments))
            return await _afinish_run(enforcer, fn(**run_arguments))

        return _mark_wrapper(run_async)

    def run_sync(**arguments: Any) -> Any:
        dry_run_arguments, run_arguments = _duplicate_arguments(arguments)
        enforcer = make_enforcer(_await_dry_run(_dry_run(call, fn, dry_run_arguments)))
        with enforcer:
            value = fn(**run_arguments)
        return _finish_run(enforcer, value)

    return _mark_wrapper(run_sync)


def _mark_wrapper(fn: Any) -> Any:
    """Mark a function that replaces the function of a tool.

    A process that imports the app again (bubblewrap) has only the original function, which would
    perform its actions in a dry run. The mark prevents that such a process is used.
    """
    fn.tooli_is_wrapper = True
    return fn


def _class_has(value: Any, method: str) -> bool:
    """True if the class of a value has a method. Attributes of the value do not count."""
    return hasattr(value.__class__, method)


def _code_flags(fn: Any) -> int:
    code = getattr(fn, "__code__", None)
    return code.co_flags if code is not None else 0


def _dry_run(call: Call, fn: Any, arguments: dict[str, Any]) -> Any:
    """Dry-run a function; return the report, or a coroutine that returns it."""
    recorder = DryRunRecorder()
    safe_arguments = _dry_run_arguments(call, recorder, arguments)
    with recorder:
        value = fn(**safe_arguments)
        if not _class_has(value, "__await__") and not _class_has(value, "__anext__"):
            _consume_stream(recorder, value)
            return recorder.finish()
    return _adry_run(recorder, value)


def _await_dry_run(report: Any) -> dict[str, Any]:
    """Return the report of a dry run; await it if a plain function returned a coroutine."""
    if not _class_has(report, "__await__"):
        return report

    return run_awaitable(report)


async def _adry_run(recorder: DryRunRecorder, value: Any) -> dict[str, Any]:
    with recorder:
        if _class_has(value, "__await__"):
            value = await value
        if _class_has(value, "__anext__"):
            count = 0
            async with aclosing(value) as items:
                async for _ in items:
                    count += 1
                    if count >= MAX_STREAM_ITEMS:
                        recorder.is_truncated = True
                        break
        else:
            _consume_stream(recorder, value)
    return recorder.finish()


def _consume_stream(recorder: DryRunRecorder, value: Any) -> None:
    """Consume a stream, so that its actions are recorded."""
    if not is_stream(value):
        return
    try:
        for count, _ in enumerate(value, 1):
            if count >= MAX_STREAM_ITEMS:
                recorder.is_truncated = True
                return
    finally:
        close = getattr(value, "close", None)
        if close is not None:
            close()


def _dry_run_arguments(
    call: Call, recorder: DryRunRecorder, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments for a dry run: its Context, and outputs that write nothing."""
    dry_call = call.replace(options=call.options.replace(dry_run=True))
    safe_arguments = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, Context):
            safe_arguments[name] = Context(dry_call, recorder)
        elif _class_has(value, "tooli_dry_run"):
            safe_arguments[name] = value.tooli_dry_run(recorder.record_action)
            recorder.discarded_outputs.append(safe_arguments[name])
    return safe_arguments


def _duplicate_arguments(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments for two runs. Iterators are copied, so that both runs can read them."""
    dry_run_arguments, run_arguments = dict(arguments), dict(arguments)
    for name, value in arguments.items():
        if getattr(value, "is_stdin", False) and _class_has(value, "cache_bytes"):
            value.cache_bytes(value.read_bytes())
        elif _class_has(value, "__next__"):
            dry_run_arguments[name], run_arguments[name] = tee(value)
    return dry_run_arguments, run_arguments


# ------------------------------------------------------------------ the run itself


def _finish_run(recorder: PlanEnforcer, value: Any) -> Any:
    """Return the value of a function. A coroutine or stream stays under the plan while it runs."""
    if _class_has(value, "__await__"):
        return _afinish_run(recorder, value)
    if _class_has(value, "__anext__"):
        return _aiterate_items(recorder, value)
    if is_stream(value):
        return _iterate_items(recorder, value)
    recorder.raise_if_failed()
    return value


async def _afinish_run(recorder: PlanEnforcer, value: Any) -> Any:
    with recorder:
        value = await value
    return _finish_run(recorder, value)


def _iterate_items(recorder: PlanEnforcer, items: Any) -> Generator[Any, None, None]:
    """Yield the items of a stream; the recorder is active only while the function runs."""
    end = object()
    try:
        while True:
            with recorder:
                item = next(items, end)
            if item is end:
                break
            yield item
        recorder.raise_if_failed()
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


async def _aiterate_items(recorder: PlanEnforcer, items: Any) -> AsyncGenerator[Any]:
    try:
        while True:
            try:
                with recorder:
                    item = await items.__anext__()
            except StopAsyncIteration:
                break
            yield item
        recorder.raise_if_failed()
    finally:
        await items.aclose()
