"""Programs that speak MCP on stdio: their environment, messages and end."""

from __future__ import annotations

import os
import sys
from queue import SimpleQueue
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.mcp_client.fakes import is_running, wait_until

from tooli.errors import AuthError, ToolError
from tooli.providers.mcp_client import server_process
from tooli.providers.mcp_client.server_process import (
    ServerGone,
    ServerProcess,
    base_environment,
    build_environment,
    decode_messages,
    find_program,
)
from tooli.text.json_limits import JsonLimitError

if TYPE_CHECKING:
    from pathlib import Path


class Running:
    """A process of a Python program, and what it has sent."""

    def __init__(self, code: str) -> None:
        self.messages: SimpleQueue[Any] = SimpleQueue()
        self.ends: SimpleQueue[ServerGone] = SimpleQueue()
        command = [sys.executable, "-u", "-S", "-E", "-c", code]
        self.process = ServerProcess(
            "The server", command, {}, None, self.messages.put, self.ends.put
        )
        self.process.start()

    def end(self) -> ServerGone:
        return self.ends.get(timeout=60)


def test_messages() -> None:
    running = Running(
        "import sys\n"
        "for line in sys.stdin:\n"
        "    line = line.strip()\n"
        "    print('hello', line, f'[{line}]', sep='\\n')\n"
    )
    sent = {"jsonrpc": "2.0", "method": "é" * 100_000}
    running.process.send(sent)
    assert running.messages.get(timeout=60) == sent
    assert running.messages.get(timeout=60) == sent  # a batch
    running.process.close()
    assert "was closed" not in running.end().reason
    assert running.process.output_tail() == {"stdout": "hello"}


def test_end_of_the_program() -> None:
    running = Running(
        "import os, sys; sys.stderr.write('a\\x1b[31mb'); sys.stderr.flush(); os._exit(4)"
    )
    assert running.end().reason == "it ended (exit 4)"
    assert running.process.output_tail() == {"stderr": "ab"}
    running.process.send({"jsonrpc": "2.0"})  # is discarded
    running = Running("import os, signal; os.kill(os.getpid(), 9)")
    assert running.end().reason == "it was ended by signal 9"


def test_program_that_closes_its_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "END_SECONDS", 0.1)
    running = Running("import os, time; os.close(1); time.sleep(600)")
    assert running.end().reason == "it has closed its stdout"


def test_stderr_is_bounded() -> None:
    running = Running("import sys; sys.stderr.write('x' * 500_000 + 'end')")
    running.end()
    assert len(running.process.output_tail()["stderr"]) == server_process.MAX_STDERR_CHARS
    assert running.process.output_tail()["stderr"].endswith("end")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("while True: print('y')", "it prints text that is not MCP"),
        ("print('[' * 100_000, flush=True); input()", "that is nested too deeply|not MCP"),
        ("print('x' * 3_000_000, flush=True); input()", "a message of more than 1 MB"),
    ],
)
def test_nonsense(monkeypatch: pytest.MonkeyPatch, code: str, reason: str) -> None:
    import re

    monkeypatch.setattr(server_process, "MAX_MESSAGE_BYTES", 1 << 20)
    assert re.search(reason, Running(code).end().reason.replace("message that is", "that is"))


@pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
def test_children_of_the_program_are_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
open({str(pid_file)!r}, "w").write(str(child.pid))
print('{{"jsonrpc":"2.0"}}', flush=True)
sys.stdin.read()
"""
    running = Running(code)
    running.messages.get(timeout=60)
    running.process.close()
    wait_until(lambda: not is_running(int(pid_file.read_text())))


def test_program_that_cannot_be_started(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("no program")
    process = ServerProcess("S", [str(script)], {}, None, print, print)
    with pytest.raises(ToolError, match="is not installed"):
        process.start()
    script.chmod(0o700)
    ends: SimpleQueue[ServerGone] = SimpleQueue()
    process = ServerProcess("S", [str(script)], {}, None, print, ends.put)
    try:
        process.start()
    except ToolError as error:
        assert "cannot be started" in error.message
    else:
        assert "it ended" in ends.get(timeout=60).reason


def test_start_without_the_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert Running("pass").end().reason == "it ended (exit 0)"
    monkeypatch.setattr(server_process.subprocess, "Popen", _refuse(PermissionError(13, "no")))
    with pytest.raises(AuthError, match="cannot be started: no"):
        Running("pass")
    monkeypatch.setattr(server_process.subprocess, "Popen", _refuse(OSError(8, "bad format")))
    with pytest.raises(ToolError, match="cannot be started: bad format"):
        Running("pass")


def _refuse(failure: OSError) -> Any:
    def popen(*_: Any, **__: Any) -> None:
        raise failure

    return popen


def test_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHELL", "() { :; }")
    monkeypatch.setenv("API_KEY", "k")
    assert "SHELL" not in base_environment() and "API_KEY" not in base_environment()
    secret = tmp_path / "secret"
    secret.write_text("s\n")
    found = build_environment({"A": "env:API_KEY", "B": f"@{secret}", "C": "@x"}, "S")
    assert (found["A"], found["B"], found["C"]) == ("k", "s", "@x")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("APPDATA", "a")
    assert base_environment()["APPDATA"] == "a"


def test_find_program(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    assert find_program(["./tool"], {}, str(tmp_path)) == os.path.join(str(tmp_path), "./tool")
    assert find_program(["tool"], {"PATH": str(tmp_path)}, None) == str(program)
    assert find_program(["tool"], {"PATH": "/nowhere"}, None) is None


def test_decode_messages() -> None:
    assert decode_messages(b'{"jsonrpc":"2.0","id":1}') == [{"jsonrpc": "2.0", "id": 1}]
    for data in (b"", b"1", b"{}", b'["a"]', b'{"jsonrpc":"1.0"}', b"\xff"):
        with pytest.raises(ValueError):
            decode_messages(data)
    with pytest.raises(JsonLimitError):
        decode_messages(b'{"jsonrpc":"2.0","a":' + b"[" * 5_000 + b"]" * 5_000 + b"}")


def test_close_before_the_threads_have_started() -> None:
    """A server that ends at once is closed while the thread that started it still runs."""
    ends: SimpleQueue[ServerGone] = SimpleQueue()
    process = ServerProcess("The server", [sys.executable], {}, None, lambda _: None, ends.put)

    class ClosingEvent(Event):
        def set(self) -> None:
            process.close(0.0)
            super().set()

    process._started = ClosingEvent()
    process.start()
    assert ends.get(timeout=60).reason  # the readers have started, and seen the end
