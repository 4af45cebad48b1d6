"""Every rule of the policy table × policy × interface: the same decision, with the same code."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.integration.outside import converse, environment
from tests.integration.outside import envelope as only_envelope
from tests.integration.outside import run as run_outside
from tests.parity.policed import CASES, COMMANDS, ESCAPES, make

from tooli.mcp.protocol import (
    CAPABILITIES_KEY,
    ENVELOPE_KEY,
    OPTIONS_KEY,
    STATELESS_VERSIONS,
    VERSION_KEY,
)
from tooli.mcp.stdio_server import StdioServer
from tooli.mcp.stdio_transport import from_json, to_json
from tooli.policy.rules import RULES, Verdict
from tooli.testing import Case, assert_parity
from tooli.testing.parity import interfaces
from tooli.testing.server_interfaces import MemoryTransport

APP = Path(__file__).parent / "policed.py"
POLICIES = ("off", "standard", "strict")
TABLE = [
    pytest.param(
        policy,
        case,
        rule.verdict_for(policy),
        id=f"{name}-{policy}-{case.tool}{'-yes' * bool(case.options)}",
    )
    for name, rule in RULES.items()
    for policy in POLICIES
    for case in CASES[name]
]
every_cell = pytest.mark.parametrize(("policy", "case", "verdict"), TABLE)
at_a_terminal = pytest.mark.skipif(sys.platform == "win32", reason="a terminal is needed")


def words(case: Case) -> list[str]:
    return [case.tool, *(["--yes"] if case.options else [])]


def test_every_rule_has_its_calls() -> None:
    assert CASES.keys() == RULES.keys()
    assert {case.tool for cases in CASES.values() for case in cases} == COMMANDS.keys()


CONTRACT = {
    # rule: what happens under off, standard, strict; "?" where a human may be asked instead
    "forbidden": ("E2000", "E2000", "E2000"),
    "auth": ("runs", "runs", "E2002"),
    "scope": ("runs", "warns", "E2001"),
    "approval": ("E2101?", "E2101?", "E2101"),
    "critical": ("runs", "runs", "E2101"),
    "human": ("E2101?", "E2101?", "E2101"),
    "destructive": ("runs", "E1010?", "E1010"),
    "confirmed": ("runs", "runs", "runs"),
    "undeclared": ("runs", "warns", "E2003"),
    "escapes": ("runs", "warns", "warns"),
}


def test_the_table_is_the_contracts() -> None:
    def short(verdict: Verdict) -> str:
        if verdict.code is None:
            return "warns" if verdict.adds_warning else "runs"
        return verdict.code + "?" * verdict.asks_human

    assert {
        name: tuple(short(rule.verdict_for(policy)) for policy in POLICIES)
        for name, rule in RULES.items()
    } == CONTRACT


# ------------------------------------------------------------------ where nobody can be asked


@every_cell
def test_through_every_interface(policy: str, case: Case, verdict: Verdict) -> None:
    ran: list[str] = []
    app = make(policy, ran.append)
    answer = assert_parity(app, case)
    if verdict.code is None:
        left = ESCAPES if case.tool == "escapes" and policy == "off" else ""
        assert answer["result"] == case.tool + left
        assert bool(answer["meta"].get("warnings")) is verdict.adds_warning
        assert len(ran) == len(
            [interface for interface in interfaces(app) if interface.skip_reason(case) is None]
        )
    else:
        assert answer["error"]["code"] == verdict.code
        assert ran == []


@every_cell
def test_a_dry_run_through_every_interface(policy: str, case: Case, verdict: Verdict) -> None:
    ran: list[str] = []
    options = {**case.options, "dry_run": True}
    answer = assert_parity(make(policy, ran.append), case.replace(options=options))
    assert ran == []
    if answer["ok"]:
        assert answer["meta"]["dry_run"] is True
    else:  # who may not run it at all may not plan it, either
        assert answer["error"]["code"] == verdict.code
        assert verdict.code in ("E2000", "E2001", "E2002")


class Outside:
    """The app as a process of its own."""

    def __init__(self, folder: Path, policy: str) -> None:
        self.noted = folder / "noted"
        self.env = environment(
            TERM="xterm-256color",
            POLICED=policy,
            NOTED=str(self.noted),
            TOOLI_STATE_DIR=str(folder / "state"),
        )

    @property
    def ran(self) -> bool:
        return self.noted.exists()


@every_cell
def test_through_a_pipe(policy: str, case: Case, verdict: Verdict, tmp_path: Path) -> None:
    outside = Outside(tmp_path, policy)
    done = run_outside(APP, *words(case), "--json", env=outside.env)
    found = only_envelope(done.out)
    assert found["ok"] is outside.ran is (verdict.code is None)
    assert found.get("error", {}).get("code") == verdict.code
    assert done.err == b""


# ------------------------------------------------------------------ where a person is

QUESTION = b"Run it? [y/N] "
DARE = b"Type grave to run it: "


def question_of(case: Case) -> tuple[bytes, bytes]:
    return (DARE, b"grave\n") if case.tool == "grave" else (QUESTION, b"y\n")


@at_a_terminal
@every_cell
def test_at_a_terminal(policy: str, case: Case, verdict: Verdict, tmp_path: Path) -> None:
    outside = Outside(tmp_path, policy)
    says = [question_of(case)] if verdict.asks_human else []
    done = converse(APP, *words(case), says=says, env=outside.env)
    assert outside.ran is (verdict.code is None or verdict.asks_human)
    if verdict.asks_human:
        assert f"policed.{case.tool}".encode() in done.out.partition(says[0][0])[0]
    else:
        assert QUESTION not in done.out
        assert DARE not in done.out
    if not outside.ran:
        assert verdict.code is not None
        assert verdict.code.encode() in done.out


@at_a_terminal
@pytest.mark.parametrize(
    ("tool", "awaited", "answer", "code", "exit_code"),
    [
        ("delete", QUESTION, b"n\n", b"E1010", 2),
        ("delete", QUESTION, b"\n", b"E1010", 2),
        ("delete", QUESTION, b"\x04", b"E1010", 2),
        ("grave", DARE, b"y\n", b"E1010", 2),
        ("grave", DARE, b"\x04", b"E1010", 2),
        ("approval", QUESTION, b"n\n", b"E2103", 101),
        ("human", QUESTION, b"no\n", b"E2103", 101),
    ],
)
def test_a_persons_no(
    tool: str, awaited: bytes, answer: bytes, code: bytes, exit_code: int, tmp_path: Path
) -> None:
    outside = Outside(tmp_path, "standard")
    done = converse(APP, tool, says=[(awaited, answer)], env=outside.env)
    assert (done.code, outside.ran) == (exit_code, False)
    assert code in done.out


@at_a_terminal
@pytest.mark.parametrize("tool", ["delete", "grave", "approval", "human"])
@pytest.mark.parametrize(
    ("flags", "env"),
    [
        (["--no-input"], {}),
        ([], {"TOOLI_NO_INPUT": "true"}),
        ([], {"CLAUDECODE": "1"}),
        (["--text"], {"CLAUDECODE": "1"}),
        (["--text"], {"CLAUDECODE": "1", "TOOLI_CALLER": "human"}),
        ([], {"TOOLI_SECURITY_POLICY": "strict"}),
    ],
)
def test_a_terminal_is_not_enough(
    tool: str, flags: list[str], env: dict[str, str], tmp_path: Path
) -> None:
    outside = Outside(tmp_path, "standard")
    done = converse(APP, tool, *flags, env={**outside.env, **env})
    assert not outside.ran
    assert (b"E1010" if tool in ("delete", "grave") else b"E2101") in done.out


# ------------------------------------------------------------------ where a human granted it


@pytest.mark.parametrize("policy", POLICIES)
def test_a_grant_runs_the_call_once_through_each_interface(policy: str) -> None:
    from tooli.storage.approval_store import ApprovalStore

    ran: list[str] = []
    case, store = Case("approval"), ApprovalStore()
    for interface in interfaces(make(policy, ran.append)):
        ran.clear()
        waiting = _waiting(interface, case)
        assert waiting == _waiting(interface, case)
        (request,) = [one for one in store.list_pending("policed") if one.id == waiting]
        assert store.decide(request, "granted")
        assert interface.send_case(case).envelope["ok"] is True, interface.name
        assert ran == ["approval"], interface.name
        again = _waiting(interface, case)
        assert again != waiting
        (request,) = [one for one in store.list_pending("policed") if one.id == again]
        assert store.decide(request, "denied")
        assert interface.send_case(case).envelope["error"]["code"] == "E2103", interface.name
        assert ran == ["approval"], interface.name


def _waiting(interface: Any, case: Case) -> str:
    """The id of the request that a refused call leads to."""
    error = interface.send_case(case).envelope["error"]
    assert error["code"] == "E2101", interface.name
    return error["details"]["approval"]["id"]


# ------------------------------------------------------------------ the setting


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("flags", [[], ["--yes"]])
def test_a_human_in_the_loop_by_setting(policy: str, flags: list[str], tmp_path: Path) -> None:
    outside = Outside(tmp_path, policy)
    env = {**outside.env, "TOOLI_HUMAN_IN_THE_LOOP": "true"}
    done = run_outside(APP, "delete", *flags, "--json", env=env)
    assert only_envelope(done.out)["error"]["code"] == "E2101"
    assert (done.code, outside.ran) == (101, False)
    assert only_envelope(run_outside(APP, "critical", "--json", env=env).out)["ok"] is (
        policy != "strict"
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_the_setting_holds_through_every_interface(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_HUMAN_IN_THE_LOOP", "true")
    ran: list[str] = []
    answer = assert_parity(make(policy, ran.append), Case("delete", {}, {"yes": True}))
    assert answer["error"]["code"] == "E2101"
    assert ran == []


# ------------------------------------------------------------------ a client that can ask its human


class Client:
    """An MCP client of one era whose human gives one answer."""

    def __init__(self, app: Any, stateless: bool, send_case: bool) -> None:
        self.stateless = stateless
        self.asked: list[str] = []
        self.reply = {"action": "accept", "content": {"yes": send_case}}
        self.transport = _Answering(self)
        self.server = StdioServer(app, self.transport)
        if not stateless:
            info = {"clientInfo": {"name": "asking", "version": "1"}}
            capabilities = {"capabilities": {"elicitation": {}}}
            self.send("initialize", {"protocolVersion": "2025-11-25", **capabilities, **info})

    def call(self, case: Case) -> dict[str, Any]:
        params: dict[str, Any] = {"name": case.tool, "arguments": {}}
        params["_meta"] = {OPTIONS_KEY: dict(case.options)}
        result = self.send("tools/call", params)
        if result.get("resultType") == "input_required":
            (key,) = result["inputRequests"]
            self.asked.append(result["inputRequests"][key]["params"]["message"])
            answers = {"inputResponses": {key: self.reply}, "requestState": result["requestState"]}
            result = self.send("tools/call", {**params, **answers})
        return result

    def send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self.stateless:
            era = {VERSION_KEY: STATELESS_VERSIONS[-1], CAPABILITIES_KEY: {"elicitation": {}}}
            params = {**params, "_meta": {**params.get("_meta", {}), **era}}
        number = f"mine-{len(self.transport.sent)}"
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.server.handle_message(from_json(to_json(request)))
        self.server.pending.wait(60)
        self.server.shut_down()
        return next(sent["result"] for sent in self.transport.sent if sent.get("id") == number)


class _Answering(MemoryTransport):
    def __init__(self, client: Client) -> None:
        super().__init__()
        self.client = client

    def send(self, data: bytes) -> None:
        super().send(data)
        message = self.sent[-1]
        if message.get("method") == "elicitation/create":
            self.client.asked.append(message["params"]["message"])
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": self.client.reply}
            threading.Thread(target=self.client.server.handle_message, args=(reply,)).start()


@pytest.mark.parametrize("stateless", [False, True], ids=["handshake", "stateless"])
@pytest.mark.parametrize("agrees", [True, False], ids=["yes", "no"])
@every_cell
def test_a_client_that_can_ask(
    policy: str, case: Case, verdict: Verdict, agrees: bool, stateless: bool
) -> None:
    ran: list[str] = []
    client = Client(make(policy, ran.append), stateless, agrees)
    result = client.call(case)
    assert len(client.asked) == int(verdict.asks_human)
    assert bool(ran) is (verdict.code is None or (verdict.asks_human and agrees))
    if not ran:
        error = result["_meta"][ENVELOPE_KEY]["error"]
        assert error["code"] == ("E2103" if verdict.asks_human else verdict.code)
