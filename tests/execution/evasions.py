"""Evasion attempts: small functions that access what a command did not declare.

    ground = lay_out(root)              inside/ is declared, outside/ is not
    evidence = attempt.run(ground)      in the restricted process, or in a child of it
    succeeded(attempt, ground, before, evidence, heard)

This module does not import tooli. An attempt gets a Ground and returns evidence: what it read, or
what it believes to have done. The code that runs it inspects the files, so that the result does not
depend on evidence alone. Some attempts act when the process ends.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN = "never-seen-outside"  # the content of the secret files, and of nothing else
CHANGED = "changed-by-an-evasion"
VARIABLE = "EVASION_SECRET"  # an environment variable that holds the token

KINDS = {
    "read": "the content of a file that is not declared",
    "list": "the names in a folder that is not declared",
    "metadata": "size, owner or existence of a file that is not declared",
    "write": "a file that is not declared, made or changed",
    "delete": "a file that is not declared, gone",
    "attributes": "mode, times or owner of a file that is not declared, changed",
    "net": "another process talked to, or a port opened",
    "spawn": "another program, or native code, run",
    "env": "an environment variable read or changed",
}


class Ground(NamedTuple):
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
    run: Callable[[Ground], Any]


ATTEMPTS: list[Attempt] = []


def attempt(kind: str) -> Callable[[Callable[[Ground], Any]], Callable[[Ground], Any]]:
    """Add a function to the table."""

    def enter(fn: Callable[[Ground], Any]) -> Callable[[Ground], Any]:
        assert kind in KINDS
        ATTEMPTS.append(Attempt(fn.__name__, kind, (fn.__doc__ or "").strip(), fn))
        return fn

    return enter


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

    def heard(self) -> str:
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


def lay_out(root: str, listener: Listener | None = None) -> Ground:
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

    def put(name: str, text: str) -> str:
        path = os.path.join(root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    put("inside/own.txt", "mine\n")
    secret = put("outside/secret.txt", f"{TOKEN}\n")
    put("outside/folder/secret.txt", f"{TOKEN}\n")
    victim = put("outside/victim.txt", "as it was\n")
    module = put("outside/secret_module.py", f"TOKEN = {TOKEN!r}\n")
    put("outside/certificate.pem", _CERTIFICATE)
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
    return Ground(
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


def survey(ground: Ground) -> dict[str, tuple[Any, ...]]:
    """Return the state of everything outside."""
    found: dict[str, tuple[Any, ...]] = {}
    for folder, folders, files in os.walk(ground.outside):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            state = os.lstat(path)
            content = b""
            if name in files and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    content = file.read()
            times = 0 if name in folders else state.st_mtime_ns
            attributes = (state.st_mode, state.st_uid, state.st_gid, times, _attributes(path))
            found[os.path.relpath(path, ground.outside)] = (content, attributes)
    return found


def _attributes(path: str) -> tuple[str, ...]:
    try:
        return tuple(os.listxattr(path, follow_symlinks=False))
    except (OSError, AttributeError):
        return ()


def succeeded(
    attempt: Attempt,
    ground: Ground,
    before: dict[str, tuple[Any, ...]],
    evidence: Any,
    heard: str,
) -> bool:
    """True if the attempt did what it tried; its process must have ended."""
    text = evidence.decode("utf-8", "replace") if isinstance(evidence, bytes) else str(evidence)
    after = survey(ground)
    kind = attempt.kind
    if kind == "read":
        return TOKEN in text or TOKEN in _left_inside(ground) or TOKEN in heard
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
        return bool(heard) or (bool(evidence) and "resolve" in attempt.name) or text == "bound"
    if kind == "spawn":
        return "spawned" in text or os.path.exists(ground.own("spawned"))
    if kind == "env":
        return TOKEN in text or CHANGED in text
    return bool(evidence)


def _left_inside(ground: Ground) -> str:
    """Return what the attempt copied to a place where it may write."""
    texts: list[str] = []
    for folder, _, files in os.walk(ground.inside):
        for name in files:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    texts.append(file.read())
    return "\n".join(texts)


# ------------------------------------------------------------------ reading


@attempt("read")
def open_by_name(ground: Ground) -> Any:
    """`open(path)`"""
    with open(ground.secret) as file:
        return file.read()


@attempt("read")
def open_bytes_name(ground: Ground) -> Any:
    """`open(b"path")`"""
    with open(os.fsencode(ground.secret), "rb") as file:
        return file.read()


@attempt("read")
def io_open(ground: Ground) -> Any:
    """`io.open(path)`"""
    import io

    with io.open(ground.secret) as file:  # noqa: UP020
        return file.read()


@attempt("read")
def io_file_io(ground: Ground) -> Any:
    """`_io.FileIO(path)`"""
    import _io

    with _io.FileIO(ground.secret) as file:
        return file.read()


@attempt("read")
def io_open_code(ground: Ground) -> Any:
    """`io.open_code(path)`, as importing does it"""
    import io

    with io.open_code(ground.secret) as file:
        return file.read()


@attempt("read")
def os_open(ground: Ground) -> Any:
    """`os.open` and `os.read`"""
    fd = os.open(ground.secret, os.O_RDONLY)
    return os.read(fd, 100)


@attempt("read")
def posix_open(ground: Ground) -> Any:
    """`posix.open`, below `os`"""
    import posix

    return posix.read(posix.open(ground.secret, 0), 100)


@attempt("read")
def pathlib_read(ground: Ground) -> Any:
    """`Path.read_text`"""
    from pathlib import Path

    return Path(ground.secret).read_text()


@attempt("read")
def dots(ground: Ground) -> Any:
    """`inside/deep/../../outside/…`"""
    with open(os.path.join(ground.inside, "deep", "..", "..", "outside", "secret.txt")) as file:
        return file.read()


@attempt("read")
def relative_dots(ground: Ground) -> Any:
    """`../outside/…` from inside"""
    os.chdir(ground.inside)
    with open("../outside/secret.txt") as file:
        return file.read()


@attempt("read")
def old_link(ground: Ground) -> Any:
    """a link inside, from before"""
    with open(ground.own("link")) as file:
        return file.read()


@attempt("read")
def old_folder_link(ground: Ground) -> Any:
    """a link to a folder, from before"""
    with open(ground.own("folder-link/secret.txt")) as file:
        return file.read()


@attempt("read")
def new_link(ground: Ground) -> Any:
    """a link inside, made for it"""
    os.symlink(ground.secret, ground.own("new"))
    with open(ground.own("new")) as file:
        return file.read()


@attempt("read")
def link_named_like_a_device(ground: Ground) -> Any:
    """a link called `nul`, which is a device elsewhere"""
    os.symlink(ground.secret, ground.own("nul"))
    os.chdir(ground.inside)
    with open("nul") as file:
        return file.read()


@attempt("read")
def exclusive_open(ground: Ground) -> Any:
    """`O_EXCL` without `O_CREAT`, which follows links"""
    os.symlink(ground.secret, ground.own("exclusive"))
    return os.read(os.open(ground.own("exclusive"), os.O_RDWR | os.O_EXCL), 100)


@attempt("read")
def exchanged_folder(ground: Ground) -> Any:
    """a folder that was looked at, then a link in its place"""
    os.mkdir(ground.own("turn"))
    with open(ground.own("turn/secret.txt"), "w") as file:
        file.write("harmless")
    os.rename(ground.own("turn"), ground.own("turned"))
    os.symlink(ground.outside, ground.own("turn"))
    with open(ground.own("turn/secret.txt")) as file:
        return file.read()


@attempt("read")
def hard_link(ground: Ground) -> Any:
    """`os.link` into the own folder"""
    os.link(ground.secret, ground.own("hard"))
    with open(ground.own("hard")) as file:
        return file.read()


@attempt("read")
def moved_in(ground: Ground) -> Any:
    """`os.rename` into the own folder"""
    os.rename(ground.out("folder/secret.txt"), ground.own("moved"))
    with open(ground.own("moved")) as file:
        return file.read()


@attempt("read")
def proc_root(ground: Ground) -> Any:
    """`/proc/self/root/…`"""
    with open("/proc/self/root" + ground.secret) as file:
        return file.read()


@attempt("read")
def proc_cwd(ground: Ground) -> Any:
    """`/proc/self/cwd/…`"""
    os.chdir(ground.inside)
    with open("/proc/self/cwd/../outside/secret.txt") as file:
        return file.read()


@attempt("read")
def change_folder(ground: Ground) -> Any:
    """`os.chdir(outside)`, then a bare name"""
    os.chdir(ground.outside)
    with open("secret.txt") as file:
        return file.read()


@attempt("read")
def folder_descriptor(ground: Ground) -> Any:
    """`os.open(name, dir_fd=…)`, the folder opened now"""
    folder = os.open(ground.outside, os.O_RDONLY)
    return os.read(os.open("secret.txt", os.O_RDONLY, dir_fd=folder), 100)


@attempt("read")
def folder_descriptor_path_only(ground: Ground) -> Any:
    """the same, the folder opened with `O_PATH`"""
    folder = os.open(ground.outside, os.O_PATH)
    return os.read(os.open("secret.txt", os.O_RDONLY, dir_fd=folder), 100)


@attempt("read")
def folder_descriptor_climbing(ground: Ground) -> Any:
    """`dir_fd` of an own folder, and a name that climbs out of it"""
    os.makedirs(ground.own("deep/outside"), exist_ok=True)
    os.chdir(ground.own("deep/deeper"))
    folder = os.open(ground.inside, os.O_RDONLY)
    return os.read(os.open("../outside/secret.txt", os.O_RDONLY, dir_fd=folder), 100)


@attempt("read")
def folder_descriptor_from_before(ground: Ground) -> Any:
    """`dir_fd` that was open before the call"""
    os.chdir(ground.inside)
    return os.read(os.open("secret.txt", os.O_RDONLY, dir_fd=ground.folder_fd), 100)


@attempt("read")
def change_to_descriptor(ground: Ground) -> Any:
    """`os.fchdir` to a folder that was open before"""
    os.fchdir(ground.folder_fd)
    with open("secret.txt") as file:
        return file.read()


@attempt("read")
def descriptor_from_before(ground: Ground) -> Any:
    """a file that was open before the call"""
    return os.pread(ground.secret_fd, 100, 0)


@attempt("read")
def descriptor_as_file(ground: Ground) -> Any:
    """the same by `open(fd)`"""
    with open(os.dup(ground.secret_fd)) as file:
        file.seek(0)
        return file.read()


@attempt("read")
def descriptor_by_proc(ground: Ground) -> Any:
    """the same by `/proc/self/fd/N`"""
    with open(f"/proc/self/fd/{ground.secret_fd}") as file:
        return file.read()


@attempt("read")
def descriptor_mapped(ground: Ground) -> Any:
    """the same by `mmap`"""
    import mmap

    with mmap.mmap(ground.secret_fd, 0, prot=mmap.PROT_READ) as memory:
        return bytes(memory)


@attempt("read")
def descriptor_copied(ground: Ground) -> Any:
    """the same by `os.sendfile` into an own file"""
    fd = os.open(ground.own("copy"), os.O_RDWR | os.O_CREAT)
    os.sendfile(fd, ground.secret_fd, 0, 100)
    return os.pread(fd, 100, 0)


@attempt("read")
def shutil_copy(ground: Ground) -> Any:
    """`shutil.copyfile` into the own folder"""
    import shutil

    shutil.copyfile(ground.secret, ground.own("copy"))


@attempt("read")
def shutil_copytree(ground: Ground) -> Any:
    """`shutil.copytree` into the own folder"""
    import shutil

    shutil.copytree(ground.out("folder"), ground.own("tree"))


@attempt("read")
def line_cache(ground: Ground) -> Any:
    """`linecache.getlines`"""
    import linecache

    return "".join(linecache.getlines(ground.secret))


@attempt("read")
def tokenized(ground: Ground) -> Any:
    """`tokenize.open`"""
    import tokenize

    with tokenize.open(ground.secret) as file:
        return file.read()


@attempt("read")
def file_input(ground: Ground) -> Any:
    """`fileinput.input`"""
    import fileinput

    with fileinput.input(ground.secret) as lines:
        return "".join(lines)


@attempt("read")
def file_url(ground: Ground) -> Any:
    """`urllib` with a `file:` URL"""
    from urllib.request import urlopen

    with urlopen(f"file://{ground.secret}") as answer:
        return answer.read()


@attempt("read")
def run_path(ground: Ground) -> Any:
    """`runpy.run_path`"""
    import runpy

    return runpy.run_path(ground.out("secret_module.py"))["TOKEN"]


@attempt("read")
def imported(ground: Ground) -> Any:
    """`sys.path.insert`, then `import`"""
    sys.path.insert(0, ground.outside)
    import secret_module  # type: ignore[import-not-found]

    return secret_module.TOKEN


@attempt("read")
def source_loader(ground: Ground) -> Any:
    """`SourceFileLoader.get_data`"""
    from importlib.machinery import SourceFileLoader

    return SourceFileLoader("x", ground.secret).get_data(ground.secret)


@attempt("read")
def imported_from_zip(ground: Ground) -> Any:
    """`import` from an archive"""
    sys.path.insert(0, ground.out("secret.zip"))
    import zipped_module  # type: ignore[import-not-found]

    return zipped_module.TOKEN


@attempt("read")
def zip_file(ground: Ground) -> Any:
    """`zipfile.ZipFile`"""
    import zipfile

    with zipfile.ZipFile(ground.out("secret.zip")) as archive:
        return archive.read("secret.txt")


@attempt("read")
def tar_file(ground: Ground) -> Any:
    """`tarfile.open`"""
    import tarfile

    with tarfile.open(ground.out("secret.tar")) as archive:
        file = archive.extractfile("secret.txt")
        return file.read() if file else None


@attempt("read")
def gzip_file(ground: Ground) -> Any:
    """`gzip.open`"""
    import gzip

    with gzip.open(ground.out("secret.gz"), "rt") as file:
        return file.read()


def _rows(address: str) -> Any:
    import sqlite3

    base = sqlite3.connect(address, uri=address.startswith("file:"))
    return base.execute("select * from secrets").fetchall()


@attempt("read")
def sqlite_connect(ground: Ground) -> Any:
    """`sqlite3.connect`"""
    return _rows(ground.out("secret.db"))


@attempt("read")
def sqlite_read_only(ground: Ground) -> Any:
    """`sqlite3.connect("file:…?mode=ro", uri=True)`"""
    return _rows(f"file:{ground.out('secret.db')}?mode=ro")


@attempt("read")
def sqlite_escaped_name(ground: Ground) -> Any:
    """a URI of an own file, whose escapes climb out"""
    return _rows(f"file:{ground.inside}/%2E%2E/outside/secret.db?mode=ro")


@attempt("read")
def sqlite_hidden_option(ground: Ground) -> Any:
    """a URI with `mode=memory` in the value of another option"""
    return _rows(f"file:{ground.out('secret.db')}?x=mode=memory")


@attempt("read")
def sqlite_fragment(ground: Ground) -> Any:
    """a URI with `mode=memory` behind a `#`"""
    return _rows(f"file:{ground.out('secret.db')}#?mode=memory")


@attempt("read")
def sqlite_attach(ground: Ground) -> Any:
    """`ATTACH` in a database in memory"""
    import sqlite3

    base = sqlite3.connect(":memory:")
    base.execute("attach ? as other", (ground.out("secret.db"),))
    return base.execute("select * from other.secrets").fetchall()


@attempt("read")
def certificate(ground: Ground) -> Any:
    """`SSLContext.load_verify_locations`, which reads in C"""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile=ground.out("certificate.pem"))
    return context.get_ca_certs()


@attempt("read")
def history_file(ground: Ground) -> Any:
    """`readline.read_history_file`, which reads in C"""
    import readline

    readline.read_history_file(ground.secret)
    return readline.get_history_item(readline.get_current_history_length())


@attempt("read")
def ctypes_libc(ground: Ground) -> Any:
    """`ctypes.CDLL(None).open`"""
    import ctypes

    libc = ctypes.CDLL(None)
    memory = ctypes.create_string_buffer(100)
    libc.read(libc.open(ground.secret.encode(), 0), memory, 100)
    return memory.value


@attempt("read")
def ctypes_pythonapi(ground: Ground) -> Any:
    """`ctypes.pythonapi.open`, with no library opened"""
    import ctypes

    memory = ctypes.create_string_buffer(100)
    fd = ctypes.pythonapi.open(ground.secret.encode(), 0)
    ctypes.pythonapi.read(fd, memory, 100)
    return memory.value


@attempt("read")
def in_thread(ground: Ground) -> Any:
    """a `threading.Thread`"""
    import threading

    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(open_by_name(ground)))
    threading.excepthook = lambda _: None
    thread.start()
    thread.join()
    return found


@attempt("read")
def in_raw_thread(ground: Ground) -> Any:
    """`_thread.start_new_thread`"""
    import _thread

    found: list[Any] = []
    done = _thread.allocate_lock()
    done.acquire()

    def work() -> None:
        try:
            found.append(open_by_name(ground))
        except OSError:
            pass
        finally:
            done.release()

    _thread.start_new_thread(work, ())
    done.acquire()
    return found


@attempt("read")
def in_pool(ground: Ground) -> Any:
    """a `ThreadPoolExecutor`"""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(open_by_name, ground).result()


@attempt("read")
def in_pool_of_processes(ground: Ground) -> Any:
    """`multiprocessing.pool.ThreadPool`"""
    from multiprocessing.pool import ThreadPool

    with ThreadPool(1) as pool:
        return pool.apply(open_by_name, (ground,))


@attempt("read")
def in_timer(ground: Ground) -> Any:
    """a `threading.Timer`"""
    import threading

    found: list[str] = []
    threading.excepthook = lambda _: None
    timer = threading.Timer(0, lambda: found.append(open_by_name(ground)))
    timer.start()
    timer.join()
    return found


@attempt("read")
def on_a_loop(ground: Ground) -> Any:
    """`asyncio.to_thread`"""
    import asyncio

    return asyncio.run(asyncio.to_thread(open_by_name, ground))


@attempt("read")
def in_executor_of_loop(ground: Ground) -> Any:
    """`loop.run_in_executor`, which carries no context"""
    import asyncio

    async def work() -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, open_by_name, ground)

    return asyncio.run(work())


@attempt("read")
def in_empty_context(ground: Ground) -> Any:
    """`contextvars.Context().run`"""
    import contextvars

    return contextvars.Context().run(open_by_name, ground)


@attempt("read")
def in_task_of_empty_context(ground: Ground) -> Any:
    """an `asyncio` callback in an empty context"""
    import asyncio
    import contextvars

    async def work() -> Any:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def read() -> None:
            try:
                done.set_result(open_by_name(ground))
            except OSError as failure:
                done.set_exception(failure)

        loop.call_soon(read, context=contextvars.Context())
        return await done

    return asyncio.run(work())


@attempt("read")
def in_signal_handler(ground: Ground) -> Any:
    """a signal's handler"""
    import signal

    found: list[str] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: found.append(open_by_name(ground)))
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    return found


@attempt("read")
def in_trace(ground: Ground) -> Any:
    """a trace function"""
    found: list[str] = []

    def look(*_: Any) -> None:
        sys.settrace(None)
        found.append(open_by_name(ground))

    sys.settrace(look)
    try:
        (lambda: None)()
    finally:
        sys.settrace(None)
    return found


@attempt("read")
def in_finalizer(ground: Ground) -> Any:
    """`__del__`, while the call runs"""
    found: list[Any] = []

    class Last:
        def __del__(self) -> None:
            try:
                found.append(open_by_name(ground))
            except OSError:
                pass

    Last()
    return found


@attempt("read")
def unpickled(ground: Ground) -> Any:
    """a pickle that opens a file"""
    import pickle

    class Opening:
        def __reduce__(self) -> Any:
            return (open, (ground.secret,))

    with pickle.loads(pickle.dumps(Opening())) as file:
        return file.read()


@attempt("read")
def evaluated(ground: Ground) -> Any:
    """`eval` of a text"""
    return eval(f"open({ground.secret!r}).read()")


@attempt("read")
def caught_and_repeated(ground: Ground) -> Any:
    """the error caught, and tried again in another way"""
    for read in (open_by_name, os_open, pathlib_read):
        try:
            return read(ground)
        except OSError:
            continue
    return None


@attempt("read")
def at_exit(ground: Ground) -> Any:
    """`atexit`: when the process ends"""
    import atexit

    atexit.register(_copy, ground.secret, ground.own("late"))


@attempt("read")
def finalizer_at_exit(ground: Ground) -> Any:
    """`weakref.finalize`: when the process ends"""
    import weakref

    weakref.finalize(sys, _copy, ground.secret, ground.own("late"))


@attempt("read")
def thread_after_call(ground: Ground) -> Any:
    """a thread that waits until the call is over"""
    import threading

    def work() -> None:
        threading.main_thread().join()
        try:
            _copy(ground.secret, ground.own("late"))
        except OSError:
            pass

    threading.Thread(target=work).start()


def _copy(source: str, target: str) -> None:
    with open(source) as file:
        text = file.read()
    with open(target, "w") as file:
        file.write(text)


@attempt("read")
def prints_later(ground: Ground) -> Any:
    """`sys.excepthook` replaced, for later"""
    import atexit

    def fail() -> None:
        raise RuntimeError

    def look(*_: Any) -> None:
        _copy(ground.secret, ground.own("late"))

    sys.unraisablehook = look
    atexit.register(fail)


@attempt("read")
def reaches_for_the_variable(ground: Ground) -> Any:
    """tooli's own context variable, emptied"""
    from tooli.execution.monitor import audit_hook  # type: ignore[import-not-found]

    audit_hook._current_monitors.set(None)
    return open_by_name(ground)


@attempt("read")
def uses_the_internal_exception(ground: Ground) -> Any:
    """tooli's own way out, for its own files"""
    from tooli.execution.monitor.audit_hook import unmonitored  # type: ignore[import-not-found]

    with unmonitored():
        return open_by_name(ground)


@attempt("read")
def reaches_for_the_table(ground: Ground) -> Any:
    """tooli's own table of events, emptied"""
    from tooli.execution.monitor import audit_hook  # type: ignore[import-not-found]

    audit_hook.EVENTS.clear()
    return open_by_name(ground)


# ------------------------------------------------------------------ listing


@attempt("list")
def list_folder(ground: Ground) -> Any:
    """`os.listdir`"""
    return os.listdir(ground.outside)


@attempt("list")
def scan_folder(ground: Ground) -> Any:
    """`os.scandir`"""
    return [entry.name for entry in os.scandir(ground.outside)]


@attempt("list")
def walk_folder(ground: Ground) -> Any:
    """`os.walk`"""
    return list(os.walk(ground.outside))


@attempt("list")
def glob_folder(ground: Ground) -> Any:
    """`glob.glob`"""
    import glob

    return glob.glob(ground.out("*"))


@attempt("list")
def iterate_folder(ground: Ground) -> Any:
    """`Path.iterdir`"""
    from pathlib import Path

    return list(Path(ground.outside).iterdir())


@attempt("list")
def list_descriptor(ground: Ground) -> Any:
    """`os.listdir(fd)` of a folder that was open before"""
    return os.listdir(ground.folder_fd)


@attempt("list")
def list_by_proc(ground: Ground) -> Any:
    """`os.listdir("/proc/self/fd/N")`"""
    return os.listdir(f"/proc/self/fd/{ground.folder_fd}")


@attempt("list")
def list_through_link(ground: Ground) -> Any:
    """`os.listdir` of a link to it"""
    return os.listdir(ground.own("folder-link"))


# ------------------------------------------------------------------ metadata


@attempt("metadata")
def stat_file(ground: Ground) -> Any:
    """`os.stat`"""
    return os.stat(ground.secret).st_size


@attempt("metadata")
def file_exists(ground: Ground) -> Any:
    """`os.path.exists`"""
    return os.path.exists(ground.secret)


@attempt("metadata")
def access_file(ground: Ground) -> Any:
    """`os.access`"""
    return os.access(ground.secret, os.R_OK)


@attempt("metadata")
def read_link(ground: Ground) -> Any:
    """`os.readlink`"""
    return os.readlink(ground.own("link"))


@attempt("metadata")
def real_path(ground: Ground) -> Any:
    """`os.path.realpath`"""
    return "secret" in os.path.realpath(ground.own("link"))


@attempt("metadata")
def list_attributes(ground: Ground) -> Any:
    """`os.listxattr`"""
    os.listxattr(ground.secret)
    return True


@attempt("metadata")
def volume(ground: Ground) -> Any:
    """`os.statvfs`"""
    return os.statvfs(ground.outside).f_bsize


@attempt("metadata")
def error_oracle(ground: Ground) -> Any:
    """`os.mkdir` of a folder that is there: the error says so"""
    try:
        os.mkdir(ground.out("folder"))
    except FileExistsError:
        return True
    return None


# ------------------------------------------------------------------ writing


@attempt("write")
def write_file(ground: Ground) -> Any:
    """`open(path, "w")`"""
    with open(ground.victim, "w") as file:
        return file.write(CHANGED)


@attempt("write")
def append_file(ground: Ground) -> Any:
    """`open(path, "a")`"""
    with open(ground.victim, "a") as file:
        return file.write(CHANGED)


@attempt("write")
def update_file(ground: Ground) -> Any:
    """`open(path, "r+")`"""
    with open(ground.victim, "r+") as file:
        return file.write(CHANGED)


@attempt("write")
def create_file(ground: Ground) -> Any:
    """`open(path, "x")`"""
    with open(ground.out("new"), "x") as file:
        return file.write(CHANGED)


@attempt("write")
def os_create(ground: Ground) -> Any:
    """`os.open(path, O_CREAT)`"""
    return os.write(os.open(ground.out("new"), os.O_CREAT | os.O_WRONLY), b"x")


@attempt("write")
def path_write(ground: Ground) -> Any:
    """`Path.write_text`"""
    from pathlib import Path

    return Path(ground.victim).write_text(CHANGED)


@attempt("write")
def path_touch(ground: Ground) -> Any:
    """`Path.touch`"""
    from pathlib import Path

    Path(ground.out("new")).touch()


@attempt("write")
def write_through_link(ground: Ground) -> Any:
    """a link to a file that is not there yet"""
    with open(ground.own("dangling"), "w") as file:
        return file.write(CHANGED)


@attempt("write")
def write_through_folder_link(ground: Ground) -> Any:
    """a link to a folder"""
    with open(ground.own("folder-link/victim.txt"), "w") as file:
        return file.write(CHANGED)


@attempt("write")
def write_descriptor(ground: Ground) -> Any:
    """a file that was open for writing before the call"""
    return os.pwrite(ground.victim_fd, CHANGED.encode(), 0)


@attempt("write")
def truncate_descriptor(ground: Ground) -> Any:
    """`os.ftruncate` of the same"""
    os.ftruncate(ground.victim_fd, 1)


@attempt("write")
def truncate_file(ground: Ground) -> Any:
    """`os.truncate`"""
    os.truncate(ground.victim, 1)


@attempt("write")
def make_folder(ground: Ground) -> Any:
    """`os.mkdir`"""
    os.mkdir(ground.out("made"))


@attempt("write")
def make_pipe(ground: Ground) -> Any:
    """`os.mkfifo`"""
    os.mkfifo(ground.out("pipe"))


@attempt("write")
def make_node(ground: Ground) -> Any:
    """`os.mknod`"""
    os.mknod(ground.out("node"))


@attempt("write")
def link_outward(ground: Ground) -> Any:
    """`os.link` of an own file to the outside"""
    os.link(ground.own("own.txt"), ground.out("linked"))


@attempt("write")
def symlink_outward(ground: Ground) -> Any:
    """`os.symlink` outside"""
    os.symlink(ground.own("own.txt"), ground.out("linked"))


@attempt("write")
def rename_outward(ground: Ground) -> Any:
    """`os.replace` of an own file over another"""
    os.replace(ground.own("own.txt"), ground.victim)


@attempt("write")
def move_outward(ground: Ground) -> Any:
    """`shutil.move`"""
    import shutil

    shutil.move(ground.own("own.txt"), ground.out("moved"))


@attempt("write")
def copy_outward(ground: Ground) -> Any:
    """`shutil.copy`"""
    import shutil

    shutil.copy(ground.own("own.txt"), ground.out("copied"))


@attempt("write")
def extract_outward(ground: Ground) -> Any:
    """`ZipFile.extractall`"""
    import zipfile

    with zipfile.ZipFile(ground.own("parcel.zip")) as archive:
        archive.extractall(ground.outside)


@attempt("write")
def temporary_file(ground: Ground) -> Any:
    """`tempfile.mkstemp(dir=…)`"""
    import tempfile

    return tempfile.mkstemp(dir=ground.outside)


@attempt("write")
def log_file(ground: Ground) -> Any:
    """`logging.FileHandler`"""
    import logging

    handler = logging.FileHandler(ground.out("log"))
    handler.emit(logging.makeLogRecord({"msg": CHANGED}))
    handler.close()


@attempt("write")
def sqlite_create(ground: Ground) -> Any:
    """`sqlite3.connect` of a new file"""
    import sqlite3

    sqlite3.connect(ground.out("new.db")).execute("create table t (x)")


@attempt("write")
def sqlite_vacuum(ground: Ground) -> Any:
    """`VACUUM INTO` from a database in memory"""
    import sqlite3

    sqlite3.connect(":memory:").execute("vacuum into ?", (ground.out("new.db"),))


@attempt("write")
def write_by_folder_descriptor(ground: Ground) -> Any:
    """`dir_fd` that was open before the call"""
    os.chdir(ground.inside)
    os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=ground.folder_fd))


@attempt("write")
def save_history(ground: Ground) -> Any:
    """`readline.write_history_file`, which writes in C"""
    import readline

    readline.add_history(CHANGED)
    readline.write_history_file(ground.out("history"))


@attempt("write")
def ctypes_create(ground: Ground) -> Any:
    """`ctypes.CDLL(None).creat`"""
    import ctypes

    return ctypes.CDLL(None).creat(ground.out("new").encode(), 0o600)


@attempt("write")
def bind_unix_socket(ground: Ground) -> Any:
    """a socket bound to a path"""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(ground.out("bound"))


@attempt("write")
def write_in_thread(ground: Ground) -> Any:
    """a thread"""
    import threading

    threading.excepthook = lambda _: None
    thread = threading.Thread(target=write_file, args=(ground,))
    thread.start()
    thread.join()


@attempt("write")
def write_at_exit(ground: Ground) -> Any:
    """`atexit`: when the process ends"""
    import atexit

    atexit.register(write_file, ground)


@attempt("write")
def write_after_swallowing(ground: Ground) -> Any:
    """the error swallowed, and written in another way"""
    for write in (write_file, os_create, path_write):
        try:
            return write(ground)
        except OSError:
            continue
    return None


# ------------------------------------------------------------------ deleting


@attempt("delete")
def remove_file(ground: Ground) -> Any:
    """`os.remove`"""
    os.remove(ground.victim)


@attempt("delete")
def unlink_path(ground: Ground) -> Any:
    """`Path.unlink`"""
    from pathlib import Path

    Path(ground.victim).unlink()


@attempt("delete")
def remove_folder(ground: Ground) -> Any:
    """`os.rmdir`"""
    os.rmdir(ground.out("empty"))


@attempt("delete")
def remove_tree(ground: Ground) -> Any:
    """`shutil.rmtree`"""
    import shutil

    shutil.rmtree(ground.out("folder"))


@attempt("delete")
def rename_away(ground: Ground) -> Any:
    """`os.rename` into the own folder"""
    os.rename(ground.victim, ground.own("taken"))


@attempt("delete")
def remove_by_folder_descriptor(ground: Ground) -> Any:
    """`os.remove(name, dir_fd=…)`, the folder open before"""
    os.chdir(ground.inside)
    os.remove("victim.txt", dir_fd=ground.folder_fd)


# ------------------------------------------------------------------ attributes


@attempt("attributes")
def change_mode(ground: Ground) -> Any:
    """`os.chmod`"""
    os.chmod(ground.victim, 0o777)


@attempt("attributes")
def change_mode_of_descriptor(ground: Ground) -> Any:
    """`os.fchmod` of a file that was open before"""
    os.fchmod(ground.victim_fd, 0o777)


@attempt("attributes")
def change_times(ground: Ground) -> Any:
    """`os.utime`"""
    os.utime(ground.victim, (1, 1))


@attempt("attributes")
def change_owner(ground: Ground) -> Any:
    """`os.chown`"""
    os.chown(ground.victim, 12345, 12345)


@attempt("attributes")
def set_attribute(ground: Ground) -> Any:
    """`os.setxattr`"""
    os.setxattr(ground.victim, "user.evasion", b"x")


# ------------------------------------------------------------------ network


@attempt("net")
def connect(ground: Ground) -> Any:
    """`socket.create_connection`"""
    with socket.create_connection(("127.0.0.1", ground.tcp)) as line:
        line.sendall(TOKEN.encode())


@attempt("net")
def connect_with_code(ground: Ground) -> Any:
    """`socket.connect_ex`"""
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", ground.tcp)) == 0


@attempt("net")
def connect_below(ground: Ground) -> Any:
    """`_socket.socket`"""
    import _socket

    line = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    line.connect(("127.0.0.1", ground.tcp))
    line.close()


@attempt("net")
def send_datagram(ground: Ground) -> Any:
    """`sendto`"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendto(TOKEN.encode(), ("127.0.0.1", ground.udp))


@attempt("net")
def send_message(ground: Ground) -> Any:
    """`sendmsg`"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendmsg([TOKEN.encode()], [], 0, ("127.0.0.1", ground.udp))


@attempt("net")
def connect_datagram(ground: Ground) -> Any:
    """a datagram socket, connected"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect(("127.0.0.1", ground.udp))
        line.send(TOKEN.encode())


@attempt("net")
def connect_unix(ground: Ground) -> Any:
    """a socket that is a file"""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(ground.unix)
        line.sendall(TOKEN.encode())


@attempt("net")
def old_connection(ground: Ground) -> Any:
    """a connection from before the call"""
    return os.write(ground.socket_fd, TOKEN.encode())


@attempt("net")
def http_request(ground: Ground) -> Any:
    """`http.client`"""
    from http.client import HTTPConnection

    line = HTTPConnection("127.0.0.1", ground.tcp)
    line.request("GET", "/")
    line.close()


@attempt("net")
def url_open(ground: Ground) -> Any:
    """`urllib.request`"""
    from urllib.request import urlopen

    try:
        urlopen(f"http://127.0.0.1:{ground.tcp}/", timeout=0.2).close()
    except TimeoutError:  # connected, and nobody answers
        return True


@attempt("net")
def asyncio_connection(ground: Ground) -> Any:
    """`asyncio.open_connection`"""
    import asyncio

    async def work() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", ground.tcp)
        writer.close()

    asyncio.run(work())


@attempt("net")
def asyncio_datagram(ground: Ground) -> Any:
    """`loop.create_datagram_endpoint`"""
    import asyncio

    async def work() -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=("127.0.0.1", ground.udp)
        )
        transport.sendto(TOKEN.encode())
        transport.close()

    asyncio.run(work())


@attempt("net")
def connect_in_thread(ground: Ground) -> Any:
    """a thread"""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(connect, ground).result()


@attempt("net")
def multiprocessing_client(ground: Ground) -> Any:
    """`multiprocessing.connection.Client`"""
    from multiprocessing.connection import Client

    Client(("127.0.0.1", ground.tcp)).close()


@attempt("net")
def log_over_network(ground: Ground) -> Any:
    """`logging.handlers.DatagramHandler`"""
    import logging
    from logging.handlers import DatagramHandler

    logging.raiseExceptions = False
    handler = DatagramHandler("127.0.0.1", ground.udp)
    handler.emit(logging.makeLogRecord({"msg": TOKEN}))
    handler.close()


@attempt("net")
def ctypes_connect(ground: Ground) -> Any:
    """`ctypes.CDLL(None).connect`"""
    import ctypes
    import struct

    with socket.socket() as line:
        address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(ground.tcp), b"\x7f\0\0\1")
        return ctypes.CDLL(None).connect(line.fileno(), address, len(address)) == 0


@attempt("net")
def listen(ground: Ground) -> Any:
    """`bind` and `listen`"""
    with socket.create_server(("127.0.0.1", 0)):
        return "bound"


@attempt("net")
def resolve_name(ground: Ground) -> Any:
    """`socket.getaddrinfo`"""
    return socket.getaddrinfo("localhost", 80)


@attempt("net")
def resolve_name_plainly(ground: Ground) -> Any:
    """`socket.gethostbyname`"""
    return socket.gethostbyname("localhost")


# ------------------------------------------------------------------ other programs

_ECHO = ("/bin/echo", "spawned")


@attempt("spawn")
def subprocess_run(ground: Ground) -> Any:
    """`subprocess.run`"""
    import subprocess

    return subprocess.run(_ECHO, stdout=subprocess.PIPE, check=True).stdout


@attempt("spawn")
def subprocess_shell(ground: Ground) -> Any:
    """`subprocess.check_output(shell=True)`"""
    import subprocess

    return subprocess.check_output("echo spawned", shell=True)


@attempt("spawn")
def system(ground: Ground) -> Any:
    """`os.system`"""
    os.system(f"echo > '{ground.own('spawned')}'")


@attempt("spawn")
def popen(ground: Ground) -> Any:
    """`os.popen`"""
    with os.popen("echo spawned") as output:
        return output.read()


@attempt("spawn")
def posix_spawn(ground: Ground) -> Any:
    """`os.posix_spawn`"""
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"echo > '{ground.own('spawned')}'"], {})
    os.waitpid(pid, 0)


@attempt("spawn")
def spawn_and_wait(ground: Ground) -> Any:
    """`os.spawnv`"""
    os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", f"echo > '{ground.own('spawned')}'"])


@attempt("spawn")
def fork(ground: Ground) -> Any:
    """`os.fork`"""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(theirs, b"spawned")
        os._exit(0)
    os.waitpid(pid, 0)
    return os.read(ours, 100)


@attempt("spawn")
def fork_terminal(ground: Ground) -> Any:
    """`os.forkpty`"""
    pid, terminal = os.forkpty()
    if pid == 0:
        os.write(1, b"spawned")
        os._exit(0)
    output = os.read(terminal, 100)
    os.waitpid(pid, 0)
    return output


@attempt("spawn")
def fork_and_exec(ground: Ground) -> Any:
    """`_posixsubprocess.fork_exec`, below `subprocess`"""
    return _fork_exec(ground)


def _fork_exec(ground: Ground) -> Any:
    """Run a program by the function below `subprocess`, whose arguments differ by version."""
    import subprocess

    def unseen(*_: Any) -> None: ...

    audit, sys.audit = sys.audit, unseen
    try:
        line = ["/bin/sh", "-c", f"echo > '{ground.own('spawned')}'"]
        subprocess.run(line, close_fds=True, check=True, start_new_session=True)
    finally:
        sys.audit = audit


@attempt("spawn")
def pty_spawn(ground: Ground) -> Any:
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
def multiprocessing_fork(ground: Ground) -> Any:
    """`multiprocessing` by fork"""
    import multiprocessing

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=theirs.send, args=("spawned",))
    process.start()
    process.join()
    return ours.recv() if ours.poll() else None


@attempt("spawn")
def asyncio_subprocess(ground: Ground) -> Any:
    """`asyncio.create_subprocess_exec`"""
    import asyncio
    import subprocess

    async def work() -> bytes:
        process = await asyncio.create_subprocess_exec(*_ECHO, stdout=subprocess.PIPE)
        return (await process.communicate())[0]

    return asyncio.run(work())


@attempt("spawn")
def browser(ground: Ground) -> Any:
    """`webbrowser.open`, with a browser of one's own"""
    import webbrowser

    script = ground.own("browser")
    with open(script, "w") as file:
        file.write(f"#!/bin/sh\necho > '{ground.own('spawned')}'\n")
    os.chmod(script, 0o700)
    webbrowser.get(f"{script} %s").open("x")


@attempt("spawn")
def other_interpreter(ground: Ground) -> Any:
    """an interpreter of its own in the process, which no hook of ours is told of"""
    code = f"open({ground.own('spawned')!r}, 'w').close()"
    try:
        import _interpreters as interpreters  # type: ignore[import-not-found]
    except ImportError:
        import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]
    interpreters.run_string(interpreters.create(), code)


@attempt("spawn")
def ctypes_system(ground: Ground) -> Any:
    """`ctypes.CDLL(None).system`"""
    import ctypes

    ctypes.CDLL(None).system(f"echo > '{ground.own('spawned')}'".encode())


@attempt("spawn")
def spawn_in_thread(ground: Ground) -> Any:
    """`subprocess.run` in a thread"""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(subprocess_run, ground).result()


@attempt("spawn")
def spawn_at_exit(ground: Ground) -> Any:
    """`atexit`: when the process ends"""
    import atexit

    atexit.register(system, ground)


@attempt("spawn")
def signal_outward(ground: Ground) -> Any:
    """`os.kill` of the parent"""
    os.kill(os.getppid(), signal.SIGURG)
    return "spawned: a signal"


@attempt("spawn")
def signal_group(ground: Ground) -> Any:
    """`os.killpg` of its own group"""
    os.killpg(os.getpgrp(), signal.SIGURG)
    return "spawned: a signal"


@attempt("spawn")
def signal_by_descriptor(ground: Ground) -> Any:
    """`signal.pidfd_send_signal`"""
    signal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.SIGURG)
    return "spawned: a signal"


@attempt("spawn")
def spawn_in_empty_context(ground: Ground) -> Any:
    """`subprocess.run` in an empty context"""
    import contextvars

    return contextvars.Context().run(subprocess_run, ground)


# ------------------------------------------------------------------ environment


@attempt("env")
def environ(ground: Ground) -> Any:
    """`os.environ`"""
    return os.environ[VARIABLE]


@attempt("env")
def getenv(ground: Ground) -> Any:
    """`os.getenv`"""
    return os.getenv(VARIABLE)


@attempt("env")
def proc_environ(ground: Ground) -> Any:
    """`/proc/self/environ`"""
    with open("/proc/self/environ", "rb") as file:
        return file.read()


@attempt("env")
def set_variable(ground: Ground) -> Any:
    """`os.environ[…] = …`"""
    os.environ["EVASION"] = CHANGED
    return os.environ["EVASION"]


@attempt("env")
def put_variable(ground: Ground) -> Any:
    """`os.putenv`"""
    os.putenv("EVASION", CHANGED)
    return CHANGED


@attempt("env")
def drop_variable(ground: Ground) -> Any:
    """`os.unsetenv`"""
    os.unsetenv(VARIABLE)
    return CHANGED
