"""Keys that a sandboxed process overwrites."""

from __future__ import annotations

import pytest

from tooli.core import held_keys


@pytest.fixture(autouse=True)
def held(monkeypatch: pytest.MonkeyPatch) -> set[bytes]:
    found: set[bytes] = set()
    monkeypatch.setattr(held_keys, "held_keys", found)
    return found


def test_key_is_held_as_it_is_in_memory(held: set[bytes]) -> None:
    held_keys.hold_key(b"\0\xff")
    held_keys.hold_key("text")
    assert held == {b"\0\xff", b"text"}


def test_text_is_held_in_the_forms_that_python_uses(held: set[bytes]) -> None:
    held_keys.hold_key("ä")
    assert held == {b"\xc3\xa4", b"\xe4", b"\xe4\0", b"\xe4\0\0\0"}
    held.clear()
    held_keys.hold_key("\udcff")  # an environment variable that is not UTF-8
    assert b"\xff" in held
