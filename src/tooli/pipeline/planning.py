"""Plans: documents that describe what a call would do, and functions that make and apply them.

{"tool": …, "arguments": {…}, "effects": ["destructive"], "basis": "dry_run",
 "actions": [{"action": "delete", "target": "old.log", "state": …}], "state": …, "token": …}

A dry run, and a run that applies a plan, replace the function of the call. The replacement runs
where the function itself would run: in a thread, on an event loop or in a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import tee

from tooli.core.call import Failed
from tooli.core.call_fingerprint import digest
from tooli.core.current_call import current_call
from tooli.core.event_loop import run_awaitable
from tooli.errors import StateError, Suggestion, ToolRuntimeError
from tooli.pipeline.context import replace_context
from tooli.pipeline.drivers import (
    CO_ASYNC_GENERATOR,
    CO_COROUTINE,
    aclose_stream,
    close_stream,
    code_flags,
    is_async,
    is_async_stream,
    is_awaitable,
    is_stream,
    run,
)
from tooli.pipeline.dry_run_recorder import (
    MAX_STREAM_ITEMS,
    DryRunRecorder,
    PlanEnforcer,
    supports_dry_run,
)
from tooli.pipeline.failure import mark_not_started
from tooli.pipeline.stdout_capture import DiscardedOutput
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_object, iter_items, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Generator,
        Mapping,
        Sequence,
    )
    from typing import Any

    from tooli.core.call import Call, Stage
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Tool


def build_plan(call: Call, actions: list[JsonObject] | None = None) -> Any:
    """Return the plan of a bound call.

    A function with `tooli_plan` makes its own plan. For other functions the plan is a document
    about the call. `actions` are the actions that a dry run recorded. Without them the document
    contains only the effects that the command declares.
    """
    tool = call.tool
    plan = getattr(tool.fn, "tooli_plan", None)
    if plan is not None:
        return plan(**{name: call.arguments[name] for name in _given_names(call)})
    document: JsonObject = {
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


def _given_names(call: Call) -> list[str]:
    """Return the parameters that have a value; a described tool may leave some out."""
    return [param.name for param in call.tool.public_params if param.name in call.arguments]


def _plan_arguments(call: Call) -> dict[str, Any]:
    """Return the arguments by the names that callers use."""
    tool = call.tool
    if tool.input_model is None:
        return {
            param.name: call.arguments[param.name]
            for param in tool.public_params
            if param.name in call.arguments
            and not _is_default_of_callback(tool, param, call.arguments[param.name])
        }
    return to_jsonable(call.arguments[tool.input_model[0]], [])


def _is_default_of_callback(tool: Tool, param: Param, value: object) -> bool:
    """True for the default of a callback's option. A command line does not have it, either."""
    return (
        tool.route is not None and tool.route.is_of_callback(param.name) and value == param.default
    )


def is_plan(value: object) -> bool:
    """True if a result is a plan document, and not a plan that the function made itself."""
    return is_object(value) and value.get("basis") in ("declared", "dry_run")


def digest_plan(plan: object) -> str:
    """Return a digest of a plan."""
    return digest(encode(plan, []), 16).hex()


def digest_plan_basis(call: Call, actions: list[JsonObject] | None, key: bytes) -> bytes:
    """Return a digest of the command and the actions, which must be unchanged to apply a plan.

    The arguments are not part of it: the plan token is bound to them.
    """
    tool = call.tool
    basis = [tool.id, tool.version, list(tool.behavior.labels()), actions]
    return digest(encode(basis, []), 16, key)


# ------------------------------------------------------------------ invalid plans

MAX_MARKED_ACTIONS = 24
"""Maximum number of actions that a plan token identifies one by one."""


def digest_actions(actions: list[JsonObject] | None, key: bytes) -> bytes:
    """Return four bytes for each action: two for name and target, two for the whole entry.

    Returns no bytes if there are no actions or too many.
    """
    if not actions or len(actions) > MAX_MARKED_ACTIONS:
        return b""
    return b"".join(
        [
            digest(encode([entry["action"], entry["target"]], []), 2, key)
            + digest(encode(entry, []), 2, key)
            for entry in actions
        ]
    )


def plan_changed_error(
    actions: list[JsonObject] | None,
    digests: bytes,
    key: bytes,
    reason: str = "what it depends on has changed",
) -> StateError:
    """Return the error for a plan that has become invalid, with the differences.

    `digests` is the result of `digest_actions` for the planned actions, with the same key.
    """
    details: JsonObject = {"actions": actions} if actions is not None else {}
    if digests and actions is not None:
        details = _compare_actions(actions, digests, key)
    error = StateError(
        f"The plan is no longer valid: {reason}. Nothing was done.",
        code="E3053",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Repeat the call as a dry run, check the new plan, and apply that one.",
        ),
        details=details,
    )
    return mark_not_started(error)


def _compare_actions(actions: Sequence[JsonObject], digests: bytes, key: bytes) -> JsonObject:
    """Return the actions that are new or changed, and the number of planned ones that are gone."""
    planned = [(digests[i : i + 2], digests[i + 2 : i + 4]) for i in range(0, len(digests), 4)]
    known = [digest_pair[0] for digest_pair in planned]
    added: list[JsonObject] = []
    changed: list[JsonObject] = []
    for entry in actions:
        digest_pair = digest_actions([entry], key)
        if digest_pair[:2] not in known:
            added.append(entry)
            continue
        known.remove(digest_pair[:2])
        if (digest_pair[:2], digest_pair[2:]) not in planned:
            changed.append(entry)
    by_kind: JsonObject = {"added": added, "changed": changed}
    differences = {name: entries for name, entries in by_kind.items() if entries}
    return {**differences, "gone": len(known)} if known else differences


# ------------------------------------------------------------------ replacement functions


def make_dry_run_function(call: Call) -> Callable[..., object]:
    """Return a function that dry-runs the function of a call and returns the recorder's report."""
    fn = call.tool.fn
    if not is_async(fn):

        def run_sync(**arguments: object) -> object:
            return _dry_run(call, fn, arguments)

        return run_sync

    async def run_async(**arguments: object) -> JsonObject:
        return await _adry_run(call, fn, arguments)

    return run_async


def make_plan(call: Call, confinement_stages: Sequence[Stage]) -> Any:
    """Return the plan of a bound call, for a human who has to approve it.

    The call is not approved yet, so the dry run is confined like a run: by monitor, sandbox and
    timeout. Only its actions are used. It gets no client, its output is discarded, and `confirm`
    returns True: otherwise it could show the human another question than the one about the plan.
    Raises the error of a failed dry run. If the function does not support dry runs, asks a
    question, takes inputs, secrets or output files, or returns a stream that is too long, the plan
    contains only the declared effects.
    """
    tool = call.tool
    if tool.has_handles or hasattr(tool.fn, "tooli_plan") or not supports_dry_run(tool.fn):
        return build_plan(call)
    warnings: list[str] = []  # a separate list, because the run adds the same ones
    dry_call = call.replace(
        tool=tool.replace(fn=make_dry_run_function(call)),
        arguments=replace_context(call.arguments, warnings=warnings, peer=None, approved=True),
        options=call.options.replace(dry_run=True),
        flow=None,
        warnings=warnings,
        peer=None,
    )
    token = current_call.set(dry_call.replace(approved=True))
    try:
        with DiscardedOutput(replaces_streams=call.caller.owns_process):
            outcome = run(dry_call, confinement_stages)
    finally:
        current_call.reset(token)
    if isinstance(outcome, Failed) and outcome.error.code in ("E1038", "E2102"):  # it has to ask
        return build_plan(call)
    if isinstance(outcome, Failed):
        call.warnings.extend(warnings)
        raise outcome.error
    report = check_report(outcome.value)
    return build_plan(call, None if report["is_truncated"] else report["actions"])


def check_report(report: Any) -> JsonObject:
    """Return the report of a dry run if it is valid. A sandboxed process can send anything."""
    is_valid = (
        is_object(report)
        and report.keys() - {"facts"} == {"actions", "is_truncated"}
        and is_object(report.get("facts", {}))
        and isinstance(report["is_truncated"], bool)
        and is_list(report["actions"])
        and all([_is_action(entry) for entry in report["actions"]])
    )
    if is_valid:
        return report
    raise ToolRuntimeError(
        "The dry run returned an invalid report.",
        code="E4051",
        suggestion=Suggestion(
            "abort", "Inspect the command: its code tampers with its own result."
        ),
    )


def _is_action(entry: object) -> bool:
    return (
        is_object(entry)
        and isinstance(entry.get("action"), str)
        and isinstance(entry.get("target"), str)
        and isinstance(entry.get("state", ""), str)
        and isinstance(entry.get("details", {}), dict)
    )


def make_planned_function(
    call: Call, check_plan: Callable[[JsonObject], None]
) -> Callable[..., object]:
    """Return a function that applies a plan.

    It runs the function of the call twice: first in a dry run, to check the report, and then with
    only the planned actions allowed.
    """
    fn = call.tool.fn
    flags = code_flags(fn)

    def make_enforcer(report: JsonObject) -> PlanEnforcer:
        check_plan(report)
        return PlanEnforcer(report["actions"], report_applied)

    def report_applied(applied: JsonObject) -> None:
        if call.meta is not None:
            call.meta["applied"] = applied

    def run_function(enforcer: PlanEnforcer, arguments: Mapping[str, object]) -> Any:
        return fn(**replace_context(arguments, enforcer))

    if flags & CO_ASYNC_GENERATOR:

        async def run_stream(**arguments: object) -> AsyncGenerator[object]:
            dry_run_arguments, run_arguments = _duplicate_arguments(arguments)
            enforcer = make_enforcer(await _adry_run(call, fn, dry_run_arguments))
            async for item in _aiterate_items(enforcer, run_function(enforcer, run_arguments)):
                yield item

        return run_stream
    if flags & CO_COROUTINE:

        async def run_async(**arguments: object) -> object:
            dry_run_arguments, run_arguments = _duplicate_arguments(arguments)
            enforcer = make_enforcer(await _adry_run(call, fn, dry_run_arguments))
            return await _afinish_run(enforcer, run_function(enforcer, run_arguments))

        return run_async

    def run_sync(**arguments: object) -> object:
        dry_run_arguments, run_arguments = _duplicate_arguments(arguments)
        report = _dry_run(call, fn, dry_run_arguments)
        enforcer = make_enforcer(report if isinstance(report, dict) else run_awaitable(report))
        with enforcer:
            value = run_function(enforcer, run_arguments)
        return _finish_run(enforcer, value)

    return run_sync


_GUARD_MODULE = "tooli.execution.monitor.dry_run_guard"
"""Named as text, as the stages are, because the package is above this one."""


def _dry_run(
    call: Call,
    fn: Callable[..., object],
    arguments: Mapping[str, object],
) -> JsonObject | Awaitable[JsonObject]:
    """Dry-run a function; return the report, or a coroutine that returns it."""
    is_guarded = not getattr(fn, "tooli_runs_script", False)  # its calls are dry runs themselves
    guard = import_module(_GUARD_MODULE).DryRunGuard(call) if is_guarded else None
    recorder = DryRunRecorder(guard)
    safe_arguments = _dry_run_arguments(call, recorder, arguments)
    with recorder:
        value = fn(**safe_arguments)
        if not is_awaitable(value) and not is_async_stream(value):
            _consume_stream(recorder, value)
            return recorder.finish()
    return _finish_dry_run(recorder, value)


async def _adry_run(
    call: Call,
    fn: Callable[..., object],
    arguments: Mapping[str, object],
) -> JsonObject:
    report = _dry_run(call, fn, arguments)
    return report if isinstance(report, dict) else await report


async def _finish_dry_run(recorder: DryRunRecorder, value: object) -> JsonObject:
    recorder.is_on_loop = True
    with recorder:
        if is_awaitable(value):
            value = await value
        if is_async_stream(value):
            await _aconsume_stream(recorder, value)
        else:
            _consume_stream(recorder, value)
    return recorder.finish()


def _consume_stream(recorder: DryRunRecorder, value: object) -> None:
    """Consume a stream, so that its actions are recorded."""
    if not is_stream(value):
        return
    try:
        for count, _ in enumerate(value, 1):
            if count >= MAX_STREAM_ITEMS:
                recorder.is_truncated = True
                return
    finally:
        close_stream(value)


async def _aconsume_stream(recorder: DryRunRecorder, items: AsyncIterator[object]) -> None:
    count = 0
    try:
        async for _ in items:
            count += 1
            if count >= MAX_STREAM_ITEMS:
                recorder.is_truncated = True
                return
    finally:
        await aclose_stream(items)


def _dry_run_arguments(
    call: Call, recorder: DryRunRecorder, arguments: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments for a dry run: its Context, and outputs that write nothing."""
    tool, options = call.tool, call.options.replace(dry_run=True)
    safe_arguments = replace_context(arguments, recorder, options=options)
    outputs = {
        name: _discard_outputs(value, recorder)
        for name, value in tool.arguments_by_param(arguments).items()
        if any([_is_output(item) for item in iter_items(value)])
    }
    if tool.input_model is None:
        return {**safe_arguments, **outputs}
    name, _ = tool.input_model
    return {**safe_arguments, name: safe_arguments[name].model_copy(update=outputs)}


def _is_output(value: Any) -> bool:
    return hasattr(value.__class__, "tooli_dry_run")


def _discard_outputs(value: Any, recorder: DryRunRecorder) -> Any:
    """Return an output, or a collection of outputs, that writes nothing."""
    if not _is_output(value):
        items = [_discard_outputs(item, recorder) if _is_output(item) else item for item in value]
        return type(value)(items)
    output = value.tooli_dry_run(recorder.record_action)
    recorder.discarded_outputs.append(output)
    return output


def _duplicate_arguments(
    arguments: Mapping[str, object],
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the arguments for a dry run and a run. Both can read the same inputs and iterators.

    The warnings of the dry run are dropped, because the run adds the same ones.
    """
    dry_run_arguments, run_arguments = replace_context(arguments, warnings=[]), dict(arguments)
    for name, value in arguments.items():
        if getattr(value, "is_stdin", False) and hasattr(type(value), "cache_bytes"):
            source: Any = value
            source.cache_bytes(source.read_bytes())
        elif isinstance(value, Iterator):
            dry_run_arguments[name], run_arguments[name] = tee(value)  # pyright: ignore[reportUnknownArgumentType]
    return dry_run_arguments, run_arguments


# ------------------------------------------------------------------ the run itself


def _finish_run(enforcer: PlanEnforcer, value: object) -> object:
    """Return the function's result.

    A coroutine or stream is wrapped, so that the enforcer is active while it runs.
    """
    if is_awaitable(value):
        return _afinish_run(enforcer, value)
    if is_async_stream(value):
        return _aiterate_items(enforcer, value)
    if is_stream(value):
        return _iterate_items(enforcer, value)
    enforcer.finish()
    return value


async def _afinish_run(enforcer: PlanEnforcer, value: Awaitable[object]) -> object:
    with enforcer:
        result = await value
    return _finish_run(enforcer, result)


def _iterate_items(
    enforcer: PlanEnforcer, items: Iterator[object]
) -> Generator[object, None, None]:
    """Yield the items of a stream; the enforcer is active only while the function runs."""
    end = object()
    try:
        while True:
            with enforcer:
                item = next(items, end)
            if item is end:
                break
            yield item
        enforcer.finish()
    finally:
        close_stream(items)


async def _aiterate_items(
    enforcer: PlanEnforcer, items: AsyncIterator[object]
) -> AsyncGenerator[object]:
    try:
        while True:
            try:
                with enforcer:
                    item = await items.__anext__()
            except StopAsyncIteration:
                break
            yield item
        enforcer.finish()
    finally:
        await aclose_stream(items)
