"""Seals: nobody else makes one, nobody changes one, nobody uses one twice."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tooli.storage import signed_messages
from tooli.storage.signed_messages import InvalidSignature, sign_message, verify_message

MESSAGE = {"tool": "app.deploy", "answers": {"x": [1, "é"]}}


def test_there_and_back() -> None:
    assert verify_message(sign_message(MESSAGE)) == MESSAGE


def test_once() -> None:
    text = sign_message(MESSAGE)
    verify_message(text)
    with pytest.raises(InvalidSignature, match="used before"):
        verify_message(text)


def test_the_same_message_twice_is_two_seals() -> None:
    assert sign_message(MESSAGE) != sign_message(MESSAGE)


def test_one_of_many_that_come_at_once() -> None:
    text = sign_message(MESSAGE)

    def attempt(_: int) -> bool:
        try:
            verify_message(text)
        except InvalidSignature:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(200))) == 1


def test_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    text, now = sign_message(MESSAGE, ttl=10), signed_messages.time()
    monkeypatch.setattr(signed_messages, "time", lambda: now + 11)
    with pytest.raises(InvalidSignature, match="time is over"):
        verify_message(text)


def test_what_is_over_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = signed_messages.time()
    verify_message(sign_message(MESSAGE, ttl=10))
    monkeypatch.setattr(signed_messages, "time", lambda: now + 10_000)
    verify_message(sign_message(MESSAGE))
    assert len(signed_messages._used_nonces) == 1


def opened(text: str) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(text.partition(".")[0] + "=="))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: ".",
        lambda text: "é.é",
        lambda text: text + "-TAMPERED",
        lambda text: text[:-1],
        lambda text: text[1:],
        lambda text: text.partition(".")[0],
        lambda text: text.partition(".")[0] + ".",
        lambda text: "." + text.partition(".")[2],
        lambda text: text.replace(".", ".."),
        lambda text: forged(text, tool="app.other"),
        lambda text: forged(text, _ends=9e99),
        lambda text: forged(text, _once="another"),
    ],
)
def test_changed(change: Any) -> None:
    with pytest.raises(InvalidSignature):
        verify_message(change(sign_message(MESSAGE)))


def forged(text: str, **changes: Any) -> str:
    body = json.dumps({**opened(text), **changes}).encode()
    return base64.urlsafe_b64encode(body).decode().rstrip("=") + "." + text.partition(".")[2]


def test_of_another_process() -> None:
    with pytest.raises(InvalidSignature, match="another server"):
        verify_message(in_a_process("print(seal({}))"))


def in_a_process(program: str, **env: str) -> str:
    source = f"from tooli.storage.signed_messages import *; {program}"
    return subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **env},
    ).stdout.strip()


def test_of_another_worker(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = {"TOOLI_SEAL_KEY": "between workers", "TOOLI_STATE_DIR": str(tmp_path)}
    for name, value in shared.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(signed_messages, "_signing_key", None)
    monkeypatch.setattr(signed_messages, "_is_key_shared", False)
    text = in_a_process("print(seal({'x': 1}))", **shared)
    assert in_a_process(f"print(unseal({text!r}))", **shared) == "{'x': 1}"
    with pytest.raises(InvalidSignature, match="used before"):
        verify_message(text)


def test_of_another_fork(tmp_path: pathlib.Path) -> None:
    program = (
        "share(); text = seal({}); child = __import__('os').fork(); "
        "unseal(text) if child == 0 else __import__('os').waitpid(child, 0); "
        "child == 0 or unseal(text)"
    )
    with pytest.raises(subprocess.CalledProcessError) as failed:
        in_a_process(program, TOOLI_STATE_DIR=str(tmp_path))
    assert failed.value.stderr.count("BrokenSeal: it was used before") == 1


def test_where_nothing_can_be_kept_nothing_is_unsealed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOOLI_SEAL_KEY", "between workers")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(signed_messages, "_signing_key", None)
    monkeypatch.setattr(signed_messages, "_is_key_shared", False)
    with pytest.raises(InvalidSignature):
        verify_message(sign_message(MESSAGE))


def test_the_memory_of_what_was_used_is_short(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of seals that several processes share: a mark is of no use once its seal is over."""
    monkeypatch.setenv("TOOLI_SEAL_KEY", "between workers")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(signed_messages, "_signing_key", None)
    monkeypatch.setattr(signed_messages, "_is_key_shared", False)
    for _ in range(3):
        verify_message(sign_message(MESSAGE))
    marks = list((tmp_path / "seals").iterdir())
    assert len(marks) == 3
    long_ago = marks[0].stat().st_mtime - 2 * signed_messages.MAX_TTL_SECONDS - 1
    for mark in marks[1:]:
        os.utime(mark, (long_ago, long_ago))
    for _ in range(1000):  # some of them clear up
        verify_message(sign_message(MESSAGE))
    assert [mark.exists() for mark in marks] == [True, False, False]


def test_few_look_at_all_that_was_used(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tooli.storage import once_files

    looks: list[str] = []
    monkeypatch.setattr(once_files, "_delete_expired", lambda room, lasts: looks.append(room))
    for number in range(1000):
        assert once_files.claim_once(str(tmp_path / "room"), f"mark-{number}", 1.0)
    assert 0 < len(looks) < 100
