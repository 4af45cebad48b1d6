"""The stages, one concern each, as a call meets them."""

from __future__ import annotations

import pathlib
from typing import Annotated

import pytest

from tooli import ApprovalRequired, Argument, AuthError, InputError, Tooli
from tooli.annotations import Destructive, Idempotent
from tooli.core.call import Call, Caller, Ok, Options
from tooli.pipeline.drivers import run


class Files:
    """An app whose tools write down that they ran."""

    def __init__(self, **settings) -> None:
        self.app = Tooli("files", version="1.0", **settings)
        self.app.command("other")(lambda: None)
        self.ran: list[str] = []

    def add(self, name: str, fn=None, **settings):
        self.app.command(name, **settings)(fn or (lambda: self.ran.append(name)))
        return self

    def run(self, name: str, *, caller: Caller | None = None, approved: bool = False, **options):
        tool = self.app.find(name)
        call, stages = self.app.prepare(
            Call(tool, {}, caller or Caller("cli"), [], Options(**options), approved=approved)
        )
        return run(call, stages), call


class TestApproval:
    def test_a_harmless_tool_has_no_such_stage(self) -> None:
        files = Files().add("list")
        assert len(files.app.stages_for(files.app.find("list"), Options())) == 1

    def test_destructive_without_a_yes(self) -> None:
        files = Files().add("delete", annotations=Destructive)
        outcome, _ = files.run("delete")
        error = outcome.error
        assert isinstance(error, InputError)
        assert (error.code, error.exit_code, error.http_status) == ("E1010", 2, 428)
        assert error.suggestion.argv == ["files", "delete", "--yes"]
        assert error.suggestion.action == "ask_human"
        assert not files.ran

    @pytest.mark.parametrize("text", [{"yes": True}, {"approved": True}])
    def test_destructive_with_a_yes(self, text) -> None:
        files = Files().add("delete", annotations=Destructive | Idempotent)
        outcome, _ = files.run("delete", **text)
        assert isinstance(outcome, Ok)
        assert files.ran == ["delete"]

    def test_approval_is_a_humans_alone(self) -> None:
        files = Files().add("pay", requires_approval=True)
        for text in ({}, {"yes": True}):
            outcome, _ = files.run("pay", **text)
            assert isinstance(outcome.error, ApprovalRequired)
            assert (outcome.error.exit_code, outcome.error.http_status) == (101, 428)
        assert not files.ran
        files.run("pay", approved=True)
        assert files.ran == ["pay"]

    def test_a_policy_of_off_still_keeps_approval(self) -> None:
        files = Files(security_policy="off").add("delete", annotations=Destructive)
        files.add("pay", requires_approval=True)
        assert isinstance(files.run("delete")[0], Ok)
        assert isinstance(files.run("pay")[0].error, ApprovalRequired)

    @pytest.mark.parametrize("name", ["delete", "pay"])
    def test_a_dry_run_needs_nobody_and_does_nothing(self, name) -> None:
        files = Files().add("delete", annotations=Destructive).add("pay", requires_approval=True)
        outcome, _ = files.run(name, dry_run=True)
        assert isinstance(outcome, Ok)
        assert not files.ran

    def test_who_calls_is_never_a_yes(self) -> None:
        files = Files().add("delete", annotations=Destructive)
        for name in ("claude-code", "ci", None):
            outcome, _ = files.run("delete", caller=Caller("cli", name))
            assert outcome.error.code == "E1010"

    def test_the_call_that_would_run_is_complete(self) -> None:
        app = Files().app

        @app.command(annotations=Destructive)
        def delete(path: str, more: Annotated[str, Argument()] = "x", force: bool = False): ...

        found = app.call("delete", path="-a b", more="y", force=True).error.suggestion
        assert found["argv"] == ["files", "delete", "--force", "--yes", "--", "-a b", "y"]
        assert found["example"] == "files delete --force --yes -- '-a b' y"

    def test_a_tools_own_yes_wins(self) -> None:
        app = Files().app

        @app.command(annotations=Destructive)
        def delete(yes: bool = False): ...

        found = app.call("delete", yes=True).error.suggestion
        assert found["argv"] == ["files", "delete", "--yes", "--tooli-yes"]
        assert "--tooli-yes" in found["fix"]


class TestAuthorization:
    def test_strict_wants_a_word_about_who(self) -> None:
        files = Files(security_policy="strict").add("list")
        error = files.run("list")[0].error
        assert isinstance(error, AuthError)
        assert (error.code, error.exit_code) == ("E2002", 30)
        assert not files.ran

    def test_anyone_on_purpose(self) -> None:
        files = Files(security_policy="strict").add("list", auth=[])
        assert isinstance(files.run("list")[0], Ok)

    def test_the_scopes_that_are_missing(self) -> None:
        files = Files(security_policy="strict").add("write", auth=["b", "a", "c"])
        error = files.run("write", caller=Caller("http", scopes=frozenset("c")))[0].error
        assert error.code == "E2001"
        assert error.details == {"missing_scopes": ["a", "b"]}
        assert not files.ran

    def test_the_right_scopes(self) -> None:
        files = Files(security_policy="strict").add("write", auth=["a"])
        outcome, call = files.run("write", caller=Caller("http", scopes=frozenset({"a", "b"})))
        assert isinstance(outcome, Ok)
        assert not call.warnings

    def test_standard_only_warns(self) -> None:
        files = Files().add("write", auth=["a"])
        outcome, call = files.run("write")
        assert isinstance(outcome, Ok)
        assert call.warnings == ["the caller lacks the scope a"]

    def test_off_says_nothing(self) -> None:
        files = Files(security_policy="off").add("write", auth=["a"])
        assert files.run("write")[1].warnings == []

    def test_a_tool_that_says_nothing_is_anyones(self) -> None:
        from tooli.stages.auth import authorize

        files = Files().add("list", lambda: 5)
        call, _ = files.app.prepare(Call(files.app.find("list"), {}, Caller("cli"), [], Options()))
        assert run(call, [authorize]) == Ok(5)

    def test_strict_holds_on_a_dry_run(self) -> None:
        files = Files(security_policy="strict").add("write", auth=["a"])
        assert files.run("write", dry_run=True)[0].error.code == "E2001"


class TestDryRun:
    def test_the_plan(self) -> None:
        app = Tooli("files")
        ran = []

        @app.command(annotations=Destructive | Idempotent)
        def delete(path: pathlib.Path, depth: float = 3):
            ran.append(path)

        result = app.call("delete", path="a", dry_run=True)
        plan = result.to_dict()["result"]
        assert plan.pop("token")[:1] == "p"
        assert plan == {
            "tool": "files.delete",
            "arguments": {"path": "a", "depth": 3.0},
            "effects": ["idempotent", "destructive"],
            "basis": "declared",
        }
        assert result.meta["dry_run"] is True
        assert not ran

    def test_wrong_arguments_are_wrong_on_a_dry_run_too(self) -> None:
        app = Tooli("files")
        app.command("count")(lambda n=1: n)
        assert app.call("count", n="x", dry_run=True).error.code == "E1003"


class TestDetail:
    def test_the_shape_of_the_result(self) -> None:
        def tool() -> list[int]:
            return [1]

        result = Files().add("list", tool).app.options(detailed=True).call("list")
        assert result.meta["output_schema"] == {"type": "array", "items": {"type": "integer"}}
        assert result.result == [1]

    def test_nothing_to_say(self) -> None:
        result = Files().add("list").app.options(detailed=True).call("list")
        assert "output_schema" not in result.meta

    def test_only_when_asked(self) -> None:
        def tool() -> int:
            return 1

        assert "output_schema" not in Files().add("list", tool).app.call("list").meta
