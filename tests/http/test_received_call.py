"""A call that was received runs in a thread or on the event loop, and never raises."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tooli import Tooli
from tooli.core.call import Caller
from tooli.http.received_call import ReceivedCall, run_on_loop
from tooli.serving.dispatcher import ToolDispatcher

app = Tooli("shop")


@app.command()
def stop(kind: str = "interrupt") -> str:
    """Raise what ends a process."""
    raise KeyboardInterrupt if kind == "interrupt" else SystemExit(3)


@app.command()
async def wait() -> str:
    """Wait until the call is cancelled."""
    await asyncio.Event().wait()
    return ""


def prepare(name: str, arguments: dict[str, Any]) -> Any:
    dispatcher = ToolDispatcher(app)
    return dispatcher.prepare(dispatcher.tools[name], arguments, Caller("http"))


@pytest.mark.parametrize("kind", ["interrupt", "exit"])
def test_exception_that_ends_a_process_is_a_failure(kind: str) -> None:
    received = ReceivedCall(lambda: prepare("stop", {"kind": kind}), is_parsed=False)
    status, body, _ = received.run()
    assert status >= 400
    assert json.loads(body)["ok"] is False


async def test_cancelled_call_on_the_loop_stays_cancelled() -> None:
    task = asyncio.ensure_future(run_on_loop(prepare("wait", {})))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
