"""The metadata of the resource server, and the challenges that name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient, post

from tooli import Tooli
from tooli.errors import DefinitionError, InputError
from tooli.http.asgi import Api
from tooli.http.protected_resource import WELL_KNOWN_PATH, valid_scopes

ISSUER = "https://issuer.example"
RESOURCE = "https://shop.example.com"


def make_api(**settings: Any) -> Api:
    app = Tooli("shop", security_policy="strict")

    @app.command(auth=["shop:read"])
    def peek() -> str:
        """Look."""
        return "tea"

    @app.command(auth=["shop:write", 'no "scope"'])
    def put() -> str:
        """Put."""
        return "put"

    @app.resource("shop://stock", auth=["shop:stock"])
    def stock() -> str:
        """Return the stock."""
        return "tea"

    settings = {"token_issuer": ISSUER, "resource_url": RESOURCE, **settings}
    return app.asgi(allowed_hosts=["*"], **settings)


async def get(api: Any, path: str, root: str = "", method: str = "GET") -> AsgiClient:
    client = AsgiClient(api)
    client.send_body()
    await client.start(method, path, [HOST], root=root)
    return client


async def test_metadata_names_the_issuer_and_the_scopes() -> None:
    found = await get(make_api(), WELL_KNOWN_PATH)
    assert (found.status, found.headers["content-type"]) == (200, "application/json")
    assert found.json() == {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["shop:read", "shop:stock", "shop:write"],
        "bearer_methods_supported": ["header"],
        "resource_name": "shop",
    }


@pytest.mark.parametrize(
    ("settings", "path", "root", "resource"),
    [
        ({}, "", "", RESOURCE),
        ({}, "/", "", RESOURCE),
        ({}, "/mcp", "", f"{RESOURCE}/mcp"),
        ({}, "/mcp/", "", f"{RESOURCE}/mcp"),
        ({"resource_url": f"{RESOURCE}/mcp"}, "/mcp", "", f"{RESOURCE}/mcp"),
        ({"resource_url": f"{RESOURCE}/shop/"}, "/mcp", "/shop", f"{RESOURCE}/shop/mcp"),
        ({"resource_url": None}, "/mcp", "", "http://localhost:8000/mcp"),
        ({"resource_url": None}, "/mcp", "/shop", "http://localhost:8000/shop/mcp"),
        ({"resource_url": None}, "/shop/mcp", "/shop", "http://localhost:8000/shop/mcp"),
        ({"resource_url": None, "root_path": "/shop"}, "", "", "http://localhost:8000/shop"),
        ({"mcp": False}, "", "", RESOURCE),
    ],
)
async def test_each_resource_has_its_own_metadata(
    settings: Any, path: str, root: str, resource: str
) -> None:
    if settings.get("resource_url", "") is None:
        settings = {"token_audience": "shop", **settings}
    found = await get(make_api(**settings), WELL_KNOWN_PATH + path, root)
    assert found.json()["resource"] == resource


async def test_metadata_is_below_a_mount_as_well() -> None:
    found = await get(
        make_api(resource_url=None, token_audience="shop"), "/shop" + WELL_KNOWN_PATH, "/shop"
    )
    assert found.json()["resource"] == "http://localhost:8000/shop"


@pytest.mark.parametrize("path", ["/other", "/mcp/other", "x"])
async def test_other_paths_have_no_metadata(path: str) -> None:
    found = await get(make_api(), WELL_KNOWN_PATH + path)
    assert (found.status, found.code) == (404, "E1404")


async def test_metadata_is_only_read() -> None:
    found = await get(make_api(), WELL_KNOWN_PATH, method="POST")
    assert (found.status, found.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


async def test_server_without_an_issuer_has_no_metadata() -> None:
    app = Tooli("shop")
    for settings in ({}, {"token": "secret"}, {"token": "secret", "token_issuer": "a name"}):
        found = await get(app.asgi(**settings), WELL_KNOWN_PATH)
        assert found.status == (401 if "token" in settings else 404)
        assert "resource_metadata" not in found.headers.get("www-authenticate", "")


# ------------------------------------------------------------------ challenges


async def challenge_of(api: Any, path: str, *headers: Any) -> str:
    client = AsgiClient(api)
    client.send_body(b"{}")
    await client.start("POST", path, [HOST, JSON, *headers])
    assert client.status in (401, 403)
    return client.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("path", "metadata"),
    [
        ("/tools/peek", WELL_KNOWN_PATH),
        ("/tools/nowhere", WELL_KNOWN_PATH),
        ("/mcp", f"{WELL_KNOWN_PATH}/mcp"),
        ("/mcp/x", f"{WELL_KNOWN_PATH}/mcp"),
        ("/mcpx", WELL_KNOWN_PATH),
    ],
)
async def test_challenge_names_the_metadata(path: str, metadata: str) -> None:
    expected = f'Bearer realm="tooli", resource_metadata="{RESOURCE}{metadata}"'
    assert await challenge_of(make_api(), path) == expected


async def test_challenge_names_the_problem_and_the_first_scopes() -> None:
    header = (b"authorization", b"Bearer nonsense")
    challenge = await challenge_of(make_api(token_scopes="shop:read a"), "/tools/peek", header)
    assert challenge == (
        'Bearer realm="tooli", error="invalid_token", error_description="The token is unknown.", '
        f'scope="shop:read a", resource_metadata="{RESOURCE}{WELL_KNOWN_PATH}"'
    )


async def test_missing_scope_keeps_the_scopes_of_the_token() -> None:
    api = make_api(tokens={"reader": ["shop:read", "unrelated"]})
    header = (b"authorization", b"Bearer reader")
    challenge = await challenge_of(api, "/tools/put", header)
    assert challenge == (
        'Bearer realm="tooli", error="insufficient_scope", '
        'error_description="The token lacks a scope.", scope="shop:write shop:read", '
        f'resource_metadata="{RESOURCE}{WELL_KNOWN_PATH}"'
    )


async def test_server_without_an_issuer_names_the_scope_only() -> None:
    app = Tooli("shop", security_policy="strict")

    @app.command(auth=["a"])
    def peek() -> str:
        return "tea"

    answer = await post(app.asgi(), "peek", {})
    assert answer.headers["www-authenticate"] == (
        'Bearer realm="tooli", error="insufficient_scope", '
        'error_description="The token lacks a scope.", scope="a"'
    )


def test_challenge_contains_only_scopes_that_a_header_can_contain() -> None:
    assert valid_scopes(["a", "b c", 'd"', "e\\", "\n", "é", "", "a", "f" * 101]) == ["a"]


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"resource_url": None}, InputError, "audience"),
        ({"token_issuer": None, "token_jwks_url": ISSUER}, InputError, "needs token_issuer"),
        ({"token_jwks_url": "http://other.example"}, DefinitionError, "https"),
        ({"introspection_secret": "hunter2"}, DefinitionError, "env:NAME"),
        (
            {"introspection_url": ISSUER, "introspection_secret": "env:NO_SUCH_VARIABLE"},
            InputError,
            "NO_SUCH_VARIABLE",
        ),
    ],
)
def test_incomplete_settings_are_refused(
    settings: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        make_api(**settings)
    assert "hunter2" not in str(caught.value)


def test_keys_of_a_file_and_of_a_url_exclude_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("a secret that is long enough for an HMAC")
    monkeypatch.setenv("TOOLI_TOKEN_KEY", str(tmp_path / "key"))
    with pytest.raises(InputError, match="both set"):
        make_api(token_jwks_url=f"{ISSUER}/jwks")


def test_repr_of_the_settings_has_no_secret() -> None:
    api = make_api(tokens={"hunter2": None})
    assert "hunter2" not in repr(api.settings)
