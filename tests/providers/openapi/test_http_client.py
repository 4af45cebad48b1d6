"""Requests: redirects without credentials, compression, deadlines, proxies, broken servers."""

from __future__ import annotations

import gzip
import socket
import threading
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.openapi.api_server import Answer, serve

from tooli.errors import DependencyError, InputError, TimeoutExceeded
from tooli.inputs.urls import RequestDeadline
from tooli.providers.openapi.http_client import ApiRequest, origin_of, send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.providers.openapi.api_server import ApiServer, Received


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def deadline() -> Iterator[RequestDeadline]:
    deadline = RequestDeadline(60)
    yield deadline
    deadline.cancel()


def get(url: str, deadline: RequestDeadline, method: str = "GET", **more: Any) -> bytes:
    answer = send(ApiRequest(method, url, allows_private=True, **more), deadline)
    try:
        return answer.read(1 << 20)
    finally:
        answer.close()


def test_a_request_and_its_answer(api: ApiServer, deadline: RequestDeadline) -> None:
    api.answer = Answer(b"hello", headers={"Content-Type": "text/Plain; charset=utf-8"})
    answer = send(
        ApiRequest("POST", f"{api.url}/a%20b?c=%26", {"X-A": "é"}, b"body", allows_private=True),
        deadline,
    )
    assert (answer.status, answer.media_type, answer.read(99)) == (200, "text/plain", b"hello")
    answer.close()
    assert (api.last.method, api.last.target, api.last.body) == ("POST", "/a%20b?c=%26", b"body")
    assert api.last.headers["x-a"].encode("latin-1").decode() == "é"
    assert "accept-encoding" in api.last.headers


def test_addresses_of_private_networks_are_refused(
    api: ApiServer, deadline: RequestDeadline
) -> None:
    with pytest.raises(InputError, match="private network"):
        send(ApiRequest("GET", api.url), deadline)
    with pytest.raises(InputError):
        send(ApiRequest("GET", "file:///etc/passwd"), deadline)
    assert not api.requests


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)],
)
def test_compressed_answers(
    api: ApiServer, deadline: RequestDeadline, encoding: str, pack: Any
) -> None:
    data = bytes(range(256)) * 1000
    api.answer = Answer(pack(data), headers={"Content-Encoding": encoding})
    assert get(api.url, deadline) == data


@pytest.mark.parametrize(
    ("encoding", "body", "message"),
    [
        ("br", b"x", "'br', which"),
        ("gzip", b"not gzip", "not validly compressed"),
        ("gzip", gzip.compress(b"\0" * (100 << 20)), "too many bytes|larger than the limit"),
    ],
)
def test_answers_that_cannot_be_expanded(
    api: ApiServer, deadline: RequestDeadline, encoding: str, body: bytes, message: str
) -> None:
    api.answer = Answer(body, headers={"Content-Encoding": encoding})
    with pytest.raises(DependencyError, match=message):
        get(api.url, deadline)


def test_broken_answers(api: ApiServer, deadline: RequestDeadline) -> None:
    api.answer = Answer(b"part", is_cut=True)
    with pytest.raises(DependencyError, match="incomplete"):
        get(api.url, deadline)
    api.answer = Answer(b"x" * (2 << 20))
    with pytest.raises(DependencyError, match="larger than the limit of 1,048,576 bytes"):
        get(api.url, deadline)
    with pytest.raises(DependencyError, match="did not answer"):
        get(api.url, deadline, headers={"Bad:Name": "x"})


def test_servers_that_are_not_there(deadline: RequestDeadline) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(DependencyError, match="cannot be reached"):
            get(f"http://127.0.0.1:{port}/", deadline)


def test_a_server_that_speaks_another_protocol(deadline: RequestDeadline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(DependencyError, match="did not answer"):
            get(f"http://127.0.0.1:{listener.getsockname()[1]}/", deadline)
        thread.join()


# ------------------------------------------------------------------ deadlines


def test_a_silent_server_is_left_at_the_deadline(api: ApiServer) -> None:
    def wait(_: Received) -> Answer:
        api.release.wait(60)
        return Answer({})

    api.answer = wait
    deadline = RequestDeadline(0.2)
    with pytest.raises(TimeoutExceeded):
        get(api.url, deadline)
    deadline.cancel()
    with pytest.raises(TimeoutExceeded):
        get(api.url, RequestDeadline(0))


def test_a_request_is_stopped(api: ApiServer, deadline: RequestDeadline) -> None:
    def stop(_: Received) -> Answer:
        deadline.stop()
        return Answer({})

    api.answer = stop
    with pytest.raises(TimeoutExceeded):
        get(api.url, deadline)


def test_a_slow_body_is_left_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
                deadline.stop()
                connection.recv(1000)

        deadline = RequestDeadline(60)
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(TimeoutExceeded):
            get(f"http://127.0.0.1:{listener.getsockname()[1]}/", deadline)
        thread.join()
        deadline.cancel()


# ------------------------------------------------------------------ redirects

SECRETS = {"Authorization": "Bearer x", "X-Key": "k", "Cookie": "s=1", "Accept": "text/csv"}


def redirect(to: str, status: int = 302) -> Any:
    def answer(request: Received) -> Answer:
        if request.target == "/start":
            return Answer(b"", status, {"Location": to})
        return Answer(b"end")

    return answer


def test_redirects_within_an_origin_keep_the_headers(
    api: ApiServer, deadline: RequestDeadline
) -> None:
    api.answer = redirect("/other?x=1")
    assert get(f"{api.url}/start", deadline, headers=SECRETS) == b"end"
    assert api.last.target == "/other?x=1"
    assert api.last.headers["authorization"] == "Bearer x"


def test_redirects_to_another_origin_lose_credentials(
    api: ApiServer, deadline: RequestDeadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve() as other:
        api.answer = redirect(f"{other.url}/file")
        with pytest.raises(DependencyError, match="private network"):
            get(f"{api.url}/start", deadline, headers=SECRETS)
        monkeypatch.setenv("TOOLI_ALLOW_PRIVATE_URLS", "1")
        other.answer = Answer(b"file")
        assert get(f"{api.url}/start", deadline, headers=SECRETS) == b"file"
        assert {"authorization", "x-key", "cookie"}.isdisjoint(other.last.headers)
        assert other.last.headers["accept"] == "text/csv"


@pytest.mark.parametrize("status", [307, 308])
def test_a_body_is_repeated_within_an_origin_only(
    api: ApiServer, deadline: RequestDeadline, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.answer = redirect("/other", status)
    assert get(f"{api.url}/start", deadline, "POST", body=b"data") == b"end"
    assert (api.last.method, api.last.body) == ("POST", b"data")
    monkeypatch.setenv("TOOLI_ALLOW_PRIVATE_URLS", "1")
    with serve() as other:
        api.answer = redirect(other.url, status)
        with pytest.raises(DependencyError, match="redirects a POST request"):
            get(f"{api.url}/start", deadline, "POST", body=b"data")
        assert not other.requests


def test_other_redirects(api: ApiServer, deadline: RequestDeadline) -> None:
    api.answer = redirect("/other", 303)
    assert get(f"{api.url}/start", deadline, "POST", body=b"data") == b"end"
    assert (api.last.method, api.last.body) == ("GET", b"")
    api.answer = redirect("/other", 302)
    with pytest.raises(DependencyError, match="redirects a POST request"):
        get(f"{api.url}/start", deadline, "POST", body=b"data")
    api.answer = redirect("/start")
    with pytest.raises(DependencyError, match="more than 5 redirects"):
        get(f"{api.url}/start", deadline)
    for target in ("file:///etc/passwd", "http://u:p@127.0.0.1/", "http://[", "http://10.0.0.1/"):
        api.answer = redirect(target)
        with pytest.raises(DependencyError, match="not allowed"):
            get(f"{api.url}/start", deadline)
    api.answer = redirect("/other", 300)
    assert get(f"{api.url}/start", deadline) == b""


def test_redirects_do_not_leave_https() -> None:
    from tooli.providers.openapi.http_client import _redirected

    with pytest.raises(DependencyError, match="from https to http"):
        _redirected(ApiRequest("GET", "https://a.test/"), 302, "http://a.test/")


def test_origins() -> None:
    assert origin_of("HTTPS://A.test/x") == origin_of("https://a.test:443/y")
    assert origin_of("http://a.test") != origin_of("http://a.test:81")


# ------------------------------------------------------------------ proxies


def test_proxies(
    api: ApiServer, deadline: RequestDeadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", api.url.replace("//", "//me:pa%40ss@"))
    api.answer = Answer(b"by proxy")
    assert get("http://api.test/x?y=1", deadline) == b"by proxy"
    assert api.last.target == "http://api.test/x?y=1"
    assert api.last.headers["proxy-authorization"] == "Basic bWU6cGFAc3M="
    assert get(f"{api.url}/direct", deadline) == b"by proxy"
    assert api.last.target == "/direct"
    monkeypatch.setenv("no_proxy", "api.test")
    with pytest.raises(DependencyError, match=r"api\.test cannot be resolved"):
        get("http://api.test/", deadline)


def test_https_uses_a_tunnel(deadline: RequestDeadline, monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                received.append(connection.recv(1000))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(DependencyError, match=r"did not answer.*403"):
            get("https://api.test/", deadline, headers=SECRETS)
        thread.join()
    assert received[0].startswith(b"CONNECT api.test:443 ")
    assert b"Bearer" not in received[0]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "https://127.0.0.1:1", "http://"])
def test_other_proxies_are_errors(
    deadline: RequestDeadline, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(DependencyError, match="not supported"):
        get("http://api.test/", deadline)
