"""serve_http: addresses, ports, tokens, and servers that cannot be started."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
from tests.integration.http.served_app import app

from tooli import DependencyError, InputError
from tooli.http.http_server import (
    check_address,
    is_loopback,
    listen,
    serve_http,
    server_url,
    take_token,
)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.com", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_only_loopback_addresses_need_no_token(host: str, local: bool) -> None:
    assert is_loopback(host) is local
    check_address(host, requires_token=True)
    if local:
        check_address(host, requires_token=False)
    else:
        with pytest.raises(InputError, match="token"):
            check_address(host, requires_token=False)


def test_listen_rejects_a_port_in_use_and_an_unknown_host() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert server_url(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(InputError, match=f"Port {port}"):
            listen("127.0.0.1", port)
    with pytest.raises(InputError, match="not an address"):
        listen("no such host.invalid", 0)


def test_empty_token_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_TOKEN", "")
    with pytest.raises(InputError, match="empty"):
        take_token(None)


def test_port_in_use_suggests_port_zero() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"Port {port} on 127.0.0.1 is in use") as caught:
            serve_http(app, port=port)
    assert (caught.value.code, caught.value.exit_code) == ("E1020", 2)
    assert "--port 0" in caught.value.suggestion.fix


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "a-machine.example"])
def test_reachable_address_needs_a_token(host: str, monkeypatch) -> None:
    monkeypatch.delenv("TOOLI_TOKEN", raising=False)
    with pytest.raises(InputError, match="no token is set") as caught:
        serve_http(app, host, 0)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"port": 70000}, "is not a port"),
        ({"port": -1}, "is not a port"),
        ({"port": 0, "workers": 0}, "workers must be 1 or more"),
        ({"host": "192.0.2.1", "port": 0, "token": "t"}, "Cannot listen on"),
        ({"host": "no such host", "port": 0, "token": "t"}, "not an address of this machine"),
        ({"port": 0, "token": ""}, "The token is empty"),
        ({"port": 0, "token": "a b"}, "a token must be printable ASCII"),
        ({"port": 0, "tokn": "x"}, "did you mean"),
        ({"port": 0, "token_file": "/nowhere/at/all"}, "The token file cannot be read"),
    ],
)
def test_invalid_setting_is_explained(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        serve_http(app, **settings)
    assert (caught.value.code, caught.value.exit_code) == ("E1020", 2)


def test_missing_uvicorn_names_the_extra(monkeypatch) -> None:
    monkeypatch.setattr("tooli.serving.dispatcher.is_installed", lambda name: False)
    with pytest.raises(DependencyError) as caught:
        serve_http(app, port=0)
    assert "pip install 'tooli[http]>=7.0a1'" in caught.value.suggestion.fix


def test_token_precedence_is_argument_file_environment(tmp_path, monkeypatch) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    file.chmod(0o600)
    monkeypatch.setenv("TOOLI_TOKEN", "from-env")
    assert take_token(None, None) == "from-env"
    assert "TOOLI_TOKEN" not in os.environ
    assert take_token(None, None) is None
    monkeypatch.setenv("TOOLI_TOKEN", "from-env")
    assert take_token(None, str(file)) == "from-file"
    monkeypatch.setenv("TOOLI_TOKEN", "from-env")
    assert take_token("from-argument", str(file)) == "from-argument"
    monkeypatch.setenv("TOOLI_TOKEN", "from-env")
    assert take_token("from-env", str(file)) == "from-file"  # the command line reads TOOLI_TOKEN


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_token_file_must_be_private_and_regular(tmp_path) -> None:
    file = tmp_path / "token"
    file.write_text("secret")
    for mode in (0o644, 0o640, 0o602):
        file.chmod(mode)
        with pytest.raises(InputError, match="Other users have access"):
            take_token(None, str(file))
    file.chmod(0o600)
    file.write_bytes(b"\xff")
    with pytest.raises(InputError, match="not ASCII"):
        take_token(None, str(file))
    file.write_text("")
    with pytest.raises(InputError, match="empty"):
        take_token(None, str(file))
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path, reason in (
        (tmp_path / "pipe", "not a regular file"),
        (tmp_path, "not a regular file"),
        (tmp_path / "missing", "No such file"),
    ):
        with pytest.raises(InputError, match=reason):
            take_token(None, str(path))


# ------------------------------------------------------------------ TLS and prefixes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tls_key": "key.pem"}, "--tls-key needs --tls-cert."),
        ({"tls_cert": "nothing.pem"}, "No such file or directory."),
        ({"tls_cert": __file__}, "cannot be used"),
        ({"root_path": "/tools"}, "must not begin with a path of the server itself"),
        ({"root_path": "shop"}, "must be a path such as '/shop'"),
    ],
)
def test_invalid_file_or_prefix_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        serve_http(app, port=0, **settings)
    assert refused.value.code == "E1020"
