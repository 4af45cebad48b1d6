"""Signals for functions that stop themselves."""

from __future__ import annotations

import threading

from tooli.core.peer import Peer
from tooli.core.stop_signal import StopSignal


def test_callbacks_are_called_at_the_deadline() -> None:
    called = threading.Event()
    signal = StopSignal(0.01)
    signal.on_stop(called.set)
    assert called.wait(10)
    assert signal.is_stopped
    assert signal.remaining_time() == 0


def test_callbacks_are_called_when_the_client_cancels() -> None:
    called, peer = threading.Event(), Peer()
    signal = StopSignal(None, peer)
    assert signal.remaining_time() is None
    signal.on_stop(called.set)
    peer.cancelled = True
    assert called.wait(10)


def test_cancellation_comes_before_the_deadline() -> None:
    called, peer = threading.Event(), Peer()
    signal = StopSignal(600, peer)
    signal.on_stop(called.set)
    peer.cancelled = True
    assert called.wait(10)


def test_stop_calls_each_callback_once() -> None:
    calls: list[str] = []
    signal = StopSignal(600)
    signal.on_stop(lambda: calls.append("a"))
    signal.on_stop(lambda: 1 / 0)
    signal.on_stop(lambda: calls.append("b"))
    signal.stop()
    signal.stop()
    assert calls == ["a", "b"]


def test_late_callback_is_called_at_once() -> None:
    calls: list[str] = []
    signal = StopSignal()
    signal.stop()
    signal.on_stop(lambda: calls.append("late"))
    assert calls == ["late"]


def test_ended_call_forgets_its_callbacks() -> None:
    calls: list[str] = []
    signal = StopSignal(600)
    signal.on_stop(lambda: calls.append("a"))
    signal.end()
    signal.stop()
    assert calls == []


def test_signal_without_deadline_and_client_starts_no_thread() -> None:
    before = threading.active_count()
    StopSignal().on_stop(lambda: None)
    assert threading.active_count() == before
