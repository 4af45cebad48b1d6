"""bubblewrap instead of Landlock, with a real bwrap and Landlock hidden by a filter.

In the second part, `os.execve` is replaced by a call of the program that bwrap would start, so that
coverage is measured.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.integration.app_process import environment

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
from tooli.pipeline.drivers import run as run_call
from tooli.stages import isolation

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache" / "bubblewrap"
LANDLOCK = "444,445,446"
SUPPORT = detect_sandbox_support()
pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))

APP = '''
import enum, os, socket, subprocess, sys
from collections.abc import Iterator
from pathlib import Path
from tooli import Context, Tooli
from tooli.execution.sandbox import bwrap

bwrap.BWRAP_DIRS = (os.environ["BUBBLEWRAP"],) if "BUBBLEWRAP" in os.environ else ()
app = Tooli("isolated")
HERE = Path(__file__).parent
CAPABILITIES = [f"fs:read:{HERE}/in", f"fs:write:{HERE}/in"]


def peek(number: int) -> list[str]:
    """Read what descriptors of parent processes refer to."""
    found = []
    for owner in ("self", "1", str(os.getppid())):
        try:
            descriptor = os.open(f"/proc/{owner}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
            text = os.read(descriptor, 100).decode()
            found.append(text if "secret" in text else "")
        except (OSError, ValueError):
            pass
    return found


@app.command(isolation="required", capabilities=CAPABILITIES)
def attempt(port: int) -> dict[str, str]:
    """Try undeclared access."""
    out = HERE / "out" / "secret"
    attempts = {
        "read": out.read_text,
        "stat": lambda: os.stat(out),
        "list": lambda: os.listdir(HERE / "out"),
        "write": lambda: out.write_text("changed"),
        "chmod": lambda: os.chmod(out, 0o777),
        "delete": out.unlink,
        "passwd": lambda: open("/etc/passwd").read(),
        "environment": lambda: os.environ["SECRET_OF_MINE"],
        "parent": lambda: open(f"/proc/{os.getppid()}/environ").read().index("SECRET_OF_MINE"),
        "network": lambda: socket.create_connection(("127.0.0.1", port), timeout=5),
        "datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "spawn": lambda: subprocess.run(["/bin/true"]),
        "fork": os.fork,
        "sibling": lambda: [one for one in os.listdir(HERE) if one == "out"][0],
        "open": lambda: [found for n in range(3, 20) for found in peek(n) if found][0],
    }
    found = {}
    for name, work in attempts.items():
        try:
            found[name] = f"done: {work()}"
        except (OSError, LookupError, ValueError) as failure:
            found[name] = type(failure).__name__
    (HERE / "in" / "made").write_text((HERE / "in" / "own").read_text())
    return found


@app.command(isolation="required")
def count(items: int, ctx: Context) -> Iterator[dict[str, int]]:
    """Yield items."""
    ctx.warn("careful")
    for number in range(items):
        yield {"number": number}


@app.command(isolation="required")
def fail() -> None:
    """Fail."""
    raise FileNotFoundError("none")


class Colour(enum.Enum):
    """A class of the app."""

    RED = "red"


@app.command(isolation="required")
def paint(colour: Colour) -> str:
    """Accept an argument of that class."""
    assert colour is Colour.RED
    return colour.value


@app.command(isolation="required", capabilities=["proc:spawn"])
def start() -> str:
    """Start a program of the system, one of the caller, and Python."""
    commands = [["cat", str(HERE / "in/own")], ["hello"], [sys.executable, "-c", "print(1)"]]
    codes = [subprocess.run(argv, capture_output=True).returncode for argv in commands]
    return " ".join(map(str, codes))


@app.command()
def read_file(path: Path) -> str:
    """Read a file."""
    return path.read_text()


@app.command(isolation="required", timeout=2)
def hang() -> None:
    """Hang."""
    while True:
        pass


if __name__ == "__main__":
    app()
'''


def bubblewrap() -> str | None:
    """Return the folder of bwrap: of the machine, or from the package of Debian."""
    found = shutil.which("bwrap")
    if found is not None:
        return os.path.dirname(found)
    program = CACHE / "usr" / "bin" / "bwrap"
    if not program.exists() and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        CACHE.mkdir(parents=True, exist_ok=True)
        try:
            fetch = ["apt-get", "download", "bubblewrap"]
            subprocess.run(fetch, cwd=CACHE, check=True, capture_output=True, timeout=60)
            for package in CACHE.glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", str(package), str(CACHE)], check=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            return None
    return str(program.parent) if program.exists() else None


def working_bubblewrap() -> str:
    """Return the folder of a bwrap that works, or skip the test."""
    folder = bubblewrap()
    if folder is None:
        pytest.skip("bubblewrap is not available")
    argv = [f"{folder}/bwrap", "--ro-bind", "/", "/", "--unshare-all", "--", "/bin/true"]
    if subprocess.run(argv, capture_output=True, timeout=60).returncode:
        pytest.skip("bubblewrap does not work here")
    return folder


@pytest.fixture(scope="module")
def path() -> str:
    """The folder of a bwrap that works."""
    return working_bubblewrap()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The app in a file, beside files that it may and may not read."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "in/own").write_text("own")
    (tmp_path / "out/secret").write_text("secret")
    file = tmp_path / "app.py"
    file.write_text(APP)
    return file


def run(script: Path, path: str, *argv: str, **more: str) -> tuple[int, bytes]:
    """Run the app without Landlock, with the bwrap of a folder."""
    program = [sys.executable, str(HERE / "hide_syscalls.py"), LANDLOCK, str(script), *argv]
    state = str(script.parent / "state")
    env = environment(BUBBLEWRAP=path, TOOLI_STATE_DIR=state, SECRET_OF_MINE="leaked", **more)
    with open(script.parent / "out/secret") as inherited:
        options: Any = {"env": env, "cwd": script.parent, "pass_fds": [inherited.fileno()]}
        done = subprocess.run(program, capture_output=True, timeout=120, **options)
    return done.returncode, done.stdout


def test_files_outside_are_not_visible(script: Path, path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        code, out = run(script, path, "attempt", port, "--json")
    answer: dict[str, Any] = json.loads(out)
    assert code == 0, answer
    assert answer["meta"]["enforcement"] == "bwrap"
    assert not {name: text for name, text in answer["result"].items() if text.startswith("done")}
    assert len(answer["result"]) == 15
    assert (script.parent / "out/secret").read_text() == "secret"
    assert (script.parent / "out/secret").stat().st_mode & 0o777 != 0o777
    assert (script.parent / "in/made").read_text() == "own"


def test_items_and_warnings_are_returned(script: Path, path: str) -> None:
    code, out = run(script, path, "count", "2", "--json")
    answer = json.loads(out)
    assert (code, answer["result"]) == (0, [{"number": 0}, {"number": 1}])
    assert answer["meta"]["warnings"] == ["careful"]
    code, out = run(script, path, "count", "2", "--jsonl")
    assert (code, out) == (0, b'{"number":0}\n{"number":1}\n')


CLIENT = """
import json, time
from collections.abc import Mapping
from tooli import Elicit
from tooli.core.call import Call, Caller, Options
from tooli.core.peer import Peer
from tooli.pipeline.drivers import run


@app.command(isolation="required", timeout=60)
def talk(ctx: Context) -> dict[str, object]:
    was_cancelled = ctx.cancelled
    name = ctx.ask({"who": Elicit("Who?", {"type": "object"})})["who"]["content"]["name"]
    while not ctx.cancelled:  # the time limit ends it otherwise
        time.sleep(0.01)
    return {"before": was_cancelled, "name": name, "after": ctx.cancelled}


class Client(Peer):
    def supports(self, method):
        return method == Elicit.method

    def ask(self, questions):
        self.cancelled = True
        return {name: {"action": "accept", "content": {"name": "Ada"}} for name in questions}


if __name__ == "__main__":
    call = Call(app.find("talk"), {}, Caller("mcp"), [], Options(), peer=Client())
    call, stages = app.prepare(call)
    outcome = run(call, stages)
    error = str(getattr(outcome, "error", ""))
    print(json.dumps([getattr(outcome, "value", None), error, call.meta]))
"""


def test_answers_and_cancellation_of_the_client_reach_the_function(script: Path, path: str) -> None:
    script.write_text(APP.partition('if __name__ == "__main__"')[0] + CLIENT)
    code, out = run(script, path)
    value, error, meta = json.loads(out)
    assert (code, error) == (0, "")
    assert value == {"before": False, "name": "Ada", "after": True}
    assert meta["enforcement"] == "bwrap"


def test_error_is_unchanged(script: Path, path: str) -> None:
    code, out = run(script, path, "fail", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (10, "E3010")


def test_hanging_function_times_out(script: Path, path: str) -> None:
    code, out = run(script, path, "hang", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (50, "E4050")


def test_app_that_cannot_be_imported_again_is_refused(script: Path, path: str) -> None:
    text = APP.replace('app = Tooli("isolated")', 'hidden = [Tooli("isolated")]')
    text = text.replace("@app.", "@hidden[0].").replace("    app()", "    hidden[0]()")
    script.write_text(text)
    code, out = run(script, path, "fail", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (30, "E2006")


def test_argument_of_a_class_of_the_app_is_passed(script: Path, path: str) -> None:
    code, out = run(script, path, "paint", "red", "--json")
    assert (code, json.loads(out).get("result")) == (0, "red"), out


def test_argument_of_a_class_that_is_not_found_is_refused(script: Path, path: str) -> None:
    text = APP.replace("class Colour", 'if "BUBBLEWRAP" in os.environ:\n  class Colour')
    text = text.replace("colour: Colour", "colour: str").replace("is Colour.RED", "")
    text = text.replace(
        'if __name__ == "__main__":\n    app()',
        'if __name__ == "__main__":\n    print(app.call("paint", colour=Colour.RED).error.code)',
    )
    script.write_text(text.replace("def paint(colour: str)", "def paint(colour: object)"))
    assert run(script, path) == (0, b"E2006\n")


def test_only_programs_of_a_path_folder_are_visible(script: Path, path: str) -> None:
    programs = script.parent / "programs"
    programs.mkdir()
    (programs / "hello").write_text(f"#!/bin/sh\n! cat {programs}/notes\n")
    (programs / "hello").chmod(0o755)
    (programs / "notes").write_text("secret")
    folders = f"{programs}:{os.environ['PATH']}"
    code, out = run(script, path, "start", "--json", PATH=folders)
    assert (code, json.loads(out).get("result")) == (0, "1 0 0"), out


@pytest.mark.parametrize("body", ["#!/bin/sh\nexit 1\n", "no program"], ids=["fails", "broken"])
def test_broken_bwrap_fails_required_and_warns_for_optional_isolation(
    script: Path, body: str
) -> None:
    folder = script.parent / "programs"
    folder.mkdir()
    (folder / "bwrap").write_text(body)
    (folder / "bwrap").chmod(0o755)
    code, out = run(script, str(folder), "fail", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (30, "E2006")
    code, out = run(script, str(folder), "read-file", "in/own", "--json", TOOLI_ISOLATION="wanted")
    answer = json.loads(out)
    assert (code, answer["result"], answer["meta"]["enforcement"]) == (0, "own", "seccomp")
    assert any("not isolated" in warning for warning in answer["meta"]["warnings"])


def test_bwrap_on_the_path_is_not_used(script: Path) -> None:
    mark = script.parent / "mark"
    folder = script.parent / "programs"
    folder.mkdir()
    (folder / "bwrap").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (folder / "bwrap").chmod(0o755)
    no_bwrap = str(script.parent)
    code, out = run(script, no_bwrap, "fail", "--json", PATH=f"{folder}:{os.environ['PATH']}")
    assert (code, json.loads(out)["error"]["code"]) == (30, "E2006")
    assert not mark.exists()


# ------------------------------------------------------------------ bwrap replaced by a call


PROGRAM_APP = """
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
    (tmp_path / "bwrapped_app.py").write_text(PROGRAM_APP)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("bwrapped_app")
    yield module.app
    sys.modules.pop("bwrapped_app", None)


def test_value_is_returned_with_enforcement_bwrap(app: Tooli, fake_bwrap: BwrapArgv) -> None:
    result = app.call("add", a=1, b=4)
    assert (result.result, result.meta["enforcement"]) == (5, "bwrap")
    argv = fake_bwrap.read()
    assert argv[1:4] == ["--unshare-all", "--die-with-parent", "--new-session"]
    assert "--share-net" not in argv
    assert argv[argv.index("--") + 1] == sys.executable


def test_enum_argument_and_context_warnings_are_passed(app: Tooli, fake_bwrap: BwrapArgv) -> None:
    result = app.call("name-of", color="red")
    assert (result.result, result.meta["warnings"]) == ("RED", ["careful"])


def test_streamed_items_and_printed_text_are_forwarded(
    app: Tooli, fake_bwrap: BwrapArgv, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(app.stream("count", items=3)) == [0, 1, 2]
    assert capsys.readouterr().out == "counting\n"


def test_exception_of_the_function_is_the_error(app: Tooli, fake_bwrap: BwrapArgv) -> None:
    error = app.call("fail").error
    assert error is not None and error.code == "E3010"


def test_function_knows_the_supported_requests_of_the_client(
    app: Tooli, fake_bwrap: BwrapArgv
) -> None:
    class Client(Peer):
        def supports(self, method: str) -> bool:
            return method == "elicitation/create"

    tool = app.find("supports")
    assert tool is not None
    for peer, expected in ((Client(), [True, False]), (None, [False, False])):
        call, stages = app.prepare(Call(tool, {}, Caller("mcp"), [], Options(), peer=peer))
        outcome = run_call(call, stages)
        assert isinstance(outcome, Ok) and outcome.value == expected, outcome


def test_unrestricted_command_gets_the_root_folder_and_the_network(
    app: Tooli, fake_bwrap: BwrapArgv, tmp_path: Path
) -> None:
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


def test_runner_refuses_to_run_outside_a_worker_process(app: Tooli, tmp_path: Path) -> None:
    fallback = SandboxRunner(None, AllowedAccess(), required=True, temp_dir=str(tmp_path))
    entry = bwrap.AppEntryPoint(None, "m", "app")
    runner = bwrap.BubblewrapRunner("/usr/bin/bwrap", entry, fallback, True)
    tool = app.find("add")
    assert tool is not None
    with pytest.raises(RuntimeError, match="worker process"):
        runner.run(Call(tool, {"a": 1}, Caller("python"), [], Options()))
    with pytest.raises(RuntimeError, match="worker process"):
        fallback.run(Call(tool, {"a": 1}, Caller("python"), [], Options()))


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


def test_arguments_that_cannot_be_pickled_are_refused(app: Tooli, tmp_path: Path) -> None:
    fallback = SandboxRunner(None, AllowedAccess(), required=True, temp_dir=str(tmp_path))
    entry = bwrap.AppEntryPoint(None, "m", "app")
    runner = bwrap.BubblewrapRunner("/usr/bin/bwrap", entry, fallback, True)
    tool = app.find("add")
    assert tool is not None
    with pytest.raises(SandboxUnavailable, match="cannot be passed"):
        runner._write_payload(Call(tool, {"a": lambda: 1}, Caller("python"), [], Options()))


def test_missing_bwrap_is_listed_in_the_error(
    app: Tooli, fake_bwrap: BwrapArgv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bwrap, "BWRAP_DIRS", ())
    error = app.call("add", a=1).error
    assert error is not None
    assert error.details == {"missing": ["no Landlock", "bubblewrap (bwrap) is not installed"]}


def test_app_of_a_script_is_found_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(PROGRAM_APP)
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(file)}
    exec(compile(PROGRAM_APP, str(file), "exec"), names)
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


def test_app_that_is_not_a_global_is_refused() -> None:
    app = Tooli("local")

    @app.command(isolation="required")
    def work() -> int:
        return 1

    with pytest.raises(SandboxUnavailable, match="not a global"):
        bwrap.locate_app(app._state, app.find("work"))


def test_inputs_from_stdin_or_files_need_landlock(app: Tooli) -> None:
    @app.command(isolation="required")
    def read(data: StdinOr[str]) -> str:
        return data.read()

    with pytest.raises(SandboxUnavailable, match="need Landlock"):
        bwrap.locate_app(app._state, app.find("read"))


def test_payload_that_cannot_be_unpacked_is_refused(app: Tooli) -> None:
    payload: Any = {
        "app": bwrap.AppEntryPoint(None, "bwrapped_app", "app"),
        "tool": "add",
        "call": b"pnonsense",
    }
    with pytest.raises(AuthError, match="cannot be unpacked"):
        bwrap._build_call(payload)


def test_program_imports_nothing_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run what bwrap would start, with a tooli.py in the current folder."""
    (tmp_path / "tooli.py").write_text("open('imported', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    runner = object.__new__(bwrap.BubblewrapRunner)
    runner.program = "/usr/bin/bwrap"
    monkeypatch.setattr(bwrap.BubblewrapRunner, "_build_bind_args", lambda self: [])
    argv = runner._build_argv(99)
    program = argv[argv.index("--") + 1 :]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert "Bad file descriptor" in done.stderr  # main() ran, without the payload
    assert not (tmp_path / "imported").exists()
