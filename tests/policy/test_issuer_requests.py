"""Requests to an authorization server: which URLs, how much, how long."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.policy.fake_issuer import FakeIssuer, redirect, reply

from tooli.policy import issuer_requests
from tooli.policy.issuer_requests import (
    NotPublished,
    check_issuer_url,
    request_json,
)
from tooli.policy.jwt_tokens import IssuerError


def failure_of(url: str, form: bytes | None = None) -> str:
    with pytest.raises(IssuerError) as caught:
        request_json(url, form)
    return str(caught.value)


def test_json_object_is_returned(issuer: FakeIssuer) -> None:
    issuer.routes["/a?b=1"] = {"x": 1}
    assert request_json(f"{issuer.url}/a?b=1") == {"x": 1}
    method, _, headers, _ = issuer.requests[-1]
    assert (method, headers["accept"]) == ("GET", "application/json")


def test_form_is_posted(issuer: FakeIssuer) -> None:
    issuer.routes["/a"] = {}
    request_json(f"{issuer.url}/a", b"token=x", {"Authorization": "Basic y"})
    method, _, headers, body = issuer.requests[-1]
    assert (method, body) == ("POST", b"token=x")
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert headers["authorization"] == "Basic y"


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("https://issuer.example/a", True),
        ("https://10.0.0.1/a", True),
        ("http://127.0.0.1:80/a", True),
        ("http://localhost/a", True),
        ("http://[::1]:80/a", True),
        ("http://issuer.example/a", False),
        ("http://127.0.0.1.example/a", False),
        ("http://localhost.example/a", False),
        ("ftp://127.0.0.1/a", False),
        ("file:///etc/passwd", False),
        ("https://user:secret@issuer.example", False),
        ("https://issuer.example:0/", False),
        ("https://issuer.example/a b", False),
        ("https://issuer.example/\r\nX: y", False),
        ("https://issuer.exämple/", False),
        ("https://issuer.example/#a", False),
        ("https:///a", False),
        ("https://[x/", False),
        ("", False),
    ],
)
def test_only_https_and_this_machine_are_asked(url: str, is_allowed: bool) -> None:
    if is_allowed:
        assert check_issuer_url(url).hostname
        return
    with pytest.raises(IssuerError):
        check_issuer_url(url)


def test_redirects_stay_within_the_origin(issuer: FakeIssuer) -> None:
    other = FakeIssuer()
    try:
        other.routes["/x"] = issuer.routes["/x"] = {"x": 1}
        issuer.routes["/same"] = redirect("/x")
        assert request_json(f"{issuer.url}/same") == {"x": 1}
        issuer.routes["/other"] = redirect(f"{other.url}/x")
        assert "another origin" in failure_of(f"{issuer.url}/other")
        issuer.routes["/file"] = redirect("file:///etc/passwd")
        assert "no host" in failure_of(f"{issuer.url}/file")
        issuer.routes["/loop"] = redirect("/loop")
        assert "too often" in failure_of(f"{issuer.url}/loop")
        assert other.requests == []
    finally:
        other.close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_form_is_not_redirected(issuer: FakeIssuer, status: int) -> None:
    issuer.routes["/a"] = redirect("/b", status)
    issuer.routes["/b"] = {"active": True}
    assert "redirects" in failure_of(f"{issuer.url}/a", b"token=x")
    assert issuer.paths() == ["/a"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "JSON"),
        (b"<html>", "JSON"),
        (b"\xff", "JSON"),
        (b"[]", "object"),
        (b"[" * 5000, "deep"),
        (b'{"a":' * 10_000, "deep"),
        (json.dumps({"a": "x" * (256 << 10)}).encode(), "bytes"),
    ],
)
def test_unusable_answers_are_refused(issuer: FakeIssuer, body: bytes, reason: str) -> None:
    issuer.routes["/a"] = lambda handler: reply(handler, 200, body)
    assert reason in failure_of(f"{issuer.url}/a")


def test_endless_answer_is_cut(issuer: FakeIssuer) -> None:
    def endless(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            return

    issuer.routes["/a"] = endless
    assert "bytes" in failure_of(f"{issuer.url}/a")


def test_compressed_answer_is_refused(issuer: FakeIssuer) -> None:
    issuer.routes["/a"] = lambda handler: reply(handler, 200, b"x", content_encoding="gzip")
    assert "compressed" in failure_of(f"{issuer.url}/a")


@pytest.mark.parametrize(("status", "kind"), [(404, NotPublished), (500, IssuerError)])
def test_status_is_reported(issuer: FakeIssuer, status: int, kind: type[IssuerError]) -> None:
    issuer.routes["/a"] = lambda handler: reply(handler, status)
    with pytest.raises(IssuerError) as caught:
        request_json(f"{issuer.url}/a")
    assert type(caught.value) is kind
    assert str(status) in str(caught.value)


@pytest.mark.parametrize("part", ["headers", "body"])
def test_slow_server_is_not_waited_for(
    issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """The server sends a byte now and then, so that no single operation takes long."""
    monkeypatch.setattr(issuer_requests, "REQUEST_SECONDS", 0.4)

    def drip(handler: Any) -> None:
        if part == "body":
            handler.send_response(200)
            handler.end_headers()
        try:
            for byte in b"HTTP/1.1 200 OK\r\n" + b"x" * 100:
                handler.wfile.write(bytes([byte]))
                time.sleep(0.02)
        except OSError:
            return

    issuer.routes["/a"] = drip
    failure = failure_of(f"{issuer.url}/a")
    assert "too long" in failure or "failed" in failure


def test_connection_that_ends_early_is_an_error(issuer: FakeIssuer) -> None:
    def half(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "100")
        handler.end_headers()
        handler.wfile.write(b'{"a": 1}')

    issuer.routes["/a"] = half
    assert "incomplete" in failure_of(f"{issuer.url}/a")


def test_unreachable_server_is_an_error(issuer: FakeIssuer) -> None:
    issuer.close()
    assert "reached" in failure_of(f"{issuer.url}/a")
    assert "another" not in failure_of("https://127.0.0.1:9/x")


def test_localhost_must_be_this_machine(
    issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.routes["/a"] = {}
    monkeypatch.setattr(issuer_requests, "is_loopback_host", lambda host: host == "localhost")
    assert "not this machine" in failure_of(f"{issuer.url}/a".replace("127.0.0.1", "localhost"))
