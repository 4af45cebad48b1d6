"""What a tool says and asks while it runs: of a client that can answer, and where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tooli import ApprovalRequired, Context, Elicit, Roots, Sample, SecretInput, Tooli
from tooli.core.call import DEFAULT_OPTIONS, Call, Caller, Options
from tooli.core.peer import Peer, Question
from tooli.errors import Interrupted
from tooli.pipeline.context import Reply, is_yes, parse_reply, sample_text


class Client(Peer):
    """A client that answers with what it was given, and notes what it hears."""

    def __init__(self, answers: dict[str, Any] | None = None, *, able: bool = True) -> None:
        self.answers = answers or {}
        self.able = able
        self.heard: list[Any] = []

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.heard.append((done, total, message))

    def log(self, level: str, data: Any) -> None:
        self.heard.append((level, data))

    def supports(self, method: str) -> bool:
        return self.able

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        self.heard.append({key: (one.method, one.params()) for key, one in questions.items()})
        return {key: self.answers[one.method] for key, one in questions.items()}

    def disconnect_client(self) -> None:
        self.heard.append("let go")


def context(
    peer: Peer | None, options: Options = DEFAULT_OPTIONS, approved: bool = False, **more: Any
) -> Context:
    app = Tooli("app")
    app.command("tool")(lambda: None)
    (tool,) = app.catalog
    return Context(Call(tool, {}, Caller("mcp"), [], options, approved=approved, peer=peer, **more))


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


# ------------------------------------------------------------------ saying


def test_a_client_hears(capsys: pytest.CaptureFixture[str]) -> None:
    client = Client()
    ctx = context(client)
    ctx.log("a")
    ctx.log("b", level=2)
    ctx.log("c", level="error")
    ctx.report(1, 2, "half")
    assert list(ctx.progress([7, 8])) == [7, 8]
    assert list(ctx.progress(iter([9]), label="x")) == [9]
    ctx.disconnect_client()
    assert client.heard == [
        ("info", "a"),
        ("debug", "b"),
        ("error", "c"),
        (1, 2, "half"),
        (1, 2, None),
        (2, 2, None),
        (1, None, "x"),
        "let go",
    ]
    assert capsys.readouterr().err == ""


def test_nobody_hears(capsys: pytest.CaptureFixture[str]) -> None:
    ctx = context(None)
    ctx.report(1, 2)
    ctx.disconnect_client()
    ctx.log("quiet", level="info")
    ctx.log("loud", level="error")
    assert not ctx.cancelled
    assert capsys.readouterr().err == "loud\n"


def test_a_cancelled_call_ends_where_it_reports() -> None:
    client = Client()
    client.cancelled = True
    ctx = context(client)
    assert ctx.cancelled
    with pytest.raises(Interrupted):
        ctx.report(1)


def test_a_peer_that_can_nothing() -> None:
    peer = Peer()
    peer.progress(1, None, None)
    peer.log("info", "x")
    peer.disconnect_client()
    assert not peer.supports("roots/list")
    with pytest.raises(NotImplementedError):
        peer.ask({})


# ------------------------------------------------------------------ asking


@dataclass
class Form:
    name: str
    age: int = 7


def test_forms() -> None:
    client = Client({"elicitation/create": accepted(name="Ann")})
    ctx = context(client)
    got = ctx.elicit("Who?", {"type": "object", "properties": {}})
    assert got.accepted and got.content == {"name": "Ann"}
    ctx.elicit("Who?", Form)
    (_, params) = client.heard[1]["answer"]
    assert params["message"] == "Who?"
    assert params["requestedSchema"]["required"] == ["name"]


async def test_forms_in_async_code() -> None:
    ctx = context(Client({"elicitation/create": {"action": "decline"}}))
    got = await ctx.aelicit("Who?", {"type": "object", "properties": {}})
    assert (got.action, got.content, got.accepted) == ("decline", {}, False)


async def test_models() -> None:
    block = {"type": "text", "text": "4"}
    client = Client({"sampling/createMessage": {"content": [block, {"type": "text", "text": "2"}]}})
    ctx = context(client)
    assert ctx.sample("?", max_tokens=5, system="be brief") == "42"
    assert await ctx.asample([{"role": "user", "content": block}]) == "42"
    (_, params) = client.heard[0]["answer"]
    assert (params["maxTokens"], params["systemPrompt"]) == (5, "be brief")


async def test_no_secret_is_asked_about() -> None:
    block = {"type": "text", "text": "yes"}
    client = Client(
        {
            "sampling/createMessage": {"content": block},
            "elicitation/create": accepted(),
            "roots/list": {"roots": []},
        }
    )
    ctx = context(client, secrets=[SecretInput("hunter22"), SecretInput(1000)])
    schema = {"properties": {"a": {"type": "string", "default": "hunter22"}}}
    ctx.sample("use hunter22", system="\x1b[1mhunter22")
    await ctx.asample([{"role": "user", "content": {"type": "text", "text": "hunter22"}}])
    ctx.elicit("hunter22?", schema)
    await ctx.aelicit("hunter22?", schema)
    ctx.ask({"a": Sample([{"role": "user", "content": "hunter22"}]), "b": Roots()})
    ctx.log({"hunter22": ["hunter22", 1000]})  # pyright: ignore[reportArgumentType]
    assert "hunter22" not in str(client.heard)
    (_, params) = client.heard[0]["answer"]
    assert params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "use ***"}}],
        "maxTokens": 1000,
        "systemPrompt": "***",
    }
    assert client.heard[2]["answer"][1]["requestedSchema"]["properties"]["a"]["default"] == "***"
    assert client.heard[-1] == ("info", {"***": ["***", "***"]})


def test_several_at_once() -> None:
    client = Client({"roots/list": {"roots": []}, "elicitation/create": accepted()})
    ctx = context(client)
    got = ctx.ask({"a": Roots(), "b": Elicit("?", {})})
    assert got == {"a": {"roots": []}, "b": accepted()}
    assert ctx.can_ask(Roots) and ctx.can_ask(Sample([]))


@pytest.mark.parametrize("peer", [None, Client(able=False)])
def test_nobody_can_be_asked(peer: Peer | None) -> None:
    ctx = context(peer)
    assert not ctx.can_ask(Roots())
    with pytest.raises(ApprovalRequired) as refused:
        ctx.ask({"a": Roots(), "b": Sample([])})
    assert (refused.value.code, refused.value.exit_code) == ("E2102", 101)
    assert refused.value.details == {"asked": ["roots/list", "sampling/createMessage"]}


@pytest.mark.parametrize(
    ("answer", "default", "text"),
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
def test_confirming(answer: Any, default: bool, text: bool) -> None:
    ctx = context(Client({"elicitation/create": answer}))
    assert ctx.confirm("Sure?", default=default) is text


def test_confirming_without_asking() -> None:
    client = Client(able=False)
    assert context(client).confirm("Sure?", default=True)
    assert not context(client).confirm("Sure?")
    assert context(client, Options(yes=True)).confirm("Sure?")
    assert context(client, approved=True).confirm("Sure?")
    assert client.heard == []


def test_replies() -> None:
    assert parse_reply("nonsense") == Reply("cancel")
    assert parse_reply({"action": "accept", "content": 7}) == Reply("accept")
    assert not is_yes(Reply("accept"))
    assert sample_text("nonsense") == ""
    assert sample_text({"content": {"type": "text", "text": "x"}}) == "x"


def test_a_question_has_words_of_its_own() -> None:
    with pytest.raises(NotImplementedError):
        Question().params()
