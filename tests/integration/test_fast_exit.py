"""The fast exit: `os._exit` after the output, unless Python has work to do at exit."""

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

app = Tooli("exiting")

@app.command()
def add(a: int, b: int) -> int:
    return a + b

@app.command()
def other() -> None: ...

_exit = os._exit
def report_exit(code):
    os.write(2, b"fast exit\\n")
    _exit(code)
os._exit = report_exit
"""

FAST_EXIT_SCRIPTS = {
    "module": "app()",
    "function": "def main():\n    app()\nmain()",
    "exit": "sys.exit(app())",
}
NORMAL_EXIT_SCRIPTS = {
    # name: (script, expected text on stderr)
    "finally": ("try:\n    app()\nfinally:\n    os.write(2, b'done')", "done"),
    "except": ("try:\n    app()\nexcept SystemExit as e:\n    os.write(2, b'done')", "done"),
    "with": (
        "from contextlib import ExitStack\nwith ExitStack() as stack:\n"
        "    stack.callback(os.write, 2, b'done')\n    app()",
        "done",
    ),
    "caller": (
        "def main():\n    app()\ndef outer():\n    try:\n        main()\n"
        "    finally:\n        os.write(2, b'done')\nouter()",
        "done",
    ),
    "thread": (
        "import threading\ngo = threading.Event()\n"
        "def late():\n    go.wait(0.2)\n    os.write(2, b'done')\n"
        "threading.Thread(target=late).start()\napp()",
        "done",
    ),
    "ctypes": ("import ctypes\nkept = ctypes.CDLL(None)\nkept.printf(b'')\napp()", ""),
}


@pytest.mark.skipif(sys.version_info < (3, 11) or sys.platform != "linux", reason="no fast exit")
@pytest.mark.parametrize("case", FAST_EXIT_SCRIPTS)
@pytest.mark.parametrize("line", ["add 1 2 --json", "add 1 x --json", "add 1 2 --plain"])
def test_process_without_cleanup_exits_fast(tmp_path: Path, case: str, line: str) -> None:
    script = tmp_path / "exiting.py"
    script.write_text(APP + FAST_EXIT_SCRIPTS[case])
    done = run(script, *line.split(), env=environment())
    assert done.code == (2 if "x" in line.split() else 0)
    assert done.err == b"fast exit\n"
    assert done.out


@pytest.mark.skipif(sys.version_info < (3, 11) or sys.platform != "linux", reason="no fast exit")
@pytest.mark.parametrize("line", ["add 1 2 --json", "--help", "add --help", "hello"])
def test_atexit_functions_run_before_a_fast_exit(tmp_path: Path, line: str) -> None:
    body = (
        "import atexit, logging\n"
        "option = typer.Option(7, callback=lambda value: value)\n"
        "@app.command()\ndef hello(name: int = option): print(name)\n"
        "atexit.register(os.write, 2, b'second\\n')\natexit.register(print, 'first')\napp()"
    )
    script = tmp_path / "exiting.py"
    script.write_text("import typer" + APP + body)
    done = run(script, *line.split(), env={**environment(), "TOOLI_OUTPUT": "text"})
    assert done.code == 0
    if "--json" in line:  # stdout has the answer only
        assert done.err == b"second\nfirst\nfast exit\n"
        assert done.out.endswith(b"}\n")
    else:
        assert done.err == b"second\nfast exit\n"
        assert done.out.endswith(b"first\n")


@pytest.mark.skipif(sys.version_info < (3, 11) or sys.platform != "linux", reason="no fast exit")
@pytest.mark.parametrize(
    ("line", "code"), [("--nosuch", 2), ("stop", 7), ("fail", 1), ("hello --help", 0)]
)
def test_line_that_typer_answers_exits_fast(tmp_path: Path, line: str, code: int) -> None:
    body = (
        "option = typer.Option(7, callback=lambda value: value)\n"
        "@app.command()\ndef hello(name: int = option): print(name)\n"
        "@app.command()\ndef stop(code: int = option): raise typer.Exit(code)\n"
        "@app.command()\ndef fail(code: int = option): raise typer.Abort()\n"
        "app()"
    )
    script = tmp_path / "exiting.py"
    script.write_text("import typer" + APP + body)
    done = run(script, *line.split(), env={**environment(), "TOOLI_OUTPUT": "text"})
    assert done.code == code
    assert done.err.endswith(b"fast exit\n")


@pytest.mark.parametrize("case", NORMAL_EXIT_SCRIPTS)
def test_process_with_cleanup_exits_normally(tmp_path: Path, case: str) -> None:
    body, expected = NORMAL_EXIT_SCRIPTS[case]
    script = tmp_path / "exiting.py"
    script.write_text(APP + body)
    done = run(script, "add", "1", "2", "--json", env=environment())
    assert b"fast exit" not in done.err
    assert expected.encode() in done.err
    assert b'"result":3' in done.out


@pytest.mark.skipif(sys.version_info < (3, 11) or sys.platform != "linux", reason="no fast exit")
def test_inherited_file_descriptor_does_not_prevent_fast_exit(tmp_path: Path) -> None:
    script = tmp_path / "exiting.py"
    script.write_text(APP + "app()")
    inherited = os.open(os.devnull, os.O_RDWR)
    try:
        done = run(script, "add", "1", "2", "--json", env=environment(), pass_fds=(inherited,))
    finally:
        os.close(inherited)
    assert done.err == b"fast exit\n"
    assert b'"result":3' in done.out


def test_file_that_an_atexit_function_opens_is_flushed(tmp_path: Path) -> None:
    script, kept = tmp_path / "exiting.py", tmp_path / "kept"
    body = (
        f"def end():\n    global file\n    file = open({str(kept)!r}, 'w')\n    file.write('all')\n"
    )
    script.write_text(APP + body + "import atexit\natexit.register(end)\napp()")
    assert run(script, "add", "1", "2", "--json", env=environment()).code == 0
    assert kept.read_text() == "all"


def test_time_limit_covers_atexit_functions(tmp_path: Path) -> None:
    """A function that never returns does not keep the process of an agent."""
    script = tmp_path / "exiting.py"
    body = "import atexit, threading\natexit.register(threading.Event().wait)\napp()"
    script.write_text(APP.partition("_exit = os._exit")[0] + body)
    argv = ("add", "1", "2", "--json", "--timeout", "1")
    done = run(script, *argv, env={**environment(), "TOOLI_CALLER": "claude-code"})
    assert b'"result":3' in done.out
    assert done.out.count(b"\n") == 1
    assert b"did not end within 1 s" in done.err


def test_file_of_the_script_is_flushed(tmp_path: Path) -> None:
    script, kept = tmp_path / "exiting.py", tmp_path / "kept"
    script.write_text(APP + f"kept = open({str(kept)!r}, 'w')\nkept.write('all of it')\napp()")
    assert run(script, "add", "1", "2", "--json", env=environment()).code == 0
    assert kept.read_text() == "all of it"


WRITER_APP = """
import sys
from tooli import Tooli

app = Tooli("writer")
kept = []

class Store:
    file = None

store = Store()

def start_file(path):
    file = open(path, "w")
    file.write("all of it")
    return file

@app.command()
def keep(path: str) -> str:
    kept.append(start_file(path))
    return "kept"

@app.command()
def hold(path: str) -> str:
    store.file = start_file(path)
    return "held"

@app.command()
def fail(path: str) -> str:
    file = start_file(path)
    raise ValueError("no")

@app.command()
def stdin(path: str) -> str:
    sys.stdin.close()
    kept.append(start_file(path))
    return "kept"

app()
"""


@pytest.mark.parametrize("mode", ["--json", "--jsonl", "--text", "--plain", "--json --limit 5"])
@pytest.mark.parametrize("command", ["keep", "hold", "fail", "stdin"])
def test_file_of_a_command_is_flushed(tmp_path: Path, command: str, mode: str) -> None:
    script, path = tmp_path / "writer.py", tmp_path / "path"
    script.write_text(WRITER_APP)
    done = run(script, command, str(path), *mode.split(), env=environment())
    assert (done.code == 0) is (command != "fail")
    assert path.read_text() == "all of it"


WRITTEN_BY_COMMAND = """
@app.command()
def write() -> str:
    global file
    file = os.fdopen(int(os.environ['FILE']), 'w')
    file.write('all of it')
    return "written"

app()
"""
WRITTEN_BY_SCRIPT = "file = os.fdopen(int(os.environ['FILE']), 'w')\nfile.write('all of it')\napp()"


@pytest.mark.parametrize("number", [3, 12])
@pytest.mark.parametrize(
    ("body", "line"), [(WRITTEN_BY_SCRIPT, "add 1 2"), (WRITTEN_BY_COMMAND, "write")]
)
def test_inherited_file_is_flushed(tmp_path: Path, body: str, line: str, number: int) -> None:
    script, kept = tmp_path / "exiting.py", tmp_path / "kept"
    script.write_text(APP + body)
    with kept.open("w") as file, os.fdopen(os.dup2(file.fileno(), 60 + number), "w") as inherited:
        env = {**environment(), "FILE": str(inherited.fileno())}
        done = run(script, *line.split(), "--json", env=env, pass_fds=(inherited.fileno(),))
    assert done.code == 0
    assert kept.read_text() == "all of it"


def test_profiler_writes_its_statistics(tmp_path: Path) -> None:
    script, stats = tmp_path / "exiting.py", tmp_path / "stats"
    script.write_text(APP + "app()")
    argv = ("-o", str(stats), str(script), "add", "1", "2", "--json")
    done = run("-m", "cProfile", *argv, env=environment())
    assert b'"result":3' in done.out
    assert stats.stat().st_size > 0
