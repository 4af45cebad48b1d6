"""Tokens and repeated failures on the command line, in real processes."""

from __future__ import annotations

import hashlib
import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey
from tests.integration.app_process import APPS, environment, run, run_on_terminal

APP = APPS / "token_auth.py"
KEY = ECKey.generate_key("P-256")


def make_token(**claims: Any) -> str:
    payload = {"sub": "ada", "exp": int(time.time()) + 600, "scope": "files:read", **claims}
    return jwt.encode({"alg": "ES256"}, payload, KEY, algorithms=["ES256"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "key.pem").write_bytes(KEY.as_pem(private=False))
    digest = hashlib.sha256(b"robot-token").hexdigest()
    (tmp_path / "tokens").write_text(f"# robots\n{digest} robot files:read files:write\n")
    return tmp_path


def call(home: Path, *argv: str, token: str | None = None, mode: int = 0o600, **env: Any) -> Any:
    variables = {
        "HOME": str(home),
        "TOOLI_STATE_DIR": str(home / "state"),
        "TOOLI_SECURITY_POLICY": "strict",
        **env,
    }
    if token is not None:
        (home / "token").write_text(token + "\n")
        (home / "token").chmod(mode)
        variables["TOOLI_TOKEN_FILE"] = str(home / "token")
    ended = run(APP, *argv, "--json", env=environment(**variables), cwd=home)
    answer = json.loads(ended.out)
    assert not (token or "").strip() or token not in ended.out.decode() + ended.err.decode()
    assert b"Traceback" not in ended.err
    return ended.code, answer


def key_settings(home: Path, **more: str) -> dict[str, str]:
    """Return the variables that select the public key."""
    return {"TOOLI_TOKEN_KEY": str(home / "key.pem"), **more}


def test_token_grants_only_its_scopes(home: Path) -> None:
    code, answer = call(home, "whoami", token=make_token(), **key_settings(home))
    assert (code, answer["result"]) == (0, {"principal": "ada", "scopes": ["files:read"]})
    code, answer = call(home, "write", token=make_token(), **key_settings(home))
    assert (code, answer["error"]["code"]) == (30, "E2001")
    assert answer["error"]["details"] == {"missing_scopes": ["files:write"]}
    code, answer = call(home, "whoami", **key_settings(home))
    assert (code, answer["error"]["code"]) == (30, "E2001")


def test_token_in_the_token_list_is_accepted(home: Path) -> None:
    env = {"TOOLI_TOKENS": str(home / "tokens")}
    code, answer = call(home, "write", token="robot-token", **env)
    assert (code, answer["result"]) == (0, "written")
    code, answer = call(home, "whoami", token="robot-token", **env)
    assert answer["result"]["principal"] == "robot"


@pytest.mark.parametrize(
    "token",
    [
        "nonsense",
        "a.b.c",
        make_token(exp=1),
        make_token(aud="other"),
        make_token() + "x",
        "x" * 20_000,
        " ",
    ],
)
def test_invalid_token_refuses_every_call(home: Path, token: str) -> None:
    for command, policy in (("whoami", "strict"), ("anyone", "standard")):
        env = key_settings(home, TOOLI_SECURITY_POLICY=policy)
        code, answer = call(home, command, token=token, **env)
        assert (code, answer["error"]["code"]) == (30, "E2004")


def test_standard_policy_warns_of_a_missing_scope(home: Path) -> None:
    env = key_settings(home, TOOLI_SECURITY_POLICY="standard")
    code, answer = call(home, "write", token=make_token(), **env)
    assert code == 0
    assert answer["meta"]["warnings"] == ["the caller lacks the scope files:write"]


def test_token_is_ignored_without_a_key(home: Path) -> None:
    code, answer = call(home, "whoami", token=make_token(), TOOLI_SECURITY_POLICY="standard")
    assert code == 0
    assert answer["result"]["principal"] is None
    assert "is ignored" in answer["meta"]["warnings"][0]
    code, answer = call(home, "whoami", token=make_token())
    assert (code, answer["error"]["code"]) == (30, "E2001")


def test_readable_token_file_adds_a_warning(home: Path) -> None:
    code, answer = call(home, "whoami", token=make_token(), mode=0o644, **key_settings(home))
    assert code == 0
    assert "chmod 600" in answer["meta"]["warnings"][0]


def test_missing_token_file_is_an_error(home: Path) -> None:
    for path in (home / "absent", home):
        env = key_settings(home, TOOLI_TOKEN_FILE=str(path))
        code, answer = call(home, "anyone", **env)
        assert (code, answer["error"]["code"]) == (30, "E2004")


def test_unknown_token_is_in_the_audit_log(home: Path) -> None:
    env = key_settings(home, TOOLI_STATE_DIR=str(home / "state"))
    code, _ = call(home, "anyone", token="nonsense", **env)
    assert code == 30
    (log,) = (home / "state" / "audit").glob("*.jsonl")
    (line,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert (line["event"], line["code"], line["arguments"]) == ("denial", "E2004", {})


def test_invalid_key_is_an_error(home: Path) -> None:
    (home / "key.pem").write_text("garbage")
    code, answer = call(home, "whoami", token=make_token(), **key_settings(home))
    assert (code, answer["error"]["code"]) == (2, "E1011")
    assert (
        "~/key.pem cannot be used" in answer["error"]["message"]
    )  # the strict policy shortens home directories


def test_environment_variables_do_not_override_the_users_key(home: Path) -> None:
    """The user's file sets a key. The token list and the key of the caller are ignored."""
    (home / ".config" / "tooli").mkdir(parents=True)
    user_file = home / ".config" / "tooli" / "config.yaml"
    user_file.write_text(f"token_key: {home / 'key.pem'}\n")
    env = {"TOOLI_TOKENS": str(home / "tokens")}
    code, answer = call(home, "write", token="robot-token", **env)
    assert (code, answer["error"]["code"]) == (30, "E2004")
    caller_key = ECKey.generate_key("P-256")
    (home / "own.pem").write_bytes(caller_key.as_pem(private=False))
    claims = {"sub": "eve", "exp": int(time.time()) + 60, "scope": "files:write"}
    forged = jwt.encode({"alg": "ES256"}, claims, caller_key, algorithms=["ES256"])
    code, answer = call(home, "write", token=forged, TOOLI_TOKEN_KEY=str(home / "own.pem"))
    assert (code, answer["error"]["code"]) == (30, "E2004")
    code, answer = call(home, "whoami", token=make_token())
    assert code == 0


def test_invalid_token_on_a_terminal_prints_no_traceback(home: Path) -> None:
    (home / "token").write_text("nonsense")
    env = environment(
        HOME=str(home),
        TERM="dumb",
        TOOLI_SECURITY_POLICY="strict",
        TOOLI_TOKEN_FILE=str(home / "token"),
        **key_settings(home),
    )
    ended = run_on_terminal(APP, "whoami", env=env)
    assert ended.code == 30
    assert b"Traceback" not in ended.out + ended.err
    assert b"The token is unknown" in ended.out + ended.err


# ------------------------------------------------------------------ repeated failures


def codes(home: Path, times: int, *argv: str, **env: str) -> list[str]:
    """Repeat a call; return the error codes, or "ok"."""
    found: list[str] = []
    for _ in range(times):
        _, answer = call(home, *argv, **env)
        found.append(answer["error"]["code"] if "error" in answer else "ok")
    return found


def test_repeated_failure_is_refused(home: Path) -> None:
    ran = home / "ran"
    env = {"TOOLI_SESSION_ID": "one", "RAN": str(ran)}
    errors: list[Any] = []
    for _ in range(8):
        code, answer = call(home, "find", "nothing", **env)
        errors.append(answer["error"])
        assert code == (10 if len(errors) < 5 else 75)
    assert [one["code"] for one in errors] == ["E3010"] * 4 + ["E4031"] * 4
    assert ran.read_text() == "...."  # it was not run again
    assert [one.get("details", {}).get("repeated") for one in errors] == [None, None, *range(3, 9)]
    assert "failed 3 times" in errors[2]["suggestion"]["fix"]
    assert errors[4]["details"]["error"] == {"code": "E3010", "message": "There is no nothing."}
    assert errors[4]["is_retryable"] is False
    assert [one["suggestion"]["action"] for one in errors[4:]] == ["abort"] * 3 + ["ask_human"]
    (kept,) = (home / "state" / "loops").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.parametrize("session", ["séance", "Upper", "a/b", "x" * 60, "x" * 61])
def test_failures_are_counted_for_every_session_name(home: Path, session: str) -> None:
    assert codes(home, 5, "find", "nothing", TOOLI_SESSION_ID=session)[-1] == "E4031"


def test_success_or_other_arguments_reset_the_failure_count(home: Path) -> None:
    env = {"TOOLI_SESSION_ID": "one"}
    assert codes(home, 5, "find", "nothing", **env)[-1] == "E4031"
    assert codes(home, 1, "find", "nothing", TOOLI_SESSION_ID="two") == ["E3010"]
    assert codes(home, 1, "find", "other", **env) == ["E3010"]  # a changed argument
    assert codes(home, 1, "find", "nothing", **env) == ["E3010"]
    assert codes(home, 5, "find", "nothing", **env)[-1] == "E4031"
    assert codes(home, 1, "find", "there", **env) == ["ok"]
    assert not list((home / "state" / "loops").glob("as-one*"))
    assert codes(home, 1, "find", "nothing", **env) == ["E3010"]
    assert codes(home, 5, "find", "nothing", **env)[-1] == "E4031"
    assert codes(home, 1, "find", "nothing", "--dry-run", **env) == ["ok"]


def test_input_errors_are_counted(home: Path) -> None:
    env = {"TOOLI_SESSION_ID": "one"}
    found = codes(home, 6, "find", "--nmae", "x", **env)
    assert found[:4] == [found[0]] * 4
    assert found[0].startswith("E1")
    assert found[4:] == ["E4031"] * 2


def test_repeated_failures_are_counted_per_agent_session(home: Path) -> None:
    env = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s"}
    assert codes(home, 5, "find", "nothing", **env)[-1] == "E4031"
    assert codes(home, 1, "find", "there", **env) == ["ok"]
    assert codes(home, 1, "find", "nothing", **env) == ["E3010"]
    assert codes(home, 6, "find", "nothing", CLAUDECODE="1") == ["E3010"] * 6  # unknown session
    assert codes(home, 6, "find", "nothing") == ["E3010"] * 6


def test_temporary_failures_are_not_refused(home: Path) -> None:
    env = {"TOOLI_SESSION_ID": "one"}
    answers = [call(home, "busy", **env)[1]["error"] for _ in range(7)]
    assert {one["code"] for one in answers} == {"E4075"}
    assert [one.get("details", {}).get("retry_after") for one in answers][2:] == [2, 4, 8, 16, 32]
    assert answers[-1]["suggestion"]["action"] == "retry_later"


def test_changed_input_file_is_not_a_repetition(home: Path) -> None:
    env = {"TOOLI_SESSION_ID": "one"}
    found: list[str] = []
    for content in ("a", "bb", "ccc", "dddd", "eeeee", "ffffff"):
        (home / "input").write_text(content)
        found += codes(home, 1, "read", "input", **env)
    assert found == ["E3010"] * 6
    assert codes(home, 6, "read", "-", **env) == ["E3010"] * 6  # the content of a pipe is unknown


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"token-auth.find": 1}', b"\xff" * 99, None]
)
def test_unreadable_failure_history_is_ignored(home: Path, content: bytes | None) -> None:
    folder = home / "state" / "loops"
    folder.mkdir(parents=True)
    if content is None:
        (folder / "as-one").mkdir()
    else:
        (folder / "as-one").write_bytes(content)
    assert codes(home, 2, "find", "nothing", TOOLI_SESSION_ID="one") == ["E3010"] * 2


def test_calls_fail_if_the_state_folder_is_a_file(home: Path) -> None:
    (home / "state").write_text("no folder")
    found = codes(home, 6, "find", "nothing", TOOLI_SESSION_ID="one")
    assert found == ["E4061"] * 6  # the strict policy needs the audit log


def test_success_writes_no_history(home: Path) -> None:
    call(home, "anyone", TOOLI_SESSION_ID="one")
    assert not (home / "state" / "loops").exists()
