"""Isolated commands give the same results on every interface."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pydantic
import pytest
from tests.integration.app_process import environment

from tooli import Context, NotFoundError, Output, StdinOr, Tooli
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.testing import Case, assert_parity

SUPPORT = detect_sandbox_support()
pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))


class Note(pydantic.BaseModel):
    """A result that is not a plain value."""

    number: int
    day: date


def make_app(inside: Path) -> Tooli:
    """Return an app with isolated commands."""
    app = Tooli("isolated")

    @app.command(isolation="required", capabilities=[f"fs:read:{inside}"])
    def read(path: Path) -> str:
        return path.read_text()

    @app.command(isolation="required", capabilities=[f"fs:write:{inside}/made"])
    def write(path: Path) -> int:
        path.parent.mkdir(exist_ok=True)
        return path.write_text("written")

    @app.command(isolation="required")
    def note(number: int) -> Note:
        return Note(number=number, day=date(2026, 1, 2))

    @app.command(isolation="required")
    def count(items: int) -> Iterator[dict[str, int]]:
        for number in range(items):
            yield {"number": number}

    @app.command(isolation="required")
    async def acount(items: int) -> AsyncIterator[int]:
        for number in range(items):
            yield number

    @app.command(isolation="required")
    async def later(number: int) -> int:
        import asyncio

        await asyncio.sleep(0)
        return number

    @app.command(isolation="required")
    def fail(how: str) -> None:
        if how == "found":
            raise NotFoundError("There is none.", field="how", details={"of": ["them"]})
        if how == "exit":
            raise SystemExit(3)
        raise ValueError(how)

    @app.command(isolation="required")
    def warn(ctx: Context) -> str:
        ctx.warn("careful")
        return os.environ.get("SECRET_OF_MINE", "nothing")

    return app


@pytest.fixture
def app(tmp_path: Path) -> Tooli:
    """The app, with a folder that it may read."""
    (tmp_path / "own.txt").write_text("own")
    return make_app(tmp_path.resolve())


# ------------------------------------------------------------------ every interface

CASES = [
    Case("note", {"number": 4}),
    Case("count", {"items": 3}),
    Case("acount", {"items": 3}),
    Case("later", {"number": 4}),
    Case("fail", {"how": "found"}),
    Case("fail", {"how": "exit"}),
    Case("fail", {"how": "value"}),
    Case("read", {"path": "/etc/passwd"}),
    Case("warn"),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{c.tool} {dict(c.arguments)}" for c in CASES])
def test_result_is_the_same_on_every_interface(
    app: Tooli, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "leaked")
    envelope = assert_parity(app, case)
    assert envelope["meta"]["enforcement"] == SUPPORT.level
    if case.tool == "read":
        assert envelope["error"]["code"] == "E2030"
    if case.tool == "warn":
        assert (envelope["result"], envelope["meta"]["warnings"]) == ("nothing", ["careful"])


def test_declared_access_is_allowed(app: Tooli, tmp_path: Path) -> None:
    assert app.call("read", path=tmp_path / "own.txt").result == "own"


def test_declared_folder_is_created_and_kept(app: Tooli, tmp_path: Path) -> None:
    made = tmp_path / "made"
    assert app.call("write", path=tmp_path / "other.txt").error is not None
    assert list(made.iterdir()) == []
    assert app.call("write", path=made / "file.txt").result == 7
    assert (made / "file.txt").read_text() == "written"


def test_temporary_folder_is_removed(app: Tooli, tmp_path: Path, monkeypatch: Any) -> None:
    temp_root = tmp_path / "temp"
    temp_root.mkdir()
    monkeypatch.setenv("TMPDIR", str(temp_root))
    temp_app = Tooli("isolated")

    @temp_app.command(isolation="required")
    def fill() -> str:
        import tempfile

        folder = tempfile.mkdtemp()
        Path(folder, "file").write_text("left")
        return folder

    found = temp_app.call("fill")
    assert found.result is not None and str(found.result).startswith(str(temp_root.resolve()))
    assert list(temp_root.iterdir()) == []


# ------------------------------------------------------------------ several at once

CONCURRENT_APP = """
import tempfile
from tooli import Tooli

app = Tooli("isolated")
GATES = ["fs:read:./gate-a", "fs:read:./gate-b"]


def wait(gate: str) -> None:
    with open(gate) as file:  # waits until the other end is opened and closed
        file.read()


@app.command(isolation="required", capabilities=["fs:write:./report.txt", *GATES])
def write(gate: str) -> str:
    with open("report.txt", "w") as file:
        file.write("important")  # buffered until the file is closed
        wait(gate)
    return "written"


@app.command(isolation="required", capabilities=["fs:write:./report.txt", *GATES])
def look(gate: str) -> str:
    wait(gate)
    return "looked"


@app.command(isolation="required", capabilities=GATES)
def draft(gate: str) -> str:
    with tempfile.NamedTemporaryFile("w+", delete=False) as file:
        file.write("kept")
    wait(gate)
    with open(file.name) as again:
        return again.read()


@app.command(isolation="required")
def nothing() -> str:
    return "done"


app()
"""


class ConcurrentCalls:
    """Concurrent calls of one app, each in a process that waits at a named pipe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temp_root = folder / "temp"
        self.temp_root.mkdir()
        (folder / "app.py").write_text(CONCURRENT_APP)
        for name in ("gate-a", "gate-b"):
            os.mkfifo(folder / name)

    def start(self, *argv: str) -> subprocess.Popen[bytes]:
        """Start a call."""
        state = str(self.folder / "state")
        return subprocess.Popen(
            [sys.executable, "app.py", *argv, "--json"],
            stdout=subprocess.PIPE,
            cwd=self.folder,
            env=environment(TOOLI_STATE_DIR=state, TMPDIR=str(self.temp_root)),
        )

    def wait_for(self, process: subprocess.Popen[bytes], gate: str) -> int:
        """Wait until a call has opened its pipe; return the other end."""
        while process.poll() is None:
            try:
                return os.open(self.folder / gate, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                assert error.errno == errno.ENXIO  # the pipe has no reader yet
                time.sleep(0.01)
        raise AssertionError(process.communicate())

    def end(self, process: subprocess.Popen[bytes], gate: int | None = None) -> Any:
        """Let a call continue and return its result."""
        if gate is not None:
            os.close(gate)
        out, _ = process.communicate(timeout=60)
        answer = json.loads(out)
        assert answer["ok"], answer
        return answer["result"]


@pytest.fixture
def calls(tmp_path: Path) -> ConcurrentCalls:
    """An app for concurrent calls."""
    return ConcurrentCalls(tmp_path.resolve())


def test_call_does_not_remove_files_of_another_call(calls: ConcurrentCalls) -> None:
    first = calls.start("look", "gate-b")  # the file exists
    one = calls.wait_for(first, "gate-b")
    second = calls.start("write", "gate-a")
    other = calls.wait_for(second, "gate-a")
    assert calls.end(first, one) == "looked"
    assert calls.end(second, other) == "written"
    assert (calls.folder / "report.txt").read_text() == "important"


def test_temporary_folder_of_a_killed_call_is_removed_later(calls: ConcurrentCalls) -> None:
    killed = calls.start("draft", "gate-a")
    gate = calls.wait_for(killed, "gate-a")
    killed.kill()
    killed.communicate()
    os.close(gate)
    assert [list(folder.iterdir()) for folder in calls.temp_root.iterdir()] != [[]]
    living = calls.start("draft", "gate-b")
    gate = calls.wait_for(living, "gate-b")
    assert len(list(calls.temp_root.iterdir())) == 1
    assert calls.end(calls.start("nothing")) == "done"
    assert calls.end(living, gate) == "kept"
    assert list(calls.temp_root.iterdir()) == []


# ------------------------------------------------------------------ inputs and outputs


def test_input_and_output_files_are_accessible(tmp_path: Path) -> None:
    app = Tooli("isolated")

    @app.command(isolation="required")
    def convert(source: StdinOr[str], target: Output, also: Path, write: bool = True) -> str:
        if write:
            target.write_text(source.upper())
        try:
            return also.read_text()
        except PermissionError:
            return "denied"

    for name in ("source", "also"):
        (tmp_path / name).write_text(name)
    inputs = {"source": str(tmp_path / "source"), "also": tmp_path / "also"}
    assert app.call("convert", target=tmp_path / "target", **inputs).result == "denied"
    assert (tmp_path / "target").read_text() == "SOURCE"
    (tmp_path / "target").write_text("as it was")
    assert app.call("convert", target=tmp_path / "target", write=False, **inputs).ok
    assert (tmp_path / "target").read_text() == "as it was"
    assert app.call("convert", target=tmp_path / "never", write=False, **inputs).ok
    assert sorted(one.name for one in tmp_path.iterdir()) == ["also", "source", "target"]


def test_secret_is_read_before_the_environment_is_cleared(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(
        "import os\n"
        "from tooli import SecretInput, Tooli\n"
        "app = Tooli('isolated')\n"
        "@app.command(isolation='required')\n"
        "def length(word: SecretInput[str]) -> list[int]:\n"
        "    return [len(word.reveal()), len(os.environ.get('WORD', ''))]\n"
        "app()\n"
    )
    env = environment(WORD="twelve chars", TOOLI_STATE_DIR=str(tmp_path / "state"))
    done = subprocess.run(
        [sys.executable, str(script), "env:WORD", "--json"],
        capture_output=True,
        env=env,
        timeout=60,
    )
    assert json.loads(done.stdout)["result"] == [12, 0], done


def test_stdin_reaches_an_isolated_command(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(
        "from tooli import StdinOr, Tooli\n"
        "app = Tooli('isolated')\n"
        "@app.command(isolation='required')\n"
        "def shout(text: StdinOr[str]) -> str:\n"
        "    return text.upper()\n"
        "app()\n"
    )
    env = environment(TOOLI_STATE_DIR=str(tmp_path / "state"))
    argv = [sys.executable, str(script), "-", "--json"]
    done = subprocess.run(argv, input=b"piped", capture_output=True, env=env, timeout=60)
    assert json.loads(done.stdout)["result"] == "PIPED", done


# ------------------------------------------------------------------ settings


def test_setting_isolates_other_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("wanted", "required"):
        monkeypatch.setenv("TOOLI_ISOLATION", value)
        app = Tooli("isolated")

        @app.command()
        def compute(number: int) -> int:
            return number * 2

        @app.command()
        def peek() -> str:
            return Path("/etc/passwd").read_text()

        found = app.call("compute", number=2)
        assert (found.result, found.meta["enforcement"]) == (4, SUPPORT.level)
        assert app.call("peek").error.code == "E2030"  # type: ignore[union-attr]


def test_dry_run_is_not_sandboxed(app: Tooli, tmp_path: Path) -> None:
    found = app.call("read", path=tmp_path / "own.txt", dry_run=True)
    assert found.ok and "enforcement" not in found.meta


def test_nested_isolation_fails() -> None:
    app = Tooli("isolated")

    @app.command(isolation="required")
    def inner() -> str:
        return "ran"

    @app.command(isolation="required")
    def outer() -> str:
        error = app.call("inner").error
        return error.code if error is not None else "ran"

    @app.command(isolation="required", capabilities=["proc:spawn"])
    def starting() -> str:
        error = app.call("inner").error
        return error.code if error is not None else "ran"

    @app.command()
    def plain() -> str:
        return str(app.call("inner").meta["enforcement"])

    assert app.call("outer").result == "E2006"
    assert app.call("starting").result == "E2006"
    assert app.call("plain").result == SUPPORT.level


def test_monitor_runs_in_the_sandbox(tmp_path: Path) -> None:
    app = Tooli("isolated", security_policy="strict")

    @app.command(isolation="required", capabilities=["none"], auth=[])
    def swallow(path: Path) -> str:
        try:
            return path.read_text()
        except OSError:
            return "swallowed"

    @app.command(isolation="required", capabilities=["none"], auth=[])
    def draft() -> str:
        import tempfile

        with tempfile.NamedTemporaryFile("w") as file:
            file.write("x")
        return "done"

    found = app.call("swallow", path="/etc/passwd")
    assert found.error is not None and found.error.code == "E2003"
    assert found.meta["enforcement"] == SUPPORT.level
    assert app.call("draft").result == "done"


# ------------------------------------------------------------------ options of callers


def test_limit_applies_to_an_isolated_command() -> None:
    app = Tooli("isolated")

    @app.command(isolation="required")
    def rows(number: int = 5) -> list[dict[str, int]]:
        return [{"number": n} for n in range(number)]

    assert app.call("rows", limit=2).result == [{"number": 0}, {"number": 1}]
