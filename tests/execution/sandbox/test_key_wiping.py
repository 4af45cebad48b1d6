"""Keys are overwritten in the memory of a process, wherever they are."""

from __future__ import annotations

import ctypes
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from tooli.core.held_keys import hold_key
from tooli.execution.sandbox import key_wiping
from tooli.execution.sandbox.key_wiping import find_used_memory, wipe_keys
from tooli.execution.sandbox.syscalls import SandboxUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="no /proc")


@pytest.fixture(autouse=True)
def no_other_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(key_wiping, "held_keys", set())
    monkeypatch.setattr("tooli.core.held_keys.held_keys", key_wiping.held_keys)
    yield


def in_child(function: Callable[[], Any]) -> Any:
    """Run a function in a forked process and return its result."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write_end, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    assert data, "the process has crashed"
    return json.loads(data)


def count_copies(mask: bytes, masked: list[bytes]) -> list[int]:
    """Return how often each text is in the memory. The texts are masked, so that they are not."""
    counts: list[int] = []
    for text in masked:
        needle = ctypes.create_string_buffer(len(text))
        for i, (one, other) in enumerate(zip(text, mask, strict=False)):
            needle[i] = one ^ other
        memmem = ctypes.CDLL(None).memmem
        memmem.restype, memmem.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t) * 2
        count = 0
        for start, end in find_used_memory():
            position = start
            while found := memmem(position, end - position, needle, len(text)):
                count += found != ctypes.addressof(needle)
                position = found + 1
        counts.append(count)
    return counts


@needs_proc
def test_every_copy_of_a_key_is_overwritten() -> None:
    mask = os.urandom(100)
    key = os.urandom(32)
    forms = [key, key[:24], key[8:]]
    masked = [bytes([a ^ b for a, b in zip(form, mask, strict=False)]) for form in forms]
    copies = [bytearray(key), b"before" + key + b"after", [key + b"x"]]
    large = key * 1000 + b"-" * (1 << 20) + key
    freed = [bytes(bytearray(key)) for _ in range(100)]
    del freed
    damaged = bytearray(b"12345678" + key[8:])
    assert count_copies(mask, masked)[0] > 1000
    hold_key(key)

    def wipe() -> Any:
        wipe_keys()
        return [
            count_copies(mask, masked),
            copies[1].startswith(b"before\0\0") and copies[1].endswith(b"\0\0after"),
            bytes(damaged) == b"12345678" + bytes(24),
            large.count(b"-"),
            len(key_wiping.held_keys),
        ]

    assert in_child(wipe) == [[0, 0, 0], True, True, 1 << 20, 0]
    assert copies[1] == b"before" + key + b"after"  # the parent process keeps its keys


@needs_proc
def test_text_is_overwritten_in_the_forms_that_python_uses() -> None:
    texts = ["a-token-of-the-server", "schlüssel-für-den-server", "ключ-длинный-сервера", "🔑" * 20]
    texts = [text + os.urandom(8).hex() for text in texts]
    for text in texts:
        hold_key(text)

    def wipe() -> Any:
        wipe_keys()
        return ["\0" * 16 in text for text in texts]

    assert in_child(wipe) == [True] * len(texts)


@needs_proc
def test_similar_data_is_not_changed() -> None:
    key = b"0123456789abcdefghijklmnopqrstuv"
    others = [bytearray(key[:-9] + b"-" * 9), bytearray(key[1:20]), bytearray(b"X" + key[9:])]
    hold_key(key)
    hold_key(b"short")
    short = bytearray(b"short")

    def wipe() -> Any:
        expected = [len(other) for other in others]
        wipe_keys()
        return [
            [len(other.replace(b"\0", b"")) for other in others],
            expected,
            bytes(short).decode(),
        ]

    lengths, expected, text = in_child(wipe)
    assert lengths == expected
    assert text == "short"


@needs_proc
@pytest.mark.parametrize("share", [0.08, 0.3])
def test_parts_of_a_long_key_are_overwritten(share: float) -> None:
    """A large copy in freed memory is often overwritten by many small objects."""
    key = os.urandom(3600).hex().encode()
    size = int(len(key) * share)
    starts = [0, 1111, len(key) // 2, len(key) - size]
    parts = [bytearray(b"<<<" + key[start : start + size] + b">>>") for start in starts]
    holder = bytearray(b"-" * len(key))
    holder[2000 : 2000 + size] = key[2000 : 2000 + size]
    hold_key(key)

    def wipe() -> Any:
        wipe_keys()
        return [
            [bytes(part) == b"<<<" + bytes(size) + b">>>" for part in parts],
            holder.count(b"-") == len(key) - size and holder.count(b"\0") == size,
        ]

    assert in_child(wipe) == [[True] * len(parts), True]


@needs_proc
def test_pieces_that_may_be_in_other_data_are_not_searched() -> None:
    key = b"=" * 300 + os.urandom(300) + b"=" * 300
    other = bytearray(b"=" * 100)
    hold_key(key)

    def wipe() -> Any:
        wipe_keys()
        return other.count(b"=")

    assert in_child(wipe) == 100


@needs_proc
def test_equal_bytes_of_a_new_object_are_not_changed() -> None:
    key = b"0123456789abcdefghijklmnopqrstuv"
    damaged = bytearray(b"-1--4-67" + key[8:])
    hold_key(key)

    def wipe() -> Any:
        wipe_keys()
        return bytes(damaged[:8]).decode()

    assert in_child(wipe)[:6] == "-1--4-"


@needs_proc
def test_memory_is_searched_without_pagemap(monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def refuse(path: Any, *args: Any) -> int:
        if path == "/proc/self/pagemap":
            raise FileNotFoundError(path)
        return real_open(path, *args)

    key = bytearray(os.urandom(32))
    hold_key(bytes(key))

    def wipe() -> Any:
        monkeypatch.setattr(os, "open", refuse)
        wipe_keys()
        return bytes(key) == bytes(32)

    assert in_child(wipe)


def test_memory_that_cannot_be_searched_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise OSError("no /proc")

    monkeypatch.setattr(key_wiping, "_read_mappings", fail)
    wipe_keys()  # there are no keys
    hold_key(os.urandom(32))
    with pytest.raises(SandboxUnavailable, match="keys in memory"):
        wipe_keys()


def test_short_keys_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_wiping, "KeyNeedles", None)
    hold_key("short")
    hold_key("")
    wipe_keys()
