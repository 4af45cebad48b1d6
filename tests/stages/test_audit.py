"""The audit log: which events one policy logs, through every interface."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.stages.stage_calls import make_call, make_context, pass_through

from tooli import AuthError, InputError, SecretInput, Tooli
from tooli.annotations import Destructive
from tooli.core.call import Failed, Ok
from tooli.stages import audit as audit_stage
from tooli.storage import audit_reader
from tooli.storage.audit_log import (
    CallDescription,
    get_log_path,
    log_app_event,
    log_event,
)
from tooli.testing import Case, invoke
from tooli.testing.app_interfaces import interfaces

INTERFACES = [interface.name for interface in interfaces(Tooli("none"))]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "tooli"


def make_app(**settings) -> tuple[Tooli, list[str]]:
    app = Tooli("clerk", version="2.0", **settings)
    ran: list[str] = []

    @app.command(annotations=Destructive, auth=[])
    def wipe(path: str, fail: bool = False) -> str:
        """Wipe."""
        ran.append(path)
        if fail:
            raise InputError("no", code="E1000")
        return path

    @app.command(auth=[])
    def look(path: str) -> str:
        """Look."""
        ran.append(path)
        return path

    @app.command()
    def undeclared(path: str) -> str:
        """Declare no scopes."""
        ran.append(path)
        return path

    @app.command(requires_approval=True, auth=[])
    def launch(path: str) -> str:
        """Launch."""
        ran.append(path)
        return path

    return app, ran


def events() -> list[tuple]:
    lines = audit_reader.read_last_records(get_log_path("clerk"), 100)
    return [(one["event"], one.get("phase"), one.get("code")) for one in lines]


def send(app: Tooli, interface: str, tool: str, **options) -> dict:
    case = Case(tool, {"path": "x"}, options)
    return next(one for one in interfaces(app) if one.name == interface).send_case(case).envelope


RUN = [("destructive_run", "begins", None), ("destructive_run", "ends", None)]
PLAIN = [("run", "begins", None), ("run", "ends", None)]
REQUESTED = [("approval_requested", None, None), ("denial", None, "E2101")]
EXPECTED = {
    # policy: the calls, and the events that one of them adds to the log
    "off": [
        ("wipe", {"yes": True}, []),
        ("wipe", {}, []),
        ("look", {}, []),
        ("launch", {"yes": True}, []),
    ],
    "standard": [
        ("wipe", {"yes": True}, RUN),
        ("wipe", {}, [("denial", None, "E1010")]),
        ("wipe", {"yes": True, "dry_run": True}, []),
        ("look", {}, []),
        ("undeclared", {}, []),
        ("launch", {"yes": True}, REQUESTED),
    ],
    "strict": [
        ("wipe", {"yes": True}, RUN),
        ("wipe", {}, [("denial", None, "E1010")]),
        ("look", {}, PLAIN),
        ("look", {"dry_run": True}, []),
        ("undeclared", {}, [("denial", None, "E2002")]),
        ("launch", {"yes": True}, REQUESTED),
    ],
}


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("policy", EXPECTED)
def test_every_policy_logs_the_expected_events(policy: str, interface: str) -> None:
    app, _ = make_app(security_policy=policy)
    expected: list[tuple] = []
    for tool, options, added_events in EXPECTED[policy]:
        send(app, interface, tool, **options)
        expected += added_events
        assert events() == expected, (tool, options)
    assert audit_reader.verify_log(get_log_path("clerk")).fault is None


def test_fields_of_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    app, _ = make_app()
    app.options(yes=True, caller="langchain").call("wipe", path="x" * 500)
    begins, ends = audit_reader.read_last_records(get_log_path("clerk"), 5)
    assert begins["tool"] == "clerk.wipe"
    assert begins["version"] == "2.0"
    assert begins["policy"] == "standard"
    assert begins["override"] == ["yes"]
    assert begins["caller"] == {
        "surface": "python",
        "name": "langchain",
        "uid": os.getuid(),
        "pid": os.getpid(),
    }
    assert len(begins["arguments"]["path"]) < 300
    assert begins["arguments"]["fail"] is False
    assert begins["call"] == ends["call"]
    assert ends["ok"] is True
    assert type(ends["ms"]) is int


def test_failure_is_logged_with_its_code() -> None:
    app, _ = make_app()
    app.call("wipe", path="x", fail=True, yes=True)
    assert events() == [RUN[0], ("destructive_run", "ends", "E1000")]


def test_auth_error_of_the_function_is_not_a_denial() -> None:
    from tooli import AuthError

    app = Tooli("clerk")

    @app.command(annotations=Destructive)
    def wipe() -> None:
        raise AuthError("not you")

    app.call("wipe", yes=True)
    assert events() == [RUN[0], ("destructive_run", "ends", "E2000")]


def test_invalid_input_is_not_a_denial() -> None:
    app, _ = make_app(security_policy="strict")
    assert app.call("wipe").error.code == "E1002"
    assert events() == []


def test_secrets_are_not_logged(tmp_path: Path) -> None:
    app = Tooli("clerk")
    globals()["Login"] = type(
        "Login", (BaseModel,), {"__annotations__": {"user": str, "key": SecretInput[str]}}
    )

    @app.command(annotations=Destructive)
    def wipe(key: SecretInput[str], password: str, login: Login) -> str:  # noqa: F821
        return "done"

    arguments = {"key": "hush-1", "password": "hush-2", "login": {"user": "u", "key": "hush-3"}}
    app.call("wipe", **arguments)
    app.call("wipe", **arguments, yes=True)
    assert len(events()) == 3
    written = Path(get_log_path("clerk")).read_text()
    assert "hush" not in written
    assert json.loads(written.splitlines()[0])["arguments"]["password"] == "(hidden)"


def test_secret_in_another_argument_or_a_message_is_not_logged() -> None:
    app = Tooli("clerk")

    @app.command(annotations=Destructive)
    def push(key: SecretInput[str], url: str) -> str:
        raise AuthError(f"{url} was rejected")

    app.call("push", key="hush-1234", url="https://example.org/?k=hush-1234")
    app.call("push", key="hush-1234", url="https://example.org/?k=hush-1234", yes=True)
    assert "hush-1234" not in Path(get_log_path("clerk")).read_text()
    first = audit_reader.read_last_records(get_log_path("clerk"), 9)[0]
    assert first["arguments"]["url"] == "https://example.org/?k=***"


@pytest.mark.parametrize("reference", ["@FILE", "env:CLERK_KEY", "-"])
@pytest.mark.parametrize("flags", [("--yes",), ()], ids=["run", "denial"])
def test_secret_by_reference_is_known_before_the_first_line_is_logged(
    reference: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    app = Tooli("clerk")

    @app.command(annotations=Destructive)
    def push(key: SecretInput[str], url: str) -> str:
        return url

    file = tmp_path / "key"
    file.write_text("hush-1234")
    reference = reference.replace("FILE", str(file))
    argv = [reference, "https://example.org/?k=hush-1234", *flags, "--json"]
    invoke(app, *argv, input="hush-1234", env={"CLERK_KEY": "hush-1234"})
    records = audit_reader.read_last_records(get_log_path("clerk"), 9)
    assert [record["arguments"]["url"] for record in records] == ["https://example.org/?k=***"] * (
        2 if flags else 1
    )
    assert "hush-1234" not in Path(get_log_path("clerk")).read_text()


class Account(BaseModel):
    user: str
    password: str
    keys: list[dict[str, str]] = []


def test_nested_values_with_secret_names_are_hidden() -> None:
    app = Tooli("clerk")

    @app.command(annotations=Destructive, input_model=Account)
    def reset(account: Account) -> int:
        return 1

    @app.command(annotations=Destructive)
    def set_up(settings: dict[str, Any], pin_secret: int = 1234, many: int = 7) -> int:
        return 1

    app.call("reset", user="u", password="hush-1", keys=[{"api-key": "hush-2"}], yes=True)
    settings = {"db": [{"dbPassword": "hush-3", "host": "h", "token": None}]}
    app.call("set-up", settings=settings, yes=True)
    first, _, third, _ = audit_reader.read_last_records(get_log_path("clerk"), 9)
    assert "hush" not in Path(get_log_path("clerk")).read_text()
    assert first["arguments"]["account"]["user"] == "u"
    assert third["arguments"] == {
        "settings": {"db": [{"dbPassword": "(hidden)", "host": "h", "token": None}]},
        "pin_secret": "(hidden)",
        "many": 7,
    }


def test_secret_that_is_loaded_while_the_call_runs_is_hidden_in_its_last_line(
    state: Path,
) -> None:
    """Both lines of a run have one description, which is made again for a new secret."""
    from tooli.core.call import Call, Caller

    app, _ = make_app()
    call = Call(app.find("look"), {"path": "hush-hush"}, Caller("cli"), [], secrets=[])
    described = CallDescription(call)
    assert log_event("run", call, description=described, phase="begins")
    secret = SecretInput("hush-hush")
    assert call.secrets is not None
    call.secrets.append(secret)
    assert log_event("run", call, description=described, phase="ends")
    begins, ends = audit_reader.read_last_records(get_log_path("clerk"), 2)
    assert begins["arguments"] == {"path": "hush-hush"}
    assert ends["arguments"] == {"path": "***"}


def test_digest_of_a_call_depends_on_the_key(state: Path) -> None:
    """Without the key, a short secret could be found by brute force."""
    from tooli.core.call import Call, Caller
    from tooli.core.call_fingerprint import fingerprint, make_keyed_digest

    app, _ = make_app()
    call = Call(app.find("look"), {"path": "x"}, Caller("cli"), [])
    digests = [
        log_event("run", call)
        and audit_reader.read_last_records(get_log_path("clerk"), 1)[0]["call"]
        for _ in "ab"
    ]
    digest_secret = make_keyed_digest((state / "audit.key").read_bytes())
    assert digests[0] == digests[1] != fingerprint(call, digest_secret=digest_secret)
    (state / "audit.key").write_bytes(b"k" * 32)
    assert log_event("run", call)
    assert audit_reader.read_last_records(get_log_path("clerk"), 1)[0]["call"] != digests[0]


def test_stream_closed_early_is_logged() -> None:
    from collections.abc import Iterator

    app = Tooli("clerk")
    globals()["Iterator"] = Iterator

    @app.command(annotations=Destructive)
    def wipe() -> Iterator[int]:
        yield from range(10)

    items = app.stream("wipe", yes=True)
    assert next(items) == 0
    items.close()
    assert [one[1] for one in events()] == ["begins", "ends"]


# ------------------------------------------------------------------ a log that cannot be written


@pytest.fixture
def unwritable_log(state: Path) -> Path:
    state.mkdir()
    (state / "audit").write_text("not a folder")
    return state


@pytest.mark.parametrize("interface", INTERFACES)
def test_strict_rejects_calls_that_cannot_be_logged(interface: str, unwritable_log: Path) -> None:
    app, ran = make_app(security_policy="strict")
    for tool, options in (("wipe", {"yes": True}), ("look", {})):
        found = send(app, interface, tool, **options)
        assert found["error"]["code"] == "E4061"
        assert "audit_log" in found["error"]["suggestion"]["fix"]
    assert not ran


@pytest.mark.parametrize(
    "interface",
    [interface for interface in INTERFACES if interface in ("call", "cli", "http", "mcp")],
)
def test_standard_warns_if_a_call_cannot_be_logged(interface: str, unwritable_log: Path) -> None:
    app, ran = make_app()
    found = send(app, interface, "wipe", yes=True)
    assert found["ok"]
    assert [w for w in found["meta"]["warnings"] if "audit log" in w]
    assert ran == ["x"]


def test_denial_that_cannot_be_logged_is_returned(unwritable_log: Path) -> None:
    app, ran = make_app(security_policy="strict")
    assert app.call("wipe", path="x").error.code == "E1010"
    assert app.call("undeclared", path="x").error.code == "E2002"
    assert not ran


@pytest.mark.skipif(sys.platform == "win32", reason="flock")
def test_event_loop_waits_for_a_lock_once_with_a_short_timeout(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    from tooli.storage import audit_log

    app, ran = make_app()
    assert app.call("wipe", path="a", yes=True).ok
    timeouts: list[float] = []
    lock = audit_log._lock

    def record_timeout(file: int, timeout: float) -> None:
        timeouts.append(timeout)
        lock(file, 0.0)

    monkeypatch.setattr(audit_log, "_lock", record_timeout)
    with open(state / "audit" / "clerk.jsonl.head", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = asyncio.run(app.acall("wipe", path="b", yes=True))
        assert app.call("wipe", path="c", yes=True).ok
    assert [w for w in found.meta["warnings"] if "holds the lock" in w]
    assert timeouts == [
        audit_log.EVENT_LOOP_LOCK_TIMEOUT_SECONDS,
        0.0,
        audit_log.LOCK_TIMEOUT_SECONDS,
        0.0,
    ]
    assert ran == ["a", "b", "c"]


# ------------------------------------------------------------------ other events


def test_call_and_app_events_are_logged_unless_policy_is_off() -> None:
    from tooli.core.call import Call, Caller

    app, _ = make_app()
    call = Call(app.find("look"), {"path": "x"}, Caller("cli"), [])
    assert log_event("violation", call, used="fs:write:/x")
    assert log_app_event("clerk", "approval_granted", "strict", tool="clerk.launch") is None
    assert log_app_event("clerk", "approval_denied", "off", tool="clerk.launch") is None
    assert [one["event"] for one in audit_reader.read_last_records(get_log_path("clerk"), 5)] == [
        "violation",
        "approval_granted",
    ]
    assert not log_event("violation", call.replace(policy="off")) or len(events()) == 2


# ------------------------------------------------------------------ the commands


def test_audit_commands_show_and_verify_the_log() -> None:
    app, _ = make_app()
    app.options(yes=True).call("wipe", path="x")
    shown = invoke(app, "audit", "tail", "-n", "1", mode="json").envelope["result"]
    assert [(one["seq"], one["phase"]) for one in shown] == [(2, "ends")]
    assert invoke(app, "audit", "tail", "-n", "0", mode="json").envelope["result"] == []
    found = invoke(app, "audit", "verify", mode="json").envelope["result"]
    assert (found["lines"], found["whole"], found["sealed"]) == (2, True, True)
    log = Path(get_log_path("clerk"))
    log.write_bytes(log.read_bytes().replace(b'"path":"x"', b'"path":"y"', 1))
    done = invoke(app, "audit", "verify", mode="json")
    assert done.exit_code == 20
    error = done.envelope["error"]
    assert error["details"]["line"] == 1
    assert error["details"]["file"] == str(log)


def test_log_path_is_read_from_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_AUDIT_LOG", str(tmp_path / "other.jsonl"))
    app, _ = make_app()
    app.options(yes=True).call("wipe", path="x")
    assert (tmp_path / "other.jsonl").exists()
    assert len(invoke(app, "audit", "tail", mode="json").envelope["result"]) == 2
    from tooli.storage import audit_log

    audit_log._configured_paths.pop("clerk")


class TestIdentityDenials:
    """`record_identity_denials` logs calls that are denied because of the caller's token."""

    @pytest.fixture
    def logged(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        events: list[Any] = []
        monkeypatch.setattr(
            audit_stage, "log_event", lambda event, call, **fields: events.append((event, call))
        )
        return events

    def test_no_stage_without_a_token_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TOOLI_TOKEN_FILE", raising=False)
        assert audit_stage.record_identity_denials(make_context(make_call())) is None

    @pytest.mark.parametrize(
        ("outcome", "is_logged"),
        [
            (Failed(AuthError("no", code="E2004")), True),
            (Failed(InputError("no")), False),
            (Ok(1), False),
        ],
    )
    def test_denials_are_logged_without_arguments(
        self, outcome: Any, is_logged: bool, logged: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TOOLI_TOKEN_FILE", "/nowhere")
        call = make_call(lambda password: None, {"password": "hunter22"})
        stage = audit_stage.record_identity_denials(make_context(call))
        assert stage is not None
        assert pass_through(stage, call, outcome)[1] is outcome
        assert [(event, dict(logged_call.arguments)) for event, logged_call in logged] == (
            [("denial", {})] if is_logged else []
        )

    def test_denial_is_logged_once(
        self, logged: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TOOLI_TOKEN_FILE", "/nowhere")
        call, outcome = make_call(), Failed(AuthError("no", code="E2004"))
        stage = audit_stage.record_identity_denials(make_context(call))
        assert stage is not None
        pass_through(audit_stage.record_denials, call, outcome)
        pass_through(stage, call, outcome)
        assert len(logged) == 1
