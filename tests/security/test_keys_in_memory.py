"""Attacks of a sandboxed command on the keys of tooli, which the process of the app has in memory.

The command searches its whole memory for the keys, including freed memory.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.security.approval_calls import request_approval, run_call

from tooli import Tooli, dry_run_support, record_dry_action
from tooli.core.call import Ok
from tooli.execution.sandbox import sandbox_runner
from tooli.execution.sandbox.key_wiping import find_used_memory, wipe_keys
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.policy.token_verifier import TokenVerifier, read_token_file
from tooli.storage import signing
from tooli.storage.approval_store import ApprovalStore

SUPPORT = detect_sandbox_support()
pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing)),
]
MASK = os.urandom(200)


HEX_DIGITS = b"0123456789abcdef"
BASE64_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def masked(values: Iterable[int]) -> list[int]:
    """Return the bytes of a text in a form that the search does not find."""
    return [one ^ other for one, other in zip(values, MASK, strict=False)]


def masked_forms(key: bytes) -> list[list[int]]:
    """Return the forms of a key that are searched: as it is, in hexadecimal digits, in base64.

    The digits are computed one by one. A text with all of them would stay in freed memory, where
    the search would find this copy of the test.
    """
    hex_digits = (HEX_DIGITS[digit] for byte in key for digit in (byte >> 4, byte & 15))
    tail = (key[i] for i in range(len(key) // 4, len(key)))
    return [masked(form) for form in (key, tail, hex_digits, base64_digits(key))]


def base64_digits(key: bytes) -> Iterator[int]:
    """Yield the characters of a key in base64 for URLs, without padding."""
    value = bits = 0
    for byte in key:
        value, bits = (value << 8 | byte) & 0xFFFF, bits + 8
        while bits >= 6:
            bits -= 6
            yield BASE64_DIGITS[value >> bits & 63]
    if bits:
        yield BASE64_DIGITS[value << (6 - bits) & 63]


def test_forms_of_a_key(wipes: bool) -> None:
    key = bytes(range(32))
    encoded = urlsafe_b64encode(key).rstrip(b"=")
    expected = [masked(form) for form in (key, key[8:], key.hex().encode(), encoded)]
    assert masked_forms(key) == expected


def count_copies(forms: list[list[int]]) -> list[int]:
    """Return how often each of the masked texts is in the memory of this process."""
    memmem = ctypes.CDLL(None).memmem
    memmem.restype, memmem.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t) * 2
    counts: list[int] = []
    for form in forms:
        needle = ctypes.create_string_buffer(len(form))
        for i, value in enumerate(form):
            needle[i] = value ^ MASK[i]
        count = 0
        for start, end in mapped_parts():
            position = start
            while found := memmem(position, end - position, needle, len(form)):
                count += found != ctypes.addressof(needle)
                position = found + 1
        counts.append(count)
        ctypes.memset(needle, 0, len(form))
    return counts


def mapped_parts() -> Iterator[tuple[int, int]]:
    """Yield the parts of MEMORY that are still mapped: the process has freed memory since."""
    write = ctypes.CDLL(None).write
    write.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
    reader, writer = os.pipe()
    for start, end in MEMORY:
        first = start
        for page in range(start, end, mmap.PAGESIZE):
            if write(writer, page, 1) == 1:  # an address that is not mapped is an error
                os.read(reader, 1)
            else:
                yield first, page
                first = page + mmap.PAGESIZE
        yield first, end
    os.close(reader)
    os.close(writer)


MEMORY: list[tuple[int, int]] = []
"""The memory of the sandboxed process. It cannot read /proc/self/maps itself."""


@pytest.fixture(autouse=True, params=["wiped", "control"])
def wipes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """False for a control, in which the keys are not wiped, so the command must find them."""
    is_wiped = request.param == "wiped"

    def wipe() -> None:
        if is_wiped:
            wipe_keys()
        MEMORY.extend(find_used_memory())

    monkeypatch.setattr(sandbox_runner, "wipe_keys", wipe)
    return is_wiped


@pytest.fixture
def app() -> Tooli:
    app = Tooli("safe", version="1.0")

    @app.command(isolation="required", capabilities=["none"])
    def search(forms: list[list[int]]) -> list[int]:
        """Search the memory for keys."""
        return count_copies(forms)

    @app.command(isolation="required", capabilities=["none"], requires_approval=True)
    def approved(forms: list[list[int]]) -> list[int]:
        """Search the memory for keys."""
        return count_copies(forms)

    return app


def search(app: Tooli, key: bytes) -> list[int]:
    """Return how often a sandboxed command finds each form of a key."""
    return app.call("search", forms=masked_forms(key)).result


def check(found: list[int], is_wiped: bool) -> None:
    if is_wiped:
        assert found == [0, 0, 0, 0]
    else:
        assert found[0] > 0


def mint(secret: bytes) -> bytes:
    """Return a JWT."""
    from joserfc import jwt
    from joserfc.jwk import OctKey

    claims = {"sub": "agent", "scope": "a", "exp": 1 << 33}
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(secret)).encode()


@pytest.mark.parametrize("kind", ["secret", "JWK", "JWKS"])
def test_key_of_tokens(app: Tooli, kind: str, tmp_path: Path, wipes: bool) -> None:
    secret = os.urandom(32).hex().encode() if kind == "secret" else os.urandom(32)
    encoded = urlsafe_b64encode(secret).rstrip(b"=").decode()
    jwk = {"kty": "oct", "k": encoded}
    content = {"secret": secret, "JWK": json.dumps(jwk).encode()}
    file = tmp_path / "key"
    file.write_bytes(content.get(kind) or json.dumps({"keys": [jwk]}).encode())
    file.chmod(0o600)
    verifier = TokenVerifier({"token_key": str(file)})
    assert verifier.identify(mint(secret)).principal == "agent"
    check(search(app, secret), wipes)
    assert verifier.identify(mint(secret)).principal == "agent"  # this process keeps its key
    file.write_bytes(b"another key " * 3)  # the old key stays in freed memory


def test_key_of_messages(app: Tooli, monkeypatch: pytest.MonkeyPatch, wipes: bool) -> None:
    """With it, a client could forge the state of a request, and repeat an approved call."""
    monkeypatch.setattr(signing, "_message_key", signing._MessageKey())
    signing.share_key()  # as a server with several workers does; no message was signed yet
    key = signing._message_key._key
    assert key is not None
    check(search(app, bytes(bytearray(key))), wipes)
    assert signing.verify_message(signing.sign_message({"a": 1})) == {"a": 1}


def test_key_of_approvals(app: Tooli, tmp_path: Path, wipes: bool) -> None:
    """The claim of an approved call contains the store, and the store contains the key."""
    ApprovalStore()
    forms = masked_forms((tmp_path / "state" / "approvals.key").read_bytes())
    request = request_approval(app, "approved", forms=forms)
    assert ApprovalStore().decide(request, "granted")
    outcome = run_call(app, "approved", forms=forms)
    assert isinstance(outcome, Ok)
    check(outcome.value, wipes)


@pytest.mark.parametrize("name", ["plans", "cursors", "audit", "idempotency"])
def test_keys_in_files(app: Tooli, name: str, tmp_path: Path, wipes: bool) -> None:
    """A key that was used before is in freed memory."""
    for _ in range(50):
        signing.sign(b"data", signing.load_or_create_key(name) or b"", 16)
    check(search(app, (tmp_path / "state" / f"{name}.key").read_bytes()), wipes)


def test_key_of_all_machines(app: Tooli, monkeypatch: pytest.MonkeyPatch, wipes: bool) -> None:
    secret = os.urandom(20).hex()
    monkeypatch.setenv("TOOLI_SEAL_KEY", secret)
    derived = signing.get_cursor_key(owns_process=False)
    signing.sign(b"data", derived, 16)
    check(search(app, secret.encode()), wipes)
    check(search(app, bytes(bytearray(derived))), wipes)


def test_tokens_of_a_server(app: Tooli, wipes: bool) -> None:
    token = os.urandom(20).hex()
    server = app.asgi(token=token)
    check(search(app, token.encode()), wipes)
    assert server is not None


def test_token_of_a_caller(app: Tooli, tmp_path: Path, wipes: bool) -> None:
    token = os.urandom(20).hex().encode()
    (tmp_path / "token").write_bytes(token)
    read, _ = read_token_file(str(tmp_path / "token"))
    check(search(app, bytes(bytearray(read))), wipes)


def test_plan_is_applied_without_the_keys_of_plans(app: Tooli, tmp_path: Path, wipes: bool) -> None:
    """The sandboxed process compares the planned actions with a key for this call only."""

    @app.command(isolation="required")
    @dry_run_support
    def wipe(forms: list[list[int]]) -> list[int] | None:
        return None if record_dry_action("wipe", "everything") else count_copies(forms)

    signing.load_or_create_key("plans")
    digest_key = signing.load_plan_digest_key()
    assert digest_key is not None
    for key in ((tmp_path / "state" / "plans.key").read_bytes(), bytes(bytearray(digest_key))):
        arguments = {"forms": masked_forms(key)}
        token = app.call("wipe", **arguments, dry_run=True).result["token"]
        answer = app.call("wipe", **arguments, apply=token)
        assert answer.ok, answer.error
        check(answer.result, wipes)
