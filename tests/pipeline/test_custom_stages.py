"""`app.use`: stages that an author adds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

from tooli import Call, DefinitionError, Failed, Ok, TemporaryError, Tooli
from tooli.core.call import Options
from tooli.pipeline import STAGES, stage_name
from tooli.testing import Case, assert_parity, invoke

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Outcome, Stage


def make_stage(name: str, events: list[str]) -> Stage:
    def stage(call: Call) -> Generator[Call, Outcome, Outcome]:
        events.append(name)
        return (yield call)

    return stage


@pytest.fixture
def events() -> list[str]:
    return []


@pytest.fixture
def app() -> Tooli:
    app = Tooli("app")

    @app.command()
    def double(a: int) -> int:
        return 2 * a

    @app.command(annotations=None)
    def fail() -> int:
        raise TemporaryError("Not now.")

    return app


def stages_of(app: Tooli, name: str, **options: Any) -> list[str]:
    tool = app.find(name)
    assert tool is not None
    return [
        stage_name(stage).rpartition(".")[2] for stage in app.stages_for(tool, Options(**options))
    ]


class TestPosition:
    def test_decorator_accepts_a_position(self, app: Tooli) -> None:
        @app.use(after="bind")
        def added(call: Call) -> Generator[Call, Outcome, Outcome]:
            return (yield call)

        assert stages_of(app, "double") == ["bind", "added"]

    def test_decorator_rejects_an_unknown_position(self, app: Tooli) -> None:
        with pytest.raises(DefinitionError, match="Did you mean 'bind'"):

            @app.use(before="bnd")
            def added(call: Call) -> Generator[Call, Outcome, Outcome]:
                return (yield call)

    def test_stage_runs_before_bind_by_default(self, app: Tooli) -> None:
        @app.use
        def mine(call: Call) -> Generator[Call, Outcome, Outcome]:
            assert call.arguments == {"a": "2"}
            return (yield call)

        assert stages_of(app, "double") == ["mine", "bind"]
        assert app.call("double", a="2").result == 4

    def test_stage_after_bind_receives_converted_arguments(self, app: Tooli) -> None:
        def mine(call: Call) -> Generator[Call, Outcome, Outcome]:
            assert call.arguments == {"a": 2}
            return (yield call.replace(arguments={"a": 5}))

        assert app.use(mine, after="bind") is mine
        assert stages_of(app, "double") == ["bind", "mine"]
        assert app.call("double", a="2").result == 10

    def test_stage_runs_if_its_neighbor_does_not_apply(self, app: Tooli) -> None:
        def mine(call: Call) -> Generator[Call, Outcome, Outcome]:
            return (yield call)

        app.use(mine, before="claims")
        assert stages_of(app, "double") == ["bind", "mine"]
        assert stages_of(app, "double", dry_run=True) == ["bind", "dry_run", "mine"]

    def test_several_stages_run_in_the_order_of_registration(
        self, app: Tooli, events: list[str]
    ) -> None:
        app.use(make_stage("1", events), before="bind")
        app.use(make_stage("4", events), after="bind")
        app.use(make_stage("2", events), before="bind")
        app.use(make_stage("5", events), after="bind")
        app.use(make_stage("0", events), before="settings_check")
        app.use(make_stage("3", events))
        assert app.call("double", a=1).ok
        assert events == [*"012345"]

    @pytest.mark.parametrize("name", [row[0] for row in STAGES])
    def test_stage_can_run_before_and_after_every_stage(
        self, app: Tooli, events: list[str], name: str
    ) -> None:
        app.use(make_stage("before", events), before=name)
        app.use(make_stage("after", events), after=name)
        assert app.call("double", a=1).ok
        assert events == ["before", "after"]


class TestApps:
    def make_tree(self, events: list[str]) -> tuple[Tooli, Tooli]:
        top, inner = Tooli("top"), Tooli("inner")
        top.command("one")(lambda: 1)
        inner.command("two")(lambda: 2)
        inner.command("three")(lambda: 3)
        top.add_typer(inner, name="inner")
        return top, inner

    def test_stage_applies_to_the_commands_of_its_app(self, events: list[str]) -> None:
        top, inner = self.make_tree(events)
        inner.use(make_stage("inner", events))
        assert top.call("one").ok
        assert events == []
        assert top.call("inner.two").ok
        assert events == ["inner"]

    def test_stage_applies_to_inner_apps(self, events: list[str]) -> None:
        top, inner = self.make_tree(events)
        inner.use(make_stage("inner", events))
        top.use(make_stage("top", events))
        assert top.call("inner.two").ok
        assert events == ["top", "inner"]
        assert inner.call("two").ok
        assert events == ["top", "inner"] * 2

    def test_stage_added_after_a_call_applies_to_later_calls(self, events: list[str]) -> None:
        top, inner = self.make_tree(events)
        assert inner.call("two").ok and top.call("inner.two").ok
        top.use(make_stage("top", events))
        assert inner.call("two").ok and top.call("inner.two").ok
        assert events == ["top", "top"]

    def test_stage_applies_on_the_typer_path(self, events: list[str]) -> None:
        top, _ = self.make_tree(events)
        assert top.registered_commands
        top.use(make_stage("top", events))
        assert invoke(top, "one", mode="text").exit_code == 0
        assert events == ["top"]

    def test_stage_does_not_apply_to_built_in_commands(self, events: list[str]) -> None:
        top, _ = self.make_tree(events)
        top.use(make_stage("top", events))
        assert invoke(top, "detect-context", mode="json").exit_code == 0
        assert events == []

    def test_stage_applies_to_resources(self, events: list[str]) -> None:
        app = Tooli("app")
        app.resource("x://1")(lambda: "text")
        app.use(make_stage("stage", events))
        tool = app._state.resources[0].tool(app._state)
        assert len(app.stages_for(tool, Options())) == 2


class TestOutcome:
    def test_stage_can_return_an_outcome_without_the_call(self, app: Tooli) -> None:
        @app.use
        def answer(call: Call) -> Generator[Call, Outcome, Outcome]:
            yield from ()
            return Ok(42)

        assert assert_parity(app, Case("double", {"a": 1}))["result"] == 42

    def test_stage_can_reject_the_call(self, app: Tooli) -> None:
        @app.use
        def reject(call: Call) -> Generator[Call, Outcome, Outcome]:
            yield from ()
            raise TemporaryError("At night.")

        assert assert_parity(app, Case("double", {"a": 1}))["error"]["message"] == "At night."

    def test_stage_receives_failures(self, app: Tooli) -> None:
        seen: list[Outcome] = []

        @app.use
        def record(call: Call) -> Generator[Call, Outcome, Outcome]:
            outcome = yield call
            seen.append(outcome)
            return outcome

        assert not asyncio.run(app.acall("fail")).ok
        assert isinstance(seen[0], Failed)

    def test_function_that_is_not_a_generator_fails_in_the_call(self, app: Tooli) -> None:
        app.use(lambda call: 3)  # type: ignore[arg-type]
        error = app.call("double", a=1).error
        assert error is not None and error.code == "E5000"
        assert "<lambda>" in (error.details or {})["stage"]


class TestDefinition:
    def test_unknown_position_is_rejected(self, app: Tooli) -> None:
        with pytest.raises(DefinitionError, match=r"no stage 'bnd'\. Did you mean 'bind'"):
            app.use(make_stage("", []), before="bnd")
        with pytest.raises(
            DefinitionError, match=r"no stage 'xxxxx'\. The stages are settings_check"
        ):
            app.use(make_stage("", []), after="xxxxx")

    def test_before_and_after_together_are_rejected(self, app: Tooli) -> None:
        with pytest.raises(DefinitionError, match="not both"):
            app.use(make_stage("", []), before="bind", after="bind")

    def test_object_that_is_not_a_function_is_rejected(self, app: Tooli) -> None:
        with pytest.raises(DefinitionError, match="generator function, not 3"):
            app.use(3)  # type: ignore[type-var]

    def test_async_function_is_rejected(self, app: Tooli) -> None:
        async def wait(call: Call) -> None: ...

        with pytest.raises(DefinitionError, match="not an async one"):
            app.use(wait)  # type: ignore[type-var]


def test_docs_list_every_stage_in_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "stages.md").read_text(encoding="utf-8")
    listed = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert listed == [row[0] for row in STAGES]


class TestPlainTyperInBetween:
    """A Tooli that was added to a plain Typer, which was added to a Tooli."""

    def test_stage_of_the_outer_app_applies_to_the_inner_app(self) -> None:
        root, plain, inner = Tooli("root"), typer.Typer(), Tooli("inner")
        inner.command("hi")(lambda: "hi")
        plain.add_typer(inner, name="inner")
        root.add_typer(plain, name="plain")
        assert root.call("plain.inner.hi").ok
        assert inner.call("hi").ok
        seen: list[str] = []

        def log(call: Call) -> Generator[Call, Outcome, Outcome]:
            seen.append(call.tool.id)
            return (yield call)

        root.use(log)
        assert root.call("plain.inner.hi").ok
        assert inner.call("hi").ok
        assert seen == ["root.plain.inner.hi", "inner.hi"]

    def test_permissions_of_the_outer_app_restrict_the_inner_app(self) -> None:
        root, plain, inner = Tooli("root", permissions=["fs:read"]), typer.Typer(), Tooli("inner")
        inner.command("hi")(lambda: "hi")
        plain.add_typer(inner, name="inner")
        root.add_typer(plain, name="plain")
        tool = root.find("plain.inner.hi")
        assert tool is not None
        assert tool.guard.app_permissions == (("fs:read",),)
