"""Functions whose results are resources: generators are closed, values are passed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tooli import Depends, Tooli
from tooli.errors import NotFoundError
from tooli.pipeline.resource_runner import ResourceRunner, as_context_manager


def generate() -> Iterator[int]:
    yield 1


async def agenerate() -> AsyncIterator[int]:
    yield 1


def test_generators_become_context_managers() -> None:
    with as_context_manager(generate, {}) as value:
        assert value == 1
    assert hasattr(as_context_manager(agenerate, {}), "__aenter__")
    assert as_context_manager(lambda text: text, {"text": "x"}) == ("x",)


def test_reader_that_stops_early_closes_the_resources() -> None:
    events: list[str] = []

    def get() -> Iterator[int]:
        try:
            yield 1
        finally:
            events.append("close")

    app = Tooli("shop")

    @app.command()
    def items(value: int = Depends(get)) -> list[int]:  # type: ignore[assignment,misc]
        while True:
            yield value  # type: ignore[misc]

    stream = app.stream("items")
    assert next(stream) == 1
    stream.close()
    assert events == ["close"]


def make_async_resource(events: list[str]) -> Callable[[], AsyncIterator[int]]:
    """Return a dependency that records when it is closed."""

    async def get() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            events.append("close")

    return get


async def test_async_reader_that_stops_early_closes_the_resources() -> None:
    events: list[str] = []
    get = make_async_resource(events)
    app = Tooli("shop")

    @app.command()
    async def items(value: int = Depends(get)) -> list[int]:  # type: ignore[assignment,misc]
        while True:
            yield value  # type: ignore[misc]

    stream = app.astream("items")
    assert await anext(stream) == 1
    await stream.aclose()
    assert events == ["close"]


def test_dry_run_of_an_async_stream_returns_its_plan() -> None:
    app = Tooli("shop")

    @app.command()
    async def items(value: int = Depends(agenerate)) -> list[int]:  # type: ignore[assignment,misc]
        yield value  # type: ignore[misc]

    assert app.options(dry_run=True).call("items").ok


async def test_base_class_opens_nothing() -> None:
    runner: Any = ResourceRunner()
    with pytest.raises(NotImplementedError):
        runner.needs_loop(None)
    with pytest.raises(NotImplementedError):
        runner.open(None, None)
    with pytest.raises(NotImplementedError):
        await runner.aopen(None, None)


def test_a_function_without_a_stream_runs_in_the_loop_of_its_resources() -> None:
    app = Tooli("shop")

    @app.command()
    def items(value: int = Depends(agenerate)) -> int:  # type: ignore[assignment]
        return value

    @app.command()
    async def later(value: int = Depends(generate)) -> int:  # type: ignore[assignment]
        return value

    @app.command()
    def stream(value: int = Depends(agenerate)) -> list[int]:  # type: ignore[assignment]
        yield value  # type: ignore[misc]

    assert app.call("items").result == 1
    assert app.call("later").result == 1
    assert list(app.stream("stream")) == [1]


@pytest.mark.parametrize("interface", ["sync", "async"])
async def test_errors_close_the_resources(interface: str) -> None:
    events: list[str] = []
    get = make_async_resource(events)
    app = Tooli("shop")

    @app.command()
    async def fail(value: int = Depends(get)) -> int:  # type: ignore[assignment]
        raise NotFoundError("gone")

    if interface == "async":
        outcome: Any = await app.acall("fail")
    else:
        outcome = await asyncio.to_thread(app.call, "fail")
    assert outcome.error is not None
    assert outcome.error.message == "gone"
    assert events == ["close"]
