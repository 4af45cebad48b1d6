"""`audit tail`, `audit verify`, `idempotency list` and `idempotency forget`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tooli import Tooli
from tooli.annotations import Destructive
from tooli.testing import invoke


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def shop() -> Tooli:
    shop = Tooli("shop")
    shop.command("pay", annotations=Destructive)(pay)
    shop.command("other")(lambda: None)
    return shop


def pay(amount: int) -> int:
    """Pay."""
    return amount


class TestAudit:
    def test_tail(self, shop: Tooli) -> None:
        for amount in (1, 2):
            shop.call("pay", amount=amount, yes=True)
        rows = invoke(shop, "audit", "tail", "-n", "1", "--json").result
        assert [(row["seq"], row["phase"]) for row in rows] == [(4, "ends")]
        assert len(invoke(shop, "audit", "tail", "--json").result) == 4
        assert invoke(shop, "audit", "tail", "-n", "0", "--json").result == []

    def test_verify(self, shop: Tooli, state_dir: Path) -> None:
        shop.call("pay", amount=1, yes=True)
        report = invoke(shop, "audit", "verify", "--json").result
        assert (report["lines"], report["whole"]) == (2, True)
        (log,) = state_dir.rglob("shop.jsonl")
        log.write_bytes(log.read_bytes().replace(b'"amount":1', b'"amount":9', 1))
        done = invoke(shop, "audit", "verify", "--json")
        assert (done.exit_code, done.error["details"]["line"]) == (20, 1)
        assert done.error["message"].startswith("The audit log was modified: ")

    def test_log_that_cannot_be_read_is_an_error(self, shop: Tooli, state_dir: Path) -> None:
        shop.call("pay", amount=1, yes=True)
        (log,) = state_dir.rglob("shop.jsonl")
        log.unlink()
        log.mkdir()
        assert invoke(shop, "audit", "tail", "--json").error["code"] == "E3000"


class TestIdempotency:
    def test_list(self, shop: Tooli) -> None:
        shop.call("pay", amount=1, yes=True, idempotency_key="k1")
        (row,) = invoke(shop, "idempotency", "list", "--json").result
        assert (row["key"], row["command"], row["state"]) == ("k1", "pay", "done")
        assert invoke(shop, "idempotency", "list", "--open", "--json").result == []

    def test_forget(self, shop: Tooli) -> None:
        shop.call("pay", amount=1, yes=True, idempotency_key="k1")
        forget = ("idempotency", "forget", "k1", "--json")
        assert invoke(shop, *forget, "--command", "other").exit_code == 10
        assert invoke(shop, *forget, "--command", "pay").result == {"forgotten": 1}
        assert invoke(shop, *forget).exit_code == 10
        assert invoke(shop, *forget, "--command", "missing").exit_code == 10
        again = shop.call("pay", amount=2, yes=True, idempotency_key="k1")
        assert again.result == 2

    def test_unavailable_store_is_an_error(self, shop: Tooli) -> None:
        env = {"TOOLI_STORE": "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1"}
        done = invoke(shop, "idempotency", "list", "--json", env=env)
        assert (done.exit_code, done.error["code"]) == (75, "E4060")
