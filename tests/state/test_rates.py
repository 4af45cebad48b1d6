"""Rates: moving windows that are counted right and never grow beyond their room."""

from __future__ import annotations

import sys
import threading

import pytest

from tooli import DefinitionError, Tooli
from tooli.call.model import Caller
from tooli.contract.limits import is_rate
from tooli.stages import rates as stage
from tooli.state import rates
from tooli.surfaces.serving import Desk


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1000.0]
    monkeypatch.setattr(rates, "monotonic", lambda: clock[0])
    return clock


def test_a_window_moves(now: list[float]) -> None:
    limiter = rates.Limiter()
    assert [limiter.hit("2/minute", "ada", "find") for _ in range(2)] == [0, 0]
    assert limiter.hit("2/minute", "ada", "find") == 60
    now[0] += 59
    assert limiter.hit("2/minute", "ada", "find") == 1
    assert limiter.hit("2/minute", "eve", "find") == 0
    assert limiter.hit("2/minute", "ada", "put") == 0
    now[0] += 1
    assert limiter.hit("2/minute", "ada", "find") == 0


def test_what_is_refused_does_not_count(now: list[float]) -> None:
    limiter = rates.Limiter()
    assert limiter.hit("1/second", "ada") == 0
    for _ in range(100):
        assert limiter.hit("1/second", "ada") > 0
    now[0] += 1
    assert limiter.hit("1/second", "ada") == 0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> None:
    monkeypatch.setattr(rates, "MOST_CALLERS", 10)
    monkeypatch.setattr(rates, "MOST_CALLS", 50)
    windows = rates.Windows()
    for i in range(1000):
        windows.acquire_entry(f"caller {i}", 100, 60)
    assert len(windows._made) == 10
    for i in range(1000):
        windows.acquire_entry(f"caller {i % 5}", 100, 60)
    assert sum(map(len, windows._made.values())) == windows._count <= 51
    now[0] += 61
    assert windows.get_moving_window("caller 4", 100, 60) == (now[0], 0)
    windows.clear("caller 4")
    windows.reset()
    assert windows._count == 0


def test_many_at_once_are_counted_right() -> None:
    limiter = rates.Limiter()
    passed: list[bool] = []

    def call() -> None:
        passed.extend([limiter.hit("100/hour", "ada") == 0 for _ in range(50)])

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed.count(True) == 100


@pytest.mark.parametrize(
    ("caller", "name"),
    [
        (Caller("http", principal="ada", address="10.0.0.1"), "by token ada"),
        (Caller("http", "by token ada", session="s", address="10.0.0.1"), "10.0.0.1"),
        (Caller("http", address="2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64"),
        (Caller("http", address="fe80::1%eth0"), "fe80::/64"),
        (Caller("http", address="not:an:address"), "not:an:address"),
        (Caller("mcp"), "here"),
    ],
)
def test_whom_calls_are_counted_for(caller: Caller, name: str) -> None:
    assert stage._name(caller) == name


@pytest.mark.parametrize(
    "text",
    ["", "/", "1", "1/", "/minute", "0/minute", "01/minute", "-1/minute", "1/week", "1/minutes"]
    + ["1.5/minute", "10001/day", "x/minute", "1 / minute", "²/minute", None, 60, "1/minute/2"],
)
def test_what_is_no_rate(text: object) -> None:
    assert not is_rate(text)
    app = Tooli("rated")
    app.command(rate_limit=text or "nothing")(lambda: None)
    with pytest.raises(DefinitionError, match="rate_limit="):
        app.find("<lambda>")


@pytest.mark.parametrize("text", ["1/second", "60/minute", "10000/day"])
def test_what_is_one(text: str) -> None:
    assert is_rate(text)


def test_without_the_library_nothing_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_limiter", None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "limits"]:
        monkeypatch.setitem(sys.modules, name, None)
    app = Tooli("rated")

    @app.command(rate_limit="1/hour")
    def find() -> str:
        return "found"

    desk = Desk(app)
    answer = desk.open(app.find("find"), {}, Caller("http", address="x")).run()
    assert answer.error is not None
    assert answer.error.code == "E4040"
    assert answer.error.suggestion is not None
    assert "pip install" in answer.error.suggestion.fix
    assert app.call("find").unwrap() == "found"  # Python code counts its own calls
