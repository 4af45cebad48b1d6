"""Attacks on a server that accepts the tokens of an authorization server."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest
from joserfc.jwk import OctKey
from tests.http.asgi_client import HOST, JSON, AsgiClient, Header
from tests.policy.fake_issuer import AUDIENCE, FakeIssuer, new_key, redirect, reply

from tooli import Context, Tooli
from tooli.http import access_control
from tooli.policy import issuer_keys, issuer_requests, token_introspection

KEY, OTHER = new_key(), new_key()


@pytest.fixture
def issuer() -> Iterator[FakeIssuer]:
    running = FakeIssuer()
    running.publish(KEY)
    yield running
    running.close()


def make_api(issuer: FakeIssuer, **settings: Any) -> Any:
    app = Tooli("vault", security_policy="strict")

    @app.command(auth=["vault:read"])
    def whoami(ctx: Context) -> str | None:
        """Return the principal of the caller."""
        return ctx.caller.principal

    settings = {"token_issuer": issuer.url, "resource_url": AUDIENCE, **settings}
    return app.asgi(mcp=False, **settings)


async def call(api: Any, *tokens: bytes, extra: tuple[Header, ...] = ()) -> AsgiClient:
    """Call the command with the header `Authorization`, once for each token."""
    client = AsgiClient(api)
    client.send_body(b"{}")
    headers = [(b"authorization", b"Bearer " + token) for token in tokens]
    await asyncio.wait_for(
        client.start("POST", "/tools/whoami", [HOST, JSON, *headers, *extra]), 120
    )
    return client


def b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def forged(issuer: FakeIssuer, header: dict[str, Any], sign: Any) -> bytes:
    """Return a token with a header of an attacker, and a signature over its parts."""
    payload = issuer.token(KEY).split(b".")[1]
    signed = b64(json.dumps(header).encode()) + b"." + payload
    return signed + b"." + b64(sign(signed))


def public_pem() -> bytes:
    return KEY.as_pem(private=False)


# ------------------------------------------------------------------ forged tokens


async def test_valid_token_is_accepted(issuer: FakeIssuer) -> None:
    answer = await call(make_api(issuer), issuer.token(KEY))
    assert (answer.status, answer.json()["result"]) == (200, "ada")


async def test_algorithm_of_a_forged_token_is_not_used(issuer: FakeIssuer) -> None:
    api = make_api(issuer)
    modulus = base64.urlsafe_b64decode(KEY.as_dict(private=False)["n"] + "==")
    for secret in (public_pem(), public_pem().strip(), modulus, b"", KEY.kid.encode()):
        for alg, digest in (("HS256", "sha256"), ("HS512", "sha512")):
            header = {"alg": alg, "typ": "at+jwt", "kid": KEY.kid}
            token = forged(issuer, header, partial(hmac.digest, secret, digest=digest))
            assert (await call(api, token)).status == 401
    for alg in (
        "none",
        "None",
        "NONE",
        "nOnE",
        "",
        None,
        5,
        ["RS256"],
        "RS256 ",
        "dir",
        "RSA-OAEP",
    ):
        for kid in ({"kid": KEY.kid}, {}):
            token = forged(issuer, {"alg": alg, "typ": "at+jwt", **kid}, lambda _: b"")
            assert (await call(api, token)).status == 401


async def test_secret_in_the_published_keys_verifies_nothing(issuer: FakeIssuer) -> None:
    """A server publishes an HMAC secret by mistake: everyone can read it."""
    secret = OctKey.generate_key(256)
    published = {**secret.as_dict(private=True), "kid": "shared", "alg": "HS256"}
    issuer.routes["/jwks"]["keys"].append(published)
    raw = base64.urlsafe_b64decode(published["k"] + "==")
    header = {"alg": "HS256", "typ": "at+jwt", "kid": "shared"}
    token = forged(issuer, header, lambda data: hmac.new(raw, data, hashlib.sha256).digest())
    api = make_api(issuer)
    assert (await call(api, token)).status == 401
    assert (await call(api, issuer.token(KEY))).status == 200


@pytest.mark.parametrize(
    "header",
    [
        {"jku": "http://127.0.0.1:9/evil"},
        {"x5u": "http://127.0.0.1:9/evil"},
        {"jwk": OTHER.as_dict(private=False)},
        {"kid": "../../jwks"},
        {"kid": "' OR 1=1 --"},
        {"kid": "x" * 3000},
        {"kid": None},
        {"kid": 5},
        {"kid": ["a"]},
        {"kid": {"a": 1}},
        {"crit": ["b64"], "b64": False},
    ],
)
async def test_header_does_not_choose_the_key(issuer: FakeIssuer, header: dict[str, Any]) -> None:
    def sign(data: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA256

        return OTHER.private_key.sign(data, PKCS1v15(), SHA256())

    head = {"alg": "RS256", "typ": "at+jwt", "kid": KEY.kid, **header}
    assert (await call(make_api(issuer), forged(issuer, head, sign))).status == 401
    assert {path.partition("?")[0] for path in issuer.paths()} <= {
        "/.well-known/oauth-authorization-server",
        "/jwks",
    }


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": None},
        {"exp": "9999999999"},
        {"nbf": time.time() + 6000},
        {"iat": time.time() + 6000},
        {"aud": None},
        {"aud": "https://other.example"},
        {"aud": f"{AUDIENCE}.evil.example"},
        {"aud": [f"{AUDIENCE}/other"]},
        {"iss": "https://other.example"},  # with the same subject
        {"iss": None},
        {"sub": None},
        {"sub": ["ada"]},
        {"cnf": {"jkt": "x"}},
    ],
)
async def test_other_claims_are_rejected(issuer: FakeIssuer, claims: dict[str, Any]) -> None:
    answer = await call(make_api(issuer), issuer.token(KEY, **claims))
    assert (answer.status, answer.code) == (401, "E2004")
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


async def test_token_of_another_issuer_is_rejected(issuer: FakeIssuer) -> None:
    """Another issuer has a subject of the same name, and its own key with the same id."""
    other = FakeIssuer()
    try:
        other.publish(OTHER)
        api = make_api(issuer)
        for header in ({}, {"kid": KEY.kid}):
            assert (await call(api, other.token(OTHER, header))).status == 401
            assert (await call(api, other.token(OTHER, header, iss=issuer.url))).status == 401
        assert other.requests == []
    finally:
        other.close()


async def test_token_with_another_purpose_is_rejected(issuer: FakeIssuer) -> None:
    api = make_api(issuer)
    for kind in ("logout+jwt", "secevent+jwt", "dpop+jwt"):
        assert (await call(api, issuer.token(KEY, {"typ": kind}))).status == 401
    # an ID token is for the client, not for this server
    assert (await call(api, issuer.token(KEY, {"typ": "JWT"}, aud="a-client"))).status == 401


# ------------------------------------------------------------------ headers


async def test_token_is_only_in_one_header(issuer: FakeIssuer) -> None:
    api, good = make_api(issuer), issuer.token(KEY)
    bad = issuer.token(OTHER)
    for tokens in ((good, bad), (bad, good), (good, good)):
        assert (await call(api, *tokens)).status == 400
    for text in (good + b", Bearer " + bad, bad + b", " + good, good + b" " + bad, good + b"\t"):
        assert (await call(api, text)).status in (200, 401)
        if text.strip() != good:
            assert (await call(api, text)).status == 401
    for name in (b"x-authorization", b"proxy-authorization", b"authorization_", b"cookie"):
        assert (await call(api, extra=((name, b"Bearer " + good),))).status == 401
    client = AsgiClient(api)
    client.send_body(json.dumps({"access_token": good.decode()}).encode())
    await client.start("POST", "/tools/whoami", [HOST, JSON], b"access_token=" + good)
    assert client.status == 401


async def test_host_does_not_choose_the_audience(issuer: FakeIssuer) -> None:
    """A token for another server is sent with the name of that server."""
    api = make_api(issuer, allowed_hosts=["*"])
    token = issuer.token(KEY, aud="http://evil.example")
    client = AsgiClient(api)
    client.send_body(b"{}")
    headers = [(b"host", b"evil.example"), JSON, (b"authorization", b"Bearer " + token)]
    await client.start("POST", "/tools/whoami", headers)
    assert client.status == 401


async def test_subject_cannot_be_that_of_a_static_token(issuer: FakeIssuer) -> None:
    api = make_api(issuer, tokens={"static": ["vault:read"]})
    principal = (await call(api, b"static")).json()["result"]
    assert principal.startswith("token:")
    assert (await call(api, issuer.token(KEY, sub=principal))).status == 401


# ------------------------------------------------------------------ the server of the keys


async def test_rotation_needs_no_restart(
    issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_keys, "RETRY_SECONDS", 0.0)
    api = make_api(issuer)
    assert (await call(api, issuer.token(KEY))).status == 200
    issuer.publish(OTHER)
    assert (await call(api, issuer.token(OTHER))).status == 200
    assert (await call(api, issuer.token(KEY))).status == 401


async def test_made_up_keys_do_not_flood_the_issuer(issuer: FakeIssuer) -> None:
    api = make_api(issuer)
    await call(api, issuer.token(KEY))
    before = len(issuer.requests)
    tokens = [issuer.token(KEY, {"kid": f"k{number}"}) for number in range(100)]
    statuses = {answer.status for answer in await asyncio.gather(*[call(api, t) for t in tokens])}
    assert statuses == {401}
    assert len(issuer.requests) == before


def hostile_routes(issuer: FakeIssuer) -> dict[str, Any]:
    key = KEY.as_dict(private=False)
    many = json.dumps({"keys": [{**key, "kid": str(number)} for number in range(65)]}).encode()
    huge = json.dumps({"keys": [key], "x": "x" * 300_000}).encode()
    return {
        "huge": lambda handler: reply(handler, 200, huge),
        "many keys": lambda handler: reply(handler, 200, many),
        "deep": lambda handler: reply(handler, 200, b"[" * 100_000),
        "html": lambda handler: reply(handler, 200, b"<html>"),
        "error": lambda handler: reply(handler, 500),
        "redirect": redirect("http://127.0.0.1:9/jwks"),
        "redirect to a file": redirect("file:///etc/passwd"),
        "loop": redirect("/jwks"),
    }


@pytest.mark.parametrize("name", [*hostile_routes(FakeIssuer.__new__(FakeIssuer))])
async def test_hostile_keys_are_not_used(
    issuer: FakeIssuer, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    issuer.routes["/jwks"] = hostile_routes(issuer)[name]
    api = make_api(issuer)
    token = issuer.token(KEY)
    for _ in range(5):
        answer = await call(api, token)
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert issuer.url.encode() not in answer.body  # the reason is in the log
    printed = capsys.readouterr().err
    assert "cannot be verified" in printed
    assert printed.count("\n") == 1  # one line for the same reason
    assert token.decode() not in printed
    assert issuer.paths().count("/jwks") <= 4  # at most the redirects of one attempt


async def test_slow_keys_do_not_block_the_server(
    issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_requests, "REQUEST_SECONDS", 60.0)
    waiting = asyncio.Event()
    loop = asyncio.get_running_loop()
    published = json.dumps(issuer.routes["/jwks"]).encode()
    answer_now = threading.Event()

    def slow(handler: Any) -> None:
        loop.call_soon_threadsafe(waiting.set)
        answer_now.wait(60)
        reply(handler, 200, published)

    issuer.routes["/jwks"] = slow
    api = make_api(issuer, tokens={"static": ["vault:read"]})
    calls = [asyncio.ensure_future(call(api, issuer.token(KEY))) for _ in range(40)]
    await asyncio.wait_for(waiting.wait(), 60)
    assert (await call(api, b"static")).status == 200  # the loop is free
    health = AsgiClient(api)
    health.send_body()
    await health.start("GET", "/health", [HOST])
    assert health.status == 200
    answer_now.set()
    assert {answer.status for answer in await asyncio.gather(*calls)} == {200}
    assert issuer.paths().count("/jwks") == 1


async def test_request_does_not_wait_forever(
    issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_control, "VERIFIER_TIMEOUT", 0.05)
    end = threading.Event()
    issuer.routes["/jwks"] = lambda handler: end.wait(60)
    assert (await call(make_api(issuer), issuer.token(KEY))).status == 503
    end.set()


# ------------------------------------------------------------------ introspection


@pytest.fixture
async def introspecting(issuer: FakeIssuer) -> AsyncIterator[Any]:
    issuer.routes["/introspect"] = {
        "active": True,
        "sub": "ada",
        "scope": "vault:read",
        "aud": AUDIENCE,
    }
    yield make_api(issuer, introspection_url=f"{issuer.url}/introspect")


async def test_revoked_token_is_accepted_for_a_few_seconds_at_most(
    issuer: FakeIssuer, introspecting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(token_introspection, "monotonic", lambda: now[0])
    assert (await call(introspecting, b"opaque")).status == 200
    issuer.routes["/introspect"] = {"active": False}
    assert (await call(introspecting, b"opaque")).status == 200
    now[0] += token_introspection.CACHE_SECONDS
    assert token_introspection.CACHE_SECONDS <= 10
    assert (await call(introspecting, b"opaque")).status == 401
    assert (await call(introspecting, b"opaque")).status == 401


async def test_introspection_fails_closed(issuer: FakeIssuer, introspecting: Any) -> None:
    for route in hostile_routes(issuer).values():
        issuer.routes["/introspect"] = route
        assert (await call(introspecting, b"opaque")).status == 503
    assert (await call(introspecting, b"opaque")).status == 503


async def test_refused_token_does_not_block_others(issuer: FakeIssuer, introspecting: Any) -> None:
    """Nobody can keep the server from asking about the tokens of others."""
    good = issuer.routes["/introspect"]
    for status in (400, 413, 422):
        issuer.routes["/introspect"] = partial(reply, status=status)
        assert (await call(introspecting, b"weird-%d" % status)).status == 503
        issuer.routes["/introspect"] = good
        assert (await call(introspecting, b"opaque-%d" % status)).status == 200


async def test_token_is_not_part_of_the_form(issuer: FakeIssuer, introspecting: Any) -> None:
    """A token cannot add parameters to the request for its introspection."""
    for token in (b"x&token=y", b"x%26token=y", b'x"', b"x;y", b"\xff", b"x,y", b"{}"):
        assert (await call(introspecting, token)).status == 401
    assert "/introspect" not in issuer.paths()
    assert (await call(introspecting, b"a+b/c==")).status == 200
    assert issuer.requests[-1][3].startswith(b"token=a%2Bb%2Fc%3D%3D&")


async def test_token_for_another_server_is_rejected(issuer: FakeIssuer, introspecting: Any) -> None:
    for audience in (None, "https://other.example", ["https://other.example"]):
        answer = {"active": True, "sub": "ada", "scope": "vault:read", "aud": audience}
        issuer.routes["/introspect"] = {k: v for k, v in answer.items() if v is not None}
        token = b"for" + hashlib.sha256(str(audience).encode()).hexdigest().encode()
        assert (await call(introspecting, token)).status == 401
