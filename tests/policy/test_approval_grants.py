"""What a grant is bound to: the tool, its arguments, the caller, what the call would do."""

from __future__ import annotations

import asyncio
import io
import os
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
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


class Desk:
    """An app whose commands need a human, and that human."""

    def __init__(self) -> None:
        self.app = Tooli("desk", version="1.0")
        self.ran: list[Any] = []
        self.stock = ["a", "b"]
        guarded = self.app.command

        @guarded(requires_approval=True, annotations=Destructive)
        def wipe(paths: list[str], deep: bool = False) -> str:
            self.ran.append(paths)
            return "wiped"

        @guarded(requires_approval=True)
        def pay(amount: int, key: SecretInput[str]) -> str:
            self.ran.append(amount)
            return "paid"

        @guarded(requires_approval=True)
        def enter(login: Login) -> str:
            self.ran.append(login.user)
            return "entered"

        @guarded(requires_approval=True)
        def load(data: StdinOr[dict[str, int]]) -> str:
            self.ran.append(data)
            return "loaded"

        @guarded(requires_approval=True)
        def clear() -> str:
            self.ran.append(list(self.stock))
            return "cleared"

        clear.tooli_plan = lambda: {"removes": list(self.stock)}

        @guarded(requires_approval=True)
        def eat(items: Any) -> str:
            self.ran.append(items)
            return "eaten"

    def call(self, name: str, caller: Caller | None = None, **arguments: Any) -> Any:
        tool = self.app.find(name)
        assert tool is not None
        who = caller or Caller("cli", "codex")
        call, stages = self.app.prepare(Call(tool, arguments, who, [], Options(yes=True)))
        return run(call, stages)

    def code(self, name: str, caller: Caller | None = None, **arguments: Any) -> str | None:
        outcome = self.call(name, caller, **arguments)
        return None if isinstance(outcome, Ok) else outcome.error.code

    def grant(self, name: str, caller: Caller | None = None, **arguments: Any) -> None:
        outcome = self.call(name, caller, **arguments)
        assert isinstance(outcome, Failed)
        assert outcome.error.code == "E2101"
        assert outcome.error.details is not None
        wanted: Any = outcome.error.details["approval"]
        store = ApprovalStore()
        (request,) = [one for one in store.list_pending("desk") if one.id == wanted["id"]]
        assert store.decide(request, "granted")


@pytest.fixture
def desk() -> Desk:
    return Desk()


class TestBinding:
    def test_the_same_call_runs_once(self, desk: Desk) -> None:
        desk.grant("wipe", paths=["a"])
        assert desk.code("wipe", paths=["a"]) is None
        assert desk.code("wipe", paths=["a"]) == "E2101"
        assert desk.ran == [["a"]]

    def test_the_same_call_in_other_words(self, desk: Desk) -> None:
        desk.grant("wipe", paths=["a"])
        assert desk.code("wipe", paths=("a",), deep=False) is None

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
    def test_other_arguments(self, desk: Desk, changed: dict[str, Any]) -> None:
        desk.grant("wipe", paths=["a"])
        assert desk.code("wipe", **changed) == "E2101"
        assert desk.ran == []

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
    def test_another_caller(self, desk: Desk, other: Caller) -> None:
        desk.grant("wipe", paths=["a"])
        assert desk.code("wipe", other, paths=["a"]) == "E2101"
        assert desk.ran == []

    def test_a_verified_principal_is_who_it_is_whatever_it_calls_itself(self, desk: Desk) -> None:
        ann = Caller("http", "one", principal="ann")
        desk.grant("wipe", ann, paths=["a"])
        for other in (Caller("http", "one", principal="bob"), Caller("http", "ann")):
            assert desk.code("wipe", other, paths=["a"]) == "E2101"
        assert desk.code("wipe", ann.replace(name="two", session="s"), paths=["a"]) is None

    def test_another_secret(self, desk: Desk) -> None:
        desk.grant("pay", amount=1, key="mine")
        assert desk.code("pay", amount=1, key="yours") == "E2101"
        assert desk.code("pay", amount=1, key="mine") is None

    def test_another_secret_inside_a_model(self, desk: Desk) -> None:
        desk.grant("enter", login={"user": "ann", "password": "one"})
        assert desk.code("enter", login={"user": "ann", "password": "two"}) == "E2101"
        assert desk.code("enter", login={"user": "ann", "password": "one"}) is None

    @pytest.mark.parametrize("kind", [Slotted, list, set, dict])
    def test_another_secret_wherever_it_is_kept(self, desk: Desk, kind: Any) -> None:
        def kept(*texts: str) -> Any:
            secrets = [SecretStr(text) for text in texts]
            if kind is dict:
                return dict.fromkeys(secrets, 1)
            return kind(secrets)

        desk.grant("eat", items=kept("one", "two"))
        assert desk.code("eat", items=kept("one", "other")) == "E2101"
        assert desk.code("eat", items=kept("one", "two")) is None

    def test_a_set_has_no_order(self, desk: Desk) -> None:
        one, two = SecretStr("one"), SecretStr("two")
        desk.grant("eat", items=[{("a", one), ("b", two)}])
        assert desk.code("eat", items=[{("a", two), ("b", one)}]) == "E2101"
        assert desk.code("eat", items=[{("b", two), ("a", one)}]) is None

    def test_content_that_was_given_itself(self, desk: Desk) -> None:
        desk.grant("load", data={"a": 1})
        assert desk.code("load", data={"a": 2}) == "E2101"
        assert desk.code("load", data={"a": 1}) is None

    def test_a_plan_that_has_moved(self, desk: Desk) -> None:
        desk.grant("clear")
        desk.stock.append("precious")
        assert desk.code("clear") == "E2101"
        assert desk.ran == []
        desk.stock.pop()
        assert desk.code("clear") is None

    @pytest.mark.parametrize("items", [iter([1]), io.StringIO("x"), (x for x in "ab")])
    def test_what_nobody_can_know_before(self, desk: Desk, items: Any) -> None:
        outcome = desk.call("eat", items=items)
        assert outcome.error.code == "E2101"
        assert outcome.error.details is None
        assert ApprovalStore().list_pending("desk") == []

    def test_stdin_is_not_known_before(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 1}'))
        outcome = desk.call("load", data="-")
        assert outcome.error.code == "E2101"
        assert "Put the input into a file" in outcome.error.suggestion.fix

    def test_a_dry_run_uses_nothing_up(self, desk: Desk) -> None:
        desk.grant("wipe", paths=["a"])
        tool = desk.app.find("wipe")
        assert tool is not None
        options = Options(yes=True, dry_run=True)
        call, stages = desk.app.prepare(
            Call(tool, {"paths": ["a"]}, Caller("cli", "codex"), [], options)
        )
        assert isinstance(run(call, stages), Ok)
        assert desk.ran == []
        assert desk.code("wipe", paths=["a"]) is None

    def test_no_is_told_once(self, desk: Desk) -> None:
        assert desk.code("wipe", paths=["a"]) == "E2101"
        store = ApprovalStore()
        (request,) = store.list_pending("desk")
        store.decide(request, "denied")
        assert desk.code("wipe", paths=["b"]) == "E2101"
        assert desk.code("wipe", paths=["a"]) == "E2103"
        assert desk.code("wipe", paths=["a"]) == "E2101"


class TestRequest:
    def test_what_is_written_down(self, desk: Desk) -> None:
        outcome = desk.call("pay", amount=7, key="hush")
        approval = outcome.error.details["approval"]
        (request,) = ApprovalStore().list_pending("desk")
        assert (request.tool, request.arguments) == ("desk.pay", {"amount": 7, "key": "***"})
        assert request.caller == "codex (cli)"
        assert approval.keys() == {"id", "expires", "command"}
        assert approval["command"] == f"desk approvals grant {request.id}"
        assert request.id in outcome.error.message
        assert outcome.error.suggestion.action == "ask_human"
        assert approval["command"] in outcome.error.suggestion.fix

    def test_no_secret_is_on_the_disk(self, desk: Desk, home: Path) -> None:
        desk.call("pay", amount=7, key="hush-hush")
        desk.call("enter", login={"user": "ann", "password": "hush-hush"})
        for path in (home / "approvals").iterdir():
            assert b"hush-hush" not in path.read_bytes()

    def test_the_plan(self, desk: Desk) -> None:
        desk.call("clear")
        (request,) = ApprovalStore().list_pending("desk")
        assert request.plan == {"removes": ["a", "b"]}

    def test_nothing_in_it_acts_on_a_terminal(self, desk: Desk) -> None:
        desk.call("wipe", Caller("cli", "x\x1b[2J"), paths=["\x1b]0;owned\x07", "a\u202eb\n"])
        (request,) = ApprovalStore().list_pending("desk")
        assert request.arguments["paths"] == ["\\x1b]0;owned\\x07", "a\\u202eb\\n"]
        assert request.caller.isprintable()

    def test_nobody_calls_themselves_verified(self, desk: Desk) -> None:
        desk.call("clear", Caller("http", "ann (http, verified)"))
        desk.call("clear", Caller("http", "x", principal="ann"))
        shown = [request.caller for request in ApprovalStore().list_pending("desk")]
        assert shown == ["'ann (http, verified)' (http)", "ann (http, verified)"]

    def test_the_same_refused_call_has_one_request(self, desk: Desk) -> None:
        first = desk.call("wipe", paths=["a"]).error.details
        assert desk.call("wipe", paths=["a"]).error.details == first
        assert desk.call("wipe", paths=["b"]).error.details != first

    def test_where_nothing_can_be_kept(
        self, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file"))
        assert desk.code("wipe", paths=["a"]) == "E2104"
        assert desk.ran == []


class TestDryRun:
    """A dry run before the approval is confined like the run itself."""

    def ask(self, app: Tooli, name: str, **given: Any) -> Any:
        call, stages = app.prepare(
            Call(app.find(name), given, Caller("cli", "codex"), [], Options())
        )
        outcome = run(call, stages)
        assert isinstance(outcome, Failed)
        return outcome.error

    def test_in_a_process_of_its_own_where_there_is_a_deadline(self) -> None:
        app = Tooli("desk")

        @app.command(requires_approval=True, timeout=30)
        @dry_run_support
        def wipe() -> None:
            record_dry_action("wipe", "all", details={"pid": os.getpid()})

        assert self.ask(app, "wipe").code == "E2101"
        (request,) = ApprovalStore().list_pending("desk")
        assert request.plan["actions"][0]["details"]["pid"] != os.getpid()

    def test_its_deadline_holds(self) -> None:
        app = Tooli("desk")

        @app.command(requires_approval=True, timeout=0.2)
        @dry_run_support
        def wipe() -> None:
            from time import sleep

            sleep(30)

        assert self.ask(app, "wipe").code == "E4050"
        assert ApprovalStore().list_pending("desk") == []

    def test_monitored(self, tmp_path: Path) -> None:
        app = Tooli("desk", security_policy="strict")
        (tmp_path / "in").mkdir()
        (tmp_path / "out.txt").write_text("outside")

        @app.command(requires_approval=True, auth=[], capabilities=[f"fs:read:{tmp_path / 'in'}"])
        @dry_run_support
        def send(path: Path) -> None:
            record_dry_action("send", path, details={"text": path.read_text()})

        assert self.ask(app, "send", path=tmp_path / "out.txt").code == "E2003"
        assert ApprovalStore().list_pending("desk") == []

    def test_what_it_warns_of_is_told_once(self, tmp_path: Path) -> None:
        app = Tooli("desk")
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
        assert store.decide(store.list_pending("desk")[0], "granted")
        result = app.call("send", path=path)
        assert result.result == "outside"
        assert len(result.meta["warnings"]) == 1

    def test_in_a_sandbox(self, tmp_path: Path) -> None:
        from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

        if detect_sandbox_support().missing:
            pytest.skip("no sandbox is available")
        app = Tooli("desk")
        (tmp_path / "in").mkdir()
        (tmp_path / "out.txt").write_text("outside")
        inside = [f"fs:read:{tmp_path / 'in'}"]

        @app.command(requires_approval=True, isolation="required", capabilities=inside)
        @dry_run_support
        def send(path: Path) -> None:
            record_dry_action("send", path, details={"text": path.read_text()})

        error = self.ask(app, "send", path=tmp_path / "out.txt")
        assert (error.code, "outside" in str(error.to_dict())) == ("E2030", False)
        assert ApprovalStore().list_pending("desk") == []

    def test_not_on_an_event_loop_which_would_wait_for_it(self) -> None:
        app = Tooli("desk")
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
        (request,) = store.list_pending("desk")
        assert (request.plan, ran) == (None, [])
        assert store.decide(request, "granted")
        assert asyncio.run(ask()).result == "done"
        assert ran == ["wiped"]


class _Answers(Peer):
    """A client in an era without a way back: a question ends the call, which comes again."""

    def __init__(self, answered: bool) -> None:
        self._answered = answered

    def supports(self, method: str) -> bool:
        return True

    def ask(self, questions: Any) -> Any:
        if not self._answered:
            raise InputRequired(questions)
        return {name: {"action": "accept", "content": {"x": "y"}} for name in questions}


class TestUse:
    """A grant is used by a run, and by nothing else."""

    def test_a_call_that_only_paused_for_a_question(self) -> None:
        app = Tooli("desk", security_policy="strict")  # the peer itself is not asked

        @app.command(requires_approval=True, auth=[])
        def ask(ctx: Context) -> str:
            return str(ctx.elicit("name?", {"type": "object", "properties": {"x": {}}}).content)

        def go(answered: bool) -> Any:
            call, stages = app.prepare(
                Call(
                    app.find("ask"),
                    {},
                    Caller("mcp", "client"),
                    [],
                    Options(),
                    peer=_Answers(answered),
                )
            )
            return run(call, stages)

        assert go(True).error.code == "E2101"
        store = ApprovalStore()
        assert store.decide(store.list_pending("desk")[0], "granted")
        with pytest.raises(InputRequired):
            go(False)
        assert go(True) == Ok("{'x': 'y'}")
        assert go(True).error.code == "E2101"

    def test_a_call_that_was_refused_further_in(self, desk: Desk) -> None:
        def wipe(**options: Any) -> Any:
            return desk.app.call("wipe", paths=["a"], **options)

        assert wipe().error.code == "E2101"
        store = ApprovalStore()
        assert store.decide(store.list_pending("desk")[0], "granted")
        assert wipe(apply="pWRONG").error.code == "E1051"
        assert wipe().ok
        assert wipe().error.code == "E2101"

    def test_a_run_that_failed_has_used_it(self) -> None:
        app = Tooli("desk")

        @app.command(requires_approval=True)
        def fail() -> None:
            raise RuntimeError

        assert app.call("fail").error.code == "E2101"
        store = ApprovalStore()
        assert store.decide(store.list_pending("desk")[0], "granted")
        assert app.call("fail").error.code != "E2101"
        assert app.call("fail").error.code == "E2101"


class _Asked(Peer):
    def supports(self, method: str) -> bool:
        return True


class TestWord:
    """An interface may claim that a human agreed where the table lets a human be asked."""

    @pytest.mark.parametrize("policy", ["off", "standard", "strict"])
    def test_approved(self, policy: str) -> None:
        app = Tooli("desk", security_policy=policy)
        app.command("other", auth=[])(lambda: None)
        app.command("wipe", requires_approval=True, auth=[])(lambda: "wiped")
        tool = app.find("wipe")
        assert tool is not None
        call, stages = app.prepare(Call(tool, {}, Caller("cli"), [], Options(), approved=True))
        outcome = run(call, stages)
        assert isinstance(outcome, Ok) is RULES["approval"].verdict_for(policy).asks_human

    def test_a_question_carries_what_a_human_is_shown(self, desk: Desk) -> None:
        tool = desk.app.find("pay")
        assert tool is not None
        given = {"amount": 7, "key": "hush"}
        call, stages = desk.app.prepare(
            Call(tool, given, Caller("mcp"), [], Options(), peer=_Asked())
        )
        outcome = run(call, stages)
        assert isinstance(outcome, Failed)
        assert outcome.error.approval_text == 'desk.pay\n  amount: 7\n  key: "***"'
        assert outcome.error.details is None
        assert ApprovalStore().list_pending("desk") == []

    def test_a_tools_own_refusal_asks_nobody(self) -> None:
        """It has run by then: to ask and run it again would be another run."""
        from tooli import ApprovalRequired

        app = Tooli("desk")

        @app.command()
        def moan() -> None:
            raise ApprovalRequired("Not today.")

        tool = app.find("moan")
        assert tool is not None
        call = Call(tool, {}, Caller("mcp"), [], peer=_Asked())
        outcome = run(call, app.stages_for(tool, Options()))
        assert isinstance(outcome, Failed)
        assert outcome.error.approval_text is None


class TestShown:
    def test_long_and_wide(self) -> None:
        from tooli.policy.approval_grants import format_lines

        lines = format_lines({"paths": [str(n) for n in range(100)], "text": "x" * 500}, {"a": []})
        assert len(lines) == 25
        assert lines[-1] == "  … and 80 more lines"
        (line,) = format_lines({"text": "x" * 500}, None)
        assert line.endswith("more characters")

    def test_nested(self) -> None:
        from tooli.policy.approval_grants import format_lines

        assert format_lines({"a": {"b": [1, {"c": None}], "\x1b": "\x07"}}, "just so") == [
            "  a:",
            "    b:",
            "      - 1",
            "      -",
            "        c: null",
            '    \\x1b: "\\u0007"',
            "  plan:",
            '    "just so"',
        ]
