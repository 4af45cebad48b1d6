"""An authorization server and a shop that accepts its tokens, each in a process of its own."""

from __future__ import annotations

import json
import pathlib
import subprocess
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.integration.app_process import free_port
from tests.integration.mcp_http.http_process import Server, run_server
from tests.integration.node import OIDC_PROVIDER, environment_for_node, install, node

HERE = pathlib.Path(__file__).parent
SHOP = HERE / "shop.py"
REDIRECT_URI = "http://127.0.0.1:9/callback"


class AuthorizationServer:
    """A running authorization server."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url

    def tell(self, line: str) -> None:
        """Change the format of tokens, or `rotate` the key."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        while (answer := self._process.stdout.readline()) != "done\n":
            assert answer  # a warning of oidc-provider; empty: the process has ended

    def post(self, path: str, client: str, **form: str) -> dict[str, Any]:
        """Send a form as a client; return the answer."""
        secret = b64encode(f"{client}:a-secret-of-the-{client}".encode()).decode()
        request = urllib.request.Request(
            self.url + path,
            urllib.parse.urlencode(form).encode(),
            {"Authorization": f"Basic {secret}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"{}")

    def robot_token(self, scope: str, **form: str) -> str:
        """Return a token that the client `robot` requests for itself."""
        form = {"grant_type": "client_credentials", "scope": scope, **form}
        return self.post("/token", "robot", **form)["access_token"]


@contextmanager
def run_authorization_server(resource: str, token_format: str) -> Iterator[AuthorizationServer]:
    """Start an authorization server for a resource."""
    script = HERE / "authorization_server.mjs"
    with subprocess.Popen(
        [node(), script, install(OIDC_PROVIDER), resource, token_format],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment_for_node(),
    ) as process:
        try:
            assert process.stdout is not None
            yield AuthorizationServer(process, process.stdout.readline().strip())
        finally:
            process.kill()


@contextmanager
def run_shop(
    token_format: str, *flags: str, **env: str
) -> Iterator[tuple[Server, AuthorizationServer]]:
    """Start the shop and its authorization server."""
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    with run_authorization_server(url, token_format) as issuer:
        if token_format == "opaque":
            env = {
                "TOOLI_INTROSPECTION_URL": f"{issuer.url}/token/introspection",
                "TOOLI_INTROSPECTION_CLIENT": "shop",
                "TOOLI_INTROSPECTION_SECRET": "env:SHOP_SECRET",
                "SHOP_SECRET": "a-secret-of-the-shop",
                **env,
            }
        flags = ("--port", port, "--resource-url", url, "--token-issuer", issuer.url, *flags)
        env = {"TOOLI_TOKEN_SCOPES": "shop:read", **env}
        with run_server(SHOP, *flags, interface=("api",), **env) as server:
            yield server, issuer
