"""Functions that are rehearsed, and functions that are held to what the rehearsal told.

Made in a stage and put in the function's place, as what reads its inputs is: so they run where
the function runs, in a thread, on a loop or in a process of its own.
"""

from __future__ import annotations

from tooli.call.planning import plan_of
from tooli.call.rehearsal import MOST_ITEMS, Held, Rehearsal, rehearses

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Sequence
    from typing import Any

    from tooli.call.model import Call, Stage

_COROUTINE, _ASYNC_STREAM = 0x80, 0x200  # flags of a code object


def rehearsed(call: Call) -> Callable[..., Any]:
    """A call's function, made to tell what it would do: what `Rehearsal.told` says."""
    fn = call.tool.fn
    if not _flags(fn) & (_COROUTINE | _ASYNC_STREAM):

        def now(**arguments: Any) -> Any:
            return _rehearse(call, fn, arguments)

        return _stand_in(now)

    async def later(**arguments: Any) -> dict[str, Any]:
        return await _rehearse(call, fn, arguments)

    return _stand_in(later)


def plan_now(call: Call, holding: Sequence[Stage]) -> Any:
    """The plan of a bound call, made on the spot: for a human who is to see it first.

    `holding` are the stages that hold the function when it runs: nobody has agreed to anything
    yet, so its rehearsal is held by the same walls, watch and deadline. Raises what it fails with.
    Where a function cannot be rehearsed, or its inputs are not read yet, what it declares.
    """
    from tooli.call.model import Failed
    from tooli.call.pipeline import run

    tool = call.tool
    if tool.handles or hasattr(tool.fn, "tooli_plan") or not rehearses(tool.fn):
        return plan_of(call)
    rehearsal = call.replace(
        tool=tool.replace(fn=rehearsed(call)),
        options=call.options.replace(dry_run=True),
        flow=None,
        warnings=[],  # the run has the same ones
    )
    outcome = run(rehearsal, holding)
    if isinstance(outcome, Failed):
        call.warnings.extend(rehearsal.warnings)
        raise outcome.error
    return plan_of(call, outcome.value["actions"])


def held(call: Call, judge: Callable[[dict[str, Any]], None]) -> Callable[..., Any]:
    """A call's function: rehearsed first, judged by what that told, then run and held to it."""
    fn = call.tool.fn
    flags = _flags(fn)

    def hold(told: dict[str, Any]) -> Held:
        judge(told)
        return Held(told["actions"])

    if flags & _ASYNC_STREAM:

        async def stream(**arguments: Any) -> Any:
            first, then = _twice(arguments)
            ledger = hold(await _rehearse(call, fn, first))
            async for item in _aitems(ledger, fn(**then)):
                yield item

        return _stand_in(stream)
    if flags & _COROUTINE:

        async def later(**arguments: Any) -> Any:
            first, then = _twice(arguments)
            ledger = hold(await _rehearse(call, fn, first))
            return await _afinish(ledger, fn(**then))

        return _stand_in(later)

    def now(**arguments: Any) -> Any:
        first, then = _twice(arguments)
        ledger = hold(_finished(_rehearse(call, fn, first)))
        with ledger:
            value = fn(**then)
        return _finish(ledger, value)

    return _stand_in(now)


def _stand_in(fn: Any) -> Any:
    """Mark a function that stands in the place of a tool's own: who loads the app anew to run
    that one would act where only a plan was asked for."""
    fn.tooli_stands_in = True
    return fn


def _has(value: Any, method: str) -> bool:
    """Whether a value's class has a method: what it is, not what it pretends to be."""
    return hasattr(value.__class__, method)


def _flags(fn: Any) -> int:
    code = getattr(fn, "__code__", None)
    return code.co_flags if code is not None else 0


def _rehearse(call: Call, fn: Any, arguments: dict[str, Any]) -> Any:
    """What a function would do; to be awaited where it is async."""
    ledger = Rehearsal()
    given = _harmless(call, ledger, arguments)
    with ledger:
        value = fn(**given)
        if not _has(value, "__await__") and not _has(value, "__anext__"):
            _drain(ledger, value)
            return ledger.told()
    return _arehearse(ledger, value)


def _finished(told: Any) -> dict[str, Any]:
    """What a rehearsal told, awaited where async code stands behind a plain function."""
    if not _has(told, "__await__"):
        return told
    from tooli.call.aio import finish

    return finish(told)


async def _arehearse(ledger: Rehearsal, value: Any) -> dict[str, Any]:
    with ledger:
        if _has(value, "__await__"):
            value = await value
        if _has(value, "__anext__"):
            from contextlib import aclosing

            count = 0
            async with aclosing(value) as items:
                async for _ in items:
                    count += 1
                    if count >= MOST_ITEMS:
                        ledger.cut = True
                        break
        else:
            _drain(ledger, value)
    return ledger.told()


def _drain(ledger: Rehearsal, value: Any) -> None:
    """Run a stream through for what it does on the way."""
    from tooli.call.pipeline import is_stream

    if not is_stream(value):
        return
    try:
        for count, _ in enumerate(value, 1):
            if count >= MOST_ITEMS:
                ledger.cut = True
                return
    finally:
        close = getattr(value, "close", None)
        if close is not None:
            close()


def _harmless(call: Call, ledger: Rehearsal, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments for a rehearsal: a context that says so, output files that are not written."""
    from tooli.call.context import Context

    dry = call.replace(options=call.options.replace(dry_run=True))
    given = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, Context):
            given[name] = Context(dry, ledger)
        elif _has(value, "tooli_unwritten"):
            given[name] = value.tooli_unwritten(ledger.enter)
            ledger.unwritten.append(given[name])
    return given


def _twice(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments for two runs: what can be read but once is kept for the second."""
    first, then = dict(arguments), dict(arguments)
    for name, value in arguments.items():
        if getattr(value, "is_stdin", False) and _has(value, "keep"):
            value.keep(value.read_bytes())
        elif _has(value, "__next__"):
            from itertools import tee

            first[name], then[name] = tee(value)
    return first, then


# ------------------------------------------------------------------ the run itself


def _finish(ledger: Held, value: Any) -> Any:
    """What a function gave, its rest held as well."""
    from tooli.call.pipeline import is_stream

    if _has(value, "__await__"):
        return _afinish(ledger, value)
    if _has(value, "__anext__"):
        return _aitems(ledger, value)
    if is_stream(value):
        return _items(ledger, value)
    ledger.check()
    return value


async def _afinish(ledger: Held, value: Any) -> Any:
    with ledger:
        value = await value
    return _finish(ledger, value)


def _items(ledger: Held, items: Any) -> Generator[Any, None, None]:
    """A stream's items; the ledger is open only while the function itself runs."""
    end = object()
    try:
        while True:
            with ledger:
                item = next(items, end)
            if item is end:
                break
            yield item
        ledger.check()
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


async def _aitems(ledger: Held, items: Any) -> AsyncGenerator[Any]:
    try:
        while True:
            try:
                with ledger:
                    item = await items.__anext__()
            except StopAsyncIteration:
                break
            yield item
        ledger.check()
    finally:
        await items.aclose()
