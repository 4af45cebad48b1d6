"""MCP clients get their tokens from an authorization server: the SDKs for Python and TypeScript.

The authorization server is oidc-provider. The clients register, ask for the authorization of their
user (with PKCE), refresh their tokens, and request more scopes when a call needs them.
"""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import PROCESS_TIMEOUT
from tests.integration.mcp_http.http_process import Server
from tests.integration.node import SDK_1, SDK_2, environment_for_node, install, node
from tests.integration.oauth.processes import (
    REDIRECT_URI,
    AuthorizationServer,
    run_shop,
)
from tests.integration.oauth.python_client import Browser, Storage, connect

TYPESCRIPT_CLIENT = Path(__file__).with_name("typescript_client.mjs")


@pytest.fixture(scope="module", params=["jwt", "opaque"])
def shop(request: pytest.FixtureRequest) -> Iterator[tuple[Server, AuthorizationServer]]:
    """Run the shop. Its tokens are JWTs, or are verified by introspection."""
    with run_shop(request.param) as running:
        yield running


def send(
    server: Server, method: str, path: str, token: str | None = None, **arguments: Any
) -> tuple[int, Any, str]:
    """Send a request; return the status, the body and the challenge."""
    connection = http.client.HTTPConnection(*server.address, timeout=PROCESS_TIMEOUT)
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, path, json.dumps(arguments) if method == "POST" else None, headers)
    answer = connection.getresponse()
    body = json.loads(answer.read() or b"null")
    connection.close()
    return answer.status, body, answer.headers.get("www-authenticate", "")


# ------------------------------------------------------------------ clients of MCP


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_python_client(shop: tuple[Server, AuthorizationServer], mode: Any) -> None:
    storage, browser = Storage(), Browser()
    async with connect(f"{shop[0].url}/mcp", mode, storage, browser) as (client, auth, responses):

        async def call(name: str, **arguments: Any) -> Any:
            content = (await client.call_tool(name, arguments)).structured_content
            return content["result"] if mode == "legacy" and "result" in content else content

        assert await call("whoami") == {"principal": "ada", "scopes": ["shop:read"]}
        assert await call("peek") == "tea"
        assert storage.tokens is not None
        assert storage.tokens.scope == "shop:read"

        assert await call("put", thing="rice") == "rice"  # step-up
        assert (await call("whoami"))["scopes"] == ["shop:read", "shop:write"]
        asked, asked_again = browser.requested
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == f"{shop[0].url}/mcp"
        assert asked["scope"] == "shop:read offline_access"
        assert set(asked_again["scope"].split()) == {"shop:read", "shop:write", "offline_access"}

        before = storage.tokens.access_token
        auth.context.token_expiry_time = 1.0
        assert await call("peek") == "tea"
        assert storage.tokens.access_token != before
        assert len(browser.requested) == 2  # the user was not asked again

        statuses = [r.status_code for r in responses if r.request.url.path == "/mcp"]
        assert statuses.count(401) == 1
        assert statuses.count(403) == 1


@pytest.mark.parametrize(
    ("package", "mode"),
    [(SDK_1, "legacy"), (SDK_2, "legacy"), (SDK_2, "2026-07-28")],
    ids=["sdk-1", "sdk-2-handshake", "sdk-2-stateless"],
)
def test_typescript_client(
    shop: tuple[Server, AuthorizationServer], package: str, mode: str
) -> None:
    done = subprocess.run(
        [node(), TYPESCRIPT_CLIENT, install(package), mode, f"{shop[0].url}/mcp", REDIRECT_URI],
        capture_output=True,
        timeout=PROCESS_TIMEOUT,
        env=environment_for_node(),
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = json.loads(done.stdout)
    assert answers["whoami"] == {"principal": "ada", "scopes": ["shop:read"]}
    assert (answers["peek"], answers["put"], answers["afterRefresh"]) == ("tea", "rice", "tea")
    assert set(answers["scope"].split()) >= {"shop:read", "shop:write"}
    assert len(answers["requested"]) == 2
    assert answers["requested"][0]["code_challenge_method"] == "S256"
    assert answers["requested"][0]["resource"] == f"{shop[0].url}/mcp"
    assert answers["refresh"][0] == ["POST", "/mcp", 401]
    assert ["POST", "/token", 200] in answers["refresh"]
    assert ["POST", "/mcp", 403] in answers["statuses"]


# ------------------------------------------------------------------ clients of the HTTP API


def test_http_client(shop: tuple[Server, AuthorizationServer]) -> None:
    server, issuer = shop
    status, _, challenge = send(server, "POST", "/tools/peek")
    assert (status, 'scope="shop:read"' in challenge) == (401, True)
    url = challenge.partition('resource_metadata="')[2].partition('"')[0]
    assert url == f"{server.url}/.well-known/oauth-protected-resource"
    metadata = send(server, "GET", url.removeprefix(server.url))[1]
    assert metadata["authorization_servers"] == [issuer.url]

    token = issuer.robot_token("shop:read", resource=metadata["resource"])
    assert send(server, "POST", "/tools/peek", token)[1]["result"] == "tea"
    for path, arguments in (("put", {"thing": "x"}), ("rows", {})):
        status, body, challenge = send(server, "POST", f"/tools/{path}", token, **arguments)
        assert (status, body["error"]["code"]) == (403, "E2001")
        assert 'scope="shop:write shop:read"' in challenge
    more = issuer.robot_token("shop:read shop:write", resource=metadata["resource"])
    assert send(server, "POST", "/tools/put", more, thing="x")[1]["result"] == "x"


def test_token_for_another_server_is_rejected(shop: tuple[Server, AuthorizationServer]) -> None:
    server, issuer = shop
    token = issuer.robot_token("shop:read", resource="https://other.example")
    status, body, challenge = send(server, "POST", "/tools/peek", token)
    assert (status, body["error"]["code"]) == (401, "E2004")
    assert "another audience" in challenge


def test_keys_are_rotated_without_a_restart() -> None:
    with run_shop("jwt") as (server, issuer):
        old = issuer.robot_token("shop:read")
        assert send(server, "POST", "/tools/peek", old)[0] == 200
        issuer.tell("rotate")
        new = issuer.robot_token("shop:read")
        statuses = {send(server, "POST", "/tools/peek", old)[0]}
        deadline = 200
        while send(server, "POST", "/tools/peek", new)[0] != 200 and deadline:
            deadline -= 1  # unknown keys are looked for every few seconds
            subprocess.run(["sleep", "0.2"], check=True)
        assert deadline
        statuses.add(send(server, "POST", "/tools/peek", old)[0])
        assert statuses == {200, 401}


def test_revoked_token_is_rejected_after_a_few_seconds() -> None:
    with run_shop("opaque") as (server, issuer):
        token = issuer.robot_token("shop:read")
        assert send(server, "POST", "/tools/peek", token)[0] == 200
        issuer.post("/token/revocation", "robot", token=token)
        deadline = 100
        while send(server, "POST", "/tools/peek", token)[0] != 401 and deadline:
            deadline -= 1
            subprocess.run(["sleep", "0.2"], check=True)
        assert deadline
