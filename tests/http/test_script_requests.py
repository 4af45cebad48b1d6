"""POST /orchestrate runs a script, GET /orchestrate returns the stubs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient, send
from tests.orchestrate.script_app import Shop

from tooli import Tooli
from tooli.annotations import ReadOnly

TOKENS = {"all": None, "visitor": ["look"]}


async def run(app: Tooli, body: dict[str, Any], query: bytes = b"", **settings: Any) -> AsgiClient:
    """Send a script."""
    data = json.dumps(body).encode()
    return await send(app.asgi(mcp=False, **settings), "POST", "/orchestrate", data, query=query)


async def test_script_runs() -> None:
    body = {"code": "[i['name'] for i in await find(text=part)]", "inputs": {"part": "e"}}
    response = await run(Shop().app, body)
    assert response.status == 200
    envelope = response.json()
    assert envelope["result"] == ["pen", "tea"]
    assert envelope["meta"]["calls"] == {"find": 1}
    assert envelope["meta"]["tool"] == "shop.orchestrate.run"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"code": "await drop(name='tea')"}, 428, "E1010"),
        ({"code": "await buy(name='tea')"}, 428, "E2101"),
        ({"code": "await price(name='gold')"}, 404, "E3010"),
        ({"code": "await pric(name='tea')"}, 422, "E1070"),
        ({"code": "1", "tools": ["nope"]}, 404, "E1001"),
        ({"code": "1", "max_calls": 0}, 422, "E1003"),
        ({"code": 5}, 422, "E1003"),
        ({"cod": "1"}, 422, "E1004"),
        ({}, 422, "E1002"),
    ],
)
async def test_status_is_that_of_the_error(body: dict[str, Any], status: int, code: str) -> None:
    shop = Shop()
    response = await run(shop.app, body)
    assert (response.status, response.code) == (status, code)
    assert "drop tea" not in shop.ran
    assert "buy tea" not in shop.ran


async def test_options_are_in_the_query() -> None:
    shop = Shop()
    response = await run(shop.app, {"code": "await drop(name='tea')"}, b"yes=true")
    assert response.json()["result"] == "tea"
    late = await run(shop.app, {"code": "import asyncio\nawait asyncio.sleep(30)"}, b"timeout=0.5")
    assert (late.status, late.code) == (504, "E4050")


async def test_validation_checks_the_script() -> None:
    shop = Shop()
    valid = await run(shop.app, {"code": "await find()"}, b"validate=true")
    assert valid.json()["result"] == {"valid": True}
    wrong = await run(shop.app, {"code": "await finds()"}, b"validate=true")
    assert (wrong.status, wrong.code) == (422, "E1070")
    assert shop.ran == []


async def test_plan_of_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    shop = Shop()
    body = {"code": "x = await drop(name='tea')\nawait drop(name=x)"}
    plan = (await run(shop.app, body, b"dry_run=true")).json()["result"]
    assert plan["complete"] is True
    assert len(plan["actions"]) == 2
    assert shop.ran == []
    query = f"yes=true&apply={plan['token']}".encode()
    assert (await run(shop.app, body, query)).json()["meta"]["applied"]["count"] == 2
    assert shop.ran == ["drop tea", "drop tea"]
    again = await run(shop.app, body, query)
    assert (again.status, again.code) == (422, "E1051")


async def test_stubs() -> None:
    shop = Shop()
    api = shop.app.asgi(mcp=False)
    response = await send(api, "GET", "/orchestrate", query=b"tools=find&tools=drop")
    stubs = response.json()["result"]
    assert "async def find(" in stubs
    assert "async def price(" not in stubs
    wrong = await send(api, "GET", "/orchestrate", query=b"tools=nope")
    assert "GET /orchestrate lists" in wrong.json()["error"]["suggestion"]["fix"]
    error = (await run(shop.app, {"code": "for"})).json()["error"]
    assert "GET /orchestrate shows the functions" in error["suggestion"]["fix"]


async def test_scripts_can_be_switched_off() -> None:
    app = Shop().app
    assert (await run(app, {"code": "1"}, orchestrate=False)).status == 404
    assert (await run(app, {"code": "1"}, tools=False)).status == 404
    for orchestrate in (True, False):
        api = app.asgi(mcp=False, orchestrate=orchestrate)
        document = (await send(api, "GET", "/openapi.json")).json()
        described = {"post", "get"} if orchestrate else set[str]()
        assert {*document["paths"].get("/orchestrate", ())} == described


async def test_other_methods_are_refused() -> None:
    response = await send(Shop().app.asgi(mcp=False), "DELETE", "/orchestrate")
    assert (response.status, response.code) == (405, "E1405")
    assert response.headers["allow"] == "GET, HEAD, POST, OPTIONS"


async def test_mounted_application_has_its_path() -> None:
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    response = await run(Shop().app, {"code": "1"}, mounts={"/orchestrate": inner})
    assert response.status == 201


async def test_calls_have_the_token_of_the_request() -> None:
    app = Tooli("app", security_policy="strict")
    app.command("look", auth=["look"], annotations=ReadOnly)(lambda: "seen")
    app.command("push", auth=["push"])(lambda: "pushed")
    api = app.asgi(mcp=False, tokens=TOKENS)

    async def answer(token: str, code: str) -> Any:
        header = (b"authorization", f"Bearer {token}".encode())
        body = json.dumps({"code": code}).encode()
        return (await send(api, "POST", "/orchestrate", body, header)).json()

    assert (await answer("all", "await push()"))["result"] == "pushed"
    assert (await answer("visitor", "await look()"))["result"] == "seen"
    hidden = (await answer("visitor", "await push()"))["error"]
    assert hidden["code"] == "E1070"  # the caller does not see the tool
    assert "push" not in json.dumps(hidden["details"]).replace("Name `push`", "")
    anonymous = await send(api, "POST", "/orchestrate", b'{"code": "1"}')
    assert anonymous.status == 401


async def start_hanging_script() -> tuple[AsgiClient, asyncio.Task[None], asyncio.Event]:
    """Start a script whose tool never returns; the event is set when the tool has ended."""
    app = Tooli("app")
    has_started, has_ended = asyncio.Event(), asyncio.Event()

    @app.command(annotations=ReadOnly)
    async def hang() -> None:
        has_started.set()
        try:
            await asyncio.Event().wait()
        finally:
            has_ended.set()

    client = AsgiClient(app.asgi(mcp=False))
    client.send_body(b'{"code": "await hang()"}')
    task = client.start("POST", "/orchestrate", [HOST, JSON])
    await asyncio.wait_for(has_started.wait(), 120)
    return client, task, has_ended


async def test_script_ends_when_its_client_disconnects() -> None:
    client, task, has_ended = await start_hanging_script()
    client.disconnect()
    await asyncio.wait_for(task, 120)
    assert has_ended.is_set()
    assert client.sent == []


async def test_script_ends_when_its_request_is_cancelled() -> None:
    _, task, has_ended = await start_hanging_script()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert has_ended.is_set()


async def test_events_of_a_script() -> None:
    accept = (b"accept", b"text/event-stream")
    api = Shop().app.asgi(mcp=False)
    response = await send(api, "POST", "/orchestrate", b'{"code": "1 + 1"}', accept)
    assert b"event: end" in response.body
    assert b"2" in response.body


async def test_suggested_call_is_that_of_the_script() -> None:
    shop = Shop()
    error = (await run(shop.app, {"code": "1", "max_cals": 3})).json()["error"]
    example = error["suggestion"]["example"]
    assert example.startswith("POST /orchestrate {")
