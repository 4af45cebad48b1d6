"""Digests in stores and tokens: nobody can test guesses of a secret without the key."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest

from tooli import SecretInput, Tooli
from tooli.core.call_fingerprint import digest
from tooli.errors import ConflictError
from tooli.storage import idempotency_sqlite, signing
from tooli.storage.page_window import decode_cursor
from tooli.testing import invoke

POSTGRES = "postgresql://127.0.0.1:1/none"


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use a state folder for each test, and forget the keys in memory."""
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("TOOLI_SEAL_KEY", raising=False)
    signing._cached_keys.clear()
    yield tmp_path / "state"
    close_stores()
    signing._cached_keys.clear()


def close_stores() -> None:
    for store in idempotency_sqlite._open_stores.values():
        store.close()
    idempotency_sqlite._open_stores.clear()


class Login(pydantic.BaseModel):
    user: str
    password: pydantic.SecretStr


def make_app(**settings: Any) -> Tooli:
    app = Tooli("shop", **settings)

    @app.command()
    def one(pin: SecretInput[str]) -> str:
        return "done"

    @app.command()
    def typed(pin: pydantic.SecretStr) -> str:
        return "done"

    @app.command()
    def nested(logins: list[Login]) -> str:
        return "done"

    @app.command(paginated=True)
    def pages(pin: SecretInput[str]) -> list[int]:
        return list(range(9))

    @app.command()
    def failing(pin: pydantic.SecretStr) -> str:
        raise ConflictError("no")

    @app.command()
    def plain(pin: str) -> str:
        return "done"

    return app


CALLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "one": lambda pin: {"pin": pin},
    "typed": lambda pin: {"pin": pin},
    "nested": lambda pin: {"logins": [{"user": "a", "password": pin}]},
}


def with_state_dir(**variables: str) -> dict[str, str]:
    return {"TOOLI_STATE_DIR": os.environ["TOOLI_STATE_DIR"], **variables}


def read_fingerprint(state_dir: Path) -> str:
    close_stores()
    with sqlite3.connect(state_dir / "idempotency.db") as connection:
        rows = connection.execute("SELECT fingerprint FROM keys").fetchall()
    connection.close()
    assert len(rows) == 1
    return rows[0][0]


@pytest.mark.parametrize("command", CALLS)
def test_fingerprint_in_the_idempotency_store(state_dir: Path, command: str) -> None:
    found: list[str] = []
    for _ in "ab":  # the same call with two keys
        assert make_app().call(command, **CALLS[command]("1234"), idempotency_key="k").ok
        found.append(read_fingerprint(state_dir))
        shutil.rmtree(state_dir)
    assert found[0] != found[1]


@pytest.mark.parametrize("command", CALLS)
def test_secrets_whose_short_digests_are_equal(command: str) -> None:
    seen: dict[bytes, str] = {}
    pair: tuple[str, str] | None = None
    for number in range(1 << 20):
        short = digest(repr(str(number)).encode(), 3)
        if short in seen:
            pair = (seen[short], str(number))
            break
        seen[short] = str(number)
    assert pair is not None
    app = make_app()
    errors = [
        app.call(command, **CALLS[command](pin), idempotency_key="k").error
        for pin in (pair[0], pair[0], pair[1])
    ]
    assert [error and error.code for error in errors] == [None, None, "E3050"]


def test_deleted_key_makes_the_call_another_one(state_dir: Path) -> None:
    app = make_app()
    assert app.call("one", pin="1234", idempotency_key="k").ok
    assert app.call("plain", pin="1234", idempotency_key="k").ok
    (state_dir / "idempotency.key").unlink()
    error = app.call("one", pin="1234", idempotency_key="k").error
    assert error is not None and error.code == "E3050"
    assert app.call("plain", pin="1234", idempotency_key="k").ok


# ------------------------------------------------------------------ Postgres


def test_shared_store_without_a_shared_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STORE", POSTGRES)
    app = make_app()
    for command, arguments in CALLS.items():
        error = app.call(command, **arguments("1234"), idempotency_key="k").error
        assert error is not None
        assert error.code == "E4060"
        assert "TOOLI_SEAL_KEY" in error.message and "TOOLI_SEAL_KEY" in str(error.suggestion)
    error = app.call("plain", pin="1234", idempotency_key="k").error
    assert error is not None
    assert error.code == "E4060" and "TOOLI_SEAL_KEY" not in error.message


def test_key_of_a_shared_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found: list[bytes | None] = []
    for machine, secret in (("a", "s1"), ("b", "s1"), ("c", "s2"), ("d", "")):
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / machine))
        monkeypatch.setenv("TOOLI_SEAL_KEY", secret)
        found.append(signing.load_shared_key("idempotency"))
    assert found[0] == found[1] != found[2]
    assert found[0] is not None and found[3] is None
    assert found[0] != digest(b"s1", signing.KEY_BYTES)  # it does not verify cursors


@pytest.mark.xdist_group("postgres")
def test_secret_on_two_machines(
    postgres_server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLI_STORE", postgres_server)
    monkeypatch.setenv("TOOLI_SEAL_KEY", "shared by all machines")
    codes: list[str | None] = []
    for machine, pin in (("a", "1234"), ("b", "1234"), ("b", "4321")):
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / machine))
        error = make_app().call("one", pin=pin, idempotency_key="two-machines").error
        codes.append(error and error.code)
        close_stores()
    assert codes == [None, None, "E3050"]


# ------------------------------------------------------------------ cursors


def read_cursor(app: Tooli, pin: str) -> Any:
    answer = invoke(
        app, "pages", "env:PIN", "--limit=2", "--json", env=with_state_dir(PIN=pin)
    ).envelope
    key = signing.get_cursor_key(owns_process=True)
    return decode_cursor(answer["meta"]["page"]["next_cursor"], key)


def test_digests_in_cursors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found: list[Any] = []
    for machine, pin in (("a", "1234"), ("b", "1234"), ("b", "4321")):
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / machine))
        found.append(read_cursor(make_app(), pin))
    assert len({cursor.binding for cursor in found}) == 3
    assert found[0].record_digests != found[1].record_digests == found[2].record_digests


def test_cursor_with_a_key_that_anyone_can_compute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file"))
    found = {read_cursor(make_app(), pin).binding for pin in ("1234", "4321")}
    assert len(found) == 1  # the secret is not in the cursor


# ------------------------------------------------------------------ repeated failures


def test_stored_failure_of_a_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    found: list[bytes] = []
    for machine in "ab":
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / machine))
        env = with_state_dir(TOOLI_SESSION_ID="s", TOOLI_CALLER="claude-code")
        invoke(make_app(), "failing", "1234", "--json", env=env)
        (file,) = (tmp_path / machine / "loops").iterdir()
        found.append(file.read_bytes().split(b'"')[3])
    assert len(found[0]) == 64
    assert found[0] != found[1]
