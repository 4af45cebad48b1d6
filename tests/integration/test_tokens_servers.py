"""Tokens, rate limits and repeated failures in real HTTP and MCP servers."""

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
from mcp.shared.exceptions import MCPError
from tests.integration.app_process import APPS, environment
from tests.integration.mcp.stdio_client import HANDSHAKE_VERSION, STATELESS_VERSION, connect
from tests.integration.mcp_http.http_process import Server, run_server

APP = APPS / "token_auth.py"
KEY = RSAKey.generate_key(2048)
ENVELOPE = "io.tooli/envelope"


def make_token(key: Any = KEY, alg: str = "RS256", **claims: Any) -> str:
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
    """Run the HTTP server, with MCP at /mcp. It does not pass its own token on to its clients."""
    (files / "own").write_text("robot-token")
    own = {"TOOLI_TOKEN_FILE": str(files / "own")}
    with run_server(APP, interface=("api",), **settings(files, **own)) as running:
        yield running


def post(
    server: Server, tool: str, token: str | None = None, arguments: Any = None, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    connection = http.client.HTTPConnection(*server.address, timeout=120)
    request_headers = {"Content-Type": "application/json", **headers}
    if token is not None:
        request_headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request("POST", f"/tools/{tool}", json.dumps(arguments or {}), request_headers)
        answer = connection.getresponse()
        answer_headers = {name.lower(): value for name, value in answer.getheaders()}
        body = json.loads(answer.read())
        assert (
            token is None or len(token) < 8 or token not in json.dumps(body) + str(answer_headers)
        )
        return answer.status, body, answer_headers
    finally:
        connection.close()


# ------------------------------------------------------------------ HTTP


def test_valid_token_sets_principal_and_scopes(server: Server) -> None:
    status, body, _ = post(server, "whoami", make_token())
    assert (status, body["result"]) == (200, {"principal": "ada", "scopes": ["files:read"]})
    status, body, _ = post(server, "write", "robot-token")
    assert (status, body["result"]) == (200, "written")


def test_missing_scope_is_forbidden(server: Server) -> None:
    status, body, headers = post(server, "write", make_token())
    assert (status, body["error"]["code"]) == (403, "E2001")
    assert 'error="insufficient_scope"' in headers["www-authenticate"]
    assert 'scope="files:write files:read"' in headers["www-authenticate"]


@pytest.mark.parametrize(
    ("token", "code"),
    [
        (None, "E2401"),
        ("nonsense", "E2004"),
        (make_token(exp=1), "E2004"),
        (make_token(aud="other"), "E2004"),
        (make_token(RSAKey.generate_key(2048)), "E2004"),
        (make_token(ECKey.generate_key("P-256"), "ES256"), "E2004"),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJldmUiLCJleHAiOjk5OTk5OTk5OTl9.", "E2004"),
        ("x" * 30_000, "E2004"),
    ],
)
def test_invalid_token_is_unauthorized(server: Server, token: str | None, code: str) -> None:
    for tool in ("anyone", "nowhere"):
        status, body, headers = post(server, tool, token)
        assert (status, body["error"]["code"]) == (401, code)
        assert headers["www-authenticate"].startswith('Bearer realm="tooli"')


def test_two_authorization_headers_are_rejected(server: Server) -> None:
    lines = [
        "POST /tools/anyone HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {make_token()}",
        "Authorization: Bearer robot-token",
        "Content-Type: application/json",
        "Content-Length: 2",
        "",
        "{}",
    ]
    with socket.create_connection(server.address, timeout=120) as connection:
        connection.sendall("\r\n".join(lines).encode())
        assert connection.recv(1 << 16).split()[1] == b"400"


def test_endless_header_does_not_block_the_server(server: Server) -> None:
    with socket.create_connection(server.address, timeout=120) as connection:
        connection.sendall(
            b"POST /tools/anyone HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
        )
        try:
            connection.sendall(b"x" * (1 << 20))
            assert connection.recv(1 << 16).split()[1:2] in ([b"400"], [b"431"], [])
        except OSError:
            pass  # the server has closed the connection
    assert post(server, "anyone", make_token())[0] == 200


def test_tokens_are_refused_while_the_key_is_invalid(files: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(KEY.as_pem(private=False))
    with run_server(
        APP, interface=("api",), **settings(files, TOOLI_TOKEN_KEY=str(key))
    ) as running:
        assert post(running, "whoami", make_token())[0] == 200
        key.write_text("broken")
        status, body, _ = post(running, "whoami", make_token())
        assert (status, body["error"]["code"]) == (503, "E4075")
        assert str(key) not in json.dumps(body)  # only the operator may see it
        assert post(running, "write", "robot-token")[0] == 200  # the other source still works
        new_key = RSAKey.generate_key(2048)
        key.write_bytes(new_key.as_pem(private=False))
        assert post(running, "whoami", make_token(new_key))[0] == 200
        assert post(running, "whoami", make_token())[0] == 401


@pytest.mark.parametrize("arguments", [("api", "serve"), ("mcp", "serve", "--transport", "http")])
@pytest.mark.parametrize("name", ["TOOLI_TOKEN_KEY", "TOOLI_TOKENS", "TOOLI_RATE_LIMIT"])
def test_server_does_not_start_with_invalid_settings(
    tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    (tmp_path / "broken").write_text("broken")
    env = {**os.environ, name: str(tmp_path / "broken")}
    command = [sys.executable, APP, *arguments, "--port", "0"]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=env, check=False
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert name[6:].lower() in ended.stdout + ended.stderr


def test_public_address_accepts_client_tokens(files: Path) -> None:
    env = settings(files)
    with run_server(APP, "--host", "0.0.0.0", interface=("api",), **env) as running:
        here = Server(running.process, running.url.replace("0.0.0.0", "127.0.0.1"))
        assert post(here, "anyone")[0] == 401
        assert post(here, "anyone", make_token())[0] == 200


# ------------------------------------------------------------------ MCP over HTTP


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_mcp_accepts_a_valid_token(server: Server, mode: str) -> None:
    headers = {"Authorization": f"Bearer {make_token()}"}
    async with httpx2.AsyncClient(headers=headers) as http_client:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http_client)
        async with Client(transport, mode=mode) as client:
            result = await client.call_tool("whoami", {})
            expected = {"principal": "ada", "scopes": ["files:read"]}
            assert result.structured_content in (expected, {"result": expected})
            with pytest.raises(MCPError, match="needs the scope files:write") as caught:
                await client.call_tool("write", {})
            assert caught.value.error.data[ENVELOPE]["error"]["code"] == "E2001"


def test_mcp_rejects_an_invalid_token(server: Server) -> None:
    connection = http.client.HTTPConnection(*server.address, timeout=120)
    for token in ("", "Bearer nonsense", f"Bearer {make_token(exp=1)}"):
        connection.request("POST", "/mcp", "{}", {"Authorization": token} if token else {})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 401
        assert answer.headers["www-authenticate"]
    connection.close()


# ------------------------------------------------------------------ rate limits


def test_rate_limit_applies_per_caller_and_command(files: Path) -> None:
    with run_server(
        APP, interface=("api",), **settings(files, TOOLI_RATE_LIMIT="3/hour")
    ) as running:
        for _ in range(3):
            assert post(running, "anyone", make_token())[0] == 200
        status, body, headers = post(running, "anyone", make_token())
        error = body["error"]
        assert (status, error["code"], error["is_retryable"]) == (429, "E4029", True)
        assert error["suggestion"]["action"] == "retry_later"
        assert 3500 < error["details"]["retry_after"] <= 3600
        assert headers["retry-after"] == str(error["details"]["retry_after"])
        headers = {"Tooli-Session-Id": "another", "Tooli-Caller": "another"}
        assert (
            post(running, "anyone", make_token(), **headers)[0] == 429
        )  # headers do not identify a caller
        assert post(running, "anyone", make_token(sub="eve"))[0] == 200
        assert post(running, "anyone", "robot-token")[0] == 200
        assert post(running, "find", make_token(), {"name": "there"})[0] == 200
        answers = [post(running, "rare", make_token())[0] for _ in range(3)]
        assert answers == [200, 200, 429]  # the limit of the command is stricter


@pytest.mark.parametrize(
    "variables, last", [({}, 429), ({"FORWARDED_ALLOW_IPS": "127.0.0.1"}, 200)]
)
def test_forwarded_address_counts_only_from_a_trusted_proxy(
    variables: dict[str, str], last: int, files: Path
) -> None:
    with run_server(APP, interface=("api",), TOOLI_STATE_DIR=str(files), **variables) as running:
        forwarded_headers = [{"X-Forwarded-For": f"10.0.0.{n}"} for n in range(3)]
        answers = [post(running, "rare", **headers)[0] for headers in forwarded_headers]
        assert answers == [200, 200, last]


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
def test_rate_limit_and_repeated_failures_are_refused_over_stdio(
    version: str, tmp_path: Path
) -> None:
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
def test_token_file_is_read_for_each_call_over_stdio(
    version: str, files: Path, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(make_token())
    token.chmod(0o600)
    variables = {name: value for name, value in settings(files).items() if name != "TOOLI_TOKENS"}
    env = environment(HOME=str(tmp_path), TOOLI_TOKEN_FILE=str(token), **variables)
    with connect(APP, version, env=env) as client:
        expected = {"principal": "ada", "scopes": ["files:read"]}
        assert client.value("whoami") == expected
        assert client.call("write")["_meta"][ENVELOPE]["error"]["code"] == "E2001"
        token.write_text("nonsense")
        assert client.call("whoami")["_meta"][ENVELOPE]["error"]["code"] == "E2004"
        token.write_text(make_token(sub="eve"))
        assert client.value("whoami")["principal"] == "eve"
        client.request("resources/list")  # from here on the SDK answers
        assert client.value("whoami")["principal"] == "eve"


# ------------------------------------------------------------------ repeated failures


def test_repeated_failures_are_refused_over_http(server: Server) -> None:
    def codes(times: int, token: str, **headers: str) -> list[str]:
        found = [post(server, "find", token, {"name": "x"}, **headers) for _ in range(times)]
        assert {(b["error"]["code"], s) for s, b, _ in found} <= {("E3010", 404), ("E4031", 429)}
        return [body["error"]["code"] for _, body, _ in found]

    assert codes(6, make_token(sub="looper")) == ["E3010"] * 4 + ["E4031"] * 2
    assert codes(1, make_token(sub="another")) == ["E3010"]
    assert codes(1, make_token(sub="looper"), **{"Tooli-Session-Id": "new"}) == ["E3010"]
    assert post(server, "find", make_token(sub="looper"), {"name": "there"})[0] == 200
    assert codes(1, make_token(sub="looper")) == ["E3010"]


def test_failures_of_anonymous_callers_are_not_counted(files: Path) -> None:
    """Failures are counted only for callers with a token or a session."""
    with run_server(APP, interface=("api",), TOOLI_STATE_DIR=str(files)) as running:
        codes = [post(running, "find", None, {"name": "x"})[1]["error"]["code"] for _ in range(6)]
        assert codes == ["E3010"] * 6
        session = {"Tooli-Session-Id": "one"}
        answers = [post(running, "find", None, {"name": "x"}, **session) for _ in range(6)]
        assert [body["error"]["code"] for _, body, _ in answers][4:] == ["E4031"] * 2
