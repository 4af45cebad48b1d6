"""Rates: moving windows that are counted right and never grow beyond their room."""

from __future__ import annotations

import sys
import threading

import pytest

from tooli import DefinitionError, Tooli
from tooli.core.call import Caller
from tooli.core.tool import is_rate_limit
from tooli.serving.dispatcher import ToolDispatcher
from tooli.stages import rate_limit as stage
from tooli.storage import rate_limiter


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1000.0]
    monkeypatch.setattr(rate_limiter, "monotonic", lambda: clock[0])
    return clock


def test_a_window_moves(now: list[float]) -> None:
    limiter = rate_limiter.RateLimiter()

    def wait(*names: str) -> float:
        return limiter.hit(["2/minute"], *names)[0]

    assert [wait("ada", "find") for _ in range(2)] == [0, 0]
    assert wait("ada", "find") == 60
    now[0] += 59
    assert wait("ada", "find") == 1
    assert wait("eve", "find") == 0
    assert wait("ada", "put") == 0
    now[0] += 1
    assert wait("ada", "find") == 0


def test_what_is_refused_does_not_count(now: list[float]) -> None:
    limiter = rate_limiter.RateLimiter()
    assert limiter.hit(["1/second"], "ada") == (0, "")
    for _ in range(100):
        assert limiter.hit(["1/second"], "ada")[0] > 0
    now[0] += 1
    assert limiter.hit(["1/second"], "ada") == (0, "")


@pytest.mark.parametrize("both", [["1/second", "3/hour"], ["3/hour", "1/second"]])
def test_what_one_rate_refuses_the_other_does_not_count(now: list[float], both: list[str]) -> None:
    limiter = rate_limiter.RateLimiter()
    for _ in range(3):
        assert limiter.hit(both, "ada") == (0, "")
        for _ in range(10):
            assert limiter.hit(both, "ada")[1] in both
        now[0] += 1
    assert limiter.hit(both, "ada") == (3597, "3/hour")  # the longest wait is returned
    now[0] += 3597
    assert limiter.hit(both, "ada") == (0, "")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> None:
    monkeypatch.setattr(rate_limiter, "MAX_WINDOWS", 16)
    monkeypatch.setattr(rate_limiter, "MAX_RECORDED_CALLS", 50)
    windows = rate_limiter.RateWindowStorage()
    for i in range(1000):
        windows.acquire_entry(f"caller {i}", 100, 60)
        assert len(windows._windows) <= 16
    assert "caller 999" in windows._windows
    for i in range(1000):
        windows.acquire_entry(f"caller {i % 5}", 100, 60)
        held = sum(len(window.timestamps) for window in windows._windows.values())
        assert held == windows._count <= 50
    now[0] += 61
    assert windows.get_moving_window("caller 4", 100, 60) == (now[0], 0)
    windows.clear("caller 4")
    windows.reset()
    assert windows._count == 0


def test_windows_that_count_for_nothing_go_first(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    monkeypatch.setattr(rate_limiter, "MAX_WINDOWS", 16)
    windows = rate_limiter.RateWindowStorage()
    assert windows.acquire_entry("ada", 1, 86_400)  # the one that is unused the longest
    for i in range(100):
        windows.acquire_entry(f"caller {i}", 1, 60)
        now[0] += 10  # so that six of these count at a time
    assert not windows.acquire_entry("ada", 1, 86_400)


def test_many_at_once_are_counted_right() -> None:
    limiter = rate_limiter.RateLimiter()
    passed: list[bool] = []

    def call() -> None:
        both = ["100/hour", "1000/day"]
        passed.extend([limiter.hit(both, "ada")[0] == 0 for _ in range(50)])

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed.count(True) == 100


def test_a_duplicate_rate_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_limiter", None)
    monkeypatch.setenv("TOOLI_RATE_LIMIT", "4/minute")
    app = Tooli("rated")

    @app.command(rate_limit="4/minute")
    def find() -> str:
        return "found"

    desk, caller = ToolDispatcher(app), Caller("http", address="10.0.0.1")
    errors = [desk.prepare(app.find("find"), {}, caller).run().error for _ in range(5)]
    assert [error and error.code for error in errors] == [None] * 4 + ["E4029"]


@pytest.mark.parametrize(
    ("caller", "name"),
    [
        (Caller("http", principal="ada", address="10.0.0.1"), "by token ada"),
        (Caller("http", "by token ada", session="s", address="10.0.0.1"), "10.0.0.1"),
        (Caller("http", address="2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64"),
        (Caller("http", address="fe80::1%eth0"), "fe80::/64"),
        (Caller("http", address="not:an:address"), "not:an:address"),
        (Caller("http", address="::ffff:10.0.0.1"), "10.0.0.1"),
        (Caller("http", address="::ffff:8.8.8.8"), "8.8.8.8"),
        (Caller("mcp"), "here"),
    ],
)
def test_whom_calls_are_counted_for(caller: Caller, name: str) -> None:
    assert stage._caller_key(caller) == name


@pytest.mark.parametrize(
    "text",
    ["", "/", "1", "1/", "/minute", "0/minute", "01/minute", "-1/minute", "1/week", "1/minutes"]
    + ["1.5/minute", "10001/day", "x/minute", "1 / minute", "²/minute", None, 60, "1/minute/2"],
)
def test_what_is_no_rate(text: object) -> None:
    assert not is_rate_limit(text)
    with pytest.raises(DefinitionError, match="rate_limit="):
        Tooli("rated").command(rate_limit=text or "nothing")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["1/second", "60/minute", "10000/day"])
def test_what_is_one(text: str) -> None:
    assert is_rate_limit(text)


def test_without_the_library_nothing_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_limiter", None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "limits"]:
        monkeypatch.setitem(sys.modules, name, None)
    app = Tooli("rated")

    @app.command(rate_limit="1/hour")
    def find() -> str:
        return "found"

    desk = ToolDispatcher(app)
    answer = desk.prepare(app.find("find"), {}, Caller("http", address="x")).run()
    assert answer.error is not None
    assert answer.error.code == "E4040"
    assert answer.error.suggestion is not None
    assert "pip install" in answer.error.suggestion.fix
    assert app.call("find").unwrap() == "found"  # Python code counts its own calls
