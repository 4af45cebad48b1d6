"""Apps among the programs on the PATH. Each is run in the sandbox."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from tooli.errors import AuthError
from tooli.execution.sandbox.sandbox_runner import SandboxSupport, detect_sandbox_support
from tooli.sources import path_programs
from tooli.sources.path_programs import find_programs

pytestmark = pytest.mark.skipif(os.name == "nt", reason="programs are scripts with `#!`")
HAS_SANDBOX = bool(detect_sandbox_support().landlock and detect_sandbox_support().seccomp)

APP = """
import sys
sys.path.insert(0, {source!r})
from tooli import Tooli
app = Tooli("shop", description="A shop.", version="1.0")
app.command()(lambda: None)
@app.command()
def find(): ...
for path in ({written!r},):
    try:
        open(path, "w").close()
    except OSError:
        pass
app()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"relative:{tmp_path / 'missing'}:{tmp_path}")
    return tmp_path


def write(folder: Path, name: str, code: str, first: str = f"#!{sys.executable}") -> Path:
    path = folder / name
    path.write_text(f"{first}\n{code}")
    path.chmod(0o755)
    return path


def write_app(folder: Path, name: str, **kwargs: str) -> Path:
    import tooli

    source = str(Path(tooli.__file__).parents[1])
    return write(folder, name, APP.format(source=source, written=f"{folder}/written"), **kwargs)


@pytest.mark.skipif(not HAS_SANDBOX, reason="there is no sandbox")
def test_programs_are_found_and_confined(folder: Path) -> None:
    path = write_app(folder, "shop")
    write_app(
        folder, "quoted", first=f"#!/bin/sh\n'''exec' '{sys.executable}' \"$0\" \"$@\"\n' '''"
    )
    found, problems = find_programs(unconfined=False)
    assert [program.name for program in found] == ["quoted", "shop"]
    shop = found[1]
    assert (shop.path, shop.description, shop.version) == (str(path), "A shop.", "1.0")
    assert "find" in shop.tools
    assert problems == []
    assert not (folder / "written").exists()


def test_programs_that_are_not_run(folder: Path) -> None:
    """Only Python scripts whose interpreter has tooli are started."""
    touch = f"open({str(folder / 'ran')!r}, 'w')\n"
    write(folder, "shell", f"touch {folder}/ran\n", "#!/bin/sh")
    write(folder, "empty", "", "#!")
    write(folder, "relative", touch, "#!python3")
    write(folder, "gone", touch, "#!/missing/python3")
    write(folder, "unknown", touch, "#!/usr/bin/env no-such-python")
    bare = write(folder, "python-without-tooli", "exit 1\n", "#!/bin/sh")
    write(folder, "other", touch, f"#!{bare}")
    write(folder, "no_mode", touch).chmod(0o644)
    (folder / "binary").write_bytes(b"\x7fELF")
    (folder / "binary").chmod(0o755)
    (folder / "directory").mkdir()
    (folder / "dangling").symlink_to(folder / "missing")
    assert find_programs(unconfined=True) == ([], [])
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    "code",
    [
        "print('{')",
        "print('[]')",
        "print('{\"commands\": 1}')",
        "raise SystemExit(3)",
        "import sys\nwhile True: sys.stdout.write('x' * 100000)",
        "print('{\"commands\": []}'); raise SystemExit(1)",
    ],
)
def test_programs_that_are_no_apps(folder: Path, code: str) -> None:
    write(folder, "other", code)
    assert find_programs(unconfined=True) == ([], [])


def test_answer_with_unexpected_values(folder: Path) -> None:
    write(folder, "odd", 'print(\'{"commands": [1, {"name": 2}], "version": []}\')')
    found, _ = find_programs(unconfined=True)
    assert (found[0].tools, found[0].version, found[0].description) == ((), "", "")


def test_program_that_hangs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_programs, "_HAS_TOOLI", "pass")
    write(folder, "hang", "import time\nwhile True: time.sleep(60)")
    timers: list[FakeTimer] = []

    class FakeTimer:
        """Expires when the second program is started."""

        daemon = False

        def __init__(self, seconds: float, stop: object) -> None:
            timers.append(self)
            self.stop = stop

        def start(self) -> None:
            if len(timers) == 2:
                assert callable(self.stop)
                self.stop()

        def cancel(self) -> None: ...

    monkeypatch.setattr(path_programs, "Timer", FakeTimer)
    found, problems = find_programs(unconfined=True)
    assert found == [] and "did not answer --discover" in problems[0]


def test_programs_that_are_no_apps_are_remembered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apps are asked each time: their description may be another one."""
    monkeypatch.setattr(path_programs, "_HAS_TOOLI", "print(1)")
    count = f"open({str(folder / 'runs')!r}, 'a').write(__file__[-1])\n"
    write(folder, "a", count + "print('{\"commands\": []}')")
    write(folder, "b", count)

    def runs(unconfined: bool = True) -> str:
        found, problems = find_programs(unconfined=unconfined)
        assert ([program.name for program in found], problems) == (["a"], [])
        text = (folder / "runs").read_text()
        (folder / "runs").unlink()
        return "".join(sorted(text))

    assert [runs(), runs()] == ["ab", "a"]
    write(folder, "b", count + "# changed\n")
    assert [runs(), runs()] == ["ab", "a"]
    monkeypatch.setattr(path_programs, "_HAS_TOOLI", "print(2)")  # packages were installed
    assert [runs(), runs()] == ["ab", "a"]
    monkeypatch.setattr(path_programs, "REMEMBERED_SECONDS", 0.0)
    assert [runs(), runs()] == ["ab", "ab"]


def test_slow_programs_are_remembered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_programs, "_HAS_TOOLI", "pass")
    path = write(folder, "slow", "")
    asked: list[list[str]] = []

    def run_all(self: object, lines: list[list[str]]) -> list[tuple[None, bytes]]:
        asked.append([line[0] for line in lines])
        return [(None, b"") for _ in lines]

    monkeypatch.setattr(path_programs._Runner, "run_all", run_all)
    for _ in range(2):
        found, problems = find_programs(unconfined=True)
        assert found == [] and "did not answer --discover" in problems[0]
    assert asked == [[str(path)], []]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"x": 1}', b'{"x": ["", "", true]}'])
def test_damaged_memory_is_ignored(
    folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(path_programs, "read_entry", lambda key, size: content)
    write(folder, "a", "print('{\"commands\": []}')")
    assert [program.name for program in find_programs(unconfined=True)[0]] == ["a"]


def test_ctrl_c_ends_all_programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_programs, "_HAS_TOOLI", "pass")
    pids = folder / "pids"
    code = f"import os, time\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
    for name in ("a", "b"):
        write(folder, name, code + "time.sleep(60)")
    runner = path_programs._Runner(unconfined=True)
    real = runner.run

    def run(argv: list[str]) -> object:
        if argv[0] == "interrupt":
            while not pids.exists() or pids.read_text().count("\n") < 2:
                threading.Event().wait(0.01)
            raise KeyboardInterrupt
        return real(argv)

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr(path_programs, "MAX_PROCESSES", 3)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    lines = [["interrupt"], [str(folder / "a")], [str(folder / "b")]]
    with pytest.raises(KeyboardInterrupt):
        runner.run_all(lines)
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
    assert real(["x"]) == (127, b"")


def test_number_of_programs_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_programs, "MAX_PROGRAMS", 1)
    for name in ("a", "b"):
        write(folder, name, "print('{\"commands\": []}')")
    found, problems = find_programs(unconfined=True)
    assert ([program.name for program in found], len(problems)) == (["a"], 1)


def test_system_without_a_sandbox(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "app", f"open({str(folder / 'ran')!r}, 'w')")
    support = SandboxSupport(missing=("no Landlock",))
    monkeypatch.setattr(path_programs, "detect_sandbox_support", lambda: support)
    with pytest.raises(AuthError, match="no Landlock") as caught:
        find_programs(unconfined=False)
    assert caught.value.code == "E2006"
    assert not (folder / "ran").exists()
