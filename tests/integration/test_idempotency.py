"""Idempotency keys, from outside: many processes, sudden deaths, every door, bad disks."""

from __future__ import annotations

import collections
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.outside import APPS

SHOP = APPS / "ledgered.py"
PROCESSES, KEYS = 32, 2000
LANES, KILLS = 3, 300
STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]


@contextlib.contextmanager
def _fast_room() -> Iterator[Path]:
    """A folder in memory, where there is one: processes die here, the machine does not."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tooli-keys-", dir=memory) as room:
        yield Path(room)


@pytest.fixture(params=STORES)
def shop(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """An environment for the shop, with an empty ledger."""
    with _fast_room() as room:
        env = {**_plain(room), "SHOP": str(room)}
        if request.param == "postgres":
            import psycopg

            env["TOOLI_STORE"] = request.getfixturevalue("postgres_server")
            with psycopg.connect(env["TOOLI_STORE"], autocommit=True) as base:
                base.execute("DROP TABLE IF EXISTS tooli_keys")
        yield env
        if request.param == "sqlite":
            base = sqlite3.connect(room / "state" / "idempotency.db")
            assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            base.close()


def _plain(room: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(room),
        "LANG": "C.UTF-8",
        "TOOLI_STATE_DIR": str(room / "state"),
        "TOOLI_CONFIG": "off",
    }


def _start(env: dict[str, str], *words: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(SHOP), *map(str, words)],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _end(process: subprocess.Popen[bytes]) -> str:
    out, err = process.communicate()
    assert (process.returncode, err) == (0, b""), err.decode()
    return out.decode()


def _lines(env: dict[str, str], name: str) -> list[str]:
    path = Path(env["SHOP"]) / name
    return path.read_text().splitlines() if path.exists() else []


def test_of_many_processes_each_key_takes_effect_once(shop: dict[str, str]) -> None:
    processes = [_start(shop, "race", seed, KEYS) for seed in range(PROCESSES)]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    told = [_end(process).split() for process in processes]
    assert [int(done) for done, _ in told] == [KEYS] * PROCESSES
    assert sum([int(replayed) for _, replayed in told]) == KEYS * (PROCESSES - 1)
    effects = _lines(shop, "effects")
    assert len(effects) == KEYS
    assert len({line.split()[0] for line in effects}) == KEYS
    assert set(_lines(shop, "receipts")) == set(effects)  # everybody got the one that there is


def test_sudden_deaths_neither_repeat_an_effect_nor_lose_an_answer(shop: dict[str, str]) -> None:
    nurseries = [_start(shop, "nursery", f"l{n}", KILLS // LANES, n) for n in range(LANES)]
    for process in nurseries:
        _end(process)
    effects = collections.Counter([line.split()[0] for line in _lines(shop, "effects")])
    assert effects and set(effects.values()) == {1}
    logs = [f"acknowledged.l{n}" for n in range(LANES)]
    asked, wrong = map(int, _end(_start(shop, "check", *logs)).split())
    assert asked >= KILLS // 2
    assert wrong == 0
    made = set(_lines(shop, "effects"))
    for name in logs:
        answered = [line for line in _lines(shop, name) if line.count(" ") == 1]
        assert set(answered) <= made
