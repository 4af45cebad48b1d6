"""Remote callers cannot fill the idempotency store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import post

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.stages import idempotency
from tooli.storage import outcome_quota
from tooli.storage.outcome_quota import OutcomeQuota

LARGE = "x" * 100_000


class Server:
    def __init__(self) -> None:
        self.ran: list[str] = []
        app = Tooli("shop")

        @app.command(annotations=ReadOnly)
        def echo(text: str) -> str:
            self.ran.append("echo")
            return text

        @app.command()
        def pay(text: str) -> str:
            self.ran.append("pay")
            return text

        self.api = app.asgi(mcp=False, tokens={"m": None, "b": None})

    async def call(self, command: str, text: str, key: str, token: str = "m") -> Any:
        headers = [
            (b"authorization", f"Bearer {token}".encode()),
            (b"idempotency-key", key.encode()),
        ]
        return (await post(self.api, command, {"text": text}, *headers)).json()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(idempotency, "remote_quota", OutcomeQuota())
    return Server()


async def test_large_result_of_a_read_only_command_is_not_stored(
    server: Server, tmp_path: Path
) -> None:
    for i in range(30):
        answer = await server.call("echo", LARGE, f"k{i % 15}")
        assert answer["meta"]["idempotency"]["kept"] is False
        assert answer["result"] == LARGE
    assert len(server.ran) == 30  # a read-only command may run again
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert sum([path.stat().st_size for path in files]) < 1_000_000
    await server.call("echo", "small", "s")
    assert (await server.call("echo", "small", "s"))["meta"]["idempotency"]["replayed"] is True


async def test_bytes_of_one_caller_are_limited(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_quota, "MAX_BYTES_PER_CALLER", 250_000)
    answers = [await server.call("pay", LARGE, f"k{i}") for i in range(3)]
    kept = [answer["meta"]["idempotency"].get("kept", True) for answer in answers]
    assert kept == [True, True, False]
    assert (await server.call("pay", LARGE, "k0"))["meta"]["idempotency"]["replayed"] is True
    assert (await server.call("pay", LARGE, "k2"))["error"]["code"] == "E3052"
    assert server.ran == ["pay"] * 3  # a call with a key runs at most once, stored or not
    other = await server.call("pay", LARGE, "k9", token="b")
    assert "kept" not in other["meta"]["idempotency"]


async def test_keys_of_one_caller_are_limited(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_quota, "MAX_KEYS_PER_CALLER", 2)
    answers = [await server.call("pay", "x", f"k{i}") for i in range(3)]
    assert [answer["ok"] for answer in answers] == [True, True, False]
    assert answers[2]["error"]["code"] == "E4029"
    assert server.ran == ["pay"] * 2
    assert (await server.call("pay", "x", "k0"))["meta"]["idempotency"]["replayed"] is True
    assert (await server.call("pay", "x", "k2", token="b"))["ok"]
