"""Notifications of changes: a client that does not read delays nobody else."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tooli import Tooli
from tooli.mcp.change_notifier import ChangeNotifier, SessionOutbox


class Session:
    """A connection of a client, which reads only while `is_reading` is set."""

    def __init__(self, *subscribed: str) -> None:
        self.state: dict[str, Any] = {"tooli": {"subscribed": set(subscribed)}}
        self.initialized = asyncio.Event()
        self.initialized.set()
        self.is_reading = asyncio.Event()
        self.is_reading.set()
        self.received: list[str] = []

    async def notify(self, method: str, params: object) -> None:
        await self.is_reading.wait()
        self.received.append(method)

    async def send_resource_updated(self, uri: str) -> None:
        await self.is_reading.wait()
        self.received.append(uri)

    @property
    def outbox(self) -> SessionOutbox:
        return self.state["tooli"]["outbox"]


async def start(*sessions: Session) -> tuple[Tooli, ChangeNotifier]:
    app = Tooli("app")
    notifier = ChangeNotifier(app)
    notifier.start()
    for session in sessions:
        context: Any = SimpleNamespace(
            protocol_version="2025-11-25",
            request=None,
            session=SimpleNamespace(_connection=session),
        )

        async def respond(ctx: object) -> Any:
            return None

        await notifier.track_session(context, respond)
    return app, notifier


async def announce(app: Tooli, *uris: str) -> None:
    for uri in uris:
        app.announce(uri)
        await settle()


async def settle() -> None:
    """Let the tasks of the notifier run."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_client_that_does_not_read_delays_nobody() -> None:
    slow, reader = Session("x://a", "x://b"), Session("x://a")
    slow.is_reading.clear()
    app, notifier = await start(slow, reader)
    await announce(app, *["x://a", "x://b"] * 50)
    assert reader.received == ["x://a"] * 50
    assert slow.received == []
    assert len(slow.outbox) <= 2
    assert len(notifier._tasks) == 1
    slow.is_reading.set()
    await settle()
    assert len(slow.received) <= 3
    assert set(slow.received) == {"x://a", "x://b"}
    notifier.stop()


async def test_changes_after_all_were_sent_are_sent() -> None:
    session = Session("x://a")
    app, notifier = await start(session)
    await announce(app, "x://a")
    await announce(app, "x://a")
    assert session.received == ["x://a"] * 2
    app.command("new")(lambda: "")
    await settle()
    assert session.received[2:] == ["notifications/tools/list_changed"]
    notifier.stop()


@pytest.mark.parametrize("is_initialized", [True, False])
async def test_only_subscribed_sessions_are_notified(is_initialized: bool) -> None:
    session = Session(*["x://a"] * is_initialized)
    if not is_initialized:
        session.initialized = asyncio.Event()
    app, notifier = await start(session)
    await announce(app, "x://b")
    assert session.received == []
    notifier.stop()


async def test_stop_ends_the_sender_tasks() -> None:
    slow = Session("x://a")
    slow.is_reading.clear()
    app, notifier = await start(slow)
    await announce(app, "x://a")
    notifier.stop()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not notifier._tasks
    app.announce("x://a")
    await asyncio.sleep(0)
    assert slow.received == []
