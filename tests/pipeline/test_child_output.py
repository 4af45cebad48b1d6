from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.integration.app_process import environment

from tooli import Tooli
from tooli.pipeline.child_output import ChildOutput, route_children
from tooli.pipeline.stdout_capture import StdoutCapture, route_stdout

LATE = "import sys; sys.stdin.read(); print('late')"


@contextmanager
def capture() -> Iterator[StdoutCapture]:
    """Capture like a server. A fixture cannot: pytest replaces stdout after fixtures run."""
    restore = route_stdout()
    try:
        with StdoutCapture() as printed:
            yield printed
    finally:
        restore()


def test_children_write_to_the_capture_of_their_call(capfd: pytest.CaptureFixture[str]) -> None:
    with capture() as printed:
        print("first")
        subprocess.run(["echo", "second"], check=True)
        print("third")
        assert os.system("echo fourth; exit 3") >> 8 == 3
        subprocess.run("echo problem >&2", shell=True, check=True)
    assert printed.text().split() == ["first", "second", "third", "fourth"]
    assert "".join(printed.stderr_texts) == "problem\n"
    assert capfd.readouterr().err == "problem\n"


def build() -> None:
    print("first")
    subprocess.run("echo second; echo problem >&2", shell=True, check=True)
    print("third")
    subprocess.run(["echo", "fourth"], check=True)


def fail() -> None:
    build()
    raise SystemExit(3)


def stream() -> Iterator[int]:
    yield 1
    build()


@pytest.mark.parametrize("timeout", [None, 60])  # in this process, and in a worker process
@pytest.mark.parametrize("function", [build, fail, stream])
def test_children_of_a_worker_write_to_the_capture_of_the_call(
    timeout: float | None, function: Callable[[], object], capfd: pytest.CaptureFixture[str]
) -> None:
    app = Tooli("a")
    app.command("run", timeout=timeout)(function)
    with capture() as printed:
        assert app.call("run").ok is (function is not fail)
    assert printed.text().split() == ["first", "second", "third", "fourth"]
    assert "".join(printed.stderr_texts) == "problem\n"
    assert capfd.readouterr().err == "problem\n"


def test_streams_that_the_command_passes_are_not_changed() -> None:
    with capture() as printed:
        done = subprocess.run(["echo", "x"], capture_output=True, check=True)
        subprocess.run(["echo", "x"], stdout=subprocess.DEVNULL, check=True)
        assert subprocess.check_output(["echo", "y"]) == b"y\n"
    assert (done.stdout, printed.text()) == (b"x\n", "")


def test_large_output_does_not_block() -> None:
    code = "print('x' * 3_000_000)"
    with capture() as printed:
        subprocess.run([sys.executable, "-c", code], check=True)
    assert len(printed.text()) == (1 << 20) + 1


def test_calls_in_threads_are_not_mixed() -> None:
    barrier, texts = threading.Barrier(4, timeout=60), dict[int, str]()

    def call(number: int) -> None:
        with StdoutCapture() as printed:
            barrier.wait()
            subprocess.run(["echo", f"call {number}"], check=True)
            barrier.wait()
        texts[number] = printed.text()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    restore = route_stdout()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    restore()
    assert texts == {number: f"call {number}" for number in range(4)}


def test_a_child_that_outlives_the_call_is_not_stopped() -> None:
    with capture() as printed:
        child = subprocess.Popen([sys.executable, "-c", LATE], stdin=subprocess.PIPE)
        subprocess.run(["echo", "now"], check=True)
    assert printed.text() == "now"
    child.communicate(b"")
    assert child.returncode == 0


async def test_children_of_asyncio_are_captured() -> None:
    with capture() as printed:
        child = await asyncio.create_subprocess_exec("echo", "async")
        await child.wait()
    assert printed.text() == "async"


def test_nothing_is_changed_outside_of_calls(capfd: pytest.CaptureFixture[str]) -> None:
    restore = route_stdout()
    subprocess.run(["echo", "plain"], check=True)
    assert os.system("echo system") == 0
    restore()
    assert capfd.readouterr().out == "plain\nsystem\n"


def test_restored_functions() -> None:
    init, system = subprocess.Popen.__init__, os.system
    restore = route_children(lambda: None)
    assert subprocess.Popen.__init__ is not init
    restore()
    assert (subprocess.Popen.__init__, os.system) == (init, system)


def test_subprocess_is_not_imported_early() -> None:
    code = (
        "import sys; from tooli.pipeline.stdout_capture import route_stdout, StdoutCapture\n"
        "restore = route_stdout(); assert 'subprocess' not in sys.modules\n"
        "with StdoutCapture() as printed:\n"
        "    import subprocess; subprocess.run(['echo', 'x'])\n"
        "restore(); print(repr(printed.text()))\n"
        "assert subprocess.Popen.__init__.__module__ == 'subprocess'\n"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, env=environment(), timeout=300)
    assert (done.stdout, done.stderr) == (b"'x'\n", b"")


# ------------------------------------------------------------------ the patched functions


def test_popen_is_patched_when_subprocess_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "subprocess")
    restore = route_children(lambda: None)
    import json.tool  # another module, which the hook ignores
    import subprocess as loaded

    patched = loaded.Popen.__init__
    assert patched.__module__ == "tooli.pipeline.child_output"
    assert loaded.run(["true"], check=True).returncode == 0
    restore()
    assert loaded.Popen.__init__ is not patched
    assert json.tool is not None


def test_hook_is_removed_if_subprocess_is_never_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "subprocess")
    before = list(sys.meta_path)
    restore = route_children(lambda: None)
    assert sys.meta_path[0].find_spec("other_module", None) is None
    restore()
    assert sys.meta_path == before


def test_later_patches_of_others_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    original = subprocess.Popen.__init__, os.system
    restore = route_children(lambda: None)
    monkeypatch.setattr(subprocess.Popen, "__init__", lambda self: None)
    monkeypatch.setattr(os, "system", len)
    restore()
    assert os.system is len
    monkeypatch.undo()
    subprocess.Popen.__init__, os.system = original


def test_worker_process_keeps_its_own_output(monkeypatch: pytest.MonkeyPatch) -> None:
    output = ChildOutput(lambda text: None, lambda text: None)
    output.read_available()  # nothing is open yet
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert output.descriptor(0) is None
