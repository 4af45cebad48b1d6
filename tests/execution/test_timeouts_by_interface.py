"""Timeouts through Python, HTTP and MCP: the server keeps running."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.execution.test_timeouts import APP, LINUX, ProcessEnv
from tests.integration.app_process import PROCESS_TIMEOUT
from tests.integration.mcp.stdio_client import (
    ELICITATION,
    HANDSHAKE_VERSION,
    STATELESS_VERSION,
    StdioClient,
    failure_of,
    serve_command,
)

from tooli import Context, ToolError, Tooli
from tooli.core.call import PYTHON_CALLER, Call, Failed, Ok, Options, Runner
from tooli.errors import InputError, Suggestion, TimeoutExceeded
from tooli.pipeline import StageContext, async_drivers
from tooli.pipeline.drivers import bind, invoke, run
from tooli.stages.timeout import enforce_timeout

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def process_env(tmp_path: Path) -> ProcessEnv:
    return ProcessEnv(tmp_path)


# ------------------------------------------------------------------ HTTP


class HttpServer:
    """An app that is server on a port of its own."""

    def __init__(self, process_env: ProcessEnv, *flags: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(APP), "api", "serve", "--port", "0", "--grace", "0.5", *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=process_env.env,
            text=True,
        )
        self.watchdog = threading.Timer(PROCESS_TIMEOUT, self.process.kill)
        self.watchdog.start()
        assert self.process.stderr is not None
        found = re.search(r"http://\S+:(\d+)", self.process.stderr.readline())
        assert found is not None
        self.port = int(found.group(1))

    def post(self, path: str, arguments: Any = None, **headers: str) -> tuple[int, bytes]:
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=PROCESS_TIMEOUT)
        ) as connection:
            request_headers = {"content-type": "application/json", **headers}
            connection.request(
                "POST", f"/tools/{path}", json.dumps(arguments or {}), request_headers
            )
            answer = connection.getresponse()
            return answer.status, answer.read()

    def stop(self) -> int:
        self.process.terminate()
        self.process.communicate(timeout=PROCESS_TIMEOUT)
        self.watchdog.cancel()
        return self.process.returncode


@pytest.fixture
def server(process_env: ProcessEnv) -> Iterator[HttpServer]:
    started = HttpServer(process_env)
    yield started
    started.stop()
    assert not LINUX or process_env.remaining() == []


@pytest.mark.parametrize(
    ("hang", "stopped"),
    [
        *[(hang, "process") for hang in ("sleep", "uninterruptible", "c-code", "grandchild")],
        *[("stream", "process"), ("async-stream", "task")],
        *[("task", "task"), ("uncancellable-task", "no task")],
    ],
)
def test_http_call_times_out_and_the_server_keeps_running(
    server: HttpServer, hang: str, stopped: str
) -> None:
    status, body = server.post(f"{hang}?timeout=0.5")
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (504, "E4050")
    assert error["details"]["stopped"] == stopped
    status, body = server.post("quick", {"word": "next"})
    assert (status, json.loads(body)["result"]) == (200, "next")


@pytest.mark.parametrize("hang", ["stream", "async-stream"])
def test_http_stream_ends_with_a_timeout_error(server: HttpServer, hang: str) -> None:
    _, body = server.post(f"{hang}?timeout=0.5", accept="application/jsonl")
    *items, last = map(json.loads, body.splitlines())
    assert items == [{"i": 0}, {"i": 1}, {"i": 2}]
    assert last["error"]["code"] == "E4050"


def test_http_timeout_error_has_the_declared_limit_and_printed_text(server: HttpServer) -> None:
    status, body = server.post("declared")
    assert (status, json.loads(body)["error"]["details"]["seconds"]) == (504, 0.4)
    _, body = server.post("say-and-sleep?timeout=0.5")
    assert json.loads(body)["error"]["details"]["printed"] == "printed before"


def test_http_other_requests_are_served_during_a_hanging_call(server: HttpServer) -> None:
    """A connection is closed even if the process of another call has inherited it."""
    answers: list[tuple[int, bytes]] = []
    hanging = threading.Thread(
        target=lambda: answers.append(server.post("uninterruptible?timeout=2"))
    )
    hanging.start()
    for _ in range(3):
        status, body = server.post("quick?timeout=120", connection="close")
        assert (status, json.loads(body)["meta"]["warnings"]) == (200, ["be quick"])
    hanging.join()
    assert answers[0][0] == 504


def test_timeout_setting_applies_to_calls_and_not_to_the_server(process_env: ProcessEnv) -> None:
    process_env.env["TOOLI_TIMEOUT"] = "0.5"
    server = HttpServer(process_env)
    try:
        assert server.post("sleep")[0] == 504
        assert server.post("task")[0] == 504
        assert server.post("quick")[0] == 200
    finally:
        assert server.stop() in (0, 143)


# ------------------------------------------------------------------ MCP


@contextlib.contextmanager
def mcp_client(process_env: ProcessEnv, version: str) -> Iterator[StdioClient]:
    process = subprocess.Popen(
        serve_command(APP),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=process_env.env,
    )
    client = StdioClient(process, version)
    try:
        client.initialize(ELICITATION)
        yield client
    finally:
        client.close()


def timeout_meta(seconds: float) -> dict[str, Any]:
    """Return the `_meta` of a request with a timeout."""
    return {"io.tooli/options": {"timeout": seconds}}


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
@pytest.mark.parametrize("hang", ["sleep", "uninterruptible", "task", "stream", "say_and_sleep"])
def test_mcp_call_times_out_and_the_server_keeps_running(
    process_env: ProcessEnv, version: str, hang: str
) -> None:
    with mcp_client(process_env, version) as client:
        error = failure_of(client.call(hang, **timeout_meta(0.5)))
        assert error["code"] == "E4050"
        assert error["details"].get("printed") == ("printed before" if "say" in hang else None)
        assert client.value("quick") == "done"


def test_mcp_questions_progress_and_logs_reach_the_client(process_env: ProcessEnv) -> None:
    with mcp_client(process_env, HANDSHAKE_VERSION) as client:
        request_id = client.start_call("ask", progressToken="t", **timeout_meta(50))
        question = client.next_question()
        assert question["params"]["message"] == "Go on?"
        answer = {"action": "accept", "content": {"answer": True, "yes": True, "confirm": True}}
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        assert client.response_to(request_id)["result"]["structuredContent"] == {"result": "agreed"}
        messages = [(message["method"], message["params"]) for message in client.received]
        assert (
            "notifications/progress",
            {"progressToken": "t", "progress": 1, "total": 2},
        ) in messages
        assert "notifications/message" in dict(messages)


def test_mcp_input_required_ends_the_process(process_env: ProcessEnv) -> None:
    with mcp_client(process_env, STATELESS_VERSION) as client:
        result = client.call("ask", **timeout_meta(50))
        assert result["resultType"] == "input_required", result
        assert client.value("quick") == "done"


# ------------------------------------------------------------------ Python

app = Tooli("here")
memory: list[str] = []


class Point:
    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and other.x == self.x


class Unpicklable(Exception):
    """An exception that cannot be unpickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


@app.command()
def hang() -> str:
    """Hang."""
    threading.Event().wait()
    return ""


@app.command()
async def ahang() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return ""


@app.command()
def hanging_rows() -> Iterator[int]:
    """Yield two items and hang."""
    yield 1
    yield 2
    threading.Event().wait()


@app.command()
async def ahanging_rows() -> AsyncIterator[int]:
    """Yield two items and hang."""
    yield 1
    yield 2
    await asyncio.Event().wait()


@app.command()
def rows(file: Path) -> Iterator[int]:
    """Yield without end; count the items."""
    made = 0
    try:
        while True:
            yield made
            made += 1
    finally:
        file.write_text(str(made))


@app.command()
def give(kind: str, ctx: Context) -> Any:
    """Return a value of some kind."""
    ctx.warn("given")
    print("printed")
    print("complained", file=sys.stderr)
    memory.append(kind)
    local = type("Local", (), {"__str__": lambda self: "local"})
    made = {
        "point": lambda: Point(3),
        "local": lambda: local(),
        "big": lambda: ["x" * 1000] * 1000,
        "none": lambda: None,
    }
    return made[kind]()


@app.command()
def fail(how: str) -> str:
    """Fail in some way."""
    made: dict[str, BaseException] = {
        "value": ValueError("no good"),
        "unpicklable": Unpicklable(1, 2),
        "exit": SystemExit(7),
        "fine": SystemExit(0),
        "missing": FileNotFoundError(2, "No such file", "there"),
        "tool": InputError(
            "bad", code="E1003", field="x", suggestion=Suggestion("fix", "so"), details={"a": [1]}
        ),
        "own": ToolError("mine", code="MINE", exit_code=33),
        "stop": KeyboardInterrupt(),
    }
    raise made[how]


@app.command()
def where() -> int:
    """Return the pid."""
    return os.getpid()


@app.command()
async def awhere() -> int:
    """Return the pid."""
    return os.getpid()


def test_call_returns_a_timeout_error() -> None:
    answer = app.call("hang", timeout=0.3)
    assert answer.error is not None
    assert (answer.error.code, answer.error.details["stopped"]) == ("E4050", "process")
    with pytest.raises(TimeoutExceeded):
        answer.unwrap()
    assert app.call("ahang", timeout=0.3).error.code == "E4050"
    assert app.options(timeout=0.3).call("hang").error.code == "E4050"


def test_acall_stops_a_process_or_a_task() -> None:
    async def both() -> list[Any]:
        return await asyncio.gather(
            app.acall("hang", timeout=0.3),
            app.acall("ahang", timeout=0.3),
            app.acall("give", kind="point", timeout=50),
        )

    one, two, three = asyncio.run(both())
    assert (one.error.details["stopped"], two.error.details["stopped"]) == ("process", "task")
    assert three.result == Point(3)


def test_cancelled_acall_ends_its_process(tmp_path: Path) -> None:
    before = _children() if LINUX else set[str]()

    async def cancel_call() -> None:
        task = asyncio.ensure_future(app.acall("hang", timeout=500))
        while not _children() - before:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while _children() - before:
            await asyncio.sleep(0.01)

    if LINUX:
        asyncio.run(asyncio.wait_for(cancel_call(), PROCESS_TIMEOUT))


def _children() -> set[str]:
    found: set[str] = set()
    for thread in Path("/proc/self/task").iterdir():
        found |= set((thread / "children").read_text().split())
    return found


def test_stream_returns_its_items_before_the_timeout() -> None:
    received: list[int] = []
    with pytest.raises(TimeoutExceeded):
        received.extend(app.stream("hanging-rows", timeout=2))
    assert received == [1, 2]
    items: list[int] = []

    async def read_all(name: str) -> None:
        async for item in app.astream(name, timeout=2):
            items.append(item)

    for name in ("hanging-rows", "ahanging-rows"):
        items.clear()
        with pytest.raises(TimeoutExceeded):
            asyncio.run(read_all(name))
        assert items == [1, 2]


def test_stream_produces_only_requested_items(tmp_path: Path) -> None:
    file = tmp_path / "made"
    stream = app.stream("rows", file=file, timeout=50)
    assert [next(stream) for _ in range(5)] == [0, 1, 2, 3, 4]
    stream.close()
    assert file.read_text() == "4", "the stream produced more items than requested"
    assert app.call("rows", file=file, timeout=50, limit=3).result == [0, 1, 2]


def test_values_are_returned(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("point", "big", "none"):
        limited, unlimited = app.call("give", kind=kind, timeout=50), app.call("give", kind=kind)
        assert limited.result == unlimited.result
        assert list(limited.meta["warnings"]) == ["given"]
    shown = capsys.readouterr()
    assert shown.out == "printed\n" * 6
    assert shown.err == "complained\n" * 6
    memory.clear()
    app.call("give", kind="none", timeout=50)
    assert memory == [], "changes in memory must stay in the worker process"


def test_unpicklable_value_becomes_json() -> None:
    limited = app.call("give", kind="local", timeout=50)
    assert limited.result == "local"
    assert any("cannot be sent between processes" in text for text in limited.meta["warnings"])


@pytest.mark.parametrize("how", ["value", "unpicklable", "exit", "fine", "missing", "tool", "own"])
def test_errors_are_returned(how: str) -> None:
    limited, unlimited = app.call("fail", how=how, timeout=50), app.call("fail", how=how)
    assert limited.ok == unlimited.ok
    if unlimited.error is not None:
        assert limited.error.to_dict() == unlimited.error.to_dict()
        one, two = limited.error.to_exception(), unlimited.error.to_exception()
        assert (type(one), one.exit_code) == (type(two), two.exit_code)


def test_keyboard_interrupt_of_the_function_is_raised() -> None:
    for options in ({}, {"timeout": 50}):
        with pytest.raises(KeyboardInterrupt):
            app.call("fail", how="stop", **options)


def test_concurrent_calls_in_threads_time_out() -> None:
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda: answers.append(app.call("hang", timeout=0.3)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PROCESS_TIMEOUT)
    assert [answer.error.code for answer in answers] == ["E4050"] * 4


def test_failed_fork_is_an_error_and_leaks_no_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    before = len(os.listdir("/proc/self/fd")) if LINUX else 0
    answer = app.call("give", kind="none", timeout=50)
    assert answer.error is not None
    assert answer.error.code == "E4075"
    assert not LINUX or len(os.listdir("/proc/self/fd")) == before


def test_no_descriptors_are_leaked() -> None:
    app.call("give", kind="none", timeout=50)
    before = len(os.listdir("/proc/self/fd")) if LINUX else 0
    for _ in range(3):
        app.call("give", kind="none", timeout=50)
        app.call("hang", timeout=0.1)
    assert not LINUX or len(os.listdir("/proc/self/fd")) == before


# ------------------------------------------------------------------ other runners


class Around(Runner):
    """A runner that reports where it ran."""

    needs_own_process = True

    def run(self, call: Call) -> Any:
        assert call.meta is not None
        call.meta["enforcement"] = "around"
        call.warnings.append(f"around {os.getpid()}")
        return invoke(call.replace(runner=self.inner))

    async def arun(self, call: Call) -> Any:
        raise AssertionError("it must not run on the loop of the caller")


def around(call: Call) -> Iterator[Call]:
    """A stage that adds the runner."""
    return (yield call.replace(runner=Around(call.runner)))  # type: ignore[return-value]


def timeout_stage(tool: Any) -> Any:
    return enforce_timeout(StageContext(tool, Options(), app._state, PYTHON_CALLER, app.find))


@pytest.mark.parametrize("seconds", [None, 50.0])
@pytest.mark.parametrize("name", ["where", "awhere"])
def test_runner_that_needs_its_own_process_runs_in_one(name: str, seconds: float | None) -> None:
    tool = app.find(name)
    assert tool is not None
    stages = (bind, around, timeout_stage(tool))

    def made() -> Call:
        return Call(tool, {}, PYTHON_CALLER, [], Options(timeout=seconds), meta={})

    async def awaited(call: Call) -> Any:
        return await async_drivers.run(call, stages)

    for drive in (lambda call: run(call, stages), lambda call: asyncio.run(awaited(call))):
        call = made()
        outcome = drive(call)
        assert isinstance(outcome, Ok), outcome
        assert outcome.value != os.getpid()
        assert call.warnings == [f"around {outcome.value}"]
        assert call.meta == {"enforcement": "around"}


def test_runner_that_needs_its_own_process_fails_without_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tooli.stages.timeout.can_fork", lambda: False)
    tool = app.find("where")
    assert tool is not None
    outcome = run(Call(tool, {}, PYTHON_CALLER, [], meta={}), (bind, around, timeout_stage(tool)))
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "E2006"


# ------------------------------------------------------------------ without fork


@pytest.fixture
def no_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tooli.stages.timeout.can_fork", lambda: False)


@pytest.mark.usefixtures("no_fork")
def test_caller_stops_waiting_without_fork() -> None:
    answer = app.call("hang", timeout=0.2)
    assert answer.error is not None
    assert (answer.error.code, answer.error.details["stopped"]) == ("E4050", "nothing")
    assert any("may still be running" in text for text in answer.meta["warnings"])
    assert app.call("give", kind="point", timeout=50).result == Point(3)
    assert app.call("fail", how="tool", timeout=50).error.code == "E1003"
    received: list[int] = []
    with pytest.raises(TimeoutExceeded):
        for item in app.stream("hanging-rows", timeout=2):
            received.append(item)
    assert received == [1, 2]
    assert asyncio.run(app.acall("ahang", timeout=0.2)).error.details["stopped"] == "task"


def test_output_goes_to_the_redirected_stdout() -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        app.call("give", kind="none", timeout=50)
    assert output.getvalue() == "printed\n"
