"""Keys of an authorization server: discovery, rotation, age, failures."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from tests.policy.fake_issuer import FakeIssuer, new_key, redirect, reply

from tooli.policy import issuer_keys
from tooli.policy.issuer_keys import IssuerKeys, metadata_urls
from tooli.policy.jwt_tokens import IssuerError, MustWait

OLD, NEW = new_key(), new_key()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the current time as a list, so that a test can change it."""
    now = [1000.0]
    monkeypatch.setattr(issuer_keys, "monotonic", lambda: now[0])
    return now


def ids(keys: Any) -> list[str]:
    return [key.key_id for key in keys]


def failure_of(keys: IssuerKeys) -> str:
    with pytest.raises(IssuerError) as caught:
        keys.get("x", may_wait=True)
    return str(caught.value)


# ------------------------------------------------------------------ discovery


def test_keys_are_found_by_the_issuer(issuer: FakeIssuer) -> None:
    issuer.publish(OLD)
    keys = IssuerKeys(issuer.url, None)
    assert issuer.requests == []  # nothing is fetched before the first token
    with pytest.raises(MustWait):
        keys.get(OLD.kid, may_wait=False)
    assert ids(keys.get(OLD.kid, may_wait=True)) == [OLD.kid]
    assert ids(keys.get(OLD.kid, may_wait=False)) == [OLD.kid]
    assert issuer.paths() == ["/.well-known/oauth-authorization-server", "/jwks"]


def test_metadata_may_be_at_three_places(issuer: FakeIssuer) -> None:
    assert metadata_urls("https://x/a/b/") == [
        "https://x/.well-known/oauth-authorization-server/a/b",
        "https://x/.well-known/openid-configuration/a/b",
        "https://x/a/b/.well-known/openid-configuration",
    ]
    assert len(metadata_urls("https://x")) == 2
    issuer.publish(OLD)
    metadata = issuer.routes.pop("/.well-known/oauth-authorization-server")
    name = f"{issuer.url}/realm"
    issuer.routes["/realm/.well-known/openid-configuration"] = {**metadata, "issuer": name}
    assert ids(IssuerKeys(name, None).get(OLD.kid, may_wait=True)) == [OLD.kid]


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"issuer": "https://other"}, "another issuer"),
        ({"issuer": None}, "another issuer"),
        ({"jwks_uri": None}, "no jwks_uri"),
        ({"jwks_uri": 5}, "no jwks_uri"),
        ({"jwks_uri": "http://issuer.example/jwks"}, "https"),
        ({"jwks_uri": "file:///etc/passwd"}, "no host"),
    ],
)
def test_wrong_metadata_is_refused(issuer: FakeIssuer, metadata: Any, reason: str) -> None:
    issuer.publish(OLD, **metadata)
    assert reason in failure_of(IssuerKeys(issuer.url, None))


def test_metadata_of_another_machine_does_not_name_this_one(
    issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = {"issuer": "https://issuer.example", "jwks_uri": f"{issuer.url}/jwks"}
    monkeypatch.setattr(issuer_keys, "request_json", lambda _: metadata)
    assert "names this machine" in failure_of(IssuerKeys("https://issuer.example", None))
    assert issuer.requests == []


def test_issuer_without_metadata_is_reported(issuer: FakeIssuer) -> None:
    assert "does not publish" in failure_of(IssuerKeys(issuer.url, None))


# ------------------------------------------------------------------ rotation


def test_unknown_key_is_looked_for_at_most_every_few_seconds(
    issuer: FakeIssuer, clock: list[float]
) -> None:
    issuer.publish(OLD)
    keys = IssuerKeys(issuer.url, f"{issuer.url}/jwks")
    keys.get(OLD.kid, may_wait=True)
    for number in range(50):  # made-up ids do not cause requests
        assert ids(keys.get(f"k{number}", may_wait=False)) == [OLD.kid]
    assert issuer.paths() == ["/jwks"]
    issuer.publish(NEW)
    clock[0] += issuer_keys.RETRY_SECONDS
    assert ids(keys.get(OLD.kid, may_wait=False)) == [OLD.kid]  # a known key does not wait
    assert ids(keys.get(NEW.kid, may_wait=True)) == [NEW.kid]
    assert issuer.paths() == ["/jwks"] * 2


def test_old_keys_are_fetched_in_the_background(issuer: FakeIssuer, clock: list[float]) -> None:
    issuer.publish(OLD)
    keys = IssuerKeys(None, f"{issuer.url}/jwks")
    keys.get(OLD.kid, may_wait=True)
    fetched, answer = threading.Event(), threading.Event()

    def slow(handler: Any) -> None:
        fetched.set()
        answer.wait(60)
        reply(handler, 500)

    issuer.routes["/jwks"] = slow
    clock[0] += issuer_keys.BACKGROUND_SECONDS
    for _ in range(5):
        assert ids(keys.get(OLD.kid, may_wait=False)) == [OLD.kid]
    assert fetched.wait(60)
    answer.set()
    with keys._lock:  # the request in the background has ended
        assert issuer.paths() == ["/jwks"] * 2


def test_removed_key_is_not_accepted_for_long(issuer: FakeIssuer, clock: list[float]) -> None:
    issuer.publish(OLD)
    keys = IssuerKeys(None, f"{issuer.url}/jwks")
    keys.get(OLD.kid, may_wait=True)
    issuer.publish(NEW)
    clock[0] += issuer_keys.MAX_AGE_SECONDS
    with pytest.raises(MustWait):
        keys.get(OLD.kid, may_wait=False)
    assert ids(keys.get(OLD.kid, may_wait=True)) == [NEW.kid]


def test_keys_are_used_for_a_while_if_the_server_fails(
    issuer: FakeIssuer, clock: list[float]
) -> None:
    issuer.publish(OLD)
    keys = IssuerKeys(None, f"{issuer.url}/jwks")
    keys.get(OLD.kid, may_wait=True)
    issuer.routes["/jwks"] = redirect("http://127.0.0.1:9/")
    clock[0] += issuer_keys.MAX_AGE_SECONDS
    assert ids(keys.get(OLD.kid, may_wait=True)) == [OLD.kid]
    assert ids(keys.get(OLD.kid, may_wait=False)) == [OLD.kid]  # the next request is later
    assert len(issuer.requests) == 2
    clock[0] += issuer_keys.MAX_STALE_SECONDS
    assert "another origin" in failure_of(keys)
    issuer.publish(OLD)
    assert "another origin" in failure_of(keys)
    clock[0] += issuer_keys.RETRY_SECONDS
    assert ids(keys.get(OLD.kid, may_wait=True)) == [OLD.kid]


def test_key_without_an_id_may_be_the_one_of_a_token(issuer: FakeIssuer) -> None:
    issuer.publish(OLD)
    del issuer.routes["/jwks"]["keys"][0]["kid"]
    keys = IssuerKeys(None, f"{issuer.url}/jwks")
    assert ids(keys.get("any", may_wait=True)) == [None]
    keys.get("other", may_wait=False)


def test_unusable_keys_are_reported(issuer: FakeIssuer) -> None:
    issuer.routes["/jwks"] = {"keys": []}
    assert "no key" in failure_of(IssuerKeys(None, f"{issuer.url}/jwks"))


def test_many_tokens_cause_one_request(issuer: FakeIssuer) -> None:
    issuer.publish(OLD)
    published, started = issuer.routes["/jwks"], threading.Event()

    def slow(handler: Any) -> None:
        started.wait(60)
        reply(handler, 200, json.dumps(published).encode())

    issuer.routes["/jwks"] = slow
    keys = IssuerKeys(None, f"{issuer.url}/jwks")
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(ids(keys.get(OLD.kid, may_wait=True))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    started.set()
    for thread in threads:
        thread.join()
    assert found == [[OLD.kid]] * 8
    assert issuer.paths() == ["/jwks"]
