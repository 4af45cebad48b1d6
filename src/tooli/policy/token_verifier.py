"""Verify the token of a caller, for every interface.

    token ─▶ TokenVerifier ─┬▶ tokens:            a file of digests, each with a subject and scopes
                            ├▶ token_key:         a JWT, verified with the keys of a file
                            ├▶ token_jwks_url,    a JWT, verified with the keys of an
                            │  token_issuer:      authorization server
                            └▶ introspection_url: a token that the authorization server knows

A changed file is read again, so that a token can be revoked while a server runs. If a file cannot
be read, or the authorization server cannot be asked, the token is rejected. No error, log or repr
contains a token.
"""

from __future__ import annotations

import os
from hashlib import sha256
from hmac import compare_digest
from typing import Generic, TypeVar

from tooli.config.token_settings import (
    OAUTH_SETTINGS,
    TOKEN_SETTINGS,
    has_discovered_keys,
    verifies_tokens,
)
from tooli.core.held_keys import hold_key
from tooli.errors import AuthError, DependencyError, InputError, Suggestion, TemporaryError
from tooli.policy.jwt_tokens import (
    ExpectedClaims,
    Identity,
    IssuerError,
    MustWait,
    TokenRejected,
    parse_header,
    verify_jwt,
)
from tooli.policy.verification_keys import parse_keys, require_joserfc
from tooli.storage.state_files import UnusableFile, read_regular_file

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core import SecuritySettings
    from tooli.policy.issuer_keys import IssuerKeys
    from tooli.policy.token_introspection import TokenIntrospection
    from tooli.policy.verification_keys import VerificationKey

T = TypeVar("T")

MAX_TOKEN_BYTES = 16 << 10
"""Maximum length of a token in bytes."""
_MAX_FILE_BYTES = 1 << 20
_WORLD_WRITABLE, _GROUP_OR_WORLD_ACCESS = 0o002, 0o077
_HEX_DIGITS = frozenset("0123456789abcdef")
_TOKEN_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=")
"""The characters of a bearer token (RFC 6750)."""


def make_verifier(settings: SecuritySettings) -> TokenVerifier | None:
    """Return the verifier for the settings of an app; None if they accept no tokens."""
    return TokenVerifier(settings) if verifies_tokens(settings) else None


_shared_verifiers: dict[str, TokenVerifier] = {}


def shared_verifier(settings: SecuritySettings) -> TokenVerifier | None:
    """Return a verifier that other calls of this process use as well.

    It has the keys of an authorization server that an earlier call has fetched.
    """
    if not verifies_tokens(settings):
        return None
    key = repr([settings.get(name) for name in (*TOKEN_SETTINGS, *OAUTH_SETTINGS)])
    if key not in _shared_verifiers:
        _shared_verifiers.clear()  # the settings of a process rarely change
        _shared_verifiers[key] = TokenVerifier(settings)
    return _shared_verifiers[key]


def expected_audiences(settings: SecuritySettings) -> tuple[str, ...]:
    """Return the audiences of which a token must have one; empty if none is configured.

    Without `token_audience` a token is for the server at `resource_url`, or for its MCP endpoint.
    Clients may write the URL of a server with or without a slash at its end.
    """
    if "token_audience" in settings:
        return (settings["token_audience"],)
    resource = settings.get("resource_url", "").rstrip("/").removesuffix("/mcp")
    return tuple([f"{resource}{end}" for end in ("", "/", "/mcp", "/mcp/")]) if resource else ()


class TokenVerifier:
    """Verifies tokens by the settings of an app."""

    def __init__(self, settings: SecuritySettings) -> None:
        self._tokens_file: _TrustedFile[list[tuple[bytes, Identity]]] | None = None
        self._keys_file: _TrustedFile[tuple[VerificationKey, ...]] | None = None
        self._issuer_keys: IssuerKeys | None = None
        self._introspection: TokenIntrospection | None = None
        has_issuer_keys = "token_jwks_url" in settings or has_discovered_keys(settings)
        self._expected = ExpectedClaims(
            settings.get("token_issuer"), expected_audiences(settings), has_issuer_keys
        )
        if "tokens" in settings:
            self._tokens_file = _TrustedFile("tokens", settings["tokens"], parse_tokens)
        if "token_key" in settings:
            self._keys_file = _TrustedFile("token_key", settings["token_key"], parse_keys)
        if has_issuer_keys:
            self._use_issuer_keys(settings)
        if "introspection_url" in settings:
            self._use_introspection(settings["introspection_url"], settings)

    def _use_issuer_keys(self, settings: SecuritySettings) -> None:
        from tooli.policy.issuer_keys import IssuerKeys

        if "token_key" in settings:
            fix = "Remove token_key, or token_jwks_url."
            raise _settings_error("token_key and token_jwks_url are both set.", fix)
        if not self._expected.audiences:  # a token for another server would be accepted
            fix = "Set resource_url to the URL of this server, or token_audience."
            raise _settings_error("The tokens of an issuer need an audience.", fix)
        if "token_jwks_url" in settings and "token_issuer" not in settings:
            fix = "Set token_issuer to the issuer of the tokens."
            raise _settings_error("token_jwks_url needs token_issuer.", fix)
        try:
            require_joserfc()
        except UnusableFile as missing:
            fix = Suggestion("fix", "Install the extra auth, then start again.")
            raise DependencyError(f"{missing}.", suggestion=fix) from None
        issuer = settings.get("token_issuer")
        self._issuer_keys = IssuerKeys(issuer, settings.get("token_jwks_url"))

    def _use_introspection(self, url: str, settings: SecuritySettings) -> None:
        from tooli.policy.token_introspection import TokenIntrospection

        self._introspection = TokenIntrospection(
            url,
            settings.get("introspection_client"),
            settings.get("introspection_secret"),
            self._expected,
        )

    def check(self) -> None:
        """Read the files; raise an InputError if one cannot be used. Sends no request."""
        for file in (self._tokens_file, self._keys_file):
            if file is not None:
                file.get()
        if self._introspection is not None:
            try:
                self._introspection.check()
            except UnusableFile as failure:
                fix = "Use env:NAME, or @FILE with an absolute path."
                raise _settings_error(f"introspection_secret: {failure}.", fix) from None

    def identify(self, token: bytes) -> Identity:
        """Return the identity of a token; raise an AuthError if it is not valid.

        Waits for the authorization server if it must be asked, and raises a TemporaryError if it
        cannot be asked.
        """
        identity = self._identify(token, may_wait=True)
        assert identity is not None
        return identity

    def identify_now(self, token: bytes) -> Identity | None:
        """Return the identity of a token as `identify` does, or None if that has to wait."""
        return self._identify(token, may_wait=False)

    def _identify(self, token: bytes, *, may_wait: bool) -> Identity | None:
        try:
            return self._find_identity(token, may_wait=may_wait)
        except TokenRejected as invalid:
            raise AuthError(
                f"The token {invalid}.",
                code="E2004",
                suggestion=Suggestion("ask_human", "Ask for a valid token, and send it."),
            ) from None
        except MustWait:
            return None
        except IssuerError as failure:
            raise _unavailable_error(str(failure)) from None

    def _find_identity(self, token: bytes, *, may_wait: bool) -> Identity:
        if not token or len(token) > MAX_TOKEN_BYTES:
            raise TokenRejected(f"is longer than {MAX_TOKEN_BYTES} bytes" if token else "is empty")
        found = self._look_up(token) if self._tokens_file is not None else None
        if found is not None:
            return found
        is_jwt = token.count(b".") == 2
        if self._keys_file is not None and is_jwt:
            return verify_jwt(token, self._keys_file.get(), self._expected)
        if not _TOKEN_BYTES.issuperset(token):
            raise TokenRejected("is malformed")
        if self._issuer_keys is not None and is_jwt:
            key_id = parse_header(token).get("kid")
            keys = self._issuer_keys.get(key_id, may_wait=may_wait)
            return verify_jwt(token, keys, self._expected)
        if self._introspection is not None:
            return self._introspection.identify(token, may_wait=may_wait)
        raise TokenRejected("is unknown")

    def _look_up(self, token: bytes) -> Identity | None:
        assert self._tokens_file is not None
        digest, found = sha256(token).hexdigest().encode(), None
        for known, identity in self._tokens_file.get():
            if compare_digest(known, digest):  # no early exit: the time must not reveal a match
                found = identity
        return found


def _settings_error(message: str, fix: str) -> InputError:
    return InputError(message, code="E1011", is_retryable=False, suggestion=Suggestion("fix", fix))


def _unavailable_error(reason: str) -> TemporaryError:
    return TemporaryError(
        f"Tokens cannot be verified at the moment: {reason}.",
        suggestion=Suggestion("retry_later", "Try again in a few seconds."),
    )


# ------------------------------------------------------------------ trusted files


class _TrustedFile(Generic[T]):
    """The parsed content of a file, which is read again when it changes."""

    def __init__(self, setting: str, path: str, parse: Callable[[bytes], T]) -> None:
        self._setting = setting
        self._path = os.path.expanduser(path)
        self._parse = parse
        self._loaded: tuple[tuple[int, ...], T] | None = None  # file state and parsed content

    def get(self) -> T:
        """Return the parsed content; raise an InputError if it cannot be used."""
        try:
            if not os.path.isabs(self._path):  # it would depend on the working directory
                raise UnusableFile("its path is not absolute")
            state = _file_state(os.stat(self._path))
            if self._loaded is None or state != self._loaded[0]:
                self._loaded = None
                data, mode = read_regular_file(self._path, _MAX_FILE_BYTES)
                if os.name == "posix" and mode & _WORLD_WRITABLE:
                    raise UnusableFile("every user may write to it")
                self._loaded = state, self._parse(data)
        except (UnusableFile, OSError) as failure:
            raise self._make_error(getattr(failure, "strerror", None) or str(failure)) from None
        return self._loaded[1]

    def _make_error(self, reason: str) -> InputError:
        return InputError(
            f"{self._setting}: {self._path} cannot be used: {reason}.",
            code="E1011",
            field=self._setting,
            is_retryable=False,
            suggestion=Suggestion("fix", f"Correct the file, or the setting {self._setting}."),
        )


def _file_state(found: os.stat_result) -> tuple[int, ...]:
    """Return the metadata that shows whether a file has changed."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode


def parse_tokens(data: bytes) -> list[tuple[bytes, Identity]]:
    """Parse a file of tokens: each line is `SHA256-OF-THE-TOKEN SUBJECT scope …` or a comment."""
    found: dict[bytes, Identity] = {}
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise UnusableFile("it is not text") from None
    for number, line in enumerate(lines, 1):
        fields = line.split()
        comment_start = next((i for i, field in enumerate(fields) if field[0] == "#"), len(fields))
        fields = fields[:comment_start]
        if not fields:
            continue
        digest = fields[0].lower()
        if len(digest) != 64 or not _HEX_DIGITS.issuperset(digest):
            raise UnusableFile(f"line {number} does not start with a SHA-256 in 64 hex digits")
        if len(fields) == 1:
            raise UnusableFile(f"line {number} has no subject")
        if digest.encode() in found:
            raise UnusableFile(f"line {number} repeats a token")
        found[digest.encode()] = Identity(fields[1], frozenset(fields[2:]))
    return list(found.items())


# ------------------------------------------------------------------ the caller's token file


def read_token_file(path: str) -> tuple[bytes, str | None]:
    """Return the token in a file, and a warning about the file's permissions or None.

    Raises AuthError if the file cannot be read.
    """
    try:
        data, mode = read_regular_file(path, MAX_TOKEN_BYTES)
    except (UnusableFile, OSError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise AuthError(
            f"The token in TOOLI_TOKEN_FILE cannot be read: {reason}.",
            code="E2004",
            suggestion=Suggestion("fix", "Use a file that contains only a token."),
        ) from None
    is_shared = os.name == "posix" and mode & _GROUP_OR_WORLD_ACCESS
    warning = (
        "other users can read the file of TOOLI_TOKEN_FILE: run chmod 600 on it"
        if is_shared
        else None
    )
    token = data.strip()
    hold_key(token)
    return token, warning
