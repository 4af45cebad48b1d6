"""Rate limits: moving windows, limited memory, and the key of a caller."""

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


def test_window_moves(now: list[float]) -> None:
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


def test_refused_calls_do_not_count(now: list[float]) -> None:
    limiter = rate_limiter.RateLimiter()
    assert limiter.hit(["1/second"], "ada") == (0, "")
    for _ in range(100):
        assert limiter.hit(["1/second"], "ada")[0] > 0
    now[0] += 1
    assert limiter.hit(["1/second"], "ada") == (0, "")


@pytest.mark.parametrize("rates", [["1/second", "3/hour"], ["3/hour", "1/second"]])
def test_call_refused_by_one_rate_counts_for_none(now: list[float], rates: list[str]) -> None:
    limiter = rate_limiter.RateLimiter()
    for _ in range(3):
        assert limiter.hit(rates, "ada") == (0, "")
        for _ in range(10):
            assert limiter.hit(rates, "ada")[1] in rates
        now[0] += 1
    assert limiter.hit(rates, "ada") == (3597, "3/hour")  # the longest wait is returned
    now[0] += 3597
    assert limiter.hit(rates, "ada") == (0, "")


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> None:
    monkeypatch.setattr(rate_limiter, "MAX_WINDOWS", 16)
    monkeypatch.setattr(rate_limiter, "MAX_RECORDED_CALLS", 50)
    windows = rate_limiter.RateWindowStorage()
    for i in range(1000):
        windows.acquire_entry(f"caller {i}", 100, 60)
        assert len(windows._windows) <= 16
    assert "caller 999" in windows._windows
    for i in range(1000):
        windows.acquire_entry(f"caller {i % 5}", 100, 60)
        recorded = sum(len(window.timestamps) for window in windows._windows.values())
        assert recorded == windows._count <= 50
    now[0] += 61
    assert windows.get_moving_window("caller 4", 100, 60) == (now[0], 0)
    windows.clear("caller 4")
    windows.reset()
    assert windows._count == 0


def test_empty_windows_are_evicted_first(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> None:
    monkeypatch.setattr(rate_limiter, "MAX_WINDOWS", 16)
    windows = rate_limiter.RateWindowStorage()
    assert windows.acquire_entry("ada", 1, 86_400)  # the least recently used window
    for i in range(100):
        windows.acquire_entry(f"caller {i}", 1, 60)
        now[0] += 10  # so that six of these windows are not empty at a time
    assert not windows.acquire_entry("ada", 1, 86_400)


def test_concurrent_calls() -> None:
    limiter = rate_limiter.RateLimiter()
    passed: list[bool] = []

    def call() -> None:
        rates = ["100/hour", "1000/day"]
        passed.extend([limiter.hit(rates, "ada")[0] == 0 for _ in range(50)])

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed.count(True) == 100


def test_duplicate_rate_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_limiter", None)
    monkeypatch.setenv("TOOLI_RATE_LIMIT", "4/minute")
    app = Tooli("rated")

    @app.command(rate_limit="4/minute")
    def find() -> str:
        return "found"

    dispatcher, caller = ToolDispatcher(app), Caller("http", address="10.0.0.1")
    errors = [dispatcher.prepare(app.find("find"), {}, caller).run().error for _ in range(5)]
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
def test_caller_key(caller: Caller, name: str) -> None:
    assert stage._caller_key(caller) == name


@pytest.mark.parametrize(
    "text",
    ["", "/", "1", "1/", "/minute", "0/minute", "01/minute", "-1/minute", "1/week", "1/minutes"]
    + ["1.5/minute", "10001/day", "x/minute", "1 / minute", "²/minute", None, 60, "1/minute/2"],
)
def test_invalid_rates(text: object) -> None:
    assert not is_rate_limit(text)
    with pytest.raises(DefinitionError, match="rate_limit="):
        Tooli("rated").command(rate_limit=text or "nothing")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["1/second", "60/minute", "10000/day"])
def test_valid_rates(text: str) -> None:
    assert is_rate_limit(text)


def test_missing_library_refuses_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_limiter", None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "limits"]:
        monkeypatch.setitem(sys.modules, name, None)
    app = Tooli("rated")

    @app.command(rate_limit="1/hour")
    def find() -> str:
        return "found"

    dispatcher = ToolDispatcher(app)
    result = dispatcher.prepare(app.find("find"), {}, Caller("http", address="x")).run()
    assert result.error is not None
    assert result.error.code == "E4040"
    assert result.error.suggestion is not None
    assert "pip install" in result.error.suggestion.fix
    assert (
        app.call("find").unwrap() == "found"
    )  # rate limits do not apply to calls from Python code
