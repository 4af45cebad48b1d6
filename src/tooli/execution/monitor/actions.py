"""Translate audit events of Python into actions, resolve paths, and find access by Python itself.

    "open" (path, mode, flags) ─▶ ("read", path) │ ("write", path) │ ("make", path)

An action has a name and a target. `place` puts a file at a path and does not follow a link there.
`make` creates a new file or folder.

While a command runs, Python imports modules and writes bytecode, and libraries read public files
such as time zones, locales and certificates. A command does not have to declare this access.
"""

from __future__ import annotations

import os
import sys

from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import Any, TypeAlias

    Args: TypeAlias = tuple[Any, ...]  # the arguments of an audit event
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
    """Return the actions for a SQLite URI: read and write, unless its mode is `ro` or `memory`."""
    rest = rest.partition("#")[0]
    path, _, query = rest.partition("?")
    if path[:2] == "//":  # skip the authority, which is empty or localhost
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
    """Report the import of a module that creates interpreters. The hook does not see their events.

    The import is refused, because refusing the creation itself crashes some versions of Python.
    """
    return (("spawn", "another interpreter"),) if args[0] in _INTERPRETER_MODULES else _NO_ACTIONS


def _signal_actions(args: Args) -> Actions:
    """Report a signal to another process; signal 0 only checks that the process exists."""
    pid, number = args
    return _NO_ACTIONS if number == 0 or pid == os.getpid() else (("spawn", f"a signal for {pid}"),)


def _limit_actions(args: Args) -> Actions:
    """Report a change of the limits of another process."""
    pid, limits = args[0], args[2] if len(args) > 2 else None
    is_own = pid in (0, os.getpid()) or limits is None
    return _NO_ACTIONS if is_own else (("spawn", f"limits of {pid}"),)


def _group_signal_actions(args: Args) -> Actions:
    return (("spawn", f"a signal for the group {args[0]}"),) if args[1] else _NO_ACTIONS


def _native_actions(args: Args) -> Actions:
    names = [arg for arg in args if isinstance(arg, str) and arg]
    return (("native", names[-1] if names else "the process itself"),)


def _environment_actions(args: Args) -> Actions:
    return (("env", _to_text(args[0])),)


def _path_action(action: str, dir_fd_index: int = 99) -> Callable[[Args], Actions]:
    """Return a translator for events with one path.

    If the event has a directory descriptor at `dir_fd_index`, the path is relative to it.
    """
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
    # A file that is moved away is deleted where it was.
    "os.rename": lambda args: (
        ("delete", _path_argument(args, 0, 2)),
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
    "resource.prlimit": _limit_actions,
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


# ------------------------------------------------------------------ paths of the system

NON_FILE_DEVICES = frozenset(
    ("nul", "NUL", "CON", "CONIN$", "CONOUT$")
    if os.name == "nt"
    else (
        *("/dev/null", "/dev/full", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/tty"),
        *("/dev/stdin", "/dev/stdout", "/dev/stderr"),
    )
)
"""Devices that store no data. Access to them needs no capability."""

PUBLIC_PATHS = (
    *("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"),
    *("/var/db/timezone", "/etc/localtime", "/usr/share/locale", "/usr/lib/locale"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/usr/lib/ssl/certs"),
    *("/usr/share/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"),
    *("/etc/mime.types", "/usr/share/mime", "/etc/httpd/mime.types", "/etc/apache2/mime.types"),
    *("/etc/timezone", "/usr/share/i18n", "/etc/locale.alias", "/etc/ca-certificates"),
    *("/usr/local/share/ca-certificates", "/etc/crypto-policies", "/etc/os-release"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/sys/vm/overcommit_memory"),
    "/sys/devices/system/cpu",
)
"""Files with public information about the machine, which libraries read by themselves."""

CODE_SUFFIXES = (".py", ".pyc", ".pyi", ".so", ".pyd", ".pth", ".egg-link")
_IMPORT_FRAME_PREFIXES = ("<frozen importlib", "<frozen zipimport")
_EXECUTION_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGE_DIR = os.path.dirname(_EXECUTION_DIR) + os.sep
"""The directory of the package tooli."""
_STORAGE_DIR = os.path.join(PACKAGE_DIR, "storage") + os.sep
_STDLIB_DIR = os.path.dirname(os.__file__) + os.sep

_DOT_NAMES = ("", ".", "..")
# Functions of the import system that load a module.
_IMPORT_FUNCTIONS = ("_find_and_load", "exec_module", "load_module")
_SOURCE_READERS = ("traceback", "warnings", "inspect")  # modules that read source code to show it
_O_PATH = getattr(os, "O_PATH", 0)  # 0 if the system has no O_PATH
_DELETED_SUFFIX = " (deleted)"


# ------------------------------------------------------------------ resolve paths


def resolve_path(path: Any, follow: bool) -> str | None:
    """Return the real path of a path or descriptor, or None if it is not a file.

    With `follow`, a link in the last part of the path is resolved as well.
    """
    try:
        if isinstance(path, DirFdPath):
            inner = os.fsdecode(path.path)
            base = os.getcwd() if os.path.isabs(inner) else _descriptor_path(path.dir_fd)
            path = os.path.join(base or os.getcwd(), inner)
        elif type(path) is int:
            return _descriptor_path(path)
        else:
            path = os.fsdecode("." if path is None else path)
        if path in NON_FILE_DEVICES:
            return None
        return _real_path(path, follow)
    except (ValueError, TypeError):  # not a path: the system call will fail
        return None
    except OSError:  # the current directory was deleted, or links form a loop
        return os.path.normcase(str(path))


def _real_path(path: str, follow: bool) -> str:
    if not os.path.isabs(path):
        path = os.path.join(os.getcwd(), path)
    if follow:
        return os.path.normcase(_follow_links(path))
    folder, name = os.path.split(path)
    if name in _DOT_NAMES:
        return os.path.normcase(_follow_links(path))
    return os.path.normcase(os.path.join(_follow_links(folder), name))


def _follow_links(path: str) -> str:
    """Return an absolute path with all links resolved.

    Nothing is cached, because another process may change a link at any time.
    """
    found = _kernel_path(path)
    if found is None and not os.path.lexists(path):  # a new file in an existing directory
        folder, name = os.path.split(path)
        parent = None if name in _DOT_NAMES else _kernel_path(folder)
        found = None if parent is None else os.path.join(parent, name)
    return found or os.path.realpath(path)


def _kernel_path(path: str) -> str | None:
    """Return the real path of an existing file, as the kernel reports it, or None.

    This is faster than resolving the links of each directory.
    """
    if not _O_PATH:
        return None
    try:
        fd = os.open(path, _O_PATH)
    except OSError:
        return None
    try:
        found = _descriptor_path(fd)
    finally:
        os.close(fd)
    return None if found is None or found.endswith(_DELETED_SUFFIX) else found


def _descriptor_path(fd: int) -> str | None:
    """Return the path of an open descriptor; None for pipes and sockets."""
    try:
        found = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None
    return found if found[:1] == os.sep else None


# ------------------------------------------------------------------ access by Python itself


class CodePaths:
    """The directories that contain code. They are collected before a command can change them."""

    def __init__(self) -> None:
        cwd = os.getcwd() if "" in sys.path else ""
        self._entries = tuple([entry or cwd for entry in sys.path])
        module_dirs: set[str] = set()
        for name, module in tuple(sys.modules.items()):
            module_file = getattr(module, "__file__", None)
            if "." not in name and isinstance(module_file, str):
                folder, file = os.path.split(module_file)
                module_dirs.add(os.path.dirname(folder) if file[:9] == "__init__." else folder)
        self._module_dirs = module_dirs
        bytecode_dir = sys.pycache_prefix
        self.bytecode_dirs = path_prefixes([os.path.realpath(bytecode_dir)] if bytecode_dir else ())
        self._libraries: tuple[str, ...] | None = None
        self._sources: tuple[str, ...] = ()

    @property
    def libraries(self) -> tuple[str, ...]:
        """Directories where every file may be read.

        They contain installed packages, the standard library and public files.
        """
        if self._libraries is None:
            locale_dir = os.path.join(sys.base_prefix, "share", "locale")
            found = {
                os.path.dirname(os.__file__),
                os.path.dirname(PACKAGE_DIR),
                locale_dir,
                *PUBLIC_PATHS,
            }
            found |= {path for path in (*self._entries, *self._module_dirs) if _is_installed(path)}
            sources = {*self._entries, *self._module_dirs} - found
            self._sources = path_prefixes({os.path.realpath(path) for path in sources} - {os.sep})
            self._libraries = path_prefixes(
                map(os.path.realpath, (*found, sys.executable or os.devnull))
            )
        return self._libraries

    @property
    def sources(self) -> tuple[str, ...]:
        """Directories of the app's own modules, where only code may be read."""
        return self._sources if self.libraries else ()


def _is_installed(folder: str) -> bool:
    parts = folder.split(os.sep)
    return "site-packages" in parts or "dist-packages" in parts


def path_prefixes(paths: Iterable[str]) -> tuple[str, ...]:
    """Return paths with a separator at the end, for comparisons with str.startswith."""
    return tuple([os.path.normcase(path).rstrip(os.sep) + os.sep for path in paths])


_code_paths_cache: list[CodePaths] = []


def code_paths() -> CodePaths:
    """Return the code directories of this process."""
    if not _code_paths_cache:
        _code_paths_cache.append(CodePaths())
    return _code_paths_cache[0]


private_temp_dirs: list[str] = []
"""Temporary directories of isolated calls; each ends with a separator."""


def is_implicit_access(action: str, path: str, is_denied_by_config: bool = False) -> bool:
    """True if an access needs no declaration, for example because Python itself makes it.

    `is_denied_by_config` is True if the settings allow_paths or deny_paths forbid the access. In
    this case, code of the app may be read only to import it or to show it in a traceback. In other
    cases, any code of the app may be read, such as files with the suffix `.py`.
    """
    prefix = path + os.sep
    if private_temp_dirs and prefix.startswith(tuple(private_temp_dirs)):
        return True
    is_read = action == "read"
    if is_read and prefix.startswith(code_paths().libraries):
        return True
    frame = _calling_frame()
    if is_read and prefix.startswith(code_paths().sources):
        if is_denied_by_config:
            is_allowed = _is_loading_module(frame) or _is_showing_source(frame)
        else:
            is_allowed = _is_code(path)
        if is_allowed:
            return True
        if _is_importing(frame):
            return os.path.isdir(path)
    if _is_bytecode_path(action, path) and _is_caching_bytecode(frame):
        return not (is_read and is_denied_by_config) or _is_loading_module(frame)
    return _is_framework_storage(frame) or (is_read and _is_removing_tree(frame))


def _is_bytecode_path(action: str, path: str) -> bool:
    """True if Python may keep bytecode at a path: `x.pyc`, `x.pyc.1234`, or a folder for them.

    Bytecode is in `__pycache__` or below `sys.pycache_prefix`. The prefix was read before the
    command ran, so the command cannot choose it.
    """
    bytecode_dirs = code_paths().bytecode_dirs
    folder, name = os.path.split(path)
    is_below_prefix = (path + os.sep).startswith(bytecode_dirs)
    if action == "make" and (name == "__pycache__" or is_below_prefix):
        return True
    if action == "make" and any([item.startswith(path + os.sep) for item in bytecode_dirs]):
        return True  # a parent folder of `sys.pycache_prefix`
    stem, _, suffix = name.rpartition(".")
    if suffix.isdigit():  # `x.pyc.1234`, which is renamed to `x.pyc`
        name = stem
    is_in_cache = os.path.basename(folder) == "__pycache__" or is_below_prefix
    return is_in_cache and name.endswith(".pyc")


def _is_caching_bytecode(frame: FrameType | None) -> bool:
    """True if the import system reads or writes the bytecode of a module that it loads.

    All frames up to `get_code` must belong to the import system. A command that calls
    `SourceFileLoader.set_data` or `py_compile.compile` writes the file itself.
    """
    while frame is not None and frame.f_code.co_filename.startswith(_IMPORT_FRAME_PREFIXES):
        if frame.f_code.co_name == "get_code":
            return True
        frame = frame.f_back
    return False


def _is_code(path: str) -> bool:
    """True if a file contains code, or metadata of a package."""
    if path.endswith(CODE_SUFFIXES) or ".dist-info" in path or ".egg-info" in path:
        return True
    is_archive = path + os.sep in code_paths().sources  # a zip file on sys.path
    return is_archive and not os.path.isdir(path)


def is_library_call() -> bool:
    """True if native code is called by an installed library and not by the app."""
    frame = _calling_frame()
    while frame is not None and _is_from_stdlib(frame, "ctypes"):
        if frame.f_code.co_name == "<module>":
            return True  # an import
        frame = frame.f_back
    return frame is not None and _is_installed_code(frame)


def is_socketpair() -> bool:
    """True if the standard library emulates socketpair() on a system that lacks it."""
    frame = _calling_frame()
    return (
        frame is not None
        and "socketpair" in frame.f_code.co_name
        and _is_from_stdlib(frame, "socket")
    )


def is_framework_thread() -> bool:
    """True if this thread runs code of the framework."""
    frame = _calling_frame()
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE_DIR):
            return True
        frame = frame.f_back
    return False


def _is_installed_code(frame: FrameType) -> bool:
    file = os.path.realpath(frame.f_code.co_filename)
    return (file + os.sep).startswith(code_paths().libraries)


def _calling_frame() -> FrameType | None:
    """Return the frame that caused the event."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_EXECUTION_DIR):
        frame = frame.f_back
    return frame


def _is_framework_storage(frame: FrameType | None) -> bool:
    """True if the framework accesses its storage, as when a command calls another command."""
    while frame is not None and frame.f_code.co_filename.startswith(_STDLIB_DIR):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_STORAGE_DIR)


def _is_importing(frame: FrameType | None) -> bool:
    if frame is None:
        return False
    file = frame.f_code.co_filename
    return (
        file.startswith(_IMPORT_FRAME_PREFIXES)
        or _is_from_stdlib(frame, "importlib")
        or _is_from_stdlib(frame, "pkgutil")
    )


def _is_loading_module(frame: FrameType | None) -> bool:
    """True if a module is being imported, and all frames up to the import are library code."""
    while frame is not None and not frame.f_code.co_filename.startswith(PACKAGE_DIR):
        file = frame.f_code.co_filename
        if file.startswith(_IMPORT_FRAME_PREFIXES):
            if frame.f_code.co_name in _IMPORT_FUNCTIONS:
                return True
        elif not _is_installed_code(frame):
            return False
        frame = frame.f_back
    return False


def _is_showing_source(frame: FrameType | None) -> bool:
    """True if the standard library reads source code to show it, as in a traceback."""
    while frame is not None and frame.f_code.co_filename.startswith(_STDLIB_DIR):
        if any([_is_from_stdlib(frame, module) for module in _SOURCE_READERS]):
            return True
        if "excepthook" in frame.f_code.co_name and _is_from_stdlib(frame, "threading"):
            return True
        frame = frame.f_back
    return False


def _is_removing_tree(frame: FrameType | None) -> bool:
    """True if shutil.rmtree lists a directory. Each file that it removes is checked separately."""
    return (
        frame is not None and "rmtree" in frame.f_code.co_name and _is_from_stdlib(frame, "shutil")
    )


def _is_from_stdlib(frame: FrameType, module: str) -> bool:
    """True if a frame belongs to a module or package of the standard library."""
    module_path = os.path.join(os.path.dirname(os.__file__), module)
    file = frame.f_code.co_filename
    return file == f"{module_path}.py" or file.startswith(module_path + os.sep)
