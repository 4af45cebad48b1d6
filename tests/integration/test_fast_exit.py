"""A process that has answered ends at once, unless somebody waits for what Python does then."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from tests.integration.app_process import environment, run

if TYPE_CHECKING:
    from pathlib import Path

APP = """
import os, sys
from tooli import Tooli

app = Tooli("leaver")

@app.command()
def add(a: int, b: int) -> int:
    return a + b

@app.command()
def other() -> None: ...

_exit = os._exit
def told(code):
    os.write(2, b"at once\\n")
    _exit(code)
os._exit = told
"""

PLAIN = {
    "module": "app()",
    "function": "def main():\n    app()\nmain()",
    "exit": "sys.exit(app())",
}
WAITING = {
    # what stands in the script, and what must be seen on stderr in the end
    "atexit": ("import atexit\natexit.register(os.write, 2, b'seen')\napp()", "seen"),
    "finally": ("try:\n    app()\nfinally:\n    os.write(2, b'seen')", "seen"),
    "except": ("try:\n    app()\nexcept SystemExit as e:\n    os.write(2, b'seen')", "seen"),
    "with": (
        "from contextlib import ExitStack\nwith ExitStack() as stack:\n"
        "    stack.callback(os.write, 2, b'seen')\n    app()",
        "seen",
    ),
    "caller": (
        "def main():\n    app()\ndef outer():\n    try:\n        main()\n"
        "    finally:\n        os.write(2, b'seen')\nouter()",
        "seen",
    ),
    "thread": (
        "import threading\ngo = threading.Event()\n"
        "def late():\n    go.wait(0.2)\n    os.write(2, b'seen')\n"
        "threading.Thread(target=late).start()\napp()",
        "seen",
    ),
    "ctypes": ("import ctypes\nkept = ctypes.CDLL(None)\nkept.printf(b'')\napp()", ""),
}


@pytest.mark.skipif(
    sys.version_info < (3, 11) or sys.platform != "linux", reason="cannot be told here"
)
@pytest.mark.parametrize("case", PLAIN)
@pytest.mark.parametrize("line", ["add 1 2 --json", "add 1 x --json", "add 1 2 --plain"])
def test_nobody_waits(tmp_path: Path, case: str, line: str) -> None:
    script = tmp_path / "leaver.py"
    script.write_text(APP + PLAIN[case])
    done = run(script, *line.split(), env=environment())
    assert done.code == (2 if "x" in line.split() else 0)
    assert done.err == b"at once\n"
    assert done.out


@pytest.mark.parametrize("case", WAITING)
def test_somebody_waits(tmp_path: Path, case: str) -> None:
    body, seen = WAITING[case]
    script = tmp_path / "leaver.py"
    script.write_text(APP + body)
    done = run(script, "add", "1", "2", "--json", env=environment())
    assert b"at once" not in done.err
    assert seen.encode() in done.err
    assert b'"result":3' in done.out


@pytest.mark.skipif(
    sys.version_info < (3, 11) or sys.platform != "linux", reason="cannot be told here"
)
def test_what_others_left_open_holds_nobody_up(tmp_path: Path) -> None:
    script = tmp_path / "leaver.py"
    script.write_text(APP + "app()")
    left = os.open(os.devnull, os.O_RDWR)
    try:
        done = run(script, "add", "1", "2", "--json", env=environment(), pass_fds=(left,))
    finally:
        os.close(left)
    assert done.err == b"at once\n"
    assert b'"result":3' in done.out


def test_what_was_written_is_there(tmp_path: Path) -> None:
    script, kept = tmp_path / "leaver.py", tmp_path / "kept"
    script.write_text(APP + f"kept = open({str(kept)!r}, 'w')\nkept.write('all of it')\napp()")
    assert run(script, "add", "1", "2", "--json", env=environment()).code == 0
    assert kept.read_text() == "all of it"


WRITING = """
import sys
from tooli import Tooli

app = Tooli("writer")
kept = []

class Store:
    file = None

store = Store()

def begun(path):
    file = open(path, "w")
    file.write("all of it")
    return file

@app.command()
def keep(path: str) -> str:
    kept.append(begun(path))
    return "kept"

@app.command()
def hold(path: str) -> str:
    store.file = begun(path)
    return "held"

@app.command()
def fail(path: str) -> str:
    file = begun(path)
    raise ValueError("no")

@app.command()
def stdin(path: str) -> str:
    sys.stdin.close()
    kept.append(begun(path))
    return "kept"

app()
"""


@pytest.mark.parametrize("mode", ["--json", "--jsonl", "--text", "--plain", "--json --limit 5"])
@pytest.mark.parametrize("command", ["keep", "hold", "fail", "stdin"])
def test_what_a_command_has_written_is_there(tmp_path: Path, command: str, mode: str) -> None:
    script, path = tmp_path / "writer.py", tmp_path / "path"
    script.write_text(WRITING)
    done = run(script, command, str(path), *mode.split(), env=environment())
    assert (done.code == 0) is (command != "fail")
    assert path.read_text() == "all of it"


BY_COMMAND = """
@app.command()
def tell() -> str:
    global file
    file = os.fdopen(int(os.environ['FILE']), 'w')
    file.write('all of it')
    return "told"

app()
"""
BY_APP = "file = os.fdopen(int(os.environ['FILE']), 'w')\nfile.write('all of it')\napp()"


@pytest.mark.parametrize("number", [3, 12])
@pytest.mark.parametrize(("body", "line"), [(BY_APP, "add 1 2"), (BY_COMMAND, "tell")])
def test_what_was_written_to_an_inherited_file_is_there(
    tmp_path: Path, body: str, line: str, number: int
) -> None:
    script, kept = tmp_path / "leaver.py", tmp_path / "kept"
    script.write_text(APP + body)
    with kept.open("w") as file, os.fdopen(os.dup2(file.fileno(), 60 + number), "w") as handed:
        env = {**environment(), "FILE": str(handed.fileno())}
        done = run(script, *line.split(), "--json", env=env, pass_fds=(handed.fileno(),))
    assert done.code == 0
    assert kept.read_text() == "all of it"


def test_a_profiler_gets_its_figures(tmp_path: Path) -> None:
    script, stats = tmp_path / "leaver.py", tmp_path / "stats"
    script.write_text(APP + "app()")
    words = ("-o", str(stats), str(script), "add", "1", "2", "--json")
    done = run("-m", "cProfile", *words, env=environment())
    assert b'"result":3' in done.out
    assert stats.stat().st_size > 0
