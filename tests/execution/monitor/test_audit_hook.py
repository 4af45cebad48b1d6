"""The access of a monitored command is compared with its declared capabilities."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import contextvars
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tooli import Tooli
from tooli.errors import AuthError
from tooli.execution.monitor import audit_hook, monitored_runner


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.txt"
    file.write_text("secret")
    return file


def make_app(
    fn: Callable[..., Any], *capabilities: str, policy: str = "strict", **options: Any
) -> Tooli:
    """Return an app with one command that declares some capabilities."""
    app = Tooli("monitored", security_policy=policy)
    app.command("go", capabilities=list(capabilities or ("none",)), auth=[], **options)(fn)
    return app


def refusal_details(app: Tooli, **arguments: Any) -> dict[str, Any]:
    """Return the details of the error that refuses a call."""
    result = app.call("go", **arguments)
    assert result.error is not None, result
    assert result.error.code == "E2003", result.error
    assert result.meta["enforcement"] == "audit"
    return dict(result.error.details or {})


# ------------------------------------------------------------------ the three policies


class TestPolicies:
    def test_off_monitors_nothing(self, secret: Path) -> None:
        def go() -> str:
            return secret.read_text()

        result = make_app(go, policy="off").call("go")
        assert result.result == "secret"
        assert result.meta["enforcement"] == "none"
        assert "warnings" not in result.meta

    def test_standard_warns(self, secret: Path) -> None:
        def go() -> str:
            secret.read_text()
            return secret.read_text()

        result = make_app(go, policy="standard").call("go")
        assert result.result == "secret"
        assert result.meta["enforcement"] == "audit"
        warning = f"undeclared: fs:read of {secret}; declare 'fs:read:{secret.parent}'"
        assert result.meta["warnings"] == [warning]

    def test_strict_refuses(self, secret: Path) -> None:
        def go() -> None:
            secret.write_text("other")

        details = refusal_details(make_app(go))
        assert details == {
            "capability": "fs:write",
            "target": str(secret),
            "declaration": f"fs:write:{secret.parent}",
        }
        assert secret.read_text() == "secret"

    def test_caught_refusal_fails_the_call(self, secret: Path) -> None:
        def go() -> str:
            try:
                return secret.read_text()
            except OSError:
                return "nothing happened"

        assert refusal_details(make_app(go))["target"] == str(secret)

    @pytest.mark.parametrize("end", [ValueError, SystemExit])
    def test_refusal_replaces_another_error(self, secret: Path, end: type[BaseException]) -> None:
        def go() -> None:
            try:
                secret.read_text()
            except OSError:
                raise end(0) from None

        refusal_details(make_app(go))

    def test_declared_access_is_allowed(self, secret: Path) -> None:
        def go() -> str:
            return secret.read_text()

        result = make_app(go, f"fs:read:{secret.parent}").call("go")
        assert result.result == "secret"
        assert "warnings" not in result.meta

    def test_command_without_capabilities_is_not_monitored(self, secret: Path) -> None:
        app = Tooli("free")
        app.command("go")(lambda: secret.read_text())
        app.command("stay")(lambda: None)
        result = app.call("go")
        assert result.result == "secret"
        assert "enforcement" not in result.meta

    def test_permissions_apply_without_capabilities(self, secret: Path) -> None:
        app = Tooli("under", permissions={"network": "read"}, security_policy="strict")
        app.command("go", auth=[])(lambda: secret.read_text())
        app.command("stay")(lambda: None)
        assert refusal_details(app)["capability"] == "fs:read"

    @pytest.mark.parametrize("options", [{}, {"timeout": 60}], ids=["here", "in a process"])
    @pytest.mark.parametrize("policy", ["standard", "strict"])
    def test_violation_is_logged(self, secret: Path, policy: str, options: dict[str, Any]) -> None:
        result = make_app(lambda: secret.read_text(), policy=policy, **options).call("go")
        assert "violations" not in result.meta
        assert self.logged_violations() == [("fs:read", str(secret), "E2003")]

    @pytest.mark.parametrize("options", [{}, {"timeout": 60}], ids=["here", "in a process"])
    def test_violation_is_logged_after_an_interrupt(
        self, secret: Path, options: dict[str, Any]
    ) -> None:
        def go() -> None:
            with contextlib.suppress(OSError):
                secret.read_text()
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            make_app(go, **options).call("go")
        assert self.logged_violations() == [("fs:read", str(secret), "E2003")]

    @pytest.mark.parametrize("kind", ["function", "coroutine", "stream", "death"])
    @pytest.mark.parametrize("policy", ["standard", "strict"])
    def test_violation_is_logged_if_the_call_is_stopped(
        self, secret: Path, policy: str, kind: str
    ) -> None:
        """A call that is killed or cancelled has its violations in the audit log."""

        def look() -> None:
            with contextlib.suppress(OSError):
                secret.read_text()

        def function() -> None:
            look()
            threading.Event().wait()

        async def coroutine() -> None:
            look()
            await asyncio.Event().wait()

        def stream() -> Iterator[int]:
            yield 1
            look()
            threading.Event().wait()
            yield 2

        def death() -> None:
            look()
            os._exit(0)

        fn = {"function": function, "coroutine": coroutine, "stream": stream, "death": death}[kind]
        app = make_app(fn, policy=policy, timeout=60 if kind == "death" else 2)
        if kind == "coroutine":
            result = asyncio.run(app.acall("go"))
        else:
            result = app.call("go")
        assert result.error is not None
        if policy == "strict":
            assert result.error.code == "E2003"
            assert (result.error.details or {})["target"] == str(secret)
        else:
            assert result.error.code == ("E4051" if kind == "death" else "E4050")
            assert len([one for one in result.meta["warnings"] if "undeclared" in one]) == 1
        assert "violations" not in result.meta
        assert self.logged_violations() == [("fs:read", str(secret), "E2003")]

    @pytest.fixture(autouse=True)
    def state(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))

    def logged_violations(self) -> list[tuple[str, str, str]]:
        from tooli.storage.audit_log import get_log_path
        from tooli.storage.audit_reader import read_last_records

        lines = [
            line
            for line in read_last_records(get_log_path("monitored"), 10)
            if line["event"] == "violation"
        ]
        return [(line["capability"], line["target"], line["code"]) for line in lines]

    def test_number_of_violations_is_limited(self, tmp_path: Path) -> None:
        def go() -> None:
            for i in range(300):
                (tmp_path / str(i)).write_text("x")

        result = make_app(go, policy="standard").call("go")
        *shown, rest = result.meta["warnings"]
        assert [one.split(";")[0] for one in shown] == [
            f"undeclared: fs:write of {tmp_path / str(i)}" for i in range(3)
        ]
        count = audit_hook.MAX_VIOLATIONS - 3
        assert rest == f"{count} more warnings that begin with 'undeclared: fs:write'"
        assert len(self.logged_violations()) == 10


# ------------------------------------------------------------------ actions


def _actions(folder: Path) -> dict[str, tuple[str, Callable[[], Any]]]:
    file, other, empty = folder / "file", folder / "other", folder / "empty"
    return {
        "open": ("fs:read", lambda: open(file).close()),
        "open bytes": ("fs:read", lambda: open(os.fsencode(file), "rb").close()),
        "os.open": ("fs:read", lambda: os.open(file, os.O_RDONLY)),
        "listdir": ("fs:read", lambda: os.listdir(folder)),
        "scandir": ("fs:read", lambda: list(os.scandir(folder))),
        "write": ("fs:write", lambda: open(file, "w")),
        "append": ("fs:write", lambda: open(file, "a")),
        "update": ("fs:write", lambda: open(file, "r+")),
        "create": ("fs:write", lambda: open(other, "x")),
        "os.open to write": ("fs:write", lambda: os.open(file, os.O_WRONLY)),
        "mkdir": ("fs:write", lambda: os.mkdir(other)),
        "rename": ("fs:delete", lambda: os.rename(file, other)),
        "replace": ("fs:delete", lambda: os.replace(file, other)),
        "link": ("fs:read", lambda: os.link(file, other)),
        "symlink": ("fs:write", lambda: os.symlink(file, other)),
        "truncate": ("fs:write", lambda: os.truncate(file, 0)),
        "chmod": ("fs:write", lambda: os.chmod(file, 0o600)),
        "chown": ("fs:write", lambda: os.chown(file, os.getuid(), os.getgid())),
        "utime": ("fs:write", lambda: os.utime(file)),
        "remove": ("fs:delete", lambda: os.remove(file)),
        "rmdir": ("fs:delete", lambda: os.rmdir(empty)),
        "rmtree": ("fs:delete", lambda: __import__("shutil").rmtree(empty)),
        "sqlite": ("fs:read", lambda: __import__("sqlite3").connect(other)),
        "run": ("proc:spawn", lambda: subprocess.run(["true"], check=True)),
        "system": ("proc:spawn", lambda: os.system("true")),
        "popen": ("proc:spawn", lambda: os.popen("true").close()),
        "posix_spawn": ("proc:spawn", lambda: os.posix_spawn("/bin/true", ["true"], {})),
        "connect": ("net:read", lambda: socket.create_connection(("127.0.0.1", 9), 1)),
        "bind": ("net:read", lambda: socket.create_server(("127.0.0.1", 0)).close()),
        "getaddrinfo": ("net:read", lambda: socket.getaddrinfo("localhost", 1)),
        "gethostbyname": ("net:read", lambda: socket.gethostbyname("localhost")),
        "ctypes": ("proc:spawn", lambda: __import__("ctypes").CDLL(None)),
        "setenv": ("env:write", lambda: os.environ.__setitem__("TEST_OF_MONITOR", "1")),
        "unsetenv": ("env:write", lambda: os.unsetenv("TEST_OF_MONITOR")),
    }


@pytest.mark.parametrize("action", _actions(Path()))
class TestActions:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "file").write_text("content")
        (tmp_path / "empty").mkdir()
        return tmp_path

    def test_undeclared_action_is_refused(self, action: str, folder: Path) -> None:
        capability, do = _actions(folder)[action]
        before = sorted(folder.iterdir())
        assert refusal_details(make_app(lambda: do() and None))["capability"] == capability
        assert sorted(folder.iterdir()) == before
        assert (folder / "file").read_text() == "content"

    def test_declared_action_is_allowed(self, action: str, folder: Path) -> None:
        if action in (
            "connect",
            "os.open",
            "os.open to write",
            "write",
            "append",
            "update",
            "create",
        ):
            pytest.skip("leaves a file open, or needs a server")
        capability, do = _actions(folder)[action]
        capabilities = (
            [capability, "fs:read", "fs:write"]
            if action in ("link", "sqlite", "rename", "replace")
            else [capability]
        )
        capabilities += ["fs:read"] if action == "posix_spawn" else []

        def go() -> None:
            done = do()
            if hasattr(done, "close"):
                done.close()
            if action == "posix_spawn":
                os.waitpid(done, 0)

        result = make_app(go, *dict.fromkeys(capabilities)).call("go")
        assert result.ok, result.error


def test_suggested_declaration_is_a_relative_folder_if_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)

    def declaration(path: str) -> str:
        return monitored_runner.suggest_declaration(audit_hook.Violation("fs:read", path, "E2003"))

    here = os.path.realpath(tmp_path)
    assert declaration(f"{here}/file") == "fs:read:./file"
    assert declaration(f"{here}/inner/file") == declaration(f"{here}/inner") == "fs:read:./inner"
    assert declaration("/elsewhere/file") == "fs:read:/elsewhere"
    assert declaration(here) == "fs:read:."


class TestPaths:
    def test_links_and_dots_are_followed(self, tmp_path: Path) -> None:
        inside, outside = tmp_path / "in", tmp_path / "out"
        inside.mkdir()
        outside.mkdir()
        (outside / "file").write_text("x")
        (inside / "link").symlink_to(outside / "file")
        (inside / "folder").symlink_to(outside)
        for name in ("link", "folder/file", "../out/file", "./../out/./file"):
            app = make_app(lambda name=name: (inside / name).open().close(), f"fs:read:{inside}")
            assert refusal_details(app)["target"] == str(outside / "file")

    def test_link_to_a_declared_path_is_allowed(self, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "file").write_text("x")
        (tmp_path / "link").symlink_to(tmp_path / "in")
        app = make_app(lambda: (tmp_path / "link/file").read_text(), f"fs:read:{tmp_path}/in")
        assert app.call("go").result == "x"

    def test_link_is_removed_and_not_its_target(self, tmp_path: Path, secret: Path) -> None:
        inside = tmp_path / "in"
        inside.mkdir()
        (inside / "link").symlink_to(secret)
        assert make_app(lambda: (inside / "link").unlink(), f"fs:delete:{inside}").call("go").ok
        assert secret.exists()

    def test_created_files_may_be_deleted(self, tmp_path: Path) -> None:
        def go() -> None:
            with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
                Path(folder, "file").write_text("x")
                Path(folder, "inner").mkdir()
            fd, name = tempfile.mkstemp(dir=tmp_path)
            os.close(fd)
            os.remove(name)

        result = make_app(go, f"fs:write:{tmp_path}").call("go")
        assert result.ok, result.error
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("mode", ["w", "a", "x"])
    def test_created_files_may_be_renamed(self, tmp_path: Path, mode: str) -> None:
        def go() -> None:
            with open(tmp_path / "draft", mode) as file:
                file.write("new")
            os.replace(tmp_path / "draft", tmp_path / "final")
            os.rename(tmp_path / "final", tmp_path / "again")
            os.remove(tmp_path / "again")

        result = make_app(go, f"fs:write:{tmp_path}").call("go")
        assert result.ok, result.error
        assert list(tmp_path.iterdir()) == []

    def test_replaced_file_does_not_count_as_created(self, tmp_path: Path) -> None:
        def go() -> None:
            (tmp_path / "draft").write_text("new")
            os.replace(tmp_path / "draft", tmp_path / "final")
            os.remove(tmp_path / "final")

        (tmp_path / "final").write_text("old")
        details = refusal_details(make_app(go, f"fs:write:{tmp_path}"))
        assert details["capability"] == "fs:delete"
        assert (tmp_path / "final").read_text() == "new"

    def test_moving_a_file_away_needs_delete(self, tmp_path: Path, secret: Path) -> None:
        def go() -> None:
            (tmp_path / "made").mkdir()
            os.rename(secret, tmp_path / "made" / "moved")
            shutil.rmtree(tmp_path / "made")

        details = refusal_details(make_app(go, f"fs:write:{tmp_path}"))
        assert (details["capability"], details["target"]) == ("fs:delete", str(secret))
        assert secret.exists()

    def test_existing_files_may_not_be_deleted(self, tmp_path: Path, secret: Path) -> None:
        app = make_app(lambda: secret.unlink(), f"fs:write:{tmp_path}")
        assert refusal_details(app)["capability"] == "fs:delete"

    @pytest.mark.parametrize("way", ["makedirs", "mkdir", "open x", "os.open"])
    def test_existing_files_do_not_count_as_created(self, tmp_path: Path, way: str) -> None:
        folder = tmp_path / "out"
        folder.mkdir()
        file = folder / "precious"
        file.write_text("x")
        attempts: dict[str, Callable[[], Any]] = {
            "makedirs": lambda: os.makedirs(folder, exist_ok=True),
            "mkdir": lambda: folder.mkdir(exist_ok=True),
            "open x": lambda: file.open("x"),
            "os.open": lambda: os.close(os.open(file, os.O_RDWR | os.O_EXCL)),
        }

        def go() -> None:
            with contextlib.suppress(FileExistsError):
                attempts[way]()
            file.unlink()

        assert refusal_details(make_app(go, f"fs:write:{tmp_path}"))["capability"] == "fs:delete"
        assert file.exists()

    def test_o_excl_without_o_creat_follows_links(self, tmp_path: Path, secret: Path) -> None:
        inside = tmp_path / "in"
        inside.mkdir()
        (inside / "link").symlink_to(secret)
        app = make_app(
            lambda: os.open(inside / "link", os.O_RDWR | os.O_EXCL), f"fs:write:{inside}"
        )
        assert refusal_details(app)["target"] == str(secret)

    def test_link_changed_between_calls_is_resolved_again(self, tmp_path: Path) -> None:
        """A link that changes, as in a deployment: the next call uses its new target."""
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "file").write_text(name)
        link = tmp_path / "current"
        link.symlink_to("one")
        released = make_app(lambda: (link / "file").read_text(), f"fs:read:{link}")
        pinned = make_app(lambda: (link / "file").read_text(), f"fs:read:{tmp_path}/one")
        assert released.call("go").result == pinned.call("go").result == "one"
        subprocess.run(["ln", "-sfn", "two", str(link)], check=True)
        assert released.call("go").result == "two"
        assert refusal_details(pinned)["target"] == str(tmp_path / "two" / "file")

    def test_link_changed_during_a_call_is_refused(self, tmp_path: Path, secret: Path) -> None:
        inside, reads = tmp_path / "in", []
        (inside / "folder").mkdir(parents=True)
        (inside / "folder" / secret.name).write_text("harmless")

        def replace_folder() -> None:
            with audit_hook.unmonitored():  # as another process would
                (inside / "folder").rename(inside / "away")
                (inside / "folder").symlink_to(tmp_path)

        def go() -> None:
            reads.append((inside / "folder" / secret.name).read_text())
            replace_folder()
            reads.append((inside / "folder" / secret.name).read_text())

        assert refusal_details(make_app(go, f"fs:read:{inside}"))["target"] == str(secret)
        assert reads == ["harmless"]

    @pytest.mark.skipif(os.name == "nt", reason="they are devices on Windows")
    def test_windows_device_names_are_files(
        self, tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "nul").symlink_to(secret)
        monkeypatch.chdir(tmp_path)
        assert refusal_details(make_app(lambda: open("nul").close()))["target"] == str(secret)

    def test_paths_of_new_files_are_resolved(self, tmp_path: Path) -> None:
        inside, outside = tmp_path / "in", tmp_path / "out"
        inside.mkdir()
        outside.mkdir()
        (inside / "dangling").symlink_to(outside / "new")
        (inside / "folder").symlink_to(outside)
        for name in ("dangling", "folder/new", "../out/new"):
            app = make_app(lambda name=name: (inside / name).write_text("x"), f"fs:write:{inside}")
            assert refusal_details(app)["target"] == str(outside / "new")
        assert (
            make_app(lambda: (inside / "new").write_text("x"), f"fs:write:{inside}").call("go").ok
        )

    def test_path_with_the_same_text_prefix_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        (tmp_path / "database").write_text("x")
        app = make_app(lambda: (tmp_path / "database").read_text(), f"fs:read:{tmp_path}/data")
        refusal_details(app)

    def test_open_file_can_be_read(self, secret: Path) -> None:
        with secret.open() as file:
            assert make_app(lambda: file.read()).call("go").result == "secret"

    def test_path_with_a_null_byte_keeps_the_error_of_python(self) -> None:
        result = make_app(lambda: open("a\0b")).call("go")
        assert result.error is not None
        assert "null byte" in result.error.message

    def test_path_relative_to_a_descriptor_is_resolved(self, tmp_path: Path, secret: Path) -> None:
        folder = os.open(tmp_path, os.O_RDONLY)
        try:
            app = make_app(lambda: os.remove("secret.txt", dir_fd=folder))
            assert refusal_details(app)["target"] == str(secret)
        finally:
            os.close(folder)


class TestDatabases:
    """A URI is parsed as SQLite parses it."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name in ("in/db", "out/db", "in/%2E%2E"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            with contextlib.closing(sqlite3.connect(tmp_path / name)) as base:
                base.execute("create table t (x)")
        return tmp_path

    def app(self, folder: Path, uri: str, *capabilities: str) -> Tooli:
        def go() -> int:
            with contextlib.closing(sqlite3.connect(uri, uri=True)) as base:
                return len(base.execute("select * from sqlite_master").fetchall())

        return make_app(go, *(capabilities or (f"fs:read:{folder}/in", f"fs:write:{folder}/in")))

    @pytest.mark.parametrize(
        "uri",
        [
            "file:{}/in/%2E%2E/out/db",
            "file:{}/in/%2e./out/db?mode=ro",
            "file://{}/out/db",
            "file://localhost{}/out/db",
            "file:{}/out/db?x=mode=memory",
            "file:{}/out/db?x=mode=memory&mode=ro",
            "file:{}/out/db?mode=memory&mode=rw",
            "file:{}/out/db#?mode=memory",
            "file:{}/out/db%00/../../in/db",
        ],
    )
    def test_uri_of_an_undeclared_file_is_refused(self, folder: Path, uri: str) -> None:
        found = refusal_details(self.app(folder, uri.format(folder)))
        assert found["target"] == str(folder / "out" / "db")

    @pytest.mark.parametrize(
        "uri",
        [
            "file:{}/in/db",
            "file:{}/in/d%62?mode=rw&cache=private",
            "file:{}/in/%252E%252E?mode=ro",
            "file:anything?mode=memory",
            "file:anything?%6Dode=memor%79",
            "file::memory:?cache=shared",
        ],
    )
    def test_uri_of_a_declared_file_or_memory_is_allowed(self, folder: Path, uri: str) -> None:
        result = self.app(folder, uri.format(folder)).call("go")
        assert result.ok, result.error

    def test_read_only_uri_needs_no_write_capability(self, folder: Path) -> None:
        read_only = f"fs:read:{folder}/in"
        assert self.app(folder, f"file:{folder}/in/db?mode=ro", read_only).call("go").ok
        found = refusal_details(self.app(folder, f"file:{folder}/in/db?x=mode=ro", read_only))
        assert found["capability"] == "fs:write"

    def test_file_whose_name_is_a_uri_is_refused(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        (folder / "file:x?mode=memory").symlink_to(folder / "out" / "db")
        app = make_app(lambda: sqlite3.connect("file:x?mode=memory").close())
        assert refusal_details(app)["target"] == str(folder / "out" / "db")


class TestSignals:
    def test_signal_to_another_process_needs_a_capability(self) -> None:
        with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
            one = make_app(lambda: os.kill(other.pid, signal.SIGTERM))
            group = make_app(lambda: os.killpg(other.pid, signal.SIGTERM))
            assert (
                refusal_details(one)["capability"]
                == refusal_details(group)["capability"]
                == "proc:spawn"
            )
            assert other.poll() is None
            allowed = make_app(lambda: os.kill(other.pid, signal.SIGKILL), "proc:spawn")
            assert allowed.call("go").ok
        assert other.returncode == -signal.SIGKILL

    def test_signal_to_the_own_process_is_allowed(self) -> None:
        def go() -> None:
            os.kill(os.getppid(), 0)  # signal 0 sends nothing
            os.kill(os.getpid(), signal.SIGURG)

        assert make_app(go).call("go").ok


class TestImplicitAccess:
    """Access that needs no declaration, because the command does not cause it."""

    @pytest.mark.parametrize(
        "code",
        [
            "import wave, colorsys, xml.dom.minidom",
            "import zoneinfo; zoneinfo.ZoneInfo('Europe/Berlin')",
            "import importlib.metadata; importlib.metadata.version('pytest')",
            "import ssl; ssl.create_default_context()",
            "import mimetypes; mimetypes.guess_type('a.txt')",
            "import asyncio; asyncio.run(asyncio.sleep(0))",
            "import ctypes",
            "import os; open(os.devnull, 'w').close(); os.urandom(3)",
            "import sqlite3; sqlite3.connect(':memory:').close()",
            "import traceback\ntry: 1/0\nexcept Exception: traceback.format_exc()",
            "import locale, gettext; gettext.translation('x', fallback=True)",
            "import multiprocessing; multiprocessing.Lock()",
            "import beside",
        ],
    )
    def test_implicit_access_is_allowed(self, code: str, tmp_path: Path) -> None:
        (tmp_path / "beside.py").write_text("VALUE = 1\n")
        (tmp_path / "app.py").write_text(
            "from tooli import Tooli\napp = Tooli('x', security_policy='strict')\n"
            f"@app.command(capabilities=['none'], auth=[])\ndef go() -> int:\n"
            f"    exec({code!r})\n    return 1\n"
            "app()\n"
        )
        done = subprocess.run(
            [sys.executable, "app.py", "--json"],
            cwd=tmp_path,
            capture_output=True,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            check=False,
        )
        answer = json.loads(done.stdout)
        assert answer["ok"], answer
        assert "warnings" not in answer["meta"]

    def test_data_beside_the_app_is_not_code(self, tmp_path: Path) -> None:
        (tmp_path / "data.txt").write_text("x")
        (tmp_path / "app.py").write_text(
            "from tooli import Tooli\napp = Tooli('x', security_policy='strict')\n"
            "@app.command(capabilities=['none'], auth=[])\ndef go() -> str:\n"
            "    return open('data.txt').read()\n"
            "app()\n"
        )
        done = subprocess.run(
            [sys.executable, "app.py", "--json"], cwd=tmp_path, capture_output=True, check=False
        )
        assert json.loads(done.stdout)["error"]["details"]["declaration"] == "fs:read:./data.txt"
        assert done.returncode == 30


# ------------------------------------------------------------------ threads, tasks, streams


class TestThreads:
    def test_thread_is_monitored(self, secret: Path) -> None:
        def go() -> None:
            with ThreadPoolExecutor(1) as pool:
                assert isinstance(pool.submit(secret.read_text).exception(), PermissionError)

        refusal_details(make_app(go))

    def test_thread_of_a_thread_is_monitored(self, secret: Path) -> None:
        seen: list[BaseException] = []

        def read() -> None:
            try:
                secret.read_text()
            except PermissionError as failure:
                seen.append(failure)

        def middle() -> None:
            inner = threading.Thread(target=read)
            inner.start()
            inner.join()

        def go() -> None:
            thread = threading.Thread(target=middle)
            thread.start()
            thread.join()

        refusal_details(make_app(go))
        assert len(seen) == 1

    def test_thread_stays_monitored_after_the_call(self, secret: Path) -> None:
        over, seen = threading.Event(), []

        def read() -> None:
            over.wait()
            try:
                seen.append(secret.read_text())
            except PermissionError:
                seen.append("refused")

        threads: list[threading.Thread] = []

        def go() -> None:
            threads.append(threading.Thread(target=read))
            threads[0].start()

        assert make_app(go).call("go").ok
        over.set()
        threads[0].join()
        assert seen == ["refused"]

    @pytest.mark.parametrize("start", ["call", "thread", "pool", "raw", "context"])
    @pytest.mark.parametrize("timeout", [None, 60.0])
    def test_nested_call_has_the_limits_of_both(
        self, secret: Path, start: str, timeout: float | None
    ) -> None:
        def go() -> str:
            seen: list[Any] = []

            def call_inner() -> None:
                seen.append(app.call("inner").result)

            if start == "thread":
                thread = threading.Thread(target=call_inner)
                thread.start()
                thread.join()
            elif start == "pool":
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(call_inner).result()
            elif start == "raw":
                done = _thread.allocate_lock()
                done.acquire()
                _thread.start_new_thread(lambda: (call_inner(), done.release()), ())
                done.acquire()
            elif start == "context":
                contextvars.Context().run(call_inner)
            else:
                call_inner()
            return str(seen)

        app = make_app(go)
        app.command("inner", capabilities=["fs:read"], auth=[], timeout=timeout)(
            lambda: secret.read_text()
        )
        assert app.call("inner").result == "secret"
        result = app.call("go")
        assert "secret" not in str(result.result)
        if timeout is None:  # otherwise the refusal happens in another process
            assert result.error is not None and result.error.code == "E2003"

    def test_other_threads_are_not_monitored(self, secret: Path) -> None:
        inside, done, seen = threading.Event(), threading.Event(), []

        def other() -> None:
            inside.wait()
            seen.append(secret.read_text())
            done.set()

        thread = threading.Thread(target=other)
        thread.start()

        def go() -> None:
            inside.set()
            done.wait()

        assert make_app(go).call("go").ok
        thread.join()
        assert seen == ["secret"]

    def test_shared_pool_is_not_monitored_after_the_call(self, secret: Path) -> None:
        with ThreadPoolExecutor(1) as pool:
            assert make_app(lambda: pool.submit(len, "x").result()).call("go").ok
            assert pool.submit(secret.read_text).result() == "secret"

    def test_function_run_in_an_empty_context_is_monitored(self, secret: Path) -> None:
        refusal_details(make_app(lambda: contextvars.Context().run(secret.read_text)))


class TestAsync:
    def test_coroutine_is_monitored(self, secret: Path) -> None:
        async def go() -> str:
            await asyncio.sleep(0)
            return secret.read_text()

        refusal_details(make_app(go))
        result = asyncio.run(make_app(go).acall("go"))
        assert result.error is not None and result.error.code == "E2003"

    def test_task_of_a_coroutine_is_monitored(self, secret: Path) -> None:
        async def go() -> None:
            async def read() -> None:
                await asyncio.sleep(0)
                secret.read_text()

            await asyncio.gather(asyncio.create_task(read()), return_exceptions=True)

        result = asyncio.run(make_app(go).acall("go"))
        assert result.error is not None and result.error.code == "E2003"

    def test_thread_of_a_coroutine_is_monitored(self, secret: Path) -> None:
        async def go() -> None:
            await asyncio.gather(asyncio.to_thread(secret.read_text), return_exceptions=True)

        result = asyncio.run(make_app(go).acall("go"))
        assert result.error is not None and result.error.code == "E2003"

    def test_sync_function_on_a_loop_is_monitored(self, secret: Path) -> None:
        result = asyncio.run(make_app(lambda: secret.read_text()).acall("go"))
        assert result.error is not None and result.error.code == "E2003"

    def test_other_tasks_are_not_monitored(self, secret: Path) -> None:
        async def both() -> None:
            started = asyncio.Event()

            async def go() -> str:
                started.set()
                await asyncio.sleep(0.001)
                return "done"

            async def other() -> str:
                await started.wait()
                return secret.read_text()

            free = Tooli("free")
            free.command("read")(lambda: secret.read_text())
            free.command("stay")(lambda: None)
            monitored, other_result, unmonitored = await asyncio.gather(
                make_app(go).acall("go"), other(), free.acall("read")
            )
            assert (monitored.result, other_result, unmonitored.result) == (
                "done",
                "secret",
                "secret",
            )

        asyncio.run(both())

    def test_cancellation_reaches_the_function(self) -> None:
        ended: list[str] = []

        async def go() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("cancelled")

        async def stop() -> None:
            task = asyncio.create_task(make_app(go).acall("go"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(stop())
        assert ended == ["cancelled"]

    def test_values_and_errors_are_unchanged(self) -> None:
        async def go(fail: bool = False) -> int:
            async def inner() -> int:
                await asyncio.sleep(0)
                if fail:
                    raise ValueError("mine")
                return 7

            return await asyncio.wait_for(inner(), 10)

        app = make_app(go)
        assert asyncio.run(app.acall("go")).result == 7
        failed = asyncio.run(app.acall("go", fail=True))
        assert failed.error is not None and "mine" in failed.error.message


class TestStreams:
    def test_every_step_is_monitored(self, secret: Path) -> None:
        closed: list[bool] = []

        def go() -> Iterator[int]:
            try:
                yield 1
                yield 2
                secret.read_text()
                yield 3
            finally:
                closed.append(True)

        received: list[int] = []
        with pytest.raises(AuthError) as failure:
            received.extend(make_app(go).stream("go"))
        assert failure.value.code == "E2003"
        assert failure.value.details is not None
        assert failure.value.details["items_before_failure"] == 2
        assert closed == [True]

    def test_caller_is_not_monitored_between_steps(self, secret: Path) -> None:
        def go() -> Iterator[int]:
            yield 1
            yield 2

        for _ in make_app(go).stream("go"):
            assert secret.read_text() == "secret"
        assert not audit_hook._active_monitors
        assert not audit_hook._thread_monitors

    def test_early_exit_ends_the_monitoring(self, secret: Path) -> None:
        def go() -> Iterator[int]:
            yield from range(10)

        stream = make_app(go).stream("go")
        assert next(stream) == 0
        stream.close()
        assert not audit_hook._active_monitors

    def test_every_async_step_is_monitored(self, secret: Path) -> None:
        async def go() -> AsyncIterator[int]:
            yield 1
            await asyncio.sleep(0)
            secret.read_text()
            yield 2

        async def take() -> list[int]:
            received: list[int] = []
            try:
                async for item in make_app(go).astream("go"):
                    received.append(item)
            except AuthError as failure:
                assert failure.code == "E2003"
                return received
            raise AssertionError

        assert asyncio.run(take()) == [1]
        refusal_details(make_app(go))
        assert not audit_hook._active_monitors

    def test_standard_continues_the_stream(self, secret: Path) -> None:
        def go() -> Iterator[str]:
            yield "first"
            yield secret.read_text()

        result = make_app(go, policy="standard").call("go")
        assert result.result == ["first", "secret"]
        assert len(result.meta["warnings"]) == 1


def test_interrupt_ends_the_monitoring(secret: Path) -> None:
    def go() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_app(go).call("go")
    assert not audit_hook._active_monitors
    assert not audit_hook._thread_monitors
    assert secret.read_text() == "secret"


class TestNesting:
    def app(self, secret: Path) -> Tooli:
        app = Tooli("nest", security_policy="strict")

        @app.command(capabilities=[f"fs:read:{secret.parent}"], auth=[])
        def outer(inner: str) -> Any:
            before = secret.read_text()
            found = app.call(inner)
            return [before, found.result, found.error and found.error.code, secret.read_text()]

        @app.command(capabilities=["none"], auth=[])
        def narrow() -> str:
            return secret.read_text()

        @app.command(capabilities=["fs:read", "fs:write"], auth=[])
        def wide() -> str:
            secret.with_name("made").write_text("x")
            return "made"

        @app.command(auth=[])
        def free() -> str:
            return secret.read_text()

        return app

    def test_inner_monitor_applies(self, secret: Path) -> None:
        result = self.app(secret).call("outer", inner="narrow")
        assert result.result == ["secret", None, "E2003", "secret"]

    def test_outer_monitor_applies(self, secret: Path) -> None:
        result = self.app(secret).call("outer", inner="wide")
        assert result.error is not None
        assert (result.error.details or {})["capability"] == "fs:write"
        assert not secret.with_name("made").exists()

    def test_outer_monitor_allows_an_unmonitored_command(self, secret: Path) -> None:
        result = self.app(secret).call("outer", inner="free")
        assert result.result == ["secret", "secret", None, "secret"]

    def test_no_monitor_remains(self, secret: Path) -> None:
        self.app(secret).call("outer", inner="narrow")
        assert secret.read_text() == "secret"
        assert not audit_hook._active_monitors
        assert not audit_hook._thread_monitors


def test_unmonitored_section_is_not_refused(secret: Path) -> None:
    def go() -> str:
        with audit_hook.unmonitored():
            return secret.read_text()

    assert make_app(go).call("go").result == "secret"


FORBIDDEN = """
import sys
def forbid(event, args):
    if event == "sys.addaudithook":
        raise RuntimeError
sys.addaudithook(forbid)
from tooli import Tooli
app = Tooli("x", security_policy="{}")
@app.command(capabilities=["none"], auth=[])
def go() -> int:
    open("ran", "w").close()
    return 1
app()
"""


@pytest.mark.parametrize("policy", ["standard", "strict"])
def test_hook_rejected_by_another_hook_fails_strict_calls_only(tmp_path: Path, policy: str) -> None:
    """The strict policy rejects the call, the standard policy warns."""
    (tmp_path / "app.py").write_text(FORBIDDEN.format(policy))
    done = subprocess.run(
        [sys.executable, "app.py", "--json"], cwd=tmp_path, capture_output=True, check=False
    )
    answer = json.loads(done.stdout)
    assert answer["ok"] is (policy == "standard")
    assert (tmp_path / "ran").exists() is (policy == "standard")
    message = answer["error"]["message"] if policy == "strict" else answer["meta"]["warnings"][0]
    assert "monitored: another audit hook" in message


class TestConcurrentCalls:
    """Each call is restricted to its own declaration."""

    def app(self, root: Path) -> Tooli:
        app = Tooli("many", security_policy="strict")
        for name in ("a", "b"):
            (root / name).mkdir()
            (root / name / "file").write_text(name)
            capabilities = [f"fs:read:{root}/{name}"]

            @app.command(name, capabilities=capabilities, auth=[])
            def pooled(path: str) -> str:
                with ThreadPoolExecutor(1) as pool:
                    return pool.submit(Path(path).read_text).result()

            @app.command(f"async-{name}", capabilities=capabilities, auth=[])
            async def later(path: str) -> str:
                await asyncio.sleep(0)
                return await asyncio.to_thread(Path(path).read_text)

        @app.command(auth=[])
        def free(path: str) -> str:
            return Path(path).read_text()

        return app

    def cases(self, root: Path) -> list[tuple[str, str, bool]]:
        names = ("a", "b", "async-a", "async-b", "free")
        return [
            (name, f"{root}/{folder}/file", name == "free" or name[-1] == folder)
            for name in names
            for folder in ("a", "b")
        ] * 8

    def test_calls_in_threads_are_monitored_separately(self, tmp_path: Path) -> None:
        app = self.app(tmp_path)
        cases = self.cases(tmp_path)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda case: app.call(case[0], path=case[1]).ok, cases))
        assert found == [case[2] for case in cases]
        assert not audit_hook._active_monitors
        assert not audit_hook._thread_monitors

    def test_calls_on_a_loop_are_monitored_separately(self, tmp_path: Path) -> None:
        app = self.app(tmp_path)
        cases = self.cases(tmp_path)

        async def all_of_them() -> list[bool]:
            calls = [app.acall(name, path=path) for name, path, _ in cases]
            return [result.ok for result in await asyncio.gather(*calls)]

        assert asyncio.run(all_of_them()) == [case[2] for case in cases]
        assert not audit_hook._active_monitors
        assert not audit_hook._thread_monitors
