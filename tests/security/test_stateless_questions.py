"""Attacks on questions of stateless MCP clients: one approval, plan token or key is one run.

A question ends the call. The function runs again when the client sends the answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tooli import Context, Tooli
from tooli.core.call import Call, Caller, Failed, Ok, Options
from tooli.core.peer import InputRequired
from tooli.errors import TemporaryError
from tooli.mcp.protocol import RequestState, RpcError, StatelessPeer
from tooli.pipeline import drivers
from tooli.storage.approval_store import ApprovalStore

CALLER = Caller("mcp", "agent")


def text_answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "model": "m", "content": {"type": "text", "text": text}}


class Shop:
    """An app whose commands pay first and ask afterwards, and its stateless client."""

    def __init__(self) -> None:
        self.app = Tooli("shop", version="1.0")
        self.paid: list[int] = []
        self.is_closed = False

        @self.app.use(before="claims")
        def refuse(call: Call) -> Any:
            if self.is_closed:
                raise TemporaryError("closed")
            return (yield call)

        @self.app.command(requires_approval=True)
        def pay(amount: int, ctx: Context) -> str:
            self.paid.append(amount)
            return f"{ctx.sample('a receipt')} {ctx.sample('a greeting')}"

        @self.app.command()
        def order(amount: int, ctx: Context) -> str:
            return pay(amount, ctx)

    def send(self, name: str, options: dict[str, Any], **params: Any) -> Any:
        """Send a call; return its outcome, or the result that asks the client."""
        tool = self.app.find(name)
        assert tool is not None
        state = RequestState(tool, {"arguments": {"amount": 4}, **params}, CALLER)
        peer = StatelessPeer(state, {"sampling": {}}, None)
        call = Call(tool, {"amount": 4}, CALLER, [], Options(**options), peer=peer)
        try:
            return drivers.run(*self.app.prepare(call))
        except InputRequired as pause:
            return state.input_required(pause)

    def answer(self, name: str, options: dict[str, Any], asked: Any, **answers: Any) -> Any:
        answers = answers or dict.fromkeys(asked["inputRequests"], text_answer("text"))
        state = asked["requestState"]
        return self.send(name, options, requestState=state, inputResponses=answers)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return Shop()


@pytest.fixture(params=["approval", "plan", "key"])
def permitted(request: pytest.FixtureRequest, shop: Shop) -> tuple[str, dict[str, Any], str]:
    """A command, the options that permit one run, and the code of a refused second run."""
    if request.param == "approval":
        assert shop.send("pay", {}).error.code == "E2101"
        assert ApprovalStore().decide(ApprovalStore().list_pending()[0], "granted")
        return "pay", {}, "E2101"
    if request.param == "plan":
        token = shop.send("order", {"dry_run": True}).value["token"]
        return "order", {"apply": token}, "E1051"
    return "order", {"idempotency_key": "k"}, "E3052"


def test_call_continues_with_its_answers(shop: Shop, permitted: Any) -> None:
    name, options, code = permitted
    asked = shop.send(name, options)
    asked = shop.answer(name, options, asked)
    assert shop.answer(name, options, asked) == Ok("text text")
    assert shop.paid == [4, 4, 4]  # one run for each answer
    if code != "E3052":  # a repeated key gets the stored outcome
        assert shop.send(name, options).error.code == code
    assert len(shop.paid) == 3


def test_call_without_its_state_does_not_run_again(shop: Shop, permitted: Any) -> None:
    name, options, code = permitted
    asked = shop.send(name, options)
    for more in ({}, {"inputResponses": dict.fromkeys(asked["inputRequests"], text_answer("x"))}):
        refused = shop.send(name, options, **more)
        assert isinstance(refused, Failed)
        assert refused.error.code == code
    assert shop.paid == [4]


def test_call_without_its_answers_does_not_run_again(shop: Shop, permitted: Any) -> None:
    name, options, code = permitted
    asked = shop.send(name, options)
    refused = shop.answer(name, options, asked, other=text_answer("x"))
    assert isinstance(refused, Failed)
    assert refused.error.code == code
    assert shop.paid == [4]


def test_state_is_used_once(shop: Shop, permitted: Any) -> None:
    name, options, _ = permitted
    asked = shop.send(name, options)
    shop.answer(name, options, asked)
    with pytest.raises(RpcError, match="already used"):
        shop.answer(name, options, asked)
    assert shop.paid == [4, 4]


def test_state_does_not_permit_another_key_or_plan(shop: Shop) -> None:
    token = shop.send("order", {"dry_run": True}).value["token"]
    other = shop.send("order", {"dry_run": True}).value["token"]
    shop.send("order", {"apply": token})
    asked = shop.send("order", {"apply": other})
    assert shop.answer("order", {"apply": token}, asked).error.code == "E1051"
    shop.send("order", {"idempotency_key": "a"})
    asked = shop.send("order", {"idempotency_key": "b"})
    assert shop.answer("order", {"idempotency_key": "a"}, asked).error.code == "E3052"


def test_earlier_answers_cannot_be_changed(shop: Shop, permitted: Any) -> None:
    name, options, _ = permitted
    asked = shop.send(name, options)
    (first,) = asked["inputRequests"]
    asked = shop.answer(name, options, asked)
    (second,) = asked["inputRequests"]
    answers = {first: text_answer("changed"), second: text_answer("new")}
    assert shop.answer(name, options, asked, **answers) == Ok("text new")


def test_resumed_call_that_is_refused_does_not_free_its_claim(shop: Shop, permitted: Any) -> None:
    name, options, code = permitted
    asked = shop.send(name, options)
    shop.is_closed = True
    assert shop.answer(name, options, asked).error.message == "closed"
    shop.is_closed = False
    assert shop.send(name, options).error.code == code
    assert shop.paid == [4]


def test_first_call_that_is_refused_frees_its_claim(shop: Shop, permitted: Any) -> None:
    name, options, _ = permitted
    shop.is_closed = True
    assert shop.send(name, options).error.message == "closed"
    shop.is_closed = False
    assert "requestState" in shop.send(name, options)


@pytest.mark.parametrize(
    "caller",
    [CALLER.replace(name="eve"), CALLER.replace(principal="eve"), CALLER],
    ids=["name", "principal", "arguments"],
)
def test_another_call_does_not_use_up_the_state(caller: Caller) -> None:
    app = Tooli("shop")
    app.command("ask")(lambda name: name)
    tool = app.find("ask")
    assert tool is not None
    owned = RequestState(tool, {"arguments": {"name": "a"}}, CALLER)
    state = owned.input_required(InputRequired({}))["requestState"]
    arguments = {"name": "b"} if caller is CALLER else {"name": "a"}
    for _ in range(2):
        with pytest.raises(RpcError, match="belongs to another call"):
            RequestState(tool, {"arguments": arguments, "requestState": state}, caller)
    own = {"arguments": {"name": "a"}, "requestState": state}
    RequestState(tool, own, CALLER)
    with pytest.raises(RpcError, match="already used"):
        RequestState(tool, own, CALLER)
