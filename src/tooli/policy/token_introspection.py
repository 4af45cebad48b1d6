"""Token introspection (RFC 7662): ask the authorization server whether a token is valid.

    token ─▶ cache ─▶ POST to the introspection endpoint ─▶ {"active": true, …} ─▶ Identity

Each answer is used for at most CACHE_SECONDS, so a revoked token is accepted that long at most. If
the server does not answer, no token is accepted.
"""

from __future__ import annotations

from base64 import b64encode
from collections import OrderedDict
from hashlib import sha256
from os import environ
from threading import Lock
from time import monotonic, time
from typing import TypeVar
from urllib.parse import quote, urlencode

from tooli.core.held_keys import hold_key
from tooli.policy.issuer_requests import RequestRefused, parse_object, request_bytes
from tooli.policy.jwt_tokens import (
    LEEWAY_SECONDS,
    Identity,
    IssuerError,
    MustWait,
    TokenRejected,
    check_claim_types,
    check_client_form,
    client_subject,
    has_audience,
    is_valid_subject,
    parse_scopes,
)
from tooli.storage.state_files import UnusableFile, read_regular_file

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject
    from tooli.policy.jwt_tokens import ExpectedClaims

T = TypeVar("T")

CACHE_SECONDS = 10.0
"""Seconds for which an answer is used."""
RETRY_SECONDS = 1.0
"""Seconds after a failed request in which the server is not asked again."""
MAX_CACHED = 4096
"""Maximum number of valid tokens that are cached, and of invalid ones."""
_MAX_SECRET_BYTES = 4096
_WORLD_WRITABLE = 0o002


class TokenIntrospection:
    """Asks one authorization server about tokens. Several threads can use it."""

    def __init__(
        self, url: str, client: str | None, secret_source: str | None, expected: ExpectedClaims
    ) -> None:
        self._url = url
        self._client = client
        self._secret_source = secret_source
        self._expected = expected
        # Valid and invalid tokens are kept apart, so that invalid ones do not displace valid ones.
        self._valid: OrderedDict[bytes, tuple[float, Identity]] = OrderedDict()
        self._invalid: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        self._running: dict[bytes, Lock] = {}  # held while the server is asked about a token
        self._lock = Lock()
        self._failure: tuple[float, str] = (0.0, "")  # until when the server is not asked, and why

    def check(self) -> None:
        """Raise UnusableFile if the secret of the client cannot be read."""
        if self._secret_source is not None:
            read_client_secret(self._secret_source)

    def identify(self, token: bytes, *, may_wait: bool) -> Identity:
        """Return the identity of a token.

        Raises TokenRejected if it is not valid, MustWait if the server must be asked and
        `may_wait` is False, and an IssuerError if the server cannot be asked.
        """
        digest = sha256(token).digest()
        found = self._look_up(digest)
        if found is not None:
            return found
        self._raise_failure()
        if not may_wait:
            raise MustWait
        with self._lock:
            running = self._running.setdefault(digest, Lock())
        with running:  # of several requests with one token, one asks the server
            try:
                found = self._look_up(digest)
                if found is None:
                    self._raise_failure()  # another thread has asked meanwhile
                    found = self._ask(token, digest)
                return found
            finally:
                with self._lock:
                    self._running.pop(digest, None)

    def _look_up(self, digest: bytes) -> Identity | None:
        """Return the identity of a token whose answer is known; raise TokenRejected if invalid."""
        now = monotonic()
        with self._lock:
            valid, invalid = self._valid.get(digest), self._invalid.get(digest)
        if valid is not None and now < valid[0]:
            if _has_expired(valid[1].expires_at):
                raise TokenRejected("has expired")
            return valid[1]
        if invalid is not None and now < invalid[0]:
            raise TokenRejected(invalid[1])
        return None

    def _raise_failure(self) -> None:
        until, reason = self._failure
        if monotonic() < until:
            raise IssuerError(reason)

    def _ask(self, token: bytes, digest: bytes) -> Identity:
        asked_at = monotonic()  # the answer may be as old as the question
        try:
            data = request_bytes(self._url, self._form(token), self._authorization())
        except RequestRefused:
            raise  # because of this token, perhaps: the server is asked about others
        except IssuerError as failure:
            self._failure = monotonic() + RETRY_SECONDS, str(failure)
            raise
        answer = parse_object(self._url, data)  # a failure may concern only this token
        until = asked_at + CACHE_SECONDS
        try:
            identity = read_answer(answer, self._expected)
        except TokenRejected as rejected:
            with self._lock:
                self._valid.pop(digest, None)
                _keep(self._invalid, digest, (until, str(rejected)))
            raise
        with self._lock:
            _keep(self._valid, digest, (until, identity))
        return identity

    def _form(self, token: bytes) -> bytes:
        form = {"token": token.decode("ascii"), "token_type_hint": "access_token"}
        if self._client is not None and self._secret_source is None:
            form["client_id"] = self._client
        return urlencode(form).encode("ascii")

    def _authorization(self) -> dict[str, str]:
        if self._client is None or self._secret_source is None:
            return {}
        try:
            secret = read_client_secret(self._secret_source)
        except UnusableFile as failure:
            raise IssuerError(f"introspection_secret cannot be used: {failure}") from None
        pair = f"{quote(self._client, safe='')}:{quote(secret, safe='')}"
        return {"Authorization": f"Basic {b64encode(pair.encode('ascii')).decode('ascii')}"}


def _keep(cache: OrderedDict[bytes, T], digest: bytes, item: T) -> None:
    """Add an answer to a cache, and remove the oldest one if there are too many."""
    cache[digest] = item
    cache.move_to_end(digest)
    if len(cache) > MAX_CACHED:
        cache.popitem(last=False)


def read_client_secret(source: str) -> str:
    """Return the secret at `env:NAME` or `@FILE`; raise UnusableFile if it cannot be read."""
    if source.startswith("env:"):
        secret = environ.get(source[4:], "").encode("utf-8", "surrogateescape")
        if not secret:
            raise UnusableFile(f"the environment variable {source[4:]} is not set")
    else:
        try:
            data, mode = read_regular_file(source[1:], _MAX_SECRET_BYTES)
        except OSError as failure:
            raise UnusableFile(failure.strerror or "its file cannot be read") from None
        if mode & _WORLD_WRITABLE:
            raise UnusableFile("every user may write to its file")
        secret = data.strip()
    hold_key(secret)
    try:
        return secret.decode("utf-8")
    except UnicodeDecodeError:
        raise UnusableFile("it is not text") from None


def read_answer(answer: JsonObject, expected: ExpectedClaims) -> Identity:
    """Return the identity in the answer of an introspection endpoint.

    Raises TokenRejected if the token is not active, or is not for this server.
    """
    if answer.get("active") is not True:
        raise TokenRejected("is not active")
    check_claim_types(answer)
    if _has_expired(answer.get("exp")):
        raise TokenRejected("has expired")
    not_before = answer.get("nbf")
    if not_before is not None and not_before > time() + LEEWAY_SECONDS:
        raise TokenRejected("is not valid yet, or has an invalid claim")
    if expected.issuer is not None and answer.get("iss", expected.issuer) != expected.issuer:
        raise TokenRejected("is from another issuer")
    if expected.audiences and not has_audience(answer.get("aud"), expected.audiences):
        raise TokenRejected("is for another audience")
    if answer.get("cnf") is not None:
        raise TokenRejected("is bound to a key, which this server cannot check")
    check_client_form(answer)
    subject = answer.get("sub") or client_subject(answer)
    if subject is None:
        raise TokenRejected("has no sub")
    if not is_valid_subject(subject):
        raise TokenRejected("has an invalid subject")
    return Identity(subject, parse_scopes(answer), answer.get("exp"))


def _has_expired(expires_at: float | None) -> bool:
    return expires_at is not None and expires_at + LEEWAY_SECONDS <= time()
