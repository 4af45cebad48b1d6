"""Translate audit events of Python into actions. An action has a name and a target.

    "open" (path, mode, flags) ─▶ ("read", path) │ ("write", path) │ ("make", path)

`place` puts a file at a path and does not follow a link there. `make` creates a new file or folder.
"""

from __future__ import annotations

import os

from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Args: TypeAlias = tuple[Any, ...]  # of an audit event
    Actions: TypeAlias = tuple[tuple[str, Any], ...]

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EXCLUSIVE_CREATE = os.O_CREAT | os.O_EXCL
_NO_ACTIONS: Actions = ()
_HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")
_INTERPRETER_MODULES = ("_interpreters", "_xxsubinterpreters")


class DirFdPath:
    """A path relative to an open directory."""

    __slots__ = ("dir_fd", "path")

    def __init__(self, path: str | bytes, dir_fd: int) -> None:
        self.path = path
        self.dir_fd = dir_fd


def _path_argument(args: Args, path_index: int, dir_fd_index: int) -> Any:
    """Return the path argument of an event, with its directory if it is relative to one."""
    fd = args[dir_fd_index] if len(args) > dir_fd_index else -1
    return DirFdPath(args[path_index], fd) if type(fd) is int and fd >= 0 else args[path_index]


def _open_actions(args: Args) -> Actions:
    path, mode, flags = args
    if type(path) is int:  # a descriptor, which is open already
        return _NO_ACTIONS
    if flags & _WRITE_FLAGS or (mode is not None and not {"w", "a", "x", "+"}.isdisjoint(mode)):
        is_new = flags & _EXCLUSIVE_CREATE == _EXCLUSIVE_CREATE
        return (("make" if is_new else "write", path),)
    return (("read", path),)


def _sqlite_actions(args: Args) -> Actions:
    name = _to_text(args[0])
    if not name or name == ":memory:":
        return _NO_ACTIONS
    if name[:5] != "file:":
        return (("read", name), ("write", name))
    actions = _sqlite_uri_actions(name[5:])
    if os.path.lexists(name):  # the event does not say whether it is a URI
        return (("read", name), ("write", name), *actions)
    return actions


def _sqlite_uri_actions(rest: str) -> Actions:
    """Return the actions for a SQLite URI. In case of doubt it is opened for writing."""
    rest = rest.partition("#")[0]
    path, _, query = rest.partition("?")
    if path[:2] == "//":  # an authority: empty, or localhost
        path = path[2 + len(path[2:].partition("/")[0]) :]
    name = _percent_decode(path)
    options = [part.partition("=")[::2] for part in query.split("&")]
    modes = {_percent_decode(value) for key, value in options if _percent_decode(key) == "mode"}
    if name in ("", ":memory:") or modes == {"memory"}:
        return _NO_ACTIONS
    return (("read", name),) if modes == {"ro"} else (("read", name), ("write", name))


def _percent_decode(text: str) -> str:
    """Decode percent escapes; the result ends at a NUL character, as in SQLite."""
    first, *others = os.fsencode(text).split(b"%")
    data = first
    for part in others:
        pair = part[:2]
        is_escape = len(pair) == 2 and _HEX_DIGITS.issuperset(pair)
        data += bytes((int(pair, 16),)) + part[2:] if is_escape else b"%" + part
    return os.fsdecode(data.partition(b"\0")[0])


def _connect_actions(args: Args) -> Actions:
    address = args[1]
    return (("net", _format_address(address)),) if address is not None else _NO_ACTIONS


def _bind_actions(args: Args) -> Actions:
    address = args[1]
    actions: Actions = (("net", _format_address(address)),)
    if isinstance(address, (str, bytes)) and address[:1] not in ("", "\0", b"", b"\0"):
        return (*actions, ("place", address))
    return actions


def _format_address(address: object) -> str:
    if is_list(address):
        return ":".join(map(str, address[:2]))
    return _to_text(address) or str(address)


def _to_text(value: object) -> str:
    """Return a str, bytes or path as text, and "" for anything else."""
    return os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else ""  # pyright: ignore[reportUnknownArgumentType]


def _resolve_actions(args: Args) -> Actions:
    return (("net", _format_address(args[0])),)


def _spawn_actions(args: Args) -> Actions:
    """Return a spawn action with the name of the program."""
    for arg in args:
        if _to_text(arg):
            return (("spawn", _to_text(arg)),)
        if isinstance(arg, (list, tuple)) and arg:
            return (("spawn", str(arg[0])),)  # pyright: ignore[reportUnknownArgumentType]
    return (("spawn", "a copy of the process"),)


def _import_actions(args: Args) -> Actions:
    """Report the import of a module that creates interpreters, which no audit hook observes.

    The import is refused, because refusing the creation itself crashes some versions of Python.
    """
    return (("spawn", "another interpreter"),) if args[0] in _INTERPRETER_MODULES else _NO_ACTIONS


def _signal_actions(args: Args) -> Actions:
    """Report a signal to another process; signal 0 only checks that the process exists."""
    pid, number = args
    return _NO_ACTIONS if number == 0 or pid == os.getpid() else (("spawn", f"a signal for {pid}"),)


def _group_signal_actions(args: Args) -> Actions:
    return (("spawn", f"a signal for the group {args[0]}"),) if args[1] else _NO_ACTIONS


def _native_actions(args: Args) -> Actions:
    names = [arg for arg in args if isinstance(arg, str) and arg]
    return (("native", names[-1] if names else "the process itself"),)


def _environment_actions(args: Args) -> Actions:
    return (("env", _to_text(args[0])),)


def _path_action(action: str, dir_fd_index: int = 99) -> Callable[[Args], Actions]:
    """Return a translator for events with one path, which may be relative to a directory."""
    return lambda args: ((action, _path_argument(args, 0, dir_fd_index)),)


EVENTS: dict[str, Callable[[Args], Actions]] = {
    "open": _open_actions,
    **dict.fromkeys(
        ("os.listdir", "os.scandir", "os.getxattr", "os.listxattr"), _path_action("read")
    ),
    **dict.fromkeys(
        ("os.setxattr", "os.removexattr", "os.truncate", "os.chflags"), _path_action("write")
    ),
    "os.chmod": _path_action("write", 2),
    **dict.fromkeys(("os.chown", "os.utime"), _path_action("write", 3)),
    "os.mkdir": _path_action("make", 2),
    **dict.fromkeys(("os.remove", "os.rmdir", "shutil.rmtree"), _path_action("delete", 1)),
    "os.rename": lambda args: (
        ("place", _path_argument(args, 0, 2)),
        ("place", _path_argument(args, 1, 3)),
    ),
    "os.symlink": lambda args: (("place", _path_argument(args, 1, 2)),),
    # A new hard link gives access to the content of the file.
    "os.link": lambda args: (
        ("read", _path_argument(args, 0, 2)),
        ("write", _path_argument(args, 0, 2)),
        ("place", _path_argument(args, 1, 3)),
    ),
    "sqlite3.connect": _sqlite_actions,
    **dict.fromkeys(
        (
            *("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.spawn"),
            *("os.posix_spawn", "os.startfile", "os.startfile/2", "pty.spawn"),
            "_winapi.CreateProcess",
        ),
        _spawn_actions,
    ),
    "os.kill": _signal_actions,
    "os.killpg": _group_signal_actions,
    "import": _import_actions,
    **dict.fromkeys(("socket.connect", "socket.sendto", "socket.sendmsg"), _connect_actions),
    "socket.bind": _bind_actions,
    **dict.fromkeys(
        (
            *("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"),
            "socket.getnameinfo",
        ),
        _resolve_actions,
    ),
    **dict.fromkeys(
        (
            *("sqlite3.enable_load_extension", "sqlite3.load_extension", "ctypes.dlopen"),
            *("ctypes.dlsym", "ctypes.dlsym/handle", "ctypes.call_function"),
        ),
        _native_actions,
    ),
    **dict.fromkeys(("os.putenv", "os.unsetenv"), _environment_actions),
}
"""The translator of each event. All other events are ignored after one lookup in this table."""
