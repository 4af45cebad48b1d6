"""Identity: who a caller is, by a token that was verified. One room for every door.

    token ─▶ Verifier ─┬▶ tokens:     a file of digests, each with a subject and its scopes
                       └▶ token_key:  a JWT, by the key in a file (jwts.py)

A file that changes is read again, so that a token can be taken back while a server runs. One
that cannot be understood verifies nothing. No error, no log and no repr shows a token.
"""

from __future__ import annotations

import os

from tooli.contract.record import Record
from tooli.errors import AuthError, InputError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

SOURCES = ("token_key", "tokens")
"""The settings that say how tokens are verified; without one of them nobody is known by any."""
LONGEST = 16 << 10
"""Bytes of a token; no honest one is longer."""
_LARGEST = 1 << 20  # bytes of a file that is trusted
_OTHERS_WRITE, _OTHERS_USE = 0o002, 0o077
_HEX = frozenset("0123456789abcdef")


class Identity(Record):
    """Who a token was made for, and what it allows."""

    principal: str
    scopes: frozenset[str]


class Invalid(Exception):  # noqa: N818  what is wrong with a token, in words that quote none of it
    """A token does not hold; the message goes on from "The token …"."""


class Unusable(Exception):  # noqa: N818
    """A file cannot be used; the message says why."""


def verifier_for(rules: Mapping[str, Any]) -> Verifier | None:
    """What verifies tokens, by the settings of an app; None where nothing is set for it."""
    return Verifier(rules) if any([name in rules for name in SOURCES]) else None


class Verifier:
    """Turns tokens into identities, by what the machine's owner has set."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self._known: _Kept | None = None
        self._keys: _Kept | None = None
        self._issuer: str | None = rules.get("token_issuer")
        self._audience: str | None = rules.get("token_audience")
        if "tokens" in rules:
            self._known = _Kept("tokens", rules["tokens"], read_tokens)
        if "token_key" in rules:
            from tooli.config.jwts import read_keys

            self._keys = _Kept("token_key", rules["token_key"], read_keys)

    def check(self) -> None:
        """Read the files; raises an InputError where one cannot be used."""
        for kept in (self._known, self._keys):
            if kept is not None:
                kept.get()

    def identify(self, token: bytes) -> Identity:
        """Who brings this token; raises an AuthError where it does not hold."""
        try:
            return self._identify(token)
        except Invalid as wrong:
            raise AuthError(
                f"The token {wrong}.",
                code="E2004",
                suggestion=Suggestion("ask_human", "Ask for a token that holds, and send it."),
            ) from None

    def _identify(self, token: bytes) -> Identity:
        if not token or len(token) > LONGEST:
            raise Invalid("is longer than any token" if token else "is empty")
        found = self._look_up(token) if self._known is not None else None
        if found is not None:
            return found
        if self._keys is None or token.count(b".") != 2:
            raise Invalid("is not known here")
        from tooli.config.jwts import verify

        return verify(token, self._keys.get(), self._issuer, self._audience)

    def _look_up(self, token: bytes) -> Identity | None:
        from hashlib import sha256
        from hmac import compare_digest

        assert self._known is not None
        digest, found = sha256(token).hexdigest().encode(), None
        for known, identity in self._known.get():
            if compare_digest(known, digest):  # all are compared, whichever it is
                found = identity
        return found


# ------------------------------------------------------------------ files that are trusted


class _Kept:
    """What stands in a file of the machine's owner, read again when the file is another one."""

    def __init__(self, setting: str, path: str, parse: Callable[[bytes], Any]) -> None:
        self._setting = setting
        self._path = os.path.expanduser(path)
        self._parse = parse
        self._seen: tuple[int, ...] | None = None
        self._value: Any = None

    def get(self) -> Any:
        """What it says; raises an InputError where it cannot be used."""
        try:
            if not os.path.isabs(self._path):  # or whoever starts us elsewhere chooses the file
                raise Unusable("it is not named by its whole path")
            seen = _signs(os.stat(self._path))
            if seen != self._seen:
                self._seen = None
                data, mode = read(self._path, _LARGEST)
                if os.name == "posix" and mode & _OTHERS_WRITE:
                    raise Unusable("everybody may write to it")
                self._value, self._seen = self._parse(data), seen
        except (Unusable, OSError) as failure:
            raise self._refusal(getattr(failure, "strerror", None) or str(failure)) from None
        return self._value

    def _refusal(self, why: str) -> InputError:
        return InputError(
            f"{self._setting}: {self._path} cannot be used: {why}.",
            code="E1011",
            field=self._setting,
            is_retryable=False,
            suggestion=Suggestion("fix", f"Correct the file, or the setting {self._setting}."),
        )


def _signs(found: os.stat_result) -> tuple[int, ...]:
    """What tells one state of a file from another."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode


def read(path: str, most: int) -> tuple[bytes, int]:
    """The bytes of a plain file and its mode; never waits for a pipe that nobody writes to."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(file).st_mode
        if mode & 0o170000 != 0o100000:
            raise Unusable("it is no plain file")
        pieces: list[bytes] = []
        while (piece := os.read(file, most + 1)) and sum(map(len, pieces)) <= most:
            pieces.append(piece)
    finally:
        os.close(file)
    data = b"".join(pieces)
    if len(data) > most:
        raise Unusable("it is too large")
    return data, mode


def read_tokens(data: bytes) -> list[tuple[bytes, Identity]]:
    """Known tokens: `SHA256-OF-THE-TOKEN SUBJECT scope scope …`, one a line; `#` comments."""
    found: dict[bytes, Identity] = {}
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise Unusable("it is not text") from None
    for number, line in enumerate(lines, 1):
        words = line.split()
        said = next((i for i, word in enumerate(words) if word[0] == "#"), len(words))
        words = words[:said]
        if not words:
            continue
        digest = words[0].lower()
        if len(digest) != 64 or not _HEX.issuperset(digest):
            raise Unusable(f"line {number} does not begin with a SHA-256 in 64 hex digits")
        if len(words) == 1:
            raise Unusable(f"line {number} does not say whose token it is")
        if digest.encode() in found:
            raise Unusable(f"line {number} has a token that stands there already")
        found[digest.encode()] = Identity(words[1], frozenset(words[2:]))
    return list(found.items())


# ------------------------------------------------------------------ a caller's own file


def read_token_file(path: str) -> tuple[bytes, str | None]:
    """A caller's token, and a warning about its file; raises an AuthError without one."""
    try:
        data, mode = read(path, LONGEST)
    except (Unusable, OSError) as failure:
        why = getattr(failure, "strerror", None) or str(failure)
        raise AuthError(
            f"The token in TOOLI_TOKEN_FILE cannot be read: {why}.",
            code="E2004",
            suggestion=Suggestion("fix", "Name a file that holds a token, and nothing else."),
        ) from None
    shared = os.name == "posix" and mode & _OTHERS_USE
    warning = "others may use the file of TOOLI_TOKEN_FILE: chmod 600 it" if shared else None
    return data.strip(), warning
