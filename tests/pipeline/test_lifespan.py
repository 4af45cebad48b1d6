"""The lifespan of an app: for one call, for a process, and for a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.http.asgi_client import post, send

from tooli import Context, Tooli
from tooli.pipeline.lifespan import LifespanTask


def make_app(
    *, is_async: bool = False, failure: Exception | None = None
) -> tuple[Tooli, list[str]]:
    app, events = Tooli("shop"), list[str]()

    def open_sync() -> Iterator[int]:
        events.append("open")
        if failure is not None:
            raise failure
        yield 7
        events.append("close")

    async def open_async(app: Tooli) -> AsyncIterator[int]:
        for value in open_sync():
            yield value

    app.lifespan(open_async if is_async else open_sync)

    @app.command()
    def size(ctx: Context) -> int:
        return ctx.lifespan

    @app.command()
    def plain(text: str = "x") -> str:
        return text

    return app, events


@pytest.mark.parametrize("is_async", [False, True])
def test_call_opens_it_for_itself(is_async: bool) -> None:
    app, events = make_app(is_async=is_async)
    assert [app.call("size").unwrap() for _ in range(2)] == [7, 7]
    assert events == ["open", "close"] * 2


def test_command_without_a_context_does_not_open_it() -> None:
    app, events = make_app()
    assert app.call("plain").unwrap() == "x"
    assert events == []


def test_context_manager_opens_it_once() -> None:
    app, events = make_app()
    with app.lifespan_context():
        assert [app.call("size").unwrap() for _ in range(3)] == [7, 7, 7]
        with app.lifespan_context():  # it is open already
            assert app.call("size").unwrap() == 7
        assert events == ["open"]
    assert events == ["open", "close"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_async_context_manager_opens_it_once(is_async: bool) -> None:
    app, events = make_app(is_async=is_async)
    async with app.lifespan_context():
        assert [(await app.acall("size")).unwrap() for _ in range(3)] == [7, 7, 7]
    assert events == ["open", "close"]
    assert (await app.acall("size")).unwrap() == 7
    assert events == ["open", "close"] * 2


def test_async_lifespan_needs_async_with() -> None:
    app, _ = make_app(is_async=True)
    with pytest.raises(Exception, match="async with"), app.lifespan_context():
        pass


@pytest.mark.parametrize("is_async", [False, True])
async def test_failure_leaves_nothing_open(is_async: bool) -> None:
    app, events = make_app()
    inner, _ = make_app(is_async=is_async, failure=ConnectionError("down"))
    app.add_typer(inner, name="inner")
    if not is_async:
        with pytest.raises(ConnectionError), app.lifespan_context():
            pass
        assert events == ["open"] or events == ["open", "close"]
        events.clear()
    with pytest.raises(ConnectionError):
        async with app.lifespan_context():
            pass
    assert events[:1] == ["open"]
    assert not app._state.lifespan.is_open  # type: ignore[union-attr]
    error = (await inner.acall("size")).error
    assert error is not None and (error.code, error.message) == ("E4040", "down")


def test_group_has_its_own_lifespan() -> None:
    outer, outer_events = make_app()
    inner, events = Tooli("inner"), list[str]()

    @inner.lifespan
    def open_inner() -> Iterator[str]:
        events.append("open")
        yield "inner"
        events.append("close")

    @inner.command()
    def name(ctx: Context) -> str:
        return ctx.lifespan

    outer.add_typer(inner, name="group")
    assert outer.call("group.name").unwrap() == "inner"
    assert (outer_events, events) == (["open", "close"], ["open", "close"])
    assert outer.call("size").unwrap() == 7
    assert events == ["open", "close"]


def test_function_that_does_not_yield_is_reported() -> None:
    app, _ = make_app()
    app.lifespan(lambda: None)
    error = app.call("size").error
    assert error is not None and "must yield" in error.message


@pytest.mark.parametrize("is_async", [False, True])
async def test_server_opens_it_once(is_async: bool) -> None:
    app, events = make_app(is_async=is_async)
    api = app.asgi(mcp=False)
    async with api.lifespan():
        assert events == ["open"]
        answers = [(await post(api, "size")).json()["result"] for _ in range(3)]
        assert answers == [7, 7, 7]
    assert events == ["open", "close"]


async def test_first_request_opens_it_without_a_startup_event() -> None:
    app, events = make_app(is_async=True)
    api = app.asgi(mcp=False)
    assert (await post(api, "plain")).status == 200
    assert events == []
    answers = await asyncio.gather(*[post(api, "size") for _ in range(5)])
    assert [answer.json()["result"] for answer in answers] == [7] * 5
    assert events == ["open"]
    await api._shut_down()
    assert events == ["open", "close"]


async def test_server_that_cannot_open_it_is_not_ready(caplog: pytest.LogCaptureFixture) -> None:
    app, _ = make_app(failure=ConnectionError("hunter2"))
    api = app.asgi(mcp=False)
    ready = await send(api, "GET", "/ready")
    assert (ready.status, ready.json()["reason"]) == (503, "not_started")
    called = await post(api, "size")
    assert called.status == 500 and b"hunter2" not in called.body
    assert "hunter2" in str(caplog.records[0].exc_text)
    sent: list[Any] = []
    received = iter([{"type": "lifespan.startup"}])

    async def receive() -> Any:
        return next(received)

    async def keep(message: Any) -> None:
        sent.append(message)

    await api({"type": "lifespan"}, receive, keep)
    assert sent[0]["type"] == "lifespan.startup.failed"
    assert "hunter2" not in sent[0]["message"]


async def test_task_that_is_cancelled_closes_it() -> None:
    app, events = make_app(is_async=True)
    task = LifespanTask(app._state)
    await task.start()
    assert task._task is not None
    task._task.cancel()
    await asyncio.gather(task._task, return_exceptions=True)
    assert events == ["open", "close"]
    assert not app._state.lifespan.is_open  # type: ignore[union-attr]
    await LifespanTask(Tooli("other")._state).start()
    await LifespanTask(Tooli("other")._state).stop()
