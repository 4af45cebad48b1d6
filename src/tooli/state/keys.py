"""Keys that last: the same in every process of a user, in files that nobody else reads.

And words that are sealed with them: `c…` is a cursor, `p…` the token of a plan.
"""

from __future__ import annotations

import binascii
import os

from tooli.call.canonical import digest
from tooli.state.home import state_home

LENGTH = 32
_kept: dict[tuple[str, str], bytes] = {}


def key_file(name: str) -> bytes | None:
    """The key of that name, made where there is none; None where no file can be kept."""
    home = state_home()
    path = os.path.join(home, f"{name}.key")
    return _read(path) or _make(home, path)


def lasting_key(surface: str) -> bytes:
    """`TOOLI_SEAL_KEY`, else a file that only its user reads.

    Where no file can be kept, as in a sandbox, a server makes a key of its own. A command line
    has to take up in the next process what this one gave out: there the seal then tells a
    mistake, but not a forgery, of whoever could as well change the command.
    """
    said = os.environ.get("TOOLI_SEAL_KEY")
    if said:
        return digest(said.encode("utf-8", "surrogateescape"), LENGTH)
    place = (state_home(), surface)
    if place not in _kept:
        _kept[place] = key_file("cursors") or _makeshift(surface)
    return _kept[place]


def _makeshift(surface: str) -> bytes:
    if surface != "cli":
        return os.urandom(LENGTH)
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return digest(f"tooli cursors of {user}".encode(), LENGTH)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            data = file.read(LENGTH + 1)
    except OSError:
        return None
    return data if len(data) == LENGTH else None


def _make(home: str, path: str) -> bytes | None:
    """A new key, put in place whole; of several processes that try, the first one's holds."""
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(file, os.urandom(LENGTH))
        finally:
            os.close(file)
        try:
            if os.path.exists(path) and _read(path) is None:  # somebody's half of one
                os.replace(draft, path)
            else:
                os.link(draft, path)
        except FileExistsError:
            pass
        except OSError:  # no links here
            os.replace(draft, path)
        if os.path.exists(draft):
            os.unlink(draft)
    except OSError:
        return None
    return _read(path)


# ------------------------------------------------------------------ sealed words


class BrokenSeal(ValueError):  # noqa: N818
    """Something was not sealed by us, or its time is over, or it was used before."""


def sealed(kind: str, body: bytes, key: bytes, size: int) -> str:
    """A few bytes as one word that nobody else can make or change; `kind` is its first letter."""
    return kind + _as_text(body + digest(body, size, key))


def unsealed(kind: str, text: str, key: bytes, size: int) -> bytes | None:
    """What was sealed; None for what is no such word at all; raises BrokenSeal."""
    padded = text[1:].replace("-", "+").replace("_", "/") + "=" * (-len(text[1:]) % 4)
    try:
        data = binascii.a2b_base64(padded.encode("ascii"))
    except ValueError:
        return None
    if kind + _as_text(data) != text or len(data) <= size:
        return None
    from _operator import _compare_digest as same  # what hmac.compare_digest is

    body, signed = data[:-size], data[-size:]
    if not same(digest(body, size, key), signed):
        raise BrokenSeal
    return body


def _as_text(data: bytes) -> str:
    text = binascii.b2a_base64(data, newline=False).decode("ascii")
    return text.rstrip("=").replace("+", "-").replace("/", "_")
