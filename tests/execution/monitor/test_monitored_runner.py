"""Monitoring and path rules have the same result on every interface."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import pytest
from tests.integration import app_process

from tooli import Output, StdinOr, Tooli
from tooli.execution.monitor import monitored_runner
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.testing import Case, assert_parity
from tooli.testing.app_interfaces import interfaces


class Job(pydantic.BaseModel):
    source: Path
    others: list[Path] = []


@dataclass(slots=True)
class Slotted:
    source: Path


def make(policy: str, inside: Path) -> Tooli:
    app = Tooli("interfaces", version="1.0", security_policy=policy)
    options: dict[str, Any] = {"capabilities": [f"fs:read:{inside}"], "auth": []}

    @app.command(**options)
    def read(path: str) -> str:
        """Read a path."""
        return Path(path).read_text()

    @app.command(**options)
    async def aread(path: str) -> str:
        """Read in async code."""
        await asyncio.sleep(0)
        return Path(path).read_text()

    @app.command(**options)
    def items(path: str) -> Iterator[str]:
        """Read as a stream."""
        yield "first"
        yield Path(path).read_text()

    @app.command(**options)
    async def aitems(path: str) -> AsyncIterator[str]:
        """Read as an async stream."""
        yield "first"
        yield Path(path).read_text()

    @app.command(**options)
    def swallow(path: str) -> str:
        """Read, and ignore an error."""
        try:
            return Path(path).read_text()
        except OSError:
            return "nothing"

    return app


@pytest.fixture
def inside_and_outside(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("inside", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return tmp_path / "inside" / "file", tmp_path / "outside" / "file"


COMMANDS = ("read", "aread", "items", "aitems", "swallow")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("policy", ["off", "standard", "strict"])
def test_policy_applies_on_every_interface(
    policy: str, command: str, inside_and_outside: tuple[Path, Path]
) -> None:
    app = make(policy, inside_and_outside[0].parent)
    allowed = assert_parity(app, Case(command, {"path": str(inside_and_outside[0])}))
    assert allowed["ok"]
    assert "warnings" not in allowed["meta"]
    found = assert_parity(app, Case(command, {"path": str(inside_and_outside[1])}))
    if policy == "strict":
        error = found["error"]
        assert (error["code"], error["details"]["capability"]) == ("E2003", "fs:read")
        assert error["details"]["target"] == str(inside_and_outside[1])
        return
    assert "outside" in str(found["result"])
    assert found["meta"]["enforcement"] == ("none" if policy == "off" else "audit")
    assert len(found["meta"].get("warnings", ())) == (policy == "standard")


class TestPathLists:
    """allow_paths, deny_paths and work_dir apply under every policy."""

    def app(self, policy: str = "standard") -> Tooli:
        app = Tooli("paths", version="1.0", security_policy=policy)

        @app.command(auth=[])
        def one(path: Path) -> str:
            """One path."""
            return path.read_text()

        @app.command(auth=[])
        def many(paths: list[Path]) -> int:
            """Paths."""
            return len([path.read_text() for path in paths])

        @app.command(auth=[])
        def piped(data: StdinOr[str]) -> str:
            """An input."""
            return data

        @app.command(auth=[])
        def write(out: Output) -> str:
            """An output."""
            out.write_text("written")
            return "ok"

        @app.command(auth=[])
        def model(job: Job) -> int:
            """Paths in a model."""
            return len(job.others)

        @app.command(auth=[])
        def text(path: str) -> str:
            """A text that is used as a path."""
            return Path(path).read_text()

        return app

    @pytest.mark.parametrize("policy", ["off", "standard", "strict"])
    @pytest.mark.parametrize(
        ("command", "name", "shape"),
        [
            ("one", "path", "{}"),
            ("many", "paths", "[{}]"),
            ("piped", "data", "{}"),
            ("write", "out", "{}"),
            ("model", "job", "model"),
        ],
    )
    def test_argument_outside_is_refused_before_the_call(
        self,
        policy: str,
        command: str,
        name: str,
        shape: str,
        inside_and_outside: tuple[Path, Path],
    ) -> None:
        app = self.app(policy)
        app._state.security_settings_loaded = True
        app._state.security_settings = {"deny_paths": (str(inside_and_outside[1].parent),)}
        value: Any = str(inside_and_outside[1])
        if shape == "[{}]":
            value = [str(inside_and_outside[0]), value]
        elif shape == "model":
            value = {"source": str(inside_and_outside[0]), "others": [value]}
        found = [
            interface.send_case(Case(command, {name: value}))
            for interface in interfaces(app)
            if interface.surface != "cli"
        ]
        for answer in found:
            assert answer.envelope["error"]["code"] == "E2005", answer
            assert answer.envelope["error"]["field"] == name
        assert inside_and_outside[1].read_text() == "outside"

    @pytest.mark.parametrize("policy", ["off", "standard", "strict"])
    def test_access_outside_is_refused_during_the_call(
        self, policy: str, inside_and_outside: tuple[Path, Path]
    ) -> None:
        app = self.app(policy)
        app._state.security_settings_loaded = True
        app._state.security_settings = {"allow_paths": ((str(inside_and_outside[0].parent),),)}
        assert app.call("text", path=str(inside_and_outside[0])).result == "inside"
        result = app.call("text", path=str(inside_and_outside[1]))
        assert result.error is not None
        assert result.error.code == "E2005"
        assert result.meta["enforcement"] == "audit"

    def test_link_to_the_outside_is_refused(self, inside_and_outside: tuple[Path, Path]) -> None:
        link = inside_and_outside[0].with_name("link")
        link.symlink_to(inside_and_outside[1])
        app = self.app()
        app._state.security_settings_loaded = True
        app._state.security_settings = {"allow_paths": ((str(inside_and_outside[0].parent),),)}
        result = app.call("one", path=link)
        assert result.error is not None
        assert (result.error.code, result.error.field) == ("E2005", "path")

    def test_all_lists_must_allow(self, inside_and_outside: tuple[Path, Path]) -> None:
        app = self.app()
        app._state.security_settings_loaded = True
        root = str(inside_and_outside[0].parent.parent)
        app._state.security_settings = {
            "allow_paths": ((root,), (str(inside_and_outside[0].parent),))
        }
        assert app.call("one", path=inside_and_outside[0]).ok
        assert not app.call("one", path=inside_and_outside[1]).ok

    def test_paths_are_relative_to_work_dir(self, inside_and_outside: tuple[Path, Path]) -> None:
        app = self.app()
        app._state.security_settings_loaded = True
        app._state.security_settings = {"work_dir": str(inside_and_outside[0].parent)}
        here = os.getcwd()
        assert app.call("one", path="file").result == "inside"
        assert app.call("many", paths=["file", "../outside/file"]).result == 2
        assert app.call("piped", data="file").result == "inside"
        assert app.call("write", out="made").ok
        assert inside_and_outside[0].with_name("made").read_text() == "written"
        assert os.getcwd() == here

    def test_dry_run_is_checked(self, inside_and_outside: tuple[Path, Path]) -> None:
        app = self.app()
        app._state.security_settings_loaded = True
        app._state.security_settings = {"deny_paths": (str(inside_and_outside[1].parent),)}
        result = app.call("one", path=inside_and_outside[1], dry_run=True)
        assert result.error is not None and result.error.code == "E2005"

    def test_denied_path_in_a_class_with_slots_is_refused(
        self, inside_and_outside: tuple[Path, Path]
    ) -> None:
        app = self.app()
        app._state.security_settings_loaded = True
        app._state.security_settings = {"deny_paths": (str(inside_and_outside[1].parent),)}
        ran: list[Slotted] = []

        @app.command(auth=[])
        def work(job: Slotted) -> None:
            """Work."""
            ran.append(job)

        result = app.call("work", job=Slotted(inside_and_outside[1]))
        assert result.error is not None and result.error.code == "E2005"
        assert ran == []


APP = """
from pathlib import Path
from tooli import Tooli
app = Tooli("real", security_policy="{policy}")

@app.command(capabilities=["fs:read:./data"], auth=[])
def show(path: Path) -> str:
    "Show."
    return path.read_text()

@app.command(auth=[])
def free(path: str) -> str:
    "Free."
    return open(path).read()

@app.command(auth=[])
def again(path: str) -> str:
    "Through another interface."
    return app.call("show", path=path).unwrap()

if __name__ == "__main__":
    app()
"""


class TestCommandLineProcess:
    """Run the app as a process."""

    def app(self, folder: Path, policy: str = "standard") -> Path:
        (folder / "data").mkdir()
        (folder / "data" / "file").write_text("data")
        (folder / "secret").write_text("secret")
        (folder / "app.py").write_text(APP.format(policy=policy))
        return folder / "app.py"

    def run(self, app: Path, *argv: str, **env: str) -> tuple[int, dict[str, Any]]:
        done = app_process.run(
            app, *argv, "--json", cwd=app.parent, env=app_process.environment(**env)
        )
        assert app_process.is_clean(done.err), done.err
        return done.code, app_process.read_envelope(done.out)

    def test_strict_refuses_undeclared_paths(self, tmp_path: Path) -> None:
        app = self.app(tmp_path, "strict")
        assert self.run(app, "show", "data/file")[1]["result"] == "data"
        code, answer = self.run(app, "show", "secret")
        assert (code, answer["error"]["code"]) == (30, "E2003")

    def test_environment_can_only_restrict(self, tmp_path: Path) -> None:
        app = self.app(tmp_path)
        code, answer = self.run(app, "show", "secret", TOOLI_SECURITY_POLICY="strict")
        assert (code, answer["error"]["code"]) == (30, "E2003")
        (tmp_path / "other").mkdir()
        strict = self.app(tmp_path / "other", "strict")
        code, answer = self.run(strict, "show", "secret", TOOLI_SECURITY_POLICY="off")
        assert (code, answer["error"]["code"]) == (30, "E2003")

    def test_deny_and_allow_lists_apply(self, tmp_path: Path) -> None:
        app = self.app(tmp_path)
        code, answer = self.run(app, "show", "data/file", TOOLI_DENY_PATHS=str(tmp_path / "data"))
        assert (code, answer["error"]["code"], answer["error"]["field"]) == (30, "E2005", "path")
        code, answer = self.run(app, "free", "secret", TOOLI_ALLOW_PATHS="data")
        assert (code, answer["error"]["code"]) == (30, "E2005")
        code, answer = self.run(app, "free", "data/file", TOOLI_ALLOW_PATHS="data")
        assert answer["result"] == "data"

    def test_code_outside_of_the_lists_cannot_be_read(self, tmp_path: Path) -> None:
        """The folder of the script is on sys.path, which does not make it readable."""
        app = self.app(tmp_path)
        (tmp_path / "private.dist-info").mkdir()
        (tmp_path / "private.dist-info" / "METADATA").write_text("Name: x")
        (tmp_path / "private.py").write_text("PASSWORD = 1")
        for name in ("private.py", "private.dist-info/METADATA", "app.py"):
            for setting in ({"TOOLI_DENY_PATHS": name}, {"TOOLI_ALLOW_PATHS": "data"}):
                code, answer = self.run(app, "free", name, **setting)
                assert (code, answer["error"]["code"]) == (30, "E2005")

    @pytest.mark.parametrize(
        "code",
        [
            "import beside; return beside.VALUE",
            "import package.inner; return package.inner.VALUE",
            "import importlib; return importlib.import_module('beside').VALUE",
            "import zipped; return zipped.VALUE",
            "import traceback\n    try: 1/0\n    except Exception: return traceback.format_exc()",
            "import warnings; warnings.warn('x'); return 1",
            "import inspect; return inspect.stack()[0].code_context[0]",
            "import threading; t = threading.Thread(target=lambda: 1/0)\n"
            "    t.start(); t.join(); return 1",
            "import logging\n    try: 1/0\n    except Exception: logging.exception('x'); return 1",
        ],
    )
    def test_lists_do_not_prevent_imports(self, tmp_path: Path, code: str) -> None:
        (tmp_path / "data").mkdir()
        (tmp_path / "beside.py").write_text("VALUE = 1\n")
        (tmp_path / "package").mkdir()
        (tmp_path / "package" / "__init__.py").write_text("")
        (tmp_path / "package" / "inner.py").write_text("VALUE = 1\n")
        with zipfile.ZipFile(tmp_path / "modules.zip", "w") as archive:
            archive.writestr("zipped.py", "VALUE = 1\n")
        app = tmp_path / "app.py"
        app.write_text(
            "from tooli import Tooli\napp = Tooli('x')\n"
            f"@app.command()\ndef go() -> str:\n    {code}\n"
            "if __name__ == '__main__': app()\n"
        )
        env = app_process.environment(
            TOOLI_ALLOW_PATHS="data", PYTHONPATH=str(tmp_path / "modules.zip")
        )
        done = app_process.run(app, "--json", cwd=tmp_path, env=env)
        assert app_process.read_envelope(done.out).get("result"), done.out

    def test_work_dir_must_exist_and_is_the_base_of_paths(self, tmp_path: Path) -> None:
        app = self.app(tmp_path)
        data = str(tmp_path / "data")
        assert self.run(app, "free", "file", TOOLI_WORK_DIR=data)[1]["result"] == "data"
        assert self.run(app, "free", "file", TOOLI_WORK_DIR="data")[1]["result"] == "data"
        code, answer = self.run(app, "free", "file", TOOLI_WORK_DIR=str(tmp_path / "nowhere"))
        assert (code, answer["error"]["code"]) == (2, "E1011")

    def test_lists_do_not_apply_to_framework_storage(self, tmp_path: Path) -> None:
        app = self.app(tmp_path, "strict")
        env = {"TOOLI_ALLOW_PATHS": "data", "TOOLI_STATE_DIR": str(tmp_path / "state")}
        for _ in range(2):  # the second time there is bytecode to read
            code, answer = self.run(app, "again", "data/file", **env)
            assert (code, answer.get("result")) == (0, "data"), answer

    @pytest.mark.parametrize("absolute", [True, False])
    def test_capabilities_and_lists_are_relative_to_work_dir(
        self, tmp_path: Path, absolute: bool
    ) -> None:
        app = self.app(tmp_path, "strict")
        (tmp_path / "work").mkdir()
        (tmp_path / "data").rename(tmp_path / "work" / "data")
        folder = str(tmp_path / "work") if absolute else "work"
        for command in ("show", "again"):
            found = self.run(app, command, "data/file", TOOLI_WORK_DIR=folder)
            assert found[1]["result"] == "data"
        for command in ("show", "free", "again"):
            code, answer = self.run(
                app, command, "data/file", TOOLI_WORK_DIR=folder, TOOLI_DENY_PATHS="data"
            )
            assert (code, answer["error"]["code"]) == (30, "E2005")

    def test_server_with_work_dir_keeps_its_project_settings(self, tmp_path: Path) -> None:
        app = self.app(tmp_path)
        (tmp_path / "data" / ".git").mkdir()
        (tmp_path / ".tooli.yaml").write_text("security_policy: strict\n")
        messages = [
            {"id": 1, "method": "initialize", "params": INITIALIZE_PARAMS},
            {"method": "notifications/initialized"},
            {
                "id": 2,
                "method": "tools/call",
                "params": {"name": "show", "arguments": SHOW_ARGUMENTS},
            },
        ]
        lines = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
        done = app_process.run(
            app,
            *("mcp", "serve"),
            stdin=b"\n".join([*lines, b""]),
            cwd=tmp_path,
            env=app_process.environment(TOOLI_WORK_DIR="data"),
        )
        answer = json.loads(done.out.splitlines()[-1])["result"]
        assert answer["isError"]
        assert "E2003" in answer["content"][0]["text"]

    def test_concurrent_http_calls_are_monitored_separately(self, tmp_path: Path) -> None:
        script = tmp_path / "both.py"
        script.write_text(CONCURRENT_APP)
        done = app_process.run(script, cwd=tmp_path, env=app_process.environment())
        assert done.code == 0, done.err.decode()
        wide, narrow, free = json.loads(done.out)
        assert wide == ["first", "second"]
        assert narrow == "E2003"
        assert free == "second"


INITIALIZE_PARAMS = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
SHOW_ARGUMENTS = {"path": "file"}

CONCURRENT_APP = """
import asyncio, json, os, threading
from pathlib import Path
from tooli import Tooli
import httpx

for name in ("first", "second"):
    Path(name).write_text(name)
here = os.getcwd()
app = Tooli("both", security_policy="strict")
barrier = threading.Barrier(3)

@app.command(capabilities=[f"fs:read:{here}"], auth=[])
def wide() -> list:
    found = [Path("first").read_text()]
    barrier.wait()
    found.append(Path("second").read_text())
    barrier.wait()
    return found

@app.command(capabilities=[f"fs:read:{here}/first"], auth=[])
def narrow() -> str:
    Path("first").read_text()
    barrier.wait()
    try:
        Path("second").read_text()
    except OSError:
        pass
    barrier.wait()
    return "swallowed"

@app.command(auth=[])
def free() -> str:
    barrier.wait()
    text = Path("second").read_text()
    barrier.wait()
    return text

async def main():
    transport = httpx.ASGITransport(app=app.asgi(mcp=False))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answers = await asyncio.gather(
            *[client.post(f"/tools/{name}", json={}) for name in ("wide", "narrow", "free")]
        )
    wide, narrow, free = [answer.json() for answer in answers]
    print(json.dumps([wide.get("result", wide), narrow["error"]["code"], free.get("result", free)]))

asyncio.run(main())
"""


def test_record_has_one_line_per_call(tmp_path: Path) -> None:
    app = TestCommandLineProcess().app(tmp_path)
    record = tmp_path / "record.jsonl"
    for _ in range(2):
        TestCommandLineProcess().run(app, "free", "secret", TOOLI_RECORD_CAPABILITIES=str(record))
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert (
        lines
        == [{"app": "real", "command": "free", "uses": [["fs:read", str(tmp_path / "secret")]]}] * 2
    )
    assert record.stat().st_mode & 0o777 == 0o600


def test_record_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    app = TestCommandLineProcess().app(tmp_path)
    _, answer = TestCommandLineProcess().run(
        app, "free", "secret", TOOLI_RECORD_CAPABILITIES="/no/where"
    )
    assert answer["result"] == "secret"
    assert "were not recorded" in answer["meta"]["warnings"][0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
@pytest.mark.parametrize("kind", ["another file", "link", "pipe", "device"])
def test_record_does_not_change_other_files(kind: str, tmp_path: Path) -> None:
    """Everyone who sets the variables of a process could append to a file of its user."""
    app = TestCommandLineProcess().app(tmp_path)
    victim, record = tmp_path / ".bashrc", tmp_path / "record.jsonl"
    victim.write_text("# settings")
    if kind == "link":
        record.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(record)
    elif kind == "device":
        record.symlink_to("/dev/null")
    path = victim if kind == "another file" else record
    _, answer = TestCommandLineProcess().run(
        app, "free", "secret", TOOLI_RECORD_CAPABILITIES=str(path)
    )
    assert answer["result"] == "secret"
    assert "were not recorded" in answer["meta"]["warnings"][0]
    assert victim.read_text() == "# settings"


def test_recording_does_not_change_the_envelope(tmp_path: Path) -> None:
    app = TestCommandLineProcess().app(tmp_path)
    record = str(tmp_path / "record.jsonl")
    _, answer = TestCommandLineProcess().run(
        app, "show", "secret", TOOLI_RECORD_CAPABILITIES=record
    )
    assert answer["result"] == "secret"
    assert answer["meta"].keys() == {"tool", "duration_ms", "enforcement", "warnings"}


@pytest.mark.skipif(bool(detect_sandbox_support().missing), reason="needs Landlock and seccomp")
def test_calls_in_the_sandbox_are_recorded(
    inside_and_outside: tuple[Path, Path], tmp_path: Path
) -> None:
    record, inside = tmp_path / "record.jsonl", inside_and_outside[0]
    app = Tooli("sandboxed")
    app.command("go", isolation="required", capabilities=[f"fs:read:{inside.parent}"])(
        lambda: inside.read_text()
    )
    app._state.security_settings_loaded = True
    app._state.security_settings = {"record_capabilities": str(record)}
    result = app.call("go")
    assert result.result == "inside"
    assert "violations" not in result.meta
    assert json.loads(record.read_text())["uses"] == [["fs:read", str(inside)]]


@pytest.mark.skipif(bool(detect_sandbox_support().missing), reason="needs Landlock and seccomp")
@pytest.mark.parametrize("isolation", ["required", None])
def test_number_of_recorded_accesses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str | None
) -> None:
    def look() -> None:
        for number in range(1200):
            with contextlib.suppress(OSError):
                os.listdir(tmp_path / str(number))

    record = tmp_path / "record.jsonl"
    app = Tooli("many")
    app.command("go", isolation=isolation, capabilities=[f"fs:read:{tmp_path}"])(look)
    app._state.security_settings_loaded = True
    app._state.security_settings = {"record_capabilities": str(record)}
    assert "warnings" not in app.call("go").meta
    assert len(json.loads(record.read_text())["uses"]) == 1200
    monkeypatch.setattr(monitored_runner, "MAX_RECORDED", 1000)
    assert "only the first 1000" in app.call("go").meta["warnings"][0]


def test_unmonitored_run_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in bubblewrap, where a new interpreter runs the function."""
    record = tmp_path / "record.jsonl"
    app = make("standard", tmp_path)
    app._state.security_settings_loaded = True
    app._state.security_settings = {"record_capabilities": str(record)}
    monkeypatch.setattr(
        "tooli.execution.monitor.monitored_runner.RecordingRunner.run", lambda _, call: "unseen"
    )
    result = app.call("read", path="anything")
    assert result.result == "unseen"
    assert "were not recorded" in result.meta["warnings"][0]
    assert not record.exists()


def test_recording_does_not_allow_access(tmp_path: Path) -> None:
    app = TestCommandLineProcess().app(tmp_path, "strict")
    record = tmp_path / "record.jsonl"
    code, answer = TestCommandLineProcess().run(
        app, "show", "secret", TOOLI_RECORD_CAPABILITIES=str(record)
    )
    assert (code, answer["error"]["code"]) == (30, "E2003")
    assert json.loads(record.read_text())["uses"] == [["fs:read", str(tmp_path / "secret")]]


RECORDED = """
from pathlib import Path
from tooli import Tooli
from tooli.annotations import Destructive, ReadOnly

app = Tooli("shop")

@app.command(annotations=ReadOnly, examples=[{"args": ["data/file"], "description": "one"}])
def show(path: Path) -> str:
    "Show."
    return path.read_text()

@app.command(annotations=Destructive, examples=[{"args": ["x"], "description": "one"}])
def wipe(name: str) -> str:
    "Wipe."
    Path("out").mkdir(exist_ok=True)
    Path("out", name).write_text("x")
    Path("out", name).unlink()
    return "ok"

@app.command(annotations=ReadOnly, requires_approval=True,
             examples=[{"args": [], "description": "one"}])
def asked() -> str:
    "Asked."
    return "ok"

@app.command(annotations=ReadOnly, timeout=60, examples=[{"args": [], "description": "one"}])
def limited() -> int:
    "In a process of its own."
    return sum([len(Path(f"many/{i}").read_text()) for i in range(150)])

if __name__ == "__main__":
    app()
"""


class TestRecordCommand:
    def record(self, folder: Path, *argv: str) -> tuple[int, dict[str, Any]]:
        (folder / "data").mkdir(exist_ok=True)
        (folder / "data" / "file").write_text("data")
        (folder / "many").mkdir(exist_ok=True)
        for i in range(150):
            (folder / "many" / str(i)).touch()
        (folder / "shop.py").write_text(RECORDED)
        launch = folder / "launch.py"
        launch.write_text("from tooli.launcher import main\nmain()\n")
        line = ("capabilities", "record", "shop.py", *argv)
        done = app_process.run(
            launch, *line, cwd=folder, env=app_process.environment(TOOLI_OUTPUT="json")
        )
        return done.code, app_process.read_envelope(done.out)

    def test_only_read_only_examples_run_by_default(self, tmp_path: Path) -> None:
        code, answer = self.record(tmp_path)
        assert code == 0
        assert answer["result"]["commands"] == [
            {
                "command": "show",
                "used": ["fs:read:./data"],
                "paste": 'capabilities=["fs:read:./data"]',
            },
            {
                "command": "limited",
                "used": ["fs:read:./many"],
                "paste": 'capabilities=["fs:read:./many"]',
            },
        ]
        reasons = {row["command"]: row["why"] for row in answer["result"]["not_run"]}
        assert set(reasons) == {"wipe", "asked"}
        assert "--all" in reasons["wipe"]
        assert not (tmp_path / "out").exists()

    def test_all_runs_destructive_examples(self, tmp_path: Path) -> None:
        _, answer = self.record(tmp_path, "--all")
        used = {row["command"]: row["used"] for row in answer["result"]["commands"]}
        assert used["wipe"] == ["fs:delete:./out", "fs:write:./out"]
        assert [row["command"] for row in answer["result"]["not_run"]] == ["asked"]

    def test_calls_of_a_test_program_are_recorded(self, tmp_path: Path) -> None:
        (tmp_path / "tests.py").write_text(
            "from shop import app\nfrom tooli.testing import invoke\n"
            "assert app.call('wipe', name='x', yes=True).ok\n"
            "assert invoke(app, 'show', 'data/file').ok\n"
            "print('to stdout')\n"
        )
        code, answer = self.record(tmp_path, "--", sys.executable, "tests.py")
        assert code == 0
        assert {row["command"] for row in answer["result"]["commands"]} == {"wipe", "show"}
        assert answer["result"]["exit_code"] == 0

    def test_examples_run_in_addition_to_a_test_program(self, tmp_path: Path) -> None:
        _, answer = self.record(
            tmp_path, "--examples", "--", sys.executable, "-c", "raise SystemExit(3)"
        )
        assert [row["command"] for row in answer["result"]["commands"]] == ["show", "limited"]
        assert answer["result"]["exit_code"] == 3

    def test_no_recorded_calls_is_an_error(self, tmp_path: Path) -> None:
        code, answer = self.record(tmp_path, "--", sys.executable, "-c", "pass")
        assert (code, answer["error"]["code"]) == (10, "E3010")

    def test_missing_test_program_is_an_error(self, tmp_path: Path) -> None:
        code, answer = self.record(tmp_path, "--", "no-such-program")
        assert (code, answer["error"]["field"]) == (10, "tests")
