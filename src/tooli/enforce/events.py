"""What Python's audit events say about a running command: which acts, on what.

    "open" (path, mode, flags) ─▶ ("read", path) │ ("write", path) │ ("make", path)

`place` is to put something at a path, where a link is not followed; `make` is to put there what
was not there before.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Acts: TypeAlias = tuple[tuple[str, Any], ...]

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NEW = os.O_CREAT | os.O_EXCL
_NONE: Acts = ()
_HEX = frozenset(b"0123456789abcdefABCDEF")
_INTERPRETERS = ("_interpreters", "_xxsubinterpreters")


class At:
    """A path that is relative to an open folder."""

    __slots__ = ("folder", "path")

    def __init__(self, path: Any, folder: int) -> None:
        self.path = path
        self.folder = folder


def _at(args: tuple[Any, ...], path: int, folder: int) -> Any:
    """The path among an event's arguments, with the folder that it is relative to."""
    fd = args[folder] if len(args) > folder else -1
    return At(args[path], fd) if type(fd) is int and fd >= 0 else args[path]


def _open(args: tuple[Any, ...]) -> Acts:
    path, mode, flags = args
    if type(path) is int:  # it is open already
        return _NONE
    if flags & _WRITING or (mode is not None and not {"w", "a", "x", "+"}.isdisjoint(mode)):
        return (("make" if flags & _NEW == _NEW else "write", path),)
    return (("read", path),)


def _sqlite(args: tuple[Any, ...]) -> Acts:
    name = _text(args[0])
    if not name or name == ":memory:":
        return _NONE
    if name[:5] != "file:":
        return (("read", name), ("write", name))
    acts = _sqlite_uri(name[5:])
    if os.path.lexists(name):  # whether it is a URI is not told: it may be a file of that name
        return (("read", name), ("write", name), *acts)
    return acts


def _sqlite_uri(rest: str) -> Acts:
    """What a URI of SQLite's opens, read as SQLite reads it; in doubt it is written to."""
    rest = rest.partition("#")[0]
    path, _, query = rest.partition("?")
    if path[:2] == "//":  # a host: none, or localhost
        path = path[2 + len(path[2:].partition("/")[0]) :]
    name = _unescaped(path)
    wishes = [part.partition("=")[::2] for part in query.split("&")]
    modes = {_unescaped(value) for key, value in wishes if _unescaped(key) == "mode"}
    if name in ("", ":memory:") or modes == {"memory"}:
        return _NONE
    return (("read", name),) if modes == {"ro"} else (("read", name), ("write", name))


def _unescaped(text: str) -> str:
    """A part of a URI without its percent signs; it ends at a zero, as SQLite has it."""
    first, *others = os.fsencode(text).split(b"%")
    data = first
    for part in others:
        pair = part[:2]
        whole = len(pair) == 2 and _HEX.issuperset(pair)
        data += bytes((int(pair, 16),)) + part[2:] if whole else b"%" + part
    return os.fsdecode(data.partition(b"\0")[0])


def _connect(args: tuple[Any, ...]) -> Acts:
    address = args[1]
    return (("net", _address(address)),) if address is not None else _NONE


def _bind(args: tuple[Any, ...]) -> Acts:
    address = args[1]
    acts: Acts = (("net", _address(address)),)
    if isinstance(address, (str, bytes)) and address[:1] not in ("", "\0", b"", b"\0"):
        return (*acts, ("place", address))
    return acts


def _address(address: Any) -> str:
    if isinstance(address, tuple):
        parts: Any = address  # pyright: ignore[reportUnknownVariableType]
        return ":".join(map(str, parts[:2]))
    return _text(address) or str(address)


def _text(word: Any) -> str:
    """A text or a path as a text; nothing for anything else."""
    return os.fsdecode(word) if isinstance(word, (str, bytes, os.PathLike)) else ""  # pyright: ignore[reportUnknownArgumentType]


def _host(args: tuple[Any, ...]) -> Acts:
    return (("net", _address(args[0])),)


def _program(args: tuple[Any, ...]) -> Acts:
    """The program that is started: whatever the event calls it."""
    for arg in args:
        if _text(arg):
            return (("spawn", _text(arg)),)
        if isinstance(arg, (list, tuple)) and arg:
            return (("spawn", str(arg[0])),)  # pyright: ignore[reportUnknownArgumentType]
    return (("spawn", "a copy of the process"),)


def _import(args: tuple[Any, ...]) -> Acts:
    """A module of interpreters beside this one: no hook of ours is told of what they do.

    To refuse one while it is made would end some Pythons.
    """
    return (("spawn", "another interpreter"),) if args[0] in _INTERPRETERS else _NONE


def _signal(args: tuple[Any, ...]) -> Acts:
    """A signal for another process; number 0 only asks whether there is one."""
    pid, number = args
    return _NONE if number == 0 or pid == os.getpid() else (("spawn", f"a signal for {pid}"),)


def _group_signal(args: tuple[Any, ...]) -> Acts:
    return (("spawn", f"a signal for the group {args[0]}"),) if args[1] else _NONE


def _native(args: tuple[Any, ...]) -> Acts:
    named = [arg for arg in args if isinstance(arg, str) and arg]
    return (("native", named[-1] if named else "the process itself"),)


def _variable(args: tuple[Any, ...]) -> Acts:
    return (("env", _text(args[0])),)


def _acting(act: str, folder: int = 99) -> Callable[[tuple[Any, ...]], Acts]:
    """An event with one path, and a folder that it may be relative to."""
    return lambda args: ((act, _at(args, 0, folder)),)


EVENTS: dict[str, Callable[[tuple[Any, ...]], Acts]] = {
    "open": _open,
    "os.listdir": _acting("read"),
    "os.scandir": _acting("read"),
    "os.getxattr": _acting("read"),
    "os.listxattr": _acting("read"),
    "os.setxattr": _acting("write"),
    "os.removexattr": _acting("write"),
    "os.truncate": _acting("write"),
    "os.chmod": _acting("write", 2),
    "os.chown": _acting("write", 3),
    "os.chflags": _acting("write"),
    "os.utime": _acting("write", 3),
    "os.mkdir": _acting("make", 2),
    "os.remove": _acting("delete", 1),
    "os.rmdir": _acting("delete", 1),
    "shutil.rmtree": _acting("delete", 1),
    "os.rename": lambda args: (("place", _at(args, 0, 2)), ("place", _at(args, 1, 3))),
    "os.symlink": lambda args: (("place", _at(args, 1, 2)),),
    # another name for a file is a way to all that is in it
    "os.link": lambda args: (
        ("read", _at(args, 0, 2)),
        ("write", _at(args, 0, 2)),
        ("place", _at(args, 1, 3)),
    ),
    "sqlite3.connect": _sqlite,
    "sqlite3.enable_load_extension": _native,
    "sqlite3.load_extension": _native,
    "subprocess.Popen": _program,
    "os.system": _program,
    "os.exec": _program,
    "os.fork": _program,
    "os.forkpty": _program,
    "os.posix_spawn": _program,
    "os.spawn": _program,
    "os.startfile": _program,
    "os.startfile/2": _program,
    "pty.spawn": _program,
    "os.kill": _signal,
    "os.killpg": _group_signal,
    "_winapi.CreateProcess": _program,
    "import": _import,
    "socket.connect": _connect,
    "socket.bind": _bind,
    "socket.sendto": _connect,
    "socket.sendmsg": _connect,
    "socket.getaddrinfo": _host,
    "socket.gethostbyname": _host,
    "socket.gethostbyaddr": _host,
    "socket.getnameinfo": _host,
    "ctypes.dlopen": _native,
    "ctypes.dlsym": _native,
    "ctypes.dlsym/handle": _native,
    "ctypes.call_function": _native,
    "os.putenv": _variable,
    "os.unsetenv": _variable,
}
"""The events that matter. All others pass after one look into this table."""
