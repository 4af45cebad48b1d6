"""Access control: checks which requests may reach the app.

The stages of the pipeline check which tools a caller may run.

Host     only names of this server, against DNS rebinding
Origin   only the server's own page and the allowed origins
Bearer   a token of the server, compared in constant time, or a token that the verifier accepts

A verifier that has to ask an authorization server runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import sys
from _thread import allocate_lock
from functools import partial
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from time import monotonic

from tooli.core.caller_key import caller_key
from tooli.core.held_keys import hold_key
from tooli.core.placeholder_call import make_placeholder_call
from tooli.errors import AuthError, DefinitionError, InputError, Suggestion, TemporaryError
from tooli.http.http_request import ANONYMOUS_CALLER, CONNECTION_CLOSE, HttpError
from tooli.http.protected_resource import ProtectedResource
from tooli.serving.caller_limits import caller_share
from tooli.serving.thread_pool import ThreadPool
from tooli.storage.audit_log import log_event

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tooli.core.protocols import App
    from tooli.errors import ToolError
    from tooli.http.asgi import HttpSettings
    from tooli.http.http_request import HttpRequest
    from tooli.policy.token_verifier import Identity, TokenVerifier

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
"""Names and addresses of the loopback interface."""

RECHECK_SECONDS = 5.0
"""Seconds between two checks of the token of an open stream."""

VERIFIER_THREADS = 8
"""Maximum number of threads that wait for an authorization server."""

VERIFIER_TIMEOUT = 15.0
"""Seconds that a request waits until its token is verified."""

UNAVAILABLE_RETRY_SECONDS = 5
"""Seconds after which a client may try again if tokens cannot be verified."""

_EXPOSED_HEADERS = b"retry-after, www-authenticate, preference-applied, x-request-id, etag, link"
_MAX_ACCEPTED_HOSTS = 256
_HOST_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")
_ORIGIN_CHARACTERS = _HOST_CHARACTERS | set("/:[]+")
_MAX_NAME_CHARS = 253


class AccessControl:
    """Checks the host, the origin and the token of every request."""

    def __init__(
        self,
        settings: HttpSettings,
        verifier: TokenVerifier | None = None,
        resource: ProtectedResource | None = None,
    ) -> None:
        if verifier is not None:
            verifier.check()
        self.resource = resource or ProtectedResource({}, "", tuple)
        hosts = LOOPBACK_HOSTS if settings.allowed_hosts is None else settings.allowed_hosts
        self._hosts = frozenset(_normalize_names("allowed_hosts", hosts))
        self._origins = frozenset(
            origin.rstrip("/")
            for origin in _normalize_names("allowed_origins", settings.allowed_origins)
        )
        self._any_address = settings.any_address
        self._accepted_hosts: set[bytes] = set()  # Host headers that have passed the check
        self._tokens = _read_tokens(settings)
        self._verifier = verifier
        self._verifier_threads = ThreadPool(
            VERIFIER_THREADS, "tooli-token", share=caller_share(VERIFIER_THREADS)
        )
        self._last_failure = ""
        self.requires_token = bool(self._tokens) or verifier is not None

    @property
    def challenge(self) -> Callable[[HttpRequest, Iterable[str]], tuple[bytes, bytes]] | None:
        """The challenge for a missing scope; None if clients need no token, so they have none."""
        return self.resource.scope_challenge if self.requires_token else None

    def check_request(self, request: HttpRequest) -> None:
        """Raise an HttpError unless the host and the origin of a request are allowed."""
        request.read_headers()
        host = request.headers.get(b"host")
        if host is None:
            message = "The request has no Host header."
            raise HttpError(InputError(message, code="E1400"), CONNECTION_CLOSE)
        if host not in self._accepted_hosts:
            self._check_host(host)
        origin = request.headers.get(b"origin")
        if origin is not None:
            self._check_origin(request, origin, host)
        elif request.method not in ("GET", "HEAD"):
            self.check_site(request)

    def check_site(self, request: HttpRequest) -> None:
        """Raise an HttpError if a web page of another site sent a request without an Origin.

        A page of this server may be opened from another site; every other request is checked.
        """
        site = request.headers.get(b"sec-fetch-site")
        is_checked = b"origin" in request.headers  # `check_request` has allowed it
        if site is not None and site not in (b"same-origin", b"none") and not is_checked:
            raise _origin_error("another site")

    # -------------------------------------------------------------- hosts and origins

    def _check_host(self, host: bytes) -> None:
        name, port = _split_host(host)
        suffixes = [entry[1:] for entry in self._hosts if entry.startswith("*.")]
        is_allowed = (
            "*" in self._hosts
            or name in self._hosts
            or f"{name}:{port}" in self._hosts
            or any([name.endswith(suffix) for suffix in suffixes])
            or (self._any_address and _is_ip_address(name))
        )
        if not name or not is_allowed:
            raise _host_error(name)
        if len(self._accepted_hosts) < _MAX_ACCEPTED_HOSTS:
            self._accepted_hosts.add(host)

    def _check_origin(self, request: HttpRequest, origin: bytes, host: bytes) -> None:
        origin_text = origin.decode("latin-1").lower()
        if origin_text.partition("://")[2] == host.decode("latin-1").lower():
            return  # a page of this server: its origin equals the Host, which is checked
        name, _, port = origin_text.rpartition(":")
        any_port = f"{name if port.isdecimal() else origin_text}:*"
        is_allowed = not self._origins.isdisjoint((origin_text, any_port, "*"))
        if not is_allowed or "*" in origin_text:
            raise _origin_error("that origin", origin_text)
        request.extra_headers = (
            *request.extra_headers,
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED_HEADERS),
            (b"vary", b"origin"),
        )

    # -------------------------------------------------------------- tokens

    async def identify(self, request: HttpRequest) -> None:
        """Set the principal and scopes of a request; raise an HttpError without a valid token."""
        if not self.requires_token:
            return
        authorization = request.headers.get(b"authorization", b"")
        scheme, _, token = authorization.partition(b" ")
        token = token.strip()
        if scheme.lower() != b"bearer" or not token:
            raise self._token_error(request, is_given=authorization != b"")
        is_known = False
        for known, scopes, principal in self._tokens:
            # all tokens are compared: the duration must not reveal which one matched
            if compare_digest(known, token):
                is_known = True
                request.scopes, request.principal = scopes, principal
        if is_known:
            return
        if self._verifier is None:
            raise self._token_error(request, is_given=True)
        identity = await self._verify_token(self._verifier, token, request)
        request.verified_token = token
        request.scopes, request.principal = identity.scopes, identity.principal

    async def wait_until_revoked(self, request: HttpRequest) -> ToolError:
        """Wait until the token of a request is no longer valid; return the reason.

        A request whose token cannot expire or be revoked waits forever.
        """
        while True:
            await asyncio.sleep(RECHECK_SECONDS)
            try:
                await self._check_again(request)
            except HttpError as failure:
                return failure.error

    async def _check_again(self, request: HttpRequest) -> None:
        """Raise an HttpError if the token of a request has lost its validity, or a scope."""
        if request.verified_token is None or self._verifier is None:
            return
        identity = await self._verify_token(self._verifier, request.verified_token, request)
        scopes = request.scopes or frozenset()
        if identity.principal != request.principal or not identity.scopes >= scopes:
            message = "The scopes or the subject of the token have changed."
            raise HttpError(AuthError(message, code="E2004"))

    async def _verify_token(
        self, verifier: TokenVerifier, token: bytes, request: HttpRequest
    ) -> Identity:
        try:
            identity = verifier.identify_now(token)
            if identity is None:
                identity = await self._ask_issuer(verifier, token, request)
        except AuthError as error:
            challenge = self.resource.token_challenge(request, error.message)
            raise HttpError(error, challenge) from None
        except (InputError, TemporaryError) as failure:
            raise self._unavailable_error(failure) from None
        if identity.principal in [principal for *_, principal in self._tokens]:
            # the token claims the principal of one of the server's own tokens
            raise self._token_error(request, is_given=True)
        return identity

    async def _ask_issuer(
        self, verifier: TokenVerifier, token: bytes, request: HttpRequest
    ) -> Identity:
        """Verify a token in a thread, because the authorization server must be asked."""
        key = caller_key(None, request.address)
        work = self._verifier_threads.run(partial(verifier.identify, token), key)
        try:
            return await asyncio.wait_for(work, VERIFIER_TIMEOUT)
        except asyncio.TimeoutError:
            raise TemporaryError("too many tokens are being verified") from None

    def _unavailable_error(self, failure: ToolError) -> HttpError:
        """Return the error for a token that cannot be verified. The log contains the reason.

        A key or token file has become unreadable, or the authorization server does not answer.
        """
        if failure.message != self._last_failure:
            self._last_failure = failure.message
            print(failure.message, file=sys.stderr, flush=True)
        suggestion = Suggestion(
            "ask_human", "The log of the server contains the reason, for its operator."
        )
        message = "Tokens cannot be verified at the moment."
        retry_after = (b"retry-after", b"%d" % UNAVAILABLE_RETRY_SECONDS)
        return HttpError(TemporaryError(message, suggestion=suggestion), retry_after)

    def _token_error(self, request: HttpRequest, *, is_given: bool) -> HttpError:
        message = "The token is not valid." if is_given else "A token is required."
        fix = "Send the header 'Authorization: Bearer TOKEN'."
        return HttpError(
            AuthError(message, code="E2401", suggestion=Suggestion("ask_human", fix)),
            self.resource.token_challenge(request, message if is_given else ""),
        )


def _normalize_names(name: str, names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise DefinitionError(f"{name}={names!r} must be a list of names")
    return [item.lower().strip() for item in names]


def _read_tokens(settings: HttpSettings) -> list[tuple[bytes, frozenset[str] | None, str | None]]:
    """Return the server's own tokens: the bytes, the scopes and the principal of each.

    All users share the token in the setting `token`, so it has no principal.
    """
    scopes_by_token = dict(settings.tokens or {})
    if settings.token is not None:
        scopes_by_token[settings.token] = settings.scopes
    elif settings.scopes is not None:
        raise DefinitionError("scopes= needs token=: it lists the scopes of that token")
    tokens: list[tuple[bytes, frozenset[str] | None, str | None]] = []
    for token, scopes in scopes_by_token.items():
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise DefinitionError("a token must be printable ASCII without spaces, and not empty")
        if isinstance(scopes, str):
            raise DefinitionError("the scopes of a token must be a list")
        token_bytes = token.encode("ascii")
        hold_key(token_bytes)
        principal = _token_principal(token_bytes) if token != settings.token else None
        tokens.append((token_bytes, None if scopes is None else frozenset(scopes), principal))
    return tokens


def _token_principal(token: bytes) -> str:
    """Return the principal of a token. It is the same in all workers and after restarts."""
    return f"token:{sha256(token).hexdigest()[:16]}"


def _split_host(host: bytes) -> tuple[str, str]:
    """Return the name and the port of a Host header; both are empty if it is invalid."""
    text = host.decode("latin-1").lower()
    if text[:1] == "[":
        name, bracket, rest = text[1:].partition("]")
        is_valid = (
            bracket and (not rest or rest[0] == ":") and set(name) <= set("0123456789abcdef:.")
        )
        port = rest[1:]
    else:
        name, _, port = text.partition(":")
        is_valid = _HOST_CHARACTERS.issuperset(name)
        name = name.removesuffix(".")
    if not is_valid or (port and not (port.isascii() and port.isdecimal())):
        return "", ""
    return name, port


def _is_ip_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _host_error(name: str) -> HttpError:
    """Return the error for a Host; the name is empty if the header is invalid."""
    shown = name if 0 < len(name) <= _MAX_NAME_CHARS else "NAME"
    fix = (
        f"The operator of the server can allow this host name: --allow-host {shown}, or "
        f'app.asgi(allowed_hosts=["{shown}"]).'
    )
    return HttpError(
        InputError(
            "The Host of the request is not a name of this server.",
            code="E1421",
            is_retryable=False,
            suggestion=Suggestion("ask_human", fix),
        )
    )


def _origin_error(origin: str, name: str = "") -> HttpError:
    """Return the error for a page of another origin, whose name is shown if it is a plain one."""
    is_plain = 0 < len(name) <= _MAX_NAME_CHARS and _ORIGIN_CHARACTERS.issuperset(name)
    shown = name if is_plain else "https://NAME"
    fix = (
        f"The operator of the server can allow this origin: --allow-origin {shown}, or "
        f'app.asgi(allowed_origins=["{shown}"]).'
    )
    return HttpError(
        AuthError(
            f"Pages from {origin} may not call this server.",
            code="E2403",
            suggestion=Suggestion("ask_human", fix),
        )
    )


# ------------------------------------------------------------------ the log of denied requests


MAX_DENIALS_PER_MINUTE = 20
"""Maximum number of denials that are logged in a minute.

The next entry contains the number of denials that were not logged.
"""
_MINUTE = 60.0


class DenialLog:
    """Logs the requests that the access control of one server has denied."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._window_start = 0.0
        self._recorded = 0
        self._skipped = 0
        self._lock = allocate_lock()  # denials are recorded in several threads

    def should_record(self, error: ToolError) -> bool:
        """True if a denial should be logged now. Counts it towards the limit."""
        if error.code[:2] != "E2" or self._app._state.policy == "off":
            return False
        now = monotonic()
        with self._lock:
            if now - self._window_start >= _MINUTE:
                self._window_start, self._recorded = now, 0
            if self._recorded >= MAX_DENIALS_PER_MINUTE:
                self._skipped += 1
                return False
            self._recorded += 1
        return True

    def record(self, error: ToolError, address: str) -> None:
        """Log a denial with its reason and address, without any content of the request."""
        fields: dict[str, Any] = {"address": address}
        with self._lock:
            skipped, self._skipped = self._skipped, 0
        if skipped:
            fields["not_logged"] = skipped
        call = make_placeholder_call(self._app._state, ANONYMOUS_CALLER)
        log_event("denial", call, code=error.code, message=error.message, **fields)
