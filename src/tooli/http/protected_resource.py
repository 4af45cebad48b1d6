"""ProtectedResource: the server as an OAuth resource server, and its challenges to clients.

    401, 403 ─▶ WWW-Authenticate: Bearer …, resource_metadata="…", scope="…"
                                               │
    GET /.well-known/oauth-protected-resource ◀┘ ─▶ the authorization server, and the scopes

The metadata (RFC 9728) is public. The API and each MCP endpoint are resources of their own, so that
clients find the URL that they use. Below a prefix, the metadata is below the prefix as well.
"""

from __future__ import annotations

import re

from tooli.config.token_settings import is_url
from tooli.http.http_request import HttpError, check_no_body
from tooli.http.path_errors import ServerPaths, method_error, not_found_error
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypedDict

    from tooli.core import SecuritySettings
    from tooli.core.protocols import App, JsonObject
    from tooli.http.asgi import Headers
    from tooli.http.http_request import HttpRequest

    class OAuthSettingsDict(TypedDict, total=False):
        """The keyword arguments of `app.asgi(…)` for tokens; `HttpSettings` explains them."""

        resource_url: str | None
        token_issuer: str | None
        token_audience: str | None
        token_jwks_url: str | None
        token_scopes: str | None
        introspection_url: str | None
        introspection_client: str | None
        introspection_secret: str | None


WELL_KNOWN_PATH = "/.well-known/oauth-protected-resource"
"""Path of the metadata of the API. That of MCP is at this path with the suffix `/mcp`."""

CACHE_CONTROL = (b"cache-control", b"public, max-age=300")
SCOPE_DESCRIPTION = "The token lacks a scope."
MAX_CHALLENGE_SCOPES = 50
"""Maximum number of scopes in a challenge."""
_MAX_SCOPE_CHARS = 100
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_SCOPE_PARAMETER = re.compile(rb'scope="([^"]*)"')
_SSE_PATHS = ("/sse", "/messages")


class ProtectedResource:
    """What a server tells clients about its tokens. Without an issuer there is no metadata."""

    def __init__(
        self,
        settings: SecuritySettings,
        name: str,
        find_scopes: Callable[[], Iterable[str]],
        mount_paths: Sequence[str] = (),
        root_path: str = "",
    ) -> None:
        issuer = settings.get("token_issuer")
        self._issuer = issuer if is_url(issuer) else None
        self._name = name
        self._find_scopes = find_scopes
        self._initial_scopes = settings.get("token_scopes", "").split()
        self._url = settings.get("resource_url", "").rstrip("/")
        self._root_path = root_path
        # the SSE transport is mounted at the root, and is used at /sse
        self._suffixes = [path or "/sse" for path in mount_paths]
        for suffix in self._suffixes:
            self._url = self._url.removesuffix(suffix)

    # -------------------------------------------------------------- metadata

    @property
    def has_metadata(self) -> bool:
        """True if the server tells clients where they get a token."""
        return self._issuer is not None

    async def send_document(self, request: HttpRequest, app: App) -> None:
        """Send the metadata at the path of a request, which is public."""
        document = self.find_document(request)
        if document is None:
            known = ServerPaths(self._root_path, {}, (WELL_KNOWN_PATH,), ())
            raise HttpError(not_found_error(app, request.path, known))
        if request.method not in ("GET", "HEAD"):
            raise method_error(request.path, request.method, None)
        check_no_body(request)
        await request.respond(200, document, CACHE_CONTROL)

    def find_document(self, request: HttpRequest) -> bytes | None:
        """Return the metadata at the path of a request, or None if there is none."""
        path = request.path
        if self._issuer is None or not path.startswith(WELL_KNOWN_PATH):
            return None
        suffix = path[len(WELL_KNOWN_PATH) :].rstrip("/")
        root = self._root_path or request.root_path
        if root and (suffix == root or suffix.startswith(f"{root}/")):
            suffix = suffix[len(root) :]  # the prefix may be in front of the path, or behind it
        if suffix and suffix not in self._suffixes:
            return None
        return encode(self._document(f"{self._base_url(request)}{suffix}"), [])

    def _document(self, resource: str) -> JsonObject:
        scopes = valid_scopes(sorted(self._find_scopes()))
        return {
            "resource": resource,
            "authorization_servers": [self._issuer],
            **({"scopes_supported": scopes} if scopes else {}),
            "bearer_methods_supported": ["header"],
            "resource_name": self._name,
        }

    def _base_url(self, request: HttpRequest) -> str:
        """Return the URL of the server, as it is configured or as the client uses it."""
        if self._url:
            return self._url
        host = request.headers.get(b"host", b"").decode("latin-1")
        return (
            f"{request.scope.get('scheme', 'http')}://{host}{self._root_path or request.root_path}"
        )

    # -------------------------------------------------------------- challenges

    def token_challenge(self, request: HttpRequest, problem: str) -> tuple[bytes, bytes]:
        """Return the header for a request whose token has a problem; empty if it has no token."""
        parameters = {"error": "invalid_token", "error_description": problem} if problem else {}
        scopes = self._initial_scopes if self._issuer is not None else ()
        return self._challenge(request, parameters, scopes)

    def scope_challenge(self, request: HttpRequest, missing: Iterable[str]) -> tuple[bytes, bytes]:
        """Return the header for a request whose token lacks scopes.

        It names the scopes of the token as well, so that a client does not lose them when it
        requests a new token.
        """
        known = set(self._find_scopes())
        held = sorted([scope for scope in request.scopes or () if scope in known])
        parameters = {"error": "insufficient_scope", "error_description": SCOPE_DESCRIPTION}
        return self._challenge(request, parameters, [*missing, *held])

    def complete_challenge(self, request: HttpRequest, headers: Headers) -> Headers:
        """Return the headers of a refused call, with the complete challenge of this server."""
        return tuple(
            [
                self.scope_challenge(request, _scopes_in(value))
                if name == b"www-authenticate"
                else (name, value)
                for name, value in headers
            ]
        )

    def _challenge(
        self, request: HttpRequest, parameters: dict[str, str], scopes: Iterable[str]
    ) -> tuple[bytes, bytes]:
        parameters = {"realm": "tooli", **parameters}
        valid = valid_scopes(scopes)[:MAX_CHALLENGE_SCOPES]
        if valid:
            parameters["scope"] = " ".join(valid)
        if self._issuer is not None:
            suffix = self._suffix_of(request.path)
            url = f"{self._base_url(request)}{WELL_KNOWN_PATH}{suffix}"
            parameters["resource_metadata"] = url
        text = ", ".join([f'{name}="{_quoted(value)}"' for name, value in parameters.items()])
        return b"www-authenticate", f"Bearer {text}".encode("ascii", "replace")

    def _suffix_of(self, path: str) -> str:
        """Return the path of the resource that a request is for; empty for the API."""
        if "/sse" in self._suffixes and path.startswith(_SSE_PATHS):
            return "/sse"
        return next((s for s in self._suffixes if path == s or path.startswith(f"{s}/")), "")


def _scopes_in(challenge: bytes) -> list[str]:
    found = _SCOPE_PARAMETER.search(challenge)
    return found[1].decode("ascii").split() if found is not None else []


def valid_scopes(scopes: Iterable[str]) -> list[str]:
    """Return the scopes that a challenge can contain, in their order and without duplicates."""
    return [
        scope
        for scope in dict.fromkeys(scopes)
        if len(scope) <= _MAX_SCOPE_CHARS and _SCOPE.fullmatch(scope)
    ]


def _quoted(text: str) -> str:
    """Return a text for a quoted string in a header."""
    return "".join([c for c in text if c.isprintable()]).replace("\\", "\\\\").replace('"', '\\"')
