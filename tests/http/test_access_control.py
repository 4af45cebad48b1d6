"""Access control: hosts, origins, tokens, scopes, and the log of denials."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import HOST, post, send

from tooli import DefinitionError, Tooli
from tooli.errors import AuthError
from tooli.http import access_control
from tooli.http.asgi import Api
from tooli.stages import rate_limit
from tooli.storage.approval_store import ApprovalStore


def make_api(policy: str = "standard", **settings: Any) -> Api:
    app = Tooli("guarded", security_policy=policy, version="1")

    @app.command(auth=["files:read"])
    def read() -> str:
        """Needs a scope."""
        return "read"

    @app.command(auth=[])
    def anyone() -> str:
        """Needs no scope."""
        return "anyone"

    return app.asgi(mcp=False, **settings)


# ------------------------------------------------------------------ hosts


@pytest.mark.parametrize(
    "host", [b"localhost", b"LOCALHOST:1", b"127.0.0.1:8000", b"[::1]:80", b"[::1]", b"localhost."]
)
async def test_loopback_hosts_are_allowed_by_default(host: bytes) -> None:
    assert (await post(make_api(), "anyone", host=((b"host", host),))).status == 200


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
async def test_unknown_host_is_rejected_at_every_path(host: bytes, path: str) -> None:
    client = await send(make_api(token="t"), "POST", path, b"{}", host=((b"host", host),))
    assert (client.status, client.code) == (421, "E1421")


@pytest.mark.parametrize(
    ("header", "code", "settings"),
    [
        (
            (b"host", b"Shop.example:443"),
            "E1421",
            ("--allow-host shop.example,", 'allowed_hosts=["shop.example"]'),
        ),
        ((b"host", b'"x"; rm -rf'), "E1421", ("--allow-host NAME,", 'allowed_hosts=["NAME"]')),
        (
            (b"origin", b"https://Shop.example"),
            "E2403",
            ("--allow-origin https://shop.example,", 'allowed_origins=["https://shop.example"]'),
        ),
        (
            (b"origin", b'https://x"; rm -rf'),
            "E2403",
            ("--allow-origin https://NAME,", 'allowed_origins=["https://NAME"]'),
        ),
    ],
)
async def test_refusal_names_the_setting_that_allows_the_request(
    header: tuple[bytes, bytes], code: str, settings: tuple[str, str]
) -> None:
    hosts = (header,) if header[0] == b"host" else (HOST, header)
    client = await post(make_api(), "anyone", host=hosts)
    assert client.code == code
    for setting in settings:
        assert setting in client.json()["error"]["suggestion"]["fix"]


@pytest.mark.parametrize("host", [(), (HOST, HOST), (HOST, (b"host", b"evil.example"))])
async def test_missing_or_repeated_host_header_is_rejected(
    host: tuple[tuple[bytes, bytes], ...],
) -> None:
    client = await post(make_api(), "anyone", host=host)
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
async def test_only_allowed_hosts_are_accepted(
    allowed: list[str], host: bytes, status: int
) -> None:
    client = await post(make_api(allowed_hosts=allowed), "anyone", host=((b"host", host),))
    assert client.status == status


@pytest.mark.parametrize(
    ("host", "status"), [(b"10.0.0.7:80", 200), (b"[fe80::1]", 200), (b"a.example", 421)]
)
async def test_any_ip_address_can_be_allowed(host: bytes, status: int) -> None:
    client = await post(make_api(any_address=True), "anyone", host=((b"host", host),))
    assert client.status == status


async def test_number_of_accepted_hosts_is_limited() -> None:
    api = make_api()
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
async def test_only_the_origin_of_the_server_is_allowed_by_default(
    origin: bytes, status: int
) -> None:
    client = await post(make_api(), "anyone", {}, (b"origin", origin))
    assert client.status == status
    assert "access-control-allow-origin" not in client.headers


@pytest.mark.parametrize(
    ("site", "status"),
    [(b"same-origin", 200), (b"none", 200), (b"cross-site", 403), (b"same-site", 403)],
)
async def test_cross_site_post_without_an_origin_is_rejected(site: bytes, status: int) -> None:
    assert (await post(make_api(), "anyone", {}, (b"sec-fetch-site", site))).status == status


async def test_cross_site_get_is_allowed() -> None:
    client = await send(make_api(), "GET", "/health", None, (b"sec-fetch-site", b"cross-site"))
    assert client.status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
@pytest.mark.parametrize(("site", "status"), [(b"none", 202), (b"cross-site", 403)])
async def test_cross_site_get_of_a_mount_is_rejected(method: str, site: bytes, status: int) -> None:
    async def inner(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    api = Tooli("app").asgi(mcp=False, mounts={"/sse": inner})
    client = await send(api, method, "/sse", None, (b"sec-fetch-site", site))
    assert client.status == status


async def test_failures_have_cors_headers() -> None:
    api = make_api(allowed_origins=["https://app.example/"], token="t")
    client = await post(api, "anyone", {}, (b"origin", b"https://app.example"))
    assert client.status == 401
    assert client.headers["access-control-allow-origin"] == "https://app.example"
    assert client.headers["vary"] == "origin"


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (b"http://localhost", 200),
        (b"http://localhost:5173", 200),
        (b"http://LOCALHOST:5173", 200),
        (b"http://[::1]", 200),
        (b"http://[::1]:5173", 200),
        (b"https://localhost:5173", 403),
        (b"http://localhost:", 403),
        (b"http://localhost:*", 403),
        (b"http://localhost:5173/", 403),
        (b"http://localhost:5173@evil.example", 403),
        (b"http://localhost:5173.evil.example", 403),
        (b"http://localhost:evil.example", 403),
        (b"http://localhost:\xb2", 403),
        (b"http://localhost.evil.example:80", 403),
    ],
)
async def test_any_port_is_a_number(origin: bytes, status: int) -> None:
    api = make_api(allowed_origins=["http://localhost:*", "http://[::1]:*"])
    answer = await send(api, "GET", "/health", None, (b"origin", origin))
    assert answer.status == status


async def test_preflight_allows_only_allowed_origins() -> None:
    api = make_api(allowed_origins=["https://app.example"], token="t")
    preflight = [
        (b"access-control-request-method", b"POST"),
        (b"access-control-request-private-network", b"true"),
    ]
    allowed = await send(
        api, "OPTIONS", "/tools/anyone", None, (b"origin", b"https://app.example"), *preflight
    )
    assert allowed.status == 204
    assert "authorization" in allowed.headers["access-control-allow-headers"]
    assert allowed.headers["access-control-allow-private-network"] == "true"
    foreign = (b"origin", b"https://evil.example")
    refused = await send(api, "OPTIONS", "/tools/anyone", None, foreign, *preflight)
    assert refused.status == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]


async def test_repeated_origin_header_is_rejected() -> None:
    origin = (b"origin", b"http://localhost:8000")
    assert (await post(make_api(), "anyone", {}, origin, origin)).status == 400


# ------------------------------------------------------------------ tokens


def bearer(token: bytes) -> tuple[bytes, bytes]:
    return b"authorization", b"Bearer " + token


@pytest.mark.parametrize(
    "headers",
    [
        *([], [bearer(b"")], [bearer(b"wrong")], [bearer(b"secre")], [bearer(b"secrets")]),
        *([(b"authorization", b"Basic secret")], [(b"authorization", b"secret")]),
        *([bearer(b"\xff\xfe")], [(b"authorization", b"Bearer")], [(b"x-token", b"secret")]),
    ],
)
@pytest.mark.parametrize("path", ["/tools/anyone", "/tools", "/openapi.json", "/nope"])
async def test_request_without_the_token_is_rejected(
    headers: list[tuple[bytes, bytes]], path: str
) -> None:
    client = await send(make_api(token="secret"), "POST", path, b"{}", *headers)
    assert (client.status, client.code) == (401, "E2401")
    assert client.headers["www-authenticate"].startswith('Bearer realm="tooli"')
    assert "secret" not in client.body.decode()


@pytest.mark.parametrize("path", ["/health", "/"])
async def test_public_paths_need_no_token(path: str) -> None:
    assert (await send(make_api(token="secret"), "GET", path)).status in (200, 404)


async def test_repeated_authorization_header_is_rejected() -> None:
    client = await post(make_api(token="t"), "anyone", {}, bearer(b"t"), bearer(b"t"))
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
async def test_token_determines_the_scopes(
    settings: dict[str, Any], token: bytes, status: int
) -> None:
    client = await post(make_api("strict", **settings), "read", {}, bearer(token))
    assert client.status == status
    assert client.code in (None, "E2001")
    assert (await post(make_api("strict", **settings), "anyone", {}, bearer(token))).status == 200


async def test_each_token_has_its_own_rate_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate_limit, "_limiter", rate_limit.RateLimiter())
    monkeypatch.setenv("TOOLI_RATE_LIMIT", "1/hour")
    api = make_api(tokens={"a": ["x"], "b": ["x"]}, token="shared")
    for token in (b"a", b"b", b"shared"):
        assert (await post(api, "anyone", {}, bearer(token))).status == 200
        assert (await post(api, "anyone", {}, bearer(token))).code == "E4029"


async def test_approval_is_valid_for_one_token() -> None:
    app = Tooli("granted")
    app.command("push", requires_approval=True)(lambda: "pushed")
    api = app.asgi(mcp=False, tokens={"a": [], "b": []})
    assert (await post(api, "push", {}, bearer(b"a"))).code == "E2101"
    store = ApprovalStore()
    (request,) = store.list_pending("granted")
    assert store.decide(request, "granted")
    assert (await post(api, "push", {}, bearer(b"b"))).code == "E2101"
    assert (await post(api, "push", {}, bearer(b"a"))).json()["result"] == "pushed"


async def test_caller_without_a_token_has_no_scopes() -> None:
    assert (await post(make_api("strict"), "read")).code == "E2001"
    envelope = (await post(make_api(), "read")).json()
    assert envelope["meta"]["warnings"] == ["the caller lacks the scope files:read"]


async def test_caller_name_grants_no_scopes() -> None:
    client = await post(
        make_api("strict", tokens={"a": []}), "read", {}, bearer(b"a"), (b"tooli-caller", b"root")
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
def test_invalid_settings_are_rejected(settings: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        make_api(**settings)


# ------------------------------------------------------------------ log of denials


@pytest.mark.parametrize("policy", ["off", "standard", "strict"])
async def test_denials_are_logged(
    policy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    api = make_api(policy, token="secret")
    assert (await post(api, "anyone", {}, bearer(b"hunter2"))).status == 401
    assert (await post(api, "anyone", {}, (b"origin", b"http://evil.example"))).status == 403
    log = tmp_path / "audit" / "guarded.jsonl"
    if policy == "off":
        assert not log.exists()
        return
    text = log.read_text()
    entries = [json.loads(line) for line in text.splitlines()]
    assert [entry["event"] for entry in entries] == ["denial"] * 2
    assert [entry["code"] for entry in entries] == ["E2401", "E2403"]
    assert entries[0]["address"] == "network" and entries[0]["caller"]["surface"] == "http"
    assert "hunter2" not in text and "evil" not in text


async def test_number_of_logged_denials_is_limited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = [1000.0]
    monkeypatch.setattr(access_control, "monotonic", lambda: now[0])
    monkeypatch.setattr(access_control, "MAX_DENIALS_PER_MINUTE", 2)
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    api = make_api(token="secret")
    for _ in range(5):
        assert (await post(api, "anyone")).status == 401
    now[0] += 60
    assert (await post(api, "anyone")).status == 401
    lines = (tmp_path / "audit" / "guarded.jsonl").read_text().splitlines()
    assert [json.loads(line).get("not_logged") for line in lines] == [None, None, 3]


def test_denials_of_several_threads_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[int] = []
    monkeypatch.setattr(access_control, "MAX_DENIALS_PER_MINUTE", 50)
    monkeypatch.setattr(
        access_control, "log_event", lambda *_, not_logged=0, **__: logged.append(1 + not_logged)
    )
    clock = iter(range(0, 10**9, 1))
    monkeypatch.setattr(access_control, "monotonic", lambda: float(next(clock)))
    log = access_control.DenialLog(Tooli("denials"))
    error = AuthError("no", code="E2001")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def deny() -> None:
        for _ in range(2000):
            if log.should_record(error):
                log.record(error, "local")

    threads = [threading.Thread(target=deny) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert sum(logged) + log._skipped == 8000
