"""Idempotency keys in real processes: races, killed processes, every interface, disk errors."""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.example_count import example_count
from tests.integration.app_process import APPS, PROCESS_TIMEOUT, finish, start_app, wait_for_ready
from tests.integration.mcp.stdio_client import HANDSHAKE_VERSION, STATELESS_VERSION, connect

SHOP = APPS / "idempotent_shop.py"
PROCESSES, KEYS = example_count(32), example_count(2000)
WORKERS, KILLS = 3, example_count(300)
STORES = ["sqlite", "postgres"]


@contextlib.contextmanager
def _memory_folder() -> Iterator[Path]:
    """A folder in memory, if there is one: it survives the death of processes."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tooli-keys-", dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(params=STORES)
def shop(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """An environment for the shop, with an empty idempotency store."""
    with _memory_folder() as folder:
        env = {**_environment(folder), "SHOP": str(folder)}
        if request.param == "postgres":
            import psycopg

            env["TOOLI_STORE"] = request.getfixturevalue("postgres_server")
            with psycopg.connect(env["TOOLI_STORE"], autocommit=True) as database:
                database.execute("DROP TABLE IF EXISTS tooli_keys")
        yield env
        if request.param == "sqlite":
            database = sqlite3.connect(folder / "state" / "idempotency.db")
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            database.close()


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "TOOLI_STATE_DIR": str(folder / "state"),
        "TOOLI_CONFIG": "off",
    }


def _start(env: dict[str, str], *argv: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(SHOP), *map(str, argv)],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _finish(process: subprocess.Popen[bytes]) -> str:
    out, err = process.communicate()
    assert (process.returncode, err) == (0, b""), err.decode()
    return out.decode()


def _lines(env: dict[str, str], name: str) -> list[str]:
    path = Path(env["SHOP"]) / name
    return path.read_text().splitlines() if path.exists() else []


def test_each_key_takes_effect_once_in_many_processes(shop: dict[str, str]) -> None:
    processes = [_start(shop, "race", seed, KEYS) for seed in range(PROCESSES)]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    answer = [_finish(process).split() for process in processes]
    assert [int(done) for done, _ in answer] == [KEYS] * PROCESSES
    assert sum([int(replayed) for _, replayed in answer]) == KEYS * (PROCESSES - 1)
    effects = _lines(shop, "effects")
    assert len(effects) == KEYS
    assert len({line.split()[0] for line in effects}) == KEYS
    assert set(_lines(shop, "receipts")) == set(effects)  # all processes got the same receipt


def test_killed_processes_neither_repeat_an_effect_nor_lose_an_outcome(
    shop: dict[str, str],
) -> None:
    spawners = [_start(shop, "spawn-killed", f"l{n}", KILLS // WORKERS, n) for n in range(WORKERS)]
    for process in spawners:
        _finish(process)
    effects = collections.Counter([line.split()[0] for line in _lines(shop, "effects")])
    assert effects and set(effects.values()) == {1}
    logs = [f"acknowledged.l{n}" for n in range(WORKERS)]
    asked, wrong = map(int, _finish(_start(shop, "check", *logs)).split())
    assert asked >= KILLS // 2
    assert wrong == 0
    made = "\n".join(_lines(shop, "effects"))  # a killed process may leave a partial line
    for name in logs:
        answered = [line for line in _lines(shop, name) if line.count(" ") == 1]
        assert not [line for line in answered if line not in made]


# ------------------------------------------------------------------ one process after another


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment for the shop, with an idempotency store on a real disk."""
    return {**_environment(tmp_path), "SHOP": str(tmp_path)}


def _run(env: dict[str, str], *argv: str, **more: Any) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, str(SHOP), *argv, "--json"], env=env, capture_output=True, **more
    )
    assert done.stderr == b"", done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


KEY = ("--idempotency-key", "k")


def test_repeated_command_runs_once(env: dict[str, str]) -> None:
    first, again = (_run(env, "pay", "o1", *KEY) for _ in "ab")
    assert (first[0], again[0]) == (0, 0)
    assert first[1]["result"] == again[1]["result"]
    assert [answer["meta"]["idempotency"]["replayed"] for _, answer in (first, again)] == [
        False,
        True,
    ]
    code, other = _run(env, "pay", "o2", *KEY)
    assert (code, other["error"]["code"]) == (20, "E3050")
    assert len(_lines(env, "effects")) == 1


def test_failure_is_replayed_with_its_exit_code(env: dict[str, str]) -> None:
    first, again = (_run(env, "lose", "o1", *KEY) for _ in "ab")
    assert first[0] == again[0] == 21
    assert first[1]["error"] == again[1]["error"]
    assert len(_lines(env, "effects")) == 1


@pytest.mark.parametrize("mode", ["json", "jsonl", "text", "plain"])
@pytest.mark.parametrize("command", ["login", "login-fails", "login-prints", "login-streams"])
def test_secret_is_redacted_in_the_replay(env: dict[str, str], command: str, mode: str) -> None:
    """The stored outcome does not contain the secret."""
    command_line = [sys.executable, str(APPS / "redaction.py"), command, "env:PW", "-o", mode, *KEY]
    env = {**env, "PW": "hunter2hunter2"}
    first, again = [subprocess.run(command_line, env=env, capture_output=True) for _ in range(2)]
    stored = [path.read_bytes() for path in Path(env["TOOLI_STATE_DIR"]).glob("idempotency.db*")]
    assert stored and b"hunter2" not in b"".join(stored)
    if (command, mode) not in (("login-prints", "text"), ("login-prints", "plain")):
        assert b"hunter2" not in first.stdout + first.stderr
    assert b"hunter2" not in again.stdout + again.stderr
    assert b"***" in again.stdout + again.stderr
    for path in (Path(env["SHOP"]) / "state").rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes(), path


@pytest.mark.parametrize("mode", ["--json", "--text", "--plain", "--jsonl", "--output=auto"])
@pytest.mark.parametrize("argv", [("say", "o1"), ("pay", "o1"), ("items", "3")], ids=repr)
def test_every_output_mode_is_replayed(
    env: dict[str, str], argv: tuple[str, ...], mode: str
) -> None:
    line = [sys.executable, str(SHOP), *argv, *KEY, mode]
    texts = [subprocess.run(line, env=env, capture_output=True).stdout for _ in "ab"]
    if texts[0].startswith(b'{"ok"'):
        shown = [json.loads(text)["result"] for text in texts]
    else:
        shown = [text.decode().split() for text in texts]
    if (argv[0], mode) == ("items", "--text"):  # people get a table of all items
        shown[1] = shown[1][2:]
    assert shown[0] == shown[1] and shown[0]
    assert len(_lines(env, "effects")) == 1


def test_killed_call_is_indeterminate(env: dict[str, str]) -> None:
    line = [sys.executable, str(SHOP), "stumble", "o1", *KEY, "--json"]
    assert subprocess.run(line, env=env, capture_output=True).returncode == -signal.SIGKILL
    code, answer = _run(env, "stumble", "o1", *KEY)
    error = answer["error"]
    assert (code, error["code"], error["suggestion"]["action"]) == (101, "E3052", "ask_human")
    assert error["details"]["key"] == "k" and error["details"]["first_run"]
    assert len(_lines(env, "effects")) == 1
    listed = _run(env, "idempotency", "list", "--open")[1]["result"]
    assert [(one["key"], one["command"], one["state"]) for one in listed] == [
        ("k", "stumble", "broken off")
    ]
    forget = error["suggestion"]["argv"][-3:]
    assert forget == ["idempotency", "forget", "k"]
    assert _run(env, *forget)[1]["result"] == {"forgotten": 1}
    assert subprocess.run(line, env=env, capture_output=True).returncode == -signal.SIGKILL
    assert len(_lines(env, "effects")) == 2
    assert _run(env, "idempotency", "forget", "other")[0] == 10


def test_idempotent_call_runs_again_after_it_was_killed(env: dict[str, str]) -> None:
    line = [sys.executable, str(SHOP), "put", "o1", *KEY, "--json"]
    died = subprocess.run(line, env={**env, "DIE_AFTER": "o1"}, capture_output=True)
    assert died.returncode == -signal.SIGKILL
    code, answer = _run(env, "put", "o1", *KEY)
    assert (code, answer["meta"]["idempotency"]["replayed"]) == (0, False)
    assert len(_lines(env, "effects")) == 2
    assert _run(env, "put", "o1", *KEY)[1]["meta"]["idempotency"]["replayed"] is True


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_call_is_indeterminate(env: dict[str, str], stop: signal.Signals) -> None:
    with start_app(SHOP, "wait", "o1", *KEY, "--json", env=env) as process:
        wait_for_ready(process)
        code, answer = _run(env, "wait", "o1", *KEY)
        assert (code, answer["error"]["code"]) == (75, "E3051")
        code, answer = _run(env, "idempotency", "forget", "k")
        assert (code, answer["error"]["code"]) == (75, "E3051")
        assert "--running" in answer["error"]["suggestion"]["fix"]
        (listed,) = _run(env, "idempotency", "list", "--open")[1]["result"]
        assert (listed["key"], listed["state"]) == ("k", "running")
        process.send_signal(stop)
        finish(process)
    code, answer = _run(env, "wait", "o1", *KEY)
    assert (code, answer["error"]["code"]) == (101, "E3052")
    assert answer["error"]["details"]["ended_by"]["code"] in ("E4130", "E4143")
    assert len(_lines(env, "effects")) == 1


# ------------------------------------------------------------------ storage errors


def _full_disk(env: dict[str, str], folder: Path) -> dict[str, Any]:
    """No file can grow."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    return {"preexec_fn": limit}


def _read_only_folder(env: dict[str, str], folder: Path) -> dict[str, Any]:
    """The state folder is in /proc, where even root cannot create files."""
    env["TOOLI_STATE_DIR"] = "/proc/tooli"
    return {}


def _parent_is_a_file(env: dict[str, str], folder: Path) -> dict[str, Any]:
    (folder / "file").write_text("")
    env["TOOLI_STATE_DIR"] = str(folder / "file" / "state")
    return {}


def _database_is_a_folder(env: dict[str, str], folder: Path) -> dict[str, Any]:
    (folder / "state" / "idempotency.db").mkdir(parents=True)
    return {}


def _damaged_database(env: dict[str, str], folder: Path) -> dict[str, Any]:
    (folder / "state").mkdir()
    (folder / "state" / "idempotency.db").write_bytes(b"no database at all" * 500)
    return {}


@pytest.mark.parametrize(
    "disk",
    [_full_disk, _read_only_folder, _parent_is_a_file, _database_is_a_folder, _damaged_database],
    ids=lambda f: f.__name__[1:],
)
def test_nothing_runs_if_the_key_cannot_be_stored(env: dict[str, str], disk: Any) -> None:
    more = disk(env, Path(env["SHOP"]))
    for policy in ("standard", "strict", "off"):
        env["TOOLI_SECURITY_POLICY"] = policy
        command = "pay" if policy != "strict" else "safe-pay"
        code, answer = _run(env, command, "o1", *KEY, **more)
        assert (code, answer["error"]["code"]) == (75, "E4060"), answer
        assert "Nothing ran" in answer["error"]["message"]
        assert answer["error"]["suggestion"]["fix"]
    assert _lines(env, "effects") == []


def test_outcome_that_cannot_be_stored_is_a_warning(env: dict[str, str]) -> None:
    code, answer = _run(env, "fill", "o1", *KEY)
    assert code == 0 and answer["result"] == "done"
    assert answer["meta"]["idempotency"]["kept"] is False
    assert "could not be stored" in answer["meta"]["warnings"][0]
    assert _run(env, "fill", "o1", *KEY)[1]["error"]["code"] == "E3052"


def test_nothing_runs_if_the_store_is_unreachable(env: dict[str, str]) -> None:
    env["TOOLI_STORE"] = "postgresql://tooli:pa55word@127.0.0.1:1/db"
    code, answer = _run(env, "pay", "o1", *KEY)
    assert (code, answer["error"]["code"]) == (75, "E4060")
    assert "pa55word" not in json.dumps(answer)
    for argv in (("config", "show"), ("config", "show", "--origin"), ("detect-context",)):
        shown = json.dumps(_run(env, *argv)[1])
        assert "127.0.0.1:1/db" in shown and "pa55word" not in shown
    assert _lines(env, "effects") == []


# ------------------------------------------------------------------ every interface


@contextlib.contextmanager
def _http(env: dict[str, str]) -> Iterator[Any]:
    """A real server; yields a function that calls it."""
    with start_app(SHOP, "api", "serve", "--port", "0", env=env) as process:
        line = process.stderr.readline().decode()
        port = int(line.rpartition(":")[2])

        def pay(order: str) -> Any:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROCESS_TIMEOUT)
            headers = {"content-type": "application/json", "Idempotency-Key": "k"}
            connection.request("POST", "/tools/pay", json.dumps({"order": order}), headers)
            response = json.loads(connection.getresponse().read())
            connection.close()
            return response

        yield pay


@contextlib.contextmanager
def _mcp(env: dict[str, str], version: str) -> Iterator[Any]:
    with connect(SHOP, version, env=env) as client:

        def pay(order: str) -> Any:
            options = {"io.tooli/options": {"idempotency_key": "k"}}
            result = client.call("pay", {"order": order}, **options)
            result_meta = result["_meta"]
            if result.get("isError"):
                return {"ok": False, "error": result_meta["io.tooli/envelope"]["error"]}
            meta = result_meta["io.tooli/meta"]
            value = result["structuredContent"]
            assert ("meta" in value) is meta["idempotency"]["replayed"]
            value = value["result"] if "meta" in value else value
            return {"ok": True, "result": value, "meta": meta}

        yield pay


@contextlib.contextmanager
def _command(env: dict[str, str]) -> Iterator[Any]:
    yield lambda order: _run(env, "pay", order, *KEY)[1]


INTERFACES = {
    "cli": _command,
    "http": _http,
    "mcp": lambda env: _mcp(env, HANDSHAKE_VERSION),
    "mcp-stateless": lambda env: _mcp(env, STATELESS_VERSION),
}


@pytest.mark.parametrize("first", INTERFACES)
def test_every_interface_shares_the_keys(env: dict[str, str], first: str) -> None:
    with INTERFACES[first](env) as pay:
        answer = pay("o1")
    assert answer["meta"]["idempotency"]["replayed"] is False
    for name, interface in INTERFACES.items():
        with interface(env) as pay:
            again, other = pay("o1"), pay("o2")
        assert again["result"] == answer["result"], name
        assert again["meta"]["idempotency"]["replayed"] is True, name
        assert other["error"]["code"] == "E3050", name
    assert len(_lines(env, "effects")) == 1
