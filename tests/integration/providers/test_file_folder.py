"""FileSystemProvider in a running server: random edits, half-written files, 1,000 files."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import PROCESS_TIMEOUT, run
from tests.integration.mcp_http.http_process import run_server

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are needed")

APP = """
from tooli import Tooli
from tooli.providers import FileSystemProvider

app = Tooli("shop")


@app.command()
def local() -> int:
    return 1


app.add_provider(FileSystemProvider("tools", hot_reload=True), namespace="files")
app()
"""
TOOL = """

def tool_{number}() -> str:
    return {text!r}
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "app.py").write_text(APP)
    return tmp_path / "app.py"


def write(app: Path, number: int, text: str) -> None:
    """Replace a file, as an editor does."""
    path = app.parent / "tools" / f"file_{number}.py"
    new = path.with_suffix(".new")
    new.write_text(TOOL.format(number=number, text=text))
    os.replace(new, path)


def post(url: str, tool: str, arguments: Any = None) -> Any:
    request = urllib.request.Request(
        f"{url}/tools/{tool}",
        json.dumps(arguments or {}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=PROCESS_TIMEOUT) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as failure:
        return json.load(failure)


def wait_until(condition: Callable[[], bool]) -> None:
    timer = threading.Event()
    for _ in range(2_000):
        if condition():
            return
        timer.wait(0.05)
    raise AssertionError("the condition did not become true")


def result(url: str, number: int) -> Any:
    return post(url, f"files.tool-{number}").get("result")


def test_a_thousand_files_and_random_edits(app: Path) -> None:
    for number in range(1_000):
        write(app, number, "0")
    rng = random.Random(7)
    with run_server(app, interface=("api",)) as server:
        url = "http://{}:{}".format(*server.address)
        assert result(url, 999) == "0"
        for turn in range(1, 4):
            edited = rng.sample(range(1_000), 20)
            for number in edited:
                write(app, number, str(turn))
            for number in edited:
                wait_until(lambda number=number, turn=turn: result(url, number) == str(turn))
        deleted, created = rng.sample(range(1_000), 2)
        (app.parent / "tools" / f"file_{deleted}.py").unlink()
        write(app, 2_000, "new")
        wait_until(lambda: result(url, 2_000) == "new")
        assert post(url, f"files.tool-{deleted}")["error"]["code"] in ("E1001", "E1404")
        assert result(url, created) is not None and server.process.poll() is None


def test_files_that_are_written_slowly_keep_their_last_tools(app: Path) -> None:
    write(app, 1, "first")
    write(app, 2, "other")
    path = app.parent / "tools" / "file_1.py"
    with run_server(app, interface=("api",)) as server:
        url = "http://{}:{}".format(*server.address)
        assert result(url, 1) == "first"
        text = TOOL.format(number=1, text="second")
        with path.open("w") as file:  # in place, in pieces that are no Python
            for start in range(0, len(text), 7):
                file.write(text[start : start + 7])
                file.flush()
                assert result(url, 1) in ("first", "second")
                assert result(url, 2) == "other"
        wait_until(lambda: result(url, 1) == "second")


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.exit(3)\n",
        "raise SystemExit\n",
        "def broken(:\n",
        "1 / 0\n",
        "import no_such_module\n",
        "\0",
        "x = '\ud800'".encode("utf-8", "surrogatepass").decode("latin-1"),
        "while False: pass\nfrom . import relative\n",
    ],
)
def test_one_broken_file_hides_nothing(app: Path, text: str) -> None:
    write(app, 1, "works")
    (app.parent / "tools" / "broken.py").write_text(text, encoding="latin-1")
    done = run(app, "files", "tool-1", "--json")
    assert (done.code, json.loads(done.out)["result"]) == (0, "works"), done.err
    done = run(app, "local", "--json")
    assert json.loads(done.out)["result"] == 1
    assert done.err == b""
    help_text = run(app, "files", "--help")
    assert help_text.code == 0 and b"tool-1" in help_text.out


WAITING_TOOL = """
from pathlib import Path
from time import sleep


def tool_1() -> str:
    is_first = not Path({folder!r}, "started").exists()
    Path({folder!r}, "started").touch()
    while is_first and not Path({folder!r}, "released").exists():
        sleep(0.05)
    return "old"
"""


def test_a_running_call_keeps_its_version(app: Path) -> None:
    started, released = app.parent / "started", app.parent / "released"
    (app.parent / "tools" / "file_1.py").write_text(WAITING_TOOL.format(folder=str(app.parent)))
    with run_server(app, interface=("api",)) as server:
        url = "http://{}:{}".format(*server.address)
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(result(url, 1)))
        thread.start()
        try:
            wait_until(started.exists)
            write(app, 1, "new")
            wait_until(lambda: result(url, 1) == "new")
            assert answers == []
        finally:
            released.touch()
            thread.join()
        assert answers == ["old"]
