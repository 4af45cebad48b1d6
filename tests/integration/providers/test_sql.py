"""SQLProvider in real processes: servers, clients of other projects, signals, two writers."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from tests.integration.app_process import PROCESS_TIMEOUT
from tests.integration.mcp_http.http_process import run_server
from tests.providers.sql.shops import COUNT, STATEMENTS, postgres_shop, sqlite_shop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc and signals are needed")

APP = """
from tooli import Tooli
from tooli.providers import SQLProvider

app = Tooli("shop")
app.add_provider(SQLProvider("env:SHOP_DATABASE", "shop.sql", timeout=60), namespace="db")
app()
"""
BACKEND = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND state = 'active'"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_shop(tmp_path)
    return postgres_shop(request.getfixturevalue("postgres_server"))


@pytest.fixture
def app(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_DATABASE", database)
    return write_app(tmp_path)


def write_app(folder: Path) -> Path:
    (folder / "shop.sql").write_text(STATEMENTS, encoding="utf-8")
    (folder / "app.py").write_text(APP, encoding="utf-8")
    return folder / "app.py"


def start(app: Path, *argv: str, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, app, "db", *argv]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **options
    )


def run(app: Path, *argv: str) -> tuple[int, Any]:
    process = start(app, *argv, "--json")
    out, _ = process.communicate(timeout=PROCESS_TIMEOUT)
    return process.returncode, json.loads(out)


def wait_until(condition: Callable[[], bool]) -> None:
    timer = threading.Event()
    for _ in range(6_000):
        if condition():
            return
        timer.wait(0.02)
    raise AssertionError("the condition did not become true")


# ------------------------------------------------------------------ many rows


def count_lines(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Return the number of lines of a process, and its peak memory in KiB."""
    assert process.stdout is not None and process.stderr is not None
    lines = sum(1 for _ in process.stdout)
    problem = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    assert process.returncode == 0, problem
    return lines, usage.ru_maxrss


def test_a_stream_of_many_rows_takes_constant_memory(app: Path, database: str) -> None:
    total = 100_000 if "://" in database else 300_000
    peaks: list[int] = []
    for count in (10, total):
        words = ("numbers", "--n", str(count), "--limit", "0", "--jsonl")
        lines, peak = count_lines(start(app, *words))
        assert lines == count
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 16_000


def test_a_reader_that_leaves_ends_the_statement(app: Path) -> None:
    process = start(app, "numbers", "--n", str(10**12), "--limit", "0", "--jsonl")
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b'{"n":1}\n'
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(PROCESS_TIMEOUT) in (0, -signal.SIGPIPE, 141)


# ------------------------------------------------------------------ servers and clients


async def test_a_client_of_the_mcp_sdk_accepts_every_result(app: Path, database: str) -> None:
    if "://" not in database:
        connection = sqlite3.connect(database)
        connection.execute("UPDATE products SET price = '', kind = x'ff' WHERE id = 3")
        connection.commit()
        connection.close()
    server = StdioServerParameters(
        command=sys.executable,
        args=[str(app), "mcp", "serve"],
        env={"SHOP_DATABASE": database, "HOME": str(app.parent)},
    )
    async with Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        hints = {name: tool.annotations for name, tool in tools.items()}
        assert hints["db_find_products"].read_only_hint
        assert hints["db_raise_prices"].destructive_hint
        added = hints["db_add"]
        assert added is None or not added.destructive_hint
        found = await client.call_tool("db_find_products", {"limit": 4})
        assert not found.is_error, found.content
        rows = found.structured_content["result"]
        assert [row["id"] for row in rows] == [1, 2, 3, 4]
        for name, arguments in (
            ("db_product", {"id": 1}),
            ("db_product", {"id": 999}),
            ("db_count", {}),
            ("db_add", {"name": "x'; DROP TABLE products; --", "price": 1}),
        ):
            answer = await client.call_tool(name, arguments)
            assert not answer.is_error, answer.content
        refused = await client.call_tool("db_raise_prices", {"by": 1})
        assert refused.is_error


def post(url: str, tool: str, arguments: Any) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{url}/tools/{tool}", json.dumps(arguments).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PROCESS_TIMEOUT) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as failure:
        return failure.code, json.load(failure)


def test_a_server_answers_many_clients_at_once(app: Path) -> None:
    with run_server(app, interface=("api",)) as server:
        url = "http://{}:{}".format(*server.address)
        answers: list[tuple[int, Any]] = []

        def work(number: int) -> None:
            for turn in range(3):
                text = f"{number}-{turn}'; DELETE FROM products; --"
                answers.append(post(url, "db.add", {"name": text, "price": 1}))
                answers.append(post(url, "db.named", {"name": text}))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {status for status, _ in answers} == {200}
        assert post(url, "db.count", {})[1]["result"] == COUNT + 18
        status, answer = post(url, "db.slow?timeout=0.3", {})
        assert (status, answer["error"]["code"]) == (504, "E4050")
        assert post(url, "db.product", {"id": "1 OR 1=1"})[0] == 422
        assert post(url, "db.raise-prices", {"by": 1})[0] == 428
        assert post(url, "db.count", {})[1]["result"] == COUNT + 18


def test_a_running_server_reads_a_changed_file(app: Path) -> None:
    with run_server(app, interface=("api",)) as server:
        url = "http://{}:{}".format(*server.address)
        assert post(url, "db.count", {})[0] == 200
        (app.parent / "shop.sql").write_text("-- name: other$\nSELECT 7 AS seven")
        wait_until(lambda: post(url, "db.other", {})[0] == 200)
        assert post(url, "db.count", {})[0] == 404


# ------------------------------------------------------------------ signals and dead servers


def test_ctrl_c_ends_the_statement_on_the_server(
    tmp_path: Path, postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    url = postgres_shop(postgres_server)
    role = url.partition("//")[2].partition(":")[0]
    monkeypatch.setenv("SHOP_DATABASE", url)
    process = start(write_app(tmp_path), "slow", "--json")
    with psycopg.connect(postgres_server, autocommit=True) as connection:

        def is_running() -> bool:
            row = connection.execute(BACKEND, (role,)).fetchone()
            return row is not None and row[0] > 0

        wait_until(is_running)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PROCESS_TIMEOUT)
        assert process.returncode == 130 and json.loads(out)["error"]["code"] == "E4130"
        wait_until(lambda: not is_running())


class DeafProxy:
    """Forwards connections to a server until it is told to forward nothing more."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.is_deaf = False
        self.bytes_forwarded = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._start(self._accept)

    def _start(self, target: Any, *args: Any) -> None:
        threading.Thread(target=target, args=args, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                self._sockets += [client, server]
                self._start(self._forward, client, server)
                self._start(self._forward, server, client)
        except OSError:
            return

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if self.is_deaf:
                    return
                self.bytes_forwarded += len(data)
                target.sendall(data)
        except OSError:
            return

    def close(self) -> None:
        for item in (self._listener, *self._sockets):
            item.close()


@pytest.fixture
def proxy(postgres_server: str) -> Iterator[DeafProxy]:
    made = DeafProxy(int(postgres_server.rpartition(":")[2].partition("/")[0]))
    yield made
    made.close()


def test_a_server_that_does_not_answer_any_more(
    tmp_path: Path, postgres_server: str, proxy: DeafProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = postgres_shop(postgres_server)
    before, _, _ = direct.rpartition(":")
    monkeypatch.setenv("SHOP_DATABASE", f"{before}:{proxy.port}/postgres")
    import psycopg

    role = direct.partition("//")[2].partition(":")[0]
    process = start(write_app(tmp_path), "slow", "--timeout", "5", "--json")
    with psycopg.connect(postgres_server, autocommit=True) as connection:

        def is_running() -> bool:
            row = connection.execute(BACKEND + " AND query LIKE '%%FETCH%%'", (role,)).fetchone()
            return process.poll() is not None or (row is not None and row[0] > 0)

        wait_until(is_running)
    proxy.is_deaf = True
    out, _ = process.communicate(timeout=PROCESS_TIMEOUT)
    assert json.loads(out)["error"]["code"] == "E4050"
    assert process.returncode == 50


# ------------------------------------------------------------------ two at once


def test_two_processes_write_at_once(app: Path) -> None:
    words = [("add", "--name", f"n{number}", "--price", "1", "--json") for number in range(4)]
    processes = [start(app, *line) for line in words]
    codes = [
        (process.communicate(timeout=PROCESS_TIMEOUT), process.returncode)[1]
        for process in processes
    ]
    assert codes == [0] * 4
    assert run(app, "count")[1]["result"] == COUNT + 4


def test_a_database_that_another_process_has_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sqlite_shop(tmp_path)
    monkeypatch.setenv("SHOP_DATABASE", path)
    app = write_app(tmp_path)
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None and holder.stdin is not None
        holder.stdout.readline()
        returncode, answer = run(app, "add", "--name", "x", "--price", "1")
        assert (returncode, answer["error"]["code"]) == (75, "E4075")
        assert run(app, "count")[1]["result"] == COUNT
        holder.stdin.close()
    assert run(app, "add", "--name", "x", "--price", "1")[0] == 0


# ------------------------------------------------------------------ passwords


def test_the_password_is_in_no_output(
    tmp_path: Path, postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_shop(postgres_server)
    app = write_app(tmp_path)
    for database in (url, url.replace("pa55", "wr0ng-pa55"), f"{url}?connect_timeout=x"):
        monkeypatch.setenv("SHOP_DATABASE", database)
        for words in (
            ("count", "-vv", "--json"),
            ("product", "--id", "x", "--json"),
            ("add", "--name", "p1", "--price", "1", "-vv"),
            ("count", "--schema"),
            ("--help",),
            ("--help-agent",),
        ):
            out, err = start(app, *words).communicate(timeout=PROCESS_TIMEOUT)
            assert b"pa55" not in out + err, words
    for words in (("--agent-manifest",), ("docs", "llms"), ("api", "export-openapi")):
        command = [sys.executable, app, *words]
        done = subprocess.run(command, capture_output=True, timeout=PROCESS_TIMEOUT)
        assert done.returncode == 0 and b"pa55" not in done.stdout + done.stderr
