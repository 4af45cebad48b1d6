"""Keys, signed messages and plan tokens: forgery, expiry and single use."""

from __future__ import annotations

import base64
import multiprocessing
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tooli.storage import signing
from tooli.storage.signing import (
    InvalidToken,
    claim_plan_token,
    decode_plan_token,
    encode_plan_token,
    release_plan_token,
    sign_message,
    verify_message,
)

MESSAGE = {"tool": "app.deploy", "answers": {"x": [1, "é"]}}


def test_message_round_trip() -> None:
    assert verify_message(sign_message(MESSAGE)) == MESSAGE


def test_message_is_accepted_once() -> None:
    text = sign_message(MESSAGE)
    verify_message(text)
    with pytest.raises(InvalidToken, match="already used"):
        verify_message(text)


def test_equal_messages_have_different_tokens() -> None:
    assert sign_message(MESSAGE) != sign_message(MESSAGE)


def test_only_one_concurrent_use_of_a_message_succeeds() -> None:
    text = sign_message(MESSAGE)

    def attempt(_: int) -> bool:
        try:
            verify_message(text)
        except InvalidToken:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(200))) == 1


def test_expired_message_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    text, now = sign_message(MESSAGE, ttl=10), signing.time()
    monkeypatch.setattr(signing, "time", lambda: now + 11)
    with pytest.raises(InvalidToken, match="expired"):
        verify_message(text)


def test_expired_nonces_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = signing.time()
    verify_message(sign_message(MESSAGE, ttl=10))
    monkeypatch.setattr(signing, "time", lambda: now + 10_000)
    verify_message(sign_message(MESSAGE))
    assert len(signing._message_key._used_nonces) == 1


def forge(text: str, position: int, replacement: bytes) -> str:
    """Return the token with some bytes of its body replaced."""
    data = bytearray(base64.urlsafe_b64decode(text[1:] + "=="))
    data[position : position + len(replacement)] = replacement
    return "r" + base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: ".",
        lambda text: "é.é",
        lambda text: text + "-TAMPERED",
        lambda text: text[:-1],
        lambda text: text[1:],
        lambda text: text[: len(text) // 2],
        lambda text: "c" + text[1:],
        lambda text: text[0] + "." + text[1:],
        lambda text: forge(text, 0, b"\xff" * 5),  # the expiry
        lambda text: forge(text, 5, b"\0" * 8),  # the nonce
        lambda text: forge(text, 13, b'{"tool":"app.other"'),
    ],
)
def test_changed_message_is_rejected(change: Any) -> None:
    with pytest.raises(InvalidToken):
        verify_message(change(sign_message(MESSAGE)))


def test_message_of_another_process_is_rejected() -> None:
    with pytest.raises(InvalidToken, match="another key"):
        verify_message(run_program("print(sign_message({}))"))


def run_program(program: str, **env: str) -> str:
    source = f"import os; from tooli.storage.signing import *; {program}"
    return subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **env},
    ).stdout.strip()


def test_processes_with_same_secret_share_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = {"TOOLI_SEAL_KEY": "between workers", "TOOLI_STATE_DIR": str(tmp_path)}
    for name, value in shared.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(signing, "_message_key", signing._MessageKey())
    text = run_program("print(sign_message({'x': 1}))", **shared)
    assert run_program(f"print(verify_message({text!r}))", **shared) == "{'x': 1}"
    with pytest.raises(InvalidToken, match="already used"):
        verify_message(text)


def test_forked_processes_share_used_messages(tmp_path: Path) -> None:
    program = (
        "share_key(); text = sign_message({}); child = os.fork(); "
        "verify_message(text) if child == 0 else os.waitpid(child, 0); "
        "child == 0 or verify_message(text)"
    )
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run_program(program, TOOLI_STATE_DIR=str(tmp_path))
    assert failed.value.stderr.count("InvalidToken: it was already used") == 1


def test_message_is_rejected_if_use_cannot_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOOLI_SEAL_KEY", "between workers")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(signing, "_message_key", signing._MessageKey())
    with pytest.raises(InvalidToken):
        verify_message(sign_message(MESSAGE))


def test_markers_of_expired_messages_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_SEAL_KEY", "between workers")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(signing, "_message_key", signing._MessageKey())
    for _ in range(3):
        verify_message(sign_message(MESSAGE))
    markers = list((tmp_path / "seals").iterdir())
    assert len(markers) == 3
    long_ago = markers[0].stat().st_mtime - 2 * signing.MAX_MESSAGE_TTL_SECONDS - 1
    for marker in markers[1:]:
        os.utime(marker, (long_ago, long_ago))
    for _ in range(1000):  # some of them purge
        verify_message(sign_message(MESSAGE))
    assert [marker.exists() for marker in markers] == [True, False, False]


# ------------------------------------------------------------------ keys


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("TOOLI_SEAL_KEY", raising=False)
    monkeypatch.setattr(signing, "_cached_keys", {})
    return tmp_path / "state"


def test_key_file_is_private(home: Path) -> None:
    key = signing.get_cursor_key(owns_process=True)
    file = home / "cursors.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == ["cursors.key"]
    signing._cached_keys.clear()
    assert signing.get_cursor_key(owns_process=False) == key == file.read_bytes()


def test_incomplete_key_file_is_replaced(home: Path) -> None:
    home.mkdir()
    (home / "cursors.key").write_bytes(b"short")
    key = signing.get_cursor_key(owns_process=True)
    assert len(key) == 32
    assert (home / "cursors.key").read_bytes() == key


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX modes")
def test_key_in_a_folder_that_others_can_write_is_not_used(home: Path) -> None:
    assert signing.load_or_create_key("x") is not None
    home.chmod(0o777)
    assert signing.load_key("x") is None
    assert signing.load_or_create_key("x") is None
    assert signing.load_or_create_key("new") is None
    assert os.listdir(home) == ["x.key"]


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX modes")
@pytest.mark.parametrize("kind", ["writable", "link", "pipe"])
def test_key_that_others_may_have_written_is_replaced(
    home: Path, tmp_path: Path, kind: str
) -> None:
    first, path = signing.load_or_create_key("x"), home / "x.key"
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"k" * signing.KEY_BYTES)
    if kind == "writable":
        path.chmod(0o666)
    else:
        path.unlink()
        path.symlink_to(foreign) if kind == "link" else os.mkfifo(path)
    assert signing.load_key("x") is None
    second = signing.load_or_create_key("x")
    assert second not in (None, first, foreign.read_bytes())
    assert signing.load_key("x") == second
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600


def test_drafts_of_killed_processes_are_deleted(home: Path) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    stale, kept = home / "x.key.123.0123abcd", ("x.key.bak", "x.key.1.2", "123.0123abcd", "y.key")
    for path in (stale, *(home / name for name in kept)):
        path.write_text("draft")
        os.utime(path, (1, 1))
    recent = home / "x.key.124.0123abcd"
    recent.touch()
    assert signing.load_or_create_key("x") is not None
    assert sorted(os.listdir(home)) == sorted(["x.key", recent.name, *kept])


def test_full_disk_leaves_no_partial_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    assert signing.load_or_create_key("cursors") is None
    assert list(home.iterdir()) == []


def _read_key_in(state_dir: str) -> bytes:
    os.environ["TOOLI_STATE_DIR"] = state_dir
    return signing.get_cursor_key(owns_process=True)


def test_concurrent_processes_create_one_key(home: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert len(set(pool.map(_read_key_in, [str(home)] * 8))) == 1


def test_cursor_key_is_read_from_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_SEAL_KEY", "ours")
    assert signing.get_cursor_key(owns_process=True) == signing.get_cursor_key(owns_process=False)
    assert not home.exists()


def test_cursor_key_without_state_folder_is_random_on_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(blocked / "below"))
    monkeypatch.delenv("TOOLI_SEAL_KEY", raising=False)
    monkeypatch.setattr(signing, "_cached_keys", {})
    first, server = (
        signing.get_cursor_key(owns_process=True),
        signing.get_cursor_key(owns_process=False),
    )
    signing._cached_keys.clear()
    assert signing.get_cursor_key(owns_process=True) == first
    assert signing.get_cursor_key(owns_process=False) != server


# ------------------------------------------------------------------ plan tokens


BINDING, CONTENT_DIGEST, PLAN_DIGEST = b"b" * 12, b"c" * 12, b"d" * 16


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def make_token(action_digests: bytes = b"") -> str:
    token = encode_plan_token(BINDING, CONTENT_DIGEST, PLAN_DIGEST, action_digests)
    assert token is not None
    return token


@pytest.mark.parametrize("action_digests", [b"", b"12345678"])
def test_plan_token_round_trip(action_digests: bytes) -> None:
    token = decode_plan_token(make_token(action_digests))
    assert token.binding == BINDING
    assert token.content_digest == CONTENT_DIGEST
    assert token.plan_digest == PLAN_DIGEST
    assert token.action_digests == action_digests


def test_plan_token_is_used_once() -> None:
    token = decode_plan_token(make_token())
    assert [claim_plan_token(token) for _ in range(2)] == [True, False]
    release_plan_token(token)
    assert claim_plan_token(token)


def test_expired_plan_token_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    text, now = make_token(), signing.time()
    monkeypatch.setattr(signing, "time", lambda: now + signing.PLAN_TTL_SECONDS + 2)
    with pytest.raises(InvalidToken, match="expired"):
        decode_plan_token(text)


@pytest.mark.parametrize("text", ["", "p", "pAAAA", "x", "é"])
def test_malformed_plan_token_is_rejected(text: str) -> None:
    with pytest.raises(InvalidToken, match="malformed"):
        decode_plan_token(text)


def test_plan_token_of_another_user_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = make_token()
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "other"))
    with pytest.raises(InvalidToken, match="another key"):
        decode_plan_token(text)


def test_plan_tokens_need_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    text = make_token()
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file"))
    assert encode_plan_token(BINDING, CONTENT_DIGEST, PLAN_DIGEST, b"") is None
    with pytest.raises(InvalidToken, match="cannot be read"):
        decode_plan_token(text)


def test_short_tokens_are_rejected() -> None:
    key = signing.load_or_create_key("plans")
    assert key is not None
    with pytest.raises(InvalidToken, match="malformed"):
        signing.decode_expiring_token("p", signing.encode_token("p", b"short", key, 16), key, 16)
    token = signing.encode_expiring_token("p", b"short", key, 16, 60.0)
    with pytest.raises(InvalidToken, match="malformed"):
        decode_plan_token(token)


_CREATE_KEY = """
import os, sys, time
from tooli.storage import signing

def no_links(*_):
    raise OSError(95, "Operation not supported")

os.link = no_links
read_key = signing._read_key

def slow_read(path):
    found = read_key(path)
    time.sleep(0.02)  # all processes see that there is no key
    return found

signing._read_key = slow_read
sys.stdin.read(1)
print(signing.load_or_create_key("plans").hex())
"""


@pytest.mark.parametrize("existing", [None, b"incomplete"])
def test_all_processes_get_one_key_without_hard_links(
    state_dir: Path, existing: bytes | None
) -> None:
    state_dir.mkdir()
    if existing is not None:
        (state_dir / "plans.key").write_bytes(existing)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _CREATE_KEY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()
    keys = {process.communicate()[0].strip() for process in processes}
    assert keys == {(state_dir / "plans.key").read_bytes().hex()}
