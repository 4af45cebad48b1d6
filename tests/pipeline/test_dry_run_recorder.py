"""Dry runs: recorded actions, the states they depend on, and threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from tooli import Context, Output, StdinOr, Tooli, dry_run_support, record_dry_action
from tooli.core.call import Call, Caller, Options
from tooli.errors import StateError
from tooli.pipeline import dry_run_recorder
from tooli.pipeline.dry_run_recorder import digest_state, is_dry_run_active


class WorkOptions(BaseModel):
    """The arguments of a command as a model."""

    name: str
    size: int = 3


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))


def test_nothing_is_recorded_outside_of_a_call() -> None:
    @dry_run_support
    def work() -> bool:
        return record_dry_action("x", "y", state=Path("/nowhere"))

    assert work() is False
    assert work.__name__ == "work"


def test_record_dry_action_returns_true_only_in_a_dry_run() -> None:
    app = Tooli("a")
    recorded = []

    @app.command()
    @dry_run_support
    def work(ctx: Context) -> None:
        recorded.append(
            (record_dry_action("x", "y"), ctx.plan("x", "z"), ctx.dry_run, is_dry_run_active())
        )

    app.call("work")
    app.call("work", dry_run=True)
    app.call("work")
    assert recorded == [(False,) * 4, (True,) * 4, (False,) * 4]


@pytest.mark.parametrize("timeout", [None, 60], ids=["in process", "child process"])
def test_applied_plan_does_not_repeat_warnings_of_the_dry_run(timeout: float | None) -> None:
    app = Tooli("a")

    @app.command(timeout=timeout)
    @dry_run_support
    def work(ctx: Context) -> int:
        ctx.warn("dry" if ctx.dry_run else "real")
        return 1

    plan = app.call("work", dry_run=True)
    assert plan.meta["warnings"] == ["dry"]
    applied = app.call("work", apply=plan.unwrap()["token"])
    assert applied.meta["warnings"] == ["real"]


def test_failed_dry_run_is_no_longer_active() -> None:
    app = Tooli("a")

    @app.command()
    @dry_run_support
    def work() -> None:
        raise ValueError("no")

    assert app.call("work", dry_run=True).error.code == "E5000"
    assert not is_dry_run_active()
    assert not dry_run_recorder._active_dry_runs


def test_action_in_an_unknown_thread_fails_a_dry_run() -> None:
    app = Tooli("a")
    done: list[str] = []

    @app.command()
    @dry_run_support
    def work(swallow: bool) -> str:
        def act() -> None:
            try:
                if not record_dry_action("break", "x"):
                    done.append("x")
            except Exception:
                if not swallow:
                    raise

        thread = threading.Thread(target=act)
        thread.start()
        thread.join()
        return "done"

    found = app.call("work", swallow=True, dry_run=True)
    assert not found.ok
    assert "ctx.plan" in found.error.suggestion["fix"]
    assert not done
    assert app.call("work", swallow=True).ok
    assert done == ["x"], "outside of a dry run it acts, in any thread"


def test_concurrent_real_call_is_not_a_dry_run() -> None:
    """A dry run does not affect another call that runs at the same time."""
    app = Tooli("a")
    started, finish = threading.Event(), threading.Event()
    done: list[int] = []

    @app.command()
    @dry_run_support
    def wait() -> None:
        record_dry_action("wait", "here")
        started.set()
        assert finish.wait(60)

    @app.command()
    @dry_run_support
    def work() -> Iterator[int]:
        for number in range(3):
            if not record_dry_action("make", number):
                done.append(number)
            yield number

    waiting = threading.Thread(target=lambda: app.call("wait", dry_run=True))
    waiting.start()
    try:
        assert started.wait(60)
        assert app.call("work").result == [0, 1, 2]
        assert asyncio.run(_collect(app)) == [0, 1, 2]
        assert asyncio.run(app.acall("work")).result == [0, 1, 2]
    finally:
        finish.set()
        waiting.join()
    assert done == [0, 1, 2] * 3


async def _collect(app: Tooli) -> list[int]:
    return [item async for item in app.astream("work")]


def test_concurrent_dry_runs_are_separate() -> None:
    app = Tooli("a")

    @app.command()
    @dry_run_support
    async def work(name: str) -> None:
        for number in range(3):
            record_dry_action(name, number)
            await asyncio.sleep(0)

    async def both() -> list:
        return await asyncio.gather(*[app.acall("work", name=n, dry_run=True) for n in "ab"])

    for name, found in zip("ab", asyncio.run(both()), strict=True):
        assert [one["action"] for one in found.result["actions"]] == [name] * 3


def test_output_is_recorded_and_not_written(tmp_path: Path) -> None:
    app = Tooli("a")

    @app.command()
    @dry_run_support
    def write(out: Output) -> int:
        with out.open("w") as file:
            file.write("x")
        return out.write_text("hello")

    target = tmp_path / "out.txt"
    target.write_text("before")
    plan = app.call("write", out=target, dry_run=True).result
    assert plan["actions"] == [{"action": "write", "target": str(target)}]
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == ["out.txt"]
    assert app.call("write", out=target, apply=plan["token"]).result == 5
    assert target.read_text() == "hello"


class OutputModel(BaseModel):
    """The arguments of a command that writes a file."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    out: Output


@pytest.mark.parametrize("kind", ["list", "model"])
def test_outputs_in_a_collection_or_a_model_are_not_written(kind: str, tmp_path: Path) -> None:
    app = Tooli("a")

    @app.command("list")
    @dry_run_support
    def write_list(out: list[Output]) -> list[int]:
        return [output.write_text("x") for output in out]

    @app.command("model", input_model=OutputModel)
    @dry_run_support
    def write_model(options: OutputModel) -> list[int]:
        return [options.out.write_text("x")]

    paths = [tmp_path / "1"] if kind == "model" else [tmp_path / "1", tmp_path / "2"]
    out = paths[0] if kind == "model" else paths
    plan = app.call(kind, out=out, dry_run=True).unwrap()
    assert [(one["action"], one["target"]) for one in plan["actions"]] == [
        ("write", str(path)) for path in paths
    ]
    assert not any(path.exists() for path in paths)
    assert app.call(kind, out=out, apply=plan["token"]).unwrap() == [1] * len(paths)
    assert [path.read_text() for path in paths] == ["x"] * len(paths)


def test_input_that_can_be_read_once_is_available_to_both_runs(tmp_path: Path) -> None:
    app = Tooli("a")
    seen: list[list[str]] = []

    @app.command()
    @dry_run_support
    def load(rows: StdinOr[Iterator[str]]) -> int:
        found = list(rows)
        for row in found:
            record_dry_action("load", row)
        seen.append(found)
        return len(found)

    (tmp_path / "rows").write_text("a\nb\n")
    plan = app.call("load", rows=tmp_path / "rows", dry_run=True).result
    assert [one["target"] for one in plan["actions"]] == ["a", "b"]
    assert app.call("load", rows=tmp_path / "rows", apply=plan["token"]).result == 2
    assert seen == [["a", "b"]] * 3


def test_dry_run_of_an_endless_stream_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    from tooli.pipeline import planning

    monkeypatch.setattr(planning, "MAX_STREAM_ITEMS", 50)
    app = Tooli("a")
    closed = []

    @app.command()
    @dry_run_support
    def count() -> Iterator[int]:
        try:
            number = 0
            while True:
                if number < 3:
                    record_dry_action("count", number)
                yield number
                number += 1
        finally:
            closed.append(number)

    @app.command()
    @dry_run_support
    async def acount():
        number = 0
        while True:
            yield number
            number += 1

    for name, actions in (("count", 3), ("acount", 0)):
        found = app.call(name, dry_run=True)
        assert len(found.result["actions"]) == actions
        assert "token" not in found.result
        assert "too long" in found.meta["warnings"][0]
    assert closed


def test_too_many_actions_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run_recorder, "MAX_ACTIONS", 5)
    app = Tooli("a")

    @app.command()
    @dry_run_support
    def work() -> None:
        for number in range(6):
            try:
                record_dry_action("x", number)
            except Exception:
                pass

    error = app.call("work", dry_run=True).error
    assert error.code == "E4000"
    assert "more than 5" in error.message


def test_actions_of_a_returned_coroutine_are_recorded() -> None:
    app = Tooli("a")
    done = []

    async def inner() -> str:
        if not record_dry_action("x", "y"):
            done.append("y")
        return "ok"

    @app.command()
    @dry_run_support
    def work():
        return inner()

    plan = app.call("work", dry_run=True).result
    assert plan["actions"] == [{"action": "x", "target": "y"}]
    assert not done
    assert app.call("work", apply=plan["token"]).result == "ok"
    assert done == ["y"]
    token = asyncio.run(app.acall("work", dry_run=True)).result["token"]
    assert asyncio.run(app.acall("work", apply=token)).result == "ok"


def test_plan_has_the_fields_of_the_input_model() -> None:
    app = Tooli("a")

    @app.command(input_model=WorkOptions)
    def work(options: WorkOptions) -> str:
        return options.name

    assert app.call("work", name="x", dry_run=True).result["arguments"] == {"name": "x", "size": 3}


class TestState:
    def test_state_of_a_file_is_its_content(self, tmp_path: Path) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        one.write_text("same")
        two.write_text("same")
        assert digest_state(one) == digest_state(two)
        two.write_text("else")
        assert digest_state(one) != digest_state(two)

    def test_state_of_a_missing_file_differs_from_an_empty_file(self, tmp_path: Path) -> None:
        before = digest_state(tmp_path / "x")
        (tmp_path / "x").touch()
        assert digest_state(tmp_path / "x") != before

    def test_state_of_a_folder_is_its_entries(self, tmp_path: Path) -> None:
        folder = tmp_path / "folder"
        folder.mkdir()
        before = digest_state(folder)
        assert digest_state(folder) == before
        (folder / "a").write_text("a")
        after = digest_state(folder)
        assert after != before
        (folder / "a").write_text("bb")
        assert digest_state(folder) != after

    def test_state_of_a_link_is_its_target(self, tmp_path: Path) -> None:
        link = tmp_path / "link"
        link.symlink_to("a")
        before = digest_state(link)
        link.unlink()
        link.symlink_to("b")
        assert digest_state(link) != before

    def test_state_that_cannot_be_read_is_an_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(path: object) -> object:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(dry_run_recorder.os, "scandir", fail)
        with pytest.raises(StateError, match="cannot be read: Permission denied"):
            digest_state(tmp_path)

    def test_state_below_a_file_is_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "a").touch()
        assert digest_state(tmp_path / "a" / "b") == digest_state(tmp_path / "c")

    def test_state_of_a_large_file_is_its_metadata(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import os

        monkeypatch.setattr(dry_run_recorder, "_MAX_HASHED_BYTES", 4)
        file = tmp_path / "large"
        file.write_text("123456")
        os.utime(file, (1, 1))
        before = digest_state(file)
        os.utime(file, (2, 2))
        assert digest_state(file) != before

    def test_state_of_other_values_is_their_value(self) -> None:
        values = ["a", b"b", 1, [1], {"a": 1}, 1.5, True]
        assert len({digest_state(value) for value in values}) == len(values)
        assert digest_state({"a": 1}) == digest_state({"a": 1})

    def test_string_is_not_a_path(self, tmp_path: Path) -> None:
        file = tmp_path / "x"
        before = digest_state(str(file))
        file.touch()
        assert digest_state(str(file)) == before


@pytest.mark.parametrize("tool", ["plain", "asynchronous", "stream", "undeclared", "reading"])
def test_make_plan_returns_the_plan_of_a_dry_run(tool: str, tmp_path: Path) -> None:
    """The plan that a human approves is the plan of a dry run."""
    from tooli.pipeline.drivers import bind_arguments
    from tooli.pipeline.planning import make_plan

    app = Tooli("a")

    @app.command()
    @dry_run_support
    def plain(name: str) -> None:
        assert record_dry_action("x", name)

    @app.command()
    @dry_run_support
    async def asynchronous(name: str) -> None:
        assert record_dry_action("x", name)

    @app.command()
    @dry_run_support
    def stream(name: str) -> Iterator[int]:
        assert record_dry_action("x", name)
        yield 1

    @app.command()
    def undeclared(name: str) -> None:
        raise AssertionError

    @app.command()
    @dry_run_support
    def reading(name: str, text: StdinOr[str]) -> None:
        raise AssertionError

    (tmp_path / "text").touch()
    arguments = {"name": "n", **({"text": tmp_path / "text"} if tool == "reading" else {})}
    call, _ = app.prepare(Call(app.find(tool), arguments, Caller("cli"), [], Options()))
    call = call.replace(arguments=bind_arguments(call))
    plan = make_plan(call, ())
    if tool in ("undeclared", "reading"):
        assert plan["basis"] == "declared"
        return
    planned = app.call(tool, name="n", dry_run=True).result
    del planned["token"]
    assert plan == planned
    assert plan["actions"] == [{"action": "x", "target": "n"}]


def test_function_that_cannot_be_marked_is_rejected() -> None:
    from tooli import DefinitionError

    with pytest.raises(DefinitionError, match="where it is defined"):
        dry_run_support([].append)


def test_printed_text_is_not_the_result_of_a_dry_run() -> None:
    from tooli.testing import invoke

    app = Tooli("a")

    @app.command()
    @dry_run_support
    def say(name: str):
        print("hello")
        record_dry_action("greet", name)

    app.command("other")(lambda: None)
    done = invoke(app, "say", "bob", "--dry-run", mode="json")
    assert done.envelope["result"]["actions"] == [{"action": "greet", "target": "bob"}]


def test_actions_of_a_returned_async_stream_are_recorded() -> None:
    app = Tooli("a")
    done: list[int] = []

    async def items():
        for number in range(2):
            if not record_dry_action("make", number):
                done.append(number)
            yield number

    @app.command()
    @dry_run_support
    def work():
        return items()

    async def all_items(token: str) -> list[int]:
        return [item async for item in app.astream("work", apply=token)]

    for apply in (
        lambda token: app.call("work", apply=token).result,
        lambda token: list(app.stream("work", apply=token)),
        lambda token: asyncio.run(all_items(token)),
    ):
        done.clear()
        plan = app.call("work", dry_run=True).result
        assert [one["target"] for one in plan["actions"]] == ["0", "1"]
        assert not done
        assert apply(plan["token"]) == [0, 1]
        assert done == [0, 1]


def test_replaced_function_does_not_run_in_bubblewrap(tmp_path: Path) -> None:
    """In bubblewrap the app is imported again, so the original function would run and act."""
    from tooli.execution.sandbox.bwrap import locate_app
    from tooli.execution.sandbox.syscalls import SandboxUnavailable
    from tooli.pipeline.planning import make_dry_run_function, make_planned_function

    app = Tooli("a")

    @app.command()
    @dry_run_support
    def act() -> None: ...

    call, _ = app.prepare(Call(app.find("act"), {}, Caller("cli"), [], Options()))
    for fn in (make_dry_run_function(call), make_planned_function(call, lambda report: None)):
        with pytest.raises(SandboxUnavailable, match="plans, and functions"):
            locate_app(app._state, call.tool.replace(fn=fn))
