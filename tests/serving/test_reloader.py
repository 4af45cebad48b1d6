"""--reload: files that are checked, and a server that restarts after a change."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tooli.serving.reloader import find_change, snapshot, source_folders

APP = """\
from tooli import Tooli

app = Tooli("app")


@app.command()
def answer() -> int:
    return 1


if __name__ == "__main__":
    app()
"""


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def test_snapshot_contains_the_python_files_of_the_app(tmp_path: Path) -> None:
    write(tmp_path, "app.py", "package/module.py", "data.txt", ".hidden/x.py")
    write(tmp_path, "__pycache__/x.py", "node_modules/x.py", "env/pyvenv.cfg", "env/lib/x.py")
    found = [Path(path).relative_to(tmp_path).as_posix() for path in snapshot([str(tmp_path)])]
    assert sorted(found) == ["app.py", "package/module.py"]


def test_change_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "a.py", "b.py")
    before = snapshot([str(tmp_path)])
    assert find_change(before, snapshot([str(tmp_path)])) is None
    os.utime("b.py", ns=(1, 1))
    assert find_change(before, snapshot([str(tmp_path)])) == "b.py"
    Path("a.py").unlink()
    assert find_change(before, snapshot([str(tmp_path)])) == "a.py"
    write(tmp_path, "a.a.py")
    assert find_change(before, snapshot([str(tmp_path)])) == "a.a.py"


def test_installed_packages_are_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = source_folders()
    assert os.getcwd() in folders
    assert os.path.dirname(os.path.realpath(__file__)) in folders
    prefixes = (sys.prefix, sys.base_prefix)
    assert not [folder for folder in folders if f"{folder}/".startswith(prefixes)]


def call(port: int) -> bytes:
    """Call the command; the connection waits while the server restarts."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/tools/answer", b"{}", {"content-type": "application/json"})
    body = connection.getresponse().read()
    connection.close()
    return body


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_server_restarts_after_a_change(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(APP)
    command = [sys.executable, script, "api", "serve", "--no-mcp", "--port", "0", "--reload"]
    command.append("--no-access-log")
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            found = re.search(r"http://127.0.0.1:(\d+)", process.stderr.readline())
            assert found is not None
            port = int(found[1])
            assert b'"result":1,' in call(port)
            script.write_text(APP.replace("return 1", "return 2"))
            assert process.stderr.readline() == "app.py has changed. The server restarts.\n"
            assert b'"result":2,' in call(port)
            script.write_text("syntax error(")
            while "ended with code 1" not in (line := process.stderr.readline()):
                assert line
            script.write_text(APP.replace("return 1", "return 3"))
            assert process.stderr.readline() == "app.py has changed. The server restarts.\n"
            assert b'"result":3,' in call(port)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    with pytest.raises(OSError):
        call(port)
