"""Keys that last: the same in every process of a user, in files that nobody else reads.

And words that are sealed with them: `c…` is a cursor, `p…` the token of a plan.
"""

from __future__ import annotations

import binascii
import os

from tooli.pipeline.call_fingerprint import digest
from tooli.storage.state_dir import get_state_dir

KEY_BYTES = 32
_cached_keys: dict[tuple[str, str], bytes] = {}


def load_or_create_key(name: str) -> bytes | None:
    """The key of that name, made where there is none; None where no file can be kept."""
    state_dir = get_state_dir()
    path = os.path.join(state_dir, f"{name}.key")
    return _read_key(path) or _create_key(state_dir, path)


def get_signing_key(surface: str) -> bytes:
    """`TOOLI_SEAL_KEY`, else a file that only its user reads.

    Where no file can be kept, as in a sandbox, a server makes a key of its own. A command line
    has to take up in the next process what this one gave out: there the seal then tells a
    mistake, but not a forgery, of whoever could as well change the command.
    """
    secret = os.environ.get("TOOLI_SEAL_KEY")
    if secret:
        return digest(secret.encode("utf-8", "surrogateescape"), KEY_BYTES)
    cache_key = (get_state_dir(), surface)
    if cache_key not in _cached_keys:
        _cached_keys[cache_key] = load_or_create_key("cursors") or _make_fallback_key(surface)
    return _cached_keys[cache_key]


def _make_fallback_key(surface: str) -> bytes:
    if surface != "cli":
        return os.urandom(KEY_BYTES)
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return digest(f"tooli cursors of {user}".encode(), KEY_BYTES)


def _read_key(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            data = file.read(KEY_BYTES + 1)
    except OSError:
        return None
    return data if len(data) == KEY_BYTES else None


def _create_key(state_dir: str, path: str) -> bytes | None:
    """A new key, put in place whole; of several processes that try, the first one's holds."""
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        os.makedirs(state_dir, mode=0o700, exist_ok=True)
        file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(file, os.urandom(KEY_BYTES))
        finally:
            os.close(file)
        try:
            if os.path.exists(path) and _read_key(path) is None:  # somebody's half of one
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
    return _read_key(path)


# ------------------------------------------------------------------ sealed words


class InvalidSignature(ValueError):  # noqa: N818
    """Something was not sealed by us, or its time is over, or it was used before."""


def encode_signed(prefix: str, body: bytes, key: bytes, signature_size: int) -> str:
    """A few bytes as one word that nobody else can make or change; `kind` is its first letter."""
    return prefix + _encode_base64url(body + digest(body, signature_size, key))


def decode_signed(prefix: str, text: str, key: bytes, signature_size: int) -> bytes | None:
    """What was sealed; None for what is no such word at all; raises BrokenSeal."""
    padded = text[1:].replace("-", "+").replace("_", "/") + "=" * (-len(text[1:]) % 4)
    try:
        data = binascii.a2b_base64(padded.encode("ascii"))
    except ValueError:
        return None
    if prefix + _encode_base64url(data) != text or len(data) <= signature_size:
        return None
    from _operator import _compare_digest as same  # what hmac.compare_digest is

    body, signature = data[:-signature_size], data[-signature_size:]
    if not same(digest(body, signature_size, key), signature):
        raise InvalidSignature
    return body


def _encode_base64url(data: bytes) -> str:
    text = binascii.b2a_base64(data, newline=False).decode("ascii")
    return text.rstrip("=").replace("+", "-").replace("/", "_")
