"""URLs: schemes, private addresses, and limits of size, time and redirects."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from tests.inputs.web_server import Site, site

from tooli import InputLimits, StdinOr, TimeoutExceeded, Tooli
from tooli.inputs import urls
from tooli.inputs.constraints import DEFAULT_INPUT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

ALLOWED = {"TOOLI_ALLOW_PRIVATE_URLS": "1"}
app = Tooli("reads")


@app.command()
def text(data: StdinOr[str]) -> str:
    """Read the input."""
    return data


@app.command()
def trusted(data: Annotated[StdinOr[str], InputLimits(private=True)]) -> str:
    """Read the input; private addresses are allowed."""
    return data


@app.command()
def short_timeout(data: Annotated[StdinOr[str], InputLimits(private=True, timeout=0.2)]) -> str:
    """Read the input within 0.2 seconds; private addresses are allowed."""
    return data


@app.command()
def offline(data: Annotated[StdinOr[str], InputLimits(urls=False)]) -> str:
    """Read the input; URLs are not allowed."""
    return data


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as running:
        running.pages["/ok"] = ("text/plain", b"fine")
        yield running


@pytest.fixture
def _allow_private_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_ALLOW_PRIVATE_URLS", "1")


def call_error(tool: str, url: str) -> Any:
    error = app.call(tool, data=url).error
    assert error is not None
    return error


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[ff02::1]", "[::ffff:127.0.0.1]"),
        *("192.0.0.8", "192.0.0.192", "192.88.99.1", "[fec0::1]", "[5f00::1]"),
        *("[::ffff:10.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25eth0]"),
        *("localhost", "2130706433", "0x7f000001", "127.1", "0177.0.0.1"),
    ],
)
def test_private_addresses_are_rejected(host: str) -> None:
    """Addresses are rejected in every notation, and host names after they are resolved."""
    error = call_error("text", f"http://{host}:9/")
    assert error.code in ("E1033", "E4040"), error
    assert error.code == "E1033" or "cannot be resolved" in error.message


@pytest.mark.parametrize("host", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are_accepted(host: str) -> None:
    assert urls._is_public(host)


def test_dns_rebinding_is_prevented(web: Site, monkeypatch) -> None:
    """The connection goes to the address that was checked."""
    port = int(web.address.rpartition(":")[2])
    answers = iter(["93.184.216.34", "127.0.0.1", "127.0.0.1"])
    tried: list[Any] = []

    def resolve(host: str, port: int, *_: Any, **__: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    def connect(address: Any, *_: Any, **__: Any) -> Any:
        tried.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    error = call_error("text", f"http://rebind.example:{port}/ok")
    assert error.code == "E4040"
    assert tried == [("93.184.216.34", port)]
    assert web.requested_paths == []


def test_host_with_any_private_address_is_rejected(monkeypatch) -> None:
    def resolve(host: str, port: int, *_: Any, **__: Any) -> Any:
        both = ("93.184.216.34", "10.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in both]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert call_error("text", "http://both.example/").code == "E1033"


def test_parameter_can_allow_private_addresses(web: Site) -> None:
    assert app.call("trusted", data=web("/ok")).unwrap() == "fine"


def test_parameter_can_forbid_urls() -> None:
    assert call_error("offline", "http://example.com/").code == "E1033"


@pytest.mark.usefixtures("_allow_private_urls")
class TestPrivateUrlsAllowed:
    def test_content_is_read(self, web: Site) -> None:
        assert app.call("text", data=web("/ok")).unwrap() == "fine"

    @pytest.mark.parametrize(
        ("status", "code"),
        [(404, "E3010"), (410, "E3010"), (401, "E2000"), (403, "E2000"), (500, "E4075")]
        + [(429, "E4075"), (204, "E4040"), (400, "E4040"), (304, "E4040")],
    )
    def test_error_status_fails_without_showing_the_query(
        self, web: Site, status: int, code: str
    ) -> None:
        def answer(handler: Any) -> None:
            handler.send_response(status)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        web.pages["/no?key=canary"] = answer
        error = call_error("text", web("/no?key=canary"))
        assert error.code == code
        assert str(status) in error.message
        assert "canary" not in error.message

    def test_redirects_are_followed(self, web: Site) -> None:
        web.redirect("/1", "/2")
        web.redirect("/2", web("/3"))
        web.redirect("/3", "ok")
        assert app.call("text", data=web("/1")).unwrap() == "fine"

    def test_too_many_redirects_fail(self, web: Site) -> None:
        web.redirect("/round", "/round")
        error = call_error("text", web("/round"))
        assert error.code == "E4040"
        assert "more than 5 redirects" in error.message
        assert len(web.requested_paths) == 6

    @pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://x/", "http://u:p@127.0.0.1/"])
    def test_redirects_to_forbidden_locations_are_rejected(self, web: Site, to: str) -> None:
        web.redirect("/away", to)
        assert call_error("text", web("/away")).code == "E1033"

    @pytest.mark.parametrize("to", ["http://[::1/", "//[x/"])
    def test_redirect_to_an_invalid_url_fails(self, web: Site, to: str) -> None:
        web.redirect("/away", to)
        error = call_error("text", web("/away"))
        assert error.code == "E4040"
        assert "redirects to an invalid URL" in error.message

    def test_unreachable_host_fails(self) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        error = call_error("text", f"http://127.0.0.1:{port}/")
        assert error.code == "E4040"
        assert "cannot be reached" in error.message

    def test_incomplete_response_fails(self, web: Site) -> None:
        def answer(handler: Any) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", "100")
            handler.end_headers()
            handler.wfile.write(b"x" * 10)

        web.pages["/part"] = answer
        error = call_error("text", web("/part"))
        assert error.code == "E4040"
        assert "90 bytes are missing" in error.message

    def test_compressed_response_is_rejected(self, web: Site) -> None:
        def answer(handler: Any) -> None:
            handler.send_response(200)
            handler.send_header("Content-Encoding", "gzip")
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        web.pages["/gz"] = answer
        assert "compressed" in call_error("text", web("/gz")).message

    def test_response_with_the_encoding_identity_is_read(self, web: Site) -> None:
        def answer(handler: Any) -> None:
            handler.send_response(200)
            handler.send_header("Content-Encoding", "Identity")
            handler.send_header("Content-Length", "4")
            handler.end_headers()
            handler.wfile.write(b"fine")

        web.pages["/plain"] = answer
        assert app.call("text", data=web("/plain")).unwrap() == "fine"

    def test_default_size_limit_applies(self, web: Site, monkeypatch) -> None:
        from tooli.inputs import source

        monkeypatch.setattr(source, "MAX_WHOLE_BYTES", 3)
        error = call_error("text", web("/ok"))
        assert (error.code, error.details["max_bytes"]) == ("E1034", 3)

    def test_size_limit_of_zero_rejects_content(self, web: Site, monkeypatch) -> None:
        monkeypatch.setenv("TOOLI_MAX_INPUT", "0")
        error = call_error("text", web("/ok"))
        assert (error.code, error.details["max_bytes"]) == ("E1034", 0)

    def test_size_error_does_not_contain_the_query(self, web: Site, monkeypatch) -> None:
        from tooli.inputs import source

        monkeypatch.setattr(source, "MAX_WHOLE_BYTES", 3)
        web.pages["/ok?key=canary"] = web.pages["/ok"]
        error = call_error("text", web("/ok?key=canary"))
        assert error.code == "E1034"
        assert "canary" not in f"{error.to_dict()}" and error.details["source"].endswith("/ok?…")

    def test_proxy_variables_are_ignored(self, web: Site, monkeypatch) -> None:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9/")
        assert app.call("text", data=web("/ok")).unwrap() == "fine"


def test_redirect_to_private_address_is_rejected(web: Site, monkeypatch) -> None:
    """Every redirect is checked."""
    checked_hosts: list[str] = []
    real_is_public = urls._is_public

    def public_at_first(host: str) -> bool:
        checked_hosts.append(host)
        return len(checked_hosts) <= 3 or real_is_public(host)

    monkeypatch.setattr(urls, "_is_public", public_at_first)
    web.redirect("/in", web("/ok"))
    error = call_error("text", web("/in"))
    assert error.code == "E1033"
    assert web.requested_paths == ["/in"]


def test_redirect_from_https_to_http_is_rejected(monkeypatch) -> None:
    class Response:
        status = 302
        headers = {"location": "http://example.com/"}

        def close(self) -> None:
            pass

    class Connection:
        def close(self) -> None:
            pass

    monkeypatch.setattr(urls, "connect", lambda *_: Connection())
    monkeypatch.setattr(urls, "send_request", lambda *_: Response())
    error = call_error("text", "https://example.com/")
    assert "from https to http" in error.message


def test_silent_server_times_out() -> None:
    """The server accepts the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        error = call_error("short-timeout", f"http://127.0.0.1:{server.getsockname()[1]}/")
    assert error.code == "E4050"
    assert error.is_retryable


@pytest.mark.parametrize("part", ["body", "headers"])
def test_slow_server_times_out(web: Site, part: str) -> None:
    """Each byte of the body, or of the headers, is in time, but the total time is exceeded."""
    stopped = threading.Event()

    def answer(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers() if part == "body" else handler.flush_headers()
        try:
            for _ in range(500):
                if stopped.wait(0.02):
                    break
                handler.wfile.write(b"x")
            handler.wfile.write(b"" if part == "body" else b": y\r\n\r\nfine")
        except OSError:
            pass

    web.pages["/drip"] = answer
    try:
        error = call_error("short-timeout", web("/drip"))
    finally:
        stopped.set()
    assert error.code == "E4050"


def test_limits_match_the_documentation() -> None:
    assert DEFAULT_INPUT_LIMITS == InputLimits(
        max_bytes=None, timeout=None, private=False, urls=True
    )
    assert (urls.MAX_REDIRECTS, urls.READ_TIMEOUT_SECONDS, urls.TOTAL_TIMEOUT_SECONDS) == (
        5,
        30.0,
        300.0,
    )


def test_addresses_share_the_total_timeout(monkeypatch) -> None:
    """A host with many addresses does not get the timeout for each of them."""
    clock = [0.0]
    waited: list[float] = []

    def resolve(host: str, port: int, *_: Any, **__: Any) -> Any:
        clock[0] += 10
        addresses = [f"93.184.216.{i}" for i in range(1, 30)]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    def connect(address: Any, timeout: float, *_: Any, **__: Any) -> Any:
        waited.append(timeout)
        clock[0] += timeout
        raise TimeoutError

    monkeypatch.setattr(urls, "monotonic", lambda: clock[0])
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(TimeoutExceeded):
        urls.fetch("http://many.example/", InputLimits(timeout=100))
    assert waited == [30, 30, 30]


def test_resolver_that_hangs_times_out(monkeypatch) -> None:
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait(60) and [])
    try:
        with pytest.raises(TimeoutExceeded):
            urls.fetch("http://slow.example/", InputLimits(timeout=0.05))
    finally:
        released.set()
