"""Leave out the fields that the output schema marks as details."""

from __future__ import annotations

from tooli.core.call import Ok
from tooli.pipeline.drivers import is_stream
from tooli.records.record_flow import MapSieve
from tooli.schema.detail_fields import drop_details, has_details
from tooli.schema.json_schema import output_schema
from tooli.text.jsonable import to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator
    from typing import Any

    from tooli.core.call import Call, Outcome

_COROUTINE, _ASYNC_GENERATOR = 0x80, 0x200


def omit_details(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Remove details from the result, or from each item of a stream."""
    schema = output_schema(call.tool)
    if schema is None or not has_details(schema):
        return (yield call)
    items = schema.get("items", {})
    was_streamed = False

    def drop_from(value: Any, part: Any) -> Any:
        return drop_details(to_jsonable(value, call.warnings), part, schema)

    def drop_item_details(item: Any) -> Any:
        nonlocal was_streamed
        was_streamed = True
        return drop_from(item, items)

    tool = call.tool
    if call.flow is not None:
        call.flow.sieves.append(MapSieve(drop_item_details))
        outcome = yield call
    else:
        outcome = yield call.replace(
            tool=tool.replace(fn=_map_function(tool.fn, drop_item_details))
        )
    if not isinstance(outcome, Ok) or outcome.value is None or was_streamed:
        return outcome
    return Ok(drop_from(outcome.value, schema))


def _map_function(fn: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function of the same kind (sync, async, stream) that changes each item."""
    code = getattr(fn, "__code__", None)
    flags = code.co_flags if code is not None else 0
    if flags & _ASYNC_GENERATOR:

        def was_streamed(**arguments: Any) -> Any:
            return _amap_items(fn(**arguments), change)

        return was_streamed
    if flags & _COROUTINE:

        async def awaited(**arguments: Any) -> Any:
            return _map_value(await fn(**arguments), change)

        return awaited

    def called(**arguments: Any) -> Any:
        return _map_value(fn(**arguments), change)

    return called


def _map_value(value: Any, change: Callable[[Any], Any]) -> Any:
    kind = value.__class__
    if hasattr(kind, "__anext__"):
        return _amap_items(value, change)
    if hasattr(kind, "__await__"):
        return _amap_value(value, change)
    return _map_items(value, change) if is_stream(value) else value


async def _amap_value(value: Any, change: Callable[[Any], Any]) -> Any:
    return _map_value(await value, change)


def _map_items(items: Iterator[Any], change: Callable[[Any], Any]) -> Iterator[Any]:
    try:
        for item in items:
            yield change(item)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


async def _amap_items(items: Any, change: Callable[[Any], Any]) -> AsyncGenerator[Any]:
    try:
        async for item in items:
            yield change(item)
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
