"""`ctx.state` on each interface: which calls share it, and for how long."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Annotated, Any

import pytest
from tests.http.asgi_client import post

from tooli import Context, Depends, Tooli
from tooli.core.call import Call, Caller
from tooli.errors import InternalError
from tooli.execution.timeouts import can_fork
from tooli.testing import invoke


def add_visit(ctx: Context) -> int:
    ctx.state["visits"] = ctx.state.get("visits", 0) + 1
    return ctx.state["visits"]


def make_app() -> Tooli:
    app = Tooli("counter")

    @app.command()
    def count(ctx: Context, visits: Annotated[int, Depends(add_visit)]) -> dict[str, Any]:
        assert ctx.state["visits"] == visits  # of one call, the dependency and the function
        return {"visits": visits, "kept": ctx.state.is_kept}

    @app.command()
    def plain(ctx: Context) -> int:
        return add_visit(ctx)

    @app.command()
    async def later(ctx: Context) -> int:
        return add_visit(ctx)

    @app.command(timeout=60)
    def forked(ctx: Context) -> int:
        return add_visit(ctx)

    @app.command(timeout=60)
    def read(ctx: Context) -> int:
        return ctx.state.get("visits", 0)

    return app


def test_the_calls_of_a_python_process_share_it() -> None:
    app = make_app()
    results = [app.call(name).result for name in ("count", "plain", "later", "read")]
    assert results == [{"visits": 1, "kept": True}, 2, 3, 3]
    assert app.options(yes=True).call("plain").result == 4
    assert asyncio.run(app.acall("later")).result == 5
    assert make_app().call("plain").result == 1  # another app


def test_each_named_caller_in_python_has_its_own() -> None:
    app = make_app()
    planner, writer = app.options(caller="planner"), app.options(caller="writer")
    assert [planner.call("plain").result, planner.call("count").unwrap()["visits"]] == [1, 2]
    assert writer.call("plain").result == 1
    assert app.call("plain").result == 1


def test_a_command_line_has_it_for_one_call() -> None:
    app = make_app()
    for _ in range(2):
        answer = json.loads(invoke(app, "count", "--json").stdout)
        assert answer["result"] == {"visits": 1, "kept": False}
    assert json.loads(invoke(app, "forked", "--json").stdout)["result"] == 1


async def test_an_http_request_has_it_for_one_call() -> None:
    app = make_app()
    api = app.asgi(mcp=False)
    for _ in range(2):  # a client chooses this header, so it proves nothing
        response = await post(api, "count", {}, (b"tooli-session-id", b"s1"))
        assert response.json()["result"] == {"visits": 1, "kept": False}
    assert (await post(api, "plain")).json()["result"] == 1
    assert (await post(api, "forked")).json()["result"] == 1
    assert app._state.session_data == {}


@pytest.mark.skipif(not can_fork(), reason="the function runs in this process")
def test_a_function_in_a_process_of_its_own_reads_it_only() -> None:
    app = make_app()
    app.call("plain")
    assert app.call("read").result == 1
    failed = app.call("forked").to_dict()["error"]
    assert failed["code"] == "E5000"
    assert "would be lost" in failed["message"]
    assert "async" in failed["suggestion"]["fix"]
    assert app.call("read").result == 1


def test_calls_at_the_same_time_share_it() -> None:
    app, barrier, found = Tooli("app"), threading.Barrier(8), list[Any]()

    @app.command()
    def connect(ctx: Context) -> int:
        barrier.wait(60)
        found.append(ctx.state.setdefault("connection", object()))
        return 1

    threads = [threading.Thread(target=app.call, args=("connect",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    assert len(set(found)) == 1


async def test_a_python_call_inside_a_request_has_its_own() -> None:
    """Clients of a server do not share values through calls that the tools make."""
    app = make_app()

    @app.command()
    def outer(ctx: Context) -> dict[str, Any]:
        ctx.state["visits"] = 5
        return app.call("count").unwrap()

    api = app.asgi(mcp=False)
    for _ in range(2):
        result = (await post(api, "outer")).json()["result"]
        assert result == {"visits": 1, "kept": False}
    assert app._state.session_data == {}
    assert app.call("outer").result == {"visits": 6, "kept": True}


def test_without_a_session_there_is_an_error() -> None:
    tool = make_app().find("plain")
    assert tool is not None
    with pytest.raises(InternalError, match="bubblewrap"):
        _ = Context(Call(tool, {}, Caller("cli"), [])).state
