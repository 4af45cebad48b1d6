"""bubblewrap in the worker process itself: arguments of bwrap, payload, program inside, failures.

`os.execve` is replaced by a call of the program that bwrap would start, so that no new process
hides what happens. test_bwrap.py uses a real bwrap.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tooli import StdinOr, Tooli
from tooli.core.call import Call, Caller, Ok, Options
from tooli.core.declared_capabilities import AllowedAccess
from tooli.core.peer import Peer
from tooli.errors import AuthError
from tooli.execution.sandbox import bwrap
from tooli.execution.sandbox.sandbox_runner import (
    SandboxRunner,
    SandboxSupport,
    detect_sandbox_support,
)
from tooli.execution.sandbox.syscalls import SandboxUnavailable
from tooli.pipeline.drivers import run
from tooli.stages import isolation

SUPPORT = detect_sandbox_support()
pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))

APP = """
import enum, os, sys
from collections.abc import Iterator
from tooli import Context, Tooli

app = Tooli("bwrapped")


class Color(enum.Enum):
    RED = "red"


@app.command(isolation="required")
def add(a: int, b: int = 2) -> int:
    return a + b


@app.command(isolation="required")
def name_of(color: Color, ctx: Context) -> str:
    ctx.warn("careful")
    return color.name


@app.command(isolation="required")
def count(items: int) -> Iterator[int]:
    print("counting")
    yield from range(items)


@app.command(isolation="required")
def fail() -> None:
    raise FileNotFoundError("none")


@app.command(isolation="required", capabilities=["fs:read", "fs:write", "net:write", "proc:spawn"])
def everything() -> str:
    return os.getcwd()


@app.command(isolation="required")
def supports(ctx: Context) -> list[bool]:
    peer = ctx._call.peer
    names = ("elicitation/create", "sampling/createMessage")
    return [peer is not None and peer.supports(name) for name in names]


@app.command()
def optional() -> str:
    return "ran"
"""


class BwrapArgv:
    """The argument list of the last start of bwrap."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> list[str]:
        return self._file.read_text().split("\0")


@pytest.fixture
def fake_bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BwrapArgv:
    """A bwrap that starts nothing: the worker itself runs the program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    argv_file = tmp_path / "argv"

    def execve(path: str, argv: list[str], env: dict[str, str]) -> NoReturn:
        assert path == str(program)
        argv_file.write_text("\0".join(argv))
        os.environ.clear()
        os.environ.update(env)
        sys.argv = [sys.executable, argv[-1]]
        bwrap.main()
        raise AssertionError("main() ends the process")

    monkeypatch.setattr(bwrap, "BWRAP_DIRS", (str(tmp_path / "none"), str(folder)))
    monkeypatch.setattr(os, "execve", execve)
    support = SandboxSupport(0, True, ("no Landlock",))
    monkeypatch.setattr(isolation, "detect_sandbox_support", lambda: support)
    return BwrapArgv(argv_file)


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tooli]:
    """The app as an imported module."""
    (tmp_path / "bwrapped_app.py").write_text(APP)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("bwrapped_app")
    yield module.app
    sys.modules.pop("bwrapped_app", None)


def test_value_and_level(app: Tooli, fake_bwrap: BwrapArgv) -> None:
    result = app.call("add", a=1, b=4)
    assert (result.result, result.meta["enforcement"]) == (5, "bwrap")
    argv = fake_bwrap.read()
    assert argv[1:4] == ["--unshare-all", "--die-with-parent", "--new-session"]
    assert "--share-net" not in argv
    assert argv[argv.index("--") + 1] == sys.executable


def test_class_of_the_app_and_context(app: Tooli, fake_bwrap: BwrapArgv) -> None:
    result = app.call("name-of", color="red")
    assert (result.result, result.meta["warnings"]) == ("RED", ["careful"])


def test_stream_and_forwarded_output(
    app: Tooli, fake_bwrap: BwrapArgv, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(app.stream("count", items=3)) == [0, 1, 2]
    assert capsys.readouterr().out == "counting\n"


def test_exception_of_the_function(app: Tooli, fake_bwrap: BwrapArgv) -> None:
    error = app.call("fail").error
    assert error is not None and error.code == "E3010"


def test_supported_requests_of_the_client(app: Tooli, fake_bwrap: BwrapArgv) -> None:
    class Client(Peer):
        def supports(self, method: str) -> bool:
            return method == "elicitation/create"

    tool = app.find("supports")
    assert tool is not None
    for peer, expected in ((Client(), [True, False]), (None, [False, False])):
        call, stages = app.prepare(Call(tool, {}, Caller("mcp"), [], Options(), peer=peer))
        outcome = run(call, stages)
        assert isinstance(outcome, Ok) and outcome.value == expected, outcome


def test_everything_is_bound(app: Tooli, fake_bwrap: BwrapArgv, tmp_path: Path) -> None:
    assert app.call("everything").error is None
    argv = fake_bwrap.read()
    assert "--share-net" in argv
    assert argv[argv.index("--bind-try") : argv.index("--bind-try") + 3] == ["--bind-try", "/", "/"]


def test_denied_paths_are_hidden(app: Tooli, fake_bwrap: BwrapArgv, tmp_path: Path) -> None:
    (tmp_path / "denied").mkdir()
    (tmp_path / "file").write_text("x")
    access = AllowedAccess(
        reads=(str(tmp_path),),
        denied=(str(tmp_path / "denied"), str(tmp_path / "file"), str(tmp_path / "missing")),
    )
    fallback = SandboxRunner(None, access, required=True, temp_dir=str(tmp_path))
    runner = bwrap.BubblewrapRunner(
        "/usr/bin/bwrap", bwrap.AppEntryPoint(__file__, None, "app"), fallback, True
    )
    argv = runner._build_bind_args()
    assert argv[argv.index("--tmpfs") + 1] == str(tmp_path / "denied")
    position = argv.index(os.devnull)
    assert argv[position - 1 : position + 2] == ["--ro-bind", os.devnull, str(tmp_path / "file")]
    assert str(tmp_path / "missing") not in argv
    assert __file__ in argv


def test_working_directory_is_replaced_if_it_is_not_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cwd").mkdir()
    (tmp_path / "temp").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    fallback = SandboxRunner(None, AllowedAccess(), required=True, temp_dir=str(tmp_path / "temp"))
    entry = bwrap.AppEntryPoint(None, "m", "app")
    runner = bwrap.BubblewrapRunner("/usr/bin/bwrap", entry, fallback, True)
    assert runner._working_dir(["/nowhere"]) == str(tmp_path / "temp")
    assert runner._working_dir([str(tmp_path)]) == str(tmp_path / "cwd")


def test_runner_refuses_to_replace_the_process_of_the_app(app: Tooli, tmp_path: Path) -> None:
    fallback = SandboxRunner(None, AllowedAccess(), required=True, temp_dir=str(tmp_path))
    entry = bwrap.AppEntryPoint(None, "m", "app")
    runner = bwrap.BubblewrapRunner("/usr/bin/bwrap", entry, fallback, True)
    tool = app.find("add")
    assert tool is not None
    with pytest.raises(RuntimeError, match="worker process"):
        runner.run(Call(tool, {"a": 1}, Caller("python"), [], Options()))
    with pytest.raises(RuntimeError, match="worker process"):
        fallback.run(Call(tool, {"a": 1}, Caller("python"), [], Options()))


# ------------------------------------------------------------------ bubblewrap that does not work


def test_required_command_fails_if_bwrap_does_not_work(app: Tooli, fake_bwrap: BwrapArgv) -> None:
    Path(bwrap.find_bubblewrap() or "").write_text("#!/bin/sh\nexit 1\n")
    error = app.call("add", a=1).error
    assert error is not None
    assert (error.code, "does not work" in error.message) == ("E2006", True)


def test_optional_command_runs_with_a_warning(
    app: Tooli, fake_bwrap: BwrapArgv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_ISOLATION", "wanted")
    Path(bwrap.find_bubblewrap() or "").write_text("#!/bin/sh\nexit 1\n")
    result = app.call("optional")
    assert result.result == "ran"
    assert any("does not work" in warning for warning in result.meta["warnings"])


def test_arguments_that_cannot_be_pickled(app: Tooli, tmp_path: Path) -> None:
    fallback = SandboxRunner(None, AllowedAccess(), required=True, temp_dir=str(tmp_path))
    entry = bwrap.AppEntryPoint(None, "m", "app")
    runner = bwrap.BubblewrapRunner("/usr/bin/bwrap", entry, fallback, True)
    tool = app.find("add")
    assert tool is not None
    with pytest.raises(SandboxUnavailable, match="cannot be passed"):
        runner._write_payload(Call(tool, {"a": lambda: 1}, Caller("python"), [], Options()))


def test_no_bwrap(app: Tooli, fake_bwrap: BwrapArgv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap, "BWRAP_DIRS", ())
    error = app.call("add", a=1).error
    assert error is not None
    assert error.details == {"missing": ["no Landlock", "bubblewrap (bwrap) is not installed"]}


# ------------------------------------------------------------------ where the app is


def test_app_of_a_script_is_found_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(APP)
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(file)}
    exec(compile(APP, str(file), "exec"), names)
    app = names["app"]
    tool = app.find("add")
    assert bwrap.locate_app(app._state, tool) == bwrap.AppEntryPoint(str(file), None, "app")
    names["__file__"] = str(tmp_path / "missing.py")
    with pytest.raises(SandboxUnavailable, match="not in a file"):
        bwrap.locate_app(app._state, tool)


def test_script_is_loaded_as_main(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text("VALUE = 3\n")
    main = sys.modules["__main__"]
    try:
        module = bwrap.load_app_module(bwrap.AppEntryPoint(str(file), None, "app"))
        assert (module.VALUE, sys.modules["__main__"]) == (3, module)
    finally:
        sys.modules["__main__"] = main
        sys.modules.pop("__tooli_main__", None)


def test_app_that_is_not_a_global() -> None:
    app = Tooli("local")

    @app.command(isolation="required")
    def work() -> int:
        return 1

    with pytest.raises(SandboxUnavailable, match="not a global"):
        bwrap.locate_app(app._state, app.find("work"))


def test_files_as_inputs_need_landlock(app: Tooli) -> None:
    @app.command(isolation="required")
    def read(data: StdinOr[str]) -> str:
        return data.read()

    with pytest.raises(SandboxUnavailable, match="need Landlock"):
        bwrap.locate_app(app._state, app.find("read"))


def test_payload_that_cannot_be_unpacked(app: Tooli) -> None:
    payload: Any = {
        "app": bwrap.AppEntryPoint(None, "bwrapped_app", "app"),
        "tool": "add",
        "call": b"pnonsense",
    }
    with pytest.raises(AuthError, match="cannot be unpacked"):
        bwrap._build_call(payload)
