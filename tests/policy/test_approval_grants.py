"""Grants are bound to the tool, its arguments, its secrets, the caller and the plan."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from tooli import Context, SecretInput, StdinOr, Tooli, dry_run_support, record_dry_action
from tooli.annotations import Destructive
from tooli.core.call import Call, Caller, Failed, Ok, Options
from tooli.core.peer import InputRequired, Peer
from tooli.pipeline.drivers import run
from tooli.policy.rules import RULES
from tooli.storage.approval_store import ApprovalStore


@dataclass(slots=True)
class Slotted:
    items: list[SecretStr]


class Login(BaseModel):
    user: str
    password: SecretInput[str]


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


class GuardedApp:
    """An app whose commands need an approval, and methods that call and approve them."""

    def __init__(self) -> None:
        self.app = Tooli("app", version="1.0")
        self.ran: list[Any] = []
        self.stock = ["a", "b"]
        command = self.app.command

        @command(requires_approval=True, annotations=Destructive)
        def wipe(paths: list[str], deep: bool = False) -> str:
            self.ran.append(paths)
            return "wiped"

        @command(requires_approval=True)
        def pay(amount: int, key: SecretInput[str]) -> str:
            self.ran.append(amount)
            return "paid"

        @command(requires_approval=True)
        def enter(login: Login) -> str:
            self.ran.append(login.user)
            return "entered"

        @command(requires_approval=True)
        def load(data: StdinOr[dict[str, int]]) -> str:
            self.ran.append(data)
            return "loaded"

        @command(requires_approval=True)
        def clear() -> str:
            self.ran.append(list(self.stock))
            return "cleared"

        clear.tooli_plan = lambda: {"removes": list(self.stock)}

        @command(requires_approval=True)
        def read(items: Any) -> str:
            self.ran.append(items)
            return "read"

    def call(self, name: str, caller: Caller | None = None, **arguments: Any) -> Any:
        tool = self.app.find(name)
        assert tool is not None
        caller = caller or Caller("cli", "codex")
        call, stages = self.app.prepare(Call(tool, arguments, caller, [], Options(yes=True)))
        return run(call, stages)

    def code(self, name: str, caller: Caller | None = None, **arguments: Any) -> str | None:
        outcome = self.call(name, caller, **arguments)
        return None if isinstance(outcome, Ok) else outcome.error.code

    def grant(self, name: str, caller: Caller | None = None, **arguments: Any) -> None:
        outcome = self.call(name, caller, **arguments)
        assert isinstance(outcome, Failed)
        assert outcome.error.code == "E2101"
        assert outcome.error.details is not None
        approval: Any = outcome.error.details["approval"]
        store = ApprovalStore()
        (request,) = [one for one in store.list_pending("app") if one.id == approval["id"]]
        assert store.decide(request, "granted")


@pytest.fixture
def guarded() -> GuardedApp:
    return GuardedApp()


class TestGrantBinding:
    def test_the_same_call_runs_once(self, guarded: GuardedApp) -> None:
        guarded.grant("wipe", paths=["a"])
        assert guarded.code("wipe", paths=["a"]) is None
        assert guarded.code("wipe", paths=["a"]) == "E2101"
        assert guarded.ran == [["a"]]

    def test_equivalent_arguments_are_the_same_call(self, guarded: GuardedApp) -> None:
        guarded.grant("wipe", paths=["a"])
        assert guarded.code("wipe", paths=("a",), deep=False) is None

    @pytest.mark.parametrize(
        "changed",
        [
            {"paths": ["b"]},
            {"paths": ["a", "b"]},
            {"paths": ["a "]},
            {"paths": []},
            {"paths": ["a"], "deep": True},
        ],
    )
    def test_grant_does_not_apply_to_other_arguments(
        self, guarded: GuardedApp, changed: dict[str, Any]
    ) -> None:
        guarded.grant("wipe", paths=["a"])
        assert guarded.code("wipe", **changed) == "E2101"
        assert guarded.ran == []

    @pytest.mark.parametrize(
        "other",
        [
            Caller("cli"),
            Caller("cli", "claude-code"),
            Caller("http", "codex"),
            Caller("mcp", "codex"),
            Caller("python", "codex"),
            Caller("cli", "codex", principal="codex"),
            Caller("cli", principal="codex"),
        ],
    )
    def test_grant_does_not_apply_to_another_caller(
        self, guarded: GuardedApp, other: Caller
    ) -> None:
        guarded.grant("wipe", paths=["a"])
        assert guarded.code("wipe", other, paths=["a"]) == "E2101"
        assert guarded.ran == []

    def test_verified_principal_is_identified_by_its_token_only(self, guarded: GuardedApp) -> None:
        ann = Caller("http", "one", principal="ann")
        guarded.grant("wipe", ann, paths=["a"])
        for other in (Caller("http", "one", principal="bob"), Caller("http", "ann")):
            assert guarded.code("wipe", other, paths=["a"]) == "E2101"
        assert guarded.code("wipe", ann.replace(name="two", session="s"), paths=["a"]) is None

    def test_grant_does_not_apply_to_another_secret(self, guarded: GuardedApp) -> None:
        guarded.grant("pay", amount=1, key="mine")
        assert guarded.code("pay", amount=1, key="yours") == "E2101"
        assert guarded.code("pay", amount=1, key="mine") is None

    def test_grant_does_not_apply_to_another_secret_in_a_model(self, guarded: GuardedApp) -> None:
        guarded.grant("enter", login={"user": "ann", "password": "one"})
        assert guarded.code("enter", login={"user": "ann", "password": "two"}) == "E2101"
        assert guarded.code("enter", login={"user": "ann", "password": "one"}) is None

    @pytest.mark.parametrize("kind", [Slotted, list, set, dict])
    def test_grant_does_not_apply_to_another_secret_in_a_collection(
        self, guarded: GuardedApp, kind: Any
    ) -> None:
        def collect(*texts: str) -> Any:
            secrets = [SecretStr(text) for text in texts]
            if kind is dict:
                return dict.fromkeys(secrets, 1)
            return kind(secrets)

        guarded.grant("read", items=collect("one", "two"))
        assert guarded.code("read", items=collect("one", "other")) == "E2101"
        assert guarded.code("read", items=collect("one", "two")) is None

    def test_order_of_a_set_is_ignored(self, guarded: GuardedApp) -> None:
        one, two = SecretStr("one"), SecretStr("two")
        guarded.grant("read", items=[{("a", one), ("b", two)}])
        assert guarded.code("read", items=[{("a", two), ("b", one)}]) == "E2101"
        assert guarded.code("read", items=[{("b", two), ("a", one)}]) is None

    def test_grant_does_not_apply_to_another_input_value(self, guarded: GuardedApp) -> None:
        guarded.grant("load", data={"a": 1})
        assert guarded.code("load", data={"a": 2}) == "E2101"
        assert guarded.code("load", data={"a": 1}) is None

    def test_grant_does_not_apply_to_a_changed_plan(self, guarded: GuardedApp) -> None:
        guarded.grant("clear")
        guarded.stock.append("precious")
        assert guarded.code("clear") == "E2101"
        assert guarded.ran == []
        guarded.stock.pop()
        assert guarded.code("clear") is None

    @pytest.mark.parametrize("items", [iter([1]), io.StringIO("x"), (x for x in "ab")])
    def test_streams_cannot_be_approved(self, guarded: GuardedApp, items: Any) -> None:
        outcome = guarded.call("read", items=items)
        assert outcome.error.code == "E2101"
        assert outcome.error.details is None
        assert ApprovalStore().list_pending("app") == []

    def test_stdin_cannot_be_approved(
        self, guarded: GuardedApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 1}'))
        outcome = guarded.call("load", data="-")
        assert outcome.error.code == "E2101"
        assert "Put the input into a file" in outcome.error.suggestion.fix

    def test_dry_run_does_not_use_the_grant(self, guarded: GuardedApp) -> None:
        guarded.grant("wipe", paths=["a"])
        tool = guarded.app.find("wipe")
        assert tool is not None
        options = Options(yes=True, dry_run=True)
        call, stages = guarded.app.prepare(
            Call(tool, {"paths": ["a"]}, Caller("cli", "codex"), [], options)
        )
        assert isinstance(run(call, stages), Ok)
        assert guarded.ran == []
        assert guarded.code("wipe", paths=["a"]) is None

    def test_denial_is_returned_once(self, guarded: GuardedApp) -> None:
        assert guarded.code("wipe", paths=["a"]) == "E2101"
        store = ApprovalStore()
        (request,) = store.list_pending("app")
        store.decide(request, "denied")
        assert guarded.code("wipe", paths=["b"]) == "E2101"
        assert guarded.code("wipe", paths=["a"]) == "E2103"
        assert guarded.code("wipe", paths=["a"]) == "E2101"


class TestRequest:
    def test_request_is_stored_and_named_in_the_error(self, guarded: GuardedApp) -> None:
        outcome = guarded.call("pay", amount=7, key="hush")
        approval = outcome.error.details["approval"]
        (request,) = ApprovalStore().list_pending("app")
        assert (request.tool, request.arguments) == ("app.pay", {"amount": 7, "key": "***"})
        assert request.caller == "codex (cli)"
        assert approval.keys() == {"id", "expires", "command"}
        assert approval["command"] == f"app approvals grant {request.id}"
        assert request.id in outcome.error.message
        assert outcome.error.suggestion.action == "ask_human"
        assert approval["command"] in outcome.error.suggestion.fix

    def test_secrets_are_not_stored(self, guarded: GuardedApp, state_dir: Path) -> None:
        guarded.call("pay", amount=7, key="hush-hush")
        guarded.call("enter", login={"user": "ann", "password": "hush-hush"})
        for path in (state_dir / "approvals").iterdir():
            assert b"hush-hush" not in path.read_bytes()

    def test_request_contains_the_plan(self, guarded: GuardedApp) -> None:
        guarded.call("clear")
        (request,) = ApprovalStore().list_pending("app")
        assert request.plan == {"removes": ["a", "b"]}

    def test_caller_without_a_name_is_stored_as_unnamed(self, guarded: GuardedApp) -> None:
        guarded.call("clear", Caller("http"))
        (request,) = ApprovalStore().list_pending("app")
        assert request.caller == "an unnamed caller (http)"

    def test_name_that_claims_to_be_verified_is_quoted(self, guarded: GuardedApp) -> None:
        guarded.call("clear", Caller("http", "ann (http, verified)"))
        guarded.call("clear", Caller("http", "x", principal="ann"))
        shown = [request.caller for request in ApprovalStore().list_pending("app")]
        assert shown == ["'ann (http, verified)' (http)", "ann (http, verified)"]

    def test_repeated_call_has_one_request(self, guarded: GuardedApp) -> None:
        first = guarded.call("wipe", paths=["a"]).error.details
        assert guarded.call("wipe", paths=["a"]).error.details == first
        assert guarded.call("wipe", paths=["b"]).error.details != first

    def test_call_is_rejected_if_its_request_cannot_be_stored(
        self, guarded: GuardedApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file"))
        assert guarded.code("wipe", paths=["a"]) == "E2104"
        assert guarded.ran == []


class TestDryRun:
    """A dry run before the approval is confined like the run itself."""

    def ask(self, app: Tooli, name: str, **arguments: Any) -> Any:
        call, stages = app.prepare(
            Call(app.find(name), arguments, Caller("cli", "codex"), [], Options())
        )
        outcome = run(call, stages)
        assert isinstance(outcome, Failed)
        return outcome.error

    def test_dry_run_with_a_timeout_runs_in_a_process(self) -> None:
        app = Tooli("app")

        @app.command(requires_approval=True, timeout=30)
        @dry_run_support
        def wipe() -> None:
            record_dry_action("wipe", "all", details={"pid": os.getpid()})

        assert self.ask(app, "wipe").code == "E2101"
        (request,) = ApprovalStore().list_pending("app")
        assert request.plan["actions"][0]["details"]["pid"] != os.getpid()

    def test_timeout_applies_to_the_dry_run(self) -> None:
        app = Tooli("app")

        @app.command(requires_approval=True, timeout=0.2)
        @dry_run_support
        def wipe() -> None:
            from time import sleep

            sleep(30)

        assert self.ask(app, "wipe").code == "E4050"
        assert ApprovalStore().list_pending("app") == []

    def test_dry_run_is_monitored(self, tmp_path: Path) -> None:
        app = Tooli("app", security_policy="strict")
        (tmp_path / "in").mkdir()
        (tmp_path / "out.txt").write_text("outside")

        @app.command(requires_approval=True, auth=[], capabilities=[f"fs:read:{tmp_path / 'in'}"])
        @dry_run_support
        def send(path: Path) -> None:
            record_dry_action("send", path, details={"text": path.read_text()})

        assert self.ask(app, "send", path=tmp_path / "out.txt").code == "E2003"
        assert ApprovalStore().list_pending("app") == []

    def test_warnings_are_not_repeated(self, tmp_path: Path) -> None:
        app = Tooli("app")
        (tmp_path / "in").mkdir()
        (tmp_path / "out.txt").write_text("outside")

        @app.command(requires_approval=True, capabilities=[f"fs:read:{tmp_path / 'in'}"])
        @dry_run_support
        def send(path: Path) -> str:
            text = path.read_text()
            record_dry_action("send", path)
            return text

        path = tmp_path / "out.txt"
        assert app.call("send", path=path).error.code == "E2101"
        store = ApprovalStore()
        assert store.decide(store.list_pending("app")[0], "granted")
        result = app.call("send", path=path)
        assert result.result == "outside"
        assert len(result.meta["warnings"]) == 1

    @pytest.mark.parametrize("timeout", [None, 60], ids=["in process", "child process"])
    def test_warnings_of_the_function_are_not_repeated(self, timeout: float | None) -> None:
        app = Tooli("app")

        @app.command(requires_approval=True, timeout=timeout)
        @dry_run_support
        def pay(ctx: Context) -> int:
            ctx.warn("careful")
            return 1

        assert app.call("pay").error.code == "E2101"
        store = ApprovalStore()
        assert store.decide(store.list_pending("app")[0], "granted")
        assert app.call("pay").meta["warnings"] == ["careful"]

    def test_dry_run_is_sandboxed(self, tmp_path: Path) -> None:
        from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

        if detect_sandbox_support().missing:
            pytest.skip("no sandbox is available")
        app = Tooli("app")
        (tmp_path / "in").mkdir()
        (tmp_path / "out.txt").write_text("outside")
        inside = [f"fs:read:{tmp_path / 'in'}"]

        @app.command(requires_approval=True, isolation="required", capabilities=inside)
        @dry_run_support
        def send(path: Path) -> None:
            record_dry_action("send", path, details={"text": path.read_text()})

        error = self.ask(app, "send", path=tmp_path / "out.txt")
        assert (error.code, "outside" in str(error.to_dict())) == ("E2030", False)
        assert ApprovalStore().list_pending("app") == []

    def test_plan_of_a_stream_that_is_too_long_is_declared(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The human must not take the beginning of a plan for all of it."""
        from tooli.pipeline import planning

        monkeypatch.setattr(planning, "MAX_STREAM_ITEMS", 3)
        app = Tooli("app")

        @app.command(requires_approval=True)
        @dry_run_support
        def wipe() -> Iterator[int]:
            for number in range(9):
                record_dry_action("delete", number)
                yield number

        assert self.ask(app, "wipe").code == "E2101"
        (request,) = ApprovalStore().list_pending("app")
        assert request.plan["basis"] == "declared"
        assert "actions" not in request.plan

    def test_no_dry_run_on_an_event_loop(self) -> None:
        app = Tooli("app")
        ran: list[str] = []

        @app.command(requires_approval=True)
        @dry_run_support
        async def wipe() -> str:
            if not record_dry_action("wipe", "all"):
                ran.append("wiped")
            else:
                ran.append("dry run")
            return "done"

        async def ask() -> Any:
            return await app.acall("wipe")

        assert asyncio.run(ask()).error.code == "E2101"
        store = ApprovalStore()
        (request,) = store.list_pending("app")
        assert (request.plan, ran) == (None, [])
        assert store.decide(request, "granted")
        assert asyncio.run(ask()).result == "done"
        assert ran == ["wiped"]


class _StatelessClient(Peer):
    """A stateless client: a question ends the call, and the client sends it again."""

    def __init__(self, held: list[str] | None) -> None:
        self._answered = held is not None
        self.held_claims = frozenset(held or ())
        self.new_claims: list[str] = []

    def hold_claim(self, claim_id: str) -> None:
        self.new_claims.append(claim_id)

    def supports(self, method: str) -> bool:
        return True

    def ask(self, questions: Any) -> Any:
        if not self._answered:
            raise InputRequired(questions)
        return {name: {"action": "accept", "content": {"x": "y"}} for name in questions}


class TestGrantUse:
    """Only a run uses the grant."""

    def test_call_that_ends_with_a_question_keeps_the_grant(self) -> None:
        app = Tooli("app", security_policy="strict")  # the peer itself is not asked

        @app.command(requires_approval=True, auth=[])
        def ask(ctx: Context) -> str:
            return str(ctx.elicit("name?", {"type": "object", "properties": {"x": {}}}).content)

        def go(client: Peer) -> Any:
            call, stages = app.prepare(
                Call(
                    app.find("ask"),
                    {},
                    Caller("mcp", "client"),
                    [],
                    Options(),
                    peer=client,
                )
            )
            return run(call, stages)

        assert go(_StatelessClient([])).error.code == "E2101"
        store = ApprovalStore()
        assert store.decide(store.list_pending("app")[0], "granted")
        client = _StatelessClient(None)
        with pytest.raises(InputRequired):
            go(client)
        assert go(_StatelessClient([])).error.code == "E2101"
        answering = _StatelessClient(client.new_claims)
        assert go(answering) == Ok("{'x': 'y'}")
        assert go(answering).error.code == "E2101"

    def test_call_that_an_inner_stage_rejects_does_not_use_the_grant(
        self, guarded: GuardedApp
    ) -> None:
        def wipe(**options: Any) -> Any:
            return guarded.app.call("wipe", paths=["a"], **options)

        assert wipe(apply="pWRONG").error.code == "E2101"
        store = ApprovalStore()
        assert store.decide(store.list_pending("app")[0], "granted")
        assert [wipe(apply="pWRONG").error.code for _ in "ab"] == ["E1051", "E1051"]

    def test_grant_answers_questions_of_the_function(self) -> None:
        app = Tooli("app")

        @app.command(requires_approval=True)
        def pay(ctx: Context) -> bool:
            return ctx.confirm("Sure?")

        def go() -> Any:
            call = Call(app.find("pay"), {}, Caller("cli", "codex"), [], Options())
            return run(*app.prepare(call))

        assert isinstance(go(), Failed)
        store = ApprovalStore()
        assert store.decide(store.list_pending("app")[0], "granted")
        assert go() == Ok(True)

    def test_failed_run_uses_the_grant(self) -> None:
        app = Tooli("app")

        @app.command(requires_approval=True)
        def fail() -> None:
            raise RuntimeError

        assert app.call("fail").error.code == "E2101"
        store = ApprovalStore()
        assert store.decide(store.list_pending("app")[0], "granted")
        assert app.call("fail").error.code != "E2101"
        assert app.call("fail").error.code == "E2101"


class _AskingClient(Peer):
    def supports(self, method: str) -> bool:
        return True


class TestApprovedCall:
    """A surface may mark a call as approved if the policy allows it to ask a human."""

    @pytest.mark.parametrize("policy", ["off", "standard", "strict"])
    def test_approved_call_runs_if_the_policy_allows_approval(self, policy: str) -> None:
        app = Tooli("app", security_policy=policy)
        app.command("other", auth=[])(lambda: None)
        app.command("wipe", requires_approval=True, auth=[])(lambda: "wiped")
        tool = app.find("wipe")
        assert tool is not None
        call = Call(tool, {}, Caller("mcp"), [], Options(), peer=_AskingClient())
        asked = run(*app.prepare(call))
        assert isinstance(asked, Failed)
        approved = call.replace(approved=True, approved_parts=asked.error.approval_parts)
        asks_human = RULES["approval"].verdict_for(policy).asks_human
        assert isinstance(run(*app.prepare(approved)), Ok) is asks_human
        assert isinstance(run(*app.prepare(call.replace(approved=True))), Failed)

    def test_question_has_the_description_of_the_call(self, guarded: GuardedApp) -> None:
        tool = guarded.app.find("pay")
        assert tool is not None
        arguments = {"amount": 7, "key": "hush"}
        call, stages = guarded.app.prepare(
            Call(tool, arguments, Caller("mcp"), [], Options(), peer=_AskingClient())
        )
        outcome = run(call, stages)
        assert isinstance(outcome, Failed)
        folder = os.path.realpath(os.curdir)
        assert outcome.error.approval_text == (
            f'app.pay\n  in the folder {folder}\n  amount: 7\n  key: "***"'
        )
        assert outcome.error.details is None
        assert ApprovalStore().list_pending("app") == []

    def test_approval_error_of_the_function_is_not_a_question(self) -> None:
        """The function has run already, so the call must not be repeated after a question."""
        from tooli import ApprovalRequired

        app = Tooli("app")

        @app.command()
        def request_approval() -> None:
            raise ApprovalRequired("Not today.")

        tool = app.find("request_approval")
        assert tool is not None
        call = Call(tool, {}, Caller("mcp"), [], peer=_AskingClient())
        outcome = run(call, app.stages_for(tool, Options()))
        assert isinstance(outcome, Failed)
        assert outcome.error.approval_text is None
