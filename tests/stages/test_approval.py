"""The stage `approval`: confirmations and approvals."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel
from tests.stages.stage_calls import Files

from tooli import ApprovalRequired, Argument, InputError
from tooli.annotations import Destructive, Idempotent
from tooli.core.call import Caller, Ok, Options
from tooli.testing import invoke


class Target(BaseModel):
    path: str
    depth: int = 1
    notes: str = ""


class TestApproval:
    def test_harmless_command_has_no_approval_stage(self) -> None:
        files = Files().add("list")
        assert len(files.app.stages_for(files.app.find("list"), Options())) == 1

    def test_destructive_command_without_yes_is_rejected(self) -> None:
        files = Files().add("delete", annotations=Destructive)
        outcome, _ = files.run("delete")
        error = outcome.error
        assert isinstance(error, InputError)
        assert (error.code, error.exit_code, error.http_status) == ("E1010", 2, 428)
        assert error.suggestion.target.options == {"yes": True}
        assert error.suggestion.action == "ask_human"
        assert not files.ran

    @pytest.mark.parametrize("text", [{"yes": True}, {"approved": True}])
    def test_destructive_command_with_yes_or_approval_runs(self, text) -> None:
        files = Files().add("delete", annotations=Destructive | Idempotent)
        outcome, _ = files.run("delete", **text)
        assert isinstance(outcome, Ok)
        assert files.ran == ["delete"]

    def test_yes_is_not_an_approval(self) -> None:
        files = Files().add("pay", requires_approval=True)
        for text in ({}, {"yes": True}):
            outcome, _ = files.run("pay", **text)
            assert isinstance(outcome.error, ApprovalRequired)
            assert (outcome.error.exit_code, outcome.error.http_status) == (101, 428)
        assert not files.ran
        files.run("pay", approved=True)
        assert files.ran == ["pay"]

    @pytest.mark.parametrize("text", [{}, {"yes": True}, {"dry_run": True}])
    def test_forbidden_command_never_runs(self, text) -> None:
        files = Files().add("erase", danger_level="forbidden")
        outcome, _ = files.run("erase", **text)
        assert outcome.error.code == "E2000"
        assert not files.ran

    def test_policy_off_requires_approval(self) -> None:
        files = Files(security_policy="off").add("delete", annotations=Destructive)
        files.add("pay", requires_approval=True)
        assert isinstance(files.run("delete")[0], Ok)
        assert isinstance(files.run("pay")[0].error, ApprovalRequired)

    @pytest.mark.parametrize("name", ["delete", "pay"])
    def test_dry_run_needs_no_approval(self, name) -> None:
        files = Files().add("delete", annotations=Destructive).add("pay", requires_approval=True)
        outcome, _ = files.run(name, dry_run=True)
        assert isinstance(outcome, Ok)
        assert not files.ran

    def test_name_of_the_caller_is_not_a_confirmation(self) -> None:
        files = Files().add("delete", annotations=Destructive)
        for name in ("claude-code", "ci", None):
            outcome, _ = files.run("delete", caller=Caller("cli", name))
            assert outcome.error.code == "E1010"

    def test_suggested_command_has_all_arguments(self) -> None:
        app = Files().app

        @app.command(annotations=Destructive)
        def delete(path: str, more: Annotated[str, Argument()] = "x", force: bool = False): ...

        found = app.call("delete", path="-a b", more="y", force=True).error.suggestion
        assert found["arguments"] == {"path": "-a b", "more": "y", "force": True, "yes": True}
        line = ["delete", "--force", "--", "-a b", "y"]
        found = invoke(app, *line, mode="json").error["suggestion"]
        assert found["argv"][1:] == ["delete", "--force", "--yes", "--", "-a b", "y"]
        assert found["example"].endswith(" delete --force --yes -- '-a b' y")

    def test_suggested_command_has_the_fields_of_a_model(self) -> None:
        app = Files().app

        @app.command(annotations=Destructive, input_model=Target)
        def delete(target: Target): ...

        found = app.call("delete", path="-a b", depth=7).error.suggestion
        assert found["arguments"] == {"path": "-a b", "depth": 7, "yes": True}

    def test_command_with_its_own_yes_flag_needs_tooli_yes(self) -> None:
        app = Files().app

        @app.command(annotations=Destructive)
        def delete(yes: bool = False): ...

        found = app.call("delete", yes=True).error.suggestion
        assert (found["arguments"], found["options"]) == ({"yes": True}, {"yes": True})
        assert "app.options(yes=True)" in found["fix"]
        found = invoke(app, "delete", "--yes", mode="json").error["suggestion"]
        assert found["argv"][1:] == ["delete", "--yes", "--tooli-yes"]
        assert "--tooli-yes" in found["fix"]
