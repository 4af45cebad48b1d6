"""The running call, and its caller as `detect_execution_context` reports it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tooli import CallerCategory, Context, Tooli, detect_execution_context
from tooli.core.current_call import current_call
from tooli.detect import category_of
from tooli.testing import Case, interfaces


def describe() -> list[object]:
    context = detect_execution_context()
    return [str(context.category), context.caller_id, context.session_id, context.is_agent]


@pytest.fixture
def app() -> Tooli:
    app = Tooli("who")

    @app.command()
    def show() -> list[object]:
        return describe()

    @app.command()
    async def ashow() -> list[object]:
        await asyncio.sleep(0)
        return describe()

    @app.command()
    def items() -> Iterator[object]:
        yield describe()[0]
        yield describe()[0]

    @app.command()
    async def aitems() -> AsyncIterator[object]:
        yield describe()[0]
        yield describe()[0]

    @app.command()
    def injected(ctx: Context) -> str:
        return str(ctx.execution_context.category)

    return app


PYTHON = ["python_api", None, None, False]


def test_call_from_python(app: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")  # of the process, not of the call
    monkeypatch.delenv("TOOLI_CALLER", raising=False)
    assert app.call("show").result == PYTHON
    assert app.call("ashow").result == PYTHON
    assert app.call("injected").result == "python_api"
    assert asyncio.run(app.acall("show")).result == PYTHON
    assert asyncio.run(app.acall("ashow")).result == PYTHON
    assert detect_execution_context().category is CallerCategory.AI_AGENT


def test_streams_see_the_caller_and_their_readers_do_not(app: Tooli) -> None:
    for item in app.stream("items"):
        assert item == "python_api"
        assert current_call.get() is None

    async def read() -> None:
        async for item in app.astream("aitems"):
            assert item == "python_api"
            assert current_call.get() is None

    asyncio.run(read())


def test_caller_from_the_environment(app: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_CALLER", "langchain")
    monkeypatch.setenv("TOOLI_CALLER_VERSION", "1.2")
    monkeypatch.setenv("TOOLI_SESSION_ID", "s-1")
    result = app.call("show")
    assert result.result == ["python_api", "langchain", "s-1", True]
    assert result.meta["caller_id"] == "langchain"
    assert result.meta["caller_version"] == "1.2"
    assert result.meta["session_id"] == "s-1"
    assert app.options(caller="mine").call("show").meta["caller_id"] == "mine"
    monkeypatch.delenv("TOOLI_CALLER")
    assert app.call("show").result == ["python_api", None, "s-1", False]
    monkeypatch.delenv("TOOLI_SESSION_ID")
    assert "session_id" not in app.call("show").meta


def test_first_call_of_a_session_has_the_schema(
    app: Tooli, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("TOOLI_SESSION_ID", "s-2")
    assert "output_schema" in app.call("show").meta
    assert "output_schema" not in app.call("show").meta


def test_mcp_client(app: Tooli) -> None:
    mcp = next(each for each in interfaces(app) if each.name == "mcp")
    category, caller, _, is_agent = mcp.send_case(Case("show")).envelope["result"]
    assert (category, is_agent) == ("ai_agent", True)
    assert caller and category_of(caller) == "ai_agent"


def test_http_client(app: Tooli) -> None:
    http = next(each for each in interfaces(app) if each.name == "http")
    assert http.send_case(Case("show")).envelope["result"][0] == "unknown_automation"
