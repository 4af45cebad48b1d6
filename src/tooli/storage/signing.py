"""Keys, signatures and signed tokens. Every signature of the package is made here.

A signature is a keyed BLAKE2b digest (`sign`, `verify`). It appears in these places:

    cursors            "c" + base64url(body + signature)   reusable
    plan tokens        "p" + base64url(body + signature)   expires, single use
    MCP request state  "r" + base64url(body + signature)   expires, single use
    approval files     body, newline, hexadecimal signature
    audit log lines    body, field "sum" with the hexadecimal signature

The body of an expiring token starts with its expiry time and a nonce.

For speed, this module does not import `hmac`, `hashlib`, `base64` or `json` at the top, because
every command line call that returns a cursor loads it.
"""

from __future__ import annotations

import os
from _operator import _compare_digest  # hmac.compare_digest without importing hmac
from _thread import allocate_lock
from binascii import a2b_base64, b2a_base64
from time import time

from tooli.core import Record
from tooli.core.call_fingerprint import digest
from tooli.core.held_keys import hold_key
from tooli.storage.state_files import (
    FileLock,
    UnusableFile,
    check_private_folder,
    claim_once,
    delete_own_files,
    get_state_dir,
    is_hex,
    make_private_folder,
    read_regular_file,
    release_claim,
    remove_file,
    write_private_file,
)
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tooli.core.protocols import JsonObject

KEY_BYTES = 32
MAX_MESSAGE_TTL_SECONDS = 600.0
"""Longest lifetime of a signed message, in seconds."""
_EXPIRY_BYTES, _NONCE_BYTES = 5, 8
_MESSAGE_PREFIX, _MESSAGE_SIGNATURE_BYTES = "r", 32
PLAN_TTL_SECONDS = 3600
"""Seconds for which a plan can be applied."""
PLAN_BINDING_BYTES, PLAN_DIGEST_BYTES = 12, 16
_PLAN_SIGNATURE_BYTES = 16


class InvalidToken(ValueError):  # noqa: N818
    """A token is malformed, was changed, has expired or was already used.

    The message completes the sentence "The token cannot be used: …".
    """


# ------------------------------------------------------------------ signatures


def sign(data: bytes, key: bytes, size: int) -> bytes:
    """Return the signature of some data, `size` bytes long."""
    return digest(data, size, key)


def verify(data: bytes, signature: bytes, key: bytes, size: int) -> bool:
    """True if `signature` is the signature of the data. Takes constant time."""
    return _compare_digest(digest(data, size, key), signature)


def sign_hex(data: bytes, key: bytes, size: int) -> bytes:
    """Return the signature of some data in hexadecimal digits."""
    return sign(data, key, size).hex().encode()


def verify_hex(data: bytes, signature: bytes, key: bytes, size: int) -> bool:
    """True if `signature` is the hexadecimal signature of the data. Takes constant time."""
    return _compare_digest(sign_hex(data, key, size), signature)


# ------------------------------------------------------------------ keys

_DRAFT_RETENTION_SECONDS = 3600
_cached_keys: dict[tuple[str, bool], bytes] = {}


def load_or_create_key(name: str) -> bytes | None:
    """Return the user's key with a name; create it on first use.

    Returns None if the key file can be neither read nor created. Only the user can read the file.
    All processes of the user get the same key.
    """
    state_dir = get_state_dir()
    path = os.path.join(state_dir, f"{name}.key")
    return _read_key(path) or _create_key(state_dir, path)


def load_key(name: str) -> bytes | None:
    """Return the user's key with a name; None if it does not exist."""
    return _read_key(os.path.join(get_state_dir(), f"{name}.key"))


def get_cursor_key(*, owns_process: bool) -> bytes:
    """Return the key for cursors: derived from `TOOLI_SEAL_KEY`, or the user's key file.

    Args:
        owns_process: True if each call has a process of its own, as on the command line.

    If the key file cannot be created, for example in a sandbox, a server uses a random key. On the
    command line the next process must accept the cursors of this one, so the key is derived from
    the user ID. Anyone can compute such a key, so the signature detects mistakes but not forgery.
    """
    secret = os.environ.get("TOOLI_SEAL_KEY")
    if secret:
        return _key_from_secret(secret)
    cache_key = (get_state_dir(), owns_process)
    if cache_key not in _cached_keys:
        _cached_keys[cache_key] = load_or_create_key("cursors") or _make_fallback_key(owns_process)
    return _cached_keys[cache_key]


def is_public_key(key: bytes) -> bool:
    """True if anyone can compute the key, because no key file could be created."""
    return key == _make_fallback_key(True)


def load_shared_key(name: str) -> bytes | None:
    """Return the key with a name that is derived from `TOOLI_SEAL_KEY`; None if that is not set."""
    secret = os.environ.get("TOOLI_SEAL_KEY")
    return _derive_key(f"tooli {name}", _key_from_secret(secret)) if secret else None


def _key_from_secret(secret: str) -> bytes:
    key = digest(secret.encode("utf-8", "surrogateescape"), KEY_BYTES)
    hold_key(key)
    return key


def _derive_key(purpose: str, key: bytes) -> bytes:
    """Return a key for one purpose."""
    derived = digest(purpose.encode(), KEY_BYTES, key)
    hold_key(derived)
    return derived


def _make_fallback_key(owns_process: bool) -> bytes:
    if not owns_process:
        key = os.urandom(KEY_BYTES)
        hold_key(key)
        return key
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return digest(f"tooli cursors of {user}".encode(), KEY_BYTES)


def _read_key(path: str) -> bytes | None:
    """Return the key in a file; None if there is none, or if other users can replace it."""
    try:
        check_private_folder(os.path.dirname(path))
        data, mode = read_regular_file(path, KEY_BYTES, getattr(os, "O_NOFOLLOW", 0))
    except (OSError, UnusableFile):
        return None
    hold_key(data)
    is_writable_by_others = hasattr(os, "getuid") and mode & 0o022
    return data if len(data) == KEY_BYTES and not is_writable_by_others else None


def _create_key(state_dir: str, path: str) -> bytes | None:
    """Create a key file. If several processes try, the first one wins, and all return its key."""
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        make_private_folder(state_dir)
        check_private_folder(state_dir)
        _delete_old_drafts(state_dir)
        key = os.urandom(KEY_BYTES)
        hold_key(key)
        write_private_file(draft, key)
        try:
            os.link(draft, path)
        except OSError:  # the file exists, or the file system has no hard links
            if _read_key(path) is None:
                _replace_key(draft, path)
    except OSError:
        return None
    finally:
        remove_file(draft)
    return _read_key(path)


def _replace_key(draft: str, path: str) -> None:
    """Move a key file to its path, unless another process has created a complete one."""
    with FileLock(f"{path}.lock"):
        if _read_key(path) is None:
            os.replace(draft, path)


def _delete_old_drafts(state_dir: str) -> None:
    """Delete the drafts of processes that were killed while they created a key."""
    oldest = time() - _DRAFT_RETENTION_SECONDS
    delete_own_files(
        state_dir, lambda name, found: found.st_mtime < oldest and _is_draft_name(name)
    )


def _is_draft_name(name: str) -> bool:
    start, _, random_chars = name.rpartition(".")
    key_name, _, pid = start.rpartition(".")
    return key_name.endswith(".key") and pid.isdigit() and is_hex(random_chars, 8)


# ------------------------------------------------------------------ tokens


def encode_token(prefix: str, body: bytes, key: bytes, signature_size: int) -> str:
    """Return a signed token: one letter that names its kind, then the body and its signature."""
    return prefix + _encode_base64url(body + sign(body, key, signature_size))


def decode_token(prefix: str, text: str, key: bytes, signature_size: int) -> bytes:
    """Return the body of a signed token; raise InvalidToken if it is not valid."""
    padded = text[1:].replace("-", "+").replace("_", "/") + "=" * (-len(text[1:]) % 4)
    try:
        data = a2b_base64(padded.encode("ascii"))
    except ValueError:
        raise InvalidToken("it is malformed") from None
    if prefix + _encode_base64url(data) != text or len(data) <= signature_size:
        raise InvalidToken("it is malformed")
    body = data[:-signature_size]
    if not verify(body, data[-signature_size:], key, signature_size):
        raise InvalidToken("it was changed, or it was signed with another key")
    return body


class ExpiringToken(Record):
    """The verified content of a token that expires and can be used once."""

    expires_at: int
    nonce: str
    payload: bytes


def encode_expiring_token(
    prefix: str, payload: bytes, key: bytes, signature_size: int, ttl: float
) -> str:
    """Return a signed token that expires after `ttl` seconds and has a nonce of its own."""
    expiry = int(time() + ttl).to_bytes(_EXPIRY_BYTES, "big")
    return encode_token(prefix, expiry + os.urandom(_NONCE_BYTES) + payload, key, signature_size)


def decode_expiring_token(prefix: str, text: str, key: bytes, signature_size: int) -> ExpiringToken:
    """Return the content of a token; raise InvalidToken if it is not valid or has expired.

    The caller must claim the nonce before it acts on the token.
    """
    body = decode_token(prefix, text, key, signature_size)
    if len(body) < _EXPIRY_BYTES + _NONCE_BYTES:
        raise InvalidToken("it is malformed")
    expires_at = int.from_bytes(body[:_EXPIRY_BYTES], "big")
    if expires_at < time():
        raise InvalidToken("it has expired")
    nonce = body[_EXPIRY_BYTES : _EXPIRY_BYTES + _NONCE_BYTES].hex()
    return ExpiringToken(expires_at, nonce, body[_EXPIRY_BYTES + _NONCE_BYTES :])


def _encode_base64url(data: bytes) -> str:
    text = b2a_base64(data, newline=False).decode("ascii")
    return text.rstrip("=").replace("+", "-").replace("/", "_")


# ------------------------------------------------------------------ signed messages


class _MessageKey:
    """The key of this process for signed messages, and the nonces of used messages.

    Processes share the key if `TOOLI_SEAL_KEY` is set or if they were forked after `share_key`.
    Such processes record each used nonce in a marker file, which all of them see.
    """

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._key: bytes | None = None
        self._is_shared = False
        self._used_nonces: dict[str, int] = {}

    def get(self) -> bytes:
        if self._key is None:
            # A separate key, so that a message can never be taken for a cursor.
            key = load_shared_key("signed messages")
            self._key = key or os.urandom(KEY_BYTES)
            hold_key(self._key)
            self._is_shared = key is not None
        return self._key

    def share(self) -> None:
        self.get()
        self._is_shared = True

    def claim_nonce(self, token: ExpiringToken) -> bool:
        """Mark a token as used; return False if it was used before."""
        now = time()
        with self._lock:
            for nonce in [name for name, end in self._used_nonces.items() if end < now]:
                del self._used_nonces[nonce]
            if token.nonce in self._used_nonces:
                return False
            self._used_nonces[token.nonce] = token.expires_at
        if not self._is_shared:
            return True
        folder = os.path.join(get_state_dir(), "seals")
        try:
            return claim_once(folder, token.nonce, 2 * MAX_MESSAGE_TTL_SECONDS)
        except OSError:  # it is unknown whether the token was used, so reject it
            return False


_message_key = _MessageKey()


def sign_message(message: Mapping[str, Any], ttl: float = MAX_MESSAGE_TTL_SECONDS) -> str:
    """Return a signed token with a JSON object. Clients can read the token but not change it.

    The token expires after `ttl` seconds, ten minutes at most, and can be verified once.
    """
    payload = encode(dict(message), [])
    ttl = min(ttl, MAX_MESSAGE_TTL_SECONDS)
    return encode_expiring_token(
        _MESSAGE_PREFIX, payload, _message_key.get(), _MESSAGE_SIGNATURE_BYTES, ttl
    )


def verify_message(text: str, check: Callable[[JsonObject], None] | None = None) -> JsonObject:
    """Return the JSON object of a token and mark the token as used.

    `check` may raise an error for the object. The token is then not marked as used: only the caller
    that it was made for can use it up.

    Raises:
        InvalidToken: the token is not valid, has expired or was already used.
    """
    from json import loads

    token = decode_expiring_token(
        _MESSAGE_PREFIX, text, _message_key.get(), _MESSAGE_SIGNATURE_BYTES
    )
    message: JsonObject = loads(token.payload)
    if check is not None:
        check(message)
    if not _message_key.claim_nonce(token):
        raise InvalidToken("it was already used")
    return message


def digest_for_message(data: bytes) -> str:
    """Return a keyed digest. All processes that can verify this process's messages get the same."""
    return digest(b"shown call\0" + data, 16, _message_key.get()).hex()


def share_key() -> None:
    """Create the key for signed messages now, so that processes forked later share it."""
    _message_key.share()


# ------------------------------------------------------------------ plan tokens


class PlanToken(Record):
    """The content of a plan token, which allows one call to run the plan of a dry run.

    "p" + base64url(
        expiry │ nonce │ binding │ content digest │ plan digest │ action digests │ signature )
    """

    nonce: str
    binding: bytes
    content_digest: bytes
    plan_digest: bytes
    action_digests: bytes = b""


def load_plan_digest_key() -> bytes | None:
    """Return the key for the digests in plan tokens; None if it can be neither read nor created.

    With a key, nobody can find a short argument by comparing the digests of all possible values.
    """
    key = load_or_create_key("plans")
    return None if key is None else _derive_key("tooli plan digests", key)


def encode_plan_token(
    binding: bytes, content_digest: bytes, plan_digest: bytes, action_digests: bytes
) -> str | None:
    """Return the token for a plan; None if the key can be neither read nor created.

    Clients can read the token. So all digests in it are made with `load_plan_digest_key`.

    Args:
        binding: `PLAN_BINDING_BYTES` that identify the call.
        content_digest: `PLAN_BINDING_BYTES` that identify the content of files in its arguments.
        plan_digest: `PLAN_DIGEST_BYTES` that identify the plan.
        action_digests: the concatenated digests of its actions.
    """
    key = load_or_create_key("plans")
    if key is None:
        return None
    payload = binding + content_digest + plan_digest + action_digests
    return encode_expiring_token("p", payload, key, _PLAN_SIGNATURE_BYTES, PLAN_TTL_SECONDS)


def decode_plan_token(text: str) -> PlanToken:
    """Return the content of a plan token; raise InvalidToken if it is not valid."""
    key = load_or_create_key("plans")
    if key is None:
        raise InvalidToken("the key for plans cannot be read in the state directory")
    token = decode_expiring_token("p", text, key, _PLAN_SIGNATURE_BYTES)
    payload, plan_start = token.payload, 2 * PLAN_BINDING_BYTES
    actions_start = plan_start + PLAN_DIGEST_BYTES
    if len(payload) < actions_start:
        raise InvalidToken("it is malformed")
    return PlanToken(
        token.nonce,
        payload[:PLAN_BINDING_BYTES],
        payload[PLAN_BINDING_BYTES:plan_start],
        payload[plan_start:actions_start],
        payload[actions_start:],
    )


def claim_plan_token(token: PlanToken) -> bool:
    """Mark a token as used; return False if it was used before.

    Raises:
        OSError: the marker can be neither created nor found.
    """
    return claim_once(_used_tokens_dir(), token.nonce, 2 * PLAN_TTL_SECONDS)


def release_plan_token(token: PlanToken) -> None:
    """Allow a token to be used again, because its plan did not run."""
    release_claim(_used_tokens_dir(), token.nonce)


def _used_tokens_dir() -> str:
    return os.path.join(get_state_dir(), "plans")
