"""Files that a caller names: endless files, pipes, and files that the settings do not allow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import send
from tests.integration.app_process import environment

from tooli import StdinOr, Tooli
from tooli.annotations import ReadOnly
from tooli.inputs import source
from tooli.testing import invoke

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")

app = Tooli("reader", version="1.0.0")


@app.command(annotations=ReadOnly)
def text(data: StdinOr[str]) -> int:
    return len(data)


@app.command(annotations=ReadOnly)
def content(data: StdinOr[bytes]) -> int:
    return len(data)


@app.command(annotations=ReadOnly)
def parsed(data: StdinOr[dict[str, Any]]) -> int:
    return len(data)


@app.command(annotations=ReadOnly)
def path(data: StdinOr[Path]) -> int:
    return len(data.read_bytes())


@pytest.mark.parametrize("command", ["text", "content", "parsed", "path"])
async def test_client_of_a_server_names_an_endless_file(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server must not read `/dev/zero` until it has no memory."""
    monkeypatch.setattr(source, "MAX_WHOLE_BYTES", 1000)
    large = folder / "large.json"
    large.write_text(json.dumps({"a": "x" * 2000}))
    names = [str(large), *(["/dev/zero"] if os.path.exists("/dev/zero") else [])]
    api: Any = app.asgi(mcp=False)
    for name in names:
        answer = await send(api, "POST", f"/tools/{command}", json.dumps({"data": name}).encode())
        assert answer.json()["error"]["code"] == "E1034", answer.json()
    large.write_text(json.dumps({"a": "x"}))
    answer = await send(api, "POST", f"/tools/{command}", json.dumps({"data": str(large)}).encode())
    assert answer.json()["ok"], answer.json()


def test_own_files_have_no_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_WHOLE_BYTES", 1000)
    (folder / "large").write_text("x" * 2000)
    assert app.call("text", data="large").result == 2000
    assert json.loads(invoke(app, "text", "large", "--json").stdout)["result"] == 2000


async def test_author_and_operator_change_the_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_WHOLE_BYTES", 1000)
    monkeypatch.setenv("TOOLI_MAX_INPUT", "3000")
    (folder / "large").write_text("x" * 2000)
    api: Any = app.asgi(mcp=False)
    answer = await send(api, "POST", "/tools/text", json.dumps({"data": "large"}).encode())
    assert answer.json()["result"] == 2000


@pytest.mark.parametrize("command", ["run", "check"])
def test_script_is_a_huge_file(command: str, folder: Path) -> None:
    with (folder / "huge.py").open("wb") as file:
        file.truncate(50 << 30)
    answer = json.loads(invoke(app, "orchestrate", command, "huge.py", "--json").stdout)
    assert answer["error"]["code"] == "E1034"


@pytest.mark.parametrize("setting", ["TOOLI_DENY_PATHS", "TOOLI_ALLOW_PATHS"])
@pytest.mark.parametrize(
    "words",
    [
        ("orchestrate", "run", "SECRET"),
        ("orchestrate", "check", "SECRET"),
        ("orchestrate", "run", "ok.py", "--inputs", "@SECRET"),
        ("orchestrate", "run", "--input", "@SECRET"),
        ("docs", "check", "SECRET"),
        ("docs", "check", "FOLDER"),
        ("generate-skill", "--out", "FOLDER"),
    ],
)
def test_built_in_commands_read_files_that_the_settings_do_not_allow(
    words: tuple[str, ...],
    setting: str,
    folder: Path,
    tmp_path: Path,
) -> None:
    """The errors of a script, and the variables of one, show the content of a file."""
    private = tmp_path / "private"
    private.mkdir()
    (private / "notes").write_text('{"password": "hunter2"}')
    (folder / "ok.py").write_text("1")
    (folder / "link").symlink_to(private)
    env = {setting: str(private if setting == "TOOLI_DENY_PATHS" else folder)}
    other = Tooli("other")  # the settings of an app are read once
    other.command()(text)
    other.command()(content)
    for prefix in (str(private), "link", "../private"):
        line = [
            word.replace("SECRET", f"{prefix}/notes").replace("FOLDER", prefix) for word in words
        ]
        run = invoke(other, *line, "--json", env=env)
        assert json.loads(run.stdout)["error"]["code"] == "E2005", run.stdout
        assert "hunter2" not in run.stdout + run.stderr
    answer = json.loads(invoke(other, "orchestrate", "run", "ok.py", "--json", env=env).stdout)
    assert answer.get("result") == 1, answer


ASYNC_APP = """
from tooli import StdinOr, Tooli

app = Tooli("slow")


@app.command()
async def read(data: StdinOr[str]) -> int:
    return len(data)


@app.command()
def other() -> int:
    return 1


if __name__ == "__main__":
    app()
"""


@needs_pipes
@pytest.mark.parametrize("words", [("read",), ("orchestrate", "run")])
def test_process_that_waits_for_a_pipe_can_be_ended(words: tuple[str, ...], folder: Path) -> None:
    """Nobody writes to the pipe. The process must not wait for the thread that has opened it."""
    (folder / "app.py").write_text(ASYNC_APP)
    os.mkfifo(folder / "pipe")
    argv = [sys.executable, "app.py", *words, "pipe", "--json"]
    timed = subprocess.run(
        [*argv, "--timeout", "0.5"], capture_output=True, env=environment(), timeout=120
    )
    assert json.loads(timed.stdout)["error"]["code"] == "E4050"
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    try:
        while not is_waiting(process.pid):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) != 0
    finally:
        process.kill()
        process.communicate()


def is_waiting(pid: int) -> bool:
    """True if a thread of a process waits for the other end of a pipe."""
    threads = Path(f"/proc/{pid}/task")
    if not threads.exists():
        pytest.skip("needs /proc")
    found = [file.read_text() for file in threads.glob("*/wchan")]
    return "wait_for_partner" in found
