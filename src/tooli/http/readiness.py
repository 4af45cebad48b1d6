"""Readiness: whether a server can take calls now, for `GET /ready`.

    not shutting down ─▶ started ─▶ store reachable ─▶ 200
            └───────────────┴──────────────┴─────────▶ 503 with a reason

`/health` says that the process answers. A load balancer asks `/ready` before it sends requests.
"""

from __future__ import annotations

import asyncio
from time import monotonic

from tooli.http.http_request import JSON_CONTENT_TYPE, NO_STORE, check_no_body
from tooli.pipeline.lifespan import LifespanTask
from tooli.serving.error_log import log_exception
from tooli.storage.idempotency_sqlite import get_idempotency_store
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.core import AppState
    from tooli.core.protocols import JsonObject
    from tooli.http.http_request import HttpRequest
    from tooli.http.mounts import Mount

STORE_TIMEOUT = 3.0
"""Seconds that the store has to answer."""

CACHE_SECONDS = 2.0
"""Seconds for which the answer of the store is kept, so that many requests do not load it."""


class Readiness:
    """The readiness of one server process."""

    def __init__(self, state: AppState, mounts: Sequence[Mount]) -> None:
        self.is_shutting_down = False
        self._state = state
        self._mounts = mounts
        self._lifespan = LifespanTask(state)
        self._store_check: asyncio.Task[bool] | None = None
        self._checked_at = 0.0

    async def start(self, state: object = None) -> None:
        """Start what is not started yet: the lifespans of the app, and the mounts.

        A server that sends no event `lifespan.startup` starts them with the first request.
        """
        await self._lifespan.start()
        for mount in self._mounts:
            if not mount.is_running and not mount.starts_on_demand:
                await mount.start({} if state is None else state)

    async def stop(self) -> None:
        """Stop the mounts, then close the lifespans."""
        try:
            for mount in self._mounts:
                await mount.stop()
        finally:
            await self._lifespan.stop()

    async def respond(self, request: HttpRequest) -> None:
        """Answer `GET /ready`."""
        check_no_body(request)
        reason = await self.find_problem()
        answer: JsonObject = {"ok": reason is None, "app": self._state.name}
        if reason is not None:
            answer["reason"] = reason
        status = 200 if reason is None else 503
        await request.respond(status, encode(answer, []), JSON_CONTENT_TYPE, NO_STORE)

    async def find_problem(self) -> str | None:
        """Return why the server cannot take calls, as a word without details; None if it can."""
        if self.is_shutting_down:
            return "shutting_down"
        try:
            await self.start()
        except Exception as failure:
            log_exception(failure, None, "The start of the server")
            return "not_started"
        url = self._state.security_settings.get("store")
        if url is not None and not await self._is_store_reachable(url):
            return "store_unreachable"
        return None

    async def _is_store_reachable(self, url: str) -> bool:
        """Return whether the store has answered; requests at the same time share the answer."""
        loop, check = asyncio.get_running_loop(), self._store_check
        is_old = check is None or (check.done() and monotonic() - self._checked_at > CACHE_SECONDS)
        if check is None or is_old or check.get_loop() is not loop:
            check = self._store_check = loop.create_task(self._check_store(url))
        return await asyncio.shield(check)

    async def _check_store(self, url: str) -> bool:
        def check() -> None:
            get_idempotency_store(url).check(STORE_TIMEOUT)

        try:
            await asyncio.wait_for(asyncio.to_thread(check), STORE_TIMEOUT + 1)
        except Exception as failure:  # it is not reachable, or its driver is not installed
            log_exception(failure, None, "The check of the store")
            return False
        finally:
            self._checked_at = monotonic()
        return True
