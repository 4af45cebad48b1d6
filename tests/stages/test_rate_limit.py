"""The stage `rate_limit`: moving windows, limited memory, and the key of a caller."""

from __future__ import annotations

import threading

import pytest
from tests.stages.stage_calls import make_call, make_context, pass_through

from tooli import DefinitionError, TemporaryError, Tooli
from tooli.core.call import Call, Caller
from tooli.core.definitions import is_rate_limit
from tooli.serving.dispatcher import ToolDispatcher
from tooli.stages import rate_limit
from tooli.stages.rate_limit import RateLimiter, limit_rate


@pytest.fixture(autouse=True)
def _new_limiter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "_limiter", RateLimiter())


def send(call: Call, **settings: str) -> None:
    stage = limit_rate(make_context(call, **settings))
    assert stage is not None
    pass_through(stage, call)


def test_local_callers_are_not_limited() -> None:
    assert limit_rate(make_context(make_call(rate_limit="1/minute"))) is None


def test_call_beyond_the_limit_is_rejected() -> None:
    call = make_call(surface="http", rate_limit="2/minute")
    send(call)
    send(call)
    with pytest.raises(TemporaryError, match="may be called 2 times a minute") as caught:
        send(call)
    assert caught.value.code == "E4029"
    assert caught.value.details is not None
    assert caught.value.details["rate_limit"] == "2/minute"
    assert 1 <= caught.value.details["retry_after"] <= 60


def test_limit_of_the_settings_applies_as_well() -> None:
    call = make_call(surface="mcp", rate_limit="9/minute")
    send(call, rate_limit="1/minute")
    with pytest.raises(TemporaryError, match="1 times a minute"):
        send(call, rate_limit="1/minute")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"address": "10.0.0.1"}, {"address": "10.0.0.2"}),
        ({"address": "2001:db8::1"}, {"address": "2001:db8:0:1::1"}),
        ({"address": "10.0.0.1", "principal": "ada"}, {"address": "10.0.0.1"}),
        ({}, {"address": "10.0.0.1"}),
    ],
)
def test_callers_are_counted_separately(first: dict[str, str], second: dict[str, str]) -> None:
    call = make_call(surface="http", rate_limit="1/minute")
    send(call.replace(caller=Caller("http", **first)))
    send(call.replace(caller=Caller("http", **second)))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"address": "2001:db8::1"}, {"address": "2001:db8::ffff"}),
        ({"address": "2001:db8::1%eth0"}, {"address": "2001:db8::2"}),
        ({"address": "::ffff:10.0.0.1"}, {"address": "10.0.0.1"}),
        ({"address": "a:b:c"}, {"address": "a:b:c"}),
        ({"address": "1.1.1.1", "principal": "ada"}, {"address": "2.2.2.2", "principal": "ada"}),
    ],
)
def test_equivalent_addresses_are_the_same_caller(
    first: dict[str, str], second: dict[str, str]
) -> None:
    call = make_call(surface="http", rate_limit="1/minute")
    send(call.replace(caller=Caller("http", **first)))
    with pytest.raises(TemporaryError):
        send(call.replace(caller=Caller("http", **second)))


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1000.0]
    monkeypatch.setattr(rate_limit, "monotonic", lambda: clock[0])
    return clock


def hit(limiter: RateLimiter, rates: list[str], caller: str) -> tuple[float, str]:
    return limiter.hit([(rate, "tool") for rate in rates], caller)


def test_wait_time_decreases_as_the_window_moves(now: list[float]) -> None:
    limiter = RateLimiter()

    def wait(*names: str) -> float:
        caller, tool = names
        return limiter.hit([("2/minute", tool)], caller)[0]

    assert [wait("ada", "find") for _ in range(2)] == [0, 0]
    assert wait("ada", "find") == 60
    now[0] += 59
    assert wait("ada", "find") == 1
    assert wait("eve", "find") == 0
    assert wait("ada", "put") == 0
    now[0] += 1
    assert wait("ada", "find") == 0


def test_refused_calls_do_not_count(now: list[float]) -> None:
    limiter = RateLimiter()
    assert hit(limiter, ["1/second"], "ada") == (0, "")
    for _ in range(100):
        assert hit(limiter, ["1/second"], "ada")[0] > 0
    now[0] += 1
    assert hit(limiter, ["1/second"], "ada") == (0, "")


@pytest.mark.parametrize("rates", [["1/second", "3/hour"], ["3/hour", "1/second"]])
def test_call_refused_by_one_rate_counts_for_none(now: list[float], rates: list[str]) -> None:
    limiter = RateLimiter()
    for _ in range(3):
        assert hit(limiter, rates, "ada") == (0, "")
        for _ in range(10):
            assert hit(limiter, rates, "ada")[1] in rates
        now[0] += 1
    assert hit(limiter, rates, "ada") == (3597, "3/hour")  # the longest wait is returned
    now[0] += 3597
    assert hit(limiter, rates, "ada") == (0, "")


def test_number_of_windows_and_recorded_calls_is_limited(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    monkeypatch.setattr(rate_limit, "MAX_WINDOWS", 16)
    monkeypatch.setattr(rate_limit, "MAX_RECORDED_CALLS", 50)
    limiter = RateLimiter()
    for i in range(1000):
        hit(limiter, ["100/minute"], f"caller {i}")
        assert len(limiter._windows) <= 16
    assert ("100/minute", "caller 999", "tool") in limiter._windows
    for i in range(1000):
        hit(limiter, ["100/minute"], f"caller {i % 5}")
        recorded = sum(len(window.timestamps) for window in limiter._windows.values())
        assert recorded == limiter._count <= 50
    now[0] += 61
    for i in range(5):
        assert hit(limiter, ["100/minute"], f"caller {i}") == (0, "")
    assert [len(window.timestamps) for window in limiter._windows.values()][-5:] == [1] * 5


def test_empty_windows_are_evicted_first(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> None:
    monkeypatch.setattr(rate_limit, "MAX_WINDOWS", 16)
    limiter = RateLimiter()
    assert hit(limiter, ["1/day"], "ada") == (0, "")  # the least recently used window
    for i in range(100):
        hit(limiter, ["1/minute"], f"caller {i}")
        now[0] += 10  # so that six of these windows are not empty at a time
    assert hit(limiter, ["1/day"], "ada")[1] == "1/day"


def test_window_of_the_only_caller_is_not_evicted(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    """Otherwise a caller could reset its own limit."""
    monkeypatch.setattr(rate_limit, "MAX_RECORDED_CALLS", 2)
    limiter = RateLimiter()
    assert [hit(limiter, ["4/minute"], "ada")[1] for _ in range(5)] == ["", "", "", "", "4/minute"]


def test_tool_that_is_not_served_by_a_provider_is_limited() -> None:
    call = make_call(surface="http", rate_limit="1/minute")
    tool = call.tool.replace(limits=call.tool.limits.replace(rate_counters=()))
    call = call.replace(tool=tool)
    send(call)
    with pytest.raises(TemporaryError, match="1 times a minute"):
        send(call)


def test_concurrent_calls_do_not_exceed_the_limit() -> None:
    limiter = RateLimiter()
    passed: list[bool] = []

    def call() -> None:
        rates = ["100/hour", "1000/day"]
        passed.extend([hit(limiter, rates, "ada")[0] == 0 for _ in range(50)])

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed.count(True) == 100


def test_duplicate_rate_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_RATE_LIMIT", "4/minute")
    app = Tooli("rated")

    @app.command(rate_limit="4/minute")
    def find() -> str:
        return "found"

    dispatcher, caller = ToolDispatcher(app), Caller("http", address="10.0.0.1")
    errors = [dispatcher.prepare(app.find("find"), {}, caller).run().error for _ in range(5)]
    assert [error and error.code for error in errors] == [None] * 4 + ["E4029"]
    for _ in range(5):  # rate limits do not apply to calls from Python code
        assert app.call("find").unwrap() == "found"


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("127.0.0.1", "127.0.0.2", True),
        ("127.0.0.1", "127.9.8.7", True),
        ("127.0.0.1", "::1", True),
        ("127.0.0.1", "::ffff:127.0.0.3", True),
        ("2001:db8:1:2::1", "2001:db8:1:2::2", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
    ],
)
def test_other_addresses_of_a_client_do_not_evade_the_limit(
    first: str, second: str, is_same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limit, "_limiter", rate_limit.RateLimiter())
    app = Tooli("app")
    app.command("find", rate_limit="1/hour")(lambda: "found")
    dispatcher = ToolDispatcher(app)
    callers = [Caller("http", address=address) for address in (first, second)]
    errors = [dispatcher.prepare(app.find("find"), {}, caller).run().error for caller in callers]
    assert [error and error.code for error in errors] == [None, "E4029" if is_same else None]


@pytest.mark.parametrize(
    "text",
    ["", "/", "1", "1/", "/minute", "0/minute", "01/minute", "-1/minute", "1/week", "1/minutes"]
    + ["1.5/minute", "10001/day", "x/minute", "1 / minute", "²/minute", None, 60, "1/minute/2"],
)
def test_invalid_rates_are_rejected(text: object) -> None:
    assert not is_rate_limit(text)
    with pytest.raises(DefinitionError, match="rate_limit="):
        Tooli("rated").command(rate_limit=text or "nothing")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["1/second", "60/minute", "10000/day"])
def test_valid_rates_are_accepted(text: str) -> None:
    assert is_rate_limit(text)


def test_calls_of_a_command_count_together_on_every_path() -> None:
    group, root = Tooli("group"), Tooli("root")
    group.command("go", rate_limit="2/minute")(lambda: None)
    group.command("stay")(lambda: None)
    for name in ("a", "b"):
        parent = Tooli(name)
        parent.add_typer(group)
        root.add_typer(parent)
    for name in ("a.group.go", "b.group.go"):
        tool = root.find(name)
        assert tool is not None
        send(make_call(surface="http").replace(tool=tool))
    with pytest.raises(TemporaryError, match="2 times a minute"):
        send(make_call(surface="http").replace(tool=tool))
