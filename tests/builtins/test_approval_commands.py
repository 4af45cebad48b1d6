"""`approvals list`, `grant` and `deny`; tests/integration/test_approvals.py uses a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tooli import Tooli
from tooli.testing import invoke


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def bank() -> Tooli:
    bank = Tooli("bank")

    @bank.command(requires_approval=True)
    def transfer(amount: int) -> int:
        """Transfer money."""
        return amount

    @bank.command(requires_approval=True)
    def wipe(paths: list[str]) -> int:
        """Delete files."""
        return len(paths)

    bank.command("other")(lambda: None)
    return bank


def request_id(bank: Tooli, amount: int = 5) -> str:
    error = bank.call("transfer", amount=amount).error
    assert error is not None and error.code == "E2101"
    return error.details["approval"]["id"]


def test_list(bank: Tooli) -> None:
    assert invoke(bank, "approvals", "list", "--json").result == []
    id = request_id(bank)
    (row,) = invoke(bank, "approvals", "list", "--json").result
    assert (row["id"], row["tool"], row["arguments"]) == (id, "bank.transfer", {"amount": 5})


def test_control_characters_are_escaped_once(bank: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.call("wipe", paths=["\x1b]0;owned\x07", "a\u202eb\n"])
    (row,) = invoke(bank, "approvals", "list", "--json").result
    assert row["arguments"]["paths"] == ["\\x1b]0;owned\\x07", "a\\u202eb\\n"]
    monkeypatch.setenv("TOOLI_CALLER", "x\x1b[2J")  # an agent must not use such characters
    bank.call("wipe", paths=["b"])
    rows = invoke(bank, "approvals", "list", "--json").result
    assert len(rows) == 2 and all(row["caller"].isprintable() for row in rows)


def test_invisible_characters_are_escaped(bank: Tooli) -> None:
    """Some invisible characters count as printable, such as variation selectors."""
    hidden = ["\u034f", "\u3164", "\ufe0f", "\U000e0100", "\u200d", "\U000e0041", "\udc80"]
    bank.call("wipe", paths=[f"a{char}b" for char in hidden])
    (row,) = invoke(bank, "approvals", "list", "--json").result
    escapes = ["\\u034f", "\\u3164", "\\ufe0f", "\\U000e0100", "\\u200d", "\\U000e0041", "\\udc80"]
    assert row["arguments"]["paths"] == [f"a{text}b" for text in escapes]


def test_requests_of_other_apps_are_not_listed(bank: Tooli, app: Tooli) -> None:
    request_id(bank)
    assert invoke(app, "approvals", "list", "--json").result == []


def test_deny(bank: Tooli) -> None:
    id = request_id(bank)
    done = invoke(bank, "approvals", "deny", f" {id.upper()} ", "--json")
    assert done.result == {"id": id, "tool": "bank.transfer", "state": "denied"}
    error = bank.call("transfer", amount=5).error
    assert error is not None and error.code == "E2103"
    assert invoke(bank, "approvals", "deny", id, "--json").exit_code == 10


def test_grant_needs_a_person_at_a_terminal(bank: Tooli) -> None:
    id = request_id(bank)
    for flags in ([], ["--yes"], ["--no-input"]):
        done = invoke(bank, "approvals", "grant", id, *flags, "--json")
        assert (done.exit_code, done.error["code"]) == (101, "E2102")
    assert len(invoke(bank, "approvals", "list", "--json").result) == 1
