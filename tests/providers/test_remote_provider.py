"""RemoteProvider: another tooli app over HTTP, which is served in a process of its own."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import textwrap
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.mcp_client.fake_http_server import FakeHttpServer
from tests.providers.mcp_client.fakes import AnsweringPeer, call_with

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.errors import DefinitionError, DependencyError, TemporaryError
from tooli.providers import RemoteProvider, remote_provider
from tooli.schema.json_schema import input_schema, output_schema
from tooli.testing import invoke

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

APP = textwrap.dedent(
    '''
    import sys, time
    from collections.abc import Iterator
    from tooli import Context, Tooli
    from tooli.annotations import Destructive, Idempotent, ReadOnly
    from tooli.errors import NotFoundError

    app = Tooli("shop", version="1.2")
    calls = []

    @app.command(annotations=ReadOnly)
    def find(pattern: str, count: int = 2) -> list[str]:
        """Find things."""
        return [pattern * n for n in range(1, count + 1)]

    @app.command(annotations=Destructive)
    def remove(number: int) -> str:
        """Remove an order."""
        if number == 7:
            raise NotFoundError("There is no order 7.", field="number")
        calls.append(number)
        return f"removed {number} ({len(calls)})"

    @app.command(annotations=ReadOnly, paginated=2)
    def orders() -> list[dict[str, int]]:
        return [{"id": n} for n in range(5)]

    @app.command(annotations=ReadOnly)
    def numbers(count: int = 3) -> Iterator[int]:
        for n in range(count):
            if n == 9:
                raise NotFoundError("no more numbers")
            yield n

    @app.command(annotations=ReadOnly)
    def work(ctx: Context) -> str:
        ctx.warn("be quick")
        ctx.report(1, 2, "half")
        ctx.log("a note", level="warning")
        return "worked"

    @app.command(annotations=ReadOnly)
    def sleep(seconds: float) -> str:
        time.sleep(seconds)
        return "awake"

    @app.command("add", version="1.0", annotations=ReadOnly)
    def add_1(a: int, b: int) -> int:
        return a + b

    @app.command("add", version="2.0", annotations=ReadOnly)
    def add_2(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    users = Tooli("users")

    @users.command(annotations=Idempotent, deprecated="use the page")
    def create(name: str, ctx: Context) -> str:
        """Create a user."""
        return name.upper()

    app.add_typer(users, name="users")

    if __name__ == "__main__":
        app()
    '''
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    script = tmp_path_factory.mktemp("shop") / "shop.py"
    script.write_text(APP)
    command = [sys.executable, str(script), "api", "serve", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as p:
        assert p.stdout is not None
        for line in p.stdout:
            if "http://" in line:
                yield "http://" + line.partition("http://")[2].split()[0]
                break
        p.terminate()
        p.communicate()


@pytest.fixture
def shop(url: str) -> Tooli:
    app = Tooli("local")
    app.add_provider(RemoteProvider(url, trusted=True))
    return app


def test_call(shop: Tooli) -> None:
    assert shop.call("find", pattern="ab").unwrap() == ["ab", "abab"]
    assert invoke(shop, "find", "é", "--count", "1", "--json").result == ["é"]
    assert shop.call("users.create", name="ada").unwrap() == "ADA"


def test_schemas_and_effects(shop: Tooli) -> None:
    find, create = shop.find("find"), shop.find("users.create")
    assert find is not None and create is not None
    assert input_schema(find)["properties"]["count"] == {"type": "integer", "default": 2}
    assert input_schema(find)["additionalProperties"] is False
    assert output_schema(find) == {"type": "array", "items": {"type": "string"}}
    assert find.behavior.read_only and not find.behavior.destructive
    assert create.behavior.idempotent and create.deprecated == "use the page"


def test_untrusted_app(url: str) -> None:
    app = Tooli("local")
    app.add_provider(RemoteProvider(url, annotations={"find": ReadOnly}, exclude=["users.*"]))
    assert app.call("find", pattern="a").ok
    error = app.call("orders").error
    assert error is not None and error.code == "E1010"
    assert app.find("users.create") is None


def test_error_keeps_its_code(shop: Tooli) -> None:
    error = shop.options(yes=True).call("remove", number=7).error
    assert error is not None
    assert (error.code, error.message, error.field) == ("E3010", "There is no order 7.", "number")
    assert error.to_exception().exit_code == 10


def test_confirmation_and_dry_run(shop: Tooli) -> None:
    refused = shop.call("remove", number=1).error
    assert refused is not None and refused.code == "E1010"
    plan = shop.options(dry_run=True).call("remove", number=1).unwrap()
    assert (plan["tool"], plan["arguments"]) == ("shop.remove", {"number": 1})
    plan = shop.options(dry_run=True).call("find", pattern="x").unwrap()
    assert plan["arguments"] == {"pattern": "x", "count": 2}  # the defaults of the other app
    assert shop.options(yes=True).call("remove", number=1).unwrap() == "removed 1 (1)"


def test_confirmation_of_a_command_that_is_not_destructive_here(url: str) -> None:
    app = Tooli("local")
    app.add_provider(RemoteProvider(url, annotations=ReadOnly, only=["users.*"]))
    tool = app.find("users.create")
    assert tool is not None and tool.behavior.read_only
    stricter = Tooli("local")
    stricter.add_provider(RemoteProvider(url, annotations=ReadOnly))
    remove = stricter.find("remove")
    assert remove is not None and remove.behavior.destructive  # what it says is stricter


def test_idempotency_key(shop: Tooli, url: str) -> None:
    other = Tooli("other")
    other.add_provider(RemoteProvider(url, trusted=True))
    options = {"yes": True, "idempotency_key": "key-1"}
    first = shop.options(**options).call("remove", number=2).unwrap()
    assert other.options(**options).call("remove", number=2).unwrap() == first


def test_pages(shop: Tooli) -> None:
    first = shop.call("orders")
    assert first.unwrap() == [{"id": 0}, {"id": 1}] and first.meta["page"]["total"] == 5
    cursor = first.meta["page"]["next_cursor"]
    second = shop.options(cursor=cursor).call("orders")
    assert second.unwrap() == [{"id": 2}, {"id": 3}]
    assert shop.options(limit=4).call("orders").unwrap() == [{"id": n} for n in range(4)]


def test_stream(shop: Tooli) -> None:
    assert list(shop.stream("numbers", count=4)) == [0, 1, 2, 3]
    assert shop.call("numbers").unwrap() == [0, 1, 2]
    items = []
    with pytest.raises(Exception, match="no more numbers"):
        for item in shop.stream("numbers", count=20):
            items.append(item)
    assert items == list(range(9))
    with contextlib.closing(shop.stream("numbers", count=9)) as stream:
        assert next(stream) == 0  # the rest is not read


def test_progress_logs_and_warnings(shop: Tooli) -> None:
    peer = AnsweringPeer()
    assert call_with(shop, "work", peer) == "worked"
    assert peer.reports == [(1, 2, "half")] and peer.logs == [("warning", "a note")]
    assert shop.call("work").meta["warnings"] == ["be quick"]


def test_versions(shop: Tooli) -> None:
    assert shop.call("add", a=1, b=2).unwrap() == {"sum": 3}
    assert shop.call("add@1.0", a=1, b=2).unwrap() == 3
    assert invoke(shop, "add@1.0", "1", "2", "--json").result == 3


def test_timeout(shop: Tooli) -> None:
    error = shop.options(timeout=0.3).call("sleep", seconds=60).error
    assert error is not None and error.code == "E4050"
    assert shop.call("find", pattern="a").ok


def test_server_that_is_not_there(tmp_path: Path) -> None:
    provider = RemoteProvider("http://127.0.0.1:1")
    with pytest.raises(TemporaryError, match=r"The app at 127\.0\.0\.1:1 cannot be reached"):
        provider.tools()


# ------------------------------------------------------------------ hostile and broken servers


@pytest.fixture
def fake() -> Iterator[FakeHttpServer]:
    made = FakeHttpServer()
    yield made
    made.stop()


SECRET = "secret-of-the-shop"
DETAILS = {"details": {SECRET: SECRET}}
LIST = b'{"commands":[{"name":"run","path":["run"],"annotations":["read-only"]}]}'


def remote(fake: FakeHttpServer, **options: Any) -> Tooli:
    """Return an app with the command `run`, whose calls are answered with the server's fault."""
    fake.fault = (200, {"content_type": "application/json"}, LIST)
    fake.session = 1
    app = Tooli("local")
    provider = RemoteProvider(fake.url.removesuffix("/mcp"), trusted=True, **options)
    _serve_lists(fake)
    app.add_provider(provider)
    assert [tool.name for tool in app.catalog] == ["run"]
    return app


def _serve_lists(fake: FakeHttpServer) -> None:
    handler: Any = fake.RequestHandlerClass

    class Lists(handler):
        def do_GET(self) -> None:
            self.note("GET")
            assert self.server.fault is not None
            self.reply(self.server.fault[0], self.server.fault[2])

    fake.RequestHandlerClass = Lists


@pytest.mark.parametrize(
    ("status", "body", "code", "text"),
    [
        (200, b"<html>", "E4040", "no envelope of tooli"),
        (200, b'{"ok":true' + b"[" * 9_000, "E4040", "nested too deeply"),
        (200, b'{"ok":false,"error":{"code":7}}', "E4040", "no envelope"),
        (500, b"oops", "E4040", "HTTP 500"),
        (404, b"", "E3010", "no such path"),
        (503, b"", "E4075", "HTTP 503"),
        (401, b"", "E2000", "HTTP 401"),
    ],
)
def test_answers_that_are_no_envelopes(
    fake: FakeHttpServer, status: int, body: bytes, code: str, text: str
) -> None:
    app = remote(fake)
    fake.fault = (status, {}, body)
    error = app.call("run").error
    assert error is not None and error.code == code and text in error.message


def test_incomplete_result(fake: FakeHttpServer) -> None:
    app = remote(fake)
    meta = b'{"truncated":{"shown":2,"total":9},"warnings":["w\\u001b[0m",7]}'
    fake.fault = (200, {}, b'{"ok":true,"result":[1,2],"meta":' + meta + b"}")
    result = app.call("run")
    assert result.unwrap() == [1, 2]
    assert "only a part of the result: 2 of 9" in " ".join(result.meta["warnings"])
    assert "w" in result.meta["warnings"]


def test_token(fake: FakeHttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "secret-1")
    app = remote(fake, token="env:SHOP_TOKEN", headers={"X-Team": "a"})
    fake.fault = (200, {}, b'{"ok":true,"result":1,"meta":{}}')
    assert app.call("run").ok
    sent = fake.headers_of("answer")
    assert (sent["authorization"], sent["x-team"]) == ("Bearer secret-1", "a")


@pytest.mark.parametrize(
    "answer",
    [
        {"ok": True, "result": {"sent": f"Bearer {SECRET}"}, "meta": {"warnings": [SECRET]}},
        {"ok": False, "error": {"code": "E3010", "category": "state", "message": SECRET}},
        {"ok": False, "error": {"code": "E3010", "category": "state", "message": "no"} | DETAILS},
    ],
)
def test_server_that_repeats_the_token(
    fake: FakeHttpServer, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    app = remote(fake, token="env:SHOP_TOKEN")
    fake.fault = (200, {}, json.dumps(answer).encode())
    for mode in ("--json", "--text"):
        result = invoke(app, "run", mode)
        assert SECRET not in result.stdout + result.stderr
        assert "hidden" in result.stdout + result.stderr


@pytest.mark.parametrize("body", [b"[]", b"{}", b"<html>", b'{"commands":7}'])
def test_server_that_is_no_tooli_app(fake: FakeHttpServer, body: bytes) -> None:
    remote(fake)
    fake.fault = (200, {}, body)
    provider = RemoteProvider(fake.url.removesuffix("/mcp"))
    with pytest.raises(DependencyError, match="is not a tooli app"):
        provider.tools()
    provider.close()


def test_broken_commands_are_left_out(fake: FakeHttpServer) -> None:
    remote(fake)
    fake.fault = (
        200,
        {},
        b'{"commands":[7,{"name":7},{"name":"a","path":[7],"description":7,"deprecated":true},'
        b'{"name":"b","input_schema":{"type":"string"}}]}',
    )
    provider = RemoteProvider(fake.url.removesuffix("/mcp"), only=["a", "b", "c"])
    assert [tool.name for tool in provider.tools()] == ["a"]
    assert set(provider.problems) == {"b", "c"}
    provider.close()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"url": "shop"}, "is not an http or https URL"),
        ({"url": "http://h", "token": "secret"}, "must be env:NAME or @FILE"),
        ({"url": "http://h", "timeout": -1}, "must be more than 0"),
    ],
)
def test_invalid_definitions(options: dict[str, Any], text: str) -> None:
    with pytest.raises(DefinitionError, match=text):
        RemoteProvider(**options)


def test_server_that_sends_one_byte_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the commands has a time limit, although data arrives all the time."""
    monkeypatch.setattr(remote_provider, "LIST_TOTAL_SECONDS", 0.2)
    left = threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            with contextlib.suppress(OSError):
                while not left.wait(0.01):
                    connection.sendall(b" ")
            left.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: drip(listener.accept()[0]), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(TemporaryError, match="cannot be reached"):
            list(RemoteProvider(url).tools())
        assert left.wait(60)
