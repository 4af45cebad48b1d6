"""Functions that are rehearsed, and functions that are held to what the rehearsal told.

Made in a stage and put in the function's place, as what reads its inputs is: so they run where
the function runs, in a thread, on a loop or in a process of its own.
"""

from __future__ import annotations

from tooli.pipeline.dry_run_recorder import (
    MAX_STREAM_ITEMS,
    DryRunRecorder,
    PlanEnforcer,
    supports_dry_run,
)
from tooli.pipeline.planning import build_plan

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Sequence
    from typing import Any

    from tooli.core.call import Call, Stage

_COROUTINE, _ASYNC_STREAM = 0x80, 0x200  # flags of a code object


def make_dry_run_function(call: Call) -> Callable[..., Any]:
    """A call's function, made to tell what it would do: what `Rehearsal.told` says."""
    fn = call.tool.fn
    if not _code_flags(fn) & (_COROUTINE | _ASYNC_STREAM):

        def run_sync(**arguments: Any) -> Any:
            return _dry_run(call, fn, arguments)

        return _mark_wrapper(run_sync)

    async def run_async(**arguments: Any) -> dict[str, Any]:
        return await _dry_run(call, fn, arguments)

    return _mark_wrapper(run_async)


def make_plan(call: Call, enforcement_stages: Sequence[Stage]) -> Any:
    """The plan of a bound call, made on the spot: for a human who is to see it first.

    `holding` are the stages that hold the function when it runs: nobody has agreed to anything
    yet, so its rehearsal is held by the same walls, watch and deadline. Raises what it fails with.
    Where a function cannot be rehearsed, or its inputs are not read yet, what it declares.
    """
    from tooli.core.call import Failed
    from tooli.pipeline.drivers import run

    tool = call.tool
    if tool.has_handles or hasattr(tool.fn, "tooli_plan") or not supports_dry_run(tool.fn):
        return build_plan(call)
    dry_call = call.replace(
        tool=tool.replace(fn=make_dry_run_function(call)),
        options=call.options.replace(dry_run=True),
        flow=None,
        warnings=[],  # the run has the same ones
    )
    outcome = run(dry_call, enforcement_stages)
    if isinstance(outcome, Failed):
        call.warnings.extend(dry_call.warnings)
        raise outcome.error
    return build_plan(call, outcome.value["actions"])


def make_planned_function(
    call: Call, check_plan: Callable[[dict[str, Any]], None]
) -> Callable[..., Any]:
    """A call's function: rehearsed first, judged by what that told, then run and held to it."""
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
    """Mark a function that stands in the place of a tool's own: who loads the app anew to run
    that one would act where only a plan was asked for."""
    fn.tooli_is_wrapper = True
    return fn


def _class_has(value: Any, method: str) -> bool:
    """Whether a value's class has a method: what it is, not what it pretends to be."""
    return hasattr(value.__class__, method)


def _code_flags(fn: Any) -> int:
    code = getattr(fn, "__code__", None)
    return code.co_flags if code is not None else 0


def _dry_run(call: Call, fn: Any, arguments: dict[str, Any]) -> Any:
    """What a function would do; to be awaited where it is async."""
    recorder = DryRunRecorder()
    safe_arguments = _dry_run_arguments(call, recorder, arguments)
    with recorder:
        value = fn(**safe_arguments)
        if not _class_has(value, "__await__") and not _class_has(value, "__anext__"):
            _consume_stream(recorder, value)
            return recorder.finish()
    return _adry_run(recorder, value)


def _await_dry_run(report: Any) -> dict[str, Any]:
    """What a rehearsal told, awaited where async code stands behind a plain function."""
    if not _class_has(report, "__await__"):
        return report
    from tooli.core.event_loop import run_awaitable

    return run_awaitable(report)


async def _adry_run(recorder: DryRunRecorder, value: Any) -> dict[str, Any]:
    with recorder:
        if _class_has(value, "__await__"):
            value = await value
        if _class_has(value, "__anext__"):
            from contextlib import aclosing

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
    """Run a stream through for what it does on the way."""
    from tooli.pipeline.drivers import is_stream

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
    """The arguments for a rehearsal: a context that says so, output files that are not written."""
    from tooli.pipeline.context import Context

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
    """The arguments for two runs: what can be read but once is kept for the second."""
    dry_run_arguments, run_arguments = dict(arguments), dict(arguments)
    for name, value in arguments.items():
        if getattr(value, "is_stdin", False) and _class_has(value, "cache_bytes"):
            value.cache_bytes(value.read_bytes())
        elif _class_has(value, "__next__"):
            from itertools import tee

            dry_run_arguments[name], run_arguments[name] = tee(value)
    return dry_run_arguments, run_arguments


# ------------------------------------------------------------------ the run itself


def _finish_run(recorder: PlanEnforcer, value: Any) -> Any:
    """What a function gave, its rest held as well."""
    from tooli.pipeline.drivers import is_stream

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
    """A stream's items; the ledger is open only while the function itself runs."""
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
