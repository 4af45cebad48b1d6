"""A Postgres server of the tests' own: from a wheel on the package index, used as binaries only.

python -m tests.integration.postgres     installs it
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
server.send_signal(signal.SIGQUIT)  # nothing of it is wanted any more
server.wait()
"""
"""Ends the server with the tests, however those end: the pipe is closed then."""


def install() -> pathlib.Path:
    """The folder of Postgres's programs; fetched now, if it is not there."""
    platforms = _PLATFORMS.get((sys.platform, os.uname().machine))
    if platforms is None:
        pytest.skip(f"there is no wheel of Postgres for {sys.platform} {os.uname().machine}")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the tests' other process waits here
        if not (CACHE / ".ready").exists():
            _fetch(platforms)
            (CACHE / ".ready").touch()
    return CACHE / "pgserver" / "pginstall"


def _fetch(platforms: tuple[str, ...]) -> None:
    words = [word for name in platforms for word in ("--platform", name)]
    with tempfile.TemporaryDirectory() as room:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            + ["--only-binary", ":all:", "--python-version", "3.11", *words, "-d", room, WHEEL],
            check=True,
            capture_output=True,
        )
        (wheel,) = pathlib.Path(room).glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(CACHE)
    for program in (CACHE / "pgserver" / "pginstall" / "bin").iterdir():
        program.chmod(0o755)


@contextlib.contextmanager
def running() -> Iterator[str]:
    """A server, for as long as the block lasts; its address."""
    installed = install()
    room = pathlib.Path(tempfile.mkdtemp(prefix="tooli-pg-"))
    try:
        user: int | None = None
        if os.geteuid() == 0:  # Postgres does not run as root, and its user may not see our folders
            import pwd

            user = pwd.getpwnam("nobody").pw_uid
            shutil.copytree(CACHE, room / "installed", dirs_exist_ok=True)
            installed = room / "installed" / "pgserver" / "pginstall"
            room.chmod(0o755)
            os.chown(room, user, -1)
        _initialise(installed, room, user)
        with _started(installed, room, user) as address:
            yield address
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _initialise(installed: pathlib.Path, room: pathlib.Path, user: int | None) -> None:
    secret = room / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    done = subprocess.run(
        [installed / "bin" / "initdb", "-D", room / "data", "-U", "tooli", "-A", "scram-sha-256"]
        + [f"--pwfile={secret}", "--encoding=UTF8", "--locale=C", "--no-sync"],
        capture_output=True,
        user=user,
        group=user,
        cwd=room,
    )
    assert done.returncode == 0, done.stderr.decode()


@contextlib.contextmanager
def _started(installed: pathlib.Path, room: pathlib.Path, user: int | None) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = [installed / "bin" / "postgres", "-D", room / "data", "-p", str(port)]
    program += ["-F"]  # it outlives its clients; that it outlives the machine is Postgres's own
    program += ["-c", "listen_addresses=127.0.0.1", "-k", room, "-c", "max_connections=120"]
    with subprocess.Popen(
        [sys.executable, "-c", _SUPERVISOR, "" if user is None else str(user), *map(str, program)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as supervisor:
        messages: list[str] = []
        answered = threading.Event()
        listener = threading.Thread(target=_listen, args=(supervisor, messages, answered))
        listener.start()
        try:
            answered.wait()
            assert any("ready to accept connections" in line for line in messages), "".join(
                messages
            )
            yield f"postgresql://tooli:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            assert supervisor.stdin is not None
            supervisor.stdin.close()  # that ends the server, and what it says
            listener.join()


def _listen(server: subprocess.Popen[bytes], text: list[str], answered: threading.Event) -> None:
    """Read what the server says, to its end: it must not wait for a reader."""
    assert server.stderr is not None
    for line in server.stderr:
        text.append(line.decode())
        if "ready to accept connections" in text[-1]:
            answered.set()
    answered.set()


if __name__ == "__main__":
    print(install())
