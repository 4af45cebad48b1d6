"""Tokens, rates and loops on the interfaces with many callers: real servers, real clients."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.integration.app_process import APPS, environment
from tests.integration.mcp.stdio_client import HANDSHAKE_VERSION, STATELESS_VERSION, connect
from tests.integration.mcp_http.http_process import Server, run_server

APP = APPS / "token_auth.py"
KEY = RSAKey.generate_key(2048)
ENVELOPE = "io.tooli/envelope"
pytestmark = pytest.mark.xdist_group("tokens")


def made(key: Any = KEY, alg: str = "RS256", **claims: Any) -> str:
    payload = {"sub": "ada", "exp": int(time.time()) + 600, "scope": "files:read", **claims}
    return jwt.encode({"alg": alg}, payload, key, algorithms=[alg])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("tokens")
    (home / "key.pem").write_bytes(KEY.as_pem(private=False))
    digest = hashlib.sha256(b"robot-token").hexdigest()
    (home / "tokens").write_text(f"{digest} robot files:read files:write\n")
    return home


def settings(files: Path, **more: str) -> dict[str, str]:
    return {
        "TOOLI_TOKEN_KEY": str(files / "key.pem"),
        "TOOLI_TOKENS": str(files / "tokens"),
        "TOOLI_SECURITY_POLICY": "strict",
        "TOOLI_STATE_DIR": str(files / "state"),
        **more,
    }


@pytest.fixture(scope="module")
def server(files: Path) -> Iterator[Server]:
    """HTTP, with MCP at /mcp; what is set for the server's own calls is not for its clients."""
    (files / "own").write_text("robot-token")
    own = {"TOOLI_TOKEN_FILE": str(files / "own")}
    with run_server(APP, interface=("api",), **settings(files, **own)) as running:
        yield running


def post(
    server: Server, tool: str, token: str | None = None, arguments: Any = None, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    line = http.client.HTTPConnection(*server.address, timeout=120)
    payload = {"Content-Type": "application/json", **headers}
    if token is not None:
        payload["Authorization"] = f"Bearer {token}"
    try:
        line.request("POST", f"/tools/{tool}", json.dumps(arguments or {}), payload)
        answer = line.getresponse()
        head = {name.lower(): value for name, value in answer.getheaders()}
        body = json.loads(answer.read())
        assert token is None or len(token) < 8 or token not in json.dumps(body) + str(head)
        return answer.status, body, head
    finally:
        line.close()


# ------------------------------------------------------------------ HTTP


def test_who_brings_a_token_is_known(server: Server) -> None:
    status, body, _ = post(server, "whoami", made())
    assert (status, body["result"]) == (200, {"principal": "ada", "scopes": ["files:read"]})
    status, body, _ = post(server, "write", "robot-token")
    assert (status, body["result"]) == (200, "written")


def test_a_missing_scope(server: Server) -> None:
    status, body, head = post(server, "write", made())
    assert (status, body["error"]["code"]) == (403, "E2001")
    assert 'error="insufficient_scope", scope="files:write"' in head["www-authenticate"]


@pytest.mark.parametrize(
    ("token", "code"),
    [
        (None, "E2401"),
        ("nonsense", "E2004"),
        (made(exp=1), "E2004"),
        (made(aud="other"), "E2004"),
        (made(RSAKey.generate_key(2048)), "E2004"),
        (made(ECKey.generate_key("P-256"), "ES256"), "E2004"),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJldmUiLCJleHAiOjk5OTk5OTk5OTl9.", "E2004"),
        ("x" * 30_000, "E2004"),
    ],
)
def test_tokens_that_do_not_hold(server: Server, token: str | None, code: str) -> None:
    for tool in ("anyone", "nowhere"):
        status, body, head = post(server, tool, token)
        assert (status, body["error"]["code"]) == (401, code)
        assert head["www-authenticate"].startswith('Bearer realm="tooli"')


def test_two_tokens_are_none(server: Server) -> None:
    lines = [
        "POST /tools/anyone HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {made()}",
        "Authorization: Bearer robot-token",
        "Content-Type: application/json",
        "Content-Length: 2",
        "",
        "{}",
    ]
    with socket.create_connection(server.address, timeout=120) as line:
        line.sendall("\r\n".join(lines).encode())
        assert line.recv(1 << 16).split()[1] == b"400"


def test_a_header_without_end(server: Server) -> None:
    with socket.create_connection(server.address, timeout=120) as line:
        line.sendall(b"POST /tools/anyone HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ")
        try:
            line.sendall(b"x" * (1 << 20))
            assert line.recv(1 << 16).split()[1:2] in ([b"400"], [b"431"], [])
        except OSError:
            pass  # it has hung up already
    assert post(server, "anyone", made())[0] == 200


def test_a_key_that_breaks_while_the_server_runs(files: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(KEY.as_pem(private=False))
    with run_server(
        APP, interface=("api",), **settings(files, TOOLI_TOKEN_KEY=str(key))
    ) as running:
        assert post(running, "whoami", made())[0] == 200
        key.write_text("broken")
        status, body, _ = post(running, "whoami", made())
        assert (status, body["error"]["code"]) == (503, "E4075")
        assert str(key) not in json.dumps(body)  # only the operator may see it
        assert post(running, "write", "robot-token")[0] == 200  # the other source still works
        fresh = RSAKey.generate_key(2048)
        key.write_bytes(fresh.as_pem(private=False))
        assert post(running, "whoami", made(fresh))[0] == 200
        assert post(running, "whoami", made())[0] == 401


@pytest.mark.parametrize("words", [("api", "serve"), ("mcp", "serve", "--transport", "http")])
@pytest.mark.parametrize("name", ["TOOLI_TOKEN_KEY", "TOOLI_TOKENS", "TOOLI_RATE_LIMIT"])
def test_a_server_that_could_not_verify_is_not_started(
    tmp_path: Path, words: tuple[str, ...], name: str
) -> None:
    (tmp_path / "broken").write_text("broken")
    env = {**os.environ, name: str(tmp_path / "broken")}
    command = [sys.executable, APP, *words, "--port", "0"]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=env, check=False
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert name[6:].lower() in ended.stdout + ended.stderr


def test_an_address_for_others_needs_no_other_token(files: Path) -> None:
    env = settings(files)
    with run_server(APP, "--host", "0.0.0.0", interface=("api",), **env) as running:
        here = Server(running.process, running.url.replace("0.0.0.0", "127.0.0.1"))
        assert post(here, "anyone")[0] == 401
        assert post(here, "anyone", made())[0] == 200


# ------------------------------------------------------------------ MCP over HTTP


def errors_of(result: Any) -> dict[str, Any]:
    assert result.is_error
    return result.meta[ENVELOPE]["error"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_mcp_clients_are_known_as_well(server: Server, mode: str) -> None:
    head = {"Authorization": f"Bearer {made()}"}
    async with httpx2.AsyncClient(headers=head) as line:
        wire = streamable_http_client(f"{server.url}/mcp", http_client=line)
        async with Client(wire, mode=mode) as client:
            result = await client.call_tool("whoami", {})
            told = {"principal": "ada", "scopes": ["files:read"]}
            assert result.structured_content in (told, {"result": told})
            assert errors_of(await client.call_tool("write", {}))["code"] == "E2001"


def test_mcp_without_a_token(server: Server) -> None:
    line = http.client.HTTPConnection(*server.address, timeout=120)
    for token in ("", "Bearer nonsense", f"Bearer {made(exp=1)}"):
        line.request("POST", "/mcp", "{}", {"Authorization": token} if token else {})
        answer = line.getresponse()
        answer.read()
        assert answer.status == 401
        assert answer.headers["www-authenticate"]
    line.close()


# ------------------------------------------------------------------ rates


def test_rates_are_counted_by_caller_and_command(files: Path) -> None:
    with run_server(
        APP, interface=("api",), **settings(files, TOOLI_RATE_LIMIT="3/hour")
    ) as running:
        for _ in range(3):
            assert post(running, "anyone", made())[0] == 200
        status, body, head = post(running, "anyone", made())
        error = body["error"]
        assert (status, error["code"], error["is_retryable"]) == (429, "E4029", True)
        assert error["suggestion"]["action"] == "retry_later"
        assert 3500 < error["details"]["retry_after"] <= 3600
        assert head["retry-after"] == str(error["details"]["retry_after"])
        name = {"Tooli-Session-Id": "another", "Tooli-Caller": "another"}
        assert post(running, "anyone", made(), **name)[0] == 429  # that is only a word of theirs
        assert post(running, "anyone", made(sub="eve"))[0] == 200
        assert post(running, "anyone", "robot-token")[0] == 200
        assert post(running, "find", made(), {"name": "there"})[0] == 200
        answers = [post(running, "rare", made())[0] for _ in range(3)]
        assert answers == [200, 200, 429]  # the command's own rate is the stricter one


@pytest.mark.parametrize("trusted, last", [({}, 429), ({"FORWARDED_ALLOW_IPS": "127.0.0.1"}, 200)])
def test_an_address_is_no_word_of_theirs(trusted: dict[str, str], last: int, files: Path) -> None:
    with run_server(APP, interface=("api",), TOOLI_STATE_DIR=str(files), **trusted) as running:
        messages = [{"X-Forwarded-For": f"10.0.0.{n}"} for n in range(3)]
        answers = [post(running, "rare", **forwarded)[0] for forwarded in messages]
        assert answers == [200, 200, last]


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
def test_rates_and_loops_over_stdio(version: str, tmp_path: Path) -> None:
    env = environment(HOME=str(tmp_path), TOOLI_STATE_DIR=str(tmp_path))
    with connect(APP, version, env=env) as client:
        results = [client.call("rare", {"word": str(i)}) for i in range(4)]
        assert [one["isError"] for one in results] == [False, False, True, True]
        error = results[-1]["_meta"][ENVELOPE]["error"]
        assert error["code"] == "E4029"
        assert error["details"]["retry_after"] > 0
        answers = [client.call("find", {"name": "x"})["_meta"][ENVELOPE]["error"] for _ in range(6)]
        assert [one["code"] for one in answers] == ["E3010"] * 4 + ["E4031"] * 2
        wrong = [client.call("find", {"nmae": "x"})["_meta"][ENVELOPE]["error"] for _ in range(6)]
        assert [one["code"] for one in wrong[4:]] == ["E4031"] * 2
        assert not client.call("find", {"name": "there"})["isError"]
        assert client.call("find", {"name": "x"})["_meta"][ENVELOPE]["error"]["code"] == "E3010"
    assert not (tmp_path / "loops").exists()


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
def test_the_token_of_a_client_over_stdio(version: str, files: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(made())
    token.chmod(0o600)
    text = {name: value for name, value in settings(files).items() if name != "TOOLI_TOKENS"}
    env = environment(HOME=str(tmp_path), TOOLI_TOKEN_FILE=str(token), **text)
    with connect(APP, version, env=env) as client:
        told = {"principal": "ada", "scopes": ["files:read"]}
        assert client.value("whoami") == told
        assert client.call("write")["_meta"][ENVELOPE]["error"]["code"] == "E2001"
        token.write_text("nonsense")
        assert client.call("whoami")["_meta"][ENVELOPE]["error"]["code"] == "E2004"
        token.write_text(made(sub="eve"))
        assert client.value("whoami")["principal"] == "eve"
        client.request("resources/list")  # from here on the SDK answers
        assert client.value("whoami")["principal"] == "eve"


# ------------------------------------------------------------------ loops


def test_loops_over_http(server: Server) -> None:
    def codes(times: int, token: str, **headers: str) -> list[str]:
        found = [post(server, "find", token, {"name": "x"}, **headers) for _ in range(times)]
        assert {(b["error"]["code"], s) for s, b, _ in found} <= {("E3010", 404), ("E4031", 429)}
        return [body["error"]["code"] for _, body, _ in found]

    assert codes(6, made(sub="looper")) == ["E3010"] * 4 + ["E4031"] * 2
    assert codes(1, made(sub="another")) == ["E3010"]
    assert codes(1, made(sub="looper"), **{"Tooli-Session-Id": "new"}) == ["E3010"]
    assert post(server, "find", made(sub="looper"), {"name": "there"})[0] == 200
    assert codes(1, made(sub="looper")) == ["E3010"]


def test_strangers_share_no_memory(files: Path) -> None:
    """Without a token and a session nobody knows who repeats himself."""
    with run_server(APP, interface=("api",), TOOLI_STATE_DIR=str(files)) as running:
        codes = [post(running, "find", None, {"name": "x"})[1]["error"]["code"] for _ in range(6)]
        assert codes == ["E3010"] * 6
        session = {"Tooli-Session-Id": "one"}
        messages = [post(running, "find", None, {"name": "x"}, **session) for _ in range(6)]
        assert [body["error"]["code"] for _, body, _ in messages][4:] == ["E4031"] * 2
