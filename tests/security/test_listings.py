"""Lists that a person relies on: the settings of a project cannot shorten them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.app_process import ProcessResult, environment, read_envelope, run

from tooli.builtins import storage_commands
from tooli.storage.idempotency_store import IdempotencyEntry, ScopedKey, current_process

APP = """
from tooli import Tooli
from tooli.annotations import Destructive

app = Tooli("shop", version="1.0")


@app.command(requires_approval=True)
def pay(number: int) -> int:
    return number


@app.command(annotations=Destructive)
def wipe(number: int) -> int:
    return number


if __name__ == "__main__":
    app()
"""
HIDING = "quiet: true\nmax_items: 1\nmax_bytes: 300\nmax_tokens: 50\nresponse_format: concise\n"
LISTS = {
    "approvals": ("approvals", "list"),
    "audit": ("audit", "tail"),
    "idempotency": ("idempotency", "list"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shop.py").write_text(APP)
    for number in "123":
        start(folder, "pay", number, "--json")
        start(folder, "wipe", number, "--yes", f"--idempotency-key=k{number}", "--json")
    (folder / ".tooli.yaml").write_text(HIDING)
    return folder


def start(folder: Path, *argv: str, **variables: str) -> ProcessResult:
    env = environment(TOOLI_STATE_DIR=str(folder.parent / "state"), **variables)
    return run(folder / "shop.py", *argv, cwd=folder, env=env)


@pytest.mark.parametrize("caller", ["", "codex"])
@pytest.mark.parametrize("name", LISTS)
def test_project_cannot_hide_rows(project: Path, name: str, caller: str) -> None:
    variables = {"TOOLI_CALLER": caller} if caller else {}
    rows = read_envelope(start(project, *LISTS[name], "--json", **variables).out)["result"]
    assert len(rows) >= 3
    text = start(project, *LISTS[name], "--text", **variables).out.decode()
    marks = [row.get("id") or row.get("key") or f"{row['seq']}" for row in rows]
    assert all([mark in text for mark in marks]), text


def test_project_cannot_hide_settings(project: Path) -> None:
    result = read_envelope(start(project, "config", "show", "--json").out)["result"]
    assert {"quiet", "max_items", "max_bytes", "max_tokens"} <= result.keys()
    (project / ".tooli.yaml").write_text(f"{HIDING}store: postgresql://localhost/x\n")
    result = read_envelope(start(project, "config", "show", "--json").out)["result"]
    assert "store" in result["ignored"][0]


def test_option_on_the_line_shortens_a_list(project: Path) -> None:
    answer = read_envelope(start(project, "approvals", "list", "--json", "--max-items=1").out)
    assert len(answer["result"]) == 1
    assert answer["meta"]["truncated"]["total"] == 3


def test_long_list_of_keys_says_that_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from tooli import Tooli
    from tooli.testing import invoke

    def query(app: object, find: object) -> list[IdempotencyEntry]:
        return [
            IdempotencyEntry(ScopedKey("shop.pay", "", key), "", "done", current_process(), "", 0.0)
            for key in "abc"
        ]

    monkeypatch.setattr(storage_commands, "_query_store", query)
    monkeypatch.setattr(storage_commands, "MAX_LISTED_KEYS", 2)
    answer = invoke(Tooli("shop"), "idempotency", "list", "--json").envelope
    assert [row["key"] for row in answer["result"]] == ["a", "b"]
    assert "Only the newest 2 are listed" in answer["meta"]["warnings"][0]
