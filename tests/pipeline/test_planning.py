"""Plans: digests, differences, and functions that dry-run or apply a plan."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tooli import Context, StateError, ToolError, Tooli, dry_run_support, record_dry_action
from tooli.core.call import Call, Caller
from tooli.pipeline.planning import (
    MAX_MARKED_ACTIONS,
    build_plan,
    check_report,
    digest_actions,
    digest_plan_basis,
    is_plan,
    make_dry_run_function,
    make_planned_function,
    plan_changed_error,
)

KEY = b"k" * 32


def action(name: str, target: str, **more: Any) -> dict[str, Any]:
    return {"action": name, "target": target, **more}


class Countdown:
    """An async iterator without `aclose`, unlike a generator."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __aiter__(self) -> Countdown:
        return self

    async def __anext__(self) -> int:
        if self.count == 0:
            raise StopAsyncIteration
        record_dry_action("count", self.count)
        self.count -= 1
        return self.count


@dry_run_support
def count_down() -> Countdown:
    return Countdown(2)


def make_call(fn: Any) -> Call:
    app = Tooli("a")
    app.command("go")(fn)
    tool = app.find("go")
    assert tool is not None
    return Call(tool, {}, Caller("python"), [])


class TestAsyncIteratorWithoutAclose:
    def test_dry_run_records_the_actions(self) -> None:
        app = Tooli("a")
        app.command("go")(count_down)
        plan = app.options(dry_run=True).call("go").unwrap()
        assert [entry["target"] for entry in plan["actions"]] == ["2", "1"]

    def test_apply_returns_the_items(self) -> None:
        app = Tooli("a")
        app.command("go")(count_down)
        token = app.options(dry_run=True).call("go").unwrap()["token"]
        assert app.options(apply=token).call("go").unwrap() == [1, 0]

    def test_planned_function_yields_the_items_on_an_event_loop(self) -> None:
        async def collect() -> list[int]:
            planned = make_planned_function(make_call(count_down), lambda report: None)
            items: Any = await asyncio.to_thread(planned)
            return [item async for item in items]

        assert asyncio.run(collect()) == [1, 0]


def test_dry_run_function_of_an_async_generator_returns_the_report() -> None:
    @dry_run_support
    async def go() -> Any:
        record_dry_action("make", "x")
        yield 1

    run: Any = make_dry_run_function(make_call(go))
    report = asyncio.run(run())
    assert report == {"actions": [action("make", "x")], "is_truncated": False}


def test_plan_of_an_unmarked_function_is_declared() -> None:
    plan = build_plan(make_call(lambda: None))
    assert plan == {"tool": "a.go", "arguments": {}, "effects": [], "basis": "declared"}
    assert is_plan(plan)
    assert not is_plan({"basis": "other"})
    assert not is_plan([])


def test_state_of_a_plan_covers_the_states_of_its_actions() -> None:
    call = make_call(lambda: None)
    first = build_plan(call, [action("delete", "x", state="1")])
    second = build_plan(call, [action("delete", "x", state="2")])
    assert first["state"] != second["state"]
    assert "state" not in build_plan(call, [action("delete", "x")])


def test_plan_basis_depends_on_the_actions() -> None:
    call = make_call(lambda: None)
    assert digest_plan_basis(call, None, KEY) != digest_plan_basis(
        call, [action("delete", "x")], KEY
    )


class TestChangedPlan:
    def differences(self, planned: list[Any], now: list[Any]) -> Any:
        return plan_changed_error(now, digest_actions(planned, KEY), KEY).details

    def test_added_changed_and_gone_actions_are_listed(self) -> None:
        planned = [action("delete", "a"), action("delete", "b"), action("delete", "c")]
        now = [action("delete", "a"), action("delete", "b", details={"n": 1}), action("make", "d")]
        assert self.differences(planned, now) == {
            "added": [action("make", "d")],
            "changed": [action("delete", "b", details={"n": 1})],
            "gone": 1,
        }

    def test_action_repeated_more_often_than_planned_is_added(self) -> None:
        planned = [action("delete", "a")]
        now = [action("delete", "a"), action("delete", "a")]
        assert self.differences(planned, now) == {"added": [action("delete", "a")]}

    def test_too_many_actions_are_listed_without_differences(self) -> None:
        planned = [action("delete", str(n)) for n in range(MAX_MARKED_ACTIONS + 1)]
        assert digest_actions(planned, KEY) == b""
        assert self.differences(planned, [action("make", "d")]) == {
            "actions": [action("make", "d")]
        }

    def test_error_without_actions_has_no_details(self) -> None:
        error = plan_changed_error(None, b"", KEY, "the command has changed")
        assert error.code == "E3053"
        assert "the command has changed. Nothing was done." in error.message
        assert not error.details


def test_an_unplanned_action_stops_the_function() -> None:
    targets = iter(["a", "b"])

    @dry_run_support
    def go() -> None:
        record_dry_action("delete", next(targets))

    planned = make_planned_function(make_call(go), lambda report: None)
    with pytest.raises(StateError, match="stopped before delete b, which is not in the plan"):
        planned()


@pytest.mark.parametrize("kind", ["sync", "coroutine", "stream", "async stream"])
def test_an_unplanned_action_in_a_thread_stops_the_function(kind: str) -> None:
    """A thread does not inherit the context variable, so `ctx.plan` has to know the plan."""
    planned = iter([True, False])
    performed: list[str] = []

    def act(ctx: Context) -> None:
        target = "a" if next(planned) else "b"
        with suppress(StateError):
            if not ctx.plan("delete", target):
                performed.append(target)

    def act_in_thread(ctx: Context) -> None:
        thread = threading.Thread(target=act, args=(ctx,))
        thread.start()
        thread.join()

    def sync(ctx: Context) -> None:
        act_in_thread(ctx)

    async def coroutine(ctx: Context) -> None:
        act_in_thread(ctx)

    def stream(ctx: Context) -> Iterator[int]:
        act_in_thread(ctx)
        yield 1

    async def async_stream(ctx: Context) -> AsyncIterator[int]:
        act_in_thread(ctx)
        yield 1

    functions = {
        "sync": sync,
        "coroutine": coroutine,
        "stream": stream,
        "async stream": async_stream,
    }
    app = Tooli("a")
    app.command("go")(dry_run_support(functions[kind]))
    token = app.call("go", dry_run=True).unwrap()["token"]
    planned = iter([True, False])
    error = app.call("go", apply=token).error
    assert performed == []
    assert error is not None and error.code == "E3053" and error.details is not None
    assert error.details["unplanned"] == action("delete", "b")
    assert error.details["done"] == []


@pytest.mark.parametrize(
    "report",
    [
        5,
        {},
        {"actions": 5, "is_truncated": False},
        {"actions": [], "is_truncated": "no"},
        {"actions": [5], "is_truncated": False},
        {"actions": [{"action": 5, "target": "x"}], "is_truncated": False},
        {"actions": [{"action": "x"}], "is_truncated": False},
        {"actions": [{"action": "x", "target": "y", "state": [1]}], "is_truncated": False},
        {"actions": [{"action": "x", "target": "y", "details": 5}], "is_truncated": False},
        {"actions": [], "is_truncated": False, "more": 1},
    ],
)
def test_invalid_report_is_refused(report: object) -> None:
    """A sandboxed process can send any value instead of the report of its dry run."""
    with pytest.raises(ToolError, match="invalid report") as caught:
        check_report(report)
    assert caught.value.code == "E4051"


def test_valid_report_is_returned() -> None:
    action = {"action": "x", "target": "y", "state": "z", "details": {"n": 1}}
    report = {"actions": [action], "is_truncated": False}
    assert check_report(report) is report
