"""Under the policy `strict`, no interface shows what a caller may not use."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient
from tests.mcp.test_http_transport import ACCEPT, INITIALIZE, run_lifespan

from tooli import Tooli
from tooli.mcp import mcp_endpoint

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
APP = '''
from tooli import Tooli

app = Tooli("app", security_policy={policy!r})
secrets = Tooli("vault", help="The group of vaultopen.")
app.add_typer(secrets)


@app.command(auth=["read"])
def peek() -> str:
    """Look at everything."""
    return "tea"


@secrets.command(auth=["write"])
def vaultopen(thing: str) -> str:
    """Run vaultopen with a thing."""
    return thing


@app.command()
def vaultlost() -> str:
    """Run vaultlost."""
    return "x"


@app.command(auth=[], danger_level="forbidden")
def vaultnever() -> str:
    """Run vaultnever."""
    return "x"


@app.resource("app://vaultfile", auth=["write"])
def vaultfile() -> str:
    """Return vaultfile."""
    return "x"


@app.resource("app://vaultfiles/{{name}}", auth=["write"])
def vaultfiles(name: str) -> str:
    """Return vaultfiles."""
    return name


@app.prompt(auth=["write"])
def vaultask(thing: str) -> str:
    """Ask vaultask."""
    return thing


if __name__ == "__main__":
    app()
'''
TOKENS: dict[str, Any] = {
    "nobody": [],
    "reader": ["read"],
    "writer": ["read", "write"],
    "all": None,
}
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
OF_WRITERS = {
    "tools/list": b"vaultopen",
    "resources/list": b"vaultfile",
    "resources/templates/list": b"vaultfiles",
    "prompts/list": b"vaultask",
}
NEVER_SHOWN = (b"vaultlost", b"vaultnever")


def make_app(policy: str = "strict") -> Tooli:
    names: dict[str, Any] = {"__name__": "hidden_tools"}
    exec(APP.format(policy=policy), names)
    return names["app"]


async def rpc(api: Any, token: str | None, method: str, **params: Any) -> AsgiClient:
    """Send a request of the stateless version."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    headers = [HOST, JSON, ACCEPT, (b"mcp-protocol-version", b"2026-07-28")]
    headers.append((b"mcp-method", method.encode()))
    name = params.get("name", params.get("uri"))
    if name is not None:
        headers.append((b"mcp-name", name.encode()))
    if token is not None:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    client = AsgiClient(api)
    client.send_body(json.dumps(message).encode())
    await asyncio.wait_for(client.start("POST", "/mcp", headers), 120)
    return client


async def get(api: Any, token: str | None, path: str, method: str = "GET") -> AsgiClient:
    client = AsgiClient(api)
    client.send_body(b"{}" if method == "POST" else b"")
    headers = [HOST, *([JSON] if method == "POST" else [])]
    if token is not None:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    await client.start(method, path, headers)
    return client


# ------------------------------------------------------------------ MCP over HTTP


@pytest.mark.parametrize("token", TOKENS)
async def test_lists_of_mcp_follow_the_scopes(token: str) -> None:
    async with run_lifespan(make_app().asgi(tokens=TOKENS)) as api:
        for method in LISTS:
            answer = await rpc(api, token, method)
            assert answer.status == 200
            assert (OF_WRITERS[method] in answer.body) is (token in ("writer", "all"))
            assert not any([name in answer.body for name in NEVER_SHOWN])
            assert b'"cacheScope":"private"' in answer.body.replace(b" ", b"")
        tools = (await rpc(api, token, "tools/list")).body
        assert (b'"peek"' in tools) is (token != "nobody")


async def test_lists_of_a_session_follow_the_scopes() -> None:
    async with run_lifespan(make_app().asgi(tokens=TOKENS)) as api:
        for token in ("reader", "writer"):
            authorization = (b"authorization", f"Bearer {token}".encode())
            client = AsgiClient(api)
            client.send_body(json.dumps(INITIALIZE).encode())
            await client.start("POST", "/mcp", [HOST, JSON, ACCEPT, authorization])
            session = (b"mcp-session-id", client.headers["mcp-session-id"].encode())
            for method in LISTS:
                client = AsgiClient(api)
                message = {"jsonrpc": "2.0", "id": 2, "method": method, "params": {}}
                client.send_body(json.dumps(message).encode())
                await client.start("POST", "/mcp", [HOST, JSON, ACCEPT, authorization, session])
                assert (OF_WRITERS[method] in client.body) is (token == "writer")


@pytest.mark.parametrize("token", TOKENS)
async def test_search_and_skill_follow_the_scopes(token: str) -> None:
    app = make_app()
    mounts = {"/mcp": mcp_endpoint(app, deferred=True)}
    async with run_lifespan(app.asgi(tokens=TOKENS, mcp=False, mounts=mounts)) as api:
        is_writer = token in ("writer", "all")
        query = {"query": "vaultopen vaultlost vaultnever"}
        found = await rpc(api, token, "tools/call", name="search_tools", arguments=query)
        assert found.status == 200
        assert (b"vault_vaultopen" in found.body) is is_writer
        skill = await rpc(api, token, "resources/read", uri="skill://app/SKILL.md")
        assert skill.status == 200
        for name in OF_WRITERS.values():
            assert (name in skill.body) is is_writer
        for answer in (found, skill):
            assert not any([name in answer.body for name in NEVER_SHOWN])


async def test_errors_do_not_suggest_hidden_names() -> None:
    async with run_lifespan(make_app().asgi(tokens=TOKENS)) as api:
        answers = [
            await rpc(api, "reader", "tools/call", name="vault_vaultope"),
            await rpc(api, "reader", "tools/call", name="vault"),
            await rpc(api, "reader", "prompts/get", name="vaultas"),
            await get(api, "reader", "/tools/vault/vaultope", "POST"),
            await get(api, "reader", "/tools/vault", "POST"),
            await get(api, "reader", "/x/tools/vault/vaultopen"),
            await get(api, "reader", "/nothing"),
        ]
        for answer in answers:
            assert answer.status in (200, 400, 404)
            for name in (b"vaultopen", b"vaultask", *NEVER_SHOWN):
                if name != b"vaultopen" or answer is not answers[5]:
                    assert name not in answer.body
        assert b"POST" not in answers[5].body


async def test_hidden_tool_answers_its_name_with_the_missing_scope() -> None:
    """A client that knows the name can request the scope. docs/auth.md says so."""
    async with run_lifespan(make_app().asgi(tokens=TOKENS)) as api:
        name = "vault_vaultopen"
        over_mcp = await rpc(api, "reader", "tools/call", name=name, arguments={"thing": "x"})
        over_http = await get(api, "reader", "/tools/vault/vaultopen", "POST")
        for answer in (over_mcp, over_http):
            assert answer.status == 403
            assert b"E2001" in answer.body
            assert 'scope="write read"' in answer.headers["www-authenticate"]
        never = await get(api, "reader", "/tools/vaultnever", "POST")
        assert (never.status, never.code) == (403, "E2000")


# ------------------------------------------------------------------ HTTP


@pytest.mark.parametrize("token", TOKENS)
async def test_documents_follow_the_scopes(token: str) -> None:
    async with run_lifespan(make_app().asgi(tokens=TOKENS)) as api:
        for path in ("/tools", "/openapi.json"):
            answer = await get(api, token, path)
            assert answer.status == 200
            is_writer = token in ("writer", "all")
            assert (b"vaultopen" in answer.body) is is_writer
            assert (b"vault" in answer.body) is is_writer  # neither the group nor the resources
            assert not any([name in answer.body for name in NEVER_SHOWN])
            assert answer.headers["cache-control"].startswith("private")
            assert "authorization" in answer.headers["vary"]
        for path in ("/", "/health"):
            assert b"vault" not in (await get(api, None, path)).body


async def test_anonymous_caller_sees_what_everyone_may_use() -> None:
    app = make_app()

    @app.command(auth=[])
    def hello() -> str:
        """Say hello."""
        return "hello"

    async with run_lifespan(app.asgi()) as api:
        for answer in (
            await get(api, None, "/tools"),
            await get(api, None, "/openapi.json"),
            await rpc(api, None, "tools/list"),
        ):
            assert b"hello" in answer.body
            assert b"vault" not in answer.body
            assert b"peek" not in answer.body


@pytest.mark.parametrize("policy", ["off", "standard"])
async def test_other_policies_show_everything(policy: str) -> None:
    async with run_lifespan(make_app(policy).asgi(tokens=TOKENS)) as api:
        for method, name in OF_WRITERS.items():
            assert name in (await rpc(api, "nobody", method)).body
        assert b"vaultopen" in (await get(api, "nobody", "/openapi.json")).body


# ------------------------------------------------------------------ stdio


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("uses_sdk", [False, True])
@pytest.mark.parametrize("token", [None, "reader", "writer", "wrong"])
def test_lists_over_stdio_follow_the_scopes(
    tmp_path: Path, token: str | None, uses_sdk: bool, stateless: bool
) -> None:
    path = tmp_path / "app.py"
    path.write_text(APP.format(policy="strict"))
    tokens = tmp_path / "tokens"
    lines = [
        f"{hashlib.sha256(name.encode()).hexdigest()} ali {' '.join(TOKENS[name])}"
        for name in ("reader", "writer")
    ]
    tokens.write_text("\n".join(lines))
    tokens.chmod(0o600)
    env = {"TOOLI_TOKENS": str(tokens), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    if token is not None:
        (tmp_path / "mine").write_text(token)
        (tmp_path / "mine").chmod(0o600)
        env["TOOLI_TOKEN_FILE"] = str(tmp_path / "mine")
    meta = {"_meta": META} if stateless else {}
    messages: list[dict[str, Any]] = [] if stateless else [INITIALIZE]
    if uses_sdk:  # a method that the SDK answers; it takes the connection over
        params = {
            "ref": {"type": "ref/prompt", "name": "vaultask"},
            "argument": {"name": "thing", "value": ""},
        }
        messages.append({"id": 50, "method": "completion/complete", "params": {**params, **meta}})
    messages += [
        {"id": number, "method": method, "params": meta}
        for number, method in enumerate(LISTS, start=100)
    ]
    text = "".join([json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages])
    done = subprocess.run(
        [sys.executable, path, "mcp", "serve"],
        input=text.encode(),
        capture_output=True,
        timeout=120,
        env=env,
        cwd=tmp_path,
    )
    answers = {a["id"]: json.dumps(a) for a in map(json.loads, done.stdout.splitlines())}
    for number, method in enumerate(LISTS, start=100):
        assert '"result"' in answers[number], answers[number]
        assert (OF_WRITERS[method].decode() in answers[number]) is (token == "writer")
        assert not any([name.decode() in answers[number] for name in NEVER_SHOWN])
    assert ('"peek"' in answers[100]) is (token in ("reader", "writer"))
