"""Identity: who a caller is, by a token that was verified. One room for every door.

    token ─▶ Verifier ─┬▶ tokens:     a file of digests, each with a subject and its scopes
                       └▶ token_key:  a JWT, by the key in a file (jwts.py)

A file that changes is read again, so that a token can be taken back while a server runs. One
that cannot be understood verifies nothing. No error, no log and no repr shows a token.
"""

from __future__ import annotations

import os

from tooli.core.record import Record
from tooli.errors import AuthError, InputError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

TOKEN_SETTINGS = ("token_key", "tokens")
"""The settings that say how tokens are verified; without one of them nobody is known by any."""
MAX_TOKEN_BYTES = 16 << 10
"""Bytes of a token; no honest one is longer."""
_MAX_FILE_BYTES = 1 << 20  # bytes of a file that is trusted
_WORLD_WRITABLE, _GROUP_OR_WORLD_ACCESS = 0o002, 0o077
_HEX_DIGITS = frozenset("0123456789abcdef")


class Identity(Record):
    """Who a token was made for, and what it allows."""

    principal: str
    scopes: frozenset[str]


class InvalidToken(Exception):  # noqa: N818  what is wrong with a token, in words that quote none of it
    """A token does not hold; the message goes on from "The token …"."""


class UnusableFile(Exception):  # noqa: N818
    """A file cannot be used; the message says why."""


def make_verifier(settings: Mapping[str, Any]) -> TokenVerifier | None:
    """What verifies tokens, by the settings of an app; None where nothing is set for it."""
    return TokenVerifier(settings) if any([name in settings for name in TOKEN_SETTINGS]) else None


class TokenVerifier:
    """Turns tokens into identities, by what the machine's owner has set."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._tokens_file: _TrustedFile | None = None
        self._keys_file: _TrustedFile | None = None
        self._issuer: str | None = settings.get("token_issuer")
        self._audience: str | None = settings.get("token_audience")
        if "tokens" in settings:
            self._tokens_file = _TrustedFile("tokens", settings["tokens"], parse_tokens)
        if "token_key" in settings:
            from tooli.policy.jwt import parse_keys

            self._keys_file = _TrustedFile("token_key", settings["token_key"], parse_keys)

    def check(self) -> None:
        """Read the files; raises an InputError where one cannot be used."""
        for file in (self._tokens_file, self._keys_file):
            if file is not None:
                file.get()

    def identify(self, token: bytes) -> Identity:
        """Who brings this token; raises an AuthError where it does not hold."""
        try:
            return self._identify(token)
        except InvalidToken as invalid:
            raise AuthError(
                f"The token {invalid}.",
                code="E2004",
                suggestion=Suggestion("ask_human", "Ask for a token that holds, and send it."),
            ) from None

    def _identify(self, token: bytes) -> Identity:
        if not token or len(token) > MAX_TOKEN_BYTES:
            raise InvalidToken("is longer than any token" if token else "is empty")
        found = self._look_up(token) if self._tokens_file is not None else None
        if found is not None:
            return found
        if self._keys_file is None or token.count(b".") != 2:
            raise InvalidToken("is not known here")
        from tooli.policy.jwt import verify_jwt

        return verify_jwt(token, self._keys_file.get(), self._issuer, self._audience)

    def _look_up(self, token: bytes) -> Identity | None:
        from hashlib import sha256
        from hmac import compare_digest

        assert self._tokens_file is not None
        digest, found = sha256(token).hexdigest().encode(), None
        for known, identity in self._tokens_file.get():
            if compare_digest(known, digest):  # all are compared, whichever it is
                found = identity
        return found


# ------------------------------------------------------------------ files that are trusted


class _TrustedFile:
    """What stands in a file of the machine's owner, read again when the file is another one."""

    def __init__(self, setting: str, path: str, parse: Callable[[bytes], Any]) -> None:
        self._setting = setting
        self._path = os.path.expanduser(path)
        self._parse = parse
        self._loaded_state: tuple[int, ...] | None = None
        self._value: Any = None

    def get(self) -> Any:
        """What it says; raises an InputError where it cannot be used."""
        try:
            if not os.path.isabs(self._path):  # or whoever starts us elsewhere chooses the file
                raise UnusableFile("it is not named by its whole path")
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
    """What tells one state of a file from another."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode


def read_regular_file(path: str, max_bytes: int) -> tuple[bytes, int]:
    """The bytes of a plain file and its mode; never waits for a pipe that nobody writes to."""
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
    """Known tokens: `SHA256-OF-THE-TOKEN SUBJECT scope scope …`, one a line; `#` comments."""
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
            raise UnusableFile(f"line {number} does not begin with a SHA-256 in 64 hex digits")
        if len(fields) == 1:
            raise UnusableFile(f"line {number} does not say whose token it is")
        if digest.encode() in found:
            raise UnusableFile(f"line {number} has a token that stands there already")
        found[digest.encode()] = Identity(fields[1], frozenset(fields[2:]))
    return list(found.items())


# ------------------------------------------------------------------ a caller's own file


def read_token_file(path: str) -> tuple[bytes, str | None]:
    """A caller's token, and a warning about its file; raises an AuthError without one."""
    try:
        data, mode = read_regular_file(path, MAX_TOKEN_BYTES)
    except (UnusableFile, OSError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise AuthError(
            f"The token in TOOLI_TOKEN_FILE cannot be read: {reason}.",
            code="E2004",
            suggestion=Suggestion("fix", "Name a file that holds a token, and nothing else."),
        ) from None
    is_shared = os.name == "posix" and mode & _GROUP_OR_WORLD_ACCESS
    warning = "others may use the file of TOOLI_TOKEN_FILE: chmod 600 it" if is_shared else None
    return data.strip(), warning
