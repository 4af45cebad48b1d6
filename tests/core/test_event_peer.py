"""Events of a call as JSON: their fields, their limits, and what is not sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tooli.core import event_peer
from tooli.core.event_peer import EventPeer, compute_percent
from tooli.core.peer import Artifact


class ListPeer(EventPeer):
    """Keeps the events of a call."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def send_event(self, name: str, data: bytes) -> None:
        self.events.append((name, json.loads(data)))


def test_progress_logs_and_artifacts_are_events() -> None:
    peer = ListPeer()
    peer.progress(1, 3, "baking")
    peer.progress(2, None, None)
    peer.log("warning", {"temperature": 230})
    peer.artifact(Artifact("report", "file:///r.pdf", "application/pdf"))
    peer.artifact(Artifact("log", "file:///r.log"))
    assert peer.events == [
        (
            "progress",
            {"type": "progress", "message": "baking", "percent": 33.3, "done": 1, "total": 3},
        ),
        ("progress", {"type": "progress", "done": 2}),
        ("log", {"type": "log", "level": "warning", "message": {"temperature": 230}}),
        (
            "artifact",
            {
                "type": "artifact",
                "name": "report",
                "uri": "file:///r.pdf",
                "mime_type": "application/pdf",
            },
        ),
        ("artifact", {"type": "artifact", "name": "log", "uri": "file:///r.log"}),
    ]


def test_cancelled_call_sends_nothing() -> None:
    peer = ListPeer()
    peer.cancelled = True
    peer.log("info", "late")
    assert peer.events == []


@pytest.mark.parametrize(
    ("done", "total", "percent"),
    [
        (1, 4, 25),
        (1, 3, 33.3),
        (5, 4, 100),
        (-1, 4, 0),
        (1, 0, None),
        (1, None, None),
        (1, float("nan"), None),
        (10**400, 1, 100),
        (-(10**400), 1, 0),
    ],
)
def test_percent_is_between_0_and_100(done: float, total: float, percent: float | None) -> None:
    assert compute_percent(done, total) == percent


def test_large_messages_are_cut_and_large_data_is_left_out() -> None:
    peer = ListPeer()
    peer.log("info", "x" * 20_000)
    peer.progress(1, 2, "y" * 20_000)
    peer.log("info", ["z" * 1000] * 1000)
    (_, log), (_, progress), (_, data) = peer.events
    assert len(log["message"]) == len(progress["message"]) == event_peer.MAX_EVENT_CHARS
    assert data["message"].startswith("omitted: a message of 10")


def test_events_of_items_and_of_the_end() -> None:
    assert json.loads(event_peer.item_event(b'{"a":1}')) == {"type": "item", "value": {"a": 1}}
    assert json.loads(event_peer.result_event(b'{"ok":true,"meta":{}}')) == {
        "type": "result",
        "ok": True,
        "meta": {},
    }
