"""What the sandbox allows and refuses; each check runs in its own process."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import resource
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from tests.execution.calls import make_call
from tests.execution.forked import run_in_child
from tests.execution.sandbox.sandboxed import sandboxed

from tooli import SecretInput
from tooli.config.setting_definitions import VARIABLES
from tooli.core.declared_capabilities import AllowedAccess
from tooli.errors import AuthError
from tooli.execution.monitor import actions
from tooli.execution.sandbox import landlock, runtime_paths, sandbox_runner, syscalls
from tooli.execution.sandbox.sandbox_runner import (
    SandboxRunner,
    SandboxSupport,
    detect_sandbox_support,
)

pytestmark = pytest.mark.skipif(
    bool(detect_sandbox_support().missing), reason="; ".join(detect_sandbox_support().missing)
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with `in`, which tests declare, and `out`, which they do not."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return tmp_path.resolve()


# ------------------------------------------------------------------ files


def test_only_declared_paths_are_readable(tree: Path) -> None:
    capabilities = [f"fs:read:{tree}/in"]
    assert sandboxed(capabilities, lambda: (tree / "in/file").read_text()).value == "in"
    assert sandboxed(capabilities, lambda: os.listdir(tree / "in")).value == ["file"]
    assert sandboxed(capabilities, lambda: (tree / "out/file").read_text()).errno == errno.EACCES
    assert sandboxed(capabilities, lambda: os.listdir(tree / "out")).errno == errno.EACCES
    assert sandboxed(capabilities, lambda: (tree / "in/file").write_text("x")).errno == errno.EACCES


def test_declared_file_does_not_include_its_folder(tree: Path) -> None:
    capabilities = [f"fs:read:{tree}/in/file"]
    (tree / "in/other").write_text("other")
    assert sandboxed(capabilities, lambda: (tree / "in/file").read_text()).value == "in"
    assert sandboxed(capabilities, lambda: (tree / "in/other").read_text()).errno == errno.EACCES


def test_nothing_is_readable_without_capabilities(tree: Path) -> None:
    for path in (tree / "in/file", Path("/etc/passwd"), Path("/etc/hostname")):
        assert sandboxed([], path.read_bytes).errno == errno.EACCES
    assert sandboxed([], lambda: os.listdir(Path.home())).errno == errno.EACCES


def test_write_does_not_include_read_and_delete(tree: Path) -> None:
    capabilities = [f"fs:write:{tree}/in"]
    assert sandboxed(capabilities, lambda: (tree / "in/new").write_text("n")).value == 1
    assert (tree / "in/new").read_text() == "n"
    assert sandboxed(capabilities, lambda: (tree / "in/deep").mkdir()).error is None
    assert sandboxed(capabilities, lambda: (tree / "in/file").read_text()).errno == errno.EACCES
    assert sandboxed(capabilities, lambda: (tree / "in/file").unlink()).errno == errno.EACCES
    assert (
        sandboxed(capabilities, lambda: os.rename(tree / "in/new", tree / "in/n")).errno is not None
    )
    assert sandboxed(capabilities, lambda: (tree / "out/new").write_text("n")).errno == errno.EACCES
    assert not (tree / "out/new").exists()


def test_delete_needs_its_own_capability(tree: Path) -> None:
    capabilities = [f"fs:delete:{tree}/in"]
    assert sandboxed(capabilities, lambda: (tree / "in/file").write_text("")).errno == errno.EACCES
    assert sandboxed(capabilities, lambda: (tree / "in/file").unlink()).error is None
    assert not (tree / "in/file").exists()
    assert sandboxed(capabilities, lambda: (tree / "out/file").unlink()).errno == errno.EACCES
    both = [f"fs:write:{tree}/in", *capabilities]
    (tree / "in/draft").write_text("d")
    assert sandboxed(both, lambda: os.replace(tree / "in/draft", tree / "in/made")).error is None


def test_capability_without_a_path_applies_everywhere(tree: Path) -> None:
    assert sandboxed(["fs:read"], lambda: (tree / "out/file").read_text()).value == "out"
    assert sandboxed(["fs:write"], lambda: (tree / "out/file").write_text("x")).value == 1
    assert sandboxed(["fs:write"], lambda: (tree / "out/file").chmod(0o600)).error is None
    assert sandboxed(["fs:read"], lambda: (tree / "out/file").write_text("x")).errno == errno.EACCES


def test_denied_paths_are_excluded(tree: Path) -> None:
    (tree / "in/private").mkdir()
    (tree / "in/private/key").write_text("k")
    access = AllowedAccess(reads=(str(tree / "in"),), denied=(str(tree / "in/private"),))
    assert sandboxed(access, lambda: (tree / "in/file").read_text()).value == "in"
    assert sandboxed(access, lambda: (tree / "in/private/key").read_text()).errno == errno.EACCES
    wide = AllowedAccess(reads=None, denied=(str(tree / "in"),))
    assert sandboxed(wide, lambda: (tree / "out/file").read_text()).value == "out"
    assert sandboxed(wide, lambda: (tree / "in/file").read_text()).errno == errno.EACCES
    assert sandboxed(wide, lambda: (tree / "in/private/key").read_text()).errno == errno.EACCES


def test_declared_path_replaced_by_a_link_is_refused(tree: Path) -> None:
    os.symlink(tree / "out", tree / "link")
    access = AllowedAccess(reads=(str(tree / "link"),))
    assert sandboxed(access, lambda: (tree / "out/file").read_text()).errno == errno.EACCES


def test_metadata_changes_need_unrestricted_write(tree: Path) -> None:
    capabilities = [f"fs:{act}:{tree}/in" for act in ("read", "write", "delete")]
    file = tree / "in/file"
    for change in (
        lambda: os.chmod(file, 0o777),
        lambda: os.utime(file, (1, 1)),
        lambda: os.chown(file, os.getuid(), os.getgid()),
        lambda: os.setxattr(file, "user.x", b"x"),
    ):
        assert sandboxed(capabilities, change).errno == errno.EPERM


def test_files_of_the_call_are_accessible(tree: Path) -> None:
    (tree / "out/other").write_text("other")
    files = [(str(tree / "out/file"), landlock.READ_FILE)]
    assert sandboxed([], lambda: (tree / "out/file").read_text(), files=files).value == "out"
    assert (
        sandboxed([], lambda: (tree / "out/other").read_text(), files=files).errno == errno.EACCES
    )


def test_temporary_files_are_in_the_private_temp_dir(tree: Path) -> None:
    temp_dir = tree / "temp_dir"
    temp_dir.mkdir()

    def work() -> str:
        import tempfile

        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w") as file:
            file.write("x")
            return f"{Path(folder).parent} {Path(file.name).parent}"

    assert sandboxed([], work, temp_dir=str(temp_dir)).value == f"{temp_dir} {temp_dir}"
    assert list(temp_dir.iterdir()) == []


# ------------------------------------------------------------------ what still works


def test_imports_work() -> None:
    def work() -> list[str]:
        import decimal
        import sqlite3
        import ssl
        import xml.dom.minidom
        import zoneinfo

        import pydantic

        zone = zoneinfo.ZoneInfo("Europe/Vienna")
        made = [ssl.create_default_context(), decimal, xml, pydantic.TypeAdapter(int), zone]
        sqlite3.connect(":memory:").execute("select 1")
        return [type(one).__name__ for one in made]

    assert sandboxed([], work).error is None


def test_threads_and_event_loops_work() -> None:
    def work() -> int:
        import asyncio

        async def later() -> int:
            return await asyncio.to_thread(lambda: 7)

        return asyncio.run(later())

    assert sandboxed([], work).value == 7


def test_dev_null_is_writable() -> None:
    def work() -> int:
        with open(os.devnull, "w") as file:
            return file.write("gone")

    assert sandboxed([], work).value == 4


def test_only_modules_beside_a_script_are_readable(tree: Path) -> None:
    (tree / "neighbour.py").write_text("WORD = 'found'")
    (tree / "pack").mkdir()
    (tree / "pack/__init__.py").write_text("")
    (tree / "pack/inner.py").write_text("WORD = 'inner'")
    (tree / "pack/data").mkdir()  # so that the package is not readable as a whole
    (tree / "pack/data/table.csv").write_text("1")
    (tree / "pack/deep").mkdir()
    (tree / "pack/deep/__init__.py").write_text("WORD = 'deep'")
    (tree / "secrets.env").write_text("TOKEN=1")
    program = tree / "program.py"
    program.write_text(
        "import sys\n"
        f"sys.path.append({str(Path(__file__).parent)!r})\n"
        "from sandboxed import sandboxed\n"
        "def work():\n"
        "    import neighbour, pack.deep, pack.inner\n"
        "    found = neighbour.WORD + pack.inner.WORD + pack.deep.WORD\n"
        "    try:\n"
        "        return found + open(__file__[:-10] + 'secrets.env').read()\n"
        "    except PermissionError:\n"
        "        return found + ' and no more'\n"
        "print(sandboxed([], work).value)\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "foundinnerdeep and no more\n", done.stderr


def test_certificates_of_variables_need_the_network(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = tree / "out/ca.pem"
    certificate.write_text(
        "Ours\n====\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    )
    for name, value in (("SSL_CERT_FILE", certificate), ("SSL_CERT_DIR", certificate.parent)):
        with monkeypatch.context() as patch:
            patch.setenv(name, str(value))
            assert sandboxed([], certificate.read_text).errno == errno.EACCES
            assert sandboxed(["net:read"], certificate.read_text).error is None
            assert sandboxed(["net:read"], (tree / "out/file").read_text).errno == errno.EACCES


def test_archive_of_modules_is_readable(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zipfile

    with zipfile.ZipFile(tree / "more.zip", "w") as file:
        file.writestr("from_an_archive.py", "WORD = 'found'")
    monkeypatch.syspath_prepend(tree / "more.zip")

    def work() -> str:
        import importlib

        return importlib.import_module("from_an_archive").WORD

    assert sandboxed([], work).value == "found"


def test_always_readable_paths_match_the_monitor() -> None:
    readable = actions.CodePaths().libraries
    public = {os.path.realpath(path) + "/" for path in actions.PUBLIC_PATHS}
    assert all([path.startswith(readable) for path in public])
    assert actions.NON_FILE_DEVICES >= {
        *runtime_paths.READABLE_DEVICES,
        *runtime_paths.WRITABLE_DEVICES,
    }


# ------------------------------------------------------------------ environment, descriptors


def test_environment_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_WORD", "hidden")
    monkeypatch.setenv("TOOLI_TOKEN", "hidden")
    monkeypatch.setenv("LC_TIME", "C")
    kept = sandboxed([], lambda: dict(os.environ)).value
    assert "hidden" not in kept.values()
    assert kept["LC_TIME"] == "C" and kept["PATH"] == os.environ["PATH"]
    allowed = sandboxed(["env:read"], lambda: dict(os.environ)).value
    assert allowed["SECRET_WORD"] == "hidden" and "TOOLI_TOKEN" not in allowed


def test_secret_and_token_variables_are_not_kept() -> None:
    removed = {"TOOLI_TOKEN", "TOOLI_TOKEN_FILE", "TOOLI_SEAL_KEY", "TOOLI_STORE"}
    removed.add("TOOLI_INTROSPECTION_SECRET")
    token_settings = ("KEY", "ISSUER", "AUDIENCE", "JWKS_URL", "SCOPES")
    restricted = {"TOOLI_TOKENS", "TOOLI_RESOURCE_URL", "TOOLI_UPDATE_SNAPSHOTS"}
    restricted |= {f"TOOLI_TOKEN_{name}" for name in token_settings}
    restricted |= {"TOOLI_INTROSPECTION_CLIENT", "TOOLI_INTROSPECTION_URL"}
    assert removed == sandbox_runner.FRAMEWORK_SECRET_VARS
    assert {*VARIABLES} - sandbox_runner.KEPT_ENV_VARS == removed | restricted


def test_inherited_descriptors_become_dev_null(tree: Path) -> None:
    descriptor = os.open(tree / "out/file", os.O_RDWR)

    def work() -> list[object]:
        opened = os.open(os.devnull, os.O_RDONLY)
        return [
            os.read(descriptor, 10).decode(),
            os.fstat(descriptor).st_rdev != 0,
            opened == descriptor,
        ]

    try:
        assert sandboxed([], work).value == ["", True, False]
    finally:
        os.close(descriptor)


def test_process_has_no_core_dumps_and_is_not_dumpable() -> None:
    def work() -> list[object]:
        import ctypes

        return [resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)]

    limits, dumpable = sandboxed([], work).value
    # With the limit 0, the kernel would still start a program that stores core dumps.
    assert limits == ([1, 1] if resource.getrlimit(resource.RLIMIT_CORE)[1] else [0, 0])
    assert dumpable == 0


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root has privileges")
def test_root_keeps_only_file_capabilities() -> None:
    found = sandboxed(["fs:read:/proc"], lambda: Path("/proc/self/status").read_text()).value
    effective = int(re.search(r"CapEff:\s*(\w+)", found)[1], 16)  # type: ignore[index]
    assert effective & ~0b11011 == 0
    assert re.search(r"NoNewPrivs:\s*1", found) and re.search(r"Seccomp:\s*2", found)


# ------------------------------------------------------------------ network and programs


def test_network_needs_a_capability() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def work() -> str:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                return connection.getpeername()[0]

        assert sandboxed([], work).errno == errno.EACCES
        assert sandboxed(["net:read"], work).value == "127.0.0.1"


def test_network_does_not_include_unix_sockets(tree: Path) -> None:
    address = str(tree / "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()

        def work() -> None:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(address)

        assert sandboxed(["net:read", "net:write"], work).errno == errno.EACCES
        assert sandboxed(["net:write", "fs:write"], work).error is None


def test_programs_need_a_capability_and_are_restricted(tree: Path) -> None:
    def work() -> list[object]:
        done = subprocess.run(["cat", f"{tree}/out/file", f"{tree}/in/file"], capture_output=True)
        return [done.returncode, done.stdout.decode()]

    assert sandboxed([], work).errno == errno.EPERM
    assert sandboxed(["proc:spawn", f"fs:read:{tree}/in"], work).value == [1, "in"]


def test_programs_on_the_path_run(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tree / "out/hello"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    (tree / "linked").mkdir()
    (tree / "linked/also").symlink_to(program)
    folders = [str(tree / "linked"), str(tree / "out"), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))

    def work() -> list[str]:
        return [subprocess.check_output([name], text=True).strip() for name in ("hello", "also")]

    assert sandboxed(["proc:spawn"], work).value == ["hello", "hello"]
    assert sandboxed(["proc:spawn"], (tree / "out/file").read_text).errno == errno.EACCES


def test_started_python_is_restricted(tree: Path) -> None:
    def work() -> str:
        text = f"import json; open({str(tree / 'out/file')!r})"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
        return done.stderr.strip().splitlines()[-1]

    assert "PermissionError" in sandboxed(["proc:spawn"], work).value


def test_signals_to_other_processes_are_refused() -> None:
    for capabilities in ([], ["proc:spawn"]):
        assert sandboxed(capabilities, lambda: os.kill(os.getppid(), 0)).errno == errno.EPERM
        assert sandboxed(capabilities, lambda: os.kill(os.getpid(), 0)).error is None


def test_signals_to_children_are_allowed() -> None:
    def work() -> int:
        child = subprocess.Popen(["sleep", "60"])
        child.kill()
        return child.wait()

    assert sandboxed(["proc:spawn"], work).value == -9


# ------------------------------------------------------------------ older kernels


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_seccomp_covers_older_landlock_versions(tree: Path, version: int) -> None:
    support = SandboxSupport(version, True)
    capabilities = [f"fs:{act}:{tree}/in" for act in ("read", "write", "delete")]
    out = tree / "out/file"
    assert (
        sandboxed(capabilities, lambda: os.truncate(out, 0), support=support).errno == errno.EACCES
    )
    assert sandboxed(capabilities, out.read_text, support=support).errno == errno.EACCES
    assert sandboxed(capabilities, (tree / "in/file").read_text, support=support).value == "in"
    assert sandboxed([], lambda: os.kill(os.getppid(), 0), support=support).errno == errno.EPERM
    assert sandboxed([], socket.socket, support=support).errno == errno.EACCES
    assert out.read_text() == "out"


def test_process_with_a_second_thread_is_refused() -> None:
    from tooli.execution.sandbox.sandbox_runner import enter_sandbox
    from tooli.execution.sandbox.syscalls import SandboxUnavailable

    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        with pytest.raises(SandboxUnavailable, match="threads already"):
            enter_sandbox(AllowedAccess(), detect_sandbox_support())
    finally:
        ended.set()
        thread.join()


# ------------------------------------------------------------------ support and metadata


def test_sandbox_needs_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    assert "this system cannot fork processes" in detect_sandbox_support().missing


def test_python_without_ctypes_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscalls, "ctypes", None)
    monkeypatch.setattr(syscalls, "_libc", None)
    support = detect_sandbox_support()
    assert not support.seccomp
    assert [text for text in support.missing if "ctypes" in text] == list(support.missing)
    assert len(support.missing) == 1


def test_enforcement_level_is_not_stored_without_metadata() -> None:
    runner = SandboxRunner(None, AllowedAccess(), required=True)
    call = make_call(meta={})
    runner._set_enforcement(call, "level")
    assert call.meta == {"enforcement": "level"}
    runner._set_enforcement(call.replace(meta=None), "level")


def test_socket_cannot_signal_another_process() -> None:
    requests = (0x8901, 0x8902)  # FIOSETOWN, SIOCSPGRP

    def set_owner() -> list[int | None]:
        codes: list[int | None] = []
        first, second = socket.socketpair()
        with first, second:
            for request in requests:
                try:
                    fcntl.ioctl(first, request, struct.pack("i", os.getppid()))
                    codes.append(None)
                except OSError as error:
                    codes.append(error.errno)
        return codes

    for capabilities in (["none"], ["net:read"], ["net:read", "proc:spawn", "fs:write"]):
        assert sandboxed(capabilities, set_owner).value == [errno.EPERM] * 2


class TestFailedIsolation:
    """A command that requires isolation never runs without it."""

    @pytest.fixture(autouse=True)
    def _failing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise syscalls.SandboxUnavailable("no memory")

        monkeypatch.setattr(sandbox_runner, "enter_sandbox", fail)

    def test_required_isolation(self) -> None:
        ran: list[int] = []
        runner = SandboxRunner(None, AllowedAccess(), required=True)

        def check() -> None:
            with pytest.raises(AuthError, match="no memory") as caught:
                runner.run(make_call(lambda: ran.append(1), meta={}))
            assert caught.value.code == "E2006"
            assert not ran

        assert run_in_child(check) == 0

    def test_missing_feature(self, monkeypatch: pytest.MonkeyPatch) -> None:
        missing = SandboxSupport(missing=("no Landlock",))
        monkeypatch.setattr(sandbox_runner, "detect_sandbox_support", lambda: missing)
        runner = SandboxRunner(None, AllowedAccess(), required=True)

        def check() -> None:
            with pytest.raises(AuthError, match="no Landlock"):
                runner.run(make_call(meta={}))

        assert run_in_child(check) == 0

    def test_optional_isolation_that_fails(self) -> None:
        ran: list[int] = []
        runner = SandboxRunner(None, AllowedAccess(), required=False)

        def check() -> None:
            with pytest.raises(AuthError, match="could not be set up: no memory") as caught:
                runner.run(make_call(lambda: ran.append(1), meta={}))
            assert caught.value.code == "E2006"
            assert not ran

        assert run_in_child(check) == 0

    def test_optional_isolation_that_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        missing = SandboxSupport(missing=("no Landlock",))
        monkeypatch.setattr(sandbox_runner, "detect_sandbox_support", lambda: missing)
        runner = SandboxRunner(None, AllowedAccess(), required=False)

        def check() -> None:
            call = make_call(lambda: 7, meta={})
            assert runner.run(call) == 7
            assert call.meta == {"enforcement": "none"}

        assert run_in_child(check) == 0


def test_sandbox_is_not_entered_in_the_process_of_the_app() -> None:
    with pytest.raises(RuntimeError, match="worker process"):
        SandboxRunner(None, AllowedAccess(), required=True).run(make_call())
    assert not sandbox_runner._is_sandboxed


def test_secrets_are_loaded_before_the_environment_is_reduced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def login(password: SecretInput[str]) -> None: ...

    monkeypatch.setenv("PASSWORD", "hunter22")
    call = make_call(login)
    (param,) = call.tool.params
    secret = cast("Any", param.shape).parse("env:PASSWORD", param, True)
    call = call.replace(arguments={"password": secret})
    assert sandbox_runner._find_caller_files(call) == ([], [])
    monkeypatch.delenv("PASSWORD")
    assert secret.reveal() == "hunter22"
