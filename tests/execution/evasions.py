"""Evasion attempts: small functions that access what a command did not declare.

    workspace = create_workspace(root)     inside/ is declared, outside/ is not
    evidence = attempt.run(workspace)      in the restricted process, or in a child of it
    succeeded(attempt, workspace, before, evidence, received)

This module does not import tooli. An attempt gets a Workspace and returns evidence: what it read,
or what it tried to do. The code that runs it also compares the files before and after, because the
evidence alone proves nothing. Some attempts act when the process ends.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[["Workspace"], Any]

TOKEN = "never-seen-outside"  # the content of the secret files, and of nothing else
CHANGED = "changed-by-an-evasion"
VARIABLE = "EVASION_SECRET"  # an environment variable that holds the token

KINDS = {
    "read": "read the content of an undeclared file",
    "list": "list an undeclared folder",
    "metadata": "read size, owner or existence of an undeclared file",
    "write": "create or change an undeclared file",
    "delete": "delete an undeclared file",
    "attributes": "change mode, times or owner of an undeclared file",
    "net": "connect to another process, or open a port",
    "spawn": "run another program, or native code",
    "env": "read or change an environment variable",
    "shared": "change memory or descriptors that another process uses, or another process itself",
}


class Workspace(NamedTuple):
    """The files and ports of an attempt. Only `inside` is declared: read, write and delete."""

    inside: str
    outside: str
    tcp: int  # ports on 127.0.0.1 with a listener
    udp: int
    unix: str  # a socket outside
    secret_fd: int  # opened before anything is enforced
    victim_fd: int
    folder_fd: int
    socket_fd: int  # connected before anything is enforced

    @property
    def secret(self) -> str:
        """A file that must not be read."""
        return os.path.join(self.outside, "secret.txt")

    @property
    def victim(self) -> str:
        """A file that must not be changed."""
        return os.path.join(self.outside, "victim.txt")

    def out(self, name: str) -> str:
        """A path outside."""
        return os.path.join(self.outside, name)

    def own(self, name: str) -> str:
        """A path inside."""
        return os.path.join(self.inside, name)


class Attempt(NamedTuple):
    """One attempt: its name, its kind and its function."""

    name: str
    kind: str
    about: str
    run: Callable[[Workspace], Any]


ATTEMPTS: list[Attempt] = []


def make_decorator(table: list[Attempt]) -> Callable[[str], Callable[[Function], Function]]:
    """Return a decorator that takes the kind of an attempt and adds the function to a table."""

    def attempt(kind: str) -> Callable[[Function], Function]:
        assert kind in KINDS

        def add(fn: Function) -> Function:
            table.append(Attempt(fn.__name__, kind, (fn.__doc__ or "").strip(), fn))
            return fn

        return add

    return attempt


attempt = make_decorator(ATTEMPTS)


# ------------------------------------------------------------------ files and listeners

_CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBPTCB5KADAgECAgEHMAoGCCqGSM49BAMCMB0xGzAZBgNVBAMMEm5ldmVyLXNl
ZW4tb3V0c2lkZTAgFw0yNDAxMDEwMDAwMDBaGA8yMDk5MDEwMTAwMDAwMFowHTEb
MBkGA1UEAwwSbmV2ZXItc2Vlbi1vdXRzaWRlMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEjqd31XGn3G2nD2fR1b2LrAA5CEoSDxXPXipX6AJwujYqO7UnQxbRHq6p
NXJcdcZso01IkTRiSfAywHVXO99fGaMTMBEwDwYDVR0TAQH/BAUwAwEB/zAKBggq
hkjOPQQDAgNIADBFAiAVbjLSpPAkFLj1jRpsC3fZjLyGOIpjDVHAdsZmP8ViPgIh
AIocDUyjkUzuPae55L+xljZ0jtfE8xrEJ9XTlAkHtTO+
-----END CERTIFICATE-----
"""


class Listener:
    """Listens on several sockets and keeps what arrives. It is polled after the attempt."""

    def __init__(self, root: str) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.path = os.path.join(root, "outside", "socket")
        self.unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.unix.bind(self.path)
        self.unix.listen()
        self.before = socket.create_connection(self.tcp.getsockname())
        self.known, _ = self.tcp.accept()
        for one in (self.tcp, self.udp, self.unix, self.known):
            one.setblocking(False)

    def received(self) -> str:
        """Return what arrived since the last time; the process of the attempt has ended."""
        chunks: list[bytes] = []
        for server in (self.tcp, self.unix):
            while (made := _unless_empty(server.accept)) is not None:
                chunks.append(b"<connection>")
                connection = made[0]
                connection.setblocking(False)
                while data := _unless_empty(lambda one=connection: one.recv(65536)):
                    chunks.append(data)
                connection.close()
        for open_one in (self.udp, self.known):
            while data := _unless_empty(lambda one=open_one: one.recv(65536)):
                chunks.append(data)
        return b"".join(chunks).decode("utf-8", "replace")

    def close(self) -> None:
        """Close all sockets."""
        for one in (self.tcp, self.udp, self.unix, self.before, self.known):
            one.close()


def _unless_empty(take: Callable[[], Any]) -> Any:
    try:
        return take()
    except OSError:
        return None


def create_workspace(root: str, listener: Listener | None = None) -> Workspace:
    """Create the files below an empty folder that contains `outside`."""
    import gzip
    import sqlite3
    import tarfile
    import zipfile
    from contextlib import closing

    root = os.path.realpath(root)
    inside, outside = os.path.join(root, "inside"), os.path.join(root, "outside")
    os.makedirs(os.path.join(inside, "deep", "deeper"), exist_ok=True)
    os.makedirs(os.path.join(outside, "folder"), exist_ok=True)
    os.makedirs(os.path.join(outside, "empty"), exist_ok=True)

    def write(name: str, text: str) -> str:
        path = os.path.join(root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    write("inside/own.txt", "mine\n")
    secret = write("outside/secret.txt", f"{TOKEN}\n")
    write("outside/folder/secret.txt", f"{TOKEN}\n")
    victim = write("outside/victim.txt", "as it was\n")
    module = write("outside/secret_module.py", f"TOKEN = {TOKEN!r}\n")
    write("outside/certificate.pem", _CERTIFICATE)
    with zipfile.ZipFile(os.path.join(outside, "secret.zip"), "w") as archive:
        archive.write(secret, "secret.txt")
        archive.write(module, "zipped_module.py")
    with tarfile.open(os.path.join(outside, "secret.tar"), "w") as tar:
        tar.add(secret, "secret.txt")
    with gzip.open(os.path.join(outside, "secret.gz"), "wt") as packed:
        packed.write(TOKEN)
    with closing(sqlite3.connect(os.path.join(outside, "secret.db"))) as base:
        base.execute("pragma synchronous = off")
        base.execute("create table secrets (word text)")
        base.execute("insert into secrets values (?)", (TOKEN,))
        base.commit()
    with zipfile.ZipFile(os.path.join(inside, "parcel.zip"), "w") as archive:
        archive.writestr("parcel.txt", CHANGED)
    os.symlink(secret, os.path.join(inside, "link"))
    os.symlink(outside, os.path.join(inside, "folder-link"))
    os.symlink(os.path.join(outside, "made-by-link"), os.path.join(inside, "dangling"))
    return Workspace(
        inside,
        outside,
        listener.tcp.getsockname()[1] if listener else 0,
        listener.udp.getsockname()[1] if listener else 0,
        listener.path if listener else "",
        os.open(secret, os.O_RDONLY),
        os.open(victim, os.O_RDWR),
        os.open(outside, os.O_RDONLY),
        listener.before.fileno() if listener else -1,
    )


def read_state(workspace: Workspace) -> dict[str, tuple[Any, ...]]:
    """Return the state of everything outside."""
    found: dict[str, tuple[Any, ...]] = {}
    for folder, folders, files in os.walk(workspace.outside):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            state = os.lstat(path)
            content = b""
            if name in files and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    content = file.read()
            times = 0 if name in folders else state.st_mtime_ns
            attributes = (state.st_mode, state.st_uid, state.st_gid, times, _attributes(path))
            found[os.path.relpath(path, workspace.outside)] = (content, attributes)
    return found


def _attributes(path: str) -> tuple[str, ...]:
    try:
        return tuple(os.listxattr(path, follow_symlinks=False))
    except (OSError, AttributeError):
        return ()


def succeeded(
    attempt: Attempt,
    workspace: Workspace,
    before: dict[str, tuple[Any, ...]],
    evidence: Any,
    received: str,
) -> bool:
    """True if the attempt did what it tried; its process must have ended."""
    text = evidence.decode("utf-8", "replace") if isinstance(evidence, bytes) else str(evidence)
    after = read_state(workspace)
    kind = attempt.kind
    if kind == "read":
        return TOKEN in text or TOKEN in _left_inside(workspace) or TOKEN in received
    if kind == "list":
        return "victim.txt" in text
    if kind == "write":
        return {name: kept[0] for name, kept in before.items()} != {
            name: kept[0] for name, kept in after.items()
        }
    if kind == "delete":
        return not before.keys() <= after.keys()
    if kind == "attributes":
        return before != after
    if kind == "net":
        return bool(received) or (bool(evidence) and "resolve" in attempt.name) or text == "bound"
    if kind == "spawn":
        return "spawned" in text or os.path.exists(workspace.own("spawned"))
    if kind == "env":
        return TOKEN in text or CHANGED in text
    if kind == "shared":
        return INHERITED is not None and INHERITED.read() != INHERITED.before
    return bool(evidence)


def _left_inside(workspace: Workspace) -> str:
    """Return the text of all files inside, where the attempt may write."""
    texts: list[str] = []
    for folder, _, files in os.walk(workspace.inside):
        for name in files:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    texts.append(file.read())
    return "\n".join(texts)


# ------------------------------------------------------------------ what the process shares


class Inherited:
    """Memory, descriptors and a process that exist before anything is enforced.

    The process of the attempt inherits them by fork. `read` returns the state of what it shares.
    """

    def __init__(self, workspace: Workspace) -> None:
        import _posixshmem
        import ctypes
        import mmap
        import multiprocessing
        import sqlite3

        def map_file(name: str) -> mmap.mmap:
            with open(workspace.out(name), "w+b") as file:
                file.write(b"a" * 8192)
                file.flush()
                return mmap.mmap(file.fileno(), 0)

        self.mapped, self.protected = map_file("mapped.txt"), map_file("protected.txt")
        self.protected_address = ctypes.addressof(ctypes.c_char.from_buffer(self.protected))
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.mprotect(ctypes.c_void_p(self.protected_address), 8192, mmap.PROT_READ)
        self.log_fd = os.open(workspace.out("log.txt"), os.O_RDWR | os.O_CREAT)
        os.write(self.log_fd, b"earlier lines\n")
        self.base = sqlite3.connect(workspace.out("wal.db"), isolation_level=None)
        # The process of the attempt must not close it when it ends: that would change its files.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.base))
        self.base.execute("pragma synchronous = off")
        self.base.execute("pragma journal_mode = wal")
        self.base.execute("create table rows (word text)")
        self.index_address = _address_of_mapping("wal.db-shm")
        self.anonymous = mmap.mmap(-1, 4096)
        self.segment_name = f"/evasion-{os.urandom(8).hex()}"
        segment_fd = _posixshmem.shm_open(self.segment_name, os.O_CREAT | os.O_RDWR, mode=0o600)
        os.ftruncate(segment_fd, 4096)
        self.segment = mmap.mmap(segment_fd, 4096)
        os.close(segment_fd)
        context = multiprocessing.get_context("fork")
        self.value = context.RawValue("i", 0)
        self.semaphore = context.Semaphore(0)
        self.libc.shmat.restype = ctypes.c_void_p
        self.system_v = self.libc.shmget(0, 4096, 0o1600)
        self.system_v_address: int = self.libc.shmat(self.system_v, None, 0)
        self.memory_fd = os.memfd_create("evasion")
        self.event_fd = _new_event_descriptor(self.libc)
        self.pipe = os.pipe()
        for fd in (self.event_fd, self.pipe[0]):
            os.set_blocking(fd, False)
        self.locked_fd = os.open(workspace.out("locked.txt"), os.O_RDWR | os.O_CREAT)
        self.flock(self.locked_fd)
        self.position_fd = os.open(workspace.secret, os.O_RDONLY)
        self.workspace = workspace
        self.pid = self._start_process()
        self.received = b""
        try:
            os.setxattr(workspace.secret, "user.secret", TOKEN.encode())
        except OSError:
            pass
        self.before = self.read()

    def flock(self, fd: int) -> bool:
        """Lock a file; return False if it is locked already."""
        import fcntl

        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _start_process(self) -> int:
        """Start a process that waits, as an object of attempts."""
        pid = os.fork()
        if pid == 0:
            signal.alarm(600)
            while True:
                signal.pause()
        return pid

    def read(self) -> dict[str, object]:
        """Return the state of everything shared."""
        import ctypes
        import fcntl
        import resource

        self.received += _unless_empty(lambda: os.read(self.pipe[0], 4096)) or b""
        self.received += _unless_empty(lambda: os.read(self.event_fd, 8)) or b""
        other_fd = os.open(self.workspace.out("locked.txt"), os.O_RDONLY)
        is_unlocked = self.flock(other_fd)
        os.close(other_fd)
        descriptors = (self.position_fd, self.log_fd)
        process_files = [f"/proc/{self.pid}/{name}" for name in ("oom_score_adj", "timerslack_ns")]
        return {
            "memory": (self.anonymous[:], self.segment[:], self.value.value),
            "system_v": ctypes.string_at(self.system_v_address, 64),
            "semaphore": self.semaphore.get_value(),
            "memory_file": os.pread(self.memory_fd, 4096, 0),
            "received": self.received,
            "is_unlocked": is_unlocked,
            "positions": [os.lseek(fd, 0, os.SEEK_CUR) for fd in descriptors],
            "flags": [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in descriptors],
            "lease": fcntl.fcntl(self.position_fd, fcntl.F_GETLEASE),
            "process": [_read_text(path) for path in process_files],
            "processors": sorted(os.sched_getaffinity(self.pid)),
            "priority": os.getpriority(os.PRIO_PROCESS, self.pid),
            "scheduler": os.sched_getscheduler(self.pid),
            "limits": resource.prlimit(self.pid, resource.RLIMIT_NOFILE),
        }

    def close(self) -> None:
        """Close everything, and end the process."""
        import _posixshmem
        import ctypes

        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.base.close()
        _posixshmem.shm_unlink(self.segment_name)
        self.libc.shmdt(ctypes.c_void_p(self.system_v_address))
        self.libc.shmctl(self.system_v, 0, None)
        for fd in (self.log_fd, self.memory_fd, self.event_fd, self.locked_fd, self.position_fd):
            os.close(fd)
        for fd in self.pipe:
            os.close(fd)


INHERITED: Inherited | None = None
"""What the process of the next attempt inherits; None if nothing was prepared."""
USES_STANDARD_STREAMS: set[str] = set()
"""Attempts for which stdin, stdout and stderr are a log file outside."""


def open_inherited(workspace: Workspace) -> None:
    """Prepare what the process of the next attempt inherits."""
    global INHERITED
    INHERITED = Inherited(workspace)


def close_inherited() -> None:
    """Close what was prepared."""
    global INHERITED
    if INHERITED is not None:
        INHERITED.close()
    INHERITED = None


def inherited() -> Inherited:
    """Return what this process has inherited; in a new program that is nothing."""
    assert INHERITED is not None, "nothing is inherited"
    return INHERITED


def _address_of_mapping(name: str) -> int:
    with open("/proc/self/maps") as file:
        return next(
            int(line.partition("-")[0], 16) for line in file if line.rstrip().endswith(name)
        )


def _new_event_descriptor(libc: Any) -> int:
    return libc.eventfd(0, 0)


def _read_text(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def on_standard_streams(fn: Function) -> Function:
    """Run an attempt with a log file outside as stdin, stdout and stderr."""
    USES_STANDARD_STREAMS.add(fn.__name__)
    return fn


# ------------------------------------------------------------------ reading


@attempt("read")
def open_by_name(workspace: Workspace) -> Any:
    """`open(path)`"""
    with open(workspace.secret) as file:
        return file.read()


@attempt("read")
def open_bytes_name(workspace: Workspace) -> Any:
    """`open(b"path")`"""
    with open(os.fsencode(workspace.secret), "rb") as file:
        return file.read()


@attempt("read")
def io_open(workspace: Workspace) -> Any:
    """`io.open(path)`"""
    import io

    with io.open(workspace.secret) as file:  # noqa: UP020
        return file.read()


@attempt("read")
def io_file_io(workspace: Workspace) -> Any:
    """`_io.FileIO(path)`"""
    import _io

    with _io.FileIO(workspace.secret) as file:
        return file.read()


@attempt("read")
def io_open_code(workspace: Workspace) -> Any:
    """`io.open_code(path)`, as the import system calls it"""
    import io

    with io.open_code(workspace.secret) as file:
        return file.read()


@attempt("read")
def os_open(workspace: Workspace) -> Any:
    """`os.open` and `os.read`"""
    fd = os.open(workspace.secret, os.O_RDONLY)
    return os.read(fd, 100)


@attempt("read")
def posix_open(workspace: Workspace) -> Any:
    """`posix.open`, the C function of `os.open`"""
    import posix

    return posix.read(posix.open(workspace.secret, 0), 100)


@attempt("read")
def pathlib_read(workspace: Workspace) -> Any:
    """`Path.read_text`"""
    from pathlib import Path

    return Path(workspace.secret).read_text()


@attempt("read")
def parent_segments(workspace: Workspace) -> Any:
    """`inside/deep/../../outside/…`"""
    with open(os.path.join(workspace.inside, "deep", "..", "..", "outside", "secret.txt")) as file:
        return file.read()


@attempt("read")
def relative_parent_segments(workspace: Workspace) -> Any:
    """`../outside/…` from inside"""
    os.chdir(workspace.inside)
    with open("../outside/secret.txt") as file:
        return file.read()


@attempt("read")
def existing_link(workspace: Workspace) -> Any:
    """a link inside that existed before the call"""
    with open(workspace.own("link")) as file:
        return file.read()


@attempt("read")
def existing_folder_link(workspace: Workspace) -> Any:
    """a link to a folder that existed before the call"""
    with open(workspace.own("folder-link/secret.txt")) as file:
        return file.read()


@attempt("read")
def new_link(workspace: Workspace) -> Any:
    """a link inside that the command creates"""
    os.symlink(workspace.secret, workspace.own("new"))
    with open(workspace.own("new")) as file:
        return file.read()


@attempt("read")
def link_named_like_a_device(workspace: Workspace) -> Any:
    """a link named `nul`, which is a device on Windows"""
    os.symlink(workspace.secret, workspace.own("nul"))
    os.chdir(workspace.inside)
    with open("nul") as file:
        return file.read()


@attempt("read")
def exclusive_open(workspace: Workspace) -> Any:
    """`O_EXCL` without `O_CREAT`, which follows links"""
    os.symlink(workspace.secret, workspace.own("exclusive"))
    return os.read(os.open(workspace.own("exclusive"), os.O_RDWR | os.O_EXCL), 100)


@attempt("read")
def replaced_folder(workspace: Workspace) -> Any:
    """a folder that is replaced by a link after it was checked"""
    os.mkdir(workspace.own("turn"))
    with open(workspace.own("turn/secret.txt"), "w") as file:
        file.write("harmless")
    os.rename(workspace.own("turn"), workspace.own("turned"))
    os.symlink(workspace.outside, workspace.own("turn"))
    with open(workspace.own("turn/secret.txt")) as file:
        return file.read()


@attempt("read")
def hard_link(workspace: Workspace) -> Any:
    """`os.link` into the declared folder"""
    os.link(workspace.secret, workspace.own("hard"))
    with open(workspace.own("hard")) as file:
        return file.read()


@attempt("read")
def rename_inward(workspace: Workspace) -> Any:
    """`os.rename` into the declared folder"""
    os.rename(workspace.out("folder/secret.txt"), workspace.own("moved"))
    with open(workspace.own("moved")) as file:
        return file.read()


@attempt("read")
def proc_root(workspace: Workspace) -> Any:
    """`/proc/self/root/…`"""
    with open("/proc/self/root" + workspace.secret) as file:
        return file.read()


@attempt("read")
def proc_cwd(workspace: Workspace) -> Any:
    """`/proc/self/cwd/…`"""
    os.chdir(workspace.inside)
    with open("/proc/self/cwd/../outside/secret.txt") as file:
        return file.read()


@attempt("read")
def change_folder(workspace: Workspace) -> Any:
    """`os.chdir(outside)`, then a relative name"""
    os.chdir(workspace.outside)
    with open("secret.txt") as file:
        return file.read()


@attempt("read")
def folder_descriptor(workspace: Workspace) -> Any:
    """`os.open(name, dir_fd=…)` with a folder that the command opens"""
    folder = os.open(workspace.outside, os.O_RDONLY)
    return os.read(os.open("secret.txt", os.O_RDONLY, dir_fd=folder), 100)


@attempt("read")
def folder_descriptor_path_only(workspace: Workspace) -> Any:
    """`os.open(name, dir_fd=…)` with a folder that is opened with `O_PATH`"""
    folder = os.open(workspace.outside, os.O_PATH)
    return os.read(os.open("secret.txt", os.O_RDONLY, dir_fd=folder), 100)


@attempt("read")
def folder_descriptor_parent_segments(workspace: Workspace) -> Any:
    """`dir_fd` of the declared folder, and a name with `..`"""
    os.makedirs(workspace.own("deep/outside"), exist_ok=True)
    os.chdir(workspace.own("deep/deeper"))
    folder = os.open(workspace.inside, os.O_RDONLY)
    return os.read(os.open("../outside/secret.txt", os.O_RDONLY, dir_fd=folder), 100)


@attempt("read")
def inherited_folder_descriptor(workspace: Workspace) -> Any:
    """`dir_fd` that was open before the call"""
    os.chdir(workspace.inside)
    return os.read(os.open("secret.txt", os.O_RDONLY, dir_fd=workspace.folder_fd), 100)


@attempt("read")
def change_to_descriptor(workspace: Workspace) -> Any:
    """`os.fchdir` to a folder that was open before the call"""
    os.fchdir(workspace.folder_fd)
    with open("secret.txt") as file:
        return file.read()


@attempt("read")
def inherited_descriptor(workspace: Workspace) -> Any:
    """a file that was open before the call"""
    return os.pread(workspace.secret_fd, 100, 0)


@attempt("read")
def descriptor_as_file(workspace: Workspace) -> Any:
    """`open(fd)` of a descriptor that was open before the call"""
    with open(os.dup(workspace.secret_fd)) as file:
        file.seek(0)
        return file.read()


@attempt("read")
def descriptor_by_proc(workspace: Workspace) -> Any:
    """`/proc/self/fd/N` of a descriptor that was open before the call"""
    with open(f"/proc/self/fd/{workspace.secret_fd}") as file:
        return file.read()


@attempt("read")
def descriptor_mmap(workspace: Workspace) -> Any:
    """`mmap` of a descriptor that was open before the call"""
    import mmap

    with mmap.mmap(workspace.secret_fd, 0, prot=mmap.PROT_READ) as memory:
        return bytes(memory)


@attempt("read")
def descriptor_sendfile(workspace: Workspace) -> Any:
    """`os.sendfile` from a descriptor that was open before the call"""
    fd = os.open(workspace.own("copy"), os.O_RDWR | os.O_CREAT)
    os.sendfile(fd, workspace.secret_fd, 0, 100)
    return os.pread(fd, 100, 0)


@attempt("read")
def shutil_copy(workspace: Workspace) -> Any:
    """`shutil.copyfile` into the declared folder"""
    import shutil

    shutil.copyfile(workspace.secret, workspace.own("copy"))


@attempt("read")
def shutil_copytree(workspace: Workspace) -> Any:
    """`shutil.copytree` into the declared folder"""
    import shutil

    shutil.copytree(workspace.out("folder"), workspace.own("tree"))


@attempt("read")
def linecache_getlines(workspace: Workspace) -> Any:
    """`linecache.getlines`"""
    import linecache

    return "".join(linecache.getlines(workspace.secret))


@attempt("read")
def tokenize_open(workspace: Workspace) -> Any:
    """`tokenize.open`"""
    import tokenize

    with tokenize.open(workspace.secret) as file:
        return file.read()


@attempt("read")
def file_input(workspace: Workspace) -> Any:
    """`fileinput.input`"""
    import fileinput

    with fileinput.input(workspace.secret) as lines:
        return "".join(lines)


@attempt("read")
def file_url(workspace: Workspace) -> Any:
    """`urllib` with a `file:` URL"""
    from urllib.request import urlopen

    with urlopen(f"file://{workspace.secret}") as answer:
        return answer.read()


@attempt("read")
def run_path(workspace: Workspace) -> Any:
    """`runpy.run_path`"""
    import runpy

    return runpy.run_path(workspace.out("secret_module.py"))["TOKEN"]


@attempt("read")
def import_from_folder(workspace: Workspace) -> Any:
    """`sys.path.insert`, then `import`"""
    sys.path.insert(0, workspace.outside)
    import secret_module  # type: ignore[import-not-found]

    return secret_module.TOKEN


@attempt("read")
def source_loader(workspace: Workspace) -> Any:
    """`SourceFileLoader.get_data`"""
    from importlib.machinery import SourceFileLoader

    return SourceFileLoader("x", workspace.secret).get_data(workspace.secret)


@attempt("read")
def import_from_zip(workspace: Workspace) -> Any:
    """`import` from an archive"""
    sys.path.insert(0, workspace.out("secret.zip"))
    import zipped_module  # type: ignore[import-not-found]

    return zipped_module.TOKEN


@attempt("read")
def zip_file(workspace: Workspace) -> Any:
    """`zipfile.ZipFile`"""
    import zipfile

    with zipfile.ZipFile(workspace.out("secret.zip")) as archive:
        return archive.read("secret.txt")


@attempt("read")
def tar_file(workspace: Workspace) -> Any:
    """`tarfile.open`"""
    import tarfile

    with tarfile.open(workspace.out("secret.tar")) as archive:
        file = archive.extractfile("secret.txt")
        return file.read() if file else None


@attempt("read")
def gzip_file(workspace: Workspace) -> Any:
    """`gzip.open`"""
    import gzip

    with gzip.open(workspace.out("secret.gz"), "rt") as file:
        return file.read()


def _rows(address: str) -> Any:
    import sqlite3

    base = sqlite3.connect(address, uri=address.startswith("file:"))
    return base.execute("select * from secrets").fetchall()


@attempt("read")
def sqlite_connect(workspace: Workspace) -> Any:
    """`sqlite3.connect`"""
    return _rows(workspace.out("secret.db"))


@attempt("read")
def sqlite_read_only(workspace: Workspace) -> Any:
    """`sqlite3.connect("file:…?mode=ro", uri=True)`"""
    return _rows(f"file:{workspace.out('secret.db')}?mode=ro")


@attempt("read")
def sqlite_escaped_name(workspace: Workspace) -> Any:
    """a URI of a declared file with `..` as percent escapes"""
    return _rows(f"file:{workspace.inside}/%2E%2E/outside/secret.db?mode=ro")


@attempt("read")
def sqlite_hidden_option(workspace: Workspace) -> Any:
    """a URI with `mode=memory` in the value of another option"""
    return _rows(f"file:{workspace.out('secret.db')}?x=mode=memory")


@attempt("read")
def sqlite_fragment(workspace: Workspace) -> Any:
    """a URI with `mode=memory` after a `#`"""
    return _rows(f"file:{workspace.out('secret.db')}#?mode=memory")


@attempt("read")
def sqlite_attach(workspace: Workspace) -> Any:
    """`ATTACH` in an in-memory database"""
    import sqlite3

    base = sqlite3.connect(":memory:")
    base.execute("attach ? as other", (workspace.out("secret.db"),))
    return base.execute("select * from other.secrets").fetchall()


@attempt("read")
def certificate(workspace: Workspace) -> Any:
    """`SSLContext.load_verify_locations`, which reads in C"""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile=workspace.out("certificate.pem"))
    return context.get_ca_certs()


@attempt("read")
def readline_history(workspace: Workspace) -> Any:
    """`readline.read_history_file`, which reads in C"""
    import readline

    readline.read_history_file(workspace.secret)
    return readline.get_history_item(readline.get_current_history_length())


@attempt("read")
def ctypes_libc(workspace: Workspace) -> Any:
    """`ctypes.CDLL(None).open`"""
    import ctypes

    libc = ctypes.CDLL(None)
    memory = ctypes.create_string_buffer(100)
    libc.read(libc.open(workspace.secret.encode(), 0), memory, 100)
    return memory.value


@attempt("read")
def ctypes_pythonapi(workspace: Workspace) -> Any:
    """`ctypes.pythonapi.open`, without loading a library"""
    import ctypes

    memory = ctypes.create_string_buffer(100)
    fd = ctypes.pythonapi.open(workspace.secret.encode(), 0)
    ctypes.pythonapi.read(fd, memory, 100)
    return memory.value


@attempt("read")
def in_thread(workspace: Workspace) -> Any:
    """a `threading.Thread`"""
    import threading

    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(open_by_name(workspace)))
    threading.excepthook = lambda _: None
    thread.start()
    thread.join()
    return found


@attempt("read")
def in_raw_thread(workspace: Workspace) -> Any:
    """`_thread.start_new_thread`"""
    import _thread

    found: list[Any] = []
    done = _thread.allocate_lock()
    done.acquire()

    def work() -> None:
        try:
            found.append(open_by_name(workspace))
        except OSError:
            pass
        finally:
            done.release()

    _thread.start_new_thread(work, ())
    done.acquire()
    return found


@attempt("read")
def in_executor(workspace: Workspace) -> Any:
    """a `ThreadPoolExecutor`"""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(open_by_name, workspace).result()


@attempt("read")
def in_multiprocessing_thread_pool(workspace: Workspace) -> Any:
    """`multiprocessing.pool.ThreadPool`"""
    from multiprocessing.pool import ThreadPool

    with ThreadPool(1) as pool:
        return pool.apply(open_by_name, (workspace,))


@attempt("read")
def in_timer(workspace: Workspace) -> Any:
    """a `threading.Timer`"""
    import threading

    found: list[str] = []
    threading.excepthook = lambda _: None
    timer = threading.Timer(0, lambda: found.append(open_by_name(workspace)))
    timer.start()
    timer.join()
    return found


@attempt("read")
def in_asyncio_thread(workspace: Workspace) -> Any:
    """`asyncio.to_thread`"""
    import asyncio

    return asyncio.run(asyncio.to_thread(open_by_name, workspace))


@attempt("read")
def in_executor_of_loop(workspace: Workspace) -> Any:
    """`loop.run_in_executor`, which does not copy the context"""
    import asyncio

    async def work() -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, open_by_name, workspace)

    return asyncio.run(work())


@attempt("read")
def in_empty_context(workspace: Workspace) -> Any:
    """`contextvars.Context().run`"""
    import contextvars

    return contextvars.Context().run(open_by_name, workspace)


@attempt("read")
def in_task_of_empty_context(workspace: Workspace) -> Any:
    """an `asyncio` callback in an empty context"""
    import asyncio
    import contextvars

    async def work() -> Any:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def read() -> None:
            try:
                done.set_result(open_by_name(workspace))
            except OSError as failure:
                done.set_exception(failure)

        loop.call_soon(read, context=contextvars.Context())
        return await done

    return asyncio.run(work())


@attempt("read")
def in_signal_handler(workspace: Workspace) -> Any:
    """a signal handler"""
    import signal

    found: list[str] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: found.append(open_by_name(workspace)))
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    return found


@attempt("read")
def in_trace(workspace: Workspace) -> Any:
    """a trace function"""
    found: list[str] = []

    def look(*_: Any) -> None:
        sys.settrace(None)
        found.append(open_by_name(workspace))

    sys.settrace(look)
    try:
        (lambda: None)()
    finally:
        sys.settrace(None)
    return found


@attempt("read")
def in_finalizer(workspace: Workspace) -> Any:
    """`__del__`, while the call runs"""
    found: list[Any] = []

    class Last:
        def __del__(self) -> None:
            try:
                found.append(open_by_name(workspace))
            except OSError:
                pass

    Last()
    return found


@attempt("read")
def unpickle(workspace: Workspace) -> Any:
    """a pickle that opens a file"""
    import pickle

    class Opening:
        def __reduce__(self) -> Any:
            return (open, (workspace.secret,))

    with pickle.loads(pickle.dumps(Opening())) as file:
        return file.read()


@attempt("read")
def evaluate(workspace: Workspace) -> Any:
    """`eval` of a string"""
    return eval(f"open({workspace.secret!r}).read()")


@attempt("read")
def catch_and_retry(workspace: Workspace) -> Any:
    """the error is caught, and another function is tried"""
    for read in (open_by_name, os_open, pathlib_read):
        try:
            return read(workspace)
        except OSError:
            continue
    return None


@attempt("read")
def at_exit(workspace: Workspace) -> Any:
    """an `atexit` handler"""
    import atexit

    atexit.register(_copy, workspace.secret, workspace.own("late"))


@attempt("read")
def finalizer_at_exit(workspace: Workspace) -> Any:
    """`weakref.finalize`, which runs when the process ends"""
    import weakref

    weakref.finalize(sys, _copy, workspace.secret, workspace.own("late"))


@attempt("read")
def thread_after_call(workspace: Workspace) -> Any:
    """a thread that waits until the call has ended"""
    import threading

    def work() -> None:
        threading.main_thread().join()
        try:
            _copy(workspace.secret, workspace.own("late"))
        except OSError:
            pass

    threading.Thread(target=work).start()


def _copy(source: str, target: str) -> None:
    with open(source) as file:
        text = file.read()
    with open(target, "w") as file:
        file.write(text)


@attempt("read")
def replace_unraisablehook(workspace: Workspace) -> Any:
    """a replaced `sys.unraisablehook`, which runs after the call"""
    import atexit

    def fail() -> None:
        raise RuntimeError

    def look(*_: Any) -> None:
        _copy(workspace.secret, workspace.own("late"))

    sys.unraisablehook = look
    atexit.register(fail)


@attempt("read")
def clear_context_variable(workspace: Workspace) -> Any:
    """tooli's context variable is cleared"""
    from tooli.execution.monitor import audit_hook  # type: ignore[import-not-found]

    audit_hook._current_monitors.set(None)
    return open_by_name(workspace)


@attempt("read")
def uses_the_internal_exception(workspace: Workspace) -> Any:
    """tooli's function that turns the monitor off for its own files"""
    from tooli.execution.monitor.audit_hook import unmonitored  # type: ignore[import-not-found]

    with unmonitored():
        return open_by_name(workspace)


@attempt("read")
def clear_event_table(workspace: Workspace) -> Any:
    """tooli's table of audit events is cleared"""
    from tooli.execution.monitor import audit_hook  # type: ignore[import-not-found]

    audit_hook.EVENTS.clear()
    return open_by_name(workspace)


# ------------------------------------------------------------------ listing


@attempt("list")
def list_folder(workspace: Workspace) -> Any:
    """`os.listdir`"""
    return os.listdir(workspace.outside)


@attempt("list")
def scan_folder(workspace: Workspace) -> Any:
    """`os.scandir`"""
    return [entry.name for entry in os.scandir(workspace.outside)]


@attempt("list")
def walk_folder(workspace: Workspace) -> Any:
    """`os.walk`"""
    return list(os.walk(workspace.outside))


@attempt("list")
def glob_folder(workspace: Workspace) -> Any:
    """`glob.glob`"""
    import glob

    return glob.glob(workspace.out("*"))


@attempt("list")
def iterate_folder(workspace: Workspace) -> Any:
    """`Path.iterdir`"""
    from pathlib import Path

    return list(Path(workspace.outside).iterdir())


@attempt("list")
def list_descriptor(workspace: Workspace) -> Any:
    """`os.listdir(fd)` of a folder that was open before the call"""
    return os.listdir(workspace.folder_fd)


@attempt("list")
def list_by_proc(workspace: Workspace) -> Any:
    """`os.listdir("/proc/self/fd/N")`"""
    return os.listdir(f"/proc/self/fd/{workspace.folder_fd}")


@attempt("list")
def list_through_link(workspace: Workspace) -> Any:
    """`os.listdir` of a link to it"""
    return os.listdir(workspace.own("folder-link"))


@attempt("list")
def list_with_finder(workspace: Workspace) -> Any:
    """the folder cache of the import system"""
    from importlib.machinery import FileFinder

    finder = FileFinder(workspace.outside)
    finder.find_spec("anything")
    return str(finder._path_cache)  # type: ignore[attr-defined]


@attempt("list")
def compare_folders(workspace: Workspace) -> Any:
    """`filecmp.dircmp`"""
    import filecmp

    return str(filecmp.dircmp(workspace.outside, workspace.inside).left_list)


@attempt("list")
def walk_with_descriptors(workspace: Workspace) -> Any:
    """`os.fwalk`"""
    return str([files for _, _, files, _ in os.fwalk(workspace.outside)])


@attempt("list")
def ctypes_list(workspace: Workspace) -> Any:
    """`opendir` and `readdir` of the C library"""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
    folder = libc.opendir(os.fsencode(workspace.outside))
    names: list[bytes] = []
    while folder and (entry := libc.readdir(ctypes.c_void_p(folder))):
        names.append(ctypes.string_at(entry + 19))
    return str(names)


# ------------------------------------------------------------------ metadata


@attempt("metadata")
def stat_file(workspace: Workspace) -> Any:
    """`os.stat`"""
    return os.stat(workspace.secret).st_size


@attempt("metadata")
def file_exists(workspace: Workspace) -> Any:
    """`os.path.exists`"""
    return os.path.exists(workspace.secret)


@attempt("metadata")
def access_file(workspace: Workspace) -> Any:
    """`os.access`"""
    return os.access(workspace.secret, os.R_OK)


@attempt("metadata")
def read_link(workspace: Workspace) -> Any:
    """`os.readlink`"""
    return os.readlink(workspace.own("link"))


@attempt("metadata")
def real_path(workspace: Workspace) -> Any:
    """`os.path.realpath`"""
    return "secret" in os.path.realpath(workspace.own("link"))


@attempt("metadata")
def list_attributes(workspace: Workspace) -> Any:
    """`os.listxattr`"""
    os.listxattr(workspace.secret)
    return True


@attempt("metadata")
def stat_volume(workspace: Workspace) -> Any:
    """`os.statvfs`"""
    return os.statvfs(workspace.outside).f_bsize


@attempt("metadata")
def error_message(workspace: Workspace) -> Any:
    """`os.mkdir` of an existing folder, which fails with `FileExistsError`"""
    try:
        os.mkdir(workspace.out("folder"))
    except FileExistsError:
        return True
    return None


# ------------------------------------------------------------------ writing


@attempt("write")
def write_file(workspace: Workspace) -> Any:
    """`open(path, "w")`"""
    with open(workspace.victim, "w") as file:
        return file.write(CHANGED)


@attempt("write")
def append_file(workspace: Workspace) -> Any:
    """`open(path, "a")`"""
    with open(workspace.victim, "a") as file:
        return file.write(CHANGED)


@attempt("write")
def update_file(workspace: Workspace) -> Any:
    """`open(path, "r+")`"""
    with open(workspace.victim, "r+") as file:
        return file.write(CHANGED)


@attempt("write")
def create_file(workspace: Workspace) -> Any:
    """`open(path, "x")`"""
    with open(workspace.out("new"), "x") as file:
        return file.write(CHANGED)


@attempt("write")
def os_create(workspace: Workspace) -> Any:
    """`os.open(path, O_CREAT)`"""
    return os.write(os.open(workspace.out("new"), os.O_CREAT | os.O_WRONLY), b"x")


@attempt("write")
def path_write(workspace: Workspace) -> Any:
    """`Path.write_text`"""
    from pathlib import Path

    return Path(workspace.victim).write_text(CHANGED)


@attempt("write")
def path_touch(workspace: Workspace) -> Any:
    """`Path.touch`"""
    from pathlib import Path

    Path(workspace.out("new")).touch()


@attempt("write")
def write_through_link(workspace: Workspace) -> Any:
    """a link to a file that does not exist yet"""
    with open(workspace.own("dangling"), "w") as file:
        return file.write(CHANGED)


@attempt("write")
def write_through_folder_link(workspace: Workspace) -> Any:
    """a link to a folder"""
    with open(workspace.own("folder-link/victim.txt"), "w") as file:
        return file.write(CHANGED)


@attempt("write")
def write_descriptor(workspace: Workspace) -> Any:
    """a file that was open for writing before the call"""
    return os.pwrite(workspace.victim_fd, CHANGED.encode(), 0)


@attempt("write")
def truncate_descriptor(workspace: Workspace) -> Any:
    """`os.ftruncate` of a descriptor that was open before the call"""
    os.ftruncate(workspace.victim_fd, 1)


@attempt("write")
def truncate_file(workspace: Workspace) -> Any:
    """`os.truncate`"""
    os.truncate(workspace.victim, 1)


@attempt("write")
def make_folder(workspace: Workspace) -> Any:
    """`os.mkdir`"""
    os.mkdir(workspace.out("made"))


@attempt("write")
def make_pipe(workspace: Workspace) -> Any:
    """`os.mkfifo`"""
    os.mkfifo(workspace.out("pipe"))


@attempt("write")
def make_node(workspace: Workspace) -> Any:
    """`os.mknod`"""
    os.mknod(workspace.out("node"))


@attempt("write")
def link_outward(workspace: Workspace) -> Any:
    """`os.link` of a declared file to the outside"""
    os.link(workspace.own("own.txt"), workspace.out("linked"))


@attempt("write")
def symlink_outward(workspace: Workspace) -> Any:
    """`os.symlink` outside"""
    os.symlink(workspace.own("own.txt"), workspace.out("linked"))


@attempt("write")
def rename_outward(workspace: Workspace) -> Any:
    """`os.replace` of an undeclared file by a declared one"""
    os.replace(workspace.own("own.txt"), workspace.victim)


@attempt("write")
def move_outward(workspace: Workspace) -> Any:
    """`shutil.move`"""
    import shutil

    shutil.move(workspace.own("own.txt"), workspace.out("moved"))


@attempt("write")
def copy_outward(workspace: Workspace) -> Any:
    """`shutil.copy`"""
    import shutil

    shutil.copy(workspace.own("own.txt"), workspace.out("copied"))


@attempt("write")
def extract_outward(workspace: Workspace) -> Any:
    """`ZipFile.extractall`"""
    import zipfile

    with zipfile.ZipFile(workspace.own("parcel.zip")) as archive:
        archive.extractall(workspace.outside)


@attempt("write")
def temporary_file(workspace: Workspace) -> Any:
    """`tempfile.mkstemp(dir=…)`"""
    import tempfile

    return tempfile.mkstemp(dir=workspace.outside)


@attempt("write")
def log_file(workspace: Workspace) -> Any:
    """`logging.FileHandler`"""
    import logging

    handler = logging.FileHandler(workspace.out("log"))
    handler.emit(logging.makeLogRecord({"msg": CHANGED}))
    handler.close()


@attempt("write")
def sqlite_create(workspace: Workspace) -> Any:
    """`sqlite3.connect` of a new file"""
    import sqlite3

    sqlite3.connect(workspace.out("new.db")).execute("create table t (x)")


@attempt("write")
def sqlite_vacuum(workspace: Workspace) -> Any:
    """`VACUUM INTO` from an in-memory database"""
    import sqlite3

    sqlite3.connect(":memory:").execute("vacuum into ?", (workspace.out("new.db"),))


@attempt("write")
def write_by_folder_descriptor(workspace: Workspace) -> Any:
    """`dir_fd` that was open before the call"""
    os.chdir(workspace.inside)
    os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=workspace.folder_fd))


@attempt("write")
def save_history(workspace: Workspace) -> Any:
    """`readline.write_history_file`, which writes in C"""
    import readline

    readline.add_history(CHANGED)
    readline.write_history_file(workspace.out("history"))


@attempt("write")
def ctypes_create(workspace: Workspace) -> Any:
    """`ctypes.CDLL(None).creat`"""
    import ctypes

    return ctypes.CDLL(None).creat(workspace.out("new").encode(), 0o600)


@attempt("write")
def bind_unix_socket(workspace: Workspace) -> Any:
    """a Unix socket that is bound to a path"""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(workspace.out("bound"))


@attempt("write")
def write_in_thread(workspace: Workspace) -> Any:
    """a thread"""
    import threading

    threading.excepthook = lambda _: None
    thread = threading.Thread(target=write_file, args=(workspace,))
    thread.start()
    thread.join()


@attempt("write")
def write_at_exit(workspace: Workspace) -> Any:
    """an `atexit` handler"""
    import atexit

    atexit.register(write_file, workspace)


@attempt("write")
def catch_and_write(workspace: Workspace) -> Any:
    """the error is caught, and another function writes"""
    for write in (write_file, os_create, path_write):
        try:
            return write(workspace)
        except OSError:
            continue
    return None


# ------------------------------------------------------------------ deleting


@attempt("delete")
def remove_file(workspace: Workspace) -> Any:
    """`os.remove`"""
    os.remove(workspace.victim)


@attempt("delete")
def unlink_path(workspace: Workspace) -> Any:
    """`Path.unlink`"""
    from pathlib import Path

    Path(workspace.victim).unlink()


@attempt("delete")
def remove_folder(workspace: Workspace) -> Any:
    """`os.rmdir`"""
    os.rmdir(workspace.out("empty"))


@attempt("delete")
def remove_tree(workspace: Workspace) -> Any:
    """`shutil.rmtree`"""
    import shutil

    shutil.rmtree(workspace.out("folder"))


@attempt("delete")
def rename_away(workspace: Workspace) -> Any:
    """`os.rename` into the declared folder"""
    os.rename(workspace.victim, workspace.own("taken"))


@attempt("delete")
def remove_by_folder_descriptor(workspace: Workspace) -> Any:
    """`os.remove(name, dir_fd=…)` with a folder that was open before the call"""
    os.chdir(workspace.inside)
    os.remove("victim.txt", dir_fd=workspace.folder_fd)


# ------------------------------------------------------------------ attributes


@attempt("attributes")
def change_mode(workspace: Workspace) -> Any:
    """`os.chmod`"""
    os.chmod(workspace.victim, 0o777)


@attempt("attributes")
def change_mode_of_descriptor(workspace: Workspace) -> Any:
    """`os.fchmod` of a file that was open before the call"""
    os.fchmod(workspace.victim_fd, 0o777)


@attempt("attributes")
def change_times(workspace: Workspace) -> Any:
    """`os.utime`"""
    os.utime(workspace.victim, (1, 1))


@attempt("attributes")
def change_owner(workspace: Workspace) -> Any:
    """`os.chown`"""
    os.chown(workspace.victim, 12345, 12345)


@attempt("attributes")
def set_attribute(workspace: Workspace) -> Any:
    """`os.setxattr`"""
    os.setxattr(workspace.victim, "user.evasion", b"x")


# ------------------------------------------------------------------ network


@attempt("net")
def connect(workspace: Workspace) -> Any:
    """`socket.create_connection`"""
    with socket.create_connection(("127.0.0.1", workspace.tcp)) as line:
        line.sendall(TOKEN.encode())


@attempt("net")
def connect_ex(workspace: Workspace) -> Any:
    """`socket.connect_ex`"""
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", workspace.tcp)) == 0


@attempt("net")
def connect_with_c_socket(workspace: Workspace) -> Any:
    """`_socket.socket`"""
    import _socket

    line = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    line.connect(("127.0.0.1", workspace.tcp))
    line.close()


@attempt("net")
def send_datagram(workspace: Workspace) -> Any:
    """`sendto`"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendto(TOKEN.encode(), ("127.0.0.1", workspace.udp))


@attempt("net")
def send_message(workspace: Workspace) -> Any:
    """`sendmsg`"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendmsg([TOKEN.encode()], [], 0, ("127.0.0.1", workspace.udp))


@attempt("net")
def connect_datagram(workspace: Workspace) -> Any:
    """`connect` of a datagram socket"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect(("127.0.0.1", workspace.udp))
        line.send(TOKEN.encode())


@attempt("net")
def connect_unix(workspace: Workspace) -> Any:
    """`connect` to a Unix socket"""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(workspace.unix)
        line.sendall(TOKEN.encode())


@attempt("net")
def inherited_connection(workspace: Workspace) -> Any:
    """a connection that was open before the call"""
    return os.write(workspace.socket_fd, TOKEN.encode())


@attempt("net")
def http_request(workspace: Workspace) -> Any:
    """`http.client`"""
    from http.client import HTTPConnection

    line = HTTPConnection("127.0.0.1", workspace.tcp)
    line.request("GET", "/")
    line.close()


@attempt("net")
def url_open(workspace: Workspace) -> Any:
    """`urllib.request`"""
    from urllib.request import urlopen

    try:
        urlopen(f"http://127.0.0.1:{workspace.tcp}/", timeout=0.2).close()
    except TimeoutError:  # connected, but no answer
        return True


@attempt("net")
def asyncio_connection(workspace: Workspace) -> Any:
    """`asyncio.open_connection`"""
    import asyncio

    async def work() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", workspace.tcp)
        writer.close()

    asyncio.run(work())


@attempt("net")
def asyncio_datagram(workspace: Workspace) -> Any:
    """`loop.create_datagram_endpoint`"""
    import asyncio

    async def work() -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=("127.0.0.1", workspace.udp)
        )
        transport.sendto(TOKEN.encode())
        transport.close()

    asyncio.run(work())


@attempt("net")
def connect_in_thread(workspace: Workspace) -> Any:
    """a thread"""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(connect, workspace).result()


@attempt("net")
def multiprocessing_client(workspace: Workspace) -> Any:
    """`multiprocessing.connection.Client`"""
    from multiprocessing.connection import Client

    Client(("127.0.0.1", workspace.tcp)).close()


@attempt("net")
def log_over_network(workspace: Workspace) -> Any:
    """`logging.handlers.DatagramHandler`"""
    import logging
    from logging.handlers import DatagramHandler

    logging.raiseExceptions = False
    handler = DatagramHandler("127.0.0.1", workspace.udp)
    handler.emit(logging.makeLogRecord({"msg": TOKEN}))
    handler.close()


@attempt("net")
def ctypes_connect(workspace: Workspace) -> Any:
    """`ctypes.CDLL(None).connect`"""
    import ctypes
    import struct

    with socket.socket() as line:
        address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(workspace.tcp), b"\x7f\0\0\1")
        return ctypes.CDLL(None).connect(line.fileno(), address, len(address)) == 0


@attempt("net")
def listen(workspace: Workspace) -> Any:
    """`bind` and `listen`"""
    with socket.create_server(("127.0.0.1", 0)):
        return "bound"


@attempt("net")
def resolve_name(workspace: Workspace) -> Any:
    """`socket.getaddrinfo`"""
    return socket.getaddrinfo("localhost", 80)


@attempt("net")
def resolve_host_name(workspace: Workspace) -> Any:
    """`socket.gethostbyname`"""
    return socket.gethostbyname("localhost")


# ------------------------------------------------------------------ other programs

_ECHO = ("/bin/echo", "spawned")


@attempt("spawn")
def subprocess_run(workspace: Workspace) -> Any:
    """`subprocess.run`"""
    import subprocess

    return subprocess.run(_ECHO, stdout=subprocess.PIPE, check=True).stdout


@attempt("spawn")
def subprocess_shell(workspace: Workspace) -> Any:
    """`subprocess.check_output(shell=True)`"""
    import subprocess

    return subprocess.check_output("echo spawned", shell=True)


@attempt("spawn")
def system(workspace: Workspace) -> Any:
    """`os.system`"""
    os.system(f"echo > '{workspace.own('spawned')}'")


@attempt("spawn")
def popen(workspace: Workspace) -> Any:
    """`os.popen`"""
    with os.popen("echo spawned") as output:
        return output.read()


@attempt("spawn")
def posix_spawn(workspace: Workspace) -> Any:
    """`os.posix_spawn`"""
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"echo > '{workspace.own('spawned')}'"], {})
    os.waitpid(pid, 0)


@attempt("spawn")
def spawn_and_wait(workspace: Workspace) -> Any:
    """`os.spawnv`"""
    os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", f"echo > '{workspace.own('spawned')}'"])


@attempt("spawn")
def fork(workspace: Workspace) -> Any:
    """`os.fork`"""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(theirs, b"spawned")
        os._exit(0)
    os.waitpid(pid, 0)
    return os.read(ours, 100)


@attempt("spawn")
def fork_terminal(workspace: Workspace) -> Any:
    """`os.forkpty`"""
    pid, terminal = os.forkpty()
    if pid == 0:
        os.write(1, b"spawned")
        os._exit(0)
    output = os.read(terminal, 100)
    os.waitpid(pid, 0)
    return output


@attempt("spawn")
def fork_and_exec(workspace: Workspace) -> Any:
    """`_posixsubprocess.fork_exec`, the C function of `subprocess`"""
    return _fork_exec(workspace)


def _fork_exec(workspace: Workspace) -> Any:
    """Run a program by the function below `subprocess`, whose arguments differ by version."""
    import subprocess

    def unseen(*_: Any) -> None: ...

    audit, sys.audit = sys.audit, unseen
    try:
        line = ["/bin/sh", "-c", f"echo > '{workspace.own('spawned')}'"]
        subprocess.run(line, close_fds=True, check=True, start_new_session=True)
    finally:
        sys.audit = audit


@attempt("spawn")
def pty_spawn(workspace: Workspace) -> Any:
    """`pty.spawn`"""
    import pty

    chunks: list[bytes] = []

    def read(fd: int) -> bytes:
        data = os.read(fd, 100)
        chunks.append(data)
        return b""

    pty.spawn(list(_ECHO), read, lambda _: b"")
    return b"".join(chunks)


@attempt("spawn")
def multiprocessing_fork(workspace: Workspace) -> Any:
    """`multiprocessing` with the start method fork"""
    import multiprocessing

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=theirs.send, args=("spawned",))
    process.start()
    process.join()
    return ours.recv() if ours.poll() else None


@attempt("spawn")
def asyncio_subprocess(workspace: Workspace) -> Any:
    """`asyncio.create_subprocess_exec`"""
    import asyncio
    import subprocess

    async def work() -> bytes:
        process = await asyncio.create_subprocess_exec(*_ECHO, stdout=subprocess.PIPE)
        return (await process.communicate())[0]

    return asyncio.run(work())


@attempt("spawn")
def browser(workspace: Workspace) -> Any:
    """`webbrowser.open` with a registered browser"""
    import webbrowser

    script = workspace.own("browser")
    with open(script, "w") as file:
        file.write(f"#!/bin/sh\necho > '{workspace.own('spawned')}'\n")
    os.chmod(script, 0o700)
    webbrowser.get(f"{script} %s").open("x")


@attempt("spawn")
def other_interpreter(workspace: Workspace) -> Any:
    """a subinterpreter, which does not call the audit hook"""
    code = f"open({workspace.own('spawned')!r}, 'w').close()"
    try:
        import _interpreters as interpreters  # type: ignore[import-not-found]
    except ImportError:
        import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]
    interpreters.run_string(interpreters.create(), code)


@attempt("spawn")
def ctypes_system(workspace: Workspace) -> Any:
    """`ctypes.CDLL(None).system`"""
    import ctypes

    ctypes.CDLL(None).system(f"echo > '{workspace.own('spawned')}'".encode())


@attempt("spawn")
def spawn_in_thread(workspace: Workspace) -> Any:
    """`subprocess.run` in a thread"""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(subprocess_run, workspace).result()


@attempt("spawn")
def spawn_at_exit(workspace: Workspace) -> Any:
    """an `atexit` handler"""
    import atexit

    atexit.register(system, workspace)


@attempt("spawn")
def signal_outward(workspace: Workspace) -> Any:
    """`os.kill` of the parent"""
    os.kill(os.getppid(), signal.SIGURG)
    return "spawned: a signal"


@attempt("spawn")
def signal_group(workspace: Workspace) -> Any:
    """`os.killpg` of the process group"""
    os.killpg(os.getpgrp(), signal.SIGURG)
    return "spawned: a signal"


@attempt("spawn")
def signal_by_descriptor(workspace: Workspace) -> Any:
    """`signal.pidfd_send_signal`"""
    signal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.SIGURG)
    return "spawned: a signal"


@attempt("spawn")
def spawn_in_empty_context(workspace: Workspace) -> Any:
    """`subprocess.run` in an empty context"""
    import contextvars

    return contextvars.Context().run(subprocess_run, workspace)


# ------------------------------------------------------------------ environment


@attempt("env")
def environ(workspace: Workspace) -> Any:
    """`os.environ`"""
    return os.environ[VARIABLE]


@attempt("env")
def getenv(workspace: Workspace) -> Any:
    """`os.getenv`"""
    return os.getenv(VARIABLE)


@attempt("env")
def proc_environ(workspace: Workspace) -> Any:
    """`/proc/self/environ`"""
    with open("/proc/self/environ", "rb") as file:
        return file.read()


@attempt("env")
def set_variable(workspace: Workspace) -> Any:
    """`os.environ[…] = …`"""
    os.environ["EVASION"] = CHANGED
    return os.environ["EVASION"]


@attempt("env")
def put_variable(workspace: Workspace) -> Any:
    """`os.putenv`"""
    os.putenv("EVASION", CHANGED)
    return CHANGED


@attempt("env")
def drop_variable(workspace: Workspace) -> Any:
    """`os.unsetenv`"""
    os.unsetenv(VARIABLE)
    return CHANGED


# ------------------------------------------------------------------ shared memory and descriptors


@attempt("write")
def write_mapped_file(workspace: Workspace) -> Any:
    """a file that the app has mapped with `mmap`"""
    inherited().mapped[: len(CHANGED)] = CHANGED.encode()


@attempt("write")
def unprotect_mapped_file(workspace: Workspace) -> Any:
    """a read-only mapping of the app, made writable with `mprotect`"""
    import ctypes

    before = inherited()
    before.libc.mprotect(ctypes.c_void_p(before.protected_address), 8192, 3)
    ctypes.memmove(before.protected_address, CHANGED.encode(), len(CHANGED))


@attempt("write")
def resize_mapped_file(workspace: Workspace) -> Any:
    """`mmap.resize` of a mapping of the app, which truncates the file"""
    inherited().mapped.resize(4096)


@attempt("write")
def write_sqlite_index(workspace: Workspace) -> Any:
    """the index of a SQLite database (`-shm`) that the app has open"""
    import ctypes

    ctypes.memset(inherited().index_address, 1, 64)


@attempt("write")
def sqlite_connection_from_before(workspace: Workspace) -> Any:
    """a SQLite connection that the app has open"""
    inherited().base.execute("insert into rows values (?)", (CHANGED,))


@attempt("shared")
def shared_anonymous_memory(workspace: Workspace) -> Any:
    """anonymous memory that the app shares: `mmap(-1, …)`"""
    inherited().anonymous[:4] = b"evil"


@attempt("shared")
def shared_memory_segment(workspace: Workspace) -> Any:
    """a segment of `multiprocessing.shared_memory` that the app has open"""
    inherited().segment[:4] = b"evil"


@attempt("shared")
def shared_memory_by_name(workspace: Workspace) -> Any:
    """a shared memory segment, opened by its name"""
    import _posixshmem
    import mmap

    fd = _posixshmem.shm_open(inherited().segment_name, os.O_RDWR, mode=0o600)
    mmap.mmap(fd, 4096)[:4] = b"evil"


@attempt("shared")
def shared_memory_by_path(workspace: Workspace) -> Any:
    """a shared memory segment, written as a file in `/dev/shm`"""
    with open(f"/dev/shm{inherited().segment_name}", "r+b") as file:
        file.write(b"evil")


@attempt("shared")
def shared_value(workspace: Workspace) -> Any:
    """a `multiprocessing.Value` of the app"""
    inherited().value.value = 5


@attempt("shared")
def shared_semaphore(workspace: Workspace) -> Any:
    """a `multiprocessing.Semaphore` of the app"""
    inherited().semaphore.release()


@attempt("shared")
def system_v_memory(workspace: Workspace) -> Any:
    """System V shared memory, attached with `shmat`"""
    import ctypes

    before = inherited()
    address = before.libc.shmat(before.system_v, None, 0)
    assert address not in (None, ctypes.c_void_p(-1).value)
    ctypes.memmove(address, b"evil", 4)


@attempt("shared")
def system_v_memory_from_before(workspace: Workspace) -> Any:
    """System V shared memory that the app has attached"""
    import ctypes

    ctypes.memmove(inherited().system_v_address, b"evil", 4)


@attempt("shared")
def memory_file_from_before(workspace: Workspace) -> Any:
    """a memory file (`memfd_create`) of the app"""
    os.pwrite(inherited().memory_fd, b"evil", 0)


@attempt("shared")
def event_descriptor_from_before(workspace: Workspace) -> Any:
    """an event descriptor (`eventfd`) of the app"""
    os.write(inherited().event_fd, (1).to_bytes(8, sys.byteorder))


@attempt("shared")
def pipe_from_before(workspace: Workspace) -> Any:
    """a pipe of the app"""
    os.write(inherited().pipe[1], b"evil")


@attempt("shared")
def pipe_reopened_by_name(workspace: Workspace) -> Any:
    """the read end of a pipe of the app, opened for writing through `/proc/self/fd`"""
    fd = os.open(f"/proc/self/fd/{inherited().pipe[0]}", os.O_WRONLY)
    os.write(fd, b"evil")


@attempt("shared")
def unlock_descriptor_from_before(workspace: Workspace) -> Any:
    """`flock(LOCK_UN)` on a file that the app has locked"""
    import fcntl

    fcntl.flock(inherited().locked_fd, fcntl.LOCK_UN)


@attempt("shared")
def position_of_descriptor_from_before(workspace: Workspace) -> Any:
    """`lseek` on a file that the app is reading"""
    os.lseek(inherited().position_fd, 5, os.SEEK_SET)


@attempt("shared")
def flags_of_descriptor_from_before(workspace: Workspace) -> Any:
    """`fcntl(F_SETFL)` on a file that the app has open"""
    os.set_blocking(inherited().position_fd, False)


@attempt("shared")
def lease_of_descriptor_from_before(workspace: Workspace) -> Any:
    """`fcntl(F_SETLEASE)`, which delays other processes that open the file"""
    import fcntl

    fcntl.fcntl(inherited().position_fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)


@attempt("shared")
@on_standard_streams
def position_of_stdin(workspace: Workspace) -> Any:
    """`lseek` on stdin"""
    os.lseek(0, 3, os.SEEK_SET)


@attempt("shared")
@on_standard_streams
def flags_of_stdin(workspace: Workspace) -> Any:
    """non-blocking mode of stdin"""
    os.set_blocking(0, False)


@attempt("shared")
@on_standard_streams
def flags_of_stdout(workspace: Workspace) -> Any:
    """non-blocking mode of stdout"""
    os.set_blocking(1, False)


@attempt("write")
@on_standard_streams
def truncate_stdout(workspace: Workspace) -> Any:
    """`ftruncate` on stdout, a log file"""
    os.ftruncate(1, 0)


@attempt("write")
@on_standard_streams
def overwrite_stdout(workspace: Workspace) -> Any:
    """`pwrite` at the start of stdout, a log file"""
    os.pwrite(1, CHANGED.encode(), 0)


@attempt("write")
@on_standard_streams
def map_stderr(workspace: Workspace) -> Any:
    """`mmap` of stderr, a log file"""
    import mmap

    with mmap.mmap(2, 0) as memory:
        memory[:4] = b"evil"


@attempt("write")
@on_standard_streams
def write_to_stdin(workspace: Workspace) -> Any:
    """`write` to stdin, which is open for both"""
    os.write(0, CHANGED.encode())


@attempt("write")
@on_standard_streams
def truncate_by_device_name(workspace: Workspace) -> Any:
    """`open("/dev/stdout", "w")`, which truncates the log file"""
    with open("/dev/stdout", "w"):
        pass


@attempt("write")
@on_standard_streams
def truncate_by_descriptor_path(workspace: Workspace) -> Any:
    """`os.truncate("/proc/self/fd/2")`"""
    os.truncate("/proc/self/fd/2", 0)


@attempt("attributes")
@on_standard_streams
def mode_of_stdout(workspace: Workspace) -> Any:
    """`fchmod` on stdout"""
    os.fchmod(1, 0o777)


@attempt("attributes")
@on_standard_streams
def attribute_of_stderr(workspace: Workspace) -> Any:
    """an extended attribute of stderr, a log file"""
    os.setxattr(2, "user.evasion", b"1")


# ------------------------------------------------------------------ other processes


@attempt("shared")
def processors_of_another_process(workspace: Workspace) -> Any:
    """`os.sched_setaffinity` of another process"""
    os.sched_setaffinity(inherited().pid, {min(os.sched_getaffinity(0))})


@attempt("shared")
def priority_of_another_process(workspace: Workspace) -> Any:
    """`os.setpriority` of another process"""
    os.setpriority(os.PRIO_PROCESS, inherited().pid, 7)


@attempt("shared")
def scheduler_of_another_process(workspace: Workspace) -> Any:
    """`os.sched_setscheduler` of another process"""
    os.sched_setscheduler(inherited().pid, os.SCHED_BATCH, os.sched_param(0))


@attempt("shared")
def limits_of_another_process(workspace: Workspace) -> Any:
    """`resource.prlimit` of another process"""
    import resource

    limit = resource.prlimit(inherited().pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(inherited().pid, resource.RLIMIT_NOFILE, (17, limit))


@attempt("shared")
def kill_preference_of_another_process(workspace: Workspace) -> Any:
    """`/proc/PID/oom_score_adj` of another process"""
    with open(f"/proc/{inherited().pid}/oom_score_adj", "w") as file:
        file.write("900")


@attempt("shared")
def timers_of_another_process(workspace: Workspace) -> Any:
    """`/proc/PID/timerslack_ns` of another process"""
    with open(f"/proc/{inherited().pid}/timerslack_ns", "w") as file:
        file.write("123456")


@attempt("shared")
def memory_of_another_process(workspace: Workspace) -> Any:
    """`/proc/PID/mem` of another process, which shares memory with the app"""
    address = _address_of_mapping(f"/dev/shm{inherited().segment_name}")
    with open(f"/proc/{inherited().pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(b"evil")


@attempt("shared")
def descriptor_of_another_process(workspace: Workspace) -> Any:
    """a pipe of another process, opened through `/proc/PID/fd`"""
    before = inherited()
    fd = os.open(f"/proc/{before.pid}/fd/{before.pipe[1]}", os.O_WRONLY)
    os.write(fd, b"evil")


# ------------------------------------------------------------------ extended attributes


@attempt("read")
def read_attribute(workspace: Workspace) -> Any:
    """`os.getxattr`: content in an extended attribute"""
    return os.getxattr(workspace.secret, "user.secret")


@attempt("read")
def read_attribute_of_descriptor(workspace: Workspace) -> Any:
    """`os.getxattr` of a descriptor from before"""
    return os.getxattr(workspace.secret_fd, "user.secret")


@attempt("read")
def read_attribute_through_link(workspace: Workspace) -> Any:
    """`os.getxattr` through a link inside"""
    return os.getxattr(workspace.own("link"), "user.secret")


@attempt("read")
def ctypes_read_attribute(workspace: Workspace) -> Any:
    """`lgetxattr` of the C library"""
    import ctypes

    buffer = ctypes.create_string_buffer(100)
    ctypes.CDLL(None).lgetxattr(os.fsencode(workspace.secret), b"user.secret", buffer, 100)
    return buffer.value


@attempt("metadata")
def list_attributes_of_descriptor(workspace: Workspace) -> Any:
    """`os.listxattr` of a descriptor from before"""
    return os.listxattr(workspace.secret_fd)


@attempt("attributes")
def attribute_of_descriptor(workspace: Workspace) -> Any:
    """`os.setxattr` of a descriptor from before"""
    os.setxattr(workspace.victim_fd, "user.evasion", b"1")


@attempt("attributes")
def remove_attribute(workspace: Workspace) -> Any:
    """`os.removexattr`"""
    os.removexattr(workspace.secret, "user.secret")


# ------------------------------------------------------------------ notifications


@attempt("metadata")
def notify_by_inotify(workspace: Workspace) -> Any:
    """`inotify`: the kernel reports every change in a folder outside"""
    import ctypes

    libc = ctypes.CDLL(None)
    fd = libc.inotify_init1(0)
    add_number = 27 if os.uname().machine == "aarch64" else 254
    path = ctypes.c_char_p(os.fsencode(workspace.outside))
    return fd >= 0 and libc.syscall(add_number, fd, path, 0xFFF) > 0


@attempt("metadata")
def notify_by_fcntl(workspace: Workspace) -> Any:
    """`fcntl(F_NOTIFY)`: a signal for every change in a folder"""
    import fcntl

    signal.signal(signal.SIGIO, signal.SIG_IGN)
    return fcntl.fcntl(workspace.folder_fd, fcntl.F_NOTIFY, fcntl.DN_CREATE) == 0


# ------------------------------------------------------------------ descriptors from before, copied


@attempt("read")
def copy_range_inward(workspace: Workspace) -> Any:
    """`os.copy_file_range` from a descriptor from before"""
    with open(workspace.own("copied"), "wb") as file:
        os.copy_file_range(workspace.secret_fd, file.fileno(), 100, 0)


@attempt("read")
def read_vector(workspace: Workspace) -> Any:
    """`os.preadv` on a descriptor from before"""
    buffer = bytearray(100)
    os.preadv(workspace.secret_fd, [buffer], 0)
    return bytes(buffer)


@attempt("read")
def splice_inward(workspace: Workspace) -> Any:
    """`splice` from a descriptor from before into a pipe"""
    import ctypes

    read_end, write_end = os.pipe()
    moved = ctypes.CDLL(None).splice(workspace.secret_fd, None, write_end, None, 100, 2)
    return os.read(read_end, 100) if moved > 0 else None


@attempt("read")
def device_descriptor(workspace: Workspace) -> Any:
    """`open("/dev/fd/N")` of a descriptor from before"""
    return os.read(os.open(f"/dev/fd/{workspace.secret_fd}", os.O_RDONLY | os.O_NONBLOCK), 100)


@attempt("read")
def thread_root(workspace: Workspace) -> Any:
    """`/proc/thread-self/root`"""
    with open(f"/proc/thread-self/root{workspace.secret}") as file:
        return file.read()


@attempt("read")
def thread_folder(workspace: Workspace) -> Any:
    """`/proc/self/task/TID/cwd` with parent segments"""
    steps = "../" * os.getcwd().count("/")
    with open(f"/proc/self/task/{os.getpid()}/cwd/{steps}{workspace.secret}") as file:
        return file.read()


@attempt("write")
def allocate_descriptor(workspace: Workspace) -> Any:
    """`os.posix_fallocate` on a descriptor from before"""
    os.posix_fallocate(workspace.victim_fd, 0, 4096)


@attempt("write")
def write_vector(workspace: Workspace) -> Any:
    """`os.pwritev` on a descriptor from before"""
    os.pwritev(workspace.victim_fd, [CHANGED.encode()], 0)


@attempt("write")
def copy_range_outward(workspace: Workspace) -> Any:
    """`os.copy_file_range` to a descriptor from before"""
    with open(workspace.own("own.txt"), "rb") as file:
        os.copy_file_range(file.fileno(), workspace.victim_fd, 4)


@attempt("write")
def sendfile_outward(workspace: Workspace) -> Any:
    """`os.sendfile` to a descriptor from before"""
    with open(workspace.own("own.txt"), "rb") as file:
        os.sendfile(workspace.victim_fd, file.fileno(), 0, 4)


@attempt("write")
def map_descriptor_to_write(workspace: Workspace) -> Any:
    """`mmap` of a descriptor from before, for writing"""
    import mmap

    with mmap.mmap(workspace.victim_fd, 0) as memory:
        memory[:4] = b"evil"


@attempt("write")
def fault_report(workspace: Workspace) -> Any:
    """`faulthandler.dump_traceback` to a descriptor from before"""
    import faulthandler

    faulthandler.dump_traceback(file=workspace.victim_fd)


@attempt("attributes")
def times_of_descriptor(workspace: Workspace) -> Any:
    """`os.utime` of a descriptor from before"""
    os.utime(workspace.victim_fd, (1, 1))


@attempt("attributes")
def owner_of_descriptor(workspace: Workspace) -> Any:
    """`os.chown` of a descriptor from before"""
    if os.geteuid():
        os.chmod(workspace.victim_fd, 0o700)
    else:
        os.chown(workspace.victim_fd, 65534, 65534)


@attempt("attributes")
def mode_by_folder_descriptor(workspace: Workspace) -> Any:
    """`os.chmod` with `dir_fd`"""
    os.chmod("victim.txt", 0o777, dir_fd=workspace.folder_fd)


@attempt("attributes")
def times_by_folder_descriptor(workspace: Workspace) -> Any:
    """`os.utime` with `dir_fd`"""
    os.utime("victim.txt", (1, 1), dir_fd=workspace.folder_fd)


@attempt("attributes")
def copy_attributes(workspace: Workspace) -> Any:
    """`shutil.copystat`"""
    import shutil

    os.utime(workspace.own("own.txt"), (1, 1))
    shutil.copystat(workspace.own("own.txt"), workspace.victim)


# ------------------------------------------------------------------ code that uses files


@attempt("read")
def traceback_source(workspace: Workspace) -> Any:
    """a traceback that shows a line of the file as source code"""
    import traceback

    try:
        exec(compile("1 / 0", workspace.secret, "exec"))
    except ZeroDivisionError:
        return traceback.format_exc()


@attempt("read")
def warning_source(workspace: Workspace) -> Any:
    """`warnings.formatwarning` with a line of the file"""
    import warnings

    return warnings.formatwarning("text", UserWarning, workspace.secret, 1)


@attempt("read")
def inspect_source(workspace: Workspace) -> Any:
    """`inspect.getsource` of code that claims to be in the file"""
    import inspect

    return inspect.findsource(compile("", workspace.secret, "exec"))[0][0]


@attempt("read")
def package_data(workspace: Workspace) -> Any:
    """`get_data` of an import loader"""
    from importlib.machinery import SourceFileLoader

    return SourceFileLoader("secret", workspace.secret).get_data(workspace.secret)


@attempt("read")
def sqlite_immutable(workspace: Workspace) -> Any:
    """`sqlite3.connect` with `immutable=1`"""
    import sqlite3

    base = sqlite3.connect(f"file:{workspace.out('secret.db')}?immutable=1", uri=True)
    return str(base.execute("select * from secrets").fetchall())


@attempt("read")
def external_entity(workspace: Workspace) -> Any:
    """an external entity of an XML document"""
    import io
    import xml.sax
    import xml.sax.handler

    texts: list[str] = []
    handler = xml.sax.handler.ContentHandler()
    handler.characters = texts.append  # type: ignore[method-assign]
    parser = xml.sax.make_parser()
    parser.setFeature(xml.sax.handler.feature_external_ges, True)
    parser.setContentHandler(handler)
    document = f'<!DOCTYPE a [<!ENTITY e SYSTEM "file://{workspace.secret}">]><a>&e;</a>'
    parser.parse(io.StringIO(document))
    return "".join(texts)


@attempt("read")
def command_line_file(workspace: Workspace) -> Any:
    """`argparse` with a file of arguments"""
    import argparse

    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("words", nargs="*")
    return str(parser.parse_args([f"@{workspace.secret}"]))


@attempt("read")
def raw_thread_that_is_known(workspace: Workspace) -> Any:
    """`_thread.start_new_thread`, after `threading.current_thread()`"""
    import _thread
    import threading

    found: list[str] = []
    done = _thread.allocate_lock()
    done.acquire()

    def work() -> None:
        try:
            threading.current_thread()
            with open(workspace.secret) as file:
                found.append(file.read())
        finally:
            done.release()

    _thread.start_new_thread(work, ())
    done.acquire()
    return found


@attempt("write")
def extract_through_link(workspace: Workspace) -> Any:
    """an archive with a link to the outside, and a file below it"""
    import io
    import tarfile

    with tarfile.open(workspace.own("links.tar"), "w") as tar:
        link = tarfile.TarInfo("way")
        link.type, link.linkname = tarfile.SYMTYPE, workspace.outside
        tar.addfile(link)
        file = tarfile.TarInfo("way/extracted")
        file.size = len(CHANGED)
        tar.addfile(file, io.BytesIO(CHANGED.encode()))
    with tarfile.open(workspace.own("links.tar")) as tar:
        filters = {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(workspace.inside, **filters)  # type: ignore[arg-type]


@attempt("write")
def dbm_outward(workspace: Workspace) -> Any:
    """`dbm.dumb.open`"""
    import dbm.dumb

    dbm.dumb.open(workspace.out("words"), "c")[b"word"] = CHANGED.encode()


@attempt("write")
def profile_outward(workspace: Workspace) -> Any:
    """`cProfile` with a result file"""
    import cProfile

    cProfile.run("1", workspace.out("profile"))


@attempt("write")
def compile_outward(workspace: Workspace) -> Any:
    """`py_compile` with a result file"""
    import py_compile

    with open(workspace.own("code.py"), "w") as file:
        file.write("x = 1")
    py_compile.compile(workspace.own("code.py"), workspace.out("code.pyc"), doraise=True)


@attempt("write")
def archive_outward(workspace: Workspace) -> Any:
    """`shutil.make_archive`"""
    import shutil

    shutil.make_archive(workspace.out("archive"), "zip", workspace.own("deep"))


@attempt("write")
def application_outward(workspace: Workspace) -> Any:
    """`zipapp.create_archive`"""
    import zipapp

    with open(workspace.own("deep/__main__.py"), "w") as file:
        file.write("print(1)")
    zipapp.create_archive(workspace.own("deep"), workspace.out("application.pyz"))


@attempt("write")
def rotate_log(workspace: Workspace) -> Any:
    """`logging.handlers.RotatingFileHandler`"""
    import logging
    from logging.handlers import RotatingFileHandler

    handler = RotatingFileHandler(workspace.victim, maxBytes=1, backupCount=1, delay=True)
    handler.emit(logging.LogRecord("a", 20, "a", 1, CHANGED, None, None))
    handler.close()


@attempt("write")
def sqlite_backup(workspace: Workspace) -> Any:
    """`Connection.backup`"""
    import sqlite3

    source = sqlite3.connect(":memory:")
    source.execute("create table rows (word text)")
    source.backup(sqlite3.connect(workspace.out("backup.db")))


@attempt("write")
def edit_in_place(workspace: Workspace) -> Any:
    """`fileinput` with `inplace`"""
    import fileinput

    with fileinput.input(workspace.victim, inplace=True) as lines:
        for _ in lines:
            print(CHANGED)


@attempt("delete")
def remove_empty_parents(workspace: Workspace) -> Any:
    """`os.removedirs`"""
    os.removedirs(workspace.out("empty"))


@attempt("delete")
def temporary_folder_cleanup(workspace: Workspace) -> Any:
    """the clean-up of `tempfile.TemporaryDirectory`"""
    import tempfile

    folder = tempfile.TemporaryDirectory(dir=workspace.inside)
    folder.name = workspace.out("folder")
    folder._finalizer.detach()  # type: ignore[attr-defined]
    folder._rmtree(folder.name)  # type: ignore[attr-defined]


@attempt("delete")
def rename_folder_away(workspace: Workspace) -> Any:
    """`os.rename` of a whole folder"""
    os.rename(workspace.out("folder"), workspace.own("taken"))


@attempt("delete")
def replace_through_folder_link(workspace: Workspace) -> Any:
    """`os.replace` through a link to the folder"""
    os.replace(workspace.own("folder-link/victim.txt"), workspace.own("taken.txt"))


@attempt("delete")
def move_by_shutil(workspace: Workspace) -> Any:
    """`shutil.move` from outside"""
    import shutil

    shutil.move(workspace.victim, workspace.own("taken.txt"))


# ------------------------------------------------------------------ other connections and programs


@attempt("net")
def connect_mapped_address(workspace: Workspace) -> Any:
    """an IPv4 address that is mapped to IPv6"""
    with socket.socket(socket.AF_INET6) as connection:
        connection.connect(("::ffff:127.0.0.1", workspace.tcp))


@attempt("net")
def connect_zero_address(workspace: Workspace) -> Any:
    """the address `0.0.0.0`, which is this machine"""
    socket.create_connection(("0.0.0.0", workspace.tcp)).close()


@attempt("net")
def mail_connection(workspace: Workspace) -> Any:
    """`smtplib.SMTP`"""
    import smtplib

    smtplib.SMTP("127.0.0.1", workspace.tcp, timeout=0.2)


@attempt("net")
def file_transfer_connection(workspace: Workspace) -> Any:
    """`ftplib.FTP`"""
    import ftplib

    ftplib.FTP(timeout=0.2).connect("127.0.0.1", workspace.tcp)


@attempt("net")
def asyncio_unix_connection(workspace: Workspace) -> Any:
    """`asyncio.open_unix_connection`"""
    import asyncio

    async def connect() -> None:
        _, writer = await asyncio.open_unix_connection(workspace.unix)
        writer.close()

    asyncio.run(connect())


@attempt("net")
def connect_unix_through_link(workspace: Workspace) -> Any:
    """a local socket through a link inside"""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(workspace.own("folder-link/socket"))


@attempt("net")
def serve_http(workspace: Workspace) -> Any:
    """`http.server.HTTPServer`"""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler).server_close()
    return "bound"


@attempt("net")
def listen_with_multiprocessing(workspace: Workspace) -> Any:
    """`multiprocessing.connection.Listener`"""
    from multiprocessing.connection import Listener as PipeListener

    PipeListener(("127.0.0.1", 0)).close()
    return "bound"


@attempt("net")
def write_inherited_connection(workspace: Workspace) -> Any:
    """`os.writev` on a connection from before"""
    os.writev(workspace.socket_fd, [b"written"])


@attempt("net")
def sendfile_to_connection(workspace: Workspace) -> Any:
    """`os.sendfile` to a connection from before"""
    with open(workspace.own("own.txt"), "rb") as file:
        os.sendfile(workspace.socket_fd, file.fileno(), 0, 4)


@attempt("spawn")
def process_pool(workspace: Workspace) -> Any:
    """`concurrent.futures.ProcessPoolExecutor`"""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return f"spawned {pool.submit(os.getpid).result(20)}"


@attempt("spawn")
def pager(workspace: Workspace) -> Any:
    """`pydoc.pipepager`"""
    import pydoc

    pydoc.pipepager("spawned", f"cat > {workspace.own('spawned')}")


@attempt("spawn")
def asyncio_shell(workspace: Workspace) -> Any:
    """`asyncio.create_subprocess_shell`"""
    import asyncio

    async def run() -> bytes:
        process = await asyncio.create_subprocess_shell("echo spawned", stdout=-1)
        return (await process.communicate())[0]

    return asyncio.run(run())


@attempt("spawn")
def shell_output(workspace: Workspace) -> Any:
    """`subprocess.getoutput`"""
    import subprocess

    return subprocess.getoutput("echo spawned")


@attempt("spawn")
def spawn_by_path(workspace: Workspace) -> Any:
    """`os.spawnlp`"""
    os.spawnlp(os.P_WAIT, "touch", "touch", workspace.own("spawned"))


@attempt("env")
def environ_bytes(workspace: Workspace) -> Any:
    """`os.environb`"""
    return os.environb[VARIABLE.encode()]


@attempt("env")
def posix_environ(workspace: Workspace) -> Any:
    """`posix.environ`"""
    import posix

    return posix.environ[VARIABLE.encode()]


@attempt("env")
def expand_variables(workspace: Workspace) -> Any:
    """`os.path.expandvars`"""
    return os.path.expandvars(f"${VARIABLE}")


@attempt("env")
def ctypes_getenv(workspace: Workspace) -> Any:
    """`getenv` of the C library"""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    return libc.getenv(VARIABLE.encode())
