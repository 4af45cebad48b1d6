"""ProcessRunner: supervisors that hang, cancelled calls, threads, descriptors."""

from __future__ import annotations

import asyncio
import builtins
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from tests.execution.calls import make_call
from tests.integration.app_process import PROCESS_TIMEOUT, environment
from tests.pipeline.test_context import Client

from tooli import Context, Tooli
from tooli.core.call import PYTHON_CALLER, Call
from tooli.core.peer import Question
from tooli.errors import Interrupted, TimeoutExceeded, ToolRuntimeError
from tooli.execution import process_runner, processes, worker
from tooli.execution.ipc import Codec
from tooli.execution.process_runner import MAX_PENDING_FRAMES, ChildCall, ProcessRunner
from tooli.execution.safe_codec import SafeCodec

LINUX = sys.platform.startswith("linux")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

app = Tooli("calls")


@app.command()
def linger(mark: Path) -> str:
    """Write the pid and hang."""
    mark.write_text(str(os.getpid()))
    while True:
        time.sleep(1000)


@app.command(timeout=50)
def shut() -> None:
    """Close everything and end slowly."""
    os.closerange(3, 256)
    time.sleep(0.5)
    os._exit(3)


@app.command(timeout=50)
def quick() -> str:
    """Return at once."""
    return "done"


@app.command(timeout=50)
async def rows() -> AsyncIterator[int]:
    """Yield one item and hang."""
    yield 1
    await asyncio.sleep(1000)
    yield 2


def child_call_for(mark: Path) -> ChildCall:
    tool = app.find("linger")
    assert tool is not None
    return ChildCall(ProcessRunner(None, 500.0), Call(tool, {"mark": mark}, PYTHON_CALLER, []))


# ------------------------------------------------------------------ a supervisor that hangs


def hang(*_: Any) -> NoReturn:
    while True:
        signal.pause()


@pytest.fixture
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_runner, "REPORT_TIMEOUT", 0.2)
    monkeypatch.setattr(process_runner, "KILL_TIMEOUT", 0.0)


def has_ended(pid: int) -> bool:
    """True if the process ends in time."""
    until = time.monotonic() + PROCESS_TIMEOUT
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
    return False


@pytest.mark.usefixtures("short_timeouts")
def test_supervisor_that_never_starts_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_runner, "run_supervisor", hang)
    answer = app.call("linger", mark=tmp_path / "mark", timeout=0.2)
    assert answer.error is not None
    assert answer.error.code == "E4050"
    assert answer.error.details is not None
    assert answer.error.details["stopped"] == "process"
    assert any("did not answer and was killed" in warning for warning in answer.meta["warnings"])


@pytest.mark.skipif(not LINUX, reason="a worker dies with its supervisor on Linux")
@pytest.mark.usefixtures("short_timeouts")
def test_worker_dies_with_a_hanging_supervisor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(processes.Supervisor, "supervise", hang)
    mark = tmp_path / "mark"
    answer = app.call("linger", mark=mark, timeout=2)
    assert answer.error is not None
    assert answer.error.code == "E4050"
    assert has_ended(int(mark.read_text()))


def test_supervisor_imports_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another thread may hold an import lock, which is never released in a forked process."""
    run_supervisor, run_and_exit, original_import = (
        process_runner.run_supervisor,
        worker.Worker.run_and_exit,
        builtins.__import__,
    )

    def refuse(name: str, *_: Any, **__: Any) -> NoReturn:
        raise AssertionError(f"the supervisor imports {name}")

    def supervise(*args: Any) -> None:
        builtins.__import__ = refuse  # in the process of the supervisor
        run_supervisor(*args)

    def work(self: Any, *args: Any) -> None:
        builtins.__import__ = original_import
        run_and_exit(self, *args)

    monkeypatch.setattr(process_runner, "run_supervisor", supervise)
    monkeypatch.setattr(worker.Worker, "run_and_exit", work)
    assert app.call("quick").unwrap() == "done"
    answer = app.call("linger", mark=tmp_path / "mark", timeout=0.2)
    assert answer.error is not None
    assert answer.error.code == "E4050", answer


# ------------------------------------------------------------------ a function that sends nothing


def test_closed_pipe_causes_no_busy_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receive, receive_calls = ChildCall._receive, list[int]()

    def counting_receive(self: ChildCall, seconds: float | None = None) -> None:
        receive_calls.append(1)
        receive(self, seconds)

    monkeypatch.setattr(ChildCall, "_receive", counting_receive)
    answer = app.call("shut")
    assert answer.error is not None
    assert answer.error.details == {"exit_code": 3}
    assert len(receive_calls) < 10


def test_every_wait_ends_so_that_signal_handlers_run(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = ChildCall._receive
    waits: list[float | None] = []

    class Poller:
        def __init__(self, poller: select.poll) -> None:
            self.poller = poller

        def __getattr__(self, name: str) -> Any:
            return getattr(self.poller, name)

        def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
            waits.append(timeout)
            return self.poller.poll(timeout)

    def recording_receive(self: ChildCall, timeout: float | None = None) -> None:
        if not isinstance(self._poller, Poller):
            self._poller = Poller(self._poller)
        receive(self, timeout)

    monkeypatch.setattr(ChildCall, "_receive", recording_receive)
    assert app.call("shut").error is not None
    assert waits
    assert all(wait is not None and wait <= 1000 for wait in waits)


# ------------------------------------------------------------------ callers that cancel


def test_call_cancelled_before_its_start_does_not_run(tmp_path: Path) -> None:
    child_call = child_call_for(tmp_path / "mark")
    child_call.cancel()
    with pytest.raises(Interrupted):
        child_call.result()
    assert not (tmp_path / "mark").exists()


def test_call_cancelled_during_its_start_is_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child_call, fork = child_call_for(tmp_path / "mark"), process_runner.fork

    def fork_after_cancel() -> int:
        child_call.cancel()
        return fork()

    monkeypatch.setattr(process_runner, "fork", fork_after_cancel)
    watchdog = threading.Timer(
        PROCESS_TIMEOUT, lambda: os.kill(child_call.supervisor_pid, signal.SIGKILL)
    )
    watchdog.start()
    try:
        with pytest.raises(KeyboardInterrupt):  # what the function observes
            child_call.result()
    finally:
        watchdog.cancel()


def test_cancelled_stream_leaves_no_task() -> None:
    async def read(begun: asyncio.Event) -> None:
        async for _ in app.astream("rows"):
            begun.set()

    async def main() -> set[Any]:
        begun, before = asyncio.Event(), asyncio.all_tasks()
        task = asyncio.ensure_future(read(begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.all_tasks() - before

    assert asyncio.run(asyncio.wait_for(main(), PROCESS_TIMEOUT)) == set()


# ------------------------------------------------------------------ threads and descriptors

MANY = """
import threading
from tooli import Tooli

app = Tooli("many")
gate, answers = threading.Barrier(8), []

@app.command(timeout=30)
def nap(n: int) -> int:
    return n

def go(n):
    gate.wait()
    answers.append(app.call("nap", n=n).to_dict())

threads = [threading.Thread(target=go, args=(n,)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
bad = [answer for answer in answers if not answer["ok"]]
assert not bad, bad
assert sorted(answer["result"] for answer in answers) == list(range(8))
"""


@pytest.mark.parametrize("_", range(3))
def test_calls_in_threads_that_start_together_succeed(_: int, tmp_path: Path) -> None:
    """Threads of a new process import the runner at the same time."""
    env = environment(TOOLI_STATE_DIR=str(tmp_path))
    args = [sys.executable, "-c", MANY]
    done = subprocess.run(args, env=env, capture_output=True, text=True, timeout=PROCESS_TIMEOUT)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not LINUX, reason="/proc")
def test_detach_server_sockets_leaks_no_descriptors() -> None:
    code = (
        "import os, socket\n"
        "from tooli.execution.worker import detach_server_sockets\n"
        "files = [open(os.devnull) for _ in range(20)]\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "pair = socket.socketpair()\n"
        "before = len(os.listdir('/proc/self/fd'))\n"
        "detach_server_sockets()\n"
        "assert len(os.listdir('/proc/self/fd')) == before\n"
        "pair[0].send(b'x')\n"
        "assert pair[1].recv(1) == b'x'\n"
        "assert os.path.samestat(os.fstat(server.fileno()), os.stat(os.devnull))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------ without fork


def test_abandoned_thread_ends_with_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tooli.stages.timeout.can_fork", lambda: False)
    release, before, workers = threading.Event(), set(threading.enumerate()), Tooli("workers")

    @workers.command(timeout=0.1)
    def wait() -> None:
        release.wait(PROCESS_TIMEOUT)

    error = workers.call("wait").error
    assert error is not None
    assert "was stopped" not in error.message
    assert "may still be running" in error.message
    left = set(threading.enumerate()) - before
    assert len(left) == 1
    release.set()
    for thread in left:
        thread.join(PROCESS_TIMEOUT)
        assert not thread.is_alive()


def test_asyncio_is_imported_before_the_fork() -> None:
    """The import of asyncio does not count towards the time limit."""
    code = (
        "import sys\n"
        "from tooli import Tooli\n"
        "app = Tooli('x')\n"
        "@app.command(timeout=60)\n"
        "async def go() -> list[str]:\n"
        "    return sorted(sys.modules)\n"
        "assert 'asyncio' not in sys.modules\n"
        "loaded = set(app.call('go').unwrap())\n"
        "assert 'asyncio' in loaded and not loaded - set(sys.modules), loaded - set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------ the calling process


def test_second_interrupt_ends_the_call() -> None:
    written: list[Any] = []
    call: Any = SimpleNamespace(
        _interrupt_count=0,
        _is_running=True,
        _control_fd=7,
        _write=lambda *args: written.append(args),
    )
    ChildCall.interrupt(call)
    with pytest.raises(KeyboardInterrupt):
        ChildCall.interrupt(call)
    assert written == [(b"i", 7)]


def test_too_many_results_of_an_untrusted_process_are_refused() -> None:
    for is_untrusted in (False, True):
        frames: list[Any] = [("item", None, 0)] * MAX_PENDING_FRAMES
        codec = SafeCodec() if is_untrusted else Codec()
        call: Any = SimpleNamespace(_pending_frames=frames, _codec=codec)
        if not is_untrusted:
            ChildCall._queue_frame(call, "item", None, 0)
            continue
        with pytest.raises(ToolRuntimeError, match="more results"):
            ChildCall._queue_frame(call, "item", None, 0)


def test_total_size_of_pending_results_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is what was received: an error, for example, is not bytes when it is decoded."""
    monkeypatch.setattr(SafeCodec, "max_frame_bytes", 100)
    monkeypatch.setattr(process_runner, "PENDING_FRAMES_MARGIN", 10)
    call: Any = SimpleNamespace(_pending_frames=[], _codec=SafeCodec())
    ChildCall._queue_frame(call, "item", b"x" * 60, 100)
    ChildCall._queue_frame(call, "done", None, 10)
    with pytest.raises(ToolRuntimeError, match="more results"):
        ChildCall._queue_frame(call, "error", ["text"], 1)


def test_full_pipe_does_not_block_after_the_end() -> None:
    (answer_in, answer_out), (report_in, report_out) = os.pipe(), os.pipe()
    os.set_blocking(answer_out, False)
    call: Any = SimpleNamespace(
        report=None, _answer_fd=answer_out, _report_fd=report_in, _report_deadline=None
    )
    call._wait_until_writable = lambda fd: ChildCall._wait_until_writable(call, fd)
    os.close(report_out)  # the supervisor has ended; another process holds answer_in open
    ChildCall._write(call, b"n" * (4 << 20))
    call.report = {}
    ChildCall._write(call, b"n")
    for fd in (answer_in, answer_out, report_in):
        os.close(fd)


def test_full_pipe_does_not_block_after_the_deadline() -> None:
    (answer_in, answer_out), (report_in, report_out) = os.pipe(), os.pipe()
    os.set_blocking(answer_out, False)
    call: Any = SimpleNamespace(
        report=None, _answer_fd=answer_out, _report_fd=report_in, _report_deadline=0.0
    )
    call._wait_until_writable = lambda fd: ChildCall._wait_until_writable(call, fd)
    ChildCall._write(call, b"n" * (4 << 20))
    for fd in (answer_in, answer_out, report_in, report_out):
        os.close(fd)


def test_large_answer_is_written_completely() -> None:
    answer = {"action": "accept", "content": {"text": "x" * 500_000}}
    client = Client({"elicitation/create": answer})

    def ask(ctx: Context) -> int:
        return len(ctx.elicit("?", {"type": "object"}).content["text"])

    call = make_call(ask, peer=client)
    call = call.replace(arguments={"ctx": Context(call)})
    assert ProcessRunner(timeout=60).run(call) == 500_000
    assert client.deadline is not None


def test_call_whose_question_is_open_at_the_deadline_ends_with_its_timeout() -> None:
    """The question ends first here, and the process of the call is still stopped."""

    class SilentClient(Client):
        def ask(self, questions: Mapping[str, Question]) -> NoReturn:
            raise TimeoutExceeded("The client did not answer.")

    def ask(ctx: Context) -> str:
        return ctx.elicit("?", {"type": "object"}).action

    call = make_call(ask, peer=SilentClient({}))
    call = call.replace(arguments={"ctx": Context(call)})
    with pytest.raises(TimeoutExceeded, match=r"did not finish within 0\.3 s and was stopped"):
        ProcessRunner(timeout=0.3).run(call)
