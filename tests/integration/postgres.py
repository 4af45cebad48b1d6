"""Run a Postgres server for tests. Its programs come from a wheel on the package index.

`python -m tests.integration.postgres` installs it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator

import pytest

WHEEL = "pgserver==0.1.4"
CACHE = pathlib.Path(__file__).resolve().parents[2] / ".cache" / f"postgres-{WHEEL.split('==')[1]}"
PASSWORD = "s3cret-of-the-tests"
_PLATFORMS = {
    ("linux", "x86_64"): ("manylinux2014_x86_64", "manylinux_2_17_x86_64"),
    ("darwin", "x86_64"): ("macosx_10_9_x86_64",),
    ("darwin", "arm64"): ("macosx_11_0_arm64",),
}

_SUPERVISOR = """
import signal, subprocess, sys
server = subprocess.Popen(sys.argv[2:], user=int(sys.argv[1]) if sys.argv[1] else None,
                          group=int(sys.argv[1]) if sys.argv[1] else None,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
sys.stdin.read()
server.send_signal(signal.SIGQUIT)  # no data has to be kept
server.wait()
"""
"""Stops the server when its stdin is closed, which happens even if the tests are killed."""


def install() -> pathlib.Path:
    """Return the folder of the Postgres programs; download them if they are missing."""
    platforms = _PLATFORMS.get((sys.platform, os.uname().machine))
    if platforms is None:
        pytest.skip(f"no Postgres wheel for {sys.platform} {os.uname().machine}")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes wait here
        if not (CACHE / ".ready").exists():
            _download(platforms)
            (CACHE / ".ready").touch()
    return CACHE / "pgserver" / "pginstall"


def _download(platforms: tuple[str, ...]) -> None:
    options = [word for name in platforms for word in ("--platform", name)]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            + ["--only-binary", ":all:", "--python-version", "3.11", *options, "-d", folder, WHEEL],
            check=True,
            capture_output=True,
        )
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(CACHE)
    for program in (CACHE / "pgserver" / "pginstall" / "bin").iterdir():
        program.chmod(0o755)


@contextlib.contextmanager
def run_server() -> Iterator[str]:
    """Run a server until the block ends; yield its address."""
    installed = install()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tooli-pg-"))
    try:
        user: int | None = None
        if (
            os.geteuid() == 0
        ):  # Postgres refuses to run as root; another user may lack access to our folders
            import pwd

            user = pwd.getpwnam("nobody").pw_uid
            shutil.copytree(CACHE, folder / "installed", dirs_exist_ok=True)
            installed = folder / "installed" / "pgserver" / "pginstall"
            folder.chmod(0o755)
            os.chown(folder, user, -1)
        _initialize(installed, folder, user)
        with _start_server(installed, folder, user) as address:
            yield address
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _initialize(installed: pathlib.Path, folder: pathlib.Path, user: int | None) -> None:
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    done = subprocess.run(
        [installed / "bin" / "initdb", "-D", folder / "data", "-U", "tooli", "-A", "scram-sha-256"]
        + [f"--pwfile={secret}", "--encoding=UTF8", "--locale=C", "--no-sync"],
        capture_output=True,
        user=user,
        group=user,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr.decode()


@contextlib.contextmanager
def _start_server(installed: pathlib.Path, folder: pathlib.Path, user: int | None) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = [installed / "bin" / "postgres", "-D", folder / "data", "-p", str(port)]
    program += ["-F"]  # no fsync: the tests need no protection from power failures
    program += ["-c", "listen_addresses=127.0.0.1", "-k", folder, "-c", "max_connections=120"]
    with subprocess.Popen(
        [sys.executable, "-c", _SUPERVISOR, "" if user is None else str(user), *map(str, program)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as supervisor:
        messages: list[str] = []
        is_ready = threading.Event()
        listener = threading.Thread(target=_read_messages, args=(supervisor, messages, is_ready))
        listener.start()
        try:
            is_ready.wait()
            assert any("ready to accept connections" in line for line in messages), "".join(
                messages
            )
            yield f"postgresql://tooli:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            assert supervisor.stdin is not None
            supervisor.stdin.close()  # stops the server and ends its output
            listener.join()


def _read_messages(
    server: subprocess.Popen[bytes], messages: list[str], is_ready: threading.Event
) -> None:
    """Read the messages of the server until its end, so that it never blocks."""
    assert server.stderr is not None
    for line in server.stderr:
        messages.append(line.decode())
        if "ready to accept connections" in messages[-1]:
            is_ready.set()
    is_ready.set()


if __name__ == "__main__":
    print(install())
