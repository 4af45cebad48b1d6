"""Verify the token of a caller, for every interface.

    token ─▶ TokenVerifier ─┬▶ tokens:     a file of digests, each with a subject and scopes
                            └▶ token_key:  a JWT, verified with the keys of a file (jwt.py)

A changed file is read again, so that a token can be revoked while a server runs. If a file cannot
be read, every token is rejected. No error, log or repr contains a token.
"""

from __future__ import annotations

import os

from tooli.errors import AuthError, InputError, Suggestion
from tooli.policy.jwt import Identity, TokenRejected, UnusableFile, parse_keys, verify_jwt

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

TOKEN_SETTINGS = ("token_key", "tokens")
"""The settings for the verification of tokens. Without them no token is accepted."""
MAX_TOKEN_BYTES = 16 << 10
"""Maximum length of a token in bytes."""
_MAX_FILE_BYTES = 1 << 20  # bytes
_WORLD_WRITABLE, _GROUP_OR_WORLD_ACCESS = 0o002, 0o077
_HEX_DIGITS = frozenset("0123456789abcdef")


def make_verifier(settings: Mapping[str, Any]) -> TokenVerifier | None:
    """Return the verifier for the settings of an app; None without such settings."""
    return TokenVerifier(settings) if any([name in settings for name in TOKEN_SETTINGS]) else None


class TokenVerifier:
    """Verifies tokens by the settings `tokens` and `token_key`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._tokens_file: _TrustedFile | None = None
        self._keys_file: _TrustedFile | None = None
        self._issuer: str | None = settings.get("token_issuer")
        self._audience: str | None = settings.get("token_audience")
        if "tokens" in settings:
            self._tokens_file = _TrustedFile("tokens", settings["tokens"], parse_tokens)
        if "token_key" in settings:
            self._keys_file = _TrustedFile("token_key", settings["token_key"], parse_keys)

    def check(self) -> None:
        """Read the files; raise an InputError if one cannot be used."""
        for file in (self._tokens_file, self._keys_file):
            if file is not None:
                file.get()

    def identify(self, token: bytes) -> Identity:
        """Return the identity of a token; raise an AuthError if it is not valid."""
        try:
            return self._identify(token)
        except TokenRejected as invalid:
            raise AuthError(
                f"The token {invalid}.",
                code="E2004",
                suggestion=Suggestion("ask_human", "Ask for a valid token, and send it."),
            ) from None

    def _identify(self, token: bytes) -> Identity:
        if not token or len(token) > MAX_TOKEN_BYTES:
            raise TokenRejected("is longer than any token" if token else "is empty")
        found = self._look_up(token) if self._tokens_file is not None else None
        if found is not None:
            return found
        if self._keys_file is None or token.count(b".") != 2:
            raise TokenRejected("is not known here")
        return verify_jwt(token, self._keys_file.get(), self._issuer, self._audience)

    def _look_up(self, token: bytes) -> Identity | None:
        from hashlib import sha256
        from hmac import compare_digest

        assert self._tokens_file is not None
        digest, found = sha256(token).hexdigest().encode(), None
        for known, identity in self._tokens_file.get():
            if compare_digest(known, digest):  # no early exit: the time must not reveal a match
                found = identity
        return found


# ------------------------------------------------------------------ trusted files


class _TrustedFile:
    """The parsed content of a file, which is read again when it changes."""

    def __init__(self, setting: str, path: str, parse: Callable[[bytes], Any]) -> None:
        self._setting = setting
        self._path = os.path.expanduser(path)
        self._parse = parse
        self._loaded_state: tuple[int, ...] | None = None
        self._value: Any = None

    def get(self) -> Any:
        """Return the parsed content; raise an InputError if it cannot be used."""
        try:
            if not os.path.isabs(self._path):  # it would depend on the current folder
                raise UnusableFile("its path is not absolute")
            state = _file_state(os.stat(self._path))
            if state != self._loaded_state:
                self._loaded_state = None
                data, mode = read_regular_file(self._path, _MAX_FILE_BYTES)
                if os.name == "posix" and mode & _WORLD_WRITABLE:
                    raise UnusableFile("everybody may write to it")
                self._value, self._loaded_state = self._parse(data), state
        except (UnusableFile, OSError) as failure:
            raise self._make_error(getattr(failure, "strerror", None) or str(failure)) from None
        return self._value

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


def read_regular_file(path: str, max_bytes: int) -> tuple[bytes, int]:
    """Return content and mode of a regular file. Never blocks on a pipe."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(file).st_mode
        if mode & 0o170000 != 0o100000:
            raise UnusableFile("it is no plain file")
        chunks: list[bytes] = []
        while (chunk := os.read(file, max_bytes + 1)) and sum(map(len, chunks)) <= max_bytes:
            chunks.append(chunk)
    finally:
        os.close(file)
    data = b"".join(chunks)
    if len(data) > max_bytes:
        raise UnusableFile("it is too large")
    return data, mode


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
    return data.strip(), warning
