"""Token introspection: the request, the answer, the cache, failures."""

from __future__ import annotations

import base64
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.policy.fake_issuer import FakeIssuer, reply

from tooli.policy import token_introspection
from tooli.policy.jwt_tokens import ExpectedClaims, IssuerError, MustWait, TokenRejected
from tooli.policy.token_introspection import TokenIntrospection, read_answer, read_client_secret
from tooli.storage.state_files import UnusableFile

EXPECTED = ExpectedClaims("https://issuer", ("https://shop",))


def answer(**changed: Any) -> dict[str, Any]:
    found = {
        "active": True,
        "sub": "ada",
        "scope": "a b",
        "aud": "https://shop",
        "exp": time.time() + 600,
        **changed,
    }
    return {name: value for name, value in found.items() if value is not None}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(token_introspection, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def endpoint(issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch) -> TokenIntrospection:
    issuer.routes["/introspect"] = answer()
    monkeypatch.setenv("SECRET", "p@ss:word")
    return TokenIntrospection(f"{issuer.url}/introspect", "a shop", "env:SECRET", EXPECTED)


def test_client_authenticates_itself(issuer: FakeIssuer, endpoint: TokenIntrospection) -> None:
    endpoint.check()
    found = endpoint.identify(b"to+ken", may_wait=True)
    assert (found.principal, found.scopes) == ("ada", {"a", "b"})
    method, _, headers, body = issuer.requests[-1]
    assert (method, body) == ("POST", b"token=to%2Bken&token_type_hint=access_token")
    credentials = base64.b64decode(headers["authorization"].removeprefix("Basic "))
    assert credentials == b"a%20shop:p%40ss%3Aword"


def test_public_client_sends_its_id(issuer: FakeIssuer) -> None:
    issuer.routes["/introspect"] = answer()
    url = f"{issuer.url}/introspect"
    TokenIntrospection(url, "shop", None, EXPECTED).identify(b"x", may_wait=True)
    TokenIntrospection(url, None, None, EXPECTED).identify(b"x", may_wait=True)
    assert [body for *_, body in issuer.requests] == [
        b"token=x&token_type_hint=access_token&client_id=shop",
        b"token=x&token_type_hint=access_token",
    ]
    assert "authorization" not in issuer.requests[-1][2]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"active": False}, "not active"),
        ({"active": "true"}, "not active"),
        ({"active": 1}, "not active"),
        ({"active": None}, "not active"),
        ({"exp": 1}, "expired"),
        ({"exp": "soon"}, "invalid claim"),
        ({"nbf": time.time() + 6000}, "not valid yet"),
        ({"iss": "https://other"}, "another issuer"),
        ({"aud": None}, "another audience"),
        ({"aud": ["https://other"]}, "another audience"),
        ({"cnf": {"jkt": "x"}}, "bound to a key"),
        ({"sub": None}, "no sub"),
        ({"sub": ""}, "no sub"),
        ({"sub": 5}, "invalid claim"),
        ({"sub": "client:robot"}, "form of a client"),
        ({"sub": "client:robot", "client_id": "other"}, "form of a client"),
        ({"sub": "a\x00"}, "invalid subject"),
        ({"scope": {"a": 1}}, "unknown form"),
    ],
)
def test_other_answers_are_rejected(changed: Any, reason: str) -> None:
    with pytest.raises(TokenRejected, match=reason):
        read_answer(answer(**changed), EXPECTED)


def test_answer_may_be_short() -> None:
    found = read_answer({"active": True, "client_id": "robot"}, ExpectedClaims())
    assert (found.principal, found.scopes, found.expires_at) == ("client:robot", frozenset(), None)
    read_answer(answer(iss="https://issuer", nbf=time.time()), EXPECTED)


def test_answers_are_used_for_a_few_seconds(
    issuer: FakeIssuer, endpoint: TokenIntrospection, clock: list[float]
) -> None:
    with pytest.raises(MustWait):
        endpoint.identify(b"x", may_wait=False)
    for _ in range(3):
        assert endpoint.identify(b"x", may_wait=True).principal == "ada"
    assert len(issuer.requests) == 1
    issuer.routes["/introspect"] = {"active": False}  # revoked
    clock[0] += token_introspection.CACHE_SECONDS - 0.1
    assert endpoint.identify(b"x", may_wait=False).principal == "ada"
    clock[0] += 0.1
    with pytest.raises(TokenRejected, match="not active"):
        endpoint.identify(b"x", may_wait=True)
    with pytest.raises(TokenRejected, match="not active"):
        endpoint.identify(b"x", may_wait=False)
    assert len(issuer.requests) == 2


def test_cached_token_expires(issuer: FakeIssuer, endpoint: TokenIntrospection) -> None:
    issuer.routes["/introspect"] = answer(exp=time.time() - token_introspection.LEEWAY_SECONDS + 1)
    endpoint.identify(b"x", may_wait=True)
    (entry,) = endpoint._valid.values()
    endpoint._valid[next(iter(endpoint._valid))] = (entry[0], entry[1].replace(expires_at=1.0))
    with pytest.raises(TokenRejected, match="expired"):
        endpoint.identify(b"x", may_wait=False)


def test_cache_is_limited(
    issuer: FakeIssuer, endpoint: TokenIntrospection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_introspection, "MAX_CACHED", 3)
    endpoint.identify(b"good", may_wait=True)
    issuer.routes["/introspect"] = {"active": False}
    for number in range(10):
        with pytest.raises(TokenRejected):
            endpoint.identify(b"bad%d" % number, may_wait=True)
    assert len(endpoint._invalid) == 3
    assert endpoint.identify(b"good", may_wait=False).principal == "ada"


def test_no_token_is_accepted_while_the_server_fails(
    issuer: FakeIssuer, endpoint: TokenIntrospection, clock: list[float]
) -> None:
    issuer.routes["/introspect"] = lambda handler: reply(handler, 500)
    for _ in range(5):  # the server is not asked again and again
        with pytest.raises(IssuerError, match="500"):
            endpoint.identify(b"x", may_wait=True)
    assert len(issuer.requests) == 1
    issuer.routes["/introspect"] = answer()
    clock[0] += token_introspection.RETRY_SECONDS
    assert endpoint.identify(b"x", may_wait=True).principal == "ada"


@pytest.mark.parametrize("body", [b"[1]", b"oops", b'"x"', b"", b"[" * 1000])
def test_bad_answer_about_one_token_does_not_concern_the_others(
    issuer: FakeIssuer, endpoint: TokenIntrospection, clock: list[float], body: bytes
) -> None:
    """A caller who could cause such an answer made the server refuse all tokens for a second."""
    issuer.routes["/introspect"] = lambda handler: reply(handler, 200, body)
    with pytest.raises(IssuerError, match=r"the answer|did not answer"):
        endpoint.identify(b"bad", may_wait=True)
    issuer.routes["/introspect"] = answer()
    assert endpoint.identify(b"good", may_wait=True).principal == "ada"


def test_several_requests_with_one_token_ask_once(
    issuer: FakeIssuer, endpoint: TokenIntrospection
) -> None:
    started = threading.Event()

    def slow(handler: Any) -> None:
        started.wait(60)
        reply(handler, 200, json.dumps(answer()).encode())

    issuer.routes["/introspect"] = slow
    found: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(endpoint.identify(b"x", may_wait=True).principal)
        )
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    started.set()
    for thread in threads:
        thread.join()
    assert found == ["ada"] * 6
    assert len(issuer.requests) == 1
    assert endpoint._running == {}


# ------------------------------------------------------------------ the secret


def test_secret_is_in_a_variable_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "x y")
    assert read_client_secret("env:A_SECRET") == "x y"
    path = tmp_path / "secret"
    path.write_text("from a file\n")
    path.chmod(0o600)
    assert read_client_secret(f"@{path}") == "from a file"
    path.chmod(0o666)
    with pytest.raises(UnusableFile, match="every user"):
        read_client_secret(f"@{path}")
    path.chmod(0o600)
    path.write_bytes(b"\xff")
    with pytest.raises(UnusableFile, match="text"):
        read_client_secret(f"@{path}")
    for missing in ("env:NO_SUCH_SECRET", f"@{tmp_path}/none", f"@{tmp_path}"):
        with pytest.raises(UnusableFile):
            read_client_secret(missing)


def test_secret_that_disappears_is_a_failure(
    endpoint: TokenIntrospection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SECRET")
    with pytest.raises(IssuerError, match="introspection_secret"):
        endpoint.identify(b"x", may_wait=True)
    with pytest.raises(UnusableFile):
        endpoint.check()
