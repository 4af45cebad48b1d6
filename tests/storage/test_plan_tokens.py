"""Plan tokens are signed, bound to a call and a folder, expire, and are used once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tooli.storage import plan_tokens, signing
from tooli.storage.plan_tokens import (
    claim_plan_token,
    compute_plan_binding,
    decode_plan_token,
    encode_plan_token,
    release_plan_token,
)
from tooli.storage.signing import InvalidToken

PLAN_DIGEST = "0f" * 16


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def make_token(action_digests: bytes = b"") -> str:
    token = encode_plan_token(compute_plan_binding("call", None), PLAN_DIGEST, action_digests)
    assert token is not None
    return token


@pytest.mark.parametrize("action_digests", [b"", b"12345678"])
def test_a_token_decodes_to_its_content(action_digests: bytes) -> None:
    token = decode_plan_token(make_token(action_digests))
    assert token.binding == compute_plan_binding("call", None)
    assert token.plan_digest.hex() == PLAN_DIGEST
    assert token.action_digests == action_digests


def test_a_token_is_used_once_unless_it_is_released() -> None:
    token = decode_plan_token(make_token())
    assert [claim_plan_token(token) for _ in range(2)] == [True, False]
    release_plan_token(token)
    assert claim_plan_token(token)


def test_the_binding_depends_on_call_principal_and_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bindings = {compute_plan_binding(*of) for of in (("a", None), ("b", None), ("a", "ann"))}
    monkeypatch.chdir(tmp_path)
    assert len({*bindings, compute_plan_binding("a", None)}) == 4


def test_an_expired_token_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    text, now = make_token(), signing.time()
    monkeypatch.setattr(signing, "time", lambda: now + plan_tokens.PLAN_TTL_SECONDS + 2)
    with pytest.raises(InvalidToken, match="expired"):
        decode_plan_token(text)


@pytest.mark.parametrize("text", ["", "p", "pAAAA", "x", "é"])
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(InvalidToken, match="malformed"):
        decode_plan_token(text)


def test_a_token_of_another_user_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = make_token()
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "other"))
    with pytest.raises(InvalidToken, match="another key"):
        decode_plan_token(text)


def test_without_a_key_there_are_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    text = make_token()
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file"))
    assert encode_plan_token(b"", PLAN_DIGEST, b"") is None
    with pytest.raises(InvalidToken, match="cannot be read"):
        decode_plan_token(text)
