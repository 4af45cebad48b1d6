"""Api: paths, options, callers, statuses, mounts; every answer is an envelope."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient, Header, post, send
from tests.parity.sample_apps import make_app, make_single_command_app

from tooli import DefinitionError, ToolError, Tooli
from tooli.testing.app_interfaces import run_lifespan


@pytest.fixture
def api():
    return make_app().asgi(mcp=False)


@pytest.mark.parametrize("path", ["users/create", "users.create", "users_create"])
async def test_command_is_served_at_three_paths(api, path: str) -> None:
    client = await post(api, path, {"user": {"name": "A"}})
    assert client.status == 200
    assert client.json()["result"]["name"] == "A"
    assert client.headers["content-type"] == "application/json"
    assert client.headers["content-length"] == str(len(client.body))


async def test_path_of_a_command_wins_over_the_name_of_another() -> None:
    app = Tooli("clash")
    group = Tooli("a")
    group.command("b")(lambda: "grouped")
    app.command("a_b")(lambda: "alone")
    app.add_typer(group, name="a")
    api = app.asgi(mcp=False)
    assert (await post(api, "a_b")).json()["result"] == "alone"
    assert (await post(api, "a/b")).json()["result"] == "grouped"
    assert (await post(api, "a.b")).json()["result"] == "grouped"


async def test_envelope_equals_that_of_the_command_line(api) -> None:
    from tooli.testing import invoke

    cli_envelope = invoke(make_app(), "find-files", "x", mode="json").envelope
    envelope = (await post(api, "find-files", {"pattern": "x"})).json()
    del cli_envelope["meta"]["duration_ms"], envelope["meta"]["duration_ms"]
    assert json.dumps(envelope) == json.dumps(cli_envelope)


async def test_empty_body_means_no_arguments(api) -> None:
    client = await send(api, "POST", "/tools/users/list")
    assert client.status == 200


async def test_command_registered_later_is_served() -> None:
    app = make_single_command_app()
    api = app.asgi(mcp=False)
    assert (await post(api, "late")).status == 404
    app.command("late")(lambda: 7)
    assert (await post(api, "late")).json()["result"] == 7


async def test_hidden_commands_are_not_served() -> None:
    app = Tooli("secretive")
    app.command("open")(lambda: 1)
    app.command("hidden", hidden=True)(lambda: 2)
    client = await post(app.asgi(mcp=False), "hidden")
    assert (client.status, client.code) == (404, "E1001")


# ------------------------------------------------------------------ statuses


@pytest.mark.parametrize(
    ("path", "arguments", "status", "code"),
    [
        ("find-flies", {}, 404, "E1001"),
        ("users", {}, 404, "E1001"),
        ("users/lst", {}, 404, "E1001"),
        ("find-files", {}, 422, "E1002"),
        ("find-files", {"pattern": 3}, 422, "E1003"),
        ("find-files", {"patern": "x"}, 422, "E1004"),
        ("delete", {"path": "x"}, 428, "E1010"),
        ("launch", {"target": "x"}, 428, "E2101"),
        ("fail", {"kind": "file-not-found"}, 404, "E3010"),
        ("fail", {"kind": "file-exists"}, 409, "E3020"),
        ("fail", {"kind": "value-error"}, 500, "E5000"),
        ("afail", {"kind": "value-error"}, 500, "E5000"),
        ("fail", {"kind": "permission"}, 403, "E2030"),
        ("fail", {"kind": "stop-iteration"}, 500, "E5000"),
        ("fail", {"kind": "timeout"}, 504, "E4050"),
        ("fail", {"kind": "connection"}, 502, "E4040"),
        ("interrupted", {}, 503, "E4130"),
    ],
)
async def test_error_determines_the_status(api, path, arguments, status, code) -> None:
    client = await post(api, path, arguments)
    assert (client.status, client.code) == (status, code)


async def test_unknown_command_suggests_the_closest_one(api) -> None:
    error = (await post(api, "find-flies")).json()["error"]
    assert "did you mean 'find-files'?" in error["message"]
    assert error["suggestion"]["command"] == "find-files"
    assert error["suggestion"]["example"] == "POST /tools/find-files"


async def test_exit_in_a_command_does_not_end_the_server() -> None:
    app = Tooli("abrupt")

    @app.command()
    async def stop() -> None:
        raise KeyboardInterrupt

    @app.command()
    def exit() -> None:
        raise SystemExit(3)

    api = app.asgi(mcp=False)
    assert (await post(api, "stop")).code == "E4130"
    assert (await post(api, "exit")).code == "E4001"


async def test_invalid_status_becomes_500() -> None:
    class InvalidStatusError(ToolError):
        http_status = 42

    app = Tooli("odd")

    @app.command()
    def fail() -> str:
        raise InvalidStatusError("odd")

    assert (await post(app.asgi(mcp=False), "fail")).status == 500


# ------------------------------------------------------------------ paths and methods


@pytest.mark.parametrize(
    "path",
    [
        *("/nope", "/tools//", "/tools/users/list//", "/tools/../health", "//health"),
        *("/tools/..%2f..%2fetc/passwd", "/tools/\x00", "/tools/‮", "/tools/a b", "*", "/TOOLS"),
        "/tools/" + "a" * 5000,
    ],
)
async def test_unknown_path_is_not_found(api, path: str) -> None:
    client = await send(api, "POST", path, b"{}")
    assert client.status == 404
    assert client.code in ("E1404", "E1001")
    assert len(client.body) < 6000


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "TRACE", "HEAD", "BREW"])
async def test_command_accepts_only_post(api, method: str) -> None:
    client = await send(api, method, "/tools/users/list")
    assert client.status == 405
    assert client.headers["allow"] == "POST, OPTIONS"
    assert (client.body == b"") == (method == "HEAD")


@pytest.mark.parametrize("path", ["/health", "/tools", "/openapi.json"])
async def test_page_accepts_get_head_and_options(api, path: str) -> None:
    client = await send(api, "POST", path, b"{}")
    assert (client.status, client.code) == (405, "E1405")
    assert client.headers["allow"] == "GET, HEAD, OPTIONS"
    get, head = await send(api, "GET", path), await send(api, "HEAD", path)
    assert (head.status, head.body) == (200, b"")
    head_headers, get_headers = head.headers, get.headers
    assert head_headers.pop("x-request-id") != get_headers.pop("x-request-id")
    assert head_headers == get_headers
    options = await send(api, "OPTIONS", path)
    assert (options.status, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS")


async def test_options_request_lists_the_methods_of_a_command(api) -> None:
    client = await send(api, "OPTIONS", "/tools/users/list")
    assert (client.status, client.headers["allow"]) == (204, "POST, OPTIONS")


async def test_root_path_is_removed_from_the_path(api) -> None:
    client = AsgiClient(api)
    client.send_body(b"{}")
    await client.start("POST", "/inner/tools/users/list", [HOST, JSON], root="/inner")
    assert client.status == 200


async def test_websockets_are_closed(api) -> None:
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def collect(message):
        sent.append(message)

    await api({"type": "websocket"}, receive, collect)
    assert sent == [{"type": "websocket.close", "code": 1000}]


# ------------------------------------------------------------------ options and callers


@pytest.mark.parametrize("true", [b"true", b"1", b"yes", b"ON"])
async def test_options_are_read_from_the_query(api, true: bytes) -> None:
    done = await post(api, "delete", {"path": "x"}, query=b"yes=" + true)
    assert done.json()["result"] == "deleted x"
    planned = await post(api, "delete", {"path": "x"}, query=b"dry_run=" + true)
    assert planned.json()["meta"]["dry_run"] is True


@pytest.mark.parametrize(
    "query",
    [
        *(b"yes=maybe", b"yes", b"dry_run=2", b"response_format=long", b"yess=true"),
        *(b"%ff=1", b"=", b"a=b&" * 60, b"yes=true&yes=x"),
    ],
)
async def test_invalid_option_is_rejected(api, query: bytes) -> None:
    client = await post(api, "delete", {"path": "x"}, query=query)
    assert (client.status, client.code) == (422, "E1007")


async def test_unknown_option_suggests_the_closest_one(api) -> None:
    client = await post(api, "delete", {"path": "x"}, query=b"dry-run=true")
    assert "did you mean 'dry_run'?" in client.json()["error"]["message"]


async def test_detailed_response_has_the_output_schema(api) -> None:
    client = await post(api, "fresh", {}, query=b"response_format=detailed")
    assert client.json()["meta"]["output_schema"]["type"] == "object"
    client = await post(api, "fresh", {}, query=b"response_format=concise")
    assert "output_schema" not in client.json()["meta"]


async def test_caller_and_session_come_from_headers(api, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    headers = [
        (b"tooli-caller", b"bot"),
        (b"tooli-caller-version", b"2"),
        (b"tooli-session-id", b"s1"),
    ]
    meta = (await post(api, "fresh", {}, *headers)).json()["meta"]
    assert (meta["caller_id"], meta["caller_version"], meta["session_id"]) == ("bot", "2", "s1")
    assert "output_schema" in meta  # the first call of a session
    assert "output_schema" not in (await post(api, "fresh", {}, *headers)).json()["meta"]


@pytest.mark.parametrize("name", [b"", b" ", b"a\x1b[31m", b"a\tb", b"x" * 5000, b"\xff"])
async def test_caller_name_is_short_and_printable(api, name: bytes) -> None:
    answer = await post(api, "fresh", {}, (b"tooli-caller", name))
    caller_id = answer.json()["meta"].get("caller_id")
    assert caller_id is None or (caller_id.isprintable() and 0 < len(caller_id) <= 200)


# ------------------------------------------------------------------ running calls


async def test_printed_text_is_the_result(capsys) -> None:
    async with run_lifespan(make_app().asgi(mcp=False)) as api:
        client = await post(api, "say", {"text": "hi"})
        quiet = await post(api, "chatty", {"text": "hi"})
    assert client.json()["result"] == "hi\nand more"
    assert quiet.json()["result"] == "hi"
    assert capsys.readouterr().out == ""


async def test_stdout_is_restored() -> None:
    import sys

    before = sys.stdout
    async with run_lifespan(make_app().asgi(mcp=False)):
        assert sys.stdout is not before
    assert sys.stdout is before


async def test_calls_above_the_limit_are_rejected() -> None:
    app = Tooli("narrow")
    started, release = asyncio.Event(), asyncio.Event()

    @app.command()
    async def wait() -> str:
        started.set()
        await release.wait()
        return "done"

    api = app.asgi(limit=1, queue_timeout=0, mcp=False)
    first = asyncio.ensure_future(post(api, "wait"))
    await started.wait()
    second = await post(api, "wait")
    assert (second.status, second.code) == (503, "E4075")
    assert second.headers["retry-after"] == "1"
    release.set()
    assert (await first).status == 200
    assert (await post(api, "wait")).status == 200


@pytest.mark.parametrize("tool", ["wait", "await"])
async def test_cancelled_request_gets_an_error_and_stays_cancelled(tool: str) -> None:
    import threading

    app = Tooli("ending")
    started, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @app.command()
    def wait() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait(120)

    @app.command("await")
    async def await_() -> None:
        started.set()
        await asyncio.Event().wait()

    client = AsgiClient(app.asgi(mcp=False))
    client.send_body(b"{}")
    task = client.start("POST", f"/tools/{tool}", [HOST, JSON])
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    assert (client.status, client.code) == (503, "E4143")


async def test_sync_tools_run_concurrently() -> None:
    import threading

    app = Tooli("busy")
    barrier = threading.Barrier(8, timeout=120)

    @app.command()
    def meet() -> int:
        return barrier.wait() * 0

    api = app.asgi(mcp=False)
    done = await asyncio.gather(*[post(api, "meet") for _ in range(8)])
    assert [client.status for client in done] == [200] * 8


async def test_internal_error_is_answered_with_an_envelope(api, monkeypatch, caplog) -> None:
    monkeypatch.setattr(type(api.access_control), "check_request", lambda *_: 1 / 0)
    client = await post(api, "fresh")
    assert (client.status, client.code) == (500, "E5000")
    assert "ZeroDivisionError" not in client.body.decode()
    request_id = client.headers["x-request-id"]
    assert client.json()["meta"]["request_id"] == request_id
    assert "ZeroDivisionError" in caplog.records[0].exc_text
    assert request_id in caplog.records[0].getMessage()


def test_misspelled_setting_suggests_the_closest_one() -> None:
    with pytest.raises(DefinitionError, match="did you mean 'token'"):
        make_single_command_app().asgi(tokn="x", mcp=False)


def test_repr_of_settings_has_no_token() -> None:
    api = make_single_command_app().asgi(token="hush", mcp=False)
    assert repr(api.settings) == "HttpSettings(secured, max_body=4194304)"


# ------------------------------------------------------------------ mounts


class InnerApp:
    """A mounted application that records its requests and lifespan events."""

    def __init__(self, failing_event: str = "") -> None:
        self.events: list[str] = []
        self.failing_event = failing_event

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            while True:
                event = (await receive())["type"]
                self.events.append(event)
                outcome = "failed" if self.failing_event == event else "complete"
                await send({"type": f"{event}.{outcome}"})
                if event == "lifespan.shutdown":
                    return
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.events.append("disconnect")
                return
            size += len(message["body"])
            if not message["more_body"]:
                break
        self.events.append(f"{scope['path']} {scope['tooli.scopes']}")
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"%d" % size})


async def test_mount_has_access_control_and_a_lifespan() -> None:
    inner = InnerApp()
    api = Tooli("outer").asgi(mcp=False, mounts={"/mcp": inner}, token="t", max_body=100)
    token = (b"authorization", b"Bearer t")
    async with run_lifespan(api):
        assert (await send(api, "POST", "/mcp", b"{}")).status == 401
        foreign = (b"origin", b"http://evil.example")
        assert (await send(api, "POST", "/mcp", b"{}", token, foreign)).status == 403
        assert (await send(api, "POST", "/mcp/x", b"abc", token)).body == b"3"
        assert (await send(api, "DELETE", "/mcp", None, token)).status == 201
        assert (await send(api, "POST", "/mcpx", b"{}", token)).status == 404
        large = await send(api, "POST", "/mcp", b" ", token, (b"content-length", b"101"))
        assert large.status == 413
        client = AsgiClient(api)
        for _ in range(5):
            client.send_body(b" " * 30, more=True)
        await client.start("POST", "/mcp", [HOST, JSON, token])
    assert inner.events == [
        "lifespan.startup",
        "/mcp/x None",
        "/mcp None",
        "lifespan.shutdown",
    ]


@pytest.mark.parametrize("path", ["/", "/health", "/x"])
async def test_root_mount_needs_a_token_for_every_path(path: str) -> None:
    inner = InnerApp()
    api = Tooli("outer").asgi(mcp=False, mounts={"/": inner}, token="t", tools=False)
    refused = await send(api, "GET", path)
    assert (refused.status, refused.code) == (401, "E2401")
    assert inner.events == []
    assert (await send(api, "GET", path, None, (b"authorization", b"Bearer t"))).status == 201


@pytest.mark.parametrize("path", ["/x", "/health", "/tools"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("header", [(b"content-length", b"10"), (b"transfer-encoding", b"chunked")])
async def test_body_of_a_method_without_body_is_refused(
    path: str, method: str, header: Header
) -> None:
    inner = InnerApp()
    client = AsgiClient(Tooli("outer").asgi(mcp=False, mounts={"/x": inner}))
    await client.start(method, path, [HOST, header])  # the body is never sent
    own_statuses = {"DELETE": 405, "OPTIONS": 204}  # answered without the body
    expected = 400 if path == "/x" else own_statuses.get(method, 400)
    assert client.status == expected
    if expected == 400:
        assert client.headers["connection"] == "close"
    assert not inner.events


async def test_mount_without_lifespan_support_is_served() -> None:
    async def simple(scope, receive, send) -> None:
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with run_lifespan(Tooli("outer").asgi(mcp=False, mounts={"/x": simple})) as api:
        assert (await send(api, "GET", "/x")).status == 202


async def test_mount_that_cannot_start_fails_the_startup() -> None:
    api = Tooli("outer").asgi(mcp=False, mounts={"/x": InnerApp("lifespan.startup")})
    sent_types = []

    async def receive():
        return {"type": "lifespan.startup"}

    async def collect(message):
        sent_types.append(message["type"])

    await api({"type": "lifespan"}, receive, collect)
    assert sent_types == ["lifespan.startup.failed"]


async def test_mcp_is_mounted_at_mcp() -> None:
    pytest.importorskip("mcp")
    async with run_lifespan(make_app().asgi()) as api:
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        accept = (b"accept", b"application/json, text/event-stream")
        assert (await send(api, "POST", "/mcp", ping, accept)).json()["jsonrpc"] == "2.0"
        assert (await post(api, "users/list")).status == 200


# ------------------------------------------------------------------ without a lifespan


async def test_mount_starts_with_its_first_request() -> None:
    inner = InnerApp()
    api = Tooli("outer").asgi(mcp=False, mounts={"/x": inner})
    answers = await asyncio.gather(*[send(api, "GET", "/x") for _ in range(5)])
    assert [answer.status for answer in answers] == [201] * 5
    assert inner.events.count("lifespan.startup") == 1
    assert inner.events[0] == "lifespan.startup"


async def test_startup_continues_if_the_first_request_is_cancelled() -> None:
    is_started, may_start = asyncio.Event(), asyncio.Event()

    async def slow(scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            is_started.set()
            await may_start.wait()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            return
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    api = Tooli("outer").asgi(mcp=False, mounts={"/x": slow})
    first = asyncio.ensure_future(send(api, "GET", "/x"))
    await is_started.wait()
    second = asyncio.ensure_future(send(api, "GET", "/x"))
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    may_start.set()
    assert (await second).status == 202


async def test_mount_that_cannot_start_is_tried_again() -> None:
    inner = InnerApp("lifespan.startup")
    api = Tooli("outer").asgi(mcp=False, mounts={"/x": inner})
    for _ in range(2):
        assert (await send(api, "GET", "/x")).status == 500
    assert inner.events.count("lifespan.startup") == 2


async def test_lifespan_starts_and_stops_the_mounts() -> None:
    inner = InnerApp()
    api = Tooli("outer").asgi(mcp=False, mounts={"/x": inner})
    async with api.lifespan():
        assert inner.events == ["lifespan.startup"]
        await send(api, "GET", "/x")
    assert inner.events == ["lifespan.startup", "/x frozenset()", "lifespan.shutdown"]


def test_mount_starts_again_on_another_loop() -> None:
    inner = InnerApp()
    api = Tooli("outer").asgi(mcp=False, mounts={"/x": inner})
    for _ in range(2):
        assert asyncio.run(send(api, "GET", "/x")).status == 201
    assert inner.events.count("lifespan.startup") == 2
