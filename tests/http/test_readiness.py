"""`GET /ready`: 200 if the server can take calls, 503 with a reason otherwise."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.http.asgi_client import AsgiClient, send

from tooli import Tooli
from tooli.http import readiness
from tooli.storage.idempotency_store import StoreUnavailable


def make_api(**settings: Any) -> Any:
    app = Tooli("shop")

    @app.command()
    def find() -> str:
        return "x"

    return app.asgi(mcp=False, **settings)


async def get_ready(api: Any, method: str = "GET") -> AsgiClient:
    return await send(api, method, "/ready")


async def test_server_is_ready_without_a_token() -> None:
    response = await get_ready(make_api(token="hush"))
    assert response.status == 200
    assert response.json() == {"ok": True, "app": "shop"}
    assert response.headers["cache-control"] == "no-store"
    assert (await get_ready(make_api(), "HEAD")).status == 200
    assert (await get_ready(make_api(), "POST")).status == 405


async def test_server_that_shuts_down_is_not_ready() -> None:
    api = make_api()
    api.begin_shutdown()
    response = await get_ready(api)
    assert response.status == 503
    assert response.json() == {"ok": False, "app": "shop", "reason": "shutting_down"}
    assert response.headers["retry-after"] == "1"
    assert (await send(api, "GET", "/health")).status == 200
    async with api.lifespan():  # it runs again on another event loop
        assert (await get_ready(api)).status == 200
    assert (await get_ready(api)).status == 503


async def test_mount_that_does_not_start_makes_the_server_not_ready(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "hunter2"})

    response = await get_ready(make_api(mounts={"/x": failing}))
    assert (response.status, response.json()["reason"]) == (503, "not_started")
    assert b"hunter2" not in response.body
    assert "failed at startup" in str(caplog.records[0].exc_text)


class Store:
    """A store that answers, fails or hangs."""

    def __init__(self) -> None:
        self.checks = 0
        self.failure: Exception | None = None
        self.release = threading.Event()
        self.release.set()

    def check(self, timeout: float) -> None:
        self.checks += 1
        self.release.wait(60)
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store()
    monkeypatch.setenv("TOOLI_STORE", "postgresql://u:hunter2@localhost/db")
    monkeypatch.setattr(readiness, "get_idempotency_store", lambda url: store)
    return store


async def test_store_is_checked_once_for_many_requests(store: Store) -> None:
    api = make_api()
    responses = await asyncio.gather(*[get_ready(api) for _ in range(10)])
    assert {response.status for response in responses} == {200}
    assert store.checks == 1


async def test_store_that_fails_makes_the_server_not_ready(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.failure = StoreUnavailable("down: hunter2", "Start it.")
    api = make_api()
    response = await get_ready(api)
    assert (response.status, response.json()["reason"]) == (503, "store_unreachable")
    assert b"hunter2" not in response.body
    store.failure = None
    assert (await get_ready(api)).status == 503  # the answer is kept for a moment
    monkeypatch.setattr(readiness, "CACHE_SECONDS", -1)
    assert (await get_ready(api)).status == 200


async def test_store_that_hangs_makes_the_server_not_ready(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "STORE_TIMEOUT", -0.9)
    store.release.clear()
    try:
        assert (await get_ready(make_api())).status == 503
    finally:
        store.release.set()
