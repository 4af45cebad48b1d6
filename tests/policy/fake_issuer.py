"""An authorization server on this machine whose answers a test decides, also hostile ones."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

AUDIENCE = "http://localhost:8000"


class FakeIssuer:
    """Answers each path with a function that gets the request, or with a JSON value."""

    def __init__(self) -> None:
        self.routes: dict[str, Any] = {}
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                issuer.requests.append((self.command, self.path, headers, body))
                route = issuer.routes.get(self.path)
                if callable(route):
                    route(self)
                elif route is None:
                    self.send_error(404)
                else:
                    reply(self, 200, json.dumps(route).encode())

            do_GET = do_POST = answer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def publish(self, *keys: Any, path: str = "/jwks", **metadata: Any) -> None:
        """Publish keys, and the metadata that names them."""
        self.routes[path] = {"keys": KeySet([*keys]).as_dict(private=False)["keys"]}
        self.routes["/.well-known/oauth-authorization-server"] = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}{path}",
            **metadata,
        }

    def paths(self) -> list[str]:
        """Return the paths of the requests so far."""
        return [path for _, path, _, _ in self.requests]

    def token(
        self, key: Any, header: dict[str, Any] | None = None, alg: str = "RS256", **claims: Any
    ) -> bytes:
        """Return an access token. Claims and fields of the header that are None are left out."""
        now = int(time.time())
        payload: dict[str, Any] = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ada",
            "iat": now,
            "exp": now + 600,
            "scope": "vault:read",
            **claims,
        }
        head = {"alg": alg, "typ": "at+jwt", "kid": key.kid, **(header or {})}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return jwt.encode(
                {name: value for name, value in head.items() if value is not None},
                {name: value for name, value in payload.items() if value is not None},
                key,
                algorithms=[alg],
            ).encode()


def new_key() -> Any:
    """Return a new RSA key with an id."""
    return RSAKey.generate_key(2048, auto_kid=True)


def reply(handler: Any, status: int, body: bytes = b"", **headers: str) -> None:
    """Send a response."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def redirect(location: str, status: int = 302) -> Callable[[Any], None]:
    """Return a route that redirects."""
    return lambda handler: reply(handler, status, location=location)
