"""`orchestrate run`, `check` and `stubs`, as commands and in real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.orchestrate.script_app import Shop

from tooli.testing import invoke

PROGRAM = """
import os, sys, time
from pathlib import Path
from tooli import Tooli
from tooli.annotations import ReadOnly

app = Tooli("files")

@app.command(annotations=ReadOnly)
def say(text: str):
    print("heard", text)

@app.command()
def hang(marker: Path) -> None:
    marker.write_text(str(os.getpid()))
    time.sleep(1000)

app()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.py"


def test_run_of_a_file(script: Path) -> None:
    script.write_text("items = await find(text=part)\nprint('x')\n[i['name'] for i in items]")
    done = invoke(
        Shop().app, "orchestrate", "run", str(script), "--inputs", '{"part": "e"}', "--json"
    )
    assert done.result == ["pen", "tea"]
    assert done.envelope["meta"]["calls"] == {"find": 1}
    assert done.envelope["meta"]["printed"] == "x"
    assert done.envelope["meta"]["tool"] == "shop.orchestrate.run"


def test_run_of_stdin_with_options() -> None:
    shop = Shop()
    args = ("orchestrate", "run", "-", "--tools", "drop, find", "--yes", "--json")
    done = invoke(shop.app, *args, input="await drop('tea')\nlen(await find())")
    assert done.result == 3
    assert shop.ran == ["drop tea", "find"]
    refused = invoke(
        shop.app, "orchestrate", "run", "-", "--read-only", "--json", input="await drop('x')"
    )
    assert (refused.exit_code, refused.error["code"]) == (2, "E1070")
    many = invoke(
        shop.app, "orchestrate", "run", "-", "--max-calls", "1", "--json",
        input="await find()\nawait find()",
    )  # fmt: skip
    assert (many.exit_code, many.error["code"]) == (70, "E4081")


def test_run_needs_a_confirmation_and_never_asks() -> None:
    shop = Shop()
    done = invoke(shop.app, "orchestrate", "run", "-", "--json", input="await drop('tea')")
    assert (done.exit_code, done.error["code"]) == (2, "E1010")
    assert shop.ran == []


def test_dry_run_runs_nothing() -> None:
    shop = Shop()
    args = ("orchestrate", "run", "-", "--dry-run", "--yes", "--json")
    assert invoke(shop.app, *args, input="await drop('tea')").exit_code == 0
    assert shop.ran == []


def test_check(script: Path) -> None:
    shop = Shop()
    script.write_text("await find()\nawait drop('tea')")
    done = invoke(shop.app, "orchestrate", "check", str(script), "--json")
    assert done.result == {"valid": True, "functions": ["find", "price", "drop", "buy"]}
    script.write_text("await find()\nawait drop(nam='tea')\nx = n + 1")
    wrong = invoke(shop.app, "orchestrate", "check", str(script), "--json")
    assert (wrong.exit_code, wrong.error["code"]) == (2, "E1070")
    assert [problem["line"] for problem in wrong.error["details"]["errors"]] == [2, 2, 3]
    known = invoke(shop.app, "orchestrate", "check", str(script), "--inputs", '{"n": 1}', "--json")
    assert [problem["line"] for problem in known.error["details"]["errors"]] == [2, 2]
    assert shop.ran == []


def test_stubs() -> None:
    shop = Shop()
    text = invoke(shop.app, "orchestrate", "stubs").stdout
    assert 'async def find(text: str = "") -> list[Item]:' in text
    assert "async def drop" not in invoke(shop.app, "orchestrate", "stubs", "--read-only").stdout
    one = invoke(shop.app, "orchestrate", "stubs", "--tools", "drop").stdout
    assert one.count("async def") == 1
    wrong = invoke(shop.app, "orchestrate", "stubs", "--tools", "dro", "--json")
    assert wrong.error["code"] == "E1001"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "files.py"
    path.write_text(PROGRAM)
    return path


def start(program: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(program), "orchestrate", "run", "-", "--json", *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=program.parent,
    )


def test_printed_text_of_a_tool_is_its_result(program: Path) -> None:
    process = start(program)
    out, err = process.communicate("[await say(text='a'), await say(text='b')]")
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["result"] == ["heard a", "heard b"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="sync functions are killed only with fork")
def test_timeout_kills_a_tool(program: Path, tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    for seconds in ("3", "30", "100"):  # until there is time to start the sandbox and the tool
        process = start(program, "--timeout", seconds)
        out, _ = process.communicate(f"await hang(marker={str(marker)!r})")
        assert process.returncode == 50
        if marker.exists() and marker.read_text():
            break
    error = json.loads(out)["error"]
    assert error["code"] == "E4050"
    assert error["details"]["calls"][0]["tool"] == "hang"
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
def test_interrupted_script_answers(program: Path) -> None:
    source = "import time\nfor i in range(500):\n    time.sleep(0.1)"
    with start(program) as process:
        assert process.stdin is not None
        process.stdin.write(source)
        process.stdin.close()
        while not (children := _children(process.pid)):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        out = process.stdout.read()
    assert process.returncode == 130, out
    assert json.loads(out)["error"]["code"] == "E4130"
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def _children(pid: int) -> list[int]:
    """Return the child processes of a process: the sandbox is one."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for task in tasks for word in task.read_text().split()]
