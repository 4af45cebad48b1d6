from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.providers.programs.sample_programs import NOTES, write

from tooli.errors import AuthError, DependencyError
from tooli.execution.sandbox import temp_dirs
from tooli.execution.sandbox.sandbox_runner import SandboxSupport, detect_sandbox_support
from tooli.providers.programs import program_reading
from tooli.providers.programs.program_commands import Program
from tooli.providers.programs.program_reading import ReadOptions, read_program
from tooli.providers.programs.program_targets import find_target

needs_sandbox = pytest.mark.skipif(
    bool(detect_sandbox_support().missing), reason="this system has no sandbox"
)
PLAIN = ReadOptions({}, False, 20.0)


@pytest.fixture(autouse=True)
def keep_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))


def read(path: Path, options: ReadOptions = PLAIN) -> Program:
    return read_program(find_target(str(path), "/", None), options)


def failure(path: Path, options: ReadOptions = PLAIN) -> str:
    with pytest.raises(DependencyError) as caught:
        read(path, options)
    assert caught.value.message.startswith(f"The program {str(path)!r} cannot be read: ")
    return caught.value.message


def count_runs(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    runs: list[object] = []
    original = program_reading._run_reader

    def run_reader(*args: Any) -> Any:
        runs.append(args)
        return original(*args)

    monkeypatch.setattr(program_reading, "_run_reader", run_reader)
    return runs


def test_descriptions_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count_runs(monkeypatch)
    script = write(tmp_path / "notes", NOTES)
    first = read(script)
    assert read(script) == first and len(runs) == 1
    assert (first.kind, first.prog, first.help) == ("argparse", "notes", "Keep notes.")
    os.utime(script, (1, 1))
    assert read(script) == first and len(runs) == 2
    read(script, ReadOptions({"A": "1"}, False))
    assert len(runs) == 3
    (cached,) = [p for p in (tmp_path / "state/programs").iterdir() if p.stat().st_size][:1]
    assert cached.stat().st_mode & 0o77 == 0
    for file in (tmp_path / "state/programs").iterdir():
        file.write_text("{]")
    assert read(script) == first and len(runs) == 4


def test_a_module_of_the_program_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count_runs(monkeypatch)
    helper = write(tmp_path / "helper.py", "FLAG = '--old'")
    script = write(
        tmp_path / "tool.py",
        "import argparse, helper\n"
        "p = argparse.ArgumentParser()\np.add_argument(helper.FLAG)\np.parse_args()",
    )
    assert [p.name for p in read(script).commands[0].params()] == ["old"]
    write(helper, "FLAG = '--newer'")
    assert [p.name for p in read(script).commands[0].params()] == ["newer"]
    assert len(runs) == 2


def test_old_descriptions_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_reading, "MAX_CACHE_FILES", 2)
    script = write(tmp_path / "notes", NOTES)
    for number in range(4):
        read(script, ReadOptions({"N": str(number)}, False))
    assert len(list((tmp_path / "state/programs").iterdir())) == 2


def test_without_a_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = write(tmp_path / "notes", NOTES)
    for state in ("/proc/none", "relative", str(write(tmp_path / "file", ""))):
        monkeypatch.setenv("TOOLI_STATE_DIR", state)
        assert read(script).prog == "notes"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('hello')", r"it ended without reading its command line\. It has to use"),
        ("raise SystemExit('no config')", r"it exited \(no config\) before"),
        ("import nonexistent_module", "No module named 'nonexistent_module'"),
        ("def (:", "SyntaxError"),
        ("import os; os._exit(4)", r"it ended \(exit code 4\) without a description"),
        ("import os; os.write(3, b'garbage'); os._exit(0)", "without a description"),
        ("import os; os.write(3, b'[]'); os._exit(0)", "without a description"),
        ("import os; os.write(3, b'{\"kind\": 1}'); os._exit(0)", "description is not valid"),
        ("import os; os.write(3, b'{}'); os._exit(0)", "it has no commands"),
        ("import sys; print('oh no', file=sys.stderr); sys.exit(3)", "It wrote: oh no"),
    ],
)
def test_programs_that_cannot_be_read(tmp_path: Path, code: str, message: str) -> None:
    assert re.search(message, failure(write(tmp_path / "tool.py", code)))


def test_a_program_that_needs_an_argument(tmp_path: Path) -> None:
    code = (
        "import argparse, sys\nif len(sys.argv) < 2: sys.exit('what?')\n"
        "p = argparse.ArgumentParser()\np.add_argument('x')\np.parse_args()"
    )
    assert len(read(write(tmp_path / "tool.py", code)).commands) == 1


@pytest.mark.parametrize("sandbox", [False, True])
def test_a_program_that_hangs(tmp_path: Path, sandbox: bool) -> None:
    script = write(tmp_path / "tool.py", "import time\nwhile True: time.sleep(60)")
    message = failure(script, ReadOptions({}, sandbox, 1.0))
    assert "it did not read its command line within 1 s" in message


SPY = """
import argparse, os, socket
found = []
for path in (WRITTEN, os.path.expanduser("~/written"), "written"):
    try:
        open(path, "w").close()
        found.append("wrote")
    except OSError:
        found.append("refused")
try:
    found.append(open(SECRET).read())
except OSError:
    found.append("unreadable")
try:
    socket.socket().connect(("127.0.0.1", 9))
except OSError as failure:
    found.append(type(failure).__name__)
found.append(str(sorted(name for name in os.environ if "API" in name)))
if os.fork() == 0:
    os.setsid()
    os.execvp("sleep", ["sleep", "543"])
parser = argparse.ArgumentParser(description=" ".join(found))
parser.add_argument("--home", default=os.path.expanduser("~/.tool"))
os.fork()
parser.parse_args()
"""


def make_spy(folder: Path) -> Path:
    secret = write(folder / "secret.txt", "hunter2")
    head = f"WRITTEN, SECRET = {str(folder / 'written')!r}, {str(secret)!r}\n"
    (folder / "code").mkdir()
    return write(folder / "code" / "spy.py", head + SPY)


@needs_sandbox
def test_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "abc")
    program = read(make_spy(tmp_path), ReadOptions({}, "required", 20.0))
    assert program.help == "refused wrote wrote unreadable PermissionError []"
    assert not (tmp_path / "written").exists()
    assert [p.default for p in program.commands[0].params()] == ["~/.tool"]
    assert "543" not in [words[-1] for words in running_commands()]


def running_commands() -> Iterator[list[str]]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_text(errors="replace").rstrip("\0").split("\0")
        except OSError:  # it has ended
            continue


def test_without_a_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program has another home folder, and not the variables of this process."""
    none = SandboxSupport(missing=("Landlock is missing",))
    monkeypatch.setattr(program_reading, "detect_sandbox_support", lambda: none)
    monkeypatch.setenv("API_KEY", "abc")
    script = write(
        tmp_path / "spy.py",
        "import argparse, os\n"
        "home = os.path.expanduser('~')\nassert os.path.samefile(home, os.getcwd())\n"
        "p = argparse.ArgumentParser(description=home + str('API_KEY' in os.environ))\n"
        "p.parse_args()",
    )
    assert read(script, ReadOptions({}, True)).help == "~False"
    with pytest.raises(AuthError, match=r"requires isolation.*Landlock is missing"):
        read(script, ReadOptions({}, "required"))


@pytest.mark.skipif(os.mkdir not in os.supports_dir_fd, reason="needs descriptors of folders")
def test_home_folder_of_a_killed_reader_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process that reads a program without the sandbox removes it."""
    none = SandboxSupport(missing=("Landlock is missing",))
    monkeypatch.setattr(program_reading, "detect_sandbox_support", lambda: none)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    temp_dirs._swept_dirs.clear()
    left = tmp_path / "tooli-reader-0123456789abcdef"
    (left / "deep" / "deeper").mkdir(parents=True)
    other = tmp_path / "tooli-reader-notes"  # not a name that tooli gives
    other.mkdir()
    script = write(
        tmp_path / "tool.py",
        "import argparse, os\nfrom pathlib import Path\n"
        "home = Path.home()\n(home / 'sub').mkdir()\nos.chmod(home / 'sub', 0)\n"
        "p = argparse.ArgumentParser(description=home.name[:13])\np.parse_args()",
    )
    assert read(script, ReadOptions({}, True)).help == "tooli-reader-"
    assert [path.name for path in tmp_path.glob("tooli-reader-*")] == [other.name]


def test_a_sandbox_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    support = SandboxSupport(landlock=1, seccomp=True)
    monkeypatch.setattr(program_reading, "detect_sandbox_support", lambda: support)
    argv = [sys.executable, "-c", "import sys; print('why', file=sys.stderr); sys.exit(125)"]
    monkeypatch.setattr(program_reading, "isolated_argv", lambda code: argv)
    with pytest.raises(AuthError, match="sandbox could not be set up: why") as caught:
        read(write(tmp_path / "notes", NOTES), ReadOptions({}, True))
    assert caught.value.code == "E2006"


@needs_sandbox
def test_packages_in_development_can_be_read(tmp_path: Path) -> None:
    """A .pth file and a direct_url.json name folders outside of the environment."""
    site = tmp_path / "lib" / "python3" / "site-packages"
    (site / "shop.dist-info").mkdir(parents=True)
    (site / "other.dist-info").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    write(site / "a.pth", "/src/a\nimport os\n")
    write(site / "shop.dist-info" / "direct_url.json", '{"url": "file:///src/b"}')
    write(site / "other.dist-info" / "direct_url.json", "{")
    found = list(program_reading._interpreter_paths(str(tmp_path / "bin" / "python")))
    assert {"/src/a", "/src/b", str(tmp_path / "lib"), sys.executable} <= set(found)
