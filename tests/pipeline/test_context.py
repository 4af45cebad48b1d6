"""Context: how a running function uses the call, the caller and the MCP client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import typer

from tooli import ApprovalRequired, Context, Elicit, Roots, Sample, SecretInput, Tooli
from tooli.core.call import DEFAULT_OPTIONS, Call, Caller, Options
from tooli.core.peer import Peer, Question
from tooli.errors import Interrupted
from tooli.pipeline import terminal_prompts
from tooli.pipeline.context import Reply, is_yes, parse_reply, sample_text, typer_context
from tooli.schema.tool_reader import read_tool
from tooli.testing import invoke


def context(*, approved: bool = False, **options) -> Context:
    tool = read_tool(lambda: None, app="app", path=("users", "sync"), kwargs={})
    return Context(Call(tool, {}, Caller("cli", "me"), [], Options(**options), approved=approved))


def test_context_has_the_caller_options_and_tool() -> None:
    ctx = context(dry_run=True)
    assert ctx.caller.name == "me"
    assert ctx.options.dry_run
    assert ctx.tool == "app.users.sync"


def test_warn_adds_to_the_warnings_of_the_call() -> None:
    ctx = context()
    ctx.warn("careful")
    assert ctx._call.warnings == ["careful"]


def test_warning_that_is_not_a_string_is_converted() -> None:
    app = Tooli("app")

    @app.command()
    def tool(ctx: Context) -> str:
        ctx.warn(ValueError("no luck"))  # pyright: ignore[reportArgumentType]
        ctx.warn({"a": 1})  # pyright: ignore[reportArgumentType]
        return "x"

    expected = ["no luck", "{'a': 1}"]
    assert app.call("tool").to_dict()["meta"]["warnings"] == expected
    assert json.loads(invoke(app, "--json").stdout)["meta"]["warnings"] == expected
    assert "Warning: no luck" in invoke(app, "--plain").stderr


@pytest.mark.parametrize(
    ("options", "level", "shown"),
    [
        ({}, 1, False),
        ({}, 0, True),
        ({"verbose": 1}, 1, True),
        ({"verbose": 1}, 2, False),
        ({"verbose": 3}, 2, True),
        ({"verbose": 3, "quiet": True}, 1, False),
    ],
)
def test_log_level_determines_what_is_printed(capsys, options, level, shown) -> None:
    context(**options).log("hello", level=level)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "hello\n" if shown else "")


class TestProgress:
    @pytest.mark.parametrize("options", [{}, {"interactive": True, "quiet": True}])
    def test_no_bar_without_a_terminal_or_with_quiet(self, capsys, options) -> None:
        assert list(context(**options).progress([1, 2])) == [1, 2]
        assert capsys.readouterr() == ("", "")

    def test_bar_on_stderr_in_interactive_use(self, capsys, monkeypatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.delenv("NO_COLOR", raising=False)
        items = context(interactive=True).progress(iter([1, 2]), total=2, label="copying")
        assert list(items) == [1, 2]
        out, err = capsys.readouterr()
        assert out == ""
        assert "copying" in err

    def test_default_label_is_the_name_of_the_tool(self, capsys, monkeypatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        list(context(interactive=True).progress([1]))
        assert "sync" in capsys.readouterr().err

    def test_items_are_not_read_in_advance(self) -> None:
        def endless():
            while True:
                yield 1

        assert next(context().progress(endless())) == 1


class TestConfirm:
    @pytest.mark.parametrize("default", [True, False])
    def test_yes_option_and_approval_confirm(self, default) -> None:
        assert context(yes=True).confirm("Sure?", default=default)
        assert context(approved=True).confirm("Sure?", default=default)

    @pytest.mark.parametrize("options", [{}, {"interactive": True, "no_input": True}])
    @pytest.mark.parametrize("default", [True, False])
    def test_default_if_nobody_can_be_asked(self, monkeypatch, options, default) -> None:
        monkeypatch.setattr(terminal_prompts, "ask_yes_no", None)
        assert context(**options).confirm("Sure?", default=default) is default

    def test_user_is_asked_in_interactive_use(self, monkeypatch) -> None:
        asked = []
        monkeypatch.setattr(
            terminal_prompts, "ask_yes_no", lambda q, default: asked.append((q, default)) or True
        )
        assert context(interactive=True).confirm("Sure?")
        assert asked == [("Sure?", False)]


def test_typer_context_is_created_for_a_call_without_typer() -> None:
    def tool(ctx: typer.Context): ...

    call = Call(read_tool(tool, app="app", path=("sync",), kwargs={}), {}, Caller("python"), [])
    ctx = typer_context(call)
    assert isinstance(ctx, typer.Context)
    assert (ctx.info_name, ctx.command.name, ctx.parent) == ("sync", "sync", None)


# ------------------------------------------------------------------ requests to the MCP client


class Client(Peer):
    """A client that gives fixed answers and records the messages it receives."""

    def __init__(self, answers: dict[str, Any] | None = None, *, can_answer: bool = True) -> None:
        self.answers = answers or {}
        self.can_answer = can_answer
        self.received: list[Any] = []

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.received.append((done, total, message))

    def log(self, level: str, data: Any) -> None:
        self.received.append((level, data))

    def supports(self, method: str) -> bool:
        return self.can_answer

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        self.received.append({key: (one.method, one.params()) for key, one in questions.items()})
        return {key: self.answers[one.method] for key, one in questions.items()}

    def disconnect_client(self) -> None:
        self.received.append("disconnected")


def client_context(
    peer: Peer | None, options: Options = DEFAULT_OPTIONS, approved: bool = False, **more: Any
) -> Context:
    app = Tooli("app")
    app.command("tool")(lambda: None)
    (tool,) = app.catalog
    return Context(Call(tool, {}, Caller("mcp"), [], options, approved=approved, peer=peer, **more))


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


# ------------------------------------------------------------------ messages to the client


def test_messages_and_progress_are_sent_to_the_client(capsys: pytest.CaptureFixture[str]) -> None:
    client = Client()
    ctx = client_context(client)
    ctx.log("a")
    ctx.log("b", level=2)
    ctx.log("c", level="error")
    ctx.report(1, 2, "half")
    assert list(ctx.progress([7, 8])) == [7, 8]
    assert list(ctx.progress(iter([9]), label="x")) == [9]
    ctx.disconnect_client()
    assert client.received == [
        ("info", "a"),
        ("debug", "b"),
        ("error", "c"),
        (1, 2, "half"),
        (1, 2, None),
        (2, 2, None),
        (1, None, "x"),
        "disconnected",
    ]
    assert capsys.readouterr().err == ""


def test_only_errors_are_printed_without_a_client(capsys: pytest.CaptureFixture[str]) -> None:
    ctx = client_context(None)
    ctx.report(1, 2)
    ctx.disconnect_client()
    ctx.log("quiet", level="info")
    ctx.log("loud", level="error")
    assert not ctx.cancelled
    assert capsys.readouterr().err == "loud\n"


def test_report_raises_in_a_cancelled_call() -> None:
    client = Client()
    client.cancelled = True
    ctx = client_context(client)
    assert ctx.cancelled
    with pytest.raises(Interrupted):
        ctx.report(1)


def test_default_peer_supports_nothing() -> None:
    peer = Peer()
    peer.progress(1, None, None)
    peer.log("info", "x")
    peer.disconnect_client()
    assert not peer.supports("roots/list")
    with pytest.raises(NotImplementedError):
        peer.ask({})


# ------------------------------------------------------------------ questions to the client


@dataclass
class Form:
    name: str
    age: int = 7


def test_elicit_returns_the_reply_of_the_client() -> None:
    client = Client({"elicitation/create": accepted(name="Ann")})
    ctx = client_context(client)
    reply = ctx.elicit("Who?", {"type": "object", "properties": {}})
    assert reply.accepted and reply.content == {"name": "Ann"}
    ctx.elicit("Who?", Form)
    (_, params) = client.received[1]["answer"]
    assert params["message"] == "Who?"
    assert params["requestedSchema"]["required"] == ["name"]


async def test_aelicit_returns_the_reply_of_the_client() -> None:
    ctx = client_context(Client({"elicitation/create": {"action": "decline"}}))
    reply = await ctx.aelicit("Who?", {"type": "object", "properties": {}})
    assert (reply.action, reply.content, reply.accepted) == ("decline", {}, False)


async def test_sample_and_asample_return_the_text_of_the_client() -> None:
    block = {"type": "text", "text": "4"}
    client = Client({"sampling/createMessage": {"content": [block, {"type": "text", "text": "2"}]}})
    ctx = client_context(client)
    assert ctx.sample("?", max_tokens=5, system="be brief") == "42"
    assert await ctx.asample([{"role": "user", "content": block}]) == "42"
    (_, params) = client.received[0]["answer"]
    assert (params["maxTokens"], params["systemPrompt"]) == (5, "be brief")


async def test_secrets_are_redacted_in_requests_to_the_client() -> None:
    block = {"type": "text", "text": "yes"}
    client = Client(
        {
            "sampling/createMessage": {"content": block},
            "elicitation/create": accepted(),
            "roots/list": {"roots": []},
        }
    )
    ctx = client_context(client, secrets=[SecretInput("hunter22"), SecretInput(1000)])
    schema = {"properties": {"a": {"type": "string", "default": "hunter22"}}}
    ctx.sample("use hunter22", system="\x1b[1mhunter22")
    await ctx.asample([{"role": "user", "content": {"type": "text", "text": "hunter22"}}])
    ctx.elicit("hunter22?", schema)
    await ctx.aelicit("hunter22?", schema)
    ctx.ask({"a": Sample([{"role": "user", "content": "hunter22"}]), "b": Roots()})
    ctx.log({"hunter22": ["hunter22", 1000]})  # pyright: ignore[reportArgumentType]
    assert "hunter22" not in str(client.received)
    (_, params) = client.received[0]["answer"]
    assert params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "use ***"}}],
        "maxTokens": 1000,
        "systemPrompt": "***",
    }
    assert client.received[2]["answer"][1]["requestedSchema"]["properties"]["a"]["default"] == "***"
    assert client.received[-1] == ("info", {"***": ["***", "***"]})


def test_ask_returns_replies_to_several_questions() -> None:
    client = Client({"roots/list": {"roots": []}, "elicitation/create": accepted()})
    ctx = client_context(client)
    reply = ctx.ask({"a": Roots(), "b": Elicit("?", {})})
    assert reply == {"a": {"roots": []}, "b": accepted()}
    assert ctx.can_ask(Roots) and ctx.can_ask(Sample([]))


@pytest.mark.parametrize("peer", [None, Client(can_answer=False)])
def test_ask_fails_if_the_client_cannot_answer(peer: Peer | None) -> None:
    ctx = client_context(peer)
    assert not ctx.can_ask(Roots())
    with pytest.raises(ApprovalRequired) as refused:
        ctx.ask({"a": Roots(), "b": Sample([])})
    assert (refused.value.code, refused.value.exit_code) == ("E2102", 101)
    assert refused.value.details == {"asked": ["roots/list", "sampling/createMessage"]}


@pytest.mark.parametrize(
    ("answer", "default", "expected"),
    [
        (accepted(yes=True), False, True),
        (accepted(yes=False), True, False),
        (accepted(yes="true"), True, False),
        ({"action": "decline"}, True, False),
        ({"action": "cancel"}, True, True),
        ({"action": "cancel"}, False, False),
        (None, True, True),
    ],
)
def test_confirm_returns_the_answer_of_the_client(
    answer: Any, default: bool, expected: bool
) -> None:
    ctx = client_context(Client({"elicitation/create": answer}))
    assert ctx.confirm("Sure?", default=default) is expected


def test_confirm_returns_the_default_if_the_client_cannot_answer() -> None:
    client = Client(can_answer=False)
    assert client_context(client).confirm("Sure?", default=True)
    assert not client_context(client).confirm("Sure?")
    assert client_context(client, Options(yes=True)).confirm("Sure?")
    assert client_context(client, approved=True).confirm("Sure?")
    assert client.received == []


def test_malformed_replies_count_as_cancelled_or_empty() -> None:
    assert parse_reply("nonsense") == Reply("cancel")
    assert parse_reply({"action": "accept", "content": 7}) == Reply("accept")
    assert not is_yes(Reply("accept"))
    assert sample_text("nonsense") == ""
    assert sample_text({"content": {"type": "text", "text": "x"}}) == "x"


def test_question_class_is_abstract() -> None:
    with pytest.raises(NotImplementedError):
        Question().params()
