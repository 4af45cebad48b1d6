"""A concise answer: the result without what its schema calls details."""

from __future__ import annotations

from tooli.call.flow import Changing
from tooli.call.model import Ok
from tooli.call.pipeline import is_stream
from tooli.contract.details import has_details, without_details

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator
    from typing import Any

    from tooli.call.model import Call, Outcome

_COROUTINE, _ASYNC_GENERATOR = 0x80, 0x200


def leave_out_details(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Take details out of the result; out of each item of a stream, as it comes."""
    from tooli.contract.schema import output_schema

    schema = output_schema(call.tool)
    if schema is None or not has_details(schema):
        return (yield call)
    items = schema.get("items", {})
    streamed = False

    def shorten(value: Any, part: Any) -> Any:
        from tooli.contract.jsonable import jsonable

        return without_details(jsonable(value, call.warnings), part, schema)

    def each(item: Any) -> Any:
        nonlocal streamed
        streamed = True
        return shorten(item, items)

    tool = call.tool
    if call.flow is not None:
        call.flow.sieves.append(Changing(each))
        outcome = yield call
    else:
        outcome = yield call.replace(tool=tool.replace(fn=_itemwise(tool.fn, each)))
    if not isinstance(outcome, Ok) or outcome.value is None or streamed:
        return outcome
    return Ok(shorten(outcome.value, schema))


def _itemwise(fn: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function, as sync or async as it was; of a stream that it gives, each item is changed."""
    code = getattr(fn, "__code__", None)
    flags = code.co_flags if code is not None else 0
    if flags & _ASYNC_GENERATOR:

        def streamed(**arguments: Any) -> Any:
            return _changed_async(fn(**arguments), change)

        return streamed
    if flags & _COROUTINE:

        async def awaited(**arguments: Any) -> Any:
            return _changed(await fn(**arguments), change)

        return awaited

    def called(**arguments: Any) -> Any:
        return _changed(fn(**arguments), change)

    return called


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    kind = value.__class__
    if hasattr(kind, "__anext__"):
        return _changed_async(value, change)
    if hasattr(kind, "__await__"):
        return _changed_later(value, change)
    return _changed_items(value, change) if is_stream(value) else value


async def _changed_later(value: Any, change: Callable[[Any], Any]) -> Any:
    return _changed(await value, change)


def _changed_items(items: Iterator[Any], change: Callable[[Any], Any]) -> Iterator[Any]:
    try:
        for item in items:
            yield change(item)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


async def _changed_async(items: Any, change: Callable[[Any], Any]) -> AsyncGenerator[Any]:
    try:
        async for item in items:
            yield change(item)
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
