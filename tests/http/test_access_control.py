"""Access control: hosts, origins, tokens, scopes, and the log of denials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.http.asgi_client import HOST, post, send

from tooli import DefinitionError, Tooli
from tooli.http import access_control
from tooli.stages import rate_limit
from tooli.storage.approval_store import ApprovalStore


def make(policy: str = "standard", **settings):
    app = Tooli("guarded", security_policy=policy, version="1")

    @app.command(auth=["files:read"])
    def read() -> str:
        """Needs a scope."""
        return "read"

    @app.command(auth=[])
    def anyone() -> str:
        """Needs none."""
        return "anyone"

    return app.asgi(mcp=False, **settings)


# ------------------------------------------------------------------ hosts


@pytest.mark.parametrize(
    "host", [b"localhost", b"LOCALHOST:1", b"127.0.0.1:8000", b"[::1]:80", b"[::1]", b"localhost."]
)
async def test_this_machine_is_the_default(host: bytes) -> None:
    assert (await post(make(), "anyone", host=((b"host", host),))).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *(b"evil.example", b"localhost.evil.example", b"127.0.0.1.evil.example", b"", b" ", b":80"),
        *(b"localhost:x", b"localhost@evil", b"[::1", b"[::1]x", b"evil.example:localhost"),
        *(b"localhost,evil", b"localhost:80:80", b"\xff", b"localhost/evil", b"10.0.0.1"),
        *(b"127.0.0.2", b"0.0.0.0", b"localhost:8000\r\nx: y", b"::1"),
    ],
)
@pytest.mark.parametrize("path", ["/", "/health", "/tools/anyone", "/nope"])
async def test_another_host_is_refused_everywhere(host: bytes, path: str) -> None:
    client = await send(make(token="t"), "POST", path, b"{}", host=((b"host", host),))
    assert (client.status, client.code) == (421, "E1421")


@pytest.mark.parametrize("host", [(), (HOST, HOST), (HOST, (b"host", b"evil.example"))])
async def test_one_host_and_no_more(host) -> None:
    client = await post(make(), "anyone", host=host)
    assert (client.status, client.code) == (400, "E1400")


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        (["api.example"], b"api.example:443", 200),
        (["api.example"], b"localhost", 421),
        (["api.example:81"], b"api.example:81", 200),
        (["api.example:81"], b"api.example", 421),
        (["*.example"], b"a.b.example", 200),
        (["*.example"], b"example", 421),
        (["*.example"], b"evilexample", 421),
        (["*"], b"whatever.example", 200),
        (["*"], b"what ever", 421),
    ],
)
async def test_other_hosts_can_be_allowed(allowed, host: bytes, status: int) -> None:
    client = await post(make(allowed_hosts=allowed), "anyone", host=((b"host", host),))
    assert client.status == status


@pytest.mark.parametrize(
    ("host", "status"), [(b"10.0.0.7:80", 200), (b"[fe80::1]", 200), (b"a.example", 421)]
)
async def test_an_address_in_numbers_cannot_be_rebound(host: bytes, status: int) -> None:
    client = await post(make(any_address=True), "anyone", host=((b"host", host),))
    assert client.status == status


async def test_many_hosts_are_not_remembered_for_ever() -> None:
    api = make()
    for port in range(600):
        host = (b"host", b"localhost:%d" % port)
        assert (await post(api, "anyone", host=(host,))).status == 200
    assert len(api.access_control._accepted_hosts) <= 256


# ------------------------------------------------------------------ origins


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (b"http://localhost:8000", 200),
        (b"HTTP://LOCALHOST:8000", 200),
        (b"http://localhost:3000", 403),
        (b"http://evil.example", 403),
        (b"null", 403),
        (b"", 403),
        (b"localhost:8000", 403),
    ],
)
async def test_only_the_servers_own_page_may_call(origin: bytes, status: int) -> None:
    client = await post(make(), "anyone", {}, (b"origin", origin))
    assert client.status == status
    assert "access-control-allow-origin" not in client.headers


@pytest.mark.parametrize(
    ("site", "status"),
    [(b"same-origin", 200), (b"none", 200), (b"cross-site", 403), (b"same-site", 403)],
)
async def test_a_browser_that_names_no_origin_says_where_it_is(site: bytes, status: int) -> None:
    assert (await post(make(), "anyone", {}, (b"sec-fetch-site", site))).status == status


async def test_a_link_to_the_page_may_be_followed() -> None:
    client = await send(make(), "GET", "/health", None, (b"sec-fetch-site", b"cross-site"))
    assert client.status == 200


async def test_an_allowed_origin_is_told_so_in_failures_too() -> None:
    api = make(allowed_origins=["https://app.example/"], token="t")
    client = await post(api, "anyone", {}, (b"origin", b"https://app.example"))
    assert client.status == 401
    assert client.headers["access-control-allow-origin"] == "https://app.example"
    assert client.headers["vary"] == "origin"


async def test_a_preflight_is_answered_for_allowed_origins_alone() -> None:
    api = make(allowed_origins=["https://app.example"], token="t")
    asks = [
        (b"access-control-request-method", b"POST"),
        (b"access-control-request-private-network", b"true"),
    ]
    allowed = await send(
        api, "OPTIONS", "/tools/anyone", None, (b"origin", b"https://app.example"), *asks
    )
    assert allowed.status == 204
    assert "authorization" in allowed.headers["access-control-allow-headers"]
    assert allowed.headers["access-control-allow-private-network"] == "true"
    evil = (b"origin", b"https://evil.example")
    refused = await send(api, "OPTIONS", "/tools/anyone", None, evil, *asks)
    assert refused.status == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]


async def test_two_origins_contradict_each_other() -> None:
    origin = (b"origin", b"http://localhost:8000")
    assert (await post(make(), "anyone", {}, origin, origin)).status == 400


# ------------------------------------------------------------------ tokens


def bearer(token: bytes) -> tuple[bytes, bytes]:
    return b"authorization", b"Bearer " + token


@pytest.mark.parametrize(
    "header",
    [
        *([], [bearer(b"")], [bearer(b"wrong")], [bearer(b"secre")], [bearer(b"secrets")]),
        *([(b"authorization", b"Basic secret")], [(b"authorization", b"secret")]),
        *([bearer(b"\xff\xfe")], [(b"authorization", b"Bearer")], [(b"x-token", b"secret")]),
    ],
)
@pytest.mark.parametrize("path", ["/tools/anyone", "/tools", "/openapi.json", "/nope"])
async def test_nobody_comes_in_without_the_token(header, path: str) -> None:
    client = await send(make(token="secret"), "POST", path, b"{}", *header)
    assert (client.status, client.code) == (401, "E2401")
    assert client.headers["www-authenticate"].startswith('Bearer realm="tooli"')
    assert "secret" not in client.body.decode()


@pytest.mark.parametrize("path", ["/health", "/"])
async def test_what_is_public_needs_no_token(path: str) -> None:
    assert (await send(make(token="secret"), "GET", path)).status in (200, 404)


async def test_two_tokens_contradict_each_other() -> None:
    client = await post(make(token="t"), "anyone", {}, bearer(b"t"), bearer(b"t"))
    assert (client.status, client.code) == (400, "E1400")


@pytest.mark.parametrize(
    ("settings", "token", "status"),
    [
        ({"token": "t"}, b"t", 200),
        ({"token": "t", "scopes": ["files:read"]}, b"t", 200),
        ({"token": "t", "scopes": []}, b"t", 403),
        ({"tokens": {"a": ["files:read"], "b": ["x"], "c": None}}, b"a", 200),
        ({"tokens": {"a": ["files:read"], "b": ["x"], "c": None}}, b"b", 403),
        ({"tokens": {"a": ["files:read"], "b": ["x"], "c": None}}, b"c", 200),
        ({"tokens": {"a": ["x"]}, "token": "t"}, b"t", 200),
    ],
)
async def test_the_scopes_are_the_tokens(settings, token: bytes, status: int) -> None:
    client = await post(make("strict", **settings), "read", {}, bearer(token))
    assert client.status == status
    assert client.code in (None, "E2001")
    assert (await post(make("strict", **settings), "anyone", {}, bearer(token))).status == 200


async def test_each_of_several_tokens_is_a_caller_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate_limit, "_limiter", rate_limit.RateLimiter())
    monkeypatch.setenv("TOOLI_RATE_LIMIT", "1/hour")
    api = make(tokens={"a": ["x"], "b": ["x"]}, token="shared")
    for token in (b"a", b"b", b"shared"):
        assert (await post(api, "anyone", {}, bearer(token))).status == 200
        assert (await post(api, "anyone", {}, bearer(token))).code == "E4029"


async def test_a_grant_for_one_token_is_none_for_another() -> None:
    app = Tooli("granted")
    app.command("push", requires_approval=True)(lambda: "pushed")
    api = app.asgi(mcp=False, tokens={"a": [], "b": []})
    assert (await post(api, "push", {}, bearer(b"a"))).code == "E2101"
    store = ApprovalStore()
    (request,) = store.list_pending("granted")
    assert store.decide(request, "granted")
    assert (await post(api, "push", {}, bearer(b"b"))).code == "E2101"
    assert (await post(api, "push", {}, bearer(b"a"))).json()["result"] == "pushed"


async def test_without_tokens_nobody_holds_a_scope() -> None:
    assert (await post(make("strict"), "read")).code == "E2001"
    warned = (await post(make(), "read")).json()
    assert warned["meta"]["warnings"] == ["the caller lacks the scope files:read"]


async def test_a_callers_name_gives_no_scope() -> None:
    client = await post(
        make("strict", tokens={"a": []}), "read", {}, bearer(b"a"), (b"tooli-caller", b"root")
    )
    assert client.code == "E2001"


@pytest.mark.parametrize(
    "settings",
    [
        *({"token": ""}, {"token": "a b"}, {"token": "é"}, {"scopes": ["x"]}, {"tokens": {"": []}}),
        *({"tokens": {"t": "files:read"}}, {"allowed_hosts": "localhost"}),
        {"allowed_origins": "http://x"},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings) -> None:
    with pytest.raises(DefinitionError):
        make(**settings)


# ------------------------------------------------------------------ on record


@pytest.mark.parametrize("policy", ["off", "standard", "strict"])
async def test_who_is_not_let_in_is_on_record(
    policy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    api = make(policy, token="secret")
    assert (await post(api, "anyone", {}, bearer(b"hunter2"))).status == 401
    assert (await post(api, "anyone", {}, (b"origin", b"http://evil.example"))).status == 403
    log = tmp_path / "audit" / "guarded.jsonl"
    if policy == "off":
        assert not log.exists()
        return
    text = log.read_text()
    told = [json.loads(line) for line in text.splitlines()]
    assert [line["event"] for line in told] == ["denial"] * 2
    assert [line["code"] for line in told] == ["E2401", "E2403"]
    assert told[0]["address"] == "network" and told[0]["caller"]["surface"] == "http"
    assert "hunter2" not in text and "evil" not in text


async def test_nobody_fills_the_log_from_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = [1000.0]
    monkeypatch.setattr(access_control, "monotonic", lambda: now[0])
    monkeypatch.setattr(access_control, "MAX_DENIALS_PER_MINUTE", 2)
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    api = make(token="secret")
    for _ in range(5):
        assert (await post(api, "anyone")).status == 401
    now[0] += 60
    assert (await post(api, "anyone")).status == 401
    lines = (tmp_path / "audit" / "guarded.jsonl").read_text().splitlines()
    assert [json.loads(line).get("not_logged") for line in lines] == [None, None, 3]
