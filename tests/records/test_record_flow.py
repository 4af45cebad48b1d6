"""RecordFlow: a list, a stream or an async stream passes through processors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tooli.records.call_options import ResultOptions
from tooli.records.record_flow import MapProcessor, RecordFlow, RecordProcessor, as_records


class FirstRecords(RecordProcessor):
    """Passes the first records; with `report`, adds "end" after them."""

    def __init__(self, count: int, report: bool = False) -> None:
        self._left, self._report = count, report

    def open(self, push: Any) -> Any:
        self._push = push

        def take(record: Any) -> bool:
            self._left -= 1
            push(record)
            return self._left == 0

        return take

    def finish(self) -> object:
        return self._push("end") if self._report else None


class Source:
    """An iterator that counts its items and records whether it was closed."""

    def __init__(self, count: int) -> None:
        self.items, self.read, self.is_closed = iter(range(count)), 0, False

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        item = next(self.items)
        self.read += 1
        return item

    def close(self) -> None:
        self.is_closed = True


def make_flow(*processors: RecordProcessor) -> RecordFlow:
    flow = RecordFlow(ResultOptions(), {})
    flow.processors = list(processors)
    return flow


def test_list_passes_through_a_processor() -> None:
    assert MapProcessor(lambda n: n * 2).process_list([1, 2]) == [2, 4]
    assert FirstRecords(2).process_list([1, 2, 3]) == [1, 2]
    assert FirstRecords(9, report=True).process_list([1]) == [1, "end"]


def test_stream_is_closed_early() -> None:
    source = Source(100)
    flow = make_flow(MapProcessor(str), FirstRecords(2))
    assert list(flow.process(source)) == ["0", "1"]
    assert (source.read, source.is_closed) == (2, True)


def test_finish_appends_records() -> None:
    assert list(make_flow(MapProcessor(str), FirstRecords(9, report=True)).process(Source(2))) == [
        "0",
        "1",
        "end",
    ]


def test_async_stream_is_processed_and_closed_early() -> None:
    closed: list[bool] = []

    async def items() -> AsyncIterator[int]:
        try:
            for i in range(100):
                yield i
        finally:
            closed.append(True)

    async def collect() -> list[Any]:
        flow = make_flow(MapProcessor(str), FirstRecords(2))
        return [item async for item in flow.aprocess(items())]

    assert asyncio.run(collect()) == ["0", "1"]
    assert closed == [True]


@pytest.mark.parametrize(
    ("value", "records"),
    [
        ([1], [1]),
        ((1, 2), [1, 2]),
        ({2, 1}, [1, 2]),
        (frozenset("a"), ["a"]),
        ({}, None),
        ("", None),
    ],
)
def test_as_records_returns_a_list_for_collections_only(
    value: Any, records: list[Any] | None
) -> None:
    assert as_records(value) == records


def test_async_records_after_the_last_item() -> None:
    """The stream has no `aclose`, and the processor adds a record at its end."""

    class Numbers:
        def __init__(self) -> None:
            self.items = iter(range(2))

        def __aiter__(self) -> AsyncIterator[int]:
            return self

        async def __anext__(self) -> int:
            for item in self.items:
                return item
            raise StopAsyncIteration

    async def collect() -> list[Any]:
        return [item async for item in make_flow(FirstRecords(9, report=True)).aprocess(Numbers())]

    assert asyncio.run(collect()) == [0, 1, "end"]
