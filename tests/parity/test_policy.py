"""Every rule of the policy table has the same verdict on every interface, for each policy."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment, run_interactive
from tests.integration.app_process import read_envelope as only_envelope
from tests.integration.app_process import run as run_outside
from tests.parity.policy_app import CASES, COMMANDS, ESCAPES, make_app

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
from tooli.testing.app_interfaces import MemoryTransport, interfaces

APP = Path(__file__).parent / "policy_app.py"
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


def argv_of(case: Case) -> list[str]:
    """Return the command line of a case."""
    return [case.tool, *(["--yes"] if case.options else [])]


def test_every_rule_has_cases() -> None:
    assert CASES.keys() == RULES.keys()
    assert {case.tool for cases in CASES.values() for case in cases} == COMMANDS.keys()


EXPECTED_VERDICTS = {
    # rule: verdict under off, standard, strict; "?": a human may be asked instead
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


def test_rules_match_the_documented_verdicts() -> None:
    def describe(verdict: Verdict) -> str:
        if verdict.code is None:
            return "warns" if verdict.adds_warning else "runs"
        return verdict.code + "?" * verdict.asks_human

    assert {
        name: tuple(describe(rule.verdict_for(policy)) for policy in POLICIES)
        for name, rule in RULES.items()
    } == EXPECTED_VERDICTS


# ------------------------------------------------------------------ nobody can be asked


@every_cell
def test_verdict_applies_on_every_interface(policy: str, case: Case, verdict: Verdict) -> None:
    ran: list[str] = []
    app = make_app(policy, ran.append)
    answer = assert_parity(app, case)
    if verdict.code is None:
        ending = ESCAPES if case.tool == "escapes" and policy == "off" else ""
        assert answer["result"] == case.tool + ending
        assert bool(answer["meta"].get("warnings")) is verdict.adds_warning
        assert len(ran) == len(
            [interface for interface in interfaces(app) if interface.skip_reason(case) is None]
        )
    else:
        assert answer["error"]["code"] == verdict.code
        assert ran == []


@every_cell
def test_dry_run_does_not_run_the_command_on_any_interface(
    policy: str, case: Case, verdict: Verdict
) -> None:
    ran: list[str] = []
    options = {**case.options, "dry_run": True}
    answer = assert_parity(make_app(policy, ran.append), case.replace(options=options))
    assert ran == []
    if answer["ok"]:
        assert answer["meta"]["dry_run"] is True
    else:  # a caller who may not run the command may not plan it
        assert answer["error"]["code"] == verdict.code
        assert verdict.code in ("E2000", "E2001", "E2002")


class AppProcess:
    """The environment of an app in its own process, and whether its command ran."""

    def __init__(self, folder: Path, policy: str) -> None:
        self.record = folder / "record"
        self.env = environment(
            TERM="xterm-256color",
            APP_POLICY=policy,
            RUN_RECORD=str(self.record),
            TOOLI_STATE_DIR=str(folder / "state"),
        )

    @property
    def ran(self) -> bool:
        return self.record.exists()


@every_cell
def test_verdict_applies_without_a_terminal(
    policy: str, case: Case, verdict: Verdict, tmp_path: Path
) -> None:
    process = AppProcess(tmp_path, policy)
    done = run_outside(APP, *argv_of(case), "--json", env=process.env)
    found = only_envelope(done.out)
    assert found["ok"] is process.ran is (verdict.code is None)
    assert found.get("error", {}).get("code") == verdict.code
    assert done.err == b""


# ------------------------------------------------------------------ a user at a terminal

QUESTION = b"Run it? [y/N] "
TYPED_QUESTION = b"Type grave to run it: "


def question_of(case: Case) -> tuple[bytes, bytes]:
    return (TYPED_QUESTION, b"grave\n") if case.tool == "grave" else (QUESTION, b"y\n")


@at_a_terminal
@every_cell
def test_verdict_applies_at_a_terminal(
    policy: str, case: Case, verdict: Verdict, tmp_path: Path
) -> None:
    process = AppProcess(tmp_path, policy)
    answers = [question_of(case)] if verdict.asks_human else []
    done = run_interactive(APP, *argv_of(case), answers=answers, env=process.env)
    assert process.ran is (verdict.code is None or verdict.asks_human)
    if verdict.asks_human:
        assert f"guarded.{case.tool}".encode() in done.out.partition(answers[0][0])[0]
    else:
        assert QUESTION not in done.out
        assert TYPED_QUESTION not in done.out
    if not process.ran:
        assert verdict.code is not None
        assert verdict.code.encode() in done.out


@at_a_terminal
@pytest.mark.parametrize(
    ("tool", "awaited", "answer", "code", "exit_code"),
    [
        ("delete", QUESTION, b"n\n", b"E1010", 2),
        ("delete", QUESTION, b"\n", b"E1010", 2),
        ("delete", QUESTION, b"\x04", b"E1010", 2),
        ("grave", TYPED_QUESTION, b"y\n", b"E1010", 2),
        ("grave", TYPED_QUESTION, b"\x04", b"E1010", 2),
        ("approval", QUESTION, b"n\n", b"E2103", 101),
        ("human", QUESTION, b"no\n", b"E2103", 101),
    ],
)
def test_declined_command_does_not_run(
    tool: str, awaited: bytes, answer: bytes, code: bytes, exit_code: int, tmp_path: Path
) -> None:
    process = AppProcess(tmp_path, "standard")
    done = run_interactive(APP, tool, answers=[(awaited, answer)], env=process.env)
    assert (done.code, process.ran) == (exit_code, False)
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
def test_command_is_refused_if_the_user_must_not_be_asked(
    tool: str, flags: list[str], env: dict[str, str], tmp_path: Path
) -> None:
    process = AppProcess(tmp_path, "standard")
    done = run_interactive(APP, tool, *flags, env={**process.env, **env})
    assert not process.ran
    assert (b"E1010" if tool in ("delete", "grave") else b"E2101") in done.out


# ------------------------------------------------------------------ approval grants


@pytest.mark.parametrize("policy", POLICIES)
def test_grant_allows_one_run_on_each_interface(policy: str) -> None:
    from tooli.storage.approval_store import ApprovalStore

    ran: list[str] = []
    case, store = Case("approval"), ApprovalStore()
    for interface in interfaces(make_app(policy, ran.append)):
        ran.clear()
        first = _request_id(interface, case)
        assert first == _request_id(interface, case)
        (request,) = [one for one in store.list_pending("guarded") if one.id == first]
        assert store.decide(request, "granted")
        assert interface.send_case(case).envelope["ok"] is True, interface.name
        assert ran == ["approval"], interface.name
        again = _request_id(interface, case)
        assert again != first
        (request,) = [one for one in store.list_pending("guarded") if one.id == again]
        assert store.decide(request, "denied")
        assert interface.send_case(case).envelope["error"]["code"] == "E2103", interface.name
        assert ran == ["approval"], interface.name


def _request_id(interface: Any, case: Case) -> str:
    """Send a call that needs an approval; return the id of its request."""
    error = interface.send_case(case).envelope["error"]
    assert error["code"] == "E2101", interface.name
    return error["details"]["approval"]["id"]


# ------------------------------------------------------------------ the setting


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("flags", [[], ["--yes"]])
def test_setting_human_in_the_loop_requires_approval(
    policy: str, flags: list[str], tmp_path: Path
) -> None:
    process = AppProcess(tmp_path, policy)
    env = {**process.env, "TOOLI_HUMAN_IN_THE_LOOP": "true"}
    done = run_outside(APP, "delete", *flags, "--json", env=env)
    assert only_envelope(done.out)["error"]["code"] == "E2101"
    assert (done.code, process.ran) == (101, False)
    assert only_envelope(run_outside(APP, "critical", "--json", env=env).out)["ok"] is (
        policy != "strict"
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_setting_human_in_the_loop_requires_approval_on_every_interface(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_HUMAN_IN_THE_LOOP", "true")
    ran: list[str] = []
    answer = assert_parity(make_app(policy, ran.append), Case("delete", {}, {"yes": True}))
    assert answer["error"]["code"] == "E2101"
    assert ran == []


# ------------------------------------------------------------------ an MCP client that asks


class AskingClient:
    """An MCP client, with or without a handshake, that asks its user and gets one answer."""

    def __init__(self, app: Any, stateless: bool, agrees: bool) -> None:
        self.stateless = stateless
        self.asked: list[str] = []
        self.reply = {"action": "accept", "content": {"yes": agrees}}
        self.transport = _AnsweringTransport(self)
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
            stateless_meta = {
                VERSION_KEY: STATELESS_VERSIONS[-1],
                CAPABILITIES_KEY: {"elicitation": {}},
            }
            params = {**params, "_meta": {**params.get("_meta", {}), **stateless_meta}}
        request_id = f"request-{len(self.transport.sent)}"
        request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self.server.handle_message(from_json(to_json(request)))
        self.server.pending.wait(60)
        self.server.shut_down()
        return next(sent["result"] for sent in self.transport.sent if sent.get("id") == request_id)


class _AnsweringTransport(MemoryTransport):
    def __init__(self, client: AskingClient) -> None:
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
def test_mcp_client_is_asked_for_approval(
    policy: str, case: Case, verdict: Verdict, agrees: bool, stateless: bool
) -> None:
    ran: list[str] = []
    client = AskingClient(make_app(policy, ran.append), stateless, agrees)
    result = client.call(case)
    assert len(client.asked) == int(verdict.asks_human)
    assert bool(ran) is (verdict.code is None or (verdict.asks_human and agrees))
    if not ran:
        error = result["_meta"][ENVELOPE_KEY]["error"]
        assert error["code"] == ("E2103" if verdict.asks_human else verdict.code)
