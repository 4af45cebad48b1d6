"""Flags of a real server: TLS, a prefix behind a proxy, names and origins, no MCP."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.integration.mcp_http.http_process import Server, run_server

SHOP = Path(__file__).with_name("shop.py")


def send(
    url: str, body: Any = None, context: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, Any, Any]:
    """Send a request; return the status, the headers and the JSON of the response."""
    data = None if body is None else json.dumps(body).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data, {"content-type": "application/json", **sent})
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as response:
            return response.status, response.headers, json.loads(response.read())
    except urllib.error.HTTPError as failure:
        with failure:
            return failure.code, failure.headers, json.loads(failure.read())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the files of a certificate for 127.0.0.1 and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(timezone.utc)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(pem))
    key_file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_file, key_file


@pytest.mark.parametrize("flags", [(), ("--workers", "2")])
def test_server_speaks_tls(certificate: tuple[Path, Path], flags: tuple[str, ...]) -> None:
    cert, key = map(str, certificate)
    with run_server(
        SHOP, "--tls-cert", cert, "--tls-key", key, *flags, interface=("api",)
    ) as server:
        assert server.url.startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=cert)
        status, _, envelope = send(f"{server.url}/tools/add", {"a": 1, "b": 2}, context)
        assert (status, envelope["result"]) == (200, 3)
        with pytest.raises(OSError):  # plain HTTP is not answered
            send(server.url.replace("https", "http") + "/health")
        assert send(f"{server.url}/health", None, context)[0] == 200


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    flags = ["--root-path", "/shop", "--allow-host", "shop.example", "--no-mcp"]
    origin = ["--allow-origin", "https://app.example"]
    with run_server(SHOP, *flags, *origin, interface=("api",)) as running:
        yield running


@pytest.mark.parametrize("prefix", ["", "/shop"])
def test_proxy_may_keep_or_remove_the_prefix(server: Server, prefix: str) -> None:
    url = server.url.removesuffix("/shop") + prefix
    assert send(f"{url}/tools/add", {"a": 1, "b": 2})[2]["result"] == 3
    assert send(f"{url}/openapi.json")[2]["servers"] == [{"url": "/shop"}]
    error = send(f"{url}/add", {})[2]["error"]
    assert error["suggestion"]["fix"] == "Send POST /shop/tools/add."


def test_names_and_origins_are_allowed(server: Server) -> None:
    assert send(f"{server.url}/health", Host="shop.example")[0] == 200
    assert send(f"{server.url}/health", Host="other.example")[0] == 421
    status, headers, _ = send(f"{server.url}/health", Origin="https://app.example")
    assert (status, headers["access-control-allow-origin"]) == (200, "https://app.example")
    assert send(f"{server.url}/health", Origin="https://other.example")[0] == 403


def test_server_without_mcp_says_so(server: Server) -> None:
    status, _, envelope = send(f"{server.url}/mcp", {})
    assert status == 404
    assert "/shop/tools/{command}" in envelope["error"]["suggestion"]["fix"]
