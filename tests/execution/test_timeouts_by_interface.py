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
from tests.integration.mcp.talk import (
    FORMS,
    HANDSHAKE_VERSION,
    STATELESS_VERSION,
    Talk,
    failure_of,
    serving,
)
from tests.integration.outside import PATIENCE

from tooli import Context, ToolError, Tooli
from tooli.core.call import PYTHON_CALLER, Call, Failed, Ok, Options, Runner
from tooli.errors import InputError, Suggestion, TimeoutExceeded
from tooli.pipeline import StageContext, async_drivers
from tooli.pipeline.drivers import bind, invoke, run
from tooli.stages.timeout import enforce_timeout

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")


@pytest.fixture
def place(tmp_path: Path) -> ProcessEnv:
    return ProcessEnv(tmp_path)


# ------------------------------------------------------------------ HTTP


class Served:
    """An app that is served on a port of its own."""

    def __init__(self, place: ProcessEnv, *flags: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(APP), "api", "serve", "--port", "0", "--grace", "0.5", *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=place.env,
            text=True,
        )
        self.watchdog = threading.Timer(PATIENCE, self.process.kill)
        self.watchdog.start()
        assert self.process.stderr is not None
        found = re.search(r"http://\S+:(\d+)", self.process.stderr.readline())
        assert found is not None
        self.port = int(found.group(1))

    def post(self, path: str, arguments: Any = None, **headers: str) -> tuple[int, bytes]:
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        ) as connection:
            request_headers = {"content-type": "application/json", **headers}
            connection.request(
                "POST", f"/tools/{path}", json.dumps(arguments or {}), request_headers
            )
            answer = connection.getresponse()
            return answer.status, answer.read()

    def stop(self) -> int:
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE)
        self.watchdog.cancel()
        return self.process.returncode


@pytest.fixture
def served(place: ProcessEnv) -> Iterator[Served]:
    server = Served(place)
    yield server
    server.stop()
    assert not LINUX or place.left() == []


@pytest.mark.parametrize(
    ("hang", "stopped"),
    [("sleep", "process"), ("deaf", "process"), ("c-code", "process"), ("grandchild", "process")]
    + [("task", "task"), ("deaf-task", "no task"), ("stream", "process"), ("async-stream", "task")],
)
def test_http(served: Served, hang: str, stopped: str) -> None:
    status, body = served.post(f"{hang}?timeout=0.5")
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (504, "E4050")
    assert error["details"]["stopped"] == stopped
    status, body = served.post("quick", {"word": "next"})
    assert (status, json.loads(body)["result"]) == (200, "next")


@pytest.mark.parametrize("hang", ["stream", "async-stream"])
def test_http_streams(served: Served, hang: str) -> None:
    _, body = served.post(f"{hang}?timeout=0.5", accept="application/jsonl")
    *items, last = map(json.loads, body.splitlines())
    assert items == [{"i": 0}, {"i": 1}, {"i": 2}]
    assert last["error"]["code"] == "E4050"


def test_http_prints_and_declares(served: Served) -> None:
    status, body = served.post("declared")
    assert (status, json.loads(body)["error"]["details"]["seconds"]) == (504, 0.4)
    _, body = served.post("say-and-sleep?timeout=0.5")
    assert json.loads(body)["error"]["details"]["printed"] == "printed before"


def test_http_others_are_served_meanwhile(served: Served) -> None:
    """A closed connection is closed, even if the process of another call has inherited it."""
    answers: list[tuple[int, bytes]] = []
    hanging = threading.Thread(target=lambda: answers.append(served.post("deaf?timeout=2")))
    hanging.start()
    for _ in range(3):
        status, body = served.post("quick?timeout=120", connection="close")
        assert (status, json.loads(body)["meta"]["warnings"]) == (200, ["be quick"])
    hanging.join()
    assert answers[0][0] == 504


def test_a_setting_holds_for_served_calls_and_not_for_the_server(place: ProcessEnv) -> None:
    place.env["TOOLI_TIMEOUT"] = "0.5"
    server = Served(place)
    try:
        assert server.post("sleep")[0] == 504
        assert server.post("task")[0] == 504
        assert server.post("quick")[0] == 200
    finally:
        assert server.stop() in (0, 143)


# ------------------------------------------------------------------ MCP


@contextlib.contextmanager
def talking(place: ProcessEnv, version: str) -> Iterator[Talk]:
    process = subprocess.Popen(
        serving(APP),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=place.env,
    )
    talk = Talk(process, version)
    try:
        talk.open(FORMS)
        yield talk
    finally:
        talk.close()


def limit(seconds: float) -> dict[str, Any]:
    """Return a timeout in the form that a request has it."""
    return {"io.tooli/options": {"timeout": seconds}}


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
@pytest.mark.parametrize("hang", ["sleep", "deaf", "task", "stream", "say_and_sleep"])
def test_mcp(place: ProcessEnv, version: str, hang: str) -> None:
    with talking(place, version) as talk:
        error = failure_of(talk.call(hang, **limit(0.5)))
        assert error["code"] == "E4050"
        assert error["details"].get("printed") == ("printed before" if "say" in hang else None)
        assert talk.value("quick") == "done"


def test_mcp_questions_progress_and_logs_reach_the_client(place: ProcessEnv) -> None:
    with talking(place, HANDSHAKE_VERSION) as talk:
        given = talk.begin("ask", progressToken="t", **limit(50))
        question = talk.asked()
        assert question["params"]["message"] == "Go on?"
        answer = {"action": "accept", "content": {"answer": True, "yes": True, "confirm": True}}
        talk.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        assert talk.answer_to(given)["result"]["structuredContent"] == {"result": "agreed"}
        messages = [(message["method"], message["params"]) for message in talk.heard]
        assert (
            "notifications/progress",
            {"progressToken": "t", "progress": 1, "total": 2},
        ) in messages
        assert "notifications/message" in dict(messages)


def test_mcp_a_question_that_ends_the_round_ends_the_process(place: ProcessEnv) -> None:
    with talking(place, STATELESS_VERSION) as talk:
        result = talk.call("ask", **limit(50))
        assert result["resultType"] == "input_required", result
        assert talk.value("quick") == "done"


# ------------------------------------------------------------------ Python

app = Tooli("here")
memory: list[str] = []


class Point:
    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and other.x == self.x


class Odd(Exception):
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
def deaf_rows() -> Iterator[int]:
    """Yield two items and hang."""
    yield 1
    yield 2
    threading.Event().wait()


@app.command()
async def adeaf_rows() -> AsyncIterator[int]:
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
def give(what: str, ctx: Context) -> Any:
    """Return a value of some kind."""
    ctx.warn("given")
    print("printed")
    print("complained", file=sys.stderr)
    memory.append(what)
    local = type("Local", (), {"__str__": lambda self: "local"})
    made = {
        "point": lambda: Point(3),
        "local": lambda: local(),
        "big": lambda: ["x" * 1000] * 1000,
        "none": lambda: None,
    }
    return made[what]()


@app.command()
def fail(how: str) -> str:
    """Fail in some way."""
    made: dict[str, BaseException] = {
        "value": ValueError("no good"),
        "odd": Odd(1, 2),
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


def test_call() -> None:
    answer = app.call("hang", timeout=0.3)
    assert answer.error is not None
    assert (answer.error.code, answer.error.details["stopped"]) == ("E4050", "process")
    with pytest.raises(TimeoutExceeded):
        answer.unwrap()
    assert app.call("ahang", timeout=0.3).error.code == "E4050"
    assert app.options(timeout=0.3).call("hang").error.code == "E4050"


def test_acall() -> None:
    async def both() -> list[Any]:
        return await asyncio.gather(
            app.acall("hang", timeout=0.3),
            app.acall("ahang", timeout=0.3),
            app.acall("give", what="point", timeout=50),
        )

    one, two, three = asyncio.run(both())
    assert (one.error.details["stopped"], two.error.details["stopped"]) == ("process", "task")
    assert three.result == Point(3)


def test_a_cancelled_acall_ends_its_process(tmp_path: Path) -> None:
    before = _children() if LINUX else set[str]()

    async def some() -> None:
        task = asyncio.ensure_future(app.acall("hang", timeout=500))
        while not _children() - before:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while _children() - before:
            await asyncio.sleep(0.01)

    if LINUX:
        asyncio.run(asyncio.wait_for(some(), PATIENCE))


def _children() -> set[str]:
    found: set[str] = set()
    for thread in Path("/proc/self/task").iterdir():
        found |= set((thread / "children").read_text().split())
    return found


def test_streams() -> None:
    got: list[int] = []
    with pytest.raises(TimeoutExceeded):
        got.extend(app.stream("deaf-rows", timeout=0.3))  # extend() forwards each item
    items: list[int] = []

    async def all_of_them(name: str) -> None:
        async for item in app.astream(name, timeout=0.3):
            items.append(item)

    for name in ("deaf-rows", "adeaf-rows"):
        items.clear()
        with pytest.raises(TimeoutExceeded):
            asyncio.run(all_of_them(name))
        assert items == [1, 2]


def test_a_stream_is_never_ahead_of_its_reader(tmp_path: Path) -> None:
    file = tmp_path / "made"
    stream = app.stream("rows", file=file, timeout=50)
    assert [next(stream) for _ in range(5)] == [0, 1, 2, 3, 4]
    stream.close()
    assert file.read_text() == "4", "closed where its reader left it"
    assert app.call("rows", file=file, timeout=50, limit=3).result == [0, 1, 2]


def test_values_come_back(capsys: pytest.CaptureFixture[str]) -> None:
    for what in ("point", "big", "none"):
        held, free = app.call("give", what=what, timeout=50), app.call("give", what=what)
        assert held.result == free.result
        assert list(held.meta["warnings"]) == ["given"]
    shown = capsys.readouterr()
    assert shown.out == "printed\n" * 6
    assert shown.err == "complained\n" * 6
    memory.clear()
    app.call("give", what="none", timeout=50)
    assert memory == [], "what a function changes in memory stays in its process"


def test_a_value_that_cannot_cross_is_given_as_json() -> None:
    held = app.call("give", what="local", timeout=50)
    assert held.result == "local"
    assert any("cannot be sent between processes" in text for text in held.meta["warnings"])


@pytest.mark.parametrize("how", ["value", "odd", "exit", "fine", "missing", "tool", "own"])
def test_failures_come_back(how: str) -> None:
    held, free = app.call("fail", how=how, timeout=50), app.call("fail", how=how)
    assert held.ok == free.ok
    if free.error is not None:
        assert held.error.to_dict() == free.error.to_dict()
        one, two = held.error.to_exception(), free.error.to_exception()
        assert (type(one), one.exit_code) == (type(two), two.exit_code)


def test_an_interrupt_of_the_functions_own() -> None:
    for options in ({}, {"timeout": 50}):
        with pytest.raises(KeyboardInterrupt):
            app.call("fail", how="stop", **options)


def test_threads_call_side_by_side() -> None:
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda: answers.append(app.call("hang", timeout=0.3)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [answer.error.code for answer in answers] == ["E4050"] * 4


def test_where_no_process_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    before = len(os.listdir("/proc/self/fd")) if LINUX else 0
    answer = app.call("give", what="none", timeout=50)
    assert answer.error is not None
    assert answer.error.code == "E4075"
    assert not LINUX or len(os.listdir("/proc/self/fd")) == before


def test_nothing_is_left_open() -> None:
    app.call("give", what="none", timeout=50)
    before = len(os.listdir("/proc/self/fd")) if LINUX else 0
    for _ in range(3):
        app.call("give", what="none", timeout=50)
        app.call("hang", timeout=0.1)
    assert not LINUX or len(os.listdir("/proc/self/fd")) == before


# ------------------------------------------------------------------ other runners


class Around(Runner):
    """A runner that reports where it ran."""

    needs_own_process = True

    def run(self, call: Call) -> Any:
        assert call.meta is not None
        call.meta["enforcement"] = "tried"
        call.warnings.append(f"around {os.getpid()}")
        return invoke(call.replace(runner=self.inner))

    async def arun(self, call: Call) -> Any:
        raise AssertionError("it has to be alone, so no loop of the caller's can run it")


def around(call: Call) -> Iterator[Call]:
    """A stage that adds the runner."""
    return (yield call.replace(runner=Around(call.runner)))  # type: ignore[return-value]


def timeout_stage(tool: Any) -> Any:
    return enforce_timeout(StageContext(tool, Options(), app._state, PYTHON_CALLER, app.find))


@pytest.mark.parametrize("seconds", [None, 50.0])
@pytest.mark.parametrize("name", ["where", "awhere"])
def test_a_runner_that_has_to_be_alone_is(name: str, seconds: float | None) -> None:
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
        assert call.meta == {"enforcement": "tried"}


def test_without_fork_it_is_not_run_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tooli.stages.timeout.can_fork", lambda: False)
    tool = app.find("where")
    assert tool is not None
    outcome = run(Call(tool, {}, PYTHON_CALLER, [], meta={}), (bind, around, timeout_stage(tool)))
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "E2006"


# ------------------------------------------------------------------ without fork


@pytest.fixture
def forkless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tooli.stages.timeout.can_fork", lambda: False)


@pytest.mark.usefixtures("forkless")
def test_where_nothing_can_be_forked_nobody_waits() -> None:
    answer = app.call("hang", timeout=0.2)
    assert answer.error is not None
    assert (answer.error.code, answer.error.details["stopped"]) == ("E4050", "nothing")
    assert any("may still be running" in text for text in answer.meta["warnings"])
    assert app.call("give", what="point", timeout=50).result == Point(3)
    assert app.call("fail", how="tool", timeout=50).error.code == "E1003"
    got: list[int] = []
    with pytest.raises(TimeoutExceeded):
        for item in app.stream("deaf-rows", timeout=0.2):
            got.append(item)
    assert got == [1, 2]
    assert asyncio.run(app.acall("ahang", timeout=0.2)).error.details["stopped"] == "task"


def test_text_goes_where_the_caller_has_it() -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        app.call("give", what="none", timeout=50)
    assert output.getvalue() == "printed\n"
