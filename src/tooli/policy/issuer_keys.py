"""The public keys of an authorization server, by the URL of its JWKS or by its issuer.

    issuer ─▶ metadata (RFC 8414, OpenID Connect) ─▶ jwks_uri ─▶ JWKS ─▶ IssuerKeys.get(kid)

Keys are fetched when a token is first verified. They are fetched again when they are old, and when
a token names an unknown key, so that the server can change its keys at any time.
"""

from __future__ import annotations

from threading import Lock, Thread
from time import monotonic

from tooli.policy.issuer_requests import (
    NotPublished,
    check_issuer_url,
    is_loopback_host,
    request_bytes,
    request_json,
)
from tooli.policy.jwt_tokens import IssuerError, MustWait
from tooli.policy.verification_keys import parse_jwks
from tooli.storage.state_files import UnusableFile

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.policy.verification_keys import VerificationKey

BACKGROUND_SECONDS = 300.0
"""Age of the keys from which they are fetched again while tokens are verified with them."""
MAX_AGE_SECONDS = 600.0
"""Age of the keys from which tokens wait until the keys are fetched again."""
MAX_STALE_SECONDS = 3600.0
"""Age from which keys are not used, if they cannot be fetched again."""
RETRY_SECONDS = 10.0
"""Minimum number of seconds between two requests for the keys."""


class IssuerKeys:
    """The keys of an authorization server. Several threads can use them."""

    def __init__(self, issuer: str | None, jwks_url: str | None) -> None:
        assert issuer is not None or jwks_url is not None
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._keys: tuple[VerificationKey, ...] | None = None
        self._fetched_at = 0.0
        self._attempted_at: float | None = None  # when the last request ended
        self._failure = ""
        self._lock = Lock()  # held during a request

    def get(self, key_id: object, *, may_wait: bool) -> tuple[VerificationKey, ...]:
        """Return the keys, among them the one with an id, unless the server does not have it.

        Raises MustWait if a request is needed and `may_wait` is False, and an IssuerError if the
        keys cannot be fetched.
        """
        started = monotonic()
        keys, age = self._keys, started - self._fetched_at
        if keys is not None and age < MAX_AGE_SECONDS and _has_key(keys, key_id):
            if age >= BACKGROUND_SECONDS and self._may_request(started):
                self._fetch_in_background()
            return keys
        if self._may_request(started):
            if not may_wait:
                raise MustWait
            with self._lock:
                if self._may_request(started):  # no other thread has asked meanwhile
                    self._fetch()
            keys, age = self._keys, monotonic() - self._fetched_at
        if keys is None or age >= MAX_STALE_SECONDS:
            raise IssuerError(self._failure or "the keys have not been received yet")
        return keys

    def _may_request(self, now: float) -> bool:
        return self._attempted_at is None or now - self._attempted_at >= RETRY_SECONDS

    def _fetch_in_background(self) -> None:
        if self._lock.acquire(blocking=False):

            def fetch() -> None:
                try:
                    self._fetch()
                finally:
                    self._lock.release()

            Thread(target=fetch, name="tooli-keys", daemon=True).start()

    def _fetch(self) -> None:
        """Fetch the keys. A failure is kept in `_failure`, and the keys stay as they are."""
        try:
            url = self._jwks_url or self._discover()
            self._keys = _parse(url, request_bytes(url))
            self._fetched_at = monotonic()
            self._failure = ""
        except IssuerError as failure:
            self._failure = str(failure)
        finally:
            self._attempted_at = monotonic()

    def _discover(self) -> str:
        """Return the URL of the keys in the metadata of the issuer."""
        assert self._issuer is not None
        for url in metadata_urls(self._issuer):
            try:
                metadata = request_json(url)
            except NotPublished:
                continue
            if metadata.get("issuer") != self._issuer:
                raise IssuerError(f"{url} is the metadata of another issuer")
            jwks_url = metadata.get("jwks_uri")
            if not isinstance(jwks_url, str):
                raise IssuerError(f"{url} has no jwks_uri")
            host = check_issuer_url(jwks_url).hostname or ""
            issuer_host = check_issuer_url(self._issuer).hostname or ""
            if is_loopback_host(host) and not is_loopback_host(issuer_host):
                raise IssuerError(f"the jwks_uri in {url} names this machine")
            return jwks_url
        raise IssuerError(f"{self._issuer} does not publish its metadata")


def metadata_urls(issuer: str) -> list[str]:
    """Return the URLs at which an issuer may publish its metadata, in the order of RFC 8414."""
    parts = check_issuer_url(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    ]
    return list(dict.fromkeys(urls))


def _has_key(keys: tuple[VerificationKey, ...], key_id: object) -> bool:
    """True if a key with this id is among the keys, or if that cannot be known."""
    return key_id is None or any([key.key_id in (None, key_id) for key in keys])


def _parse(url: str, data: bytes) -> tuple[VerificationKey, ...]:
    try:
        return parse_jwks(data)
    except UnusableFile as failure:
        raise IssuerError(f"{url} cannot be used: {failure}") from None
